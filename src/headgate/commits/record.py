"""Record: what a commit is, for as long as the lake lives.

`_headgate/commits/<stream>/<shard>/<number>.json`: ranges, gaps, counts, every file with size and
checksum, watermarks before and after. The first step of a commit publishes it. Certificates, the
audit and the rebuilding of a lost store read records; another one under its number is Corrupt.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from headgate.lake import FileFacts
from headgate.periods import escape_name
from headgate.store.codec import Whole, parse_text, text_of

COMMITS = "_headgate/commits"
FILE_NAME: Final = re.compile(
    r"shard(\d+)-commit(\d{10,})-(\d+)\.(?:parquet|avro|(?:json|txt)(?:\.gz)?)"
)


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A file of a commit. `period` and `kind` are words to a commit; other stages know them."""

    kind: str
    period: str  # "": none
    staged: str
    published: str
    size_bytes: Whole
    checksum: str
    rows: Whole
    output: str = ""  # of the stream; "": it has none, or the file is of all of them

    @property
    def facts(self) -> FileFacts:
        return FileFacts(self.size_bytes, self.checksum)


@dataclass(frozen=True, slots=True)
class RecordRange:
    first: str
    next: str


@dataclass(frozen=True, slots=True)
class RecordGap:
    partition: str
    first: str
    next: str
    reason: str
    since: str = ""  # first and last period to which what is missing may have belonged; "": of its
    until: str = ""  # commit's files

    def concerns(self, period: str) -> bool:
        return not self.since or self.since <= period <= self.until


@dataclass(frozen=True, slots=True)
class Mark:
    """A watermark that this commit sets, and how it was reached."""

    before_ms: Whole | None
    after_ms: Whole
    by: Literal["records", "idle", "first hour", "kept"]


@dataclass(frozen=True, slots=True)
class OwnStep:
    """A step of the user's own."""

    kind: str
    body: Mapping[str, object]  # JSON


@dataclass(frozen=True, slots=True)
class Record:
    stream: str
    shard: Whole
    number: Whole
    epoch: Whole
    node: str
    made_ms: Whole  # wall time
    shift: Whole
    ranges: Mapping[str, RecordRange]
    counts: Mapping[str, Whole]  # rows by kind
    files: tuple[RecordFile, ...] = ()
    gaps: tuple[RecordGap, ...] = ()
    watermarks: Mapping[str, Mark] = field(default_factory=dict)
    steps: tuple[OwnStep, ...] = ()
    event_ms: tuple[Whole, Whole] | None = None  # the span that was seen, clamped to arrival
    replaces: Whole | None = None  # the number of a commit that was journaled and never finished
    columns: tuple[str, ...] = ()  # of its records, where a record alone does not say them: csv
    positions: Mapping[str, str] = field(default_factory=dict)  # of all source partitions of its
    # shard, after it: who looks for a commit need not read those between
    origin: Mapping[str, object] = field(default_factory=dict)  # JSON: what its source must know
    # again if the store is lost: which files it read, which life of a topic
    shards: Whole = 0  # of its stream; 0: nobody wrote it
    first_hour_ms: Whole | None = None  # of its stream, as far as it was known
    format: Literal[1] = 1


def record_folder(stream: str, shard: int) -> str:
    return f"{COMMITS}/{escape_name(stream)}/{shard}"


def record_path(stream: str, shard: int, number: int) -> str:
    return f"{record_folder(stream, shard)}/{number:010}.json"


def commit_of(name: str) -> tuple[int, int] | None:
    """Shard and number that a data file's name says; None: it is not ours."""
    found = FILE_NAME.fullmatch(name)
    return (int(found[1]), int(found[2])) if found else None


def to_bytes(record: Record) -> bytes:
    return text_of(record)


def from_bytes(raw: bytes, path: str) -> Record:
    """Raises Corrupt, naming the path."""
    return parse_text(raw, path, Record)


def facts_of(raw: bytes) -> FileFacts:
    return FileFacts(len(raw), f"sha256:{hashlib.sha256(raw).hexdigest()}")
