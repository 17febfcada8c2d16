"""Syscalls: three calls of Linux that Python has no word for, and what to do without them.

open_plain        opens a path on which no name is a link          else: name by name
rename_new        renames, and never replaces anything             else: False
WholeDisk.sync    all of a file system survives a power cut        else: `is_reliable` is False
"""

import ctypes
import errno
import os
import re
import stat
import sys
import threading
import weakref
from functools import lru_cache

_AT_FDCWD = -100
_OPENAT2 = 437  # the same number on every processor
_RESOLVE_NO_SYMLINKS = 0x04
_RENAME_NOREPLACE = 1
_MISSING = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})
_SYNCFS_TELLS_SINCE = (5, 8)  # before, syncfs kept a failed write to itself

# Others, those in user space for one, answer syncfs without doing anything.
_SYNCED_AS_A_WHOLE = frozenset(
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # xfs
        0x9123683E,  # btrfs
        0xF2F52010,  # f2fs
        0x2FC12FC1,  # zfs
        0x01021994,  # tmpfs
        0x794C7630,  # overlayfs, which asks the disk above
    }
)

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_renameat2 = getattr(_libc, "renameat2", None)
_ENCODING, _ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_HOW_BYTES = ctypes.sizeof(_OpenHow)


@lru_cache(maxsize=64)
def _how(flags: int) -> _OpenHow:
    return _OpenHow(flags, 0, _RESOLVE_NO_SYMLINKS)


def open_plain(root: str, path: str, flags: int) -> int:
    """A handle of what is at `path`, below a root that is spelt without links. Makes nothing.

    Raises OSError: ELOOP if a link is on the way, or at its end.
    """
    flags |= os.O_CLOEXEC
    if _has_openat2():
        return _openat2(f"{root}/{path}" if path else root, flags)
    return _open_by_name(root, path, flags | os.O_NOFOLLOW)


@lru_cache(maxsize=1)
def _has_openat2() -> bool:
    try:
        os.close(_openat2("/", os.O_RDONLY | os.O_CLOEXEC))
    except (OSError, AttributeError):  # an old kernel, a container that forbids it; not Linux
        return False
    return True


def _openat2(path: str, flags: int) -> int:
    how, raw = ctypes.byref(_how(flags)), os.fsencode(path)
    while True:  # ends unless signals come for ever
        handle: int = _syscall(_OPENAT2, _AT_FDCWD, raw, how, _HOW_BYTES)
        if handle >= 0:
            return handle
        if ctypes.get_errno() != errno.EINTR:
            raise _failure(path)


def _open_by_name(root: str, path: str, flags: int) -> int:
    """Each name in the folder before it: nobody can put a link in between."""
    names = path.split("/") if path else ["."]
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names[:-1]:
            below = _open_in(folder, name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            os.close(folder)
            folder = below
        return _open_in(folder, names[-1], flags)
    finally:
        os.close(folder)


def _open_in(folder: int, name: str, flags: int) -> int:
    try:
        return os.open(name, flags | os.O_CLOEXEC, dir_fd=folder)
    except NotADirectoryError:
        # What is asked for as a folder, and is a link, is answered so.
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


def rename_new(from_folder: int, name: str, to_folder: int, new_name: str) -> bool:
    """False: this file system has no such move, nothing was done. Raises OSError: EEXIST if there
    is something already."""
    if _renameat2 is None:
        return False
    # As os.fsencode does it, which takes a tenth of the whole move.
    source, target = name.encode(_ENCODING, _ERRORS), new_name.encode(_ENCODING, _ERRORS)
    if _renameat2(from_folder, source, to_folder, target, _RENAME_NOREPLACE) == 0:
        return True
    if ctypes.get_errno() in _MISSING:
        return False
    raise _failure(new_name)


class WholeDisk:
    """One file system. Its handle is opened before anything is written: what goes wrong from then
    on is told to it, even if somebody else was told first."""

    def __init__(self, folder: str) -> None:
        self._handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._handle)
        self._alone = threading.Lock()
        self._failures = 0
        self.device = os.fstat(self._handle).st_dev
        self.is_reliable = (
            hasattr(_libc, "syncfs")
            and _kernel() >= _SYNCFS_TELLS_SINCE
            and _kind_of_disk(self._handle) in _SYNCED_AS_A_WHOLE
        )

    @property
    def failures(self) -> int:
        """Taken before the writing that `sync` is to make last."""
        return self._failures

    def sync(self, failures_before: int) -> None:
        """All that was written is on disk. Raises OSError."""
        with self._alone:
            try:
                sync_whole(self._handle)
            except OSError:
                # What failed was told to this handle, for whoever wrote it and when: from now on
                # each file is asked for itself.
                self._failures += 1
                self.is_reliable = False
                raise
            if self._failures != failures_before:
                # Told once: to another thread, of what may have been this one's.
                raise OSError(errno.EIO, os.strerror(errno.EIO))


def sync_whole(handle: int) -> None:
    """The file system that this handle is on. Raises OSError."""
    if _libc.syncfs(handle) != 0:
        raise _failure("")


def _kind_of_disk(handle: int) -> int:
    """The magic number of its file system; 0: nobody knows."""
    answer = (ctypes.c_long * 64)()  # more than a `struct statfs`, which begins with it
    return 0 if _libc.fstatfs(handle, answer) != 0 else answer[0] & 0xFFFFFFFF


def _kernel() -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])


def _failure(path: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), path)
