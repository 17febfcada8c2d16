"""Results: what a run of a node came to, as values. Told from documents and commit records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from headgate.app.hours import ready_until
from headgate.app.progress import ShardProgress, progress_of
from headgate.commits.replay import read_record
from headgate.lake import Lake
from headgate.node import Ending
from headgate.settings import Settings
from headgate.status.tables import TableStatus
from headgate.store import DocumentStore


@dataclass(frozen=True, slots=True)
class StreamResult:
    """What a stream has in the lake after a run, from all of its commits in this run."""

    name: str
    landed: int
    late: int
    dead: int
    gaps: int
    commits: int
    watermark_ms: int | None  # of the slowest source partition; None: one has none yet
    stands_still: tuple[str, ...]  # shards that nobody works on, and why
    ready_until: datetime | None  # every hour that ends by then has its flag; None: none has


@dataclass(frozen=True, slots=True)
class RunResult:
    streams: Mapping[str, StreamResult]
    tables: Mapping[str, TableStatus]
    is_idle: bool  # everything that was there at the start has landed
    ending: Ending

    def ready_until(self, stream: str) -> datetime | None:
        """Every hour of the stream that ends by then is complete; None: none is."""
        return self.streams[stream].ready_until


Counts = dict[str, dict[int, int]]
"""By stream and shard: the number of the last commit."""


def counts_of(store: DocumentStore, settings: Settings) -> Counts:
    """Raises Unavailable, Corrupt."""
    found: Counts = {}
    for one in progress_of(store, settings.streams, 0, 0):
        last = one.checkpoint.number - (one.checkpoint.journal is not None)
        found.setdefault(one.stream, {})[one.shard] = last
    return found


def results_of(
    store: DocumentStore,
    lake: Lake,
    settings: Settings,
    before: Counts,
    after: Sequence[ShardProgress],
) -> dict[str, StreamResult]:
    """Raises Unavailable, Corrupt."""
    return {
        name: _result(
            name,
            lake,
            before[name],
            [one for one in after if one.stream == name],
            ready_until(store, stream),
        )
        for name, stream in settings.streams.items()
    }


def _result(
    name: str,
    lake: Lake,
    before: Mapping[int, int],
    shards: Sequence[ShardProgress],
    ready: datetime | None,
) -> StreamResult:
    rows = {"data": 0, "late": 0, "dead": 0}
    gaps = commits = 0
    marks: list[int | None] = []
    for shard in shards:
        last = shard.checkpoint.number - (shard.checkpoint.journal is not None)
        numbers = range(before[shard.shard] + 1, last + 1)
        found = [read_record(lake, name, shard.shard, number) for number in numbers]
        made = [record for record in found if record is not None]
        replaced = {record.replaces for record in made}
        for record in made:
            if record.number in replaced:
                continue  # it was never finished, and its range is in a later one
            commits += 1
            gaps += len(record.gaps)
            for kind in rows:
                rows[kind] += record.counts.get(kind, 0)
        marks += shard.checkpoint.watermarks.values()
    known = [mark for mark in marks if mark is not None]
    return StreamResult(
        name,
        rows["data"],
        rows["late"],
        rows["dead"],
        gaps,
        commits,
        min(known) if known and len(known) == len(marks) else None,
        tuple(
            f"{one.name}: {why}"
            for one in shards
            if (why := one.set_aside or one.paused or one.stuck)
        ),
        ready,
    )
