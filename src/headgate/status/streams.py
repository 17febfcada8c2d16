"""Streams: how far each stream is, and what stands still and why. Values, read-only.

What waits is what a shard's holder last said of it; what landed is what the checkpoint says. A
proof that nothing waits (the checkpoint read to the end) outlives an older report. Of the lake only
the record of a commit with gaps is read, by its name, while those are news.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.roots import Merging, root_name
from headgate.commits.streams import STREAMS, StreamDocument
from headgate.errors import Corrupt
from headgate.lake import Lake
from headgate.landing import StreamSettings
from headgate.landing.kind import feed_name
from headgate.landing.outlook import words_of_the_end
from headgate.landing.report import Report, report_key
from headgate.status.fleet import ClusterStatus
from headgate.status.missing import Missing, read_missing
from headgate.status.overall import RootStatus, left_seats, overall, read_roots, vanished
from headgate.status.still import (
    NO_NODE,
    NOT_BEGUN,
    Advice,
    ShardFacts,
    Standing,
    left_of,
    standing_of,
)
from headgate.store import Damaged, DocumentStore, JsonObject
from headgate.store.changes import read
from headgate.store.codec import parse
from headgate.store.names import parts
from headgate.store.pages import pages

V = TypeVar("V")

NOT_STARTED = "not started"  # no node has it as a task yet


@dataclass(frozen=True, slots=True)
class Lag:
    """What has not landed, as of a moment."""

    files: int
    size_bytes: int
    oldest_ms: int | None  # age of the oldest that waits
    unfinished: int
    unreadable: int  # files that a person must look at
    age_ms: int  # since it was seen
    is_now: bool  # whoever holds the shard says so
    records: int = 0  # of a log, with its holes


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    name: str
    position: str
    watermark_ms: int | None  # None: it has none yet
    left_ms: int | None = None  # so long the next record to read is still at the source; below
    # zero: it may be gone; None: nothing waits, or nobody knows


@dataclass(frozen=True, slots=True)
class ShardStatus:
    name: str  # STREAM/SHARD
    stream: str
    shard: int
    condition: str  # in progress, free, set aside, not started
    node: str | None  # of its holder
    doing: str  # in words
    lag: Lag | None  # None: nobody has looked
    watermark_ms: int | None
    commits: int
    rows: int  # landed, late and dead, of all commits
    landed: int  # on time
    late: int
    dead: int
    gaps: int  # in what the source had
    hours: int  # with files
    committed_ms: int | None  # wall time of the last commit
    journal: int | None  # the number of a commit that is not finished
    partitions: tuple[PartitionStatus, ...]
    is_silent: bool = False  # its holder missed a renewal, and seems to be gone
    free_ms: int | None = None  # then: the wall time when that session ends
    due_ms: int | None = None  # wall time by which its holder commits: the end of the shift
    missing: Missing | None = None  # the gaps that were found last, while they are news

    @property
    def is_at_rest(self) -> bool:
        """Nothing is to be done, as far as anybody saw; what is unfinished cannot land yet."""
        if self.journal is not None or self.lag is None:
            return self.journal is None and self.condition == NOT_STARTED
        return self.lag.files == 0


@dataclass(frozen=True, slots=True)
class StreamStatus:
    name: str
    is_in_settings: bool
    paused: str  # "": it is not; else by whom and why
    first_hour_ms: int | None
    shards: tuple[ShardStatus, ...]
    standing: tuple[Standing, ...]
    ended: str = ""  # it goes on; else that it is over, by its last hour or by whom

    @property
    def lag(self) -> Lag | None:
        """Of all shards that somebody has looked at."""
        known = [shard.lag for shard in self.shards if shard.lag is not None]
        if not known:
            return None
        return Lag(
            sum(lag.files for lag in known),
            sum(lag.size_bytes for lag in known),
            max((lag.oldest_ms for lag in known if lag.oldest_ms is not None), default=None),
            sum(lag.unfinished for lag in known),
            sum(lag.unreadable for lag in known),
            max(lag.age_ms for lag in known),
            all(lag.is_now for lag in known),
            sum(lag.records for lag in known),
        )

    @property
    def is_at_rest(self) -> bool:
        """Nothing is to be done, as far as anybody saw, or a person does not want it done."""
        is_over = bool(self.paused or self.ended)
        return all(one.is_at_rest or (is_over and one.journal is None) for one in self.shards)

    @property
    def is_held(self) -> bool:
        """By a node that was heard of."""
        return any(one.node is not None and not one.is_silent for one in self.shards)

    @property
    def watermark_ms(self) -> int | None:
        """Of the slowest source partition; None: one has none yet."""
        return _slowest([one for shard in self.shards for one in shard.partitions])

    @property
    def due_ms(self) -> int | None:
        """The next commit of any shard; None: no holder said so."""
        return min((one.due_ms for one in self.shards if one.due_ms is not None), default=None)

    @property
    def left_ms(self) -> int | None:
        """Of the source partition that loses records first; None: of none it is known."""
        known = [one.left_ms for shard in self.shards for one in shard.partitions]
        return min((one for one in known if one is not None), default=None)

    @property
    def commits(self) -> int:
        return sum(shard.commits for shard in self.shards)

    @property
    def rows(self) -> int:
        return sum(shard.rows for shard in self.shards)

    @property
    def landed(self) -> int:
        """On time; late and dead ones are counted for themselves."""
        return sum(shard.landed for shard in self.shards)

    @property
    def late(self) -> int:
        return sum(shard.late for shard in self.shards)

    @property
    def dead(self) -> int:
        return sum(shard.dead for shard in self.shards)

    @property
    def gaps(self) -> int:
        return sum(shard.gaps for shard in self.shards)

    @property
    def hours(self) -> int:
        return max((shard.hours for shard in self.shards), default=0)

    @property
    def committed_ms(self) -> int | None:
        return max((one.committed_ms for one in self.shards if one.committed_ms), default=None)


@dataclass(frozen=True, slots=True)
class StreamsStatus:
    streams: tuple[StreamStatus, ...]
    damaged: tuple[Damaged, ...] = ()
    roots: tuple[RootStatus, ...] = ()  # whose flags roll up

    @property
    def words_at_rest(self) -> str:
        """If no node runs, and none is needed."""
        known = [one.lag for one in self.streams if one.paused]
        is_any = any(lag is not None and (lag.files or lag.records) for lag in known)
        what = "what waits is paused" if is_any else "nothing waits"
        return f"no node is running, and {what}"

    @property
    def is_healthy(self) -> bool:
        standing = [one for stream in self.streams for one in stream.standing]
        return not self.damaged and not any(one.is_for_a_person for one in standing)


def known_streams(
    store: DocumentStore, settings: Mapping[str, StreamSettings]
) -> tuple[dict[str, StreamDocument | None], list[Damaged]]:
    """Those of the settings, then those that only the store has; of some of these there is only a
    seat in a root. Raises Unavailable."""
    found: dict[str, StreamDocument | None] = dict.fromkeys(settings)
    damaged: list[Damaged] = []
    for page in pages(store, STREAMS):
        damaged += page.damaged
        for document in page.documents:
            try:
                found[parts(document.key)[-1]] = parse(document, StreamDocument)
            except Corrupt as error:
                damaged.append(Damaged(document.key, document.key, str(error)))
    outputs = {face.name for one in settings.values() for face in one.flagged if face.of}
    for root in read_roots(store, settings, damaged).values():
        for name in root.streams:
            if name not in outputs:
                found.setdefault(name, None)
    return found, damaged


def read_streams(
    store: DocumentStore,
    settings: Mapping[str, StreamSettings],
    cluster: ClusterStatus,
    only: str | None = None,
    lake: Lake | None = None,
) -> StreamsStatus:
    """`lake`: None: it is not there, or nobody needs to know which gaps there are. Raises
    Unavailable."""
    known, damaged = known_streams(store, settings)
    tasks = {task.name: task for task in cluster.tasks}
    roots = read_roots(store, settings, [])
    own_of = {
        root: [
            face.name
            for one in settings.values()
            if root_name(one.folder) == root
            for face in one.flagged
        ]
        for root in roots
    }
    left: dict[str, list[Standing]] = {}
    for root, found_root in roots.items():
        for name in left_seats(found_root, own_of[root]):
            others = [*own_of[root], name]
            left.setdefault(name, []).append(vanished(name, found_root, others))
    found = []
    for name, document in known.items():
        if only not in (None, name):
            continue
        own = settings.get(name)
        of_own = None if own is None or not own.is_merged else roots.get(root_name(own.folder))
        every = () if of_own is None or own is None else own.flagged
        merges = (None if of_own is None else of_own.merging.get(one.name) for one in every)
        merging = next((one for one in merges if one is not None), None)
        shards = []
        for shard in range(shards_of(own, document)):
            checkpoint = _read(store, checkpoint_key(name, shard), Checkpoint, damaged)
            shards.append(
                ShardFacts(
                    f"{name}/{shard}",
                    tasks.get(f"{feed_name(name)}/{shard}"),
                    checkpoint,
                    _read(store, report_key(name, shard), Report, damaged),
                    read_missing(lake, name, shard, checkpoint, cluster.at_ms),
                )
            )
        found.append(compose(name, own, document, shards, cluster, left.get(name, []), merging))
    of_roots = tuple(overall(root, one, own_of[root]) for root, one in roots.items())
    return StreamsStatus(tuple(found), tuple(damaged), of_roots)


def compose(
    name: str,
    settings: StreamSettings | None,
    document: StreamDocument | None,
    shards: Sequence[ShardFacts],
    cluster: ClusterStatus,
    left: Sequence[Standing] = (),
    merging: Merging | None = None,
) -> StreamStatus:
    """Values in, values out. `left`: of seats that it has in roots where the settings do not have
    it."""
    pause = None if document is None else document.paused
    return StreamStatus(
        name,
        settings is not None,
        "" if pause is None else f"paused by {pause.who}: {pause.reason}",
        None if document is None else document.first_hour_ms,
        tuple(_shard(name, number, facts, cluster.at_ms) for number, facts in enumerate(shards)),
        (*left, *_besides(left, standing_of(name, settings, document, shards, cluster, merging))),
        _ended(settings, document, shards),
    )


def _besides(left: Sequence[Standing], standing: Sequence[Standing]) -> list[Standing]:
    """That no node has what is in no settings is no news."""
    return [one for one in standing if not left or one.kind not in (NO_NODE, NOT_BEGUN)]


def _ended(
    settings: StreamSettings | None, document: StreamDocument | None, shards: Sequence[ShardFacts]
) -> str:
    if document is not None and document.retired is not None:
        return f"retired by {document.retired.who}: {document.retired.reason}"
    checkpoints = [one.checkpoint for one in shards]
    if settings is None or not shards or None in checkpoints:
        return ""
    words = {words_of_the_end(settings, document, one) for one in checkpoints if one is not None}
    return "" if "" in words else min(words)


def shards_of(settings: StreamSettings | None, document: StreamDocument | None) -> int:
    """How many there are: fixed once the stream has begun."""
    if document is not None:
        return document.shards
    return 0 if settings is None else settings.shards


def as_json(stream: StreamStatus, command: Callable[[Advice], str]) -> JsonObject:
    """Every field, for programs."""
    lag = stream.lag
    standing = [
        {
            "kind": one.kind,
            "subject": one.subject,
            "words": one.words,
            "meaning": one.meaning,
            "is_for_a_person": one.is_for_a_person,
            "next": None if one.advice is None else command(one.advice),
        }
        for one in stream.standing
    ]
    return {
        **asdict(stream),
        "lag": None if lag is None else asdict(lag),
        "watermark_ms": stream.watermark_ms,
        "left_ms": stream.left_ms,
        "commits": stream.commits,
        "rows": stream.rows,
        "landed": stream.landed,
        "late": stream.late,
        "dead": stream.dead,
        "gaps": stream.gaps,
        "hours": stream.hours,
        "committed_ms": stream.committed_ms,
        "due_ms": stream.due_ms,
        "standing": standing,
    }


def _shard(stream: str, number: int, facts: ShardFacts, at_ms: int) -> ShardStatus:
    checkpoint = facts.checkpoint or Checkpoint()
    journal = checkpoint.journal
    left_ms = left_of(facts, at_ms)
    partitions = tuple(
        PartitionStatus(name, position, checkpoint.watermarks.get(name), left_ms.get(name))
        for name, position in checkpoint.positions.items()
    )
    task, report = facts.task, facts.report
    is_silent = task is not None and task.condition == "in progress" and task.is_silent
    silent_ms = task.left_ms if task is not None and is_silent else None
    return ShardStatus(
        name=facts.name,
        stream=stream,
        shard=number,
        condition=NOT_STARTED if task is None else task.condition,
        node=None if task is None or task.condition != "in progress" else task.node,
        doing=report.doing if report is not None and facts.is_reported_now else "",
        lag=_lag(facts, at_ms),
        watermark_ms=_slowest(partitions),
        commits=checkpoint.number - (journal is not None),
        rows=checkpoint.rows,
        landed=checkpoint.counts.get("data", 0),
        late=checkpoint.counts.get("late", 0),
        dead=checkpoint.counts.get("dead", 0),
        gaps=checkpoint.counts.get("gaps", 0),
        hours=len(checkpoint.periods),
        committed_ms=checkpoint.committed_ms or None,
        journal=None if journal is None else journal.number,
        partitions=partitions,
        is_silent=is_silent,
        free_ms=None if silent_ms is None else at_ms + silent_ms,
        due_ms=report.due_ms if report is not None and facts.is_reported_now else None,
        missing=facts.missing,
    )


def _lag(facts: ShardFacts, at_ms: int) -> Lag | None:
    report, proved_ms = facts.report, facts.proved_ms(at_ms)
    if proved_ms is not None:
        return Lag(0, 0, None, 0, 0, max(0, at_ms - proved_ms), is_now=facts.is_reported_now)
    if report is None:
        return None
    return Lag(
        report.waiting_files,
        report.waiting_bytes,
        None if report.oldest_ms is None else max(0, at_ms - report.oldest_ms),
        report.unfinished,
        report.unreadable,
        max(0, at_ms - report.at_ms),
        is_now=facts.is_reported_now,
        records=report.waiting_records,
    )


def _slowest(partitions: Sequence[PartitionStatus]) -> int | None:
    marks = [one.watermark_ms for one in partitions]
    known = [mark for mark in marks if mark is not None]
    return min(known) if known and len(known) == len(marks) else None


def _read(store: DocumentStore, key: str, kind: type[V], damaged: list[Damaged]) -> V | None:
    """What is damaged concerns only itself."""
    try:
        found = read(store, key, kind)
    except Corrupt as error:
        damaged.append(Damaged(key, key, str(error)))
        return None
    return None if found is None else found.value
