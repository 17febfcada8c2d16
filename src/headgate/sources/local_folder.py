"""A folder of the operating system: a local disk, or one that is mounted on several nodes."""

import errno
import gzip
import os
import stat as modes
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from shlex import quote

from headgate.errors import Conflict, Invalid, Unavailable
from headgate.sources.folder import HEAD_BYTES_MAX, Entry

COPY_BYTES = 1_000_000

_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG})
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_ABSENT = (FileNotFoundError, NotADirectoryError)


class LocalFolder:
    def __init__(self, root: str) -> None:
        self._root = root

    def ident(self) -> str:
        with self._explained(self._root):
            try:
                return str(os.stat(self._root).st_ino)
            except FileNotFoundError:
                return ""

    def absolute(self, path: str) -> str:
        return path if path.startswith("/") else f"{self._root}/{path}"

    def scan(self) -> Iterator[Entry]:
        waiting = [""]
        while waiting:  # ends: a folder has only so many below it, and links are not followed
            folder = waiting.pop()
            try:
                with os.scandir(f"{self._root}/{folder}") as found:
                    for one in found:
                        path = f"{folder}{one.name}"
                        if one.is_dir(follow_symlinks=False):
                            waiting.append(f"{path}/")
                        elif (entry := self._entry(one, path)) is not None:
                            yield entry
            except _ABSENT as error:
                if not folder:
                    raise self._refusal(error, self._root) from error
            except PermissionError as error:
                if not folder:
                    raise self._refusal(error, self._root) from error
                yield Entry(folder.rstrip("/"), 0, 0, is_blind=True)
            except OSError as error:
                raise self._refusal(error, self.absolute(folder)) from error

    def stat(self, path: str) -> Entry | None:
        with self._explained(path):
            try:
                found = os.stat(self.absolute(path))
            except _ABSENT:
                return None
        return _as_entry(path, found)

    def head(self, path: str, size_bytes_max: int = HEAD_BYTES_MAX) -> bytes:
        place = self.absolute(path)
        try:
            with gzip.open(place) if path.endswith(".gz") else open(place, "rb") as content:
                return content.readline(size_bytes_max).rstrip(b"\r\n")
        except gzip.BadGzipFile as error:
            renamed = f"mv -n {quote(place)} {quote(place.removesuffix('.gz'))}"
            raise Invalid(
                f"{place}: its name says gzip, and it is none; next: if it is plain, {renamed}; "
                f"else put a whole one into its place, or go without it: rm {quote(place)}"
            ) from error
        except (EOFError, zlib.error) as error:
            raise Invalid(
                f"{place}: is cut off or damaged ({error}); next: put a whole one into its place, "
                f"or go without it: rm {quote(place)}"
            ) from error
        except OSError as error:
            raise self._refusal(error, place) from error

    def open_drawer(self, drawer: str) -> None:
        with self._explained(drawer), suppress(FileExistsError):
            os.mkdir(self.absolute(drawer), 0o700)

    def take(self, path: str, drawer: str, name: str) -> None:
        source, target = self.absolute(path), self.absolute(f"{drawer}/{name}")
        with self._explained(path):
            if os.path.islink(source):
                raise Invalid(f"{path}: is a link, and stays; next: remove it, or its target")
            try:
                # Not link and unlink: whoever is paused between the two would later remove what was
                # dropped since. A rename into a drawer that is closed fails.
                os.rename(source, target)
            except _ABSENT as error:
                if not os.path.isdir(self.absolute(drawer)):
                    raise Unavailable(f"{drawer}: was closed by somebody else") from error

    def put(self, drawer: str, name: str, target: str) -> None:
        source, place = self.absolute(f"{drawer}/{name}"), self.absolute(target)
        with self._explained(place):
            if not os.path.lexists(source):
                return
            os.makedirs(os.path.dirname(place), exist_ok=True)
            is_copied = False
            try:
                os.link(source, place)
            except FileExistsError as error:
                if not _is_same(source, place):
                    raise Conflict(f"{place}: something else is there") from error
                is_copied = not os.path.samefile(source, place)  # by somebody who was interrupted
            except FileNotFoundError:
                return  # somebody else has put it meanwhile
            except OSError as error:
                if error.errno == errno.EXDEV:
                    _copy(source, place, f".{name}{drawer}")
                    is_copied = True
                elif error.errno in _NO_LINKS:
                    _replace_own(source, place)
                else:
                    raise
            if is_copied:  # two disks: only what lasts on the other one may go here
                _settle(os.path.dirname(place))
            with suppress(FileNotFoundError):
                os.unlink(source)

    def remove(self, drawer: str, name: str) -> None:
        with self._explained(drawer), suppress(*_ABSENT):
            os.unlink(self.absolute(f"{drawer}/{name}"))

    def names(self, drawer: str) -> tuple[str, ...]:
        with self._explained(drawer):
            try:
                return tuple(sorted(os.listdir(self.absolute(drawer))))
            except _ABSENT:
                return ()

    def close_drawer(self, drawer: str) -> None:
        with self._explained(drawer):
            try:
                os.rmdir(self.absolute(drawer))
            except _ABSENT:
                return
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    raise Conflict(f"{drawer}: something is in it") from error
                raise

    def _entry(self, one: "os.DirEntry[str]", path: str) -> Entry | None:
        try:
            return _as_entry(path, one.stat())
        except PermissionError:
            return Entry(path, 0, 0, is_blind=True)
        except _ABSENT:
            return None  # gone since, or a link that leads nowhere
        except OSError as error:
            if error.errno == errno.ELOOP:
                return None
            raise

    @contextmanager
    def _explained(self, place: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._refusal(error, self.absolute(place)) from error

    def _refusal(self, error: OSError, place: str) -> Invalid | Unavailable:
        said = error.strerror or str(error)
        if error.errno in _FORBIDDEN and place != self._root:
            return Invalid(
                f"{place}: not allowed ({said}); next: give this user the right to: "
                f"ls -ld {quote(place)}"
            )
        return Unavailable(f"{place}: {said}; next: try again, or ls -l {quote(place)}")


def _as_entry(path: str, found: os.stat_result) -> Entry | None:
    if not modes.S_ISREG(found.st_mode):
        return None
    return Entry(path, found.st_size, found.st_mtime_ns)


def _is_same(source: str, place: str) -> bool:
    """The same file, or a copy that was finished before somebody was interrupted."""
    one, other = os.lstat(source), os.lstat(place)
    facts = [(found.st_size, found.st_mtime_ns, found.st_mode) for found in (one, other)]
    return os.path.samestat(one, other) or facts[0] == facts[1]


def _copy(source: str, place: str, aside: str) -> None:
    """To another file system: visible only once it is whole. Raises Conflict."""
    folder = os.path.dirname(place)
    copied = f"{folder}/{aside}"
    before = os.stat(source)
    with open(source, "rb") as old, open(copied, "wb") as new:
        while block := old.read(COPY_BYTES):
            new.write(block)
        new.flush()
        os.fchmod(new.fileno(), modes.S_IMODE(before.st_mode))
        os.utime(new.fileno(), ns=(before.st_atime_ns, before.st_mtime_ns))
        os.fsync(new.fileno())
    try:
        os.link(copied, place)
    except FileExistsError as error:
        if not _is_same(copied, place):
            raise Conflict(f"{place}: something else is there") from error
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _replace_own(copied, place)
        return
    finally:
        with suppress(FileNotFoundError):
            os.unlink(copied)


def _settle(folder: str) -> None:
    """The names in it survive a power cut, and so does it: it may have been made just now."""
    device = os.stat(folder).st_dev
    above = ""
    while folder != above and os.stat(folder).st_dev == device:  # ends at the root of its disk
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except PermissionError:
            handle = -1  # whoever may not look into it has not made it
        if handle >= 0:
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        above, folder = folder, os.path.dirname(folder)


def _replace_own(source: str, place: str) -> None:
    """Where there are no links: the name is claimed by an empty file, which is then replaced."""
    try:
        os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC))
    except FileExistsError as error:
        raise Conflict(f"{place}: something else is there") from error
    os.rename(source, place)
