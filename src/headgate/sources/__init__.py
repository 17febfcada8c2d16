"""Sources: where records come from, cut into ranges.

    partitions ── look ──▶ what waits ── plan: a range for each ──▶ read by the engine
               ── confirm: still the same? ──▶ intent … fact ── settle: keep, move or delete

A source partition is independently ordered: a lane of files, a Kafka partition, a queue. Its
position is where to go on; it means something to its source only. One instance belongs to one
holder of one shard: what it writes carries that epoch. Every kind of source passes the same suite
(`headgate.testing.SourceContract`), whose tests carry the numbers below.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from headgate.engine import AvroCoding, InputFile, InputSpan, Tally


@dataclass(frozen=True, slots=True)
class FilesSettings:
    """A folder into which somebody drops files."""

    path: str  # absolute
    format: Literal["json", "csv", "text", "parquet", "dead"] = "json"  # dead: our own letters
    lanes: int = 1
    include: tuple[str, ...] = ()  # patterns for the path below the folder; none: everything
    exclude: tuple[str, ...] = ()
    min_age_ms: int = 0  # younger files are left alone
    after_read: Literal["keep", "move", "delete"] = "keep"
    move_to: str = ""  # absolute
    columns: tuple[str, ...] = ()  # of csv without a header line; none: the first line says them
    prefix: str = "lane"  # of the names of its source partitions

    @property
    def words(self) -> str:
        """Where it is, for people."""
        return self.path


@dataclass(frozen=True, slots=True)
class AvroSettings:
    """Where the schemas of Avro records are: in a file, or in a registry by their ids."""

    schema: str = ""  # absolute; of all records
    registry: str = ""  # a URL; then each id has its own
    is_framed: bool = False  # a zero byte and the id of its schema stand before each record
    user: str = ""  # of the registry, as all of the next
    password: str = ""  # a reference
    token: str = ""  # a reference
    ca: str = ""  # absolute; certificates to trust

    @property
    def coding(self) -> AvroCoding:
        """No secret is in it."""
        told = (self.registry, self.user, self.password, self.token, self.ca)
        place = self.schema or hashlib.sha256(repr(told).encode()).hexdigest()[:16]
        return AvroCoding(place, self.is_framed, not self.schema)


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """Topics of a Kafka cluster."""

    brokers: str  # host:port, with commas
    topics: tuple[str, ...]
    pattern: str = ""  # of topics that become streams of their own; then there are no others
    format: Literal["json", "text", "binary", "avro"] = "json"  # of the value
    start: Literal["beginning", "end", "time"] = "beginning"
    start_ms: int | None = None  # of `time`
    out_of_range: Literal["fail", "earliest", "latest"] = "fail"
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    options: Mapping[str, str] = field(default_factory=dict)  # of the client; secrets by reference
    spark_options: Mapping[str, str] = field(default_factory=dict)  # of Spark's Kafka client
    land: tuple[Literal["key", "headers", "timestamp"], ...] = ()  # beside the value
    records_max: int = 10_000_000  # of one round
    records_per_s: int = 0  # 0: as fast as it goes
    avro: AvroSettings | None = None  # of the format avro

    @property
    def words(self) -> str:
        return f"kafka {self.brokers} {', '.join(self.topics) or self.pattern}"

    @property
    def coding(self) -> AvroCoding | None:
        return None if self.avro is None else self.avro.coding

    @property
    def place(self) -> str:
        """The same for streams that are read from one cluster in one way; no secret is in it."""
        told = (self.brokers, sorted(self.options.items()), sorted(self.spark_options.items()))
        return hashlib.sha256(repr((*told, self.isolation)).encode()).hexdigest()[:16]


SourceSettings = FilesSettings | KafkaSettings


@dataclass(frozen=True, slots=True)
class Range:
    """Half-open, of one source partition."""

    first: str  # a position; "" is the start
    next: str


@dataclass(frozen=True, slots=True)
class Gap:
    """A range that the source no longer has; on record with the reason."""

    partition: str
    first: str
    next: str
    reason: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """What has not been read, as of one look."""

    files: int
    size_bytes: int
    oldest_ms: int | None  # when the oldest of it was first seen
    unfinished: int = 0  # still being written, or too young
    unreadable: int = 0  # complete, and yet not to be read: a person must look
    why: str = ""  # of the first that is unreadable, with what to do
    records: int = 0  # of a log, with its holes
    expires_ms: Mapping[str, int] = field(default_factory=dict)  # by source partition: when the
    # next record to read will be gone at the source
    is_held_back: bool = False  # by a limit of the settings, for now

    @property
    def is_any(self) -> bool:
        return self.files > 0 or self.records > 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What to read next. Reading it twice gives the same records, or confirm() says otherwise."""

    reader: str
    format: str
    columns: tuple[str, ...]
    ranges: Mapping[str, Range]  # only of source partitions that have something
    files: tuple[InputFile, ...]
    gaps: tuple[Gap, ...]
    ends_ms: Mapping[str, int]  # partitions that this plan reads to the end, and when that was seen
    has_more: bool  # something waits behind this plan
    spans: tuple[InputSpan, ...] = ()  # of a log, instead of files
    origin: Mapping[str, object] = field(default_factory=dict)  # JSON, for the commit record: what
    # this source must know again of it if the store is lost

    @property
    def is_empty(self) -> bool:
        return not self.ranges

    @property
    def has_input(self) -> bool:
        """Something is to be read; else only positions move."""
        return bool(self.files or self.spans)

    @property
    def words(self) -> str:
        """What is read, for people."""
        if self.spans:
            return f"{sum(one.next - one.first for one in self.spans):,} offsets"
        return f"{len(self.files):,} files" if self.files else "no records"


class Source(Protocol):
    """The source of one shard.

    C1  partitions() are all that belong to this shard. One that was there stays, unless it is gone
        at the source.
    C2  The same range gives the same files, whoever asks and however often, from any instance.
    C3  Ranges start where the position is and join without a hole; what is no longer there is a gap
        in the plan, with its reason.
    C4  Everything that is complete at the source gets into a range once, and only once.
    C5  A partition is in ends_ms only if nothing of it was waiting, unfinished or unreadable; the
        time was taken before that was looked at.
    C6  confirm() raises Conflict if what was planned is not what is there now.
    C7  settle() does what the settings say to exactly what was read, and to nothing else. Done
        twice, interrupted or late, it ends the same.
    C8  What is waiting costs neither memory nor documents without bound.
    C9  An older holder's instance changes nothing: Fenced.
    """

    def partitions(self) -> tuple[str, ...]:
        """Raises Unavailable."""

    def look(self, positions: Mapping[str, str]) -> Waiting:
        """Looks at the source, and remembers it for plan(). Raises Unavailable, OutcomeUnknown,
        Conflict, Fenced."""

    def plan(
        self, positions: Mapping[str, str], *, size_bytes_max: int, until: Mapping[str, str] = {}
    ) -> Plan:
        """From these positions, as of the last look; at least one file or record if anything waits
        and is not held back. `until`: exactly to there, for who must read a range again. Raises
        Unavailable."""

    def confirm(self, plan: Plan) -> None:
        """After the read, before the intent. Raises Conflict (plan again), Unavailable."""

    def reconcile(self, plan: Plan, tallies: Sequence[Tally]) -> None:
        """Raises Corrupt: what was read is not what was planned; Unavailable."""

    def settle(self, positions: Mapping[str, str]) -> None:
        """What lies before these positions is in the lake: do with it what the settings say. Raises
        Unavailable, OutcomeUnknown, Fenced."""
