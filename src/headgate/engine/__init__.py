"""The engine: moves records into staged files, and says what it staged. In earnest that is Spark.

    inputs of one or more shards ── stage(): one job ──▶ <folder>/shard=…/…

The engine does not know what a commit is. A job writes only below its own folder, which nobody else
has; a job that failed leaves rubbish there and nothing else. Values only: a simulation has another
engine behind the same protocol.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

Kind = Literal["data", "late", "dead", "skip"]
"""Where a row goes: on time, late, unusable; or no record at all (a blank line, a header)."""

LandAs = Literal["parquet", "avro", "json", "text"]

NO_MARK_MS = -(2**62)
"""A source partition without a watermark: nothing of it is late."""

OFFSETS_TALLIED = 10_000
"""So many offsets of a log are counted together."""


@dataclass(frozen=True, slots=True)
class SparkSettings:
    master: str = "local[*]"
    remote: str = ""  # of Spark Connect; then there is no master
    conf: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()  # none: those tested with this line of Spark, as needed
    needs: tuple[str, ...] = ()  # what of it the streams need: kafka
    stall_after_ms: int = 600_000  # a session whose jobs stand still so long is given up; 0: never


@dataclass(frozen=True, slots=True)
class EventTime:
    """How the event time is taken from a record."""

    by: Literal["json", "regex", "column", "sql", "kafka", "avro"]
    text: str  # JSON path, regular expression with one group, column name, SQL expression; of
    # kafka: `timestamp`, that of the log; of avro: a field, with dots
    unit: Literal["ms", "s", "text"] = "ms"
    pattern: str = ""  # of `text`, as Spark's to_timestamp takes it; empty: ISO 8601


@dataclass(frozen=True, slots=True)
class AvroCoding:
    """How a record is Avro."""

    place: str  # which of several that hold schemas: a file, a registry
    is_framed: bool  # a zero and the id of its schema stand before it
    is_by_id: bool  # each id has a schema of its own; else there is one, under the id 0


@dataclass(frozen=True, slots=True)
class Shape:
    """What must be equal for shards to share a job."""

    stream: str  # for people; shards of several streams may share a job of a log
    reader: str  # who makes rows of the inputs: a kind of source
    format: str  # json, csv, text, parquet, and what the reader knows besides
    columns: tuple[str, ...]  # of csv: their names; of parquet: name and type
    event_time: EventTime
    land_as: LandAs
    record_bytes_max: int
    future_skew_ms: int  # further ahead of its arrival: dead
    place: str = ""  # which of several that a reader knows: a Kafka cluster
    extras: tuple[str, ...] = ()  # what the source has beside a record, and is landed with it
    codec: str = ""  # "": the one that is usual for the format
    target_bytes: int = 128_000_000  # of a file, about
    avro: AvroCoding | None = None  # of the formats avro and dead-avro
    declared: tuple[tuple[str, str], ...] = ()  # name and type of columns that become of a record;
    # none: it lands as it came
    filters: tuple[tuple[str, str], ...] = ()  # outputs by name, each with its condition in SQL
    is_of_log: bool = False  # letters of a log that are driven in again

    @property
    def is_shared(self) -> bool:
        """Whether shards of several streams may share a job: many small topics cost one."""
        return self.reader == "kafka"


@dataclass(frozen=True, slots=True)
class InputFile:
    """One numbered file."""

    partition: str
    number: int
    path: str  # absolute, as the file system spells it
    size_bytes: int
    arrival_ms: int  # when it was first seen


@dataclass(frozen=True, slots=True)
class InputSpan:
    """Consecutive offsets of one partition of a log, half-open."""

    partition: str  # the source partition
    topic: str
    lane: int  # the partition's number in its topic
    first: int
    next: int
    seen_ms: int  # all of it had arrived by then
    record_bytes: int  # about

    @property
    def size_bytes(self) -> int:
        return (self.next - self.first) * self.record_bytes


@dataclass(frozen=True, slots=True)
class ShardInput:
    """What one shard wants to have read: files, or spans of a log."""

    label: str  # `<shard>-<epoch>`: its folder in the attempt
    files: tuple[InputFile, ...]
    marks_ms: Mapping[str, int]  # by source partition: a record is late if its hour ended by then
    spans: tuple[InputSpan, ...] = ()
    folder: str = ""  # where its files lie in the end; none: in the folder of the job, by its label

    @property
    def size_bytes(self) -> int:
        of_files = sum(file.size_bytes for file in self.files)
        return of_files + sum(span.size_bytes for span in self.spans)


@dataclass(frozen=True, slots=True)
class Job:
    shape: Shape
    folder: str  # of the attempt, below the root of the lake
    inputs: tuple[ShardInput, ...]


@dataclass(frozen=True, slots=True)
class StagedFile:
    path: str  # below the root of the lake
    label: str
    kind: Kind
    hour_ms: int | None  # None: dead or skipped
    rows: int
    output: str = ""  # "": the job has no filters, or it is dead or skipped


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of one input file, or of some offsets, of one shard; counted in what was
    staged."""

    label: str
    partition: str
    number: int  # of the file; of a log: the first of OFFSETS_TALLIED offsets
    kind: Kind
    rows: int
    line_min: int  # of a log: the offset
    line_max: int
    event_ms_max: int | None  # the latest event time, each clamped to its arrival
    event_ms_min: int | None = None  # the earliest, as it stands in the record


@dataclass(frozen=True, slots=True)
class Staged:
    files: tuple[StagedFile, ...]
    tallies: tuple[Tally, ...]


class Schemas(Protocol):
    """Avro schemas by id. Of one id there is only one for ever, so what is known stays known."""

    def known(self, place: str) -> Mapping[int, str]:
        """So far."""

    def learn(self, place: str, ids: Collection[int]) -> Mapping[int, str]:
        """Those of these that there are; the others nobody has. Raises Unavailable: nobody can tell
        now; Invalid: there is one, and we cannot use it."""


class Engine(Protocol):
    """Moves records. Safe to be called from several threads; each job has a folder of its own.

    E1  Every line of every input file becomes one row in one staged file of its shard's folder, or
        the job fails.
    E2  A row's folder says its kind and hour, and its `_headgate` column its partition, number and
        line.
        With filters, each record that is good otherwise goes to the output of the first that holds;
        if none does, it is dead.
    E3  The same inputs give the same rows, kinds and hours each time.
    E4  files and tallies are counted in what was staged, after the write.
    E5  A shard's files lie below its own folder if it has one, else below `shard=<label>` in the
        folder of the job.
    """

    def check(self, shape: Shape) -> None:
        """Whether its expressions are taken; nothing is read. Columns that stand in the files
        themselves are not known here, so a name may be one of those. Raises Invalid (an expression
        of the settings), Unavailable, JobFailed."""

    def stage(self, job: Job) -> Staged:
        """Raises Unavailable (the engine cannot be reached, no room), Invalid (an expression of the
        settings), JobFailed."""

    def close(self) -> None:
        """Closing twice is fine."""
