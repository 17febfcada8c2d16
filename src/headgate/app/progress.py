"""Progress: how far the streams of an installation are, from documents alone."""

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.cluster.tasks import Task, task_key
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.roots import RootDocument, root_key, root_name
from headgate.commits.streams import StreamDocument, stream_key
from headgate.landing import StreamSettings
from headgate.landing.kind import feed_name
from headgate.landing.outlook import is_proved, lacks_marks, words_of_the_end
from headgate.landing.report import Report, report_key
from headgate.periods import HOUR_MS
from headgate.ready.closing import reached_ms
from headgate.ready.evidence import read_evidence
from headgate.store import DocumentStore
from headgate.store.changes import read

TRIES_MAX = 4  # in a row, some fifteen seconds: whoever waits is told why nothing lands


@dataclass(frozen=True, slots=True)
class ShardProgress:
    stream: str
    shard: int
    checkpoint: Checkpoint
    report: Report | None
    set_aside: str  # "": it is not; else why
    paused: str
    is_idle: bool  # everything that was there when one began to wait has landed
    stuck: str  # why it was tried in vain several times, or cannot read a file; "": neither

    @property
    def name(self) -> str:
        return f"{self.stream}/{self.shard}"

    @property
    def is_waited_for(self) -> bool:
        """Whether there is anything to come without a person."""
        return not (self.is_idle or self.set_aside or self.paused or self.stuck)


def progress_of(
    store: DocumentStore, streams: Mapping[str, StreamSettings], since_ms: int, now_ms: int
) -> list[ShardProgress]:
    """Between these wall times one waits. Raises Unavailable, Corrupt."""
    found = []
    for name, settings in streams.items():
        stream = read(store, stream_key(name), StreamDocument)
        found_stream = None if stream is None else stream.value
        paused = None if found_stream is None else found_stream.paused
        for shard in range(settings.shards):
            task = read(store, task_key(feed_name(name), shard), Task)
            aside = None if task is None else task.value.set_aside
            checkpoint = read(store, checkpoint_key(name, shard), Checkpoint)
            report = read(store, report_key(name, shard), Report)
            found.append(
                ShardProgress(
                    name,
                    shard,
                    Checkpoint() if checkpoint is None else checkpoint.value,
                    None if report is None else report.value,
                    "" if aside is None else aside.words,
                    "" if paused is None else f"paused by {paused.who}: {paused.reason}",
                    checkpoint is not None
                    and (
                        _is_idle(
                            checkpoint.value,
                            found_stream,
                            None if report is None else report.value,
                            since_ms,
                            now_ms,
                        )
                        or is_over(settings, found_stream, checkpoint.value)
                    ),
                    _stuck(None if report is None else report.value, since_ms)
                    or _unreadable(None if report is None else report.value, since_ms),
                )
            )
    return found


@dataclass(frozen=True, slots=True)
class FlagProgress:
    """Of a stream: hours that are complete, and have no flag yet."""

    stream: str
    ready_ms: int  # hours that end by then have their flags
    left: int


def flags_behind(store: DocumentStore, streams: Mapping[str, StreamSettings]) -> list[FlagProgress]:
    """How many flags follow from what has landed. Raises Unavailable, Corrupt."""
    found: list[FlagProgress] = []
    roots: dict[str, RootDocument] = {}
    for name, settings in streams.items():
        root = root_name(settings.folder)
        if root not in roots:
            kept = read(store, root_key(root), RootDocument)
            roots[root] = RootDocument() if kept is None else kept.value
        seat = roots[root].streams.get(name)
        if seat is None or seat.frontier_ms is None or seat.retired is not None:
            continue
        reach_ms = reached_ms(read_evidence(store, settings.lands), settings.allowed_lateness_ms)
        if reach_ms is not None:
            until_ms = reach_ms if seat.last_ms is None else min(reach_ms, seat.last_ms)
            left = max(0, (until_ms - seat.frontier_ms) // HOUR_MS)
            found.append(FlagProgress(name, seat.frontier_ms, left))
    return found


def is_over(
    settings: StreamSettings, stream: StreamDocument | None, checkpoint: Checkpoint
) -> bool:
    """For good: nothing more of this shard is read."""
    return checkpoint.journal is None and bool(words_of_the_end(settings, stream, checkpoint))


def _stuck(report: Report | None, since_ms: int) -> str:
    is_so = report is not None and report.tries >= TRIES_MAX and report.at_ms >= since_ms > 0
    return report.remark if report is not None and is_so else ""


def _unreadable(report: Report | None, since_ms: int) -> str:
    """Why a file does not land, if nothing else is to come."""
    if report is None or not report.at_ms >= since_ms > 0:
        return ""
    is_left = report.unreadable > 0 and report.waiting_files == 0 and report.doing == "idle"
    return report.unreadable_why if is_left else ""


def _is_idle(
    checkpoint: Checkpoint,
    stream: StreamDocument | None,
    report: Report | None,
    since_ms: int,
    now_ms: int,
) -> bool:
    if checkpoint.journal is not None or checkpoint.turn == 0:
        return False
    is_settled = report is not None and report.is_unmarked and report.at_ms >= since_ms
    if lacks_marks(checkpoint, stream) and since_ms > 0 and not is_settled:
        return False  # its hours could be flagged after one more commit
    if is_proved(checkpoint, since_ms, now_ms):
        return True
    # Files that somebody is still writing prove nothing, and nobody can land them yet.
    return (
        report is not None
        and since_ms <= report.at_ms <= now_ms
        and report.unfinished > 0
        and report.unreadable == 0
        and report.waiting_files == 0
        and report.doing == "idle"
    )
