"""Watermark: what a commit may promise of each source partition. Values in, values out.

Nothing earlier in event time is still to come. It rests on records (the highest event time, each
clamped to its arrival, less the allowed lateness) or on a proof that there is nothing more (the
time of that proof, less the same). It never moves back.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from headgate.commits.record import Mark
from headgate.engine import Tally
from headgate.periods import HOUR_MS, aligned

FIRST_HOURS_MS = 48 * HOUR_MS  # one record of 1970 must not make half a million empty hours
COMMIT_HOURS_MIN = 1_000  # that a commit may have beyond that
OPEN_HOURS_MOST = 20_000  # what a checkpoint holds for sure
OPEN_HOURS_MAX = 15_000  # that one commit may open: a checkpoint holds about 21,000


def marks_after(
    before: Mapping[str, int | None],
    tallies: Sequence[Tally],
    ends_ms: Mapping[str, int],
    *,
    lateness_ms: int,
    floor_ms: int | None,
    is_clock_trusted: bool,
) -> dict[str, Mark]:
    """The watermark of each source partition that has one after the commit.

    `floor_ms`: no first watermark is lower: the stream's first hour, or what is being closed. With
    a clock that is not trusted none moves: arrivals and proofs are told by it.
    """
    highest: dict[str, int] = {}
    for tally in tallies:
        if tally.event_ms_max is not None and tally.kind in ("data", "late"):
            seen_ms = highest.get(tally.partition, tally.event_ms_max)
            highest[tally.partition] = max(seen_ms, tally.event_ms_max)
    found: dict[str, Mark] = {}
    for partition, old_ms in before.items():
        mark = _mark_after(
            old_ms,
            highest.get(partition) if is_clock_trusted else None,
            ends_ms.get(partition) if is_clock_trusted else None,
            lateness_ms,
            floor_ms,
        )
        if mark is not None:
            found[partition] = mark
    return found


def _mark_after(
    old_ms: int | None,
    highest_ms: int | None,
    end_ms: int | None,
    lateness_ms: int,
    floor_ms: int | None,
) -> Mark | None:
    best: Mark | None = None if old_ms is None else Mark(old_ms, old_ms, "kept")
    if highest_ms is not None and (best is None or highest_ms - lateness_ms > best.after_ms):
        best = Mark(old_ms, highest_ms - lateness_ms, "records")
    if end_ms is not None and (best is None or end_ms - lateness_ms > best.after_ms):
        best = Mark(old_ms, end_ms - lateness_ms, "idle")
    is_first = old_ms is None and best is not None
    if is_first and floor_ms is not None and best is not None and floor_ms > best.after_ms:
        return Mark(None, floor_ms, "first hour")
    return best


def first_hour(hours_ms: Iterable[int], highest_ms: int) -> int | None:
    """Of a stream, from its first commit: the earliest hour with data that is neither absurdly old
    nor ahead of every arrival (`highest_ms` is clamped to them)."""
    last_ms = aligned(highest_ms, HOUR_MS)
    least_ms = last_ms - FIRST_HOURS_MS
    return min((one for one in hours_ms if least_ms <= one <= last_ms), default=None)


def oldest_hour(
    hours_ms: Iterable[int], open_ms: Collection[int], first_hour_ms: int | None
) -> int | None:
    """The first whose records are on time in a commit: the stream's first hour; or, of a file whose
    event times are all over the place, the oldest that the checkpoint has room for beside those
    that are open. What is older is late: it does no harm there, and a checkpoint that is full would
    stop the shard."""
    room = OPEN_HOURS_MAX - len(open_ms)
    room = max(room, min(COMMIT_HOURS_MIN, OPEN_HOURS_MOST - len(open_ms)), 0)
    new = sorted({*hours_ms}.difference(open_ms), reverse=True)
    if len(new) <= room:
        return first_hour_ms
    oldest_ms = new[room] + HOUR_MS
    return oldest_ms if first_hour_ms is None else max(oldest_ms, first_hour_ms)
