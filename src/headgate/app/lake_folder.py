"""Lake folder: a folder of a lake that is elsewhere than on a disk, as the files source reads it.

For dead letters that are driven in again. A file is told from others by its checksum, as a lake
tells no times. A drawer is only in mind: what is in it lies where it lay until it is put elsewhere,
exactly as it was taken (`relocation`). It needs to be no fence: a letter's name has the number of
its commit, which no other file ever gets, so whoever wakes up late moves the same file to the same
place, or finds nothing.
"""

import gzip
import zlib
from collections.abc import Iterator
from hashlib import blake2b
from typing import IO, BinaryIO, cast

from headgate.errors import Conflict, Invalid
from headgate.lake import FileFacts, Lake
from headgate.lake.pages import entries_of
from headgate.lake.paths import folder_of, name_of
from headgate.lake.relocation import Relocation, relocate
from headgate.sources.folder import HEAD_BYTES_MAX, Entry

DEPTH_MAX = 4  # of folders below it
IDENT = "lake"
_STAMP_BITS = 60


class LakeFolder:
    """`headgate.sources.folder.Folder`."""

    def __init__(self, lake: Lake, below: str) -> None:
        self._lake = lake
        self._below = below
        self._drawers: dict[str, dict[str, tuple[str, FileFacts]]] = {}

    def ident(self) -> str:
        """No folder is there without a file; and there is nothing that could be unmounted."""
        return IDENT if next(self._paths(self._below, DEPTH_MAX), None) is not None else ""

    def absolute(self, path: str) -> str:
        return f"{self._lake.url}/{self._inside(path)}"

    def scan(self) -> Iterator[Entry]:
        for path in self._paths(self._below, DEPTH_MAX):
            found = self.stat(path.removeprefix(f"{self._below}/"))
            if found is not None:
                yield found

    def stat(self, path: str) -> Entry | None:
        drawer, _, name = path.partition("/")
        if drawer in self._drawers:
            taken = self._drawers[drawer].get(name)
            return None if taken is None else _entry(path, taken[1])
        facts = self._lake.facts(self._inside(path))
        return None if facts is None else _entry(path, facts)

    def head(self, path: str, size_bytes_max: int = HEAD_BYTES_MAX) -> bytes:
        place = self._inside(path)
        try:
            with self._lake.open(place) as packed, _unpacked(path, packed) as content:
                return content.readline(size_bytes_max).rstrip(b"\r\n")
        except (OSError, EOFError, zlib.error) as error:
            raise Invalid(
                f"{place}: cannot be read ({error}); next: headgate audit says whether it is the "
                "file that was landed; put a whole one into its place, or remove it"
            ) from error

    def open_drawer(self, drawer: str) -> None:
        self._drawers.setdefault(drawer, {})

    def take(self, path: str, drawer: str, name: str) -> None:
        facts = self._lake.facts(self._inside(path))
        if facts is not None:
            self._drawers[drawer][name] = (self._inside(path), facts)

    def put(self, drawer: str, name: str, target: str) -> None:
        taken = self._drawers.get(drawer, {}).get(name)
        if taken is None:
            return
        place, facts = taken
        below = target.removeprefix(f"{self._lake.url}/")
        if below != target:  # else it goes back to where it never left
            if self._lake.facts(below) not in (None, facts):
                raise Conflict(f"{below}: something else is there")
            relocate(self._lake, Relocation(place, below, facts))
            self._lake.settle(sorted({folder_of(place), folder_of(below)}))
        del self._drawers[drawer][name]

    def remove(self, drawer: str, name: str) -> None:
        taken = self._drawers.get(drawer, {}).pop(name, None)
        if taken is not None:
            self._lake.remove(*taken)

    def names(self, drawer: str) -> tuple[str, ...]:
        return tuple(sorted(self._drawers.get(drawer, {})))

    def close_drawer(self, drawer: str) -> None:
        if self._drawers.get(drawer):
            raise Conflict(f"{drawer}: something is in it")
        self._drawers.pop(drawer, None)

    def _inside(self, path: str) -> str:
        return f"{self._below}/{path}"

    def _paths(self, folder: str, depth: int) -> Iterator[str]:
        for entry in entries_of(self._lake, folder):
            if entry.is_folder and depth:
                yield from self._paths(entry.path, depth - 1)
            elif not entry.is_folder and not name_of(entry.path).startswith("."):
                yield entry.path


def _unpacked(path: str, packed: BinaryIO) -> IO[bytes]:
    return cast(IO[bytes], gzip.GzipFile(fileobj=packed)) if path.endswith(".gz") else packed


def _entry(path: str, facts: FileFacts) -> Entry:
    digest = blake2b(facts.checksum.encode(), digest_size=8).digest()
    return Entry(path, facts.size_bytes, int.from_bytes(digest, "big") >> (64 - _STAMP_BITS))
