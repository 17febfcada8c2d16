"""The state of each hour in a window, from the root's document and the evidence."""

from dataclasses import replace

import pytest

from headgate.commits.checkpoint import Checkpoint
from headgate.commits.roots import RootDocument, Seat, place_of
from headgate.commits.streams import StreamDocument
from headgate.engine import EventTime
from headgate.errors import Invalid
from headgate.landing import StreamSettings
from headgate.periods import DEFAULT_FOLDER, HOUR_MS, FolderTemplate, Period, hours_between
from headgate.ready.evidence import Evidence
from headgate.sources import FilesSettings
from headgate.status.hours import SLACK_MS, WINDOW_HOURS, states_of, window, window_until

FIRST = Period.parse("2026-11-01T12")
START_MS = FIRST.start_ms
SETTINGS = StreamSettings(
    "orders",
    FilesSettings("/incoming"),
    EventTime("json", "$.at"),
    FolderTemplate.parse(DEFAULT_FOLDER),
)
LATENESS_MS = SETTINGS.allowed_lateness_ms
NOW_MS = START_MS + 6 * HOUR_MS + LATENESS_MS  # 18:10
HOURS = tuple(hours_between(START_MS - HOUR_MS, START_MS + 8 * HOUR_MS))  # 11 to 19


def evidence(mark_ms: int | None, discovered_ms: int = NOW_MS) -> Evidence:
    checkpoint = Checkpoint(watermarks={"lane": mark_ms}, discovered_ms=discovered_ms)
    return Evidence(StreamDocument(1, START_MS), (checkpoint,))


def at(hour: int) -> int:
    return START_MS + (hour - 12) * HOUR_MS


def root(frontier: int, **fields: object) -> RootDocument:
    return RootDocument(streams={"orders": Seat(None, START_MS, at(frontier))}, **fields)  # type: ignore[arg-type]


def states(
    found: RootDocument, seen: Evidence, *, now_ms: int = NOW_MS, is_held: bool = False
) -> list[str]:
    """Of the hours 11 to 19."""
    told = states_of(SETTINGS, seen, found, HOURS, now_ms, is_held=is_held)
    assert [one.hour for one in told] == list(HOURS)
    return [one.state for one in told]


def test_hours_are_ready_up_to_the_frontier_then_closing_then_short_then_not_over() -> None:
    assert states(root(14), evidence(at(16))) == [
        *("not expected", "ready", "ready", "closing", "closing"),
        *("late", "waiting", "not over", "not over"),
    ]


def test_a_held_hour_holds_back_those_behind_it() -> None:
    assert states(root(14), evidence(at(16)), is_held=True)[3:5] == ["held", "closing"]


def test_a_hold_means_nothing_while_something_is_short() -> None:
    assert states(root(14), evidence(at(14)), is_held=True)[3] == "late"


def test_an_hour_whose_flag_was_withdrawn_is_not_ready() -> None:
    found = root(14, reopened={place_of(Period(at(12), "hour"), "orders"): 2})
    told = states_of(SETTINGS, evidence(at(14)), found, HOURS, NOW_MS, is_held=False)
    assert [one.state for one in told[1:3]] == ["withdrawn", "ready"]
    assert "generation 2" in told[1].words


def test_the_same_hour_of_another_stream_stays_ready() -> None:
    found = root(14, reopened={place_of(Period(at(12), "hour"), "other"): 2})
    assert states(found, evidence(at(14)))[1] == "ready"


@pytest.mark.parametrize(("more_ms", "state"), [(0, "waiting"), (1, "late")])
def test_waiting_becomes_late_when_lateness_no_longer_explains_it(more_ms: int, state: str) -> None:
    now_ms = at(15) + LATENESS_MS + SLACK_MS + more_ms
    assert states(root(14), evidence(at(14), now_ms), now_ms=now_ms)[3] == state


@pytest.mark.parametrize(("before_ms", "state"), [(1, "not over"), (0, "waiting")])
def test_an_hour_is_over_at_its_end_and_not_before(before_ms: int, state: str) -> None:
    now_ms = at(15) - before_ms
    assert states(root(14), evidence(at(14)), now_ms=now_ms)[3] == state


def test_k2_a_source_partition_without_watermark_makes_no_hour_closing() -> None:
    told = states_of(SETTINGS, evidence(None), root(14), HOURS, NOW_MS, is_held=False)
    assert "closing" not in {one.state for one in told}
    assert "has not said how far it is" in told[3].words


def test_a_stream_without_data_holds_its_neighbours_back_and_is_shown_so() -> None:
    found = RootDocument(streams={"other": Seat(None, at(15), at(15)), "orders": Seat()})
    told = states_of(SETTINGS, Evidence(None), found, HOURS, NOW_MS, is_held=False)
    assert [one.state for one in told[:5]] == [*["not expected"] * 4, "late"]
    assert told[4].words.endswith("nothing of this stream has landed")


def test_nothing_is_expected_where_nothing_is_known() -> None:
    assert set(states(RootDocument(), Evidence(None))) == {"not expected"}


def test_hours_behind_a_streams_last_are_not_expected() -> None:
    found = root(14)
    ended = replace(found.streams["orders"], last_ms=at(15))
    told = states(replace(found, streams={"orders": ended}), evidence(at(18)))
    assert told[2:6] == ["ready", "closing", "not expected", "not expected"]


def test_the_window_ends_with_the_present_hour() -> None:
    found = window(NOW_MS, [at(14)])
    assert len(found) == WINDOW_HOURS
    assert found[-1] == Period.hour_of(NOW_MS)
    assert window(NOW_MS, []) == found


def test_the_window_goes_to_where_the_streams_are_if_what_lands_is_old() -> None:
    years_later_ms = NOW_MS + 20_000 * HOUR_MS
    found = window(years_later_ms, [at(13), at(14)])
    assert len(found) == WINDOW_HOURS
    assert Period(at(13), "hour") in found
    assert found[-1] == Period(at(21), "hour")


def test_a_window_before_the_calendar_is_refused() -> None:
    with pytest.raises(Invalid):
        window_until(Period.parse("0001-01-01T05"))
