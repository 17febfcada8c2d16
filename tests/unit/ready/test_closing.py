"""Which hours may be closed: every watermark against every hour."""

from dataclasses import replace

import pytest

from headgate.commits.checkpoint import Checkpoint
from headgate.commits.roots import Seat
from headgate.commits.streams import StreamDocument
from headgate.periods import HOUR_MS, Period
from headgate.ready.closing import begins_ms, closable, obstacles, reached_ms
from headgate.ready.evidence import Evidence

LATENESS_MS = 600_000
FIRST = Period.parse("2026-11-01T13")
FAR_MS = FIRST.start_ms + 400 * 24 * HOUR_MS
SEAT = Seat(None, FIRST.start_ms, FIRST.start_ms)


def evidence(*marks_ms: int | None, discovered_ms: int = FAR_MS, shards: int = 1) -> Evidence:
    marks = {f"lane-{number}": mark_ms for number, mark_ms in enumerate(marks_ms)}
    checkpoint = Checkpoint(watermarks=marks, discovered_ms=discovered_ms)
    return Evidence(StreamDocument(shards, FIRST.start_ms), (checkpoint,) * shards)


def hours(found: tuple[Period, ...]) -> list[int]:
    return [(one.start_ms - FIRST.start_ms) // HOUR_MS for one in found]


OFFSETS = [-HOUR_MS, -1, 0, 1, 20 * 60_000, HOUR_MS - 1]


@pytest.mark.parametrize("hour", range(4))
@pytest.mark.parametrize("mark", range(5))
@pytest.mark.parametrize("offset_ms", OFFSETS)
def test_k1_k22_an_hour_is_closed_once_every_watermark_is_at_or_past_its_end(
    hour: int, mark: int, offset_ms: int
) -> None:
    mark_ms = FIRST.start_ms + mark * HOUR_MS + offset_ms
    found = hours(closable(SEAT, evidence(mark_ms, FAR_MS), LATENESS_MS))
    end_ms = FIRST.start_ms + (hour + 1) * HOUR_MS
    assert (hour in found) == (mark_ms >= end_ms)


@pytest.mark.parametrize(("short_ms", "count"), [(1, 0), (0, 1), (-1, 1), (-HOUR_MS, 2)])
def test_k22_a_discovery_must_have_begun_after_the_hours_end_plus_lateness(
    short_ms: int, count: int
) -> None:
    discovered_ms = FIRST.end_ms + LATENESS_MS - short_ms
    assert len(closable(SEAT, evidence(FAR_MS, discovered_ms=discovered_ms), LATENESS_MS)) == count


def test_k2_a_source_partition_without_watermark_blocks_every_hour() -> None:
    assert closable(SEAT, evidence(FAR_MS, None), LATENESS_MS) == ()


def test_a_shard_that_nobody_held_or_that_never_said_what_it_found_blocks() -> None:
    known = evidence(FAR_MS).checkpoints[0]
    document = StreamDocument(2, FIRST.start_ms)
    assert closable(SEAT, Evidence(document, (known, None)), LATENESS_MS) == ()
    assert closable(SEAT, Evidence(document, (known, Checkpoint())), LATENESS_MS) == ()
    assert closable(SEAT, Evidence(document, ()), LATENESS_MS) == ()
    assert closable(SEAT, Evidence(None), LATENESS_MS) == ()


def test_k3_a_shard_without_source_partitions_is_as_far_as_its_discovery_proves() -> None:
    discovered_ms = FIRST.end_ms + LATENESS_MS
    assert hours(closable(SEAT, evidence(discovered_ms=discovered_ms), LATENESS_MS)) == [0]
    assert reached_ms(evidence(discovered_ms=discovered_ms), LATENESS_MS) == FIRST.end_ms


def test_k8_thirty_hours_are_closed_in_order_a_bounded_number_at_a_time() -> None:
    mark_ms = FIRST.start_ms + 30 * HOUR_MS
    found = hours(closable(SEAT, evidence(mark_ms), LATENESS_MS))
    assert found == list(range(24))
    later = replace(SEAT, frontier_ms=FIRST.start_ms + 24 * HOUR_MS)
    assert hours(closable(later, evidence(mark_ms), LATENESS_MS)) == list(range(24, 30))


def test_no_hour_before_the_frontier_is_looked_at_again() -> None:
    seat = replace(SEAT, frontier_ms=FIRST.start_ms + 5 * HOUR_MS)
    mark_ms = FIRST.start_ms + 6 * HOUR_MS
    assert hours(closable(seat, evidence(mark_ms), LATENESS_MS)) == [5]
    assert closable(seat, evidence(FIRST.end_ms), LATENESS_MS) == ()


def test_a_stream_is_closed_until_its_last_hour_and_no_further() -> None:
    seat = replace(SEAT, last_ms=FIRST.start_ms + 2 * HOUR_MS)
    assert hours(closable(seat, evidence(FAR_MS), LATENESS_MS)) == [0, 1]


def test_a_stream_begins_with_its_first_hour_never_before_the_roots_frontier() -> None:
    document = StreamDocument(1, FIRST.start_ms)
    assert begins_ms(Seat(), document) == FIRST.start_ms
    assert begins_ms(Seat(floor_ms=FIRST.end_ms), document) == FIRST.end_ms
    assert begins_ms(Seat(floor_ms=0), document) == FIRST.start_ms
    assert begins_ms(Seat(), StreamDocument(1)) is None
    assert begins_ms(Seat(), None) is None


def test_k7_a_stream_without_data_says_what_it_waits_for() -> None:
    found = list(obstacles(Evidence(StreamDocument(1)), FIRST, LATENESS_MS))
    assert [one.why for one in found] == [
        "nothing of this stream has landed, so its first hour is not known"
    ]


def test_each_obstacle_names_its_shard_and_how_much_is_missing() -> None:
    found = evidence(None, FIRST.end_ms - 7, FIRST.end_ms, discovered_ms=FIRST.end_ms)
    told = [
        (one.shard, one.partition, one.short_ms) for one in obstacles(found, FIRST, LATENESS_MS)
    ]
    assert told == [(0, "", LATENESS_MS), (0, "lane-0", None), (0, "lane-1", 7)]
    nobody = Evidence(StreamDocument(1, 0), (None,))
    assert [one.shard for one in obstacles(nobody, FIRST, LATENESS_MS)] == [0]


@pytest.mark.parametrize("mark_ms", [None, FIRST.start_ms, FIRST.end_ms - 1, FIRST.end_ms])
@pytest.mark.parametrize("discovered_ms", [0, FIRST.end_ms, FIRST.end_ms + LATENESS_MS, FAR_MS])
def test_an_hour_is_closed_just_when_it_has_no_obstacle(
    mark_ms: int | None, discovered_ms: int
) -> None:
    found = evidence(mark_ms, FAR_MS, discovered_ms=discovered_ms)
    is_closable = FIRST in closable(SEAT, found, LATENESS_MS)
    assert is_closable == (not list(obstacles(found, FIRST, LATENESS_MS)))
