"""Hdfs: the lake on HDFS, through hdfs-native. Spark writes what is staged by itself.

    publish   the name node's `rename` without overwriting: one effect, journalled before it is
              answered. Onto a file or a folder that is there it is refused; 80 that raced for one
              name had one winner. A reply that is lost leaves it done or not: OutcomeUnknown.
    stage     written under a private name, then renamed; removing is the other way round
              (`hdfs_aside`)
    append    HDFS lets one at a time write a file; the others wait (`hdfs_appending`)
    settle    nothing is left to do: the name node answers when its journal is on disk.

Checksums are of the bytes, read once at the sealing: HDFS has none of its own that hdfs-native
tells. What was sealed is known again by size and time of modification, until it is published; a
file that was written in the last moments before is read again. Small files take a while: closing
one takes 0.4 s where the data node's report comes later than the request. What is sealed has left
the writer's machine; that it survives a power cut of all data nodes at once takes
`dfs.datanode.synconclose` there.
"""

import asyncio
import heapq
from collections.abc import Callable, Coroutine, Sequence
from itertools import islice
from shlex import quote
from typing import Any, BinaryIO, Final, TypeVar

from headgate.ambient import Ambient
from headgate.errors import Conflict, Corrupt, HeadgateError, Invalid, Unavailable
from headgate.lake import LIST_MAX, READ_BYTES_MAX, Entry, FileFacts, LakeSettings, Listing, Move
from headgate.lake.hdfs_appending import Appending
from headgate.lake.hdfs_aside import Aside
from headgate.lake.hdfs_effects import (
    FOLDER_MODE,
    MODES,
    PIECE_BYTES,
    TRIES,
    Effects,
    Stamp,
    stamp_of,
)
from headgate.lake.hdfs_names import Names, hdfs_root
from headgate.lake.hdfs_wire import Absent, FileReader, FileStatus, NoAnswer, Refused, Taken, Wire
from headgate.lake.lines import raw_of
from headgate.lake.parts import open_parts
from headgate.lake.paths import (
    STAGING,
    check_folder,
    check_page,
    check_private,
    folder_of,
    join,
    name_of,
)

ANSWER_WITHIN_MS: Final = 30_000
FILES_AT_ONCE: Final = 32  # looked at, renamed
READS_AT_ONCE: Final = 4
LISTED_AT_ONCE: Final = 1_000  # what a name node tells in one answer
GRAIN_MS: Final = 50  # a write that is further back shows in the time of modification
SEALED_MAX: Final = 32_768  # files whose checksums are known until they are published

T = TypeVar("T")
R = TypeVar("R")


