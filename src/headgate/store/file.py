"""File: the embedded default. Several processes on one machine share a folder.

    <folder>/<namespace>/<part>/<part>.json   a document; its parts as `names.to_plain` writes them
    <folder>/<namespace>/.stripes/00 … 3f     advisory locks, each for the keys that hash to it
    <folder>/<namespace>/.writing/<token>     the next document, before its rename
    <folder>/<namespace>/.bells/00 … ff       written after each write below a prefix, for `wait`

A write holds its stripe: read the current document, compare the version, write and fsync the next
one aside, rename it over the old, fsync the folders above it. Killed anywhere, it leaves the old or
the new document, and perhaps a file aside that somebody sweeps an hour later; the kernel frees the
stripe. A process that is *stopped* in there keeps its stripe: others get Unavailable for those keys
until it is woken or killed.

The names of all folders above are fsynced, too: whoever made one may have died before it did, and
an acknowledged document in a folder that a power loss takes away is lost. Who did so keeps the
folder open: as long as the same one is there, its name need not be written again.

Readers take no lock: a rename shows them the old or the new. Versions are random tokens, one for
each write, so that none comes back. A hanging disk is the one thing a time limit cannot end.
"""

import hashlib
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import TypeAlias

from headgate.ambient import Ambient, Deadline
from headgate.errors import Conflict, HeadgateError, Invalid, OutcomeUnknown, Unavailable
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
from headgate.store.codec import encode, open_seal, seal, unseal
from headgate.store.disk import (
    NETWORK_REASON,
    LastingFolders,
    content_of,
    explained,
    is_there,
    make_folder,
    move,
    network_file_system,
    open_file,
    overwrite,
    sync_folder,
    try_lock,
    unlock,
    write_through,
)
from headgate.store.names import Parts, from_plain, key, parts, prefix_parts, to_plain
from headgate.store.pages import check_limit
from headgate.store.url import StoreUrl

log = logging.getLogger(__name__)

STRIPES = 64
BELLS = 256
NAME_BYTES_MAX = 200  # a longer name goes on in a folder `<200 bytes>+`: file systems end at 255
SCANS_MAX = 20
SCAN_BYTES = 30_000  # the kernel gives a folder in pieces of 32 kB; what fits into one is one look
PAGE_BYTES_MAX = 16_000_000
ABANDONED_S = 3_600  # what lies aside that long belongs to nobody alive
LOOK_MS_MIN, LOOK_MS_MAX = 2, 50


