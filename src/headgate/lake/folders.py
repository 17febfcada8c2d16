"""Folders: those of a local lake, opened without following a link, made with mode and group, and
kept through a power cut.

A folder that people see gets its mode and group under a private name and is then moved to its own:
whoever finds it, finds it as it should be, also if its maker died.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from headgate.ambient import Ambient
from headgate.lake.paths import OURS, STAGING, folder_of, join, name_of
from headgate.lake.refusals import explained, unsure
from headgate.lake.syscalls import open_plain, rename_new
from headgate.store.disk import LastingFolders

MAKE_TRIES = 5  # each means that somebody just removed a folder above
OPENED_MAX = 64

# Of a folder in which something is done, and which need not be readable for that.
SEARCH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY


SETTLE_AGAIN = "a power cut may undo what was done there. Next: do it again; that is harmless"


@dataclass(frozen=True, slots=True)
class Access:
    """Mode and group that files or folders get; None: as the system does."""

    mode: int | None
    group_id: int | None

    @property
    def is_plain(self) -> bool:
        return self.mode is None and self.group_id is None

    def give(self, handle: int) -> None:
        """Raises OSError. What is so already needs no right to make it so."""
        found = os.fstat(handle)
        if self.group_id is not None and found.st_gid != self.group_id:
            os.fchown(handle, -1, self.group_id)
            found = os.fstat(handle)  # a new group takes some bits of the mode away
        if self.mode is not None and stat.S_IMODE(found.st_mode) != self.mode:
            os.fchmod(handle, self.mode)


class Folders:
    """All of them; `Opened` are some of them, for a while."""

    def __init__(self, root: str, access: Access, ambient: Ambient) -> None:
        self.root = root
        self._access = access
        self._ambient = ambient
        self._lasting = LastingFolders()

    def place(self, path: str) -> str:
        """Where a person finds it."""
        return f"{self.root}/{path}" if path else self.root

    def open(self, path: str, flags: int) -> int:
        """A handle. Raises OSError: ELOOP if there is a link on the way or at its end."""
        return open_plain(self.root, path, flags)

    @contextmanager
    def holding(self, path: str) -> Iterator[tuple[int, str]]:
        """The folder that this path is in, and its name there. Raises OSError."""
        handle = self.open(folder_of(path), SEARCH)
        try:
            yield handle, name_of(path)
        finally:
            os.close(handle)

    @contextmanager
    def made(self, path: str) -> Iterator[tuple[int, str]]:
        """As `holding`, and the folder is made if it is not there. Raises OSError."""
        handle = self.opened_or_made(folder_of(path))
        try:
            yield handle, name_of(path)
        finally:
            os.close(handle)

    def opened(self, folder: str) -> int:
        """A handle for what is done in it. Raises OSError."""
        return self.open(folder, SEARCH)

    def opened_or_made(self, folder: str) -> int:
        """A handle for what is done in it. Raises OSError."""
        for _ in range(MAKE_TRIES - 1):
            try:
                return self.open(folder, SEARCH)
            except FileNotFoundError:
                if folder:  # else the lake itself is gone: not ours to make
                    self._make(folder)
        return self.open(folder, SEARCH)

    def _make(self, folder: str) -> None:
        with self.made(folder) as (above, name), suppress(FileNotFoundError):
            if self._access.is_plain or _is_private(folder):
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=above)
                self._give_access(folder)
            else:
                self._make_aside(above, name)

    def _make_aside(self, above: int, name: str) -> None:
        aside = join(STAGING, f".folder-{self._ambient.new_id()}")
        with self.made(aside) as (staging, private):
            os.mkdir(private, dir_fd=staging)
            try:
                self._give_access(aside)
                if not rename_new(staging, private, above, name):
                    # Onto an empty folder it replaces one like itself, onto others it is refused.
                    os.rename(private, name, src_dir_fd=staging, dst_dir_fd=above)
            except OSError as error:
                with suppress(OSError):
                    os.rmdir(private, dir_fd=staging)
                if not isinstance(error, FileExistsError) and not _is_there(above, name):
                    raise

    def _give_access(self, folder: str) -> None:
        if self._access.is_plain:
            return
        handle = self.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._access.give(handle)
        finally:
            os.close(handle)

    def settle(self, folders: Iterable[str]) -> None:
        """What happened in them survives a power cut, and so do the names of all folders above.
        Raises Unavailable, Invalid, OutcomeUnknown."""
        for folder in sorted(set(folders)):
            place = self.place(folder)
            with explained(place):
                found, handle = self._nearest(folder)
            with unsure(place, SETTLE_AGAIN):
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)
                while found:
                    self._lasting.keep(self.place(found))
                    found = folder_of(found)

    def _nearest(self, folder: str) -> tuple[str, int]:
        """Of a folder that is gone, the one above: there its name went."""
        while True:  # ends at the root
            try:
                return folder, self.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                if not folder:
                    raise
                folder = folder_of(folder)


class Opened:
    """Folders that are opened once for many files, as they are then. One at a time may use it."""

    def __init__(self, folders: Folders, *, is_made: bool = False) -> None:
        """`is_made`: those that are missing are made."""
        self._folders = folders
        self._is_made = is_made
        self._handles: dict[str, int] = {}

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def handle(self, folder: str) -> int:
        """For what is done in it. Raises OSError."""
        found = self._handles.get(folder)
        if found is not None:
            return found
        if len(self._handles) >= OPENED_MAX:
            self._close()
        open_one = self._folders.opened_or_made if self._is_made else self._folders.opened
        handle = self._handles[folder] = open_one(folder)
        return handle

    def open(self, path: str, flags: int) -> int:
        """A handle of a file. Raises OSError: ELOOP if it is a link."""
        folder, _, name = path.rpartition("/")
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=self.handle(folder))

    def look(self, path: str) -> os.stat_result:
        """Raises OSError."""
        folder, _, name = path.rpartition("/")
        return os.stat(name, dir_fd=self.handle(folder), follow_symlinks=False)

    def _close(self) -> None:
        while self._handles:
            os.close(self._handles.popitem()[1])


def _is_private(folder: str) -> bool:
    return folder in (OURS, STAGING) or folder.startswith(STAGING + "/")


def _is_there(folder: int, name: str) -> bool:
    with suppress(FileNotFoundError):
        os.stat(name, dir_fd=folder, follow_symlinks=False)
        return True
    return False
