"""Preview: what the next round would read, where it would write, and which hour comes next.

The source is looked at as a node does, on an overlay of the store: files get their numbers, and
topics their document, in this process only. Nothing is changed, and no Spark is started.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headgate.ambient import Ambient
from headgate.app.hours import why_not_ready
from headgate.cluster.tasks import Task, task_key
from headgate.commits.checkpoint import Checkpoint, base_after, checkpoint_key
from headgate.commits.streams import StreamDocument, stream_key
from headgate.errors import Conflict, Halted, OutcomeUnknown, Unavailable
from headgate.lake import Lake
from headgate.landing import StreamSettings
from headgate.landing.kind import feed_name
from headgate.landing.outlook import words_of_the_end
from headgate.periods import Period
from headgate.settings import Settings
from headgate.sources import Gap, Plan, Source, Waiting
from headgate.status.streams import shards_of
from headgate.status.why import Why
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.store.overlay import OverlayStore

OpenSource = Callable[[StreamSettings, int, int, DocumentStore], Source]
"""For a stream, a shard and an epoch: as a node opens it."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """What a source has for one shard, as of one look."""

    checkpoint: Checkpoint
    waiting: Waiting
    plan: Plan


@dataclass(frozen=True, slots=True)
class NextRange:
    """What would be read of one source partition."""

    partition: str
    first: str  # a position; "": the start
    next: str
    files: int
    records: int  # of a log: offsets, with its holes; 0: of files nobody knows it before reading
    size_bytes: int  # of a log: about


@dataclass(frozen=True, slots=True)
class NextRound:
    """Of one shard."""

    name: str  # STREAM/SHARD
    ranges: tuple[NextRange, ...]
    gaps: tuple[Gap, ...]
    waiting_files: int
    waiting_records: int
    waiting_bytes: int
    has_more: bool  # something waits behind this round
    stands: str  # why nothing would be read; "": it would
    unreadable: str  # why something of it cannot be read, and is left out; "": nothing is
    first: str  # what comes before: a commit that is not finished; "": nothing does
    open_hours: tuple[str, ...]  # with files, and without a flag


@dataclass(frozen=True, slots=True)
class Preview:
    stream: str
    folder: str  # where hours lie, as the settings say
    late_folder: str
    rounds: tuple[NextRound, ...]
    next_hour: Why  # the first that is not ready, of any output, and what it waits for


def look_ahead(
    stream: StreamSettings, shard: int, store: DocumentStore, open_source: OpenSource
) -> Ahead:
    """As its next holder would, and nothing is written. Raises Unavailable, Halted, Corrupt,
    Invalid."""
    found = read(store, checkpoint_key(stream.name, shard), Checkpoint)
    checkpoint = Checkpoint() if found is None else found.value
    overlay = OverlayStore(store)
    source = open_source(stream, shard, checkpoint.epoch + 1, overlay)
    positions: dict[str, str] = dict.fromkeys(source.partitions(), "")
    positions |= checkpoint.positions
    if checkpoint.journal is not None and checkpoint.restage is None:
        positions |= base_after(checkpoint, checkpoint.journal).positions
    waiting = source.look(positions)
    return Ahead(checkpoint, waiting, source.plan(positions, size_bytes_max=stream.round_bytes))


def preview(
    stream: StreamSettings,
    store: DocumentStore,
    lake: Lake,
    settings: Settings,
    open_source: OpenSource,
    ambient: Ambient,
) -> Preview:
    """Raises Unavailable (the store or the lake), Corrupt, Invalid."""
    found = read(store, stream_key(stream.name), StreamDocument)
    document = None if found is None else found.value
    rounds = tuple(
        _round(stream, shard, document, store, open_source)
        for shard in range(shards_of(stream, document))
    )
    late = "_late/" if stream.late_records == "divert" else ""
    return Preview(
        stream.name,
        stream.folder.text,
        f"{late}{stream.folder.text}" if late else stream.late_records,
        rounds,
        min(
            (
                why_not_ready(store, lake, settings, one.name, None, ambient)
                for one in stream.flagged
            ),
            key=lambda why: (why.hour is not None, why.hour or Period(0, "hour")),
        ),
    )


def _round(
    stream: StreamSettings,
    shard: int,
    document: StreamDocument | None,
    store: DocumentStore,
    open_source: OpenSource,
) -> NextRound:
    name = f"{stream.name}/{shard}"
    found = read(store, checkpoint_key(stream.name, shard), Checkpoint)
    checkpoint = Checkpoint() if found is None else found.value
    hours, journal = tuple(checkpoint.periods), checkpoint.journal
    first = "" if journal is None else f"commit {journal.number} is finished first"
    nothing = Waiting(0, 0, None)
    stands = _stands(stream, shard, document, checkpoint, store)
    try:
        ahead = look_ahead(stream, shard, store, open_source)
    except (Unavailable, Halted, Conflict, OutcomeUnknown) as error:
        return _told(name, {}, None, nothing, stands or str(error), first, hours)
    ranges = {one: _range(one, ahead.plan) for one in sorted(ahead.plan.ranges)}
    return _told(name, ranges, ahead.plan, ahead.waiting, stands, first, hours)


def _told(
    name: str,
    ranges: Mapping[str, NextRange],
    plan: Plan | None,
    waiting: Waiting,
    stands: str,
    first: str,
    hours: tuple[str, ...],
) -> NextRound:
    return NextRound(
        name,
        tuple(ranges.values()),
        () if plan is None else plan.gaps,
        waiting.files,
        waiting.records,
        waiting.size_bytes,
        plan is not None and plan.has_more,
        stands,
        waiting.why,
        first,
        hours,
    )


def _range(partition: str, plan: Plan) -> NextRange:
    span, files = plan.ranges[partition], [f for f in plan.files if f.partition == partition]
    spans = [one for one in plan.spans if one.partition == partition]
    return NextRange(
        partition,
        span.first,
        span.next,
        len(files),
        sum(one.next - one.first for one in spans),
        sum(one.size_bytes for one in files) + sum(one.size_bytes for one in spans),
    )


def _stands(
    stream: StreamSettings,
    shard: int,
    document: StreamDocument | None,
    checkpoint: Checkpoint,
    store: DocumentStore,
) -> str:
    """Why no round of it starts, for now or for good."""
    over = words_of_the_end(stream, document, checkpoint)
    if over:
        return over
    if document is not None and document.paused is not None:
        return f"paused by {document.paused.who}: {document.paused.reason}"
    task = read(store, task_key(feed_name(stream.name), shard), Task)
    aside = None if task is None else task.value.set_aside
    return "" if aside is None else f"set aside: {aside.words}"
