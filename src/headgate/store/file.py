"""File: the embedded default. Several processes on one machine share a folder.

    <folder>/<namespace>/<part>/<part>.json   a document; its parts as `names.to_plain` writes them
    <folder>/<namespace>/.stripes/00 … 3f     advisory locks, each for the keys that hash to it
    <folder>/<namespace>/.writing/00 … 3f     the next document, while its stripe is held
    <folder>/<namespace>/.bells/00 … ff       touched after each write below a prefix, for `wait`

A write holds its stripe: read the current document, compare the version, write and fsync the next
one aside, rename it over the old, fsync the folder. Killed anywhere, it leaves the old or the new
document; the kernel frees the stripe, and the next writer overwrites what lies aside. A process
that is *stopped* in there keeps its stripe: others get Unavailable for those keys until it is
woken or killed.

Readers take no lock: a rename shows them the old or the new. Versions are random tokens, one for
each write, so that none comes back. A hanging disk is the one thing a time limit cannot end.
"""

import errno
import fcntl
import hashlib
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from headgate.ambient import Ambient, Deadline
from headgate.errors import Conflict, Corrupt, HeadgateError, Invalid, OutcomeUnknown, Unavailable
from headgate.store import (
    PAGE_DOCUMENTS_MAX,
    TIMEOUT_MS,
    Damaged,
    Document,
    JsonObject,
    Mark,
    Page,
    Version,
)
from headgate.store.codec import encode, seal, unseal
from headgate.store.names import Parts, from_plain, key, parts, prefix_parts, to_plain
from headgate.store.pages import check_limit
from headgate.store.url import StoreUrl

log = logging.getLogger(__name__)

