"""Which parents may be flagged: those whose expected children all are."""

from dataclasses import replace

import pytest

from headgate.commits.roots import RootDocument, Seat, place_of
from headgate.periods import HOUR_MS, Period
from headgate.ready.propagation import (
    Parent,
    expected,
    is_day_ready,
    is_hour_ready,
    next_days,
    next_hours,
    passed_ms,
    raised_above,
)

DAY = Period.parse("2026-11-01")


def hour(number: int) -> Period:
    return Period(DAY.start_ms + number * HOUR_MS, "hour")


def seat(first: int, frontier: int, last: int | None = None) -> Seat:
    last_ms = None if last is None else hour(last).start_ms
    return Seat(None, hour(first).start_ms, hour(frontier).start_ms, last_ms)


def root(hours: int | None = None, days: int | None = None, **streams: Seat) -> RootDocument:
    hours_ms = None if hours is None else hour(hours).start_ms
    days_ms = None if days is None else DAY.start_ms + days * 24 * HOUR_MS
    return RootDocument(streams=streams, hours_ms=hours_ms, days_ms=days_ms)


def told(found: tuple[Parent, ...]) -> list[str]:
    return [str(one.period) for one in found]


def test_k7_inv7_an_hour_waits_for_every_expected_stream() -> None:
    assert told(next_hours(root(a=seat(0, 3), b=seat(0, 1)))) == ["2026-11-01T00"]
    assert next_hours(root(a=seat(0, 3), b=seat(0, 0))) == ()


def test_k6_k7_inv7_an_empty_or_unknown_set_of_children_is_never_ready() -> None:
    assert next_hours(root()) == ()
    assert next_days(root()) == ()
    assert next_hours(root(a=seat(0, 3), b=Seat())) == ()
    assert expected({"a": seat(0, 3), "b": Seat()}, hour(0)) is None
    assert is_hour_ready(root(a=seat(5, 9)), hour(0)) == ()
    assert is_day_ready(root(hours=24), DAY) == ()


@pytest.mark.parametrize("missing", range(24))
def test_k6_inv7_a_day_with_one_hour_missing_is_not_ready(missing: int) -> None:
    document = root(hours=24, a=seat(0, 24))
    assert len(is_day_ready(document, DAY)) == 24
    opened = replace(document, reopened={place_of(hour(missing)): 2})
    assert is_day_ready(opened, DAY) == ()
    assert next_days(opened) == ()


def test_k6_just_after_midnight_the_new_day_is_not_ready() -> None:
    assert told(next_days(root(hours=24, a=seat(0, 24)))) == ["2026-11-01"]
    assert next_days(root(hours=23, a=seat(0, 23))) == ()
    assert next_days(root(hours=24, days=1, a=seat(0, 24))) == ()


def test_the_first_day_of_a_root_has_the_hours_from_its_first_on() -> None:
    assert is_day_ready(root(hours=24, a=seat(22, 24)), DAY) == ("2026-11-01T22", "2026-11-01T23")


def test_a_new_stream_is_expected_from_its_first_hour_on() -> None:
    document = root(hours=3, a=seat(0, 9), b=seat(5, 6))
    assert told(next_hours(document)) == ["2026-11-01T03", "2026-11-01T04", "2026-11-01T05"]
    assert [one.children for one in next_hours(document)] == [("a",), ("a",), ("a", "b")]


def test_a_stream_that_joined_and_has_nothing_holds_hours_from_the_frontier_on_only() -> None:
    joined = Seat(floor_ms=hour(3).start_ms)
    assert expected({"a": seat(0, 9), "b": joined}, hour(2)) == ("a",)
    assert expected({"a": seat(0, 9), "b": joined}, hour(3)) is None


def test_a_removed_stream_is_expected_until_its_last_hour() -> None:
    document = root(hours=0, a=seat(0, 4), b=seat(0, 2, last=2))
    assert [one.children for one in next_hours(document)] == [
        ("a", "b"),
        ("a", "b"),
        ("a",),
        ("a",),
    ]
    never = root(hours=2, a=seat(0, 4), b=Seat(last_ms=hour(2).start_ms))
    assert told(next_hours(never)) == ["2026-11-01T02", "2026-11-01T03"]


def test_hours_without_any_stream_get_no_flag_and_stop_nothing() -> None:
    document = root(hours=2, a=seat(0, 2, last=2), b=seat(5, 6))
    assert told(next_hours(document)) == ["2026-11-01T05"]
    over = root(hours=2, a=seat(0, 2, last=2))
    assert next_hours(over) == ()
    gap = root(hours=72, days=0, a=seat(0, 24, last=24), b=seat(48, 72))
    assert told(next_days(gap)) == ["2026-11-01", "2026-11-03"]


@pytest.mark.parametrize("frontier", [None, 2])
def test_a_stream_that_ended_before_its_first_flag_stops_no_hour(frontier: int | None) -> None:
    """Retired before that; or its last hour was over when its first record came."""
    never = seat(3, 3, last=3)
    document = root(hours=frontier, old=seat(0, 2, last=2), never=never, b=seat(5, 6))
    if frontier is None:
        document = root(never=never, b=seat(5, 6))
    assert told(next_hours(document)) == ["2026-11-01T05"]


def test_a_stream_that_ended_before_its_first_flag_stops_no_day() -> None:
    document = root(hours=2, old=seat(0, 2, last=2), never=seat(3, 3, last=3))
    assert passed_ms(document, hour(25).start_ms) == hour(24).start_ms


def test_a_pass_is_bounded() -> None:
    assert len(next_hours(root(a=seat(0, 500)))) == 64
    assert len(next_days(root(hours=24 * 500, a=seat(0, 24 * 500)), limit=3)) == 3
    opened = {place_of(hour(number)): 2 for number in range(200)}
    flagged = replace(root(hours=24 * 500, a=seat(0, 24 * 500)), reopened=opened)
    assert len(next_hours(flagged)) == 64


def test_a_reopened_hour_is_flagged_again_once_its_streams_are() -> None:
    document = root(hours=24, days=1, a=seat(0, 24))
    places = {place_of(hour(5), "a"): 2, place_of(hour(5)): 2, place_of(DAY): 2}
    opened = replace(document, reopened=places)
    assert next_hours(opened) == ()
    assert next_days(opened) == ()

    flagged = replace(opened, reopened={place_of(hour(5)): 2, place_of(DAY): 2})
    assert [(str(one.period), one.is_again) for one in next_hours(flagged)] == [
        ("2026-11-01T05", True)
    ]
    assert next_days(flagged) == ()

    again = replace(opened, reopened={place_of(DAY): 2})
    assert [(str(one.period), one.is_again) for one in next_days(again)] == [("2026-11-01", True)]


def test_flags_above_an_hour_are_named_the_highest_first() -> None:
    document = root(hours=24, days=1, a=seat(0, 24))
    assert [str(one) for one in raised_above(document, hour(5))] == ["2026-11-01", "2026-11-01T05"]
    assert raised_above(replace(document, reopened={place_of(DAY): 2}), hour(5)) == (hour(5),)
    assert raised_above(root(hours=5, a=seat(0, 9)), hour(5)) == ()
    assert raised_above(root(hours=24, days=1, a=seat(5, 24)), hour(2)) == (DAY,)