class HdfsLake:
    """Below `settings.root`, which is made if it is missing."""

    def __init__(
        self,
        settings: LakeSettings,
        ambient: Ambient,
        *,
        answer_within_ms: int = ANSWER_WITHIN_MS,
    ) -> None:
        """Raises Invalid, Unavailable."""
        server, root = hdfs_root(settings.root)
        self._names = Names(server, root)
        for mode in (settings.file_mode, settings.folder_mode):
            if mode is not None and mode & ~MODES:
                raise Invalid(
                    f"lake: HDFS has no mode {mode:o}: there is no set-user and no set-group bit, "
                    "and a new file has its folder's group anyhow; next: leave the first digit out"
                )
        self.url = self._names.url
        self._ambient = ambient
        self._sealed: dict[str, tuple[Stamp, FileFacts]] = {}
        try:
            self._wire = Wire(
                server,
                is_one_host=":" in server.removeprefix("hdfs://"),
                answer_within_ms=answer_within_ms,
            )
        except NoAnswer as error:
            raise self._names.silent("", error) from error
        self._effects = Effects(self._wire, self._names, settings, ambient)
        self._aside = Aside(self._effects)
        self._appending = Appending(self._effects)
        self._run("", self._make_root())

    async def _make_root(self) -> None:
        found = await self._effects.look("")
        if found is not None and not found.isdir:
            raise Invalid(f"lake {self.url!r}: is a file, not a folder; next: choose another path")
        if found is None:
            await self._wire.ask(lambda client: client.mkdirs(self._names.root, FOLDER_MODE, True))

    # -- what a lake does

    def stage(self, path: str, content: bytes) -> FileFacts:
        return self._run(self._names.checked(path), self._aside.stage(path, content))

    def seal(self, paths: Sequence[str]) -> tuple[FileFacts, ...]:
        for path in paths:
            self._names.checked(path)
        return self._run(folder_of(paths[0]) if paths else "", self._seal(paths))

    async def _seal(self, paths: Sequence[str]) -> tuple[FileFacts, ...]:
        for path, found in zip(
            paths, await _at_once(self._effects.look, paths, FILES_AT_ONCE), strict=True
        ):
            if found is None:
                raise self._names.missing(path)
        if self._effects.has_access:
            await _at_once(self._effects.give_access, paths, FILES_AT_ONCE)
        now_ms = await self._clock_ms() if paths else 0
        read = await _at_once(self._effects.digest, paths, READS_AT_ONCE)
        sealed = []
        for path, one in zip(paths, read, strict=True):
            if one is None:
                raise self._names.missing(path)
            stamp, facts = one
            self._sealed.pop(path, None)
            if now_ms - stamp.modified_ms >= GRAIN_MS:
                while len(self._sealed) >= SEALED_MAX:
                    self._sealed.pop(next(iter(self._sealed)), None)  # the oldest
                self._sealed[path] = (stamp, facts)
            sealed.append(facts)
        return tuple(sealed)

    def server_ms(self) -> float:
        """What time it is there. Raises Unavailable."""
        now_ms = self._run(STAGING, self._clock_ms())
        if now_ms == 0:
            raise Unavailable(
                f"{self._names.place(STAGING)}: HDFS takes no file, and so does not say what time "
                f"it is; next: hdfs dfs -ls {quote(self._names.place(''))}"
            )
        return now_ms

    async def _clock_ms(self) -> int:
        """What time it is at least, by the name node's clock; 0: it does not say."""
        path = join(STAGING, f".clock-{self._ambient.new_id()}")
        try:
            await self._effects.make(STAGING)
            await self._effects.write(path, b"")
            found = await self._effects.look(path)
            await self._effects.delete(path)
        except (Refused, NoAnswer, HeadgateError):
            return 0
        return 0 if found is None else found.modification_time

    def facts(self, path: str) -> FileFacts | None:
        return self._run(self._names.checked(path), self._effects.facts(path))

    def publish(self, staged: str, published: str) -> None:
        for path in (staged, published):
            self._names.checked(path)
        if staged == published:
            raise Invalid(
                f"{self._names.place(published)}: is staged under the name that it is to be "
                "published under"
            )
        self._run(published, self._publish(staged, published))

    async def _publish(self, staged: str, published: str) -> None:
        found = await self._effects.look(staged)
        if found is None:
            raise self._names.missing(staged)
        if found.isdir:
            raise self._names.no_file(staged)
        for _ in range(TRIES):
            try:
                await self._effects.rename(staged, published)
                self._sealed.pop(staged, None)
                return
            except Absent:
                if await self._effects.look(staged) is None:
                    raise self._names.missing(staged) from None  # somebody else was faster
                await self._effects.make(folder_of(published))
            except Refused as error:
                if isinstance(error, Taken) or await self._effects.look(published) is not None:
                    place, other = self._names.place(published), self._names.place(staged)
                    raise Conflict(
                        f"{place}: something has this name, and nothing was done; next: compare "
                        f"the two: hdfs dfs -checksum {quote(other)} {quote(place)}"
                    ) from None
                raise
            except NoAnswer as error:
                raise self._names.unknown(
                    published, error, "look where it is, and do it again if it is still staged"
                ) from error
        raise Unavailable(
            f"{self._names.place(published)}: its folder was removed {TRIES} times, and nothing "
            "was done"
        )

    def publish_all(self, moves: Sequence[Move]) -> tuple[bool, ...]:
        for move in moves:
            for path in (move.staged, move.published):
                self._names.checked(path)
        return self._run("", self._publish_all(moves))

    async def _publish_all(self, moves: Sequence[Move]) -> tuple[bool, ...]:
        is_silent = False

        async def carry(move: Move) -> bool:
            nonlocal is_silent
            if is_silent:
                return False  # nobody waits for each of thousands
            try:
                return await self._carry(move)
            except NoAnswer:
                is_silent = True
            except (Refused, HeadgateError):
                pass  # for somebody who has time to look at that one
            return False

        return tuple(await _at_once(carry, moves, FILES_AT_ONCE))

    async def _carry(self, move: Move) -> bool:
        """Raises Refused, NoAnswer, HeadgateError: it is not known to be done."""
        found = await self._effects.look(move.staged)
        if found is None or found.isdir:
            return False
        stamp, known = stamp_of(found), self._sealed.get(move.staged)
        if known is not None and known[0] == stamp:
            facts = known[1]
        else:
            read = await self._effects.digest(move.staged)
            if read is None:
                return False
            stamp, facts = read
        if facts != FileFacts(move.size_bytes, move.checksum):
            return False
        await self._publish(move.staged, move.published)
        if await self._effects.look(move.staged) is not None:
            return False
        there = await self._effects.look(move.published)
        return there is not None and not there.isdir and stamp_of(there) == stamp

    def settle(self, folders: Sequence[str]) -> None:
        for folder in folders:
            check_folder(folder)

    def read(self, path: str, size_bytes_max: int = READ_BYTES_MAX) -> bytes | None:
        return self._run(self._names.checked(path), self._read(path, size_bytes_max))

    async def _read(self, path: str, size_bytes_max: int) -> bytes | None:
        found = await self._effects.look(path)
        if found is None:
            return None
        if found.isdir:
            raise self._names.no_file(path)
        try:
            reader = await self._effects.reader(path)
        except Absent:
            return None
        if reader.size > size_bytes_max:
            place = self._names.place(path)
            raise Invalid(
                f"{place}: has more than {size_bytes_max:,} bytes, and is not read as a whole; "
                f"next: see what it is: hdfs dfs -ls {quote(place)}"
            )
        return b"".join([piece async for piece in self._effects.pieces(reader)])

    def open(self, path: str) -> BinaryIO:
        return self._run(self._names.checked(path), self._open(path))

    async def _open(self, path: str) -> BinaryIO:
        found = await self._effects.look(path)
        if found is None:
            raise self._names.missing(path)
        if found.isdir:
            raise self._names.no_file(path)
        try:
            reader = await self._effects.reader(path)
        except Absent:
            raise self._names.missing(path) from None
        return self._parts_of(reader)

    def _parts_of(self, reader: FileReader) -> BinaryIO:
        """Of the file that was opened, also if its name goes to another one."""

        def read(start: int, end: int) -> bytes:
            try:
                return self._wire.run(
                    self._wire.ask(lambda _: reader.read_range(start, end - start))
                )
            except (Refused, NoAnswer) as error:
                raise OSError(str(error)) from error

        return open_parts(reader.size, read, PIECE_BYTES)

    def list(self, folder: str, *, after: str = "", limit: int = LIST_MAX) -> Listing:
        if folder:
            self._names.checked(folder)
        check_page(limit)
        return self._run(folder, self._list(folder, after, limit))

    async def _list(self, folder: str, after: str, limit: int) -> Listing:
        found = await self._effects.look(folder)
        if found is None or not found.isdir:
            return Listing((), None)
        stream = await self._wire.ask(lambda client: client.list_status(self._names.there(folder)))
        kept: list[Entry] = []
        while True:  # ends with the folder
            try:
                some = await self._wire.ask(lambda _: list(islice(stream, LISTED_AT_ONCE)))
            except Absent:
                break  # the folder was removed meanwhile
            entries = (self._entry(folder, status) for status in some)
            kept += [entry for entry in entries if name_of(entry.path) > after]
            if len(kept) > 2 * limit or len(some) < LISTED_AT_ONCE:
                # Name nodes have another order, beyond ASCII. Never more than two pages in memory.
                kept = heapq.nsmallest(limit + 1, kept, key=_path_of)
            if len(some) < LISTED_AT_ONCE:
                break
        kept = heapq.nsmallest(limit + 1, kept, key=_path_of)
        is_last = len(kept) <= limit
        return Listing(tuple(kept[:limit]), None if is_last else name_of(kept[limit - 1].path))

    def remove(self, path: str, facts: FileFacts) -> None:
        self._run(self._names.checked(path), self._aside.remove(path, facts))

    def remove_folder(self, folder: str) -> None:
        self._names.checked(check_private(folder))
        self._run(folder, self._remove_folder(folder))

    async def _remove_folder(self, folder: str) -> None:
        found = await self._effects.look(folder)
        if found is None:
            return
        if not found.isdir:
            place = self._names.place(folder)
            raise Corrupt(
                f"{place}: is something else than a folder, and nothing here would make such a "
                f"thing; next: see what it is: hdfs dfs -ls {quote(place)}"
            )
        try:
            await self._wire.ask(lambda client: client.delete(self._names.there(folder), True))
        except NoAnswer as error:
            raise self._names.unknown(folder, error, "remove it again; that is harmless") from error

    def append(self, path: str, lines: Sequence[str]) -> None:
        self._names.checked(path)
        raw = raw_of(lines)
        if raw:
            self._run(path, self._appending.append(path, raw))

    # -- names and words
    def _entry(self, folder: str, status: FileStatus) -> Entry:
        path = join(folder, status.path.rpartition("/")[2])
        return Entry(path, 0 if status.isdir else status.length, status.isdir)

    def _run(self, path: str, work: Coroutine[Any, Any, T]) -> T:
        """What is refused, or not answered, before anything was done."""
        try:
            return self._wire.run(work)
        except Refused as error:
            raise self._names.refusal(path, error) from error
        except NoAnswer as error:
            raise self._names.silent(path, error) from error


def _path_of(entry: Entry) -> str:
    return entry.path


async def _at_once(
    act: Callable[[T], Coroutine[Any, Any, R]], things: Sequence[T], most: int
) -> list[R]:
    """In the order of the things. The first that fails ends the others."""
    gate = asyncio.Semaphore(most)

    async def one(thing: T) -> R:
        async with gate:
            return await act(thing)

    tasks = [asyncio.ensure_future(one(thing)) for thing in things]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