STRIPES = 64
BELLS = 256
NAME_BYTES_MAX = 200  # a longer name goes on in a folder `<200 bytes>+`: file systems end at 255
RENAME_TRIES = 20  # each try means that somebody just removed the empty folder
LOOK_MS_MIN, LOOK_MS_MAX = 2, 50

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NETWORK_FILE_SYSTEMS = frozenset(
    {"9p", "afs", "ceph", "cifs", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs", "lustre", "ncpfs"}
    | {"nfs", "nfs4", "smb3", "smbfs"}
)


class FileStore:
    """Paths are plain texts here: `Path` would add a third to the time of each write."""

    def __init__(self, folder: Path, namespace: str, ambient: Ambient) -> None:
        """Opening makes nothing: who only looks leaves no trace."""
        self._ambient = ambient
        self._root = f"{folder}/{to_plain(namespace)}"
        self._stripes = [f"{self._root}/.stripes/{number:02x}" for number in range(STRIPES)]
        self._writing = [f"{self._root}/.writing/{number:02x}" for number in range(STRIPES)]
        self._bells = [f"{self._root}/.bells/{number:02x}" for number in range(BELLS)]

    def get(self, key: str, *, timeout_ms: int = TIMEOUT_MS) -> Document | None:  # noqa: ARG002 - a disk cannot be hurried
        return _read(self._file(parts(key)), key)

    def create(self, key: str, body: JsonObject, *, timeout_ms: int = TIMEOUT_MS) -> Version:
        place, raw = parts(key), encode(key, body)
        with self._stripe(key, timeout_ms) as aside:
            file = self._file(place)
            if os.path.lexists(file):
                raise Conflict(f"{key}: is there already")
            return self._put(place, file, raw, aside)

    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        place, raw = parts(key), encode(key, body)
        with self._stripe(key, timeout_ms) as aside:
            file = self._file(place)
            _check_current(file, key, version)
            return self._put(place, file, raw, aside)

    def delete(self, key: str, version: Version, *, timeout_ms: int = TIMEOUT_MS) -> None:
        place = parts(key)
        with self._stripe(key, timeout_ms):
            file = self._file(place)
            _check_current(file, key, version)
            with _explained(file):
                os.unlink(file)
            folder = os.path.dirname(file)
            with _unknown(file):
                _sync_folder(folder)
            self._ring(place)
            self._prune(folder)

    def list(
        self,
        prefix: str = "",
        *,
        after: str = "",
        limit: int = PAGE_DOCUMENTS_MAX,
        timeout_ms: int = TIMEOUT_MS,  # noqa: ARG002 - a disk cannot be hurried
    ) -> Page:
        check_limit(limit)
        below = prefix_parts(prefix)
        documents: list[Document] = []
        damaged: list[Damaged] = []
        last: Parts = ()
        walk = _walk(self._folder(below), below, prefix_parts(after))
        with _explained(self._root):
            for place, file in walk:
                if len(documents) + len(damaged) == limit:
                    return Page(tuple(documents), tuple(damaged), key(*last))
                last = place
                try:
                    found = _read(file, key(*place))
                except Corrupt as error:
                    damaged.append(Damaged(key(*place), file, str(error)))
                    continue
                if found is not None:  # else it was deleted while we walked
                    documents.append(found)
        return Page(tuple(documents), tuple(damaged), None)

    def wait(self, prefix: str, since: Mark | None, *, timeout_ms: int) -> Mark:
        deadline = Deadline(self._ambient, timeout_ms)
        bell = self._bell(prefix_parts(prefix))
        pause_ms = LOOK_MS_MIN
        with _explained(bell):
            while True:  # ends with the deadline
                mark = _mark(bell)
                if mark != since or deadline.is_over():
                    return mark
                self._ambient.sleep_ms(min(pause_ms, deadline.left_ms()))
                pause_ms = min(pause_ms * 2, LOOK_MS_MAX)

    def now_ms(self, *, timeout_ms: int = TIMEOUT_MS) -> int:  # noqa: ARG002 - a disk cannot be hurried
        """The file system's clock: what it stamps on a file that is touched now."""
        clock = f"{self._root}/.bells/clock"
        with _explained(clock):
            _touch(clock, None)
            return os.stat(clock).st_mtime_ns // 1_000_000

    def close(self) -> None:
        """Nothing is kept open between calls."""

    def _folder(self, place: Parts) -> str:
        return "/".join([self._root, *(name for part in place for name in _pieces(to_plain(part)))])

    def _file(self, place: Parts) -> str:
        return self._folder(place) + ".json"

    @contextmanager
    def _stripe(self, key: str, timeout_ms: int) -> Iterator[str]:
        """Holds the key's stripe; gives the file to write aside. Raises Unavailable, Invalid."""
        deadline = Deadline(self._ambient, timeout_ms)
        number = stripe_of(key)
        stripe = self._stripes[number]
        with _explained(stripe):
            # Opened for each write: threads and forks that shared one would share its lock, too.
            handle = _opened(stripe, os.O_RDWR | os.O_CREAT)
        try:
            pause_ms = 1.0
            while not _is_locked(handle):
                if deadline.is_over():
                    raise Unavailable(
                        f"{key}: another process has been writing here for {timeout_ms} ms, and "
                        f"nothing was written; next: see who it is: fuser {stripe}"
                    )
                # Random, or waiters that started together would collide together.
                self._ambient.sleep_ms(min(pause_ms * self._ambient.random(), deadline.left_ms()))
                pause_ms = min(pause_ms * 2, LOOK_MS_MAX)
            yield self._writing[number]
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # close alone would not, had somebody forked
            os.close(handle)

    def _put(self, place: Parts, file: str, raw: bytes, aside: str) -> Version:
        token = self._ambient.new_id()
        with _explained(aside):
            _write_through(aside, seal(token, raw))
        with _explained(file):
            _rename(aside, file)
        with _unknown(file):
            _sync_folder(os.path.dirname(file))
        self._ring(place)
        return Version(token)

    def _ring(self, place: Parts) -> None:
        # After the write, so that whoever wakes up sees it. A writer killed before this wakes
        # nobody; waiters then look when their time is over, as S8 lets them.
        now_ns = self._ambient.wall_ns()
        for length in range(len(place)):
            with suppress(OSError):
                _touch(self._bell(place[:length]), now_ns)

    def _bell(self, prefix: Parts) -> str:
        return self._bells[_hash("/".join(prefix)) % BELLS]

    def _prune(self, folder: str) -> None:
        with suppress(OSError):  # not empty: the usual end
            while folder != self._root:
                os.rmdir(folder)
                folder = os.path.dirname(folder)


def open_url(url: StoreUrl, namespace: str, ambient: Ambient) -> FileStore:
    url.check_options()
    folder = _place(url)
    if not folder.parent.is_dir():
        raise Invalid(f"{url.shown}: {folder.parent} is no folder; next: mkdir -p {folder.parent}")
    for remark in remarks(url):
        log.warning("store.network_file_system", extra={"folder": str(folder), "reason": remark})
    return FileStore(folder, namespace, ambient)


def remarks(url: StoreUrl) -> Sequence[str]:
    """What a person should know of this place, for `headgate doctor`."""
    kind = network_file_system(_place(url))
    return [] if kind is None else [f"this folder is on {kind}: {NETWORK_REASON}"]


def _place(url: StoreUrl) -> Path:
    text = url.path.removeprefix("//") if url.path.startswith("///") else url.path
    if text.startswith("//"):
        raise Invalid(f"{url.shown}: names a host; next: write file:./state or file:///srv/state")
    return Path(text or ".").expanduser().absolute()


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
        point = left.split()[4].replace("\\040", " ")
        if target == point or target.startswith(point.rstrip("/") + "/"):
            best = max(best, (len(point), right.split()[0]), key=lambda found: found[0])
    return best[1] if best[1] in _NETWORK_FILE_SYSTEMS else None


def stripe_of(key: str) -> int:
    return _hash(key) % STRIPES


def _read(file: str, key: str) -> Document | None:
    try:
        with open(file, "rb") as stored:
            sealed = stored.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _refusal(error, file) from error
    token, body = unseal(sealed, file)
    return Document(key, body, Version(token))


def _check_current(file: str, key: str, version: Version) -> None:
    found = _read(file, key)
    if found is None or found.version != version:
        raise Conflict(f"{key}: version {version} is not current")


def _walk(folder: str, here: Parts, after: Parts) -> Iterator[tuple[Parts, str]]:
    """Documents below a folder in the order of their parts, from behind `after` on."""
    found = dict(_entries(folder, ""))
    for part in sorted(found):
        place = (*here, part)
        if place < after[: len(place)]:
            continue  # all of it is before
        file, sub_folder = found[part]
        if file is not None and place > after:
            yield place, file
        if sub_folder is not None:
            yield from _walk(sub_folder, place, after)


def _entries(folder: str, begun: str) -> Iterator[tuple[str, tuple[str | None, str | None]]]:
    """Each part in a folder with its document and folder; `begun` is a long name's beginning."""
    found: dict[str, tuple[str | None, str | None]] = {}
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as listing:
        for entry in listing:
            if entry.name.endswith("+"):
                yield from _entries(f"{folder}/{entry.name}", begun + entry.name[:-1])
                continue
            is_document = entry.name.endswith(".json")
            part = from_plain(begun + entry.name.removesuffix(".json"))
            if part is None:
                continue  # somebody else's file, or one of our dotted folders
            file, sub_folder = found.get(part, (None, None))
            if is_document:
                file = f"{folder}/{entry.name}"
            else:
                sub_folder = f"{folder}/{entry.name}"
            found[part] = (file, sub_folder)
    yield from found.items()


def _pieces(plain: str) -> Iterator[str]:
    while len(plain) > NAME_BYTES_MAX:
        yield plain[:NAME_BYTES_MAX] + "+"
        plain = plain[NAME_BYTES_MAX:]
    yield plain


def _is_locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _opened(file: str, flags: int) -> int:
    """A handle; the folder is made if it is the first file there."""
    try:
        return os.open(file, flags | os.O_CLOEXEC, 0o666)
    except FileNotFoundError:
        _make_folder(os.path.dirname(file))
        return os.open(file, flags | os.O_CLOEXEC, 0o666)


def _touch(file: str, at_ns: int | None) -> None:
    """None: by the file system's clock."""
    stamp = None if at_ns is None else (at_ns, at_ns)
    try:
        os.utime(file, ns=stamp) if stamp else os.utime(file)
    except FileNotFoundError:
        os.close(_opened(file, os.O_WRONLY | os.O_CREAT))
        os.utime(file, ns=stamp) if stamp else os.utime(file)


def _mark(bell: str) -> Mark:
    try:
        return Mark(str(os.stat(bell).st_mtime_ns))
    except FileNotFoundError:
        return Mark("never rung")


def _write_through(file: str, content: bytes) -> None:
    handle = _opened(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(handle, view) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def _rename(aside: str, file: str) -> None:
    for _ in range(RENAME_TRIES):
        try:
            os.rename(aside, file)
        except FileNotFoundError:
            # Not made yet, or removed by somebody because it was empty.
            _make_folder(os.path.dirname(file))
        else:
            return
    raise Unavailable(
        f"{file}: its folder kept being removed; nothing was written. Next: try again"
    )


def _make_folder(folder: str) -> None:
    """Makes a folder and its parents; each is on disk before something is put into it."""
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(folder)
    _make_folder(parent)
    with suppress(FileExistsError, FileNotFoundError):  # the second: a neighbour pruned its parent
        os.mkdir(folder)
        _sync_folder(parent)


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _explained(place: str) -> Iterator[None]:
    """Nothing was written if this fails."""
    try:
        yield
    except OSError as error:
        raise _refusal(error, place) from error


@contextmanager
def _unknown(place: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutcomeUnknown(
            f"{place}: written, but the disk did not confirm it ({error.strerror}); read it again"
        ) from error


def _refusal(error: OSError, place: str) -> HeadgateError:
    said = error.strerror or str(error)
    if error.errno in _FULL:
        return Unavailable(
            f"{place}: the disk is full, nothing was written; next: df -h {os.path.dirname(place)}"
        )
    if error.errno in _FORBIDDEN:
        return Invalid(
            f"{place}: not allowed ({said}), nothing was written; next: give this user the right "
            f"to write there: ls -ld {os.path.dirname(place)}"
        )
    return Unavailable(f"{place}: {said}, nothing was written; next: try again, or ls -l {place}")


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=4).digest(), "big")
