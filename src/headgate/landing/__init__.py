"""Landing: every record exactly once in its event-time folder.

    shard        the work of one shard: take over, recover, look, round, commit
    rounds       what to read next, and when: pure
    watermarks   what a commit may promise: pure
    jobs         one job of the engine for all shards of the same shape that are due
    names        where a commit's files lie: pure
    sweeper      staging that nobody will publish
    restaging    a journal whose files are gone, journaled again under a new number
    redrive      dead letters that are driven in again

One task kind for each stream; one task for each shard. It meets the other stages in documents and
files only.
"""

from dataclasses import dataclass, field
from typing import Literal

from headgate.engine import EventTime, LandAs
from headgate.periods import HOUR_MS, FolderTemplate
from headgate.sources import SourceSettings
from headgate.store import JsonObject

LateRecords = Literal["divert", "append", "dead-letter"]


@dataclass(frozen=True, slots=True)
class StepSettings:
    """A step of the user's own, after the files of each commit."""

    kind: str
    options: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StreamSettings:
    name: str
    source: SourceSettings
    event_time: EventTime
    folder: FolderTemplate
    land_as: LandAs = "parquet"
    shards: int = 1
    shift_ms: int = 300_000
    grace_ms: int = 30_000
    allowed_lateness_ms: int = 600_000
    future_skew_ms: int = 300_000
    late_records: LateRecords = "divert"
    first_hour_ms: int | None = None  # None: the first commit decides
    last_hour_ms: int | None = None  # start of the last hour that is expected; None: no end
    record_bytes_max: int = 16_000_000  # longer ones are dead letters
    round_bytes: int = 512_000_000  # so much waiting starts a round; no round reads more
    nodes: tuple[str, ...] = ()  # labels: only nodes that have one of them; none: any
    steps: tuple[StepSettings, ...] = ()
    is_merged: bool = False  # small files of an hour, before its flag
    target_bytes: int = 128_000_000  # of a file, about
    codec: str = ""  # "": the one that is usual for the format
    columns: tuple[tuple[str, str], ...] = ()  # name and type, of what becomes of a record; none:
    # it lands as it came

    @property
    def life(self) -> int:
        """From 1 on; more: a person let it begin anew."""
        return self.folder.life

    @property
    def word(self) -> str:
        """Its name in the settings and in folders, whichever life it is in."""
        return self.folder.word_of(self.name)

    @property
    def end_ms(self) -> int | None:
        """Of its last hour; None: it has none."""
        return None if self.last_hour_ms is None else self.last_hour_ms + HOUR_MS
