"""Local: the lake on a local file system, or one that is mounted like a local one.

Nothing follows a link: each folder is opened so that no name on its way is one, and what is done
there is done with that handle. The root itself may be a link; it is followed once, at the opening.

    publish   a rename that never replaces (`moves`).
    remove    the file is moved to a private name, looked at, and only then deleted; another one is
              moved back, never onto anything. Killed in between, the name is free and the file lies
              in `_headgate/staging/_removing`, where nobody looks but the sweeper: the private name
              says what was to be removed, and it takes just that.
    seal      up to SYNC_ONE_BY_ONE_MAX files are fsynced; for more, all of the file system at once:
              10,000 small files take 0.05 s instead of 1.9 s.
"""

import errno
import grp
import heapq
import os
import shutil
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from shlex import quote
from typing import BinaryIO, Protocol, TypeVar

from headgate.ambient import Ambient
from headgate.errors import Conflict, Invalid, OutcomeUnknown
from headgate.lake import LIST_MAX, READ_BYTES_MAX, Entry, FileFacts, LakeSettings, Listing, Move
from headgate.lake.digests import Digests, checksum_of
from headgate.lake.folders import SEARCH, SETTLE_AGAIN, Access, Folders, Opened
from headgate.lake.hauls import haul
from headgate.lake.lines import append_lines, raw_of, write_all
from headgate.lake.memo import DiskClock, is_same_content
from headgate.lake.moves import move_new
from headgate.lake.paths import (
    check_file,
    check_folder,
    check_page,
    check_private,
    folder_of,
    join,
    name_of,
    removing_path,
)
from headgate.lake.refusals import explained, missing, no_file, no_folder, refusal, unsure
from headgate.lake.seals import SMALL_BYTES_MAX, seal_small
from headgate.lake.syscalls import WholeDisk

SYNC_ONE_BY_ONE_MAX = 64
SYNC_FOLDERS_MAX = 8  # more of them are settled with the whole file system at once
REMOVE_TRIES = 5
LASTING_MAX = 64  # appended files whose names are known to be on disk

_READ = os.O_RDONLY | os.O_NONBLOCK  # a pipe must not make us wait
_WRITE_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_UNTOUCHED = frozenset({errno.EROFS, errno.ELOOP})  # not a single file is gone
_BUSY = frozenset({errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST})  # somebody removes or adds, too
_ABSENT = (FileNotFoundError, NotADirectoryError)

T = TypeVar("T")
R = TypeVar("R")


class Each(Protocol):
    """Does the same with each thing, at once where it can; the answers are in their order."""

    def __call__(self, act: Callable[[T], R], things: Sequence[T]) -> list[R]: ...


def in_turn(act: Callable[[T], R], things: Sequence[T]) -> list[R]:
    return [act(thing) for thing in things]


