"""Hours of outputs: one read and one watermark, and flags and certificates for each."""

from dataclasses import replace

import pytest

from headgate.commits.certificate import FLAG, hold_path
from headgate.commits.checkpoint import Checkpoint, Wish, checkpoint_key, since
from headgate.commits.roots import RootDocument, retired, root_key
from headgate.landing.stream_document import check_seat
from headgate.periods import DEFAULT_FOLDER, HOUR_MS, FolderTemplate, Period
from headgate.ready import ReadyStream
from headgate.store.changes import change, read
from tests.crash.ready_world import (
    LATENESS_MS,
    TEMPLATE,
    World,
    hour,
    landed_in,
    outputs_of,
    run,
)


def world_of(*outputs: str) -> World:
    world = World(outputs_of("events", *outputs))
    world.open("events", hour(20))
    return world


def test_each_output_is_certified_by_its_own_files_of_shared_commits() -> None:
    world = world_of("orders", "clicks")
    world.land("events", hour(20), 3, output="orders")
    world.land("events", hour(20), 2, output="clicks")
    world.land("events", hour(21), 1, output="orders")
    world.reach("events", hour(22))

    run(world)

    orders, clicks = (world.certificate(one, hour(20)) for one in ("orders", "clicks"))
    assert [file.path for file in orders.files] == [
        "2027-01-15/20/orders/data/shard0-commit0000000001-0.json"
    ]
    assert [file.rows for file in clicks.files] == [2]
    assert orders.commits == clicks.commits == {"0": ((1, 3),)}
    assert orders.partitions == clicks.partitions
    assert (orders.counts["landed"], clicks.counts["landed"]) == (3, 2)
    empty = world.certificate("clicks", hour(21))
    assert (empty.files, empty.commits) == ((), {"0": ((3, 4),)})
    assert f"2027-01-15/21/{FLAG}" in world.flags()
    assert sorted(world.root().streams) == ["clicks", "orders"]
    assert world.findings() == []


def test_inv6_an_hour_is_forgotten_only_once_each_output_has_its_certificate() -> None:
    """Else the next certificate would not know the commits with its files."""
    world = world_of("orders", "clicks")
    for number in (20, 21):
        world.land("events", hour(number), 1, output="orders")
        world.land("events", hour(number), 1, output="clicks")
    world.reach("events", hour(22))
    held = hold_path(TEMPLATE, hour(20), "clicks")
    world.lake.put(held, b"")
    run(world)
    world.reach("events", hour(23))
    run(world)

    seats = world.root().streams
    assert seats["orders"].frontier_ms == hour(23).start_ms
    assert seats["clicks"].frontier_ms == hour(20).start_ms
    document = world.stream("events")
    assert (document.closed_ms, document.closing_ms) == (hour(20).start_ms, hour(23).start_ms)
    checkpoint_periods(world, document.closed_ms)  # as the next commit would
    facts = world.lake.facts(held)
    assert facts is not None
    world.lake.remove(held, facts)
    run(world)

    assert [file.rows for file in world.certificate("clicks", hour(20)).files] == [1]
    assert world.findings() == []


def checkpoint_periods(world: World, closed_ms: int | None) -> None:
    found = read(world.store, checkpoint_key("events", 0), Checkpoint)
    assert found is not None
    first = "" if closed_ms is None else str(Period(closed_ms, "hour"))
    world.put("events", periods=since(found.value.periods, first))


