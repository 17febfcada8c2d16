"""Closing: which hours of a stream may be closed, and what stands in the way of one. Pure.

An hour may be closed once

    every shard    asked its source for its partitions after the hour's end plus lateness, and
    every one of those source partitions has a watermark at or past the hour's **end**.

That is asked twice: before `closing` is written, so that no source partition that is on time
becomes late by it; and again of what is read afterwards, so that none was missed. The frontier goes
on from hour to hour, empty ones too: there is no look-back window, and nothing is ever listed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, takewhile

from headgate.commits.checkpoint import Checkpoint
from headgate.commits.roots import Seat
from headgate.commits.streams import StreamDocument
from headgate.periods import Period, hours_between
from headgate.ready.evidence import Evidence

HOURS_MAX = 24  # of one stream that one pass closes


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why an hour is not closed, for whoever asks. `short_ms`: by how much; None: not known."""

    why: str
    shard: int | None = None
    partition: str = ""
    short_ms: int | None = None


def begins_ms(seat: Seat, document: StreamDocument | None) -> int | None:
    """The start of a stream's first hour in its root; None: nobody knows, so nothing is ready."""
    if document is None or document.first_hour_ms is None:
        return None
    floor_ms = document.first_hour_ms if seat.floor_ms is None else seat.floor_ms
    return max(document.first_hour_ms, floor_ms)


def closable(
    seat: Seat, evidence: Evidence, lateness_ms: int, limit: int = HOURS_MAX
) -> tuple[Period, ...]:
    """The hours from the frontier on that nothing stands in the way of, in order."""
    reach_ms = reached_ms(evidence, lateness_ms)
    if seat.frontier_ms is None or reach_ms is None:
        return ()
    until_ms = reach_ms if seat.last_ms is None else min(reach_ms, seat.last_ms)
    hours = hours_between(seat.frontier_ms, until_ms)
    whole = takewhile(lambda hour: hour.end_ms <= until_ms, hours)
    return tuple(islice(whole, limit))


def reached_ms(evidence: Evidence, lateness_ms: int) -> int | None:
    """Hours that end by then are complete; None: something is not known. Without any source
    partition the discovery itself is the proof: there was nothing to read."""
    least: list[int] = []
    for checkpoint in evidence.checkpoints:
        if checkpoint is None or not checkpoint.discovered_ms:
            return None
        least.append(checkpoint.discovered_ms - lateness_ms)
        for mark_ms in checkpoint.watermarks.values():
            if mark_ms is None:
                return None
            least.append(mark_ms)
    return min(least, default=None)


def obstacles(evidence: Evidence, hour: Period, lateness_ms: int) -> Iterator[Obstacle]:
    """Everything that stands in the way of this hour; nothing: it may be closed."""
    document = evidence.document
    if document is None or document.first_hour_ms is None:
        yield Obstacle("nothing of this stream has landed, so its first hour is not known")
        return
    for shard, checkpoint in enumerate(evidence.checkpoints):
        yield from _of_shard(shard, checkpoint, hour, lateness_ms)


def _of_shard(
    shard: int, checkpoint: Checkpoint | None, hour: Period, lateness_ms: int
) -> Iterator[Obstacle]:
    if checkpoint is None or not checkpoint.discovered_ms:
        yield Obstacle("no commit of this shard says which source partitions it has", shard)
        return
    short_ms = hour.end_ms + lateness_ms - checkpoint.discovered_ms
    if short_ms > 0:
        yield Obstacle(
            "the source was last asked for new partitions before the hour's end plus lateness",
            shard,
            short_ms=short_ms,
        )
    for partition, mark_ms in checkpoint.watermarks.items():
        if mark_ms is None:
            yield Obstacle("this source partition joined, and has no watermark", shard, partition)
        elif mark_ms < hour.end_ms:
            short_ms = hour.end_ms - mark_ms
            yield Obstacle("its watermark is before the hour's end", shard, partition, short_ms)