class LocalLake:
    """`settings.root` is a folder that is there (`opening`)."""

    def __init__(self, settings: LakeSettings, ambient: Ambient, each: Each = in_turn) -> None:
        """Raises Invalid (no such group), Unavailable."""
        group_id = _group_id(settings.group)
        root = os.path.realpath(settings.root)
        self._ambient = ambient
        self._each = each
        self._file_access = Access(settings.file_mode, group_id)
        self._folders = Folders(root, Access(settings.folder_mode, group_id), ambient)
        self._digests = Digests()
        with explained(root):
            self._disk = WholeDisk(root)
        self._lasting: dict[str, None] = {}

    @property
    def url(self) -> str:
        return f"file://{self._folders.root}"

    def stage(self, path: str, content: bytes) -> FileFacts:
        place = self._place(path)
        with explained(place), self._folders.made(path) as (folder, name):
            aside = f".{self._ambient.new_id()}"
            handle = os.open(aside, _WRITE_NEW, 0o666, dir_fd=folder)
            try:
                write_all(handle, content)
                self._file_access.give(handle)
                os.fsync(handle)
                os.rename(aside, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                with suppress(OSError):
                    os.unlink(aside, dir_fd=folder)  # a full disk must not be filled further
                raise
            finally:
                os.close(handle)
        self._folders.settle([folder_of(path)])
        return FileFacts(len(content), checksum_of(content))

    def seal(self, paths: Sequence[str]) -> tuple[FileFacts, ...]:
        for path in paths:
            check_file(path)
        is_at_once = len(paths) > SYNC_ONE_BY_ONE_MAX and self._disk.is_reliable
        failures = self._disk.failures
        clock = DiskClock()
        with Opened(self._folders) as opened:
            small = partial(self._seal, opened.open, clock, is_at_once, SMALL_BYTES_MAX)
            found: list[FileFacts | None] = [None] * len(paths)
            if is_at_once and self._file_access.is_plain:
                found = seal_small(paths, opened, self._digests, clock, self._disk.device)
            found = [facts or small(path) for path, facts in zip(paths, found, strict=True)]
        large = [path for path, facts in zip(paths, found, strict=True) if facts is None]
        rest = iter(
            self._each(partial(self._seal, self._folders.open, clock, is_at_once, None), large)
        )
        found = [facts or next(rest) for facts in found]
        if is_at_once:
            with explained(self._folders.root):
                self._disk.sync(failures)
        folders = {folder_of(path) for path in paths}
        self._folders.settle(
            folder for folder in folders if not (is_at_once and self._is_on_disk(folder))
        )
        return tuple(facts for facts in found if facts is not None)

    def _seal(
        self,
        open_file: Callable[[str, int], int],
        clock: DiskClock,
        is_at_once: bool,
        size_bytes_max: int | None,
        path: str,
    ) -> FileFacts | None:
        """None: it is larger than that, and nothing was done."""
        place = self._folders.place(path)
        try:
            handle = open_file(path, _READ)
        except _ABSENT:
            raise missing(place) from None
        except OSError as error:
            raise refusal(error, place) from error
        try:
            found = os.fstat(handle)
            if size_bytes_max is not None and found.st_size > size_bytes_max:
                return None
            if not self._file_access.is_plain:
                self._file_access.give(handle)
                found = os.fstat(handle)
            found, now_ns = clock.settled(handle, found)
            facts = self._digests.facts(handle, place, found, now_ns)
            if not is_at_once or found.st_dev != self._disk.device:
                os.fsync(handle)
        except OSError as error:
            raise refusal(error, place) from error
        finally:
            os.close(handle)
        return facts

    def facts(self, path: str) -> FileFacts | None:
        place = self._place(path)
        with explained(place):
            try:
                handle = self._folders.open(path, _READ)
            except _ABSENT:
                return None
            try:
                return self._digests.facts(handle, place)
            finally:
                os.close(handle)

    def publish(self, staged: str, published: str) -> None:
        origin, place = self._place(staged), self._place(published)
        if staged == published:
            raise Invalid(f"{place}: is staged under the name that it is to be published under")
        name, new_name = name_of(staged), name_of(published)
        with explained(origin):
            try:
                source = self._folders.open(folder_of(staged), SEARCH)
            except _ABSENT:
                raise missing(origin) from None
        try:
            before = _look_at_staged(source, name, origin)
            with explained(place):
                target = self._folders.opened_or_made(folder_of(published))
                try:
                    move_new(source, name, target, new_name, place, self._ambient)
                    self._digests.moved(before, partial(_look, target, new_name))
                except FileExistsError:
                    raise Conflict(
                        f"{place}: something has this name, and nothing was done; next: compare "
                        f"the two: sha256sum {quote(origin)} {quote(place)}"
                    ) from None
                finally:
                    os.close(target)
        finally:
            os.close(source)

    def publish_all(self, moves: Sequence[Move]) -> tuple[bool, ...]:
        for move in moves:
            check_file(move.staged)
            check_file(move.published)
        return haul(moves, self._folders, self._digests, self._ambient)

    def settle(self, folders: Sequence[str]) -> None:
        names = {check_folder(folder) for folder in folders}
        if len(names) <= SYNC_FOLDERS_MAX or not self._disk.is_reliable:
            self._folders.settle(names)
            return
        with unsure(self._folders.root, SETTLE_AGAIN):
            self._disk.sync(self._disk.failures)
        self._folders.settle(name for name in names if not self._is_on_disk(name))

    def _is_on_disk(self, folder: str) -> bool:
        """On the one that was synced as a whole: something else may be mounted below the root."""
        try:
            return os.stat(self._folders.place(folder)).st_dev == self._disk.device
        except OSError:
            return False

    def read(self, path: str, size_bytes_max: int = READ_BYTES_MAX) -> bytes | None:
        place = self._place(path)
        with explained(place):
            try:
                handle = self._folders.open(path, _READ)
            except _ABSENT:
                return None
            with open(handle, "rb") as file:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise no_file(place)
                content = file.read(size_bytes_max + 1)
        if len(content) > size_bytes_max:
            raise Invalid(
                f"{place}: has more than {size_bytes_max:,} bytes, and is not read as a whole; "
                f"next: see what it is: ls -l {quote(place)}"
            )
        return content

    def open(self, path: str) -> BinaryIO:
        place = self._place(path)
        with explained(place):
            try:
                handle = self._folders.open(path, _READ)
            except _ABSENT:
                raise missing(place) from None
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                os.close(handle)
                raise no_file(place)
            return open(handle, "rb")

    def list(self, folder: str, *, after: str = "", limit: int = LIST_MAX) -> Listing:
        place = self._folders.place(check_folder(folder))
        check_page(limit)
        with explained(place):
            try:
                handle = self._folders.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            except _ABSENT:
                return Listing((), None)
            try:
                with os.scandir(handle) as found:
                    # Never more than a page of names in memory, however many there are.
                    names = heapq.nsmallest(
                        limit + 1, (entry.name for entry in found if entry.name > after)
                    )
                entries = [_entry(handle, folder, name) for name in names[:limit]]
            finally:
                os.close(handle)
        is_last = len(names) <= limit
        present = tuple(entry for entry in entries if entry is not None)
        return Listing(present, None if is_last else names[limit - 1])

    def remove(self, path: str, facts: FileFacts) -> None:
        place = self._place(path)
        with explained(place):
            try:
                handle = self._folders.open(path, _READ)
            except _ABSENT:
                return
            try:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise _another(place)
                if self._digests.facts(handle, place) != facts:
                    raise _another(place)
                self._take_away(path, facts, os.fstat(handle))
            finally:
                os.close(handle)

    def _take_away(self, path: str, facts: FileFacts, known: os.stat_result) -> None:
        """The handle is open: nobody else gets its inode."""
        place, aside = self._folders.place(path), removing_path(self._ambient.new_id(), facts)
        with (
            self._folders.holding(path) as (folder, name),
            self._folders.made(aside) as (removing, private),
        ):
            try:
                os.rename(name, private, src_dir_fd=folder, dst_dir_fd=removing)
            except FileNotFoundError:
                return  # by somebody else
            where = self._folders.place(aside)
            with unsure(place, f"it has lost its name, and lies at {where}"):
                try:
                    moved = _look(removing, private)
                    if is_same_content(moved, known):
                        os.unlink(private, dir_fd=removing)
                        return
                except FileNotFoundError:
                    return  # by a sweeper, who takes nothing but what was to be removed
                move_new(removing, private, folder, name, place, self._ambient)
        raise _another(place)

    def remove_folder(self, folder: str) -> None:
        place = self._folders.place(check_private(folder))
        again = "part of it may be gone. Next: remove it again; that is harmless"
        for _ in range(REMOVE_TRIES):
            with explained(place):
                try:
                    above = self._folders.open(folder_of(folder), os.O_RDONLY | os.O_DIRECTORY)
                except _ABSENT:
                    return
                try:
                    if not _is_folder(above, name_of(folder), place):
                        return
                    shutil.rmtree(name_of(folder), dir_fd=above)
                except OSError as error:
                    if error.errno in _UNTOUCHED:
                        raise
                    if error.errno not in _BUSY:
                        raise OutcomeUnknown(f"{place}: {error.strerror}; {again}") from error
                finally:
                    os.close(above)
        raise OutcomeUnknown(f"{place}: somebody keeps writing there; {again}")

    def append(self, path: str, lines: Sequence[str]) -> None:
        place, raw = self._place(path), raw_of(lines)
        if not raw:
            return
        with explained(place), self._folders.made(path) as (folder, name):
            handle = os.open(name, _APPEND, 0o666, dir_fd=folder)
            try:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise no_file(place)
                self._file_access.give(handle)
                append_lines(handle, raw, place, self._ambient)
            finally:
                os.close(handle)
        if path not in self._lasting:  # whoever made it may have died before its name lasted
            self._folders.settle([folder_of(path)])
            if len(self._lasting) >= LASTING_MAX:
                self._lasting.clear()
            self._lasting[path] = None

    def _place(self, path: str) -> str:
        return self._folders.place(check_file(path))


def _look(folder: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def _look_at_staged(folder: int, name: str, place: str) -> os.stat_result:
    try:
        found = _look(folder, name)
    except FileNotFoundError:
        raise missing(place) from None
    except OSError as error:
        raise refusal(error, place) from error
    if not stat.S_ISREG(found.st_mode):
        with explained(place):
            _refuse_link(found, place)
        raise no_file(place)
    return found


def _is_folder(above: int, name: str, place: str) -> bool:
    """False: there is nothing. Raises OSError (a link), Corrupt (something else)."""
    try:
        found = _look(above, name)
    except FileNotFoundError:
        return False
    _refuse_link(found, place)
    if not stat.S_ISDIR(found.st_mode):
        raise no_folder(place)
    return True


def _refuse_link(found: os.stat_result, place: str) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), place)


def _entry(handle: int, folder: str, name: str) -> Entry | None:
    try:
        found = _look(handle, name)
    except FileNotFoundError:
        return None  # it was not there during the whole listing
    is_folder = stat.S_ISDIR(found.st_mode)
    return Entry(join(folder, name), 0 if is_folder else found.st_size, is_folder)


def _another(place: str) -> Conflict:
    return Conflict(
        f"{place}: is another file than the one to be removed, and stays; next: see what it is: "
        f"ls -l {quote(place)}"
    )


def _group_id(group: str) -> int | None:
    if not group:
        return None
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        raise Invalid(
            f"lake: this machine has no group {group!r}; next: getent group, or leave it out"
        ) from None
