"""Memory: a lake inside one process, for tests and the simulation.

It may be shared by many simulated machines: no method waits, or hands over in the middle. A power
cut does the worst that a disk may do: names are as they were when their folder was last settled,
and files that nobody sealed are empty.
"""

import hashlib
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nsmallest
from io import BytesIO
from typing import BinaryIO

from headgate.errors import Conflict, Corrupt, Invalid, Unavailable
from headgate.lake import LIST_MAX, READ_BYTES_MAX, Entry, FileFacts, LakeSettings, Listing, Move
from headgate.lake.lines import raw_of
from headgate.lake.paths import (
    check_file,
    check_folder,
    check_page,
    check_private,
    folder_of,
    join,
)

MODE_OF_THE_SYSTEM = 0o644
FOLDER_MODE_OF_THE_SYSTEM = 0o755


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """A file, whatever its name: only the very same one is equal."""

    content: bytes
    mode: int
    is_sealed: bool

    @property
    def facts(self) -> FileFacts:
        checksum = f"sha256:{hashlib.sha256(self.content).hexdigest()}"
        return FileFacts(len(self.content), checksum)


class _Files(dict[str, Stored]):
    """Files by path; and how many lie below each folder, since everybody asks whether it is one."""

    def __init__(self) -> None:
        super().__init__()
        self.folders: Counter[str] = Counter()

    def __setitem__(self, path: str, stored: Stored) -> None:
        if path not in self:
            self._count(path, 1)
        super().__setitem__(path, stored)

    def __delitem__(self, path: str) -> None:
        super().__delitem__(path)
        self._count(path, -1)

    def _count(self, path: str, change: int) -> None:
        while folder := folder_of(path):
            self.folders[folder] += change
            path = folder


