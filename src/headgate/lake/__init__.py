"""The lake: files below one root, staged where nobody looks and then moved to their fixed names.

    staged ── sealed: its size and checksum are known, it survives a power cut ──▶ sealed
           ── publish: moved, never onto something ──▶ published

Everything that later stages trust rests on `publish` consuming what was staged: whoever wakes up
late finds nothing to publish. A path is text below the root, plain names joined by `/` (`paths`);
what is made from data or names cannot leave the root. Every backend passes the same suite
(`headgate.testing.LakeContract`), whose tests carry the numbers below.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol

READ_BYTES_MAX = 256_000_000
"""Of one small file (a commit record, a page of the ledger) that is read whole."""

LIST_MAX = 10_000
"""Entries of one page of a listing."""


REQUESTS_MAX = 32
"""At once, of one node to an object store."""


@dataclass(frozen=True, slots=True)
class BucketSettings:
    """How the bucket of an object store is reached. A secret is a reference, or looked up where
    everybody looks."""

    endpoint: str = ""  # "": Amazon's own
    region: str = ""  # "": by the surroundings, else us-east-1
    is_path_style: bool = True  # the bucket stands in the path, not in the name of the host
    access_key: str = ""  # "": by the surroundings, as is the next one
    secret_key: str = ""
    session_token: str = ""
    requests_max: int = REQUESTS_MAX


@dataclass(frozen=True, slots=True)
class LakeSettings:
    root: str  # a path or a URL
    file_mode: int | None = None  # as in chmod; None: as the system does
    folder_mode: int | None = None
    group: str = ""  # "": as the system does
    bucket: BucketSettings = field(default_factory=BucketSettings)


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What a file is, wherever it lies."""

    size_bytes: int
    checksum: str  # with its algorithm: `sha256:…`; each lake has its own


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or a folder in a listing."""

    path: str
    size_bytes: int  # 0 of a folder
    is_folder: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    entries: tuple[Entry, ...]
    next_after: str | None  # `after` of the next call; None: this was the last page


class Move(Protocol):
    """A staged file, what it is, and the name that it is to get."""

    @property
    def staged(self) -> str: ...

    @property
    def published(self) -> str: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def checksum(self) -> str: ...


class Lake(Protocol):
    """Files below one root.

    L1  A path that leaves the root, by `..`, an absolute name or a link, is refused as Invalid,
        before anything is done.
    L2  publish() moves: afterwards the file is at `published` and nothing is at `staged`. It never
        replaces anything; of several at once, exactly one does.
    L3  What seal() was told is unchanged after a power cut, and so is, once settle() returned, what
        was published, staged or removed in those folders.
    L4  facts() are those of the bytes that are there now, also if somebody changed them.
    L5  A reader never sees a part of a published file.
    L6  list() gives what is in one folder, in the order of the names' code points, page by page.
        What is there during the whole listing is in it, once.
    L7  Removing what is not there is fine, and concerns nothing else.
    L8  append() adds whole lines behind what is there; of several at once, none is lost or mixed.
    L9  Mode and group, where the lake has them, are set before the publish, on files and folders.
    L10 Not enough room, no permission, a disk that is gone: Unavailable, naming path and reason,
        and nothing is done. An outcome that cannot be known is OutcomeUnknown.
    L11 publish_all() publishes only what is staged with that size and checksum, each as publish()
        does. True of one: both names were looked at afterwards, the staged one first; nothing is
        there, and this very file is at the other. False says nothing.

    L12 open() gives the bytes of one file, any part of them, also if it is replaced meanwhile or
        then fails.

    All methods may be called from several threads.
    """

    @property
    def url(self) -> str:
        """The root, as Spark takes it: with scheme, without a slash at the end."""

    def stage(self, path: str, content: bytes) -> FileFacts:
        """Writes a small file, sealed. One that is there is replaced: nobody looks there. Raises
        Invalid, Unavailable, OutcomeUnknown."""

    def seal(self, paths: Sequence[str]) -> tuple[FileFacts, ...]:
        """Of files that somebody else wrote: they survive a power cut, have their mode and group,
        and this is what they are. In the same order. Raises Unavailable (also: one is missing)."""

    def facts(self, path: str) -> FileFacts | None:
        """None: there is nothing. Raises Unavailable, Corrupt (something else than a file)."""

    def publish(self, staged: str, published: str) -> None:
        """Raises Conflict (something is at `published`; nothing was done), Unavailable (nothing was
        done; also: nothing is at `staged`), OutcomeUnknown."""

    def publish_all(self, moves: Sequence[Move]) -> tuple[bool, ...]:
        """Many at once, which takes a fraction of the time. Whatever stands in the way of one is no
        error and does not concern the others: ask facts() of each that is False. Raises Invalid,
        OutcomeUnknown."""

    def settle(self, folders: Sequence[str]) -> None:
        """What was done in these folders, and they themselves, survive a power cut."""

    def read(self, path: str, size_bytes_max: int = READ_BYTES_MAX) -> bytes | None:
        """None: there is nothing. Raises Unavailable, Invalid (larger than that)."""

    def open(self, path: str) -> BinaryIO:
        """For any part of a file of any size, in any order; close it. Raises Unavailable (also:
        there is nothing), and OSError while it is read."""

    def list(self, folder: str, *, after: str = "", limit: int = LIST_MAX) -> Listing:
        """What is in this folder, from behind the name `after`; nothing if there is no folder."""

    def remove(self, path: str, facts: FileFacts) -> None:
        """Exactly this file: Conflict if something else is there. Raises Unavailable,
        OutcomeUnknown."""

    def remove_folder(self, folder: str) -> None:
        """With everything in it. Only below `_headgate/staging`: Invalid elsewhere. Raises
        Unavailable, OutcomeUnknown."""

    def append(self, path: str, lines: Sequence[str]) -> None:
        """For the ledger. Raises Unavailable, OutcomeUnknown."""
