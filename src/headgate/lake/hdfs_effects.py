"""Hdfs effects: what can be asked of HDFS for one file or folder of the lake, one request or a few.

Each raises Refused (the server said no) and NoAnswer (nobody knows), which become words at the
lake's door. Checksums are of the bytes: HDFS has none of its own that hdfs-native tells.
"""

import hashlib
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from shlex import quote
from typing import Final, NamedTuple

from headgate.ambient import Ambient
from headgate.errors import Unavailable
from headgate.lake import FileFacts, LakeSettings
from headgate.lake.hdfs_names import Names
from headgate.lake.hdfs_wire import (
    Absent,
    FileReader,
    FileStatus,
    FileWriter,
    Refused,
    Taken,
    Wire,
    WriteOptions,
)
from headgate.lake.paths import OURS, STAGING, folder_of, join

PIECE_BYTES: Final = 4_000_000
TRIES: Final = 5  # each means that somebody else changed the same
FILE_MODE: Final = 0o644
FOLDER_MODE: Final = 0o755
MODES: Final = 0o1777  # HDFS has no others


class Stamp(NamedTuple):
    """What tells one state of a file from another."""

    size_bytes: int
    modified_ms: int


class Effects:
    """Below one root."""

    def __init__(self, wire: Wire, names: Names, settings: LakeSettings, ambient: Ambient) -> None:
        self.wire = wire
        self.names = names
        self.ambient = ambient
        self._settings = settings

    async def look(self, path: str) -> FileStatus | None:
        try:
            return await self.wire.ask(lambda client: client.get_file_info(self.names.there(path)))
        except Absent:
            return None
        except Refused as error:
            if "is not a directory" in error.said:
                return None  # a file is on the way
            raise

    async def rename(self, path: str, to: str, *, is_overwriting: bool = False) -> None:
        source, target = self.names.there(path), self.names.there(to)
        await self.wire.ask(lambda client: client.rename(source, target, is_overwriting))

    async def delete(self, path: str) -> None:
        await self.wire.ask(lambda client: client.delete(self.names.there(path), False))

    async def write(self, path: str, content: bytes) -> None:
        """A new file. Raises Taken."""
        mode = self._settings.file_mode
        options = WriteOptions(
            permission=FILE_MODE if mode is None else mode, overwrite=False, create_parent=False
        )
        writer = await self.wire.ask(lambda client: client.create(self.names.there(path), options))
        try:
            if content:
                await self.wire.ask(lambda _: writer.write(content))
                await self.wire.ask(lambda _: synced(writer))
        finally:
            await self.wire.ask(lambda _: writer.close())

    async def make(self, folder: str) -> None:
        """With all above it, each with its mode and group from the moment it can be seen."""
        for _ in range(TRIES):
            if not folder:
                return
            found = await self.look(folder)
            if found is not None and found.isdir:
                return
            if found is not None:
                raise Unavailable(
                    f"{self.names.place(folder)}: is a file, not a folder, and nothing was done"
                )
            await self.make(folder_of(folder))
            try:
                await self._make_one(folder)
            except Absent:
                continue  # the one above was just removed
            return
        raise Unavailable(
            f"{self.names.place(folder)}: was removed {TRIES} times while it was made; nothing "
            "was done"
        )

    async def _make_one(self, folder: str) -> None:
        mode = self._settings.folder_mode
        mode = FOLDER_MODE if mode is None else mode
        is_private = folder in (OURS, STAGING) or folder.startswith(f"{STAGING}/")
        if not self._settings.group or is_private:
            await self.wire.ask(lambda client: client.mkdirs(self.names.there(folder), mode, False))
            await self._give_group(folder)
            return
        aside = join(STAGING, f".folder-{self.ambient.new_id()}")
        await self.make(STAGING)
        await self.wire.ask(lambda client: client.mkdirs(self.names.there(aside), mode, False))
        await self._give_group(aside)
        try:
            await self.rename(aside, folder)
        except Taken:
            await self.delete(aside)

    @property
    def has_access(self) -> bool:
        return self._settings.file_mode is not None or bool(self._settings.group)

    async def give_access(self, path: str) -> None:
        """Mode and group of a file. What is so already needs no right to make it so."""
        if not self.has_access:
            return
        mode, found = self._settings.file_mode, await self.look(path)
        if found is None:
            raise self.names.missing(path)
        if mode is not None and found.permission & MODES != mode:
            await self.wire.ask(lambda client: client.set_permission(self.names.there(path), mode))
        await self._give_group(path, found)

    async def _give_group(self, path: str, found: FileStatus | None = None) -> None:
        group = self._settings.group
        if not group:
            return
        found = found or await self.look(path)
        if found is not None and found.group != group:
            await self.wire.ask(
                lambda client: client.set_owner(self.names.there(path), None, group)
            )

    async def reader(self, path: str) -> FileReader:
        return await self.wire.ask(lambda client: client.read(self.names.there(path)))

    async def pieces(self, reader: FileReader) -> AsyncIterator[bytes]:
        for start in range(0, reader.size, PIECE_BYTES):
            piece = partial(reader.read_range, start, min(PIECE_BYTES, reader.size - start))
            yield await self.wire.ask(lambda _, read=piece: read())  # type: ignore[misc] # bound now

    async def facts(self, path: str) -> FileFacts | None:
        found = await self.digest(path)
        return None if found is None else found[1]

    async def digest(self, path: str) -> tuple[Stamp, FileFacts] | None:
        """None: there is nothing. Raises Corrupt, Unavailable."""
        before = await self.look(path)
        for _ in range(TRIES):
            if before is None:
                return None
            if before.isdir:
                raise self.names.no_file(path)
            digest, size_bytes = hashlib.sha256(), 0
            with suppress(Absent):
                reader = await self.reader(path)
                async for piece in self.pieces(reader):
                    digest.update(piece)
                    size_bytes += len(piece)
            after = await self.look(path)
            is_same = after is not None and stamp_of(after) == stamp_of(before)
            if is_same and size_bytes == before.length:
                return stamp_of(before), FileFacts(size_bytes, f"sha256:{digest.hexdigest()}")
            before = after
        place = self.names.place(path)
        raise Unavailable(
            f"{place}: changes while it is read; next: see who is writing it: "
            f"hdfs fsck {quote(self.names.there(path))} -openforwrite"
        )


def stamp_of(status: FileStatus) -> Stamp:
    return Stamp(status.length, status.modification_time)


def synced(writer: FileWriter) -> None:
    with suppress(NotImplementedError):  # erasure coded: closing is all there is
        writer.hsync()