class MemoryLake:
    def __init__(self, settings: LakeSettings | None = None) -> None:
        self._settings = settings or LakeSettings("memory")
        self._alone = threading.Lock()
        self._files = _Files()
        self._lasting: dict[str, Stored] = {}
        self._folder_modes: dict[str, int] = {}
        self.refuses: str = ""
        """Why every write is refused for now; "": it is not."""

    @property
    def url(self) -> str:
        return f"memory:{self._settings.root}"

    def stage(self, path: str, content: bytes) -> FileFacts:
        self._check_write(path)
        with self._alone:
            self._make_room(path)
            stored = Stored(bytes(content), self._file_mode, is_sealed=True)
            self._files[path] = self._lasting[path] = stored
            return stored.facts

    def seal(self, paths: Sequence[str]) -> tuple[FileFacts, ...]:
        for path in paths:
            self._check_write(path)
        with self._alone:
            found = [self._at(path) for path in paths]
            for path, stored in zip(paths, found, strict=True):
                sealed = Stored(stored.content, self._file_mode, is_sealed=True)
                self._files[path] = self._lasting[path] = sealed
            return tuple(stored.facts for stored in found)

    def facts(self, path: str) -> FileFacts | None:
        check_file(path)
        with self._alone:
            stored = self._file_or_nothing(path)
            return None if stored is None else stored.facts

    def publish(self, staged: str, published: str) -> None:
        check_file(staged)
        self._check_write(published)
        if staged == published:
            raise Invalid(f"{published}: is staged under the name it is to be published under")
        with self._alone:
            moved = self._at(staged)
            there = self._files.get(published)
            # One file with both names is a move that a power cut has half undone.
            if (there is not None and there is not moved) or self._is_folder(published):
                raise Conflict(f"{published}: something has this name, and nothing was done")
            self._make_room(published)
            self._files[published] = moved
            del self._files[staged]

    def publish_all(self, moves: Sequence[Move]) -> tuple[bool, ...]:
        for move in moves:
            check_file(move.staged)
            check_file(move.published)
        return tuple(self._is_published(move) for move in moves)

    def _is_published(self, move: Move) -> bool:
        facts = FileFacts(move.size_bytes, move.checksum)
        try:
            if self.facts(move.staged) != facts:
                return False
            self.publish(move.staged, move.published)
            return self.facts(move.staged) is None and self.facts(move.published) == facts
        except (Conflict, Corrupt, Invalid, Unavailable):
            return False

    def settle(self, folders: Sequence[str]) -> None:
        settled = {check_folder(folder) for folder in folders}
        with self._alone:
            for path in [path for path in self._lasting if folder_of(path) in settled]:
                if path not in self._files:
                    del self._lasting[path]
            for path, stored in self._files.items():
                if folder_of(path) in settled:
                    self._lasting[path] = stored

    def read(self, path: str, size_bytes_max: int = READ_BYTES_MAX) -> bytes | None:
        check_file(path)
        with self._alone:
            stored = self._file_or_nothing(path)
        if stored is None:
            return None
        if len(stored.content) > size_bytes_max:
            raise Invalid(f"{path}: has more than {size_bytes_max:,} bytes")
        return stored.content

    def open(self, path: str) -> BinaryIO:
        check_file(path)
        with self._alone:
            return BytesIO(self._at(path).content)

    def list(self, folder: str, *, after: str = "", limit: int = LIST_MAX) -> Listing:
        prefix = f"{check_folder(folder)}/" if folder else ""
        check_page(limit)
        with self._alone:
            below = (path.removeprefix(prefix) for path in self._files if path.startswith(prefix))
            found = {name.partition("/")[0] for name in below}
            names = nsmallest(limit + 1, (name for name in found if name > after))
            entries = tuple(self._entry(join(folder, name)) for name in names[:limit])
        return Listing(entries, names[limit - 1] if len(names) > limit else None)

    def remove(self, path: str, facts: FileFacts) -> None:
        self._check_write(path)
        with self._alone:
            stored = self._files.get(path)
            if self._is_folder(path) or (stored is not None and stored.facts != facts):
                raise Conflict(f"{path}: is another file than the one to be removed, and stays")
            if path in self._files:
                del self._files[path]

    def remove_folder(self, folder: str) -> None:
        self._check_write(check_private(folder))
        with self._alone:
            if folder in self._files:
                raise Corrupt(f"{folder}: is something else than a folder")
            for path in [path for path in self._files if path.startswith(f"{folder}/")]:
                del self._files[path]

    def append(self, path: str, lines: Sequence[str]) -> None:
        self._check_write(path)
        raw = raw_of(lines)
        if not raw:
            return
        with self._alone:
            self._make_room(path)
            before = self._files[path].content if path in self._files else b""
            torn = b"\n" if before and not before.endswith(b"\n") else b""
            stored = Stored(before + torn + raw, self._file_mode, is_sealed=True)
            self._files[path] = self._lasting[path] = stored

    def put(self, path: str, content: bytes) -> None:
        """As an engine writes a file: neither sealed nor settled."""
        self._check_write(path)
        with self._alone:
            self._make_room(path)
            self._files[path] = Stored(bytes(content), MODE_OF_THE_SYSTEM, is_sealed=False)

    def files(self) -> dict[str, bytes]:
        """Everything there is, by path."""
        with self._alone:
            return {path: self._files[path].content for path in sorted(self._files)}

    def mode_of(self, path: str) -> int:
        with self._alone:
            if path in self._files:
                return self._files[path].mode
            return self._folder_modes[path]

    def power_cut(self) -> None:
        with self._alone:
            left = {
                path: stored if stored.is_sealed else Stored(b"", stored.mode, is_sealed=False)
                for path, stored in self._lasting.items()
            }
            self._files = _Files()
            for path, stored in left.items():
                self._files[path] = stored
            self._lasting = dict(self._files)

    @property
    def _file_mode(self) -> int:
        mode = self._settings.file_mode
        return MODE_OF_THE_SYSTEM if mode is None else mode

    def _check_write(self, path: str) -> None:
        check_file(path)
        if self.refuses:
            raise Unavailable(f"{path}: {self.refuses}, and nothing was done; next: try again")

    def _at(self, path: str) -> Stored:
        stored = self._file_or_nothing(path)
        if stored is None:
            raise Unavailable(f"{path}: is not there, and nothing was done; next: stage it again")
        return stored

    def _file_or_nothing(self, path: str) -> Stored | None:
        if self._is_folder(path):
            raise Corrupt(f"{path}: is something else than a file")
        return self._files.get(path)

    def _is_folder(self, path: str) -> bool:
        return self._files.folders[path] > 0

    def _make_room(self, path: str) -> None:
        """The folders above, with their mode."""
        if self._is_folder(path):
            raise Unavailable(f"{path}: is a folder, and nothing was done")
        mode = self._settings.folder_mode
        folder = folder_of(path)
        while folder:
            if folder in self._files:
                raise Unavailable(f"{folder}: is a file, not a folder, and nothing was done")
            self._folder_modes.setdefault(
                folder, FOLDER_MODE_OF_THE_SYSTEM if mode is None else mode
            )
            folder = folder_of(folder)

    def _entry(self, path: str) -> Entry:
        stored = self._files.get(path)
        return Entry(path, len(stored.content) if stored else 0, is_folder=stored is None)
