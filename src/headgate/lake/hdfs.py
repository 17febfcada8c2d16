"""Hdfs: the lake on HDFS, through hdfs-native. Spark writes what is staged by itself.

    publish   the name node's `rename` without overwriting: one effect, journalled before it is
              answered. Onto a file or a folder that is there it is refused; 80 that raced for one
              name had one winner. A reply that is lost leaves it done or not: OutcomeUnknown.
    stage     written under a private name, then renamed. If no answer comes, the private file is
              deleted: once that is answered, a request still under way finds nothing to rename.
    remove    the file is renamed to a private name, looked at, and only then deleted; another one
              is renamed back. If no answer comes to the first, a folder is put under the private
              name: a request that arrives late is refused there, and takes no later file away.
    append    HDFS lets one at a time write a file; the others wait. Who holds it for
              HELD_TOO_LONG_MS is taken for dead, and loses it.
    settle    nothing is left to do: the name node answers when its journal is on disk.

Checksums are of the bytes, read once at the sealing: HDFS has none of its own that hdfs-native
tells. What was sealed is known again by size and time of modification, until it is published; a
file that was written in the last moments before is read again. Small files take a while: closing
one takes 0.4 s where the data node's report comes later than the request. What is sealed has left
the writer's machine; that it survives a power cut of all data nodes at once takes
`dfs.datanode.synconclose` there.
"""

import asyncio
import hashlib
import heapq
import io
import os
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from shlex import quote
from typing import Any, BinaryIO, Final, NamedTuple, TypeVar, cast

from hdfs_native import FileReader, FileStatus, FileWriter, WriteOptions

from headgate.ambient import Ambient, Deadline
from headgate.errors import Conflict, Corrupt, HeadgateError, Invalid, OutcomeUnknown, Unavailable
from headgate.lake import LIST_MAX, READ_BYTES_MAX, Entry, FileFacts, LakeSettings, Listing, Move
from headgate.lake.digests import checksum_of
from headgate.lake.hdfs_wire import Absent, NoAnswer, Refused, Taken, Wire
from headgate.lake.lines import raw_of
from headgate.lake.paths import (
    OURS,
    STAGING,
    check_file,
    check_folder,
    check_page,
    check_private,
    folder_of,
    join,
    name_of,
    removing_path,
)

ANSWER_WITHIN_MS: Final = 30_000
FILES_AT_ONCE: Final = 32  # looked at, renamed
READS_AT_ONCE: Final = 4
PIECE_BYTES: Final = 4_000_000
LISTED_AT_ONCE: Final = 1_000  # what a name node tells in one answer
TRIES: Final = 5  # each means that somebody else changed the same
GRAIN_MS: Final = 50  # a write that is further back shows in the time of modification
SEALED_MAX: Final = 32_768  # files whose checksums are known until they are published
WAIT_MS: Final = 60_000  # for others that append to the same file
APPEND_TRIES: Final = 100  # each means that somebody else did
HELD_TOO_LONG_MS: Final = 10_000
LOOK_MS: Final = 50
FILE_MODE: Final = 0o644
FOLDER_MODE: Final = 0o755
MODES: Final = 0o1777  # HDFS has no others

_ROOT: Final = re.compile(r"hdfs://([^/@:]+)(:\d+)?(/.*)?", re.DOTALL | re.IGNORECASE)
_PATTERN_CHARACTERS: Final = frozenset("*?[]{}\\:")
_OWNER: Final = re.compile(r"owned by (\S+)|because (\S+) is already")
_NOT_YET: Final = frozenset({"RecoveryInProgressException", "NotReplicatedYetException"})

T = TypeVar("T")
R = TypeVar("R")


class Stamp(NamedTuple):
    """What tells one state of a file from another."""

    size_bytes: int
    modified_ms: int


