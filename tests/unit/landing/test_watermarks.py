"""What a commit may promise of each source partition."""

import pytest

from headgate.commits.record import Mark
from headgate.engine import Kind, Tally
from headgate.landing.watermarks import (
    COMMIT_HOURS_MIN,
    FIRST_HOURS_MS,
    OPEN_HOURS_MAX,
    OPEN_HOURS_MOST,
    first_hour,
    marks_after,
    oldest_hour,
)
from headgate.periods import HOUR_MS, Period

NOON = Period.parse("2026-11-01T12").start_ms
LATENESS_MS = 600_000


def tally(event_ms: int | None, partition: str = "a", kind: Kind = "data") -> Tally:
    return Tally("0-1", partition, 0, kind, 1, 1, 1, event_ms)


def marks(
    old_ms: int | None,
    *events_ms: int,
    end_ms: int | None = None,
    floor_ms: int | None = None,
    is_clock_trusted: bool = True,
) -> Mark | None:
    return marks_after(
        {"a": old_ms},
        [tally(event_ms) for event_ms in events_ms],
        {} if end_ms is None else {"a": end_ms},
        lateness_ms=LATENESS_MS,
        floor_ms=floor_ms,
        is_clock_trusted=is_clock_trusted,
    ).get("a")


def test_records_move_it_to_the_highest_event_time_less_lateness() -> None:
    assert marks(None, NOON, NOON - 5) == Mark(None, NOON - LATENESS_MS, "records")


def test_a_proof_moves_it_to_the_time_of_the_proof_less_lateness() -> None:
    assert marks(5, end_ms=NOON) == Mark(5, NOON - LATENESS_MS, "idle")


def test_the_better_of_both_counts() -> None:
    assert marks(5, NOON, end_ms=NOON + 1) == Mark(5, NOON + 1 - LATENESS_MS, "idle")
    assert marks(5, NOON, end_ms=NOON) == Mark(5, NOON - LATENESS_MS, "records")


@pytest.mark.parametrize("event_ms", [0, NOON - 1, NOON, NOON + LATENESS_MS])
def test_it_never_moves_back(event_ms: int) -> None:
    assert marks(NOON, event_ms, end_ms=event_ms) == Mark(NOON, NOON, "kept")


def test_one_without_records_or_proof_has_none() -> None:
    assert marks(None) is None
    assert marks(NOON) == Mark(NOON, NOON, "kept")


@pytest.mark.parametrize(
    ("floor_ms", "after_ms", "by"),
    [
        (NOON - LATENESS_MS - 1, NOON - LATENESS_MS, "records"),
        (NOON - LATENESS_MS, NOON - LATENESS_MS, "records"),
        (NOON, NOON, "first hour"),
    ],
)
def test_the_first_one_is_not_below_the_first_hour_or_what_is_being_closed(
    floor_ms: int, after_ms: int, by: str
) -> None:
    found = marks(None, NOON, floor_ms=floor_ms)
    assert found is not None
    assert (found.after_ms, found.by) == (after_ms, by)


def test_a_floor_alone_is_no_watermark() -> None:
    assert marks(None, floor_ms=NOON) is None


def test_a_later_one_asks_for_no_floor() -> None:
    assert marks(5, floor_ms=NOON) == Mark(5, 5, "kept")


def test_with_a_wrong_clock_none_moves() -> None:
    assert marks(5, NOON, end_ms=NOON, is_clock_trusted=False) == Mark(5, 5, "kept")
    assert marks(None, NOON, end_ms=NOON, is_clock_trusted=False) is None


def test_late_records_count_and_dead_ones_do_not() -> None:
    found = marks_after(
        {"a": None, "b": None},
        [tally(NOON, "a", "late"), tally(NOON, "b", "dead")],
        {},
        lateness_ms=0,
        floor_ms=None,
        is_clock_trusted=True,
    )
    assert found == {"a": Mark(None, NOON, "records")}


def test_each_source_partition_has_its_own() -> None:
    found = marks_after(
        {"a": 1, "b": 2},
        [tally(NOON, "a"), tally(NOON - HOUR_MS, "b"), tally(NOON + 9, "c")],
        {},
        lateness_ms=0,
        floor_ms=None,
        is_clock_trusted=True,
    )
    assert {one: mark.after_ms for one, mark in found.items()} == {"a": NOON, "b": NOON - HOUR_MS}


def test_one_record_of_1970_does_not_make_half_a_million_hours() -> None:
    assert first_hour([0, NOON - HOUR_MS, NOON], NOON + 5) == NOON - HOUR_MS


@pytest.mark.parametrize(("back_ms", "is_in"), [(0, True), (1, False)])
def test_the_first_hour_is_at_most_48_hours_before_the_highest_event_time(
    back_ms: int, is_in: bool
) -> None:
    least_ms = NOON - FIRST_HOURS_MS
    found = first_hour([least_ms - back_ms * HOUR_MS, NOON], NOON + HOUR_MS - 1)
    assert found == (least_ms if is_in else NOON)


def test_without_an_hour_there_is_no_first_one() -> None:
    assert first_hour([], NOON) is None
    assert first_hour([0], NOON) is None


def test_the_first_hour_is_not_ahead_of_every_arrival() -> None:
    """One record of the year 9892 must not make everything else late for ever."""
    hours = [10 * HOUR_MS, 11 * HOUR_MS, 69_440_000 * HOUR_MS]
    assert first_hour(hours[2:], highest_ms=11 * HOUR_MS + 5) is None
    assert first_hour(hours, highest_ms=11 * HOUR_MS + 5) == 10 * HOUR_MS


@pytest.mark.parametrize(
    ("count", "open_hours", "first_hour_ms", "oldest_ms"),
    [
        (OPEN_HOURS_MAX, 0, None, None),
        (OPEN_HOURS_MAX, 0, 7, 7),
        (OPEN_HOURS_MAX + 1, 0, None, HOUR_MS),
        (OPEN_HOURS_MAX + 1, 0, 7, HOUR_MS),
        (OPEN_HOURS_MAX + 1, 0, 2 * HOUR_MS, 2 * HOUR_MS),
        (OPEN_HOURS_MAX, 1, None, HOUR_MS),
        (COMMIT_HOURS_MIN, OPEN_HOURS_MAX, None, None),
        (COMMIT_HOURS_MIN + 3, OPEN_HOURS_MAX, None, 3 * HOUR_MS),
        (3, OPEN_HOURS_MOST, None, 3 * HOUR_MS),
        (0, 0, None, None),
    ],
)
def test_what_a_checkpoint_has_no_room_for_is_late(
    count: int, open_hours: int, first_hour_ms: int | None, oldest_ms: int | None
) -> None:
    hours = [number * HOUR_MS for number in range(count)]
    others = [-number * HOUR_MS for number in range(1, open_hours + 1)]
    assert oldest_hour([*hours, *hours], others, first_hour_ms) == oldest_ms


def test_hours_that_are_open_already_take_no_room() -> None:
    opened = [number * HOUR_MS for number in range(OPEN_HOURS_MAX)]
    assert oldest_hour(opened, opened, None) is None