class FileStore:
    """Paths are plain texts here: `Path` would add a third to the time of each write."""

    def __init__(self, folder: Path, namespace: str, ambient: Ambient) -> None:
        """Opening makes nothing: who only looks leaves no trace."""
        self._ambient = ambient
        self._root = f"{folder}/{to_plain(namespace)}"
        self._stripes = [f"{self._root}/.stripes/{number:02x}" for number in range(STRIPES)]
        self._bells = [f"{self._root}/.bells/{number:02x}" for number in range(BELLS)]
        self._is_settled = False
        self._lasting = LastingFolders()

    def get(self, key: str, *, timeout_ms: int = TIMEOUT_MS) -> Document | None:  # noqa: ARG002 - a disk cannot be hurried
        return _read(self._file(parts(key)), key)

    def create(self, key: str, body: JsonObject, *, timeout_ms: int = TIMEOUT_MS) -> Version:
        place, raw = parts(key), encode(key, body)
        with self._stripe(key, timeout_ms):
            file = self._file(place)
            if is_there(file):
                raise Conflict(f"{key}: is there already")
            return self._put(key, place, file, raw)

    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        place, raw = parts(key), encode(key, body)
        with self._stripe(key, timeout_ms):
            file = self._file(place)
            _check_current(file, key, version)
            return self._put(key, place, file, raw)

    def delete(self, key: str, version: Version, *, timeout_ms: int = TIMEOUT_MS) -> None:
        place = parts(key)
        with self._stripe(key, timeout_ms):
            file = self._file(place)
            _check_current(file, key, version)
            with explained(file):
                os.unlink(file)
            self._confirm(place, file, self._ambient.new_id())
            self._prune(os.path.dirname(file))

    def list(
        self,
        prefix: str = "",
        *,
        after: str = "",
        limit: int = PAGE_DOCUMENTS_MAX,
        timeout_ms: int = TIMEOUT_MS,
    ) -> Page:
        """A page ends early when its time is over, or with PAGE_BYTES_MAX of documents."""
        check_limit(limit)
        deadline = Deadline(self._ambient, timeout_ms)
        below = prefix_parts(prefix)
        documents: list[Document] = []
        spoiled: list[Damaged] = []
        last: Parts = ()
        left_bytes = PAGE_BYTES_MAX
        with explained(self._root):
            for place, file in _walk(self._folder(below), below, prefix_parts(after)):
                is_full = len(documents) + len(spoiled) == limit or left_bytes <= 0
                if last and (is_full or deadline.is_over()):
                    return Page(tuple(documents), tuple(spoiled), key(*last))
                last, name = place, key(*place)
                try:
                    sealed = content_of(file)
                    if sealed is not None:  # else it was deleted while we walked
                        documents.append(_document(sealed, name, file))
                        left_bytes -= len(sealed)
                except HeadgateError as error:  # whatever it is, it concerns no other document
                    spoiled.append(Damaged(name, file, str(error)))
        return Page(tuple(documents), tuple(spoiled), None)

    def wait(self, prefix: str, since: Mark | None, *, timeout_ms: int) -> Mark:
        deadline = Deadline(self._ambient, timeout_ms)
        bell = self._bell(prefix_parts(prefix))
        pause_ms = LOOK_MS_MIN
        with explained(bell):
            while True:  # ends with the deadline
                mark = _mark(bell)
                if mark != since or deadline.is_over():
                    return mark
                self._ambient.sleep_ms(min(pause_ms, deadline.left_ms()))
                pause_ms = min(pause_ms * 2, LOOK_MS_MAX)

    def now_ms(self, *, timeout_ms: int = TIMEOUT_MS) -> int:  # noqa: ARG002 - a disk cannot be hurried
        """The file system's clock: what it stamps on a file that is touched now."""
        clock = f"{self._root}/.bells/clock"
        with explained(clock):
            overwrite(clock, b"")
            os.utime(clock)
            return os.stat(clock).st_mtime_ns // 1_000_000

    def close(self) -> None:
        self._lasting.close()

    def _folder(self, place: Parts) -> str:
        return "/".join([self._root, *(name for part in place for name in _pieces(to_plain(part)))])

    def _file(self, place: Parts) -> str:
        return self._folder(place) + ".json"

    @contextmanager
    def _stripe(self, key: str, timeout_ms: int) -> Iterator[None]:
        """Holds the key's stripe. Raises Unavailable, Invalid."""
        deadline = Deadline(self._ambient, timeout_ms)
        stripe = self._stripes[stripe_of(key)]
        pause_ms = 1.0
        while True:  # ends with the deadline
            # Opened for each write: threads and forks that shared one would share its lock, too.
            with explained(stripe):
                handle = open_file(stripe, os.O_RDWR | os.O_CREAT)
                is_mine = try_lock(handle, stripe)
            if is_mine:
                break
            if deadline.is_over():
                raise Unavailable(
                    f"{key}: another process has been writing here for {timeout_ms} ms, and "
                    f"nothing was written; next: see who it is, and wake or end it: "
                    f"fuser {quote(stripe)}"
                )
            # Random, or waiters that started together would collide together.
            self._ambient.sleep_ms(min(pause_ms * self._ambient.random(), deadline.left_ms()))
            pause_ms = min(pause_ms * 2, LOOK_MS_MAX)
        try:
            yield
        finally:
            unlock(handle)

    def _put(self, key: str, place: Parts, file: str, raw: bytes) -> Version:
        token = self._ambient.new_id()
        aside = f"{self._root}/.writing/{token}"
        self._settle_in()
        with explained(aside):
            write_through(aside, seal(token, key, raw))
        with explained(file):
            move(aside, file)
        self._confirm(place, file, token)
        return Version(token)

    def _confirm(self, place: Parts, file: str, ring: str) -> None:
        """What was just done to `file` is on disk, and whoever waits for it is woken."""
        try:
            folder = os.path.dirname(file)
            sync_folder(folder)
            while folder != self._root:
                self._lasting.keep(folder)
                folder = os.path.dirname(folder)
        except OSError as error:
            raise OutcomeUnknown(
                f"{file}: done, but the disk did not confirm it ({error.strerror}), and a power "
                "loss may undo it. Next: read it, and write it again"
            ) from error
        finally:
            self._ring(place, ring)

    def _ring(self, place: Parts, ring: str) -> None:
        # After the write, so that whoever wakes up sees it. A writer killed before this wakes
        # nobody; waiters then look when their time is over, as S8 lets them.
        for length in range(len(place)):
            with suppress(OSError):
                overwrite(self._bell(place[:length]), ring.encode("ascii"))

    def _bell(self, prefix: Parts) -> str:
        return self._bells[_hash("/".join(prefix)) % BELLS]

    def _prune(self, folder: str) -> None:
        with suppress(OSError):  # not empty: the usual end
            while folder != self._root:
                os.rmdir(folder)
                folder = os.path.dirname(folder)

    def _settle_in(self) -> None:
        """Before the first write: the folders above are on disk, whoever made them, and what dead
        writers left aside is removed. A slow one then finds nothing to rename.
        """
        if self._is_settled:
            return
        folder = os.path.dirname(self._root)
        with explained(folder):
            make_folder(self._root)
            sync_folder(folder)
            sync_folder(os.path.dirname(folder))
        oldest_ns = self.now_ms() * 1_000_000 - ABANDONED_S * 1_000_000_000
        with suppress(OSError), os.scandir(f"{self._root}/.writing") as lying:
            for entry in lying:
                if entry.stat(follow_symlinks=False).st_mtime_ns < oldest_ns:
                    os.unlink(entry.path)
        self._is_settled = True