def hdfs_root(root: str) -> tuple[str, str]:
    """The address of the server and the path on it. Raises Invalid."""
    matched = _ROOT.fullmatch(root)
    if matched is None:
        raise Invalid(
            f"lake {root!r}: is no address of HDFS; next: write hdfs://HOST:PORT/FOLDER, or "
            "hdfs://NAMESERVICE/FOLDER with HADOOP_CONF_DIR set"
        )
    host, port, path = matched[1], matched[2] or "", matched[3] or ""
    if "\0" in path or not _PATTERN_CHARACTERS.isdisjoint(path):
        raise Invalid(
            f"lake {root!r}: has one of * ? [ ] {{ }} \\ : in its path, which Spark or HDFS takes "
            "for something else; next: choose another path"
        )
    names = path.strip("/").split("/")
    if not all(name not in ("", ".", "..") for name in names):
        raise Invalid(
            f"lake {root!r}: is the whole file system, or has a name that is none; next: choose a "
            "folder, like hdfs://HOST:PORT/lake"
        )
    return f"hdfs://{host}{port}", "/" + "/".join(names)


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
        server, self._root = hdfs_root(settings.root)
        for mode in (settings.file_mode, settings.folder_mode):
            if mode is not None and mode & ~MODES:
                raise Invalid(
                    f"lake: HDFS has no mode {mode:o}: there is no set-user and no set-group bit, "
                    "and a new file has its folder's group anyhow; next: leave the first digit out"
                )
        self.url = f"{server}{self._root}"
        self._settings = settings
        self._ambient = ambient
        self._sealed: dict[str, tuple[Stamp, FileFacts]] = {}
        try:
            self._wire = Wire(
                server,
                is_one_host=":" in server.removeprefix("hdfs://"),
                answer_within_ms=answer_within_ms,
            )
        except NoAnswer as error:
            raise self._silent("", error) from error
        self._run("", self._make_root())

    async def _make_root(self) -> None:
        found = await self._look("")
        if found is not None and not found.isdir:
            raise Invalid(f"lake {self.url!r}: is a file, not a folder; next: choose another path")
        if found is None:
            await self._wire.ask(lambda client: client.mkdirs(self._root, FOLDER_MODE, True))

    # -- what a lake does

    def stage(self, path: str, content: bytes) -> FileFacts:
        return self._run(self._checked(path), self._stage(path, content))

    async def _stage(self, path: str, content: bytes) -> FileFacts:
        facts = FileFacts(len(content), checksum_of(content))
        aside = join(folder_of(path), f".{self._ambient.new_id()}")
        there = await self._look(path)
        if there is not None and there.isdir:
            raise Unavailable(f"{self._place(path)}: is a folder, and nothing was done")
        await self._make(folder_of(path))
        try:
            await self._write(aside, content)
            await self._give_access(aside)
            await self._rename(aside, path, is_overwriting=True)
        except Refused:
            with suppress(Refused, NoAnswer):
                await self._delete(aside)  # a full disk must not be filled further
            raise
        except NoAnswer as error:
            await self._call_off(path, aside, facts, error)
        return facts

    async def _call_off(self, path: str, aside: str, facts: FileFacts, error: NoAnswer) -> None:
        """Nothing that is still under way comes to anything. Returns if it was done."""
        try:
            await self._delete(aside)
            if await self._facts(path) == facts:
                return
        except (Refused, NoAnswer, HeadgateError):
            raise self._unknown(path, error, "stage it again; that is harmless") from error
        raise self._silent(path, error) from error

    def seal(self, paths: Sequence[str]) -> tuple[FileFacts, ...]:
        for path in paths:
            self._checked(path)
        return self._run(folder_of(paths[0]) if paths else "", self._seal(paths))

    async def _seal(self, paths: Sequence[str]) -> tuple[FileFacts, ...]:
        for path, found in zip(
            paths, await _at_once(self._look, paths, FILES_AT_ONCE), strict=True
        ):
            if found is None:
                raise self._missing(path)
        if self._has_access:
            await _at_once(self._give_access, paths, FILES_AT_ONCE)
        now_ms = await self._clock_ms() if paths else 0
        read = await _at_once(self._digest, paths, READS_AT_ONCE)
        sealed = []
        for path, one in zip(paths, read, strict=True):
            if one is None:
                raise self._missing(path)
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
                f"{self._place(STAGING)}: HDFS takes no file, and so does not say what time it is; "
                f"next: hdfs dfs -ls {quote(self._place(''))}"
            )
        return now_ms

    async def _clock_ms(self) -> int:
        """What time it is at least, by the name node's clock; 0: it does not say."""
        path = join(STAGING, f".clock-{self._ambient.new_id()}")
        try:
            await self._make(STAGING)
            await self._write(path, b"")
            found = await self._look(path)
            await self._delete(path)
        except (Refused, NoAnswer, HeadgateError):
            return 0
        return 0 if found is None else found.modification_time

    def facts(self, path: str) -> FileFacts | None:
        return self._run(self._checked(path), self._facts(path))

    async def _facts(self, path: str) -> FileFacts | None:
        found = await self._digest(path)
        return None if found is None else found[1]

    def publish(self, staged: str, published: str) -> None:
        for path in (staged, published):
            self._checked(path)
        if staged == published:
            raise Invalid(
                f"{self._place(published)}: is staged under the name that it is to be published "
                "under"
            )
        self._run(published, self._publish(staged, published))

    async def _publish(self, staged: str, published: str) -> None:
        found = await self._look(staged)
        if found is None:
            raise self._missing(staged)
        if found.isdir:
            raise self._no_file(staged)
        for _ in range(TRIES):
            try:
                await self._rename(staged, published)
                self._sealed.pop(staged, None)
                return
            except Absent:
                if await self._look(staged) is None:
                    raise self._missing(staged) from None  # somebody else was faster
                await self._make(folder_of(published))
            except Refused as error:
                if isinstance(error, Taken) or await self._look(published) is not None:
                    raise Conflict(
                        f"{self._place(published)}: something has this name, and nothing was done; "
                        f"next: compare the two: hdfs dfs -checksum {quote(self._place(staged))} "
                        f"{quote(self._place(published))}"
                    ) from None
                raise
            except NoAnswer as error:
                raise self._unknown(
                    published, error, "look where it is, and do it again if it is still staged"
                ) from error
        raise Unavailable(
            f"{self._place(published)}: its folder was removed {TRIES} times, and nothing was done"
        )

    def publish_all(self, moves: Sequence[Move]) -> tuple[bool, ...]:
        for move in moves:
            for path in (move.staged, move.published):
                self._checked(path)
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
        found = await self._look(move.staged)
        if found is None or found.isdir:
            return False
        stamp, known = _stamp(found), self._sealed.get(move.staged)
        if known is not None and known[0] == stamp:
            facts = known[1]
        else:
            read = await self._digest(move.staged)
            if read is None:
                return False
            stamp, facts = read
        if facts != FileFacts(move.size_bytes, move.checksum):
            return False
        await self._publish(move.staged, move.published)
        if await self._look(move.staged) is not None:
            return False
        there = await self._look(move.published)
        return there is not None and not there.isdir and _stamp(there) == stamp

    def settle(self, folders: Sequence[str]) -> None:
        for folder in folders:
            check_folder(folder)

    def read(self, path: str, size_bytes_max: int = READ_BYTES_MAX) -> bytes | None:
        return self._run(self._checked(path), self._read(path, size_bytes_max))

    async def _read(self, path: str, size_bytes_max: int) -> bytes | None:
        found = await self._look(path)
        if found is None:
            return None
        if found.isdir:
            raise self._no_file(path)
        try:
            reader = await self._reader(path)
        except Absent:
            return None
        if reader.size > size_bytes_max:
            place = self._place(path)
            raise Invalid(
                f"{place}: has more than {size_bytes_max:,} bytes, and is not read as a whole; "
                f"next: see what it is: hdfs dfs -ls {quote(place)}"
            )
        return b"".join([piece async for piece in self._pieces(reader)])

    def open(self, path: str) -> BinaryIO:
        return self._run(self._checked(path), self._open(path))

    async def _open(self, path: str) -> BinaryIO:
        found = await self._look(path)
        if found is None:
            raise self._missing(path)
        if found.isdir:
            raise self._no_file(path)
        try:
            reader = await self._reader(path)
        except Absent:
            raise self._missing(path) from None
        return cast(BinaryIO, io.BufferedReader(_HdfsFile(reader, self._wire), PIECE_BYTES))

    def list(self, folder: str, *, after: str = "", limit: int = LIST_MAX) -> Listing:
        if folder:
            self._checked(folder)
        check_page(limit)
        return self._run(folder, self._list(folder, after, limit))

    async def _list(self, folder: str, after: str, limit: int) -> Listing:
        found = await self._look(folder)
        if found is None or not found.isdir:
            return Listing((), None)
        stream = await self._wire.ask(lambda client: client.list_status(self._there(folder)))
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
        self._run(self._checked(path), self._remove(path, facts))

    async def _remove(self, path: str, facts: FileFacts) -> None:
        found = await self._look(path)
        if found is None:
            return
        if found.isdir:
            raise self._another(path)
        read = await self._digest(path)
        if read is None:
            return
        stamp, there = read
        if there != facts:
            raise self._another(path)
        aside = removing_path(self._ambient.new_id(), facts)
        await self._make(folder_of(aside))
        try:
            await self._rename(path, aside)
        except Absent:
            return  # by somebody else
        except NoAnswer as error:
            await self._bar(path, aside, error)
        try:
            moved = await self._look(aside)
            if moved is None:
                return  # by a sweeper, who takes nothing but what was to be removed
            if _stamp(moved) == stamp:
                await self._delete(aside)
                return
            await self._rename(aside, path)
        except (Refused, NoAnswer) as error:
            raise OutcomeUnknown(
                f"{self._place(path)}: HDFS did not confirm it ({error}); it has lost its name, "
                f"and lies at {self._place(aside)}"
            ) from error
        raise self._another(path)

    async def _bar(self, path: str, aside: str, error: NoAnswer) -> None:
        """Returns if the file is aside already; else it never gets there."""
        try:
            await self._wire.ask(lambda client: client.mkdirs(self._there(aside), 0o700, False))
        except (Refused, NoAnswer):  # by what is there; or nobody changes anything now
            with suppress(Refused, NoAnswer):
                found = await self._look(aside)
                if found is not None and not found.isdir:
                    return
            raise self._unknown(path, error, "remove it again; that is harmless") from error
        raise self._silent(path, error) from error

    def remove_folder(self, folder: str) -> None:
        self._checked(check_private(folder))
        self._run(folder, self._remove_folder(folder))

    async def _remove_folder(self, folder: str) -> None:
        found = await self._look(folder)
        if found is None:
            return
        if not found.isdir:
            place = self._place(folder)
            raise Corrupt(
                f"{place}: is something else than a folder, and nothing here would make such a "
                f"thing; next: see what it is: hdfs dfs -ls {quote(place)}"
            )
        try:
            await self._wire.ask(lambda client: client.delete(self._there(folder), True))
        except NoAnswer as error:
            raise self._unknown(folder, error, "remove it again; that is harmless") from error

    def append(self, path: str, lines: Sequence[str]) -> None:
        self._checked(path)
        raw = raw_of(lines)
        if raw:
            self._run(path, self._append(path, raw))

    async def _append(self, path: str, raw: bytes) -> None:
        found = await self._look(path)
        if found is not None and found.isdir:
            raise self._no_file(path)
        if found is None:
            await self._make(folder_of(path))
            with suppress(Taken):
                await self._write(path, b"")
            await self._give_access(path)
        writer, torn = await self._writer(path)
        try:
            await self._wire.ask(lambda _: writer.write(torn + raw))
            await self._wire.ask(lambda _: _synced(writer))
            await self._wire.ask(lambda _: writer.close())
        except (Refused, NoAnswer) as error:
            with suppress(Refused, NoAnswer):
                await self._wire.ask(lambda _: writer.close())
            if isinstance(error, NoAnswer):
                next_act = "write it again under the same id; readers skip part of a line"
                raise self._unknown(path, error, next_act) from error
            raise

    async def _writer(self, path: str) -> tuple[FileWriter, bytes]:
        """At the end of the file, and what ends the last line there: its writer may have died in
        it. While it is being written nobody can read it, so that is looked up before."""
        for _ in range(APPEND_TRIES):
            size_bytes, torn = await self._end_of(path)
            writer = await self._lease(path)
            found = await self._look(path)
            if found is not None and found.length == size_bytes:
                return writer, torn
            await self._wire.ask(lambda _, one=writer: one.close())  # type: ignore[misc] # bound now
        raise Unavailable(
            f"{self._place(path)}: others write here all the time, and nothing was done; next: try "
            "again"
        )

    async def _end_of(self, path: str) -> tuple[int, bytes]:
        reader = await self._reader(path)
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
                return await self._wire.ask(lambda client: client.append(self._there(path)))
            except Refused as error:
                if not isinstance(error, Taken) and error.kind not in _NOT_YET:
                    raise
                said = error.said
            named = _OWNER.search(said)
            owner = (named[1] or named[2]) if named else ""
            if owner != held[0]:
                held = (owner, Deadline(self._ambient, HELD_TOO_LONG_MS))
            elif owner and held[1].is_over():
                await self._wire.ask(lambda client: client.recover_lease(self._there(path)))
                held = (owner, Deadline(self._ambient, HELD_TOO_LONG_MS))
            if deadline.is_over():
                raise Unavailable(
                    f"{self._place(path)}: others have been writing here for {WAIT_MS:,} ms "
                    f"({said}), and nothing was done; next: hdfs debug recoverLease -path "
                    f"{quote(f'{self._there(path)}')}"
                )
            self._ambient.sleep_ms(LOOK_MS * self._ambient.random())

    # -- single effects

    async def _look(self, path: str) -> FileStatus | None:
        try:
            return await self._wire.ask(lambda client: client.get_file_info(self._there(path)))
        except Absent:
            return None
        except Refused as error:
            if "is not a directory" in error.said:
                return None  # a file is on the way
            raise

    async def _rename(self, path: str, to: str, *, is_overwriting: bool = False) -> None:
        source, target = self._there(path), self._there(to)
        await self._wire.ask(lambda client: client.rename(source, target, is_overwriting))

    async def _delete(self, path: str) -> None:
        await self._wire.ask(lambda client: client.delete(self._there(path), False))

    async def _write(self, path: str, content: bytes) -> None:
        """A new file. Raises Taken."""
        mode = self._settings.file_mode
        options = WriteOptions(
            permission=FILE_MODE if mode is None else mode, overwrite=False, create_parent=False
        )
        writer = await self._wire.ask(lambda client: client.create(self._there(path), options))
        try:
            if content:
                await self._wire.ask(lambda _: writer.write(content))
                await self._wire.ask(lambda _: _synced(writer))
        finally:
            await self._wire.ask(lambda _: writer.close())

    async def _make(self, folder: str) -> None:
        """With all above it, each with its mode and group from the moment it can be seen."""
        for _ in range(TRIES):
            if not folder:
                return
            found = await self._look(folder)
            if found is not None and found.isdir:
                return
            if found is not None:
                raise Unavailable(
                    f"{self._place(folder)}: is a file, not a folder, and nothing was done"
                )
            await self._make(folder_of(folder))
            try:
                await self._make_one(folder)
            except Absent:
                continue  # the one above was just removed
            return
        raise Unavailable(
            f"{self._place(folder)}: was removed {TRIES} times while it was made; nothing was done"
        )

    async def _make_one(self, folder: str) -> None:
        mode = self._settings.folder_mode
        mode = FOLDER_MODE if mode is None else mode
        is_private = folder in (OURS, STAGING) or folder.startswith(f"{STAGING}/")
        if not self._settings.group or is_private:
            await self._wire.ask(lambda client: client.mkdirs(self._there(folder), mode, False))
            await self._give_group(folder)
            return
        aside = join(STAGING, f".folder-{self._ambient.new_id()}")
        await self._make(STAGING)
        await self._wire.ask(lambda client: client.mkdirs(self._there(aside), mode, False))
        await self._give_group(aside)
        try:
            await self._rename(aside, folder)
        except Taken:
            await self._delete(aside)

    @property
    def _has_access(self) -> bool:
        return self._settings.file_mode is not None or bool(self._settings.group)

    async def _give_access(self, path: str) -> None:
        """Mode and group of a file. What is so already needs no right to make it so."""
        if not self._has_access:
            return
        mode, found = self._settings.file_mode, await self._look(path)
        if found is None:
            raise self._missing(path)
        if mode is not None and found.permission & MODES != mode:
            await self._wire.ask(lambda client: client.set_permission(self._there(path), mode))
        await self._give_group(path, found)

    async def _give_group(self, path: str, found: FileStatus | None = None) -> None:
        group = self._settings.group
        if not group:
            return
        found = found or await self._look(path)
        if found is not None and found.group != group:
            await self._wire.ask(lambda client: client.set_owner(self._there(path), None, group))

    async def _reader(self, path: str) -> FileReader:
        return await self._wire.ask(lambda client: client.read(self._there(path)))

    async def _pieces(self, reader: FileReader) -> AsyncIterator[bytes]:
        for start in range(0, reader.size, PIECE_BYTES):
            piece = partial(reader.read_range, start, min(PIECE_BYTES, reader.size - start))
            yield await self._wire.ask(lambda _, read=piece: read())  # type: ignore[misc] # bound now

    async def _digest(self, path: str) -> tuple[Stamp, FileFacts] | None:
        """None: there is nothing. Raises Corrupt, Unavailable."""
        before = await self._look(path)
        for _ in range(TRIES):
            if before is None:
                return None
            if before.isdir:
                raise self._no_file(path)
            digest, size_bytes = hashlib.sha256(), 0
            with suppress(Absent):
                reader = await self._reader(path)
                async for piece in self._pieces(reader):
                    digest.update(piece)
                    size_bytes += len(piece)
            after = await self._look(path)
            is_same = after is not None and _stamp(after) == _stamp(before)
            if is_same and size_bytes == before.length:
                return _stamp(before), FileFacts(size_bytes, f"sha256:{digest.hexdigest()}")
            before = after
        place = self._place(path)
        raise Unavailable(
            f"{place}: changes while it is read; next: see who is writing it: "
            f"hdfs fsck {quote(self._there(path))} -openforwrite"
        )

    # -- names and words

    def _there(self, path: str) -> str:
        """On the server."""
        return f"{self._root}/{path}" if path else self._root

    def _place(self, path: str) -> str:
        """Where a person finds it."""
        return f"{self.url}/{path}" if path else self.url

    def _checked(self, path: str) -> str:
        """The same path. Raises Invalid."""
        check_file(path)
        if ":" in path:
            raise Invalid(f"{path!r}: HDFS has no colon in a name; next: rename it")
        return path

    def _entry(self, folder: str, status: FileStatus) -> Entry:
        path = join(folder, status.path.rpartition("/")[2])
        return Entry(path, 0 if status.isdir else status.length, status.isdir)

    def _run(self, path: str, work: Coroutine[Any, Any, T]) -> T:
        """What is refused, or not answered, before anything was done."""
        try:
            return self._wire.run(work)
        except Refused as error:
            raise self._refusal(path, error) from error
        except NoAnswer as error:
            raise self._silent(path, error) from error

    def _refusal(self, path: str, error: Refused) -> HeadgateError:
        place, there = self._place(path), quote(self._there(path))
        if error.kind == "SafeModeException":
            return Unavailable(
                f"{place}: the name node is in safe mode, where everything can be read and nothing "
                "changes, and nothing was done; next: hdfs dfsadmin -safemode get"
            )
        if "QuotaExceeded" in error.kind:
            return Unavailable(
                f"{place}: the quota is used up ({error.said}), and nothing was done; next: "
                f"hdfs dfs -count -q -v {quote(self._root)}"
            )
        if "Limit" in error.kind or error.kind in (
            "PathComponentTooLongException",
            "InvalidPathException",
        ):
            return Invalid(f"{place}: HDFS takes no such name ({error.said}); next: a shorter one")
        if error.kind == "AccessControlException":
            return Unavailable(
                f"{place}: not allowed ({error.said}), and nothing was done; next: see whose it "
                f"is, and give this user the right: hdfs dfs -ls -d {there}"
            )
        return Unavailable(
            f"{place}: {error.said}, and nothing was done; next: try again, or hdfs dfs -ls {there}"
        )

    def _silent(self, path: str, error: NoAnswer) -> Unavailable:
        return Unavailable(
            f"{self._place(path)}: HDFS did not answer ({error}), and nothing was done; next: try "
            f"again, or hdfs dfs -ls {quote(self._place(''))}"
        )

    def _unknown(self, path: str, error: NoAnswer, next_act: str) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"{self._place(path)}: HDFS did not confirm it ({error}); it may have been done. Next: "
            f"{next_act}"
        )

    def _missing(self, path: str) -> Unavailable:
        return Unavailable(
            f"{self._place(path)}: is not there, and nothing was done; next: see what is: "
            f"hdfs dfs -ls {quote(self._place(folder_of(path)))}"
        )

    def _no_file(self, path: str) -> Corrupt:
        place = self._place(path)
        return Corrupt(
            f"{place}: is something else than a file, and nothing here would make such a thing; "
            f"next: see what it is, and move it out of the lake: hdfs dfs -ls -d {quote(place)}"
        )

    def _another(self, path: str) -> Conflict:
        place = self._place(path)
        return Conflict(
            f"{place}: is another file than the one to be removed, and stays; next: see what it "
            f"is: hdfs dfs -ls {quote(place)}"
        )


class _HdfsFile(io.RawIOBase):
    """The file that was opened, also if its name goes to another one."""

    def __init__(self, reader: FileReader, wire: Wire) -> None:
        self._reader = reader
        self._wire = wire
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._reader.size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        size_bytes = max(0, min(len(buffer), self._reader.size - self._at))
        if size_bytes == 0:
            return 0
        try:
            piece = self._wire.run(
                self._wire.ask(lambda _: self._reader.read_range(self._at, size_bytes))
            )
        except (Refused, NoAnswer) as error:
            raise OSError(str(error)) from error
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


def _stamp(status: FileStatus) -> Stamp:
    return Stamp(status.length, status.modification_time)


def _path_of(entry: Entry) -> str:
    return entry.path


def _synced(writer: FileWriter) -> None:
    with suppress(NotImplementedError):  # erasure coded: closing is all there is
        writer.hsync()


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
