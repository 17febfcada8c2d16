"""Propagation: which parents may be flagged, and which flags a withdrawal concerns. Pure.

A parent's flag implies every **expected** child's: of an hour, the streams that are expected in it;
of a day, the hours in which any stream is. An empty or unknown set of children is never ready.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.commits.roots import RootDocument, Seat, place_of
from headgate.periods import DAY_MS, HOUR_MS, Kind, Period, aligned

HOURS_MAX = 64  # that one pass flags: its journal must fit the document


@dataclass(frozen=True, slots=True)
class Parent:
    period: Period
    children: tuple[str, ...]  # streams of an hour; hours of a day
    is_again: bool = False  # it was withdrawn


def expected(streams: Mapping[str, Seat], hour: Period) -> tuple[str, ...] | None:
    """The streams that must have their flag first. None: of one it is not known."""
    found = []
    for name, seat in streams.items():
        if seat.last_ms is not None and seat.last_ms <= hour.start_ms:
            continue
        if seat.first_ms is not None:
            found += [name] if seat.first_ms <= hour.start_ms else []
        elif seat.floor_ms is None or seat.floor_ms < hour.end_ms:
            return None  # nothing of it has a flag: its first hour may be this one
    return tuple(sorted(found))


def is_hour_ready(document: RootDocument, hour: Period) -> tuple[str, ...]:
    """Its children, if they all have their flags; else none."""
    names = expected(document.streams, hour) or ()
    for name in names:
        frontier_ms = document.streams[name].frontier_ms
        if frontier_ms is None or frontier_ms < hour.end_ms:
            return ()
        if place_of(hour, name) in document.reopened:
            return ()
    return names


def is_day_ready(document: RootDocument, day: Period) -> tuple[str, ...]:
    """Its hours, if they all have their flags; else none. Hours without any stream are none."""
    if document.hours_ms is None or document.hours_ms < day.end_ms:
        return ()
    hours = [hour for hour in day.hours() if expected(document.streams, hour)]
    if any(place_of(hour) in document.reopened for hour in hours):
        return ()
    return tuple(str(hour) for hour in hours)


def next_hours(document: RootDocument, limit: int = HOURS_MAX) -> tuple[Parent, ...]:
    """From the frontier on, in order; then those that were withdrawn."""
    found: list[Parent] = []
    start_ms = _next_ms(document)
    while start_ms is not None and len(found) < limit:
        hour = Period(start_ms, "hour")
        names = is_hour_ready(document, hour)
        if not names:
            break
        found.append(Parent(hour, names))
        start_ms = hour.end_ms
    return (*found, *_again(document, "hour"))[:limit]


def _next_ms(document: RootDocument) -> int | None:
    """The next hour that has an expected stream. None: it is not known, or there is none."""
    frontier_ms = document.hours_ms
    starts: list[int] = []
    for seat in document.streams.values():
        if is_never_expected(seat):
            continue
        if seat.last_ms is not None and frontier_ms is not None and seat.last_ms <= frontier_ms:
            continue
        if seat.first_ms is not None:
            starts.append(seat.first_ms)
        elif seat.last_ms is None:
            return None  # of one with an end, `expected` says from when on it is no matter
    if not starts:
        return None
    return min(starts) if frontier_ms is None else max(min(starts), frontier_ms)


def is_never_expected(seat: Seat) -> bool:
    """It ended before its first hour did: retired before that had its flag, for one."""
    if seat.first_ms is None or seat.last_ms is None:
        return False
    return seat.last_ms <= seat.first_ms


def passed_ms(document: RootDocument, now_ms: int) -> int | None:
    """Where the hours' frontier may go once every stream has ended: to the end of that day, well
    after which nobody joins before it any more. None: it stays."""
    frontier_ms = document.hours_ms
    if frontier_ms is None or not document.streams:
        return None
    ends = [seat.last_ms for seat in document.streams.values() if not is_never_expected(seat)]
    if any(end_ms is None or end_ms > frontier_ms for end_ms in ends):
        return None
    end_ms = Period.day_of(frontier_ms - 1).end_ms
    return end_ms if frontier_ms < end_ms <= now_ms - HOUR_MS else None


def next_days(document: RootDocument, limit: int = HOURS_MAX) -> tuple[Parent, ...]:
    found: list[Parent] = []
    start_ms = document.days_ms
    if start_ms is None:
        firsts = [seat.first_ms for seat in document.streams.values() if seat.first_ms is not None]
        start_ms = aligned(min(firsts), DAY_MS) if firsts else None
    while start_ms is not None and len(found) < limit:
        day = Period(start_ms, "day")
        hours = is_day_ready(document, day)
        if not hours:
            # A day in which no stream was expected has no flag, and is no reason to stand still.
            is_void = document.hours_ms is not None and document.hours_ms >= day.end_ms
            if not is_void or any(expected(document.streams, hour) for hour in day.hours()):
                break
        else:
            found.append(Parent(day, hours))
        start_ms = day.end_ms
    return (*found, *_again(document, "day"))[:limit]


def _again(document: RootDocument, kind: Kind) -> list[Parent]:
    found: list[Parent] = []
    for place in sorted(document.reopened):
        if "/" in place:
            continue
        period = Period.parse(place)
        if period.kind == kind:
            is_hour = kind == "hour"
            children = (
                is_hour_ready(document, period) if is_hour else is_day_ready(document, period)
            )
            if children:
                found.append(Parent(period, children, is_again=True))
    return found


def raised_above(document: RootDocument, hour: Period) -> tuple[Period, ...]:
    """The parents of an hour that have a flag, the highest first: they go before their child."""
    found = []
    for period, frontier_ms in ((hour.day(), document.days_ms), (hour, document.hours_ms)):
        is_past = frontier_ms is not None and period.end_ms <= frontier_ms
        if is_past and place_of(period) not in document.reopened:
            has_children = any(expected(document.streams, one) for one in period.hours())
            found += [period] if has_children else []
    return tuple(found)