def open_url(url: StoreUrl, namespace: str, ambient: Ambient) -> FileStore:
    url.check_options()
    folder = _place(url)
    if folder.exists() and not folder.is_dir():
        raise Invalid(f"{url.shown}: is a file, not a folder; next: choose another path")
    if not folder.parent.is_dir():
        raise Invalid(
            f"{url.shown}: {folder.parent} is no folder; next: mkdir -p {quote(str(folder.parent))}"
        )
    kind = network_file_system(folder)
    if kind is not None:
        log.warning(
            "store.network_file_system",
            extra={"folder": str(folder), "kind": kind, "reason": NETWORK_REASON},
        )
    return FileStore(folder, namespace, ambient)


def remarks(url: StoreUrl) -> Sequence[str]:
    """What a person should know of this place, for `headgate doctor`."""
    folder = _place(url)
    kind = network_file_system(folder)
    found = [] if kind is None else [f"this folder is on {kind}: {NETWORK_REASON}"]
    if not folder.exists():
        found.append("this folder does not exist yet; the first write makes it")
    return found


def _place(url: StoreUrl) -> Path:
    text = url.path.removeprefix("//") if url.path.startswith("///") else url.path
    if text.startswith("//"):
        raise Invalid(f"{url.shown}: names a host; next: write file:./state or file:///srv/state")
    try:
        folder = Path(text or ".").expanduser().absolute()
        folder.exists()
    except (RuntimeError, ValueError) as error:  # no such user; a NUL in the path
        raise Invalid(f"{url.shown}: is no path ({error}); next: try file:./state") from error
    return folder


def _mark(bell: str) -> Mark:
    try:
        with open(bell, "rb") as rung:
            return Mark(rung.read().decode("ascii", "replace"))
    except FileNotFoundError:
        return Mark("never rung")


def stripe_of(key: str) -> int:
    return _hash(key) % STRIPES


def _document(sealed: bytes, key: str, file: str) -> Document:
    token, body = unseal(sealed, key, file)
    return Document(key, body, Version(token))


def _read(file: str, key: str) -> Document | None:
    sealed = content_of(file)
    return None if sealed is None else _document(sealed, key, file)


def _check_current(file: str, key: str, version: Version) -> None:
    sealed = content_of(file)
    if sealed is None or open_seal(sealed, key, file)[0] != version:
        raise Conflict(f"{key}: version {version} is not current")


def _walk(folder: str, here: Parts, after: Parts) -> Iterator[tuple[Parts, str]]:
    """Documents below a folder in the order of their parts, from behind `after` on."""
    found = _stable_entries(folder)
    for part in sorted(found):
        place = (*here, part)
        if place < after[: len(place)]:
            continue  # all of it is before
        file, sub_folder = found[part]
        if file is not None and place > after:
            yield place, file
        if sub_folder is not None:
            yield from _walk(sub_folder, place, after)


Entries: TypeAlias = dict[str, tuple[str | None, str | None]]  # part -> its document, its folder


def _stable_entries(folder: str) -> Entries:
    """Where a folder is read in several pieces, a name that is being replaced may slip through
    between two of them. So such a folder is read until a look brings no new name.
    """
    found, size_bytes = _entries(folder, "")
    for _ in range(SCANS_MAX if size_bytes > SCAN_BYTES else 0):
        again, _ = _entries(folder, "")
        is_stable = all(found.get(part) == places for part, places in again.items())
        found = {**found, **again}
        if is_stable:
            break
    return found


def _entries(folder: str, begun: str) -> tuple[Entries, int]:
    """One look, and its size; `begun` is the beginning of a long name that goes on in here."""
    found: Entries = {}
    size_bytes = 0
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as listing:
        for entry in listing:
            name, path = entry.name, f"{folder}/{entry.name}"
            size_bytes += len(name) + 32
            if begun:
                if not name.startswith("+"):
                    continue
                name = name[1:]
            if name.endswith("+"):
                more, more_bytes = _entries(path, begun + name[:-1])
                found.update(more)
                size_bytes += more_bytes
                continue
            is_document = name.endswith(".json")
            part = from_plain(begun + name.removesuffix(".json"))
            if part is None:
                continue  # somebody else's file, or one of our dotted folders
            file, sub_folder = found.get(part, (None, None))
            if is_document:
                found[part] = (path, sub_folder)
            elif entry.is_dir(follow_symlinks=False):
                found[part] = (file, path)
    return found, size_bytes


def _pieces(plain: str) -> Iterator[str]:
    # A piece that goes on starts with a plus: by itself it could be `..`, and lead elsewhere.
    start = ""
    while len(plain) > NAME_BYTES_MAX:
        yield start + plain[:NAME_BYTES_MAX] + "+"
        plain, start = plain[NAME_BYTES_MAX:], "+"
    yield start + plain


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=4).digest(), "big")
