"""Hours: the state of each hour of a window, for a map of streams and hours. Pure.

    not expected   before the stream's first hour, or after its last
    ready          its flags are raised
    withdrawn      they were, and the next generation is to come
    expired, erased    it was ready, and its files are gone on purpose
    closing        everything is there: its flags are raised next, in order
    held           everything is there, and a person keeps it back
    waiting        it is over, and something is short
    late           the same, for longer than lateness explains
    not over

From the root's document and the evidence alone: nothing of the lake is listed, and the cost is that
of the window, however old the lake is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from headgate.commits.removals import how_of
from headgate.commits.roots import RootDocument, place_of
from headgate.landing import StreamSettings
from headgate.periods import HOUR_MS, Period, hours_between
from headgate.ready.closing import reached_ms
from headgate.ready.evidence import Evidence
from headgate.status.fleet import shown_ms
from headgate.status.why import first_open

WINDOW_HOURS = 48
AHEAD_HOURS = 8  # shown behind the farthest frontier, where that is long ago
SLACK_MS = 300_000  # a stream on time looks for new source partitions, commits and flags in it

State = Literal[
    "not expected",
    "ready",
    "withdrawn",
    "expired",
    "erased",
    "closing",
    "held",
    "waiting",
    "late",
    "not over",
]


@dataclass(frozen=True, slots=True)
class HourState:
    hour: Period
    state: State
    words: str


def window(now_ms: int, frontiers_ms: Iterable[int], count: int = WINDOW_HOURS) -> list[Period]:
    """The last hours, the current one included; those around the farthest frontier, if no stream
    has come as far as that: what lands may be old."""
    until_ms = Period.hour_of(now_ms).end_ms
    farthest_ms = max(frontiers_ms, default=until_ms)
    if farthest_ms <= until_ms - count * HOUR_MS:
        until_ms = farthest_ms + AHEAD_HOURS * HOUR_MS
    return window_until(Period.hour_of(until_ms - 1), count)


def window_until(last: Period, count: int = WINDOW_HOURS) -> list[Period]:
    """Raises Invalid: it would begin before the calendar."""
    return list(hours_between(last.end_ms - count * HOUR_MS, last.end_ms))


def states_of(
    settings: StreamSettings,
    evidence: Evidence,
    root: RootDocument,
    hours: Sequence[Period],
    now_ms: int,
    *,
    is_held: bool,
) -> tuple[HourState, ...]:
    """`is_held`: a person keeps the first hour back that is not ready."""
    name = settings.name
    seat = root.streams.get(name)
    first = first_open(name, root, evidence)
    begin_ms = _begins_ms(name, root, first)
    last_ms = None if seat is None else seat.last_ms
    reach_ms = reached_ms(evidence, settings.allowed_lateness_ms)

    def state(hour: Period) -> tuple[State, str]:
        if begin_ms is None or hour.start_ms < begin_ms:
            is_known = first is not None
            return "not expected", "before its first hour" if is_known else "nothing has landed"
        if last_ms is not None and hour.start_ms >= last_ms:
            return "not expected", "after its last hour"
        if first is not None and hour.end_ms <= first.start_ms:
            generation = root.reopened.get(place_of(hour, name))
            how = None if seat is None else how_of(seat.removed, hour)
            if generation is None and how is not None:
                return how, f"it was complete, and its files were {how} on purpose"
            if generation is None:
                return "ready", "complete"
            return "withdrawn", f"its flag was withdrawn; generation {generation} is next"
        if now_ms < hour.end_ms:
            return "not over", "it is not over yet"
        if first is not None and reach_ms is not None and hour.end_ms <= reach_ms:
            if hour > first:
                return "closing", f"everything is there; {first} comes first"
            if is_held:
                return "held", "everything is there, and a file keeps it back"
            return "closing", "everything is there; its flag is raised next"
        return _short(hour, first, reach_ms, now_ms, settings.allowed_lateness_ms)

    return tuple(HourState(hour, *state(hour)) for hour in hours)


def _short(
    hour: Period, first: Period | None, reach_ms: int | None, now_ms: int, lateness_ms: int
) -> tuple[State, str]:
    since_ms = now_ms - hour.end_ms
    if first is None:
        words = "nothing of this stream has landed"
    elif reach_ms is None:
        words = "a shard or a source partition has not said how far it is"
    else:
        words = f"what has landed is {shown_ms(hour.end_ms - reach_ms)} short of its end"
    is_late = since_ms > lateness_ms + SLACK_MS
    return "late" if is_late else "waiting", f"over for {shown_ms(since_ms)}: {words}"


def _begins_ms(stream: str, root: RootDocument, first: Period | None) -> int | None:
    """Of a stream without anything: where it holds back those that share its root."""
    seat = root.streams.get(stream)
    if seat is not None and seat.first_ms is not None:
        return seat.first_ms
    if first is not None:
        return first.start_ms
    if root.hours_ms is not None:
        return root.hours_ms
    firsts = [one.first_ms for one in root.streams.values() if one.first_ms is not None]
    return min(firsts, default=None)