@pytest.mark.parametrize("template", [DEFAULT_FOLDER, "{stream}/{yyyy}-{MM}-{dd}/{HH}"])
def test_an_output_that_comes_later_begins_behind_what_was_certified(template: str) -> None:
    """Also where no flag over all streams tells it."""
    folder = FolderTemplate.parse(template)
    world = World(outputs_of("events", "orders", template=folder))
    world.open("events", hour(20))
    world.land("events", hour(20), 1, output="orders")
    world.reach("events", hour(21))
    run(world)
    world.reach("events", hour(22))
    run(world)
    document = world.stream("events")
    assert document.closed_ms == hour(21).start_ms
    checkpoint_periods(world, document.closed_ms)  # as the next commit would

    late = ReadyStream("clicks", folder, LATENESS_MS, of="events")
    world.settings = replace(world.settings, streams=(*world.settings.streams, late))
    world.land("events", hour(22), 2, output="clicks")
    world.reach("events", hour(24))
    run(world)

    seat = world.root().streams["clicks"]
    assert (seat.first_ms or 0) >= hour(21).start_ms
    assert [file.rows for file in world.certificate("clicks", hour(22)).files] == [2]
    assert world.findings() == []


def test_an_output_that_was_retired_holds_nothing_back() -> None:
    world = world_of("orders", "clicks")
    world.land("events", hour(20), 1, output="orders")
    world.reach("events", hour(21))
    run(world)
    wish = Wish("over", "ada", 1)
    change(
        world.store,
        root_key(world.settings.name),
        RootDocument,
        lambda found: retired(found, "clicks", wish),
    )
    kept = tuple(one for one in world.settings.streams if one.name == "orders")
    world.settings = replace(world.settings, streams=kept)
    world.reach("events", hour(21).start_ms + 3 * HOUR_MS)
    run(world)
    world.reach("events", hour(25))
    run(world)
    assert world.stream("events").closed_ms == hour(24).start_ms
    assert f"2027-01-15/23/{FLAG}" in world.flags()


@pytest.mark.parametrize("is_begun", [False, True])
def test_inv6_an_output_that_comes_back_to_the_settings_is_certified_with_its_files(
    is_begun: bool,
) -> None:
    """Until a person retires it, nobody may forget the commits with its files."""
    world = world_of("orders", "clicks")
    if is_begun:
        world.reach("events", hour(20))
        run(world)
    for number in (20, 21):
        world.land("events", hour(number), 1, output="orders")
        world.land("events", hour(number), 1, output="clicks")
    both = world.settings
    kept = tuple(one for one in both.streams if one.name == "orders")
    world.settings = replace(both, streams=kept)
    for number in (22, 23):
        world.reach("events", hour(number))
        run(world)
    assert world.root().streams["orders"].frontier_ms == hour(23).start_ms
    checkpoint_periods(world, world.stream("events").closed_ms)  # as the next commit would
    world.settings = both
    run(world)

    assert [file.rows for file in world.certificate("clicks", hour(20)).files] == [1]
    assert world.findings() == []


def test_inv7_no_hour_is_flagged_without_an_output_that_this_node_does_not_know_yet() -> None:
    """Nodes are restarted one after the other: one that lands may know it before the one that
    flags."""
    world = world_of("orders")
    world.land("events", hour(20), 1, output="orders")
    both = outputs_of("events", "orders", "clicks")
    check_seat(world.store, landed_in(both)["events"])  # by the node that lands
    world.land("events", hour(20), 2, output="clicks")
    for number in (22, 23):
        world.reach("events", hour(number))
        run(world)
    assert f"2027-01-15/20/orders/{FLAG}" in world.flags()
    assert f"2027-01-15/20/{FLAG}" not in world.flags()
    checkpoint_periods(world, world.stream("events").closed_ms)  # as the next commit would

    world.settings = both
    run(world)
    assert [file.rows for file in world.certificate("clicks", hour(20)).files] == [2]
    assert f"2027-01-15/20/{FLAG}" in world.flags()
    assert world.findings() == []


def test_a_stream_that_left_the_settings_does_not_make_outputs_of_another_remember() -> None:
    world = World(outputs_of("events", "orders"))
    world.open("events", hour(20))
    world.open("bids")  # nothing of it has landed
    for number in (22, 23):
        world.land("events", hour(number - 1), 1, output="orders")
        world.reach("events", hour(number))
        run(world)
    assert world.stream("events").closed_ms == hour(22).start_ms
