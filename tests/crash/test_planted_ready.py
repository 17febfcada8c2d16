"""Bugs that are planted into ready: each turns the scene red that guards against it."""

from collections.abc import Callable

import pytest

from headgate.commits.certificate import FLAG
from headgate.testing.faults import Call
from headgate.testing.slips import SLIPS, planted_slip
from tests.crash.ready_flows import Close, Merge, hold, wish_withdrawn
from tests.crash.ready_world import Process, World, hour, run


class Interrupted:
    """Before the first call of that sort something else happens, once."""

    def __init__(self, is_there: Callable[[Call], bool], happen: Callable[[], None]) -> None:
        self._is_there = is_there
        self._happen: Callable[[], None] | None = happen

    def around(self, call: Call, act: Callable[[], object]) -> object:
        if self._happen is not None and self._is_there(call):
            happen, self._happen = self._happen, None
            happen()
        return act()

    @property
    def has_happened(self) -> bool:
        return self._happen is None


class Watched:
    """After each call the rows of an hour are all in its published files."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rows = world.rows("orders", hour(23))

    def around(self, call: Call, act: Callable[[], object]) -> object:
        answer = act()
        left = set(self._world.rows("orders", hour(23)))
        assert left.issuperset(self._rows), call
        return answer


def world_at(mark_ms: int, first: int = 13) -> World:
    world = World()
    world.open("orders", hour(first))
    world.land("orders", hour(first))
    world.reach("orders", mark_ms)
    return world


def a_reader_in_the_middle_of_an_hour() -> None:
    world = world_at(hour(13).start_ms + 20 * 60_000)
    run(world)
    assert world.flags() == []


def a_day_with_an_hour_missing() -> None:
    world = world_at(hour(23).end_ms - 1, first=20)
    run(world)
    assert f"2027-01-15/22/{FLAG}" in world.flags()
    assert f"2027-01-15/{FLAG}" not in world.flags()


def a_source_partition_without_watermark() -> None:
    world = world_at(hour(15).start_ms)
    world.put("orders", watermarks={"lane-0": hour(15).start_ms, "lane-7": None})
    run(world)
    assert world.flags() == []


def closing_waits_for_first_watermarks() -> None:
    world = world_at(hour(15).start_ms)
    world.put("orders", watermarks={"lane-0": hour(15).start_ms, "lane-7": None})
    run(world)
    assert world.stream("orders").closing_ms is None


def one_joins_while_closing_is_written() -> None:
    world = world_at(hour(15).start_ms)

    def join() -> None:
        marks = {"lane-0": hour(15).start_ms, "lane-7": None}
        world.put("orders", watermarks=marks)

    def is_closing(call: Call) -> bool:
        return call.method == "replace" and call.subject.startswith("streams/")

    stage = Interrupted(is_closing, join)
    Process(world, stage).run()
    assert stage.has_happened
    assert world.flags() == []


def a_holder_wakes_up_before_a_parents_flag() -> None:
    world = Close().fresh()

    def withdraw() -> None:
        run(world)
        wish_withdrawn(world, "orders", 23)
        hold(world, "orders", 23)
        run(world)

    flag = f"2027-01-15/23/{FLAG}"
    stage = Interrupted(lambda call: call.method == "publish" and flag in call.args, withdraw)
    Process(world, stage).run()
    assert stage.has_happened
    assert flag not in world.flags()
    assert world.faults() == []


def a_holder_wakes_up_before_a_withdrawal() -> None:
    world = Close().fresh()
    run(world)
    wish_withdrawn(world, "orders", 23)
    flag = f"2027-01-15/23/orders/{FLAG}"

    def is_withdrawal(call: Call) -> bool:
        return call.method in ("facts", "publish_all") and flag in str(call.args)

    stage = Interrupted(is_withdrawal, lambda: run(world))
    Process(world, stage).run()
    assert stage.has_happened
    assert {flag, f"{flag}.1"} <= set(world.flags())
    assert world.certificate("orders", hour(23)).generation == 2
    assert world.faults() == []


def rows_of_an_hour_while_it_is_merged() -> None:
    world = Merge().fresh()
    Process(world, Watched(world)).run()
    assert world.merger.jobs == 1


def an_engine_that_loses_a_row() -> None:
    world = Merge().fresh()
    rows = world.rows("orders", hour(23))
    world.merger.loses = 1
    for _ in range(4):
        run(world)
    assert world.rows("orders", hour(23)) == rows
    assert world.certificate("orders", hour(23)).counts["landed"] == len(rows)


def files_of_the_certificate_of_a_merged_hour() -> None:
    world = Merge().fresh()
    run(world)
    named = {file.path for file in world.certificate("orders", hour(23)).files}
    assert named == {path for path in world.data() if "/orders/" in path}


def a_stream_joins_before_a_parents_flag() -> None:
    world = world_at(hour(15).start_ms)
    flag = f"2027-01-15/13/{FLAG}"
    stage = Interrupted(
        lambda call: call.method == "publish" and flag in call.args,
        lambda: world.open("bids", hour(13)),
    )
    Process(world, stage).run()
    assert stage.has_happened
    assert flag in world.flags()
    assert world.stream("bids").first_hour_ms == hour(15).start_ms


SCENES: dict[str, Callable[[], None]] = {
    "flag at the hour's start": a_reader_in_the_middle_of_an_hour,
    "an empty set of children counts as ready": a_day_with_an_hour_missing,
    "a partition without watermark does not block": a_source_partition_without_watermark,
    "parent flag published after the child's withdrawal": a_holder_wakes_up_before_a_parents_flag,
    "closing written while a found partition has no watermark": closing_waits_for_first_watermarks,
    "checkpoints not read again after closing": one_joins_while_closing_is_written,
    "a late withdrawal takes the next generation's flag": a_holder_wakes_up_before_a_withdrawal,
    "small files removed before the merged ones are published": rows_of_an_hour_while_it_is_merged,
    "rows of a merge are not counted": an_engine_that_loses_a_row,
    "the certificate names small files that were merged": files_of_the_certificate_of_a_merged_hour,
    "a stream joins below what a journal flags": a_stream_joins_before_a_parents_flag,
}


def test_each_bug_has_its_scene() -> None:
    assert set(SCENES) == set(SLIPS)


@pytest.mark.parametrize("bug", SCENES)
def test_without_the_bug_the_scene_ends_well(bug: str) -> None:
    SCENES[bug]()


@pytest.mark.parametrize("bug", SCENES)
def test_planted_the_scene_shows_the_bug(bug: str) -> None:
    with planted_slip(bug), pytest.raises(AssertionError):
        SCENES[bug]()
