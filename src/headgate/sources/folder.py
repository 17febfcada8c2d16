"""Folder: every effect that the files source has on a file system.

    dropped ── take: into a drawer ──▶ in the drawer ── remove, or put elsewhere ──▶ dealt with
                                             └── another file than was read: put back

A drawer is a private folder that nobody reads. It exists only while a holder deals with what was
read, and it is a fence: once the next holder has closed it, whoever wakes up late can take nothing
any more. A path is text below the folder, names joined by `/`.
"""

from collections.abc import Iterator
from hashlib import blake2b, sha256
from typing import NamedTuple, Protocol

DRAWER_PREFIX = ".headgate-"
HEAD_BYTES_MAX = 1_000_000


class Entry(NamedTuple):
    """A file, and what tells it from every other: together they are its identity. A tuple, because
    there may be millions of them."""

    path: str
    size_bytes: int
    mtime_ns: int
    is_blind: bool = False  # no file, but a folder that cannot be looked into


class Folder(Protocol):
    """A folder into which somebody drops files.

    Raised by all: Unavailable (the folder is out of reach; nothing was done). What changes
    something raises OutcomeUnknown, too, and Invalid where it is not allowed to.
    """

    def ident(self) -> str:
        """Differs if another folder is there under the same name: a disk that is not mounted. The
        same on all nodes. Empty if there is no folder."""

    def absolute(self, path: str) -> str:
        """As the engine takes it."""

    def scan(self) -> Iterator[Entry]:
        """Every regular file below, in no order. Links to files are files; links to folders are not
        followed, and those that lead nowhere are left out."""

    def stat(self, path: str) -> Entry | None:
        """None: there is no such file."""

    def head(self, path: str, size_bytes_max: int = HEAD_BYTES_MAX) -> bytes:
        """The first line without its end, unpacked if the name ends in `.gz`. Raises Invalid (it
        cannot be read)."""

    def open_drawer(self, drawer: str) -> None:
        """It may be there already."""

    def take(self, path: str, drawer: str, name: str) -> None:
        """Moves a file into an open drawer; nothing is done if it is not there, and Unavailable is
        raised if the drawer is not."""

    def put(self, drawer: str, name: str, target: str) -> None:
        """Out of the drawer, to a path below the folder or to an absolute one; never onto something
        else: Conflict. What is not in the drawer was put already."""

    def remove(self, drawer: str, name: str) -> None:
        """What is not there was removed already."""

    def names(self, drawer: str) -> tuple[str, ...]:
        """What is in the drawer."""

    def close_drawer(self, drawer: str) -> None:
        """Gone afterwards. Raises Conflict if something is in it."""


def digest_of(entry: Entry) -> bytes:
    """128 bits: of 64, two files in a few billion would be taken for one, and one would be lost."""
    text = f"{entry.path}\0{entry.size_bytes}\0{entry.mtime_ns}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def lane_of(path: str, lanes: int) -> int:
    """Fixed for ever: a file that changed its lane would be read twice."""
    if lanes == 1:
        return 0
    digest = sha256(path.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % lanes
