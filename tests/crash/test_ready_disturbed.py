"""Somebody else acts between two effects of a pass that merges, flags and propagates: a person, a
stream that joins, a holder with other settings. However it falls, everything ends well."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from headgate.commits.certificate import FLAG
from headgate.testing.faults import Call
from tests.crash.landing_world import Watching
from tests.crash.ready_flows import MERGE_BYTES, delete, retire, wish_repaired, wish_withdrawn
from tests.crash.ready_world import Process, World, hour, run, settings_of

STREAMS = ("orders", "bids")


def fresh() -> World:
    """An hour has its flags; the next has small files that are merged first, then comes a day."""
    world = World(settings_of(*STREAMS, merge_bytes=MERGE_BYTES))
    for stream in STREAMS:
        world.open(stream, hour(22))
        world.land(stream, hour(22), 6)
        world.reach(stream, hour(23))
    run(world)
    for stream in STREAMS:
        for _ in range(3):
            world.land(stream, hour(23), 2)
        world.reach(stream, hour(25))
    return world


def withdraws(world: World) -> None:
    wish_withdrawn(world, "orders", 22)


def repairs(world: World) -> None:
    flag = f"2027-01-15/22/{FLAG}"
    if flag in world.flags():
        delete(world, flag)
    wish_repaired(world, 0, 24)


def retires(world: World) -> None:
    retire(world, "orders")


def merges_no_more(world: World) -> None:
    before, world.settings = world.settings, settings_of(*STREAMS)
    Process(world).work.tick()
    world.settings = before


def ends_a_stream(world: World) -> None:
    """By the settings of a holder that has a last hour; the others have none."""
    before = world.settings
    last_ms = hour(22).start_ms
    streams = [replace(one, last_hour_ms=last_ms) for one in before.streams if one.name == "orders"]
    others = [one for one in before.streams if one.name != "orders"]
    world.settings = replace(before, streams=(*streams, *others))
    Process(world).work.tick()
    world.settings = before


def joins(world: World) -> None:
    world.open("clicks", hour(22))
    world.reach("clicks", hour(25))
    world.settings = settings_of(*STREAMS, "clicks", merge_bytes=MERGE_BYTES)


def disturbed_before(effect: int, act: Callable[[World], None]) -> World | None:
    """None: the pass has no such effect."""
    world, seen = fresh(), [0]

    def look(_call: Call) -> None:
        seen[0] += 1
        if seen[0] == effect:
            act(world)

    Process(world, Watching(look)).run()
    if seen[0] < effect:
        return None
    run(world)
    run(world)
    return world


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (withdraws, ""),
        (repairs, ""),
        (retires, "was retired by ann"),
        (merges_no_more, ""),
        (ends_a_stream, "ended with hour 2027-01-15T22"),
        (joins, ""),
    ],
    ids=lambda one: one.__name__ if callable(one) else "",
)
def test_inv6_inv7_whoever_acts_in_the_middle_of_a_pass_leaves_all_flags_true(
    act: Callable[[World], None], told: str
) -> None:
    effect = 0
    while (world := disturbed_before(effect + 1, act)) is not None:
        effect += 1
        root = world.root()
        assert world.findings() == [], effect
        assert world.faults() == [], effect
        assert (root.journal, root.wishes, root.repair, root.reopened) == (None, {}, None, {})
        assert all(told and told in words for words in root.troubles.values()), effect
        assert root.hours_ms == hour(25).start_ms, effect
        for stream in STREAMS:
            assert [len(world.rows(stream, hour(one))) for one in (22, 23)] == [6, 6], effect
    assert effect > 100
