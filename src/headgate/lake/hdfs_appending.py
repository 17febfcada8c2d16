"""Hdfs appending: lines behind what is there. HDFS lets one at a time write a file.

The others wait. Who holds it for HELD_TOO_LONG_MS is taken for dead, and loses it.
"""

import re
from contextlib import suppress
from shlex import quote
from typing import Final

from headgate.ambient import Deadline
from headgate.errors import Unavailable
from headgate.lake.hdfs_effects import Effects, synced
from headgate.lake.hdfs_wire import FileWriter, NoAnswer, Refused, Taken
from headgate.lake.paths import folder_of

WAIT_MS: Final = 60_000  # for others that append to the same file
APPEND_TRIES: Final = 100  # each means that somebody else did
HELD_TOO_LONG_MS: Final = 10_000
LOOK_MS: Final = 50

_OWNER: Final = re.compile(r"owned by (\S+)|because (\S+) is already")
_NOT_YET: Final = frozenset({"RecoveryInProgressException", "NotReplicatedYetException"})


class Appending:
    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._names = effects.names
        self._wire = effects.wire
        self._ambient = effects.ambient

    async def append(self, path: str, raw: bytes) -> None:
        found = await self._effects.look(path)
        if found is not None and found.isdir:
            raise self._names.no_file(path)
        if found is None:
            await self._effects.make(folder_of(path))
            with suppress(Taken):
                await self._effects.write(path, b"")
            await self._effects.give_access(path)
        writer, torn = await self._writer(path)
        try:
            await self._wire.ask(lambda _: writer.write(torn + raw))
            await self._wire.ask(lambda _: synced(writer))
            await self._wire.ask(lambda _: writer.close())
        except (Refused, NoAnswer) as error:
            with suppress(Refused, NoAnswer):
                await self._wire.ask(lambda _: writer.close())
            if isinstance(error, NoAnswer):
                next_act = "write it again under the same id; readers skip part of a line"
                raise self._names.unknown(path, error, next_act) from error
            raise

    async def _writer(self, path: str) -> tuple[FileWriter, bytes]:
        """At the end of the file, and what ends the last line there: its writer may have died in
        it. While it is being written nobody can read it, so that is looked up before."""
        for _ in range(APPEND_TRIES):
            size_bytes, torn = await self._end_of(path)
            writer = await self._lease(path)
            found = await self._effects.look(path)
            if found is not None and found.length == size_bytes:
                return writer, torn
            await self._wire.ask(lambda _, one=writer: one.close())  # type: ignore[misc] # bound now
        raise Unavailable(
            f"{self._names.place(path)}: others write here all the time, and nothing was done; "
            "next: try again"
        )

    async def _end_of(self, path: str) -> tuple[int, bytes]:
        reader = await self._effects.reader(path)
        size_bytes = reader.size
        if size_bytes == 0:
            return 0, b""
        last = await self._wire.ask(lambda _: reader.read_range(size_bytes - 1, 1))
        return size_bytes, b"" if last == b"\n" else b"\n"

    async def _lease(self, path: str) -> FileWriter:
        """A writer at the end of this file, of which there is one at a time. Raises Unavailable."""
        deadline, held = Deadline(self._ambient, WAIT_MS), ("", Deadline(self._ambient, 0))
        while True:  # ends with the deadline
            try:
                return await self._wire.ask(lambda client: client.append(self._names.there(path)))
            except Refused as error:
                if not isinstance(error, Taken) and error.kind not in _NOT_YET:
                    raise
                said = error.said
            named = _OWNER.search(said)
            owner = (named[1] or named[2]) if named else ""
            if owner != held[0]:
                held = (owner, Deadline(self._ambient, HELD_TOO_LONG_MS))
            elif owner and held[1].is_over():
                await self._wire.ask(lambda client: client.recover_lease(self._names.there(path)))
                held = (owner, Deadline(self._ambient, HELD_TOO_LONG_MS))
            if deadline.is_over():
                raise Unavailable(
                    f"{self._names.place(path)}: others have been writing here for {WAIT_MS:,} ms "
                    f"({said}), and nothing was done; next: hdfs debug recoverLease -path "
                    f"{quote(f'{self._names.there(path)}')}"
                )
            self._ambient.sleep_ms(LOOK_MS * self._ambient.random())
