"""Hdfs aside: files that are staged and removed under private names, so that a request whose answer
was lost can be called off.

    stage     written under a private name, then renamed. If no answer comes, the private file is
              deleted: once that is answered, a request still under way finds nothing to rename.
    remove    the file is renamed to a private name, looked at, and only then deleted; another one
              is renamed back. If no answer comes to the first, a folder is put under the private
              name: a request that arrives late is refused there, and takes no later file away.
"""

from contextlib import suppress

from headgate.errors import HeadgateError, OutcomeUnknown, Unavailable
from headgate.lake import FileFacts
from headgate.lake.digests import checksum_of
from headgate.lake.hdfs_effects import Effects, stamp_of
from headgate.lake.hdfs_wire import Absent, NoAnswer, Refused
from headgate.lake.paths import folder_of, join, removing_path


class Aside:
    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._names = effects.names
        self._wire = effects.wire
        self._ambient = effects.ambient

    async def stage(self, path: str, content: bytes) -> FileFacts:
        facts = FileFacts(len(content), checksum_of(content))
        aside = join(folder_of(path), f".{self._ambient.new_id()}")
        there = await self._effects.look(path)
        if there is not None and there.isdir:
            raise Unavailable(f"{self._names.place(path)}: is a folder, and nothing was done")
        await self._effects.make(folder_of(path))
        try:
            await self._effects.write(aside, content)
            await self._effects.give_access(aside)
            await self._effects.rename(aside, path, is_overwriting=True)
        except Refused:
            with suppress(Refused, NoAnswer):
                await self._effects.delete(aside)  # a full disk must not be filled further
            raise
        except NoAnswer as error:
            await self._call_off(path, aside, facts, error)
        return facts

    async def _call_off(self, path: str, aside: str, facts: FileFacts, error: NoAnswer) -> None:
        """Nothing that is still under way comes to anything. Returns if it was done."""
        try:
            await self._effects.delete(aside)
            if await self._effects.facts(path) == facts:
                return
        except (Refused, NoAnswer, HeadgateError):
            raise self._names.unknown(path, error, "stage it again; that is harmless") from error
        raise self._names.silent(path, error) from error

    async def remove(self, path: str, facts: FileFacts) -> None:
        found = await self._effects.look(path)
        if found is None:
            return
        if found.isdir:
            raise self._names.another(path)
        read = await self._effects.digest(path)
        if read is None:
            return
        stamp, there = read
        if there != facts:
            raise self._names.another(path)
        aside = removing_path(self._ambient.new_id(), facts)
        await self._effects.make(folder_of(aside))
        try:
            await self._effects.rename(path, aside)
        except Absent:
            return  # by somebody else
        except NoAnswer as error:
            await self._bar(path, aside, error)
        try:
            moved = await self._effects.look(aside)
            if moved is None:
                return  # by a sweeper, who takes nothing but what was to be removed
            if stamp_of(moved) == stamp:
                await self._effects.delete(aside)
                return
            await self._effects.rename(aside, path)
        except (Refused, NoAnswer) as error:
            raise OutcomeUnknown(
                f"{self._names.place(path)}: HDFS did not confirm it ({error}); it has lost its "
                f"name, and lies at {self._names.place(aside)}"
            ) from error
        raise self._names.another(path)

    async def _bar(self, path: str, aside: str, error: NoAnswer) -> None:
        """Returns if the file is aside already; else it never gets there."""
        try:
            await self._wire.ask(
                lambda client: client.mkdirs(self._names.there(aside), 0o700, False)
            )
        except (Refused, NoAnswer):  # by what is there; or nobody changes anything now
            with suppress(Refused, NoAnswer):
                found = await self._effects.look(aside)
                if found is not None and not found.isdir:
                    return
            raise self._names.unknown(path, error, "remove it again; that is harmless") from error
        raise self._names.silent(path, error) from error
