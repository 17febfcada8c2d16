"""Watermark: what a commit may promise of each source partition. Values in, values out.

Nothing earlier in event time is still to come. It rests on records (the highest event time, each
clamped to its arrival, less the allowed lateness) or on a proof that there is nothing more (the
time of that proof, less the same). It never moves back.
"""

from collections.abc import Iterable, Mapping, Sequence

from headgate.commits.record import Mark
from headgate.engine import Tally
from headgate.periods import HOUR_MS, aligned

FIRST_HOURS_MS = 48 * HOUR_MS  # one record of 1970 must not make half a million empty hours


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
