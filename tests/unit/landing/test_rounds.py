"""When the next round starts, and what it ends."""

from dataclasses import replace

import pytest

from headgate.landing.rounds import HELD_BACK_MS, Shift, Start, Wait, next_move, shift_at
from headgate.periods import HOUR_MS, Period
from headgate.sources import Waiting
from headgate.testing.estuary import settings_of

SETTINGS = replace(settings_of(), shift_ms=HOUR_MS, grace_ms=30_000, round_bytes=1_000)
FIVE = Period.parse("2026-11-01T17").start_ms
NOTHING = Waiting(0, 0, None)
A_LITTLE = Waiting(1, 999, FIVE)
ENOUGH = Waiting(1, 1_000, FIVE)
SHIFT = Shift(4, FIVE + HOUR_MS, 10_000_000)


def move(
    waiting: Waiting = NOTHING,
    *,
    wall_ms: int = FIVE,
    monotonic_ms: int = 0,
    is_eager: bool = False,
    is_proved: bool = False,
) -> Start | Wait:
    return next_move(
        SETTINGS,
        SHIFT,
        waiting,
        wall_ms=wall_ms,
        monotonic_ms=monotonic_ms,
        look_ms=5_000,
        is_eager=is_eager,
        is_proved=is_proved,
    )


@pytest.mark.parametrize(
    ("minute", "end"), [(0, "2026-11-01T18"), (52, "2026-11-01T18"), (60, "2026-11-01T19")]
)
def test_a_shift_ends_where_the_aligned_interval_does(minute: int, end: str) -> None:
    shift = shift_at(SETTINGS, 7, FIVE + minute * 60_000, 1_000)
    assert (shift.number, shift.end_ms) == (7, Period.parse(end).start_ms)


def test_a_shift_is_over_on_the_steady_clock_at_the_same_moment() -> None:
    shift = shift_at(SETTINGS, 7, FIVE + 52 * 60_000, 1_000)
    assert shift.over_ms == 1_000 + 8 * 60_000 + SETTINGS.grace_ms


@pytest.mark.parametrize(
    ("after_end_ms", "is_over"), [(-1, False), (0, False), (29_999, False), (30_000, True)]
)
def test_k16_a_shift_is_finished_once_its_grace_is_over(after_end_ms: int, is_over: bool) -> None:
    found = move(A_LITTLE, wall_ms=SHIFT.end_ms + after_end_ms)
    assert isinstance(found, Start) == is_over
    if isinstance(found, Start):
        assert found.ends_shift


def test_an_empty_shift_commits_too() -> None:
    found = move(NOTHING, wall_ms=SHIFT.end_ms + SETTINGS.grace_ms)
    assert found == Start(ends_shift=True, why="the shift is over")


def test_a_clock_set_back_by_an_hour_does_not_make_the_shift_last_for_two() -> None:
    back_ms = SHIFT.end_ms - HOUR_MS
    assert isinstance(move(A_LITTLE, wall_ms=back_ms, monotonic_ms=SHIFT.over_ms - 1), Wait)
    assert isinstance(move(A_LITTLE, wall_ms=back_ms, monotonic_ms=SHIFT.over_ms), Start)


def test_enough_starts_a_round_that_ends_no_shift() -> None:
    assert move(ENOUGH) == Start(ends_shift=False, why="enough waits")
    assert isinstance(move(A_LITTLE), Wait)


@pytest.mark.parametrize(
    ("wall_ms", "monotonic_ms", "until_ms"),
    [
        (FIVE, 0, 5_000),
        (SHIFT.end_ms + 29_000, 0, 1_000),
        (SHIFT.end_ms + 29_999, 7, 8),
        (FIVE, SHIFT.over_ms - 100, SHIFT.over_ms),
    ],
)
def test_nobody_waits_past_the_next_look_or_the_end_of_the_shift(
    wall_ms: int, monotonic_ms: int, until_ms: int
) -> None:
    assert move(A_LITTLE, wall_ms=wall_ms, monotonic_ms=monotonic_ms) == Wait(until_ms)


def test_who_waits_for_everything_lands_at_once_what_is_there() -> None:
    assert move(A_LITTLE, is_eager=True, is_proved=True) == Start(True, "something waits")


def test_who_waits_for_everything_needs_a_proof_that_nothing_waits() -> None:
    assert move(NOTHING, is_eager=True) == Start(True, "nothing waits")
    assert isinstance(move(NOTHING, is_eager=True, is_proved=True), Wait)
    assert isinstance(move(Waiting(0, 0, None, unfinished=1), is_eager=True), Wait)
    assert isinstance(move(Waiting(0, 0, None, unreadable=1), is_eager=True), Wait)


HELD_BACK = Waiting(0, 1_000, FIVE, records=10, is_held_back=True)


def test_records_wait_as_files_do() -> None:
    assert move(Waiting(0, 10, FIVE, records=1), is_eager=True) == Start(True, "something waits")
    assert move(Waiting(0, 1_000, FIVE, records=1)) == Start(False, "enough waits")


def test_what_a_limit_holds_back_starts_no_round_however_much_it_is() -> None:
    assert move(HELD_BACK) == Wait(5_000)
    assert isinstance(move(replace(HELD_BACK, is_held_back=False)), Start)


@pytest.mark.parametrize("is_eager", [True, False])
def test_what_is_held_back_is_soon_looked_at_by_who_waits_for_it(is_eager: bool) -> None:
    """A shift that is over would else start one round of next to nothing after the other."""
    wall_ms = FIVE if is_eager else SHIFT.end_ms + SETTINGS.grace_ms
    found = move(HELD_BACK, wall_ms=wall_ms, monotonic_ms=7, is_eager=is_eager)
    assert found == Wait(7 + HELD_BACK_MS)
