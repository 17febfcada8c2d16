"""Disk: the few moves on a file system that the file store makes, and what their failures mean.

Before a rename nothing is visible: what fails until then was not written. A file is fsynced before
it gets its name, a folder after a name in it changed.
"""

import errno
import fcntl
import os
import re
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote

from headgate.errors import HeadgateError, Invalid, Unavailable
from headgate.store.codec import damaged

LASTING_FOLDERS_MAX = 64
RENAME_TRIES = 20  # each try means that somebody just removed the empty folder

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_SPOILED = frozenset({errno.EIO, errno.EISDIR, errno.ELOOP})
_NETWORK_FILE_SYSTEMS = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3"}
    | {"smbfs", "vboxsf", "virtiofs"}
)  # and everything that begins with "fuse."


def content_of(file: str) -> bytes | None:
    """What is stored; None if there is nothing. Raises Corrupt, Invalid, Unavailable."""
    try:
        with open(file, "rb") as stored:
            return stored.read()
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(file):
            raise damaged(file, "it is a link that leads nowhere") from None
        return None
    except OSError as error:
        if error.errno in _SPOILED:
            raise damaged(file, error.strerror or "unreadable") from error
        raise _refusal(error, file, "read") from error


def is_there(file: str) -> bool:
    # Not os.path.exists: that takes every trouble for an absence, and a create would overwrite.
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise _refusal(error, file) from error
    return True


_held: set[int] = set()  # handles of locked stripes, in this process


def _let_go() -> None:
    """A forked child must not keep its parent's stripes."""
    for handle in _held:
        with suppress(OSError):
            os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_let_go)


def try_lock(handle: int, stripe: str) -> bool:
    """Locked by us; if not, the handle is closed. Raises OSError."""
    is_ours = False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Somebody may have removed the file meanwhile: then others lock another one.
        is_ours = os.path.samestat(os.fstat(handle), os.stat(stripe))
    except (BlockingIOError, FileNotFoundError):
        return False
    finally:
        if is_ours:
            _held.add(handle)
        else:
            os.close(handle)
    return is_ours


def unlock(handle: int) -> None:
    _held.discard(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_UN)  # close alone would not, had somebody forked
    finally:
        os.close(handle)


def open_file(file: str, flags: int) -> int:
    """A handle; the folder is made if it is the first file there."""
    try:
        return os.open(file, flags | os.O_CLOEXEC, 0o666)
    except FileNotFoundError:
        make_folder(os.path.dirname(file))
        return os.open(file, flags | os.O_CLOEXEC, 0o666)


def overwrite(file: str, content: bytes) -> None:
    handle = open_file(file, os.O_WRONLY | os.O_CREAT)
    try:
        os.pwrite(handle, content, 0)
    finally:
        os.close(handle)


def write_through(file: str, content: bytes) -> None:
    handle = open_file(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(handle, view) :]
        os.fsync(handle)
    except OSError:
        os.unlink(file)  # a full disk must not be filled further
        raise
    finally:
        os.close(handle)


def move(aside: str, file: str) -> None:
    for _ in range(RENAME_TRIES):
        try:
            os.rename(aside, file)
        except FileNotFoundError:
            if not os.path.lexists(aside):
                break
            # Not made yet, or removed by somebody because it was empty.
            make_folder(os.path.dirname(file))
        else:
            return
    raise Unavailable(
        f"{file}: what was to be written, or its folder, was removed meanwhile; nothing was "
        "written. Next: try again"
    )


def make_folder(folder: str) -> None:
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(folder)
    make_folder(parent)
    with suppress(FileExistsError, FileNotFoundError):  # the second: a neighbour pruned its parent
        os.mkdir(folder)
        sync_folder(parent)


def sync_folder(folder: str) -> None:
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # pruned by a neighbour, after it was empty; the ones above are still to come
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class LastingFolders:
    """Folders whose own names are on disk, each held open: then nobody else gets its inode."""

    def __init__(self) -> None:
        self._handles: dict[str, int] = {}
        self._alone = threading.Lock()
        weakref.finalize(self, _close_all, self._handles)

    def keep(self, folder: str) -> None:
        """The name of this folder is on disk. Raises OSError."""
        with self._alone:
            known = self._handles.get(folder)
            try:
                if known is not None and os.path.samestat(os.fstat(known), os.stat(folder)):
                    return
                handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:
                return  # pruned by a neighbour, after it was empty
            if len(self._handles) >= LASTING_FOLDERS_MAX:
                _close_all(self._handles)
            if known is not None and folder in self._handles:
                os.close(self._handles.pop(folder))
            self._handles[folder] = handle
            try:
                sync_folder(os.path.dirname(folder))
            except OSError:
                os.close(self._handles.pop(folder))
                raise

    def close(self) -> None:
        with self._alone:
            _close_all(self._handles)


def _close_all(handles: dict[str, int]) -> None:
    while handles:
        _, handle = handles.popitem()
        with suppress(OSError):
            os.close(handle)


@contextmanager
def explained(place: str) -> Iterator[None]:
    """Nothing was written if this fails."""
    try:
        yield
    except OSError as error:
        raise _refusal(error, place) from error


def _refusal(error: OSError, place: str, verb: str = "write") -> HeadgateError:
    said = error.strerror or str(error)
    nothing = "nothing was written" if verb == "write" else "nothing was read"
    if error.errno in _FULL:
        folder = quote(os.path.dirname(place))
        return Unavailable(f"{place}: the disk is full, {nothing}; next: df -h {folder}")
    if error.errno in _FORBIDDEN:
        where = quote(os.path.dirname(place) if verb == "write" else place)
        return Invalid(
            f"{place}: not allowed ({said}), {nothing}; next: give this user the right to {verb} "
            f"there: ls -ld {where}"
        )
    return Unavailable(f"{place}: {said}, {nothing}; next: try again, or ls -l {quote(place)}")


NETWORK_REASON = (
    "advisory locks and renames on network file systems can fail or be lost between machines: "
    "two nodes could write the same document at once. Use it from one machine only, "
    "or take zk: or es:"
)


def network_file_system(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """The kind of network file system that `folder` is on; None for a local one, or if unknown."""
    try:
        lines = mounts.read_text("utf-8").splitlines()
    except OSError:
        return None  # not Linux
    best: tuple[int, str] = (-1, "")
    target = os.path.realpath(folder)
    for line in lines:
        left, _, right = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), left.split()[4])
        if target == point or target.startswith(point.rstrip("/") + "/"):
            # Of two on one point the later one is seen: an automounter's comes before the real one.
            best = max((len(point), right.split()[0]), best, key=lambda found: found[0])
    kind = best[1]
    return kind if kind in _NETWORK_FILE_SYSTEMS or kind.startswith("fuse.") else None
