"""Ready: says when an hour is complete, and proves it: a flag is a certificate.

    evidence      what store and settings say of a stream, read at one moment
    closing       which hours may be closed, and what stands in the way of one: pure
    certifying    from the records of an hour's commits to its certificate
    grouping      which small files of an hour become one: pure
    merging       those files, merged before the certificate is frozen
    propagation   which parents may be flagged, and which flags a withdrawal concerns: pure
    archive       the certificates of all generations, where nobody tidies up
    freezing      from certificates to the journal that will raise their flags
    flagging      the effects: flags are raised and withdrawn as a journal says
    root          one holder's time with a root's document
    work          the work of one root: take over, finish the journal, one bounded pass
    repair        flags that a person or a cleaner deleted, from their certificates

One task kind, one task for each root. It meets the other stages in documents and files only.
"""

from dataclasses import dataclass
from typing import Final

from headgate.periods import FolderTemplate

MERGE_TRIES_MAX: Final = 3  # that are begun for one hour; then it is flagged as it is


@dataclass(frozen=True, slots=True)
class ReadyStream:
    """What ready needs to know of a stream's settings."""

    name: str
    folder: FolderTemplate
    allowed_lateness_ms: int = 600_000
    last_hour_ms: int | None = None  # start of the last hour that is expected; None: no end
    merge_bytes: int | None = None  # smaller files of an hour become about as large; None: none do
    of: str = ""  # of an output: the stream whose commits and watermarks count for it

    @property
    def lands(self) -> str:
        """The stream whose commits have its files."""
        return self.of or self.name


@dataclass(frozen=True, slots=True)
class RootSettings:
    """Streams whose hours have one folder above them (`commits.roots.root_name`)."""

    name: str
    streams: tuple[ReadyStream, ...]
    nodes: tuple[str, ...] = ()  # labels: only nodes that have one of them; none: any

    @property
    def folder(self) -> FolderTemplate:
        """Of any of its streams: their parents are the same."""
        return self.streams[0].folder

    def stream(self, name: str) -> ReadyStream | None:
        return next((one for one in self.streams if one.name == name), None)
