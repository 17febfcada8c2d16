"""Whether flags are still to come, without anything else happening."""

from dataclasses import replace

import pytest

from headgate.commits.certificate import hold_path
from headgate.commits.roots import RootDocument, RootJournal, root_key
from headgate.periods import FolderTemplate
from headgate.ready.outlook import has_flags_to_come
from headgate.store.changes import change
from tests.crash.ready_world import TEMPLATE, World, hour, run, settings_of


def is_to_come(world: World) -> bool:
    return has_flags_to_come(world.store, world.lake, world.settings)


def landed(*streams: str, reached: int = 14) -> World:
    """Each has a record in hour 13, and its watermark at the start of that hour."""
    world = World(settings_of(*(streams or ("orders",))))
    for stream in streams or ("orders",):
        world.open(stream, hour(13))
        world.land(stream, hour(13))
        world.reach(stream, hour(reached))
    return world


def put(world: World, **fields: object) -> None:
    change(
        world.store,
        root_key(world.settings.name),
        RootDocument,
        lambda found: replace(found, **fields),  # type: ignore[arg-type]
    )


def test_an_empty_store_has_nothing_to_come() -> None:
    assert not is_to_come(World())


def test_k7_a_stream_of_which_nothing_landed_has_nothing_to_come() -> None:
    world = World()
    world.open("orders")
    world.reach("orders", hour(14))

    assert not is_to_come(world)


def test_what_has_landed_and_has_no_seat_yet_is_to_come() -> None:
    assert is_to_come(landed())


@pytest.mark.parametrize(("reached", "expected"), [(13, False), (14, True), (15, True)])
def test_k1_an_hour_is_to_come_once_the_watermark_is_at_its_end(
    reached: int, expected: bool
) -> None:
    world = landed(reached=13)
    run(world)
    world.reach("orders", hour(reached))

    assert is_to_come(world) == expected


def test_nothing_is_to_come_once_a_holder_has_raised_what_it_can() -> None:
    world = landed(reached=40)
    assert is_to_come(world)

    run(world)

    assert len([path for path in world.flags() if path.endswith("/orders/_READY")]) == 27
    assert not is_to_come(world)


def test_a_journal_that_stands_is_to_be_finished() -> None:
    world = landed()
    run(world)
    put(world, journal=RootJournal("raise", "", ()))

    assert is_to_come(world)


def test_a_stream_in_trouble_waits_for_a_person_and_another_does_not() -> None:
    world = landed("clicks", "orders", reached=13)
    run(world)
    world.reach("orders", hour(14))
    put(world, troubles={"orders": "a record is gone"})
    assert not is_to_come(world)

    world.reach("clicks", hour(14))
    assert is_to_come(world)


def test_an_hour_that_is_held_back_waits_for_a_person() -> None:
    world = landed(reached=13)
    run(world)
    world.reach("orders", hour(14))
    hold = hold_path(TEMPLATE, hour(13), "orders")
    facts = world.lake.stage(hold, b"")
    assert not is_to_come(world)

    world.lake.remove(hold, facts)
    assert is_to_come(world)


@pytest.mark.parametrize("kind", ["hour", "day"])
def test_k12_a_parent_whose_children_are_all_flagged_is_to_come(kind: str) -> None:
    world = landed(reached=24)
    run(world)
    assert not is_to_come(world)
    behind = {"hours_ms": None} if kind == "hour" else {"days_ms": None}
    put(world, **behind)

    assert is_to_come(world)
    put(world, troubles={f"/{kind}": "a child's certificate is gone"})
    assert not is_to_come(world)


def test_without_folders_above_no_parent_is_to_come() -> None:
    apart = FolderTemplate.parse("{stream}/{yyyy}-{MM}-{dd}/{HH}")
    world = World(settings_of("orders", template=apart))
    world.open("orders", hour(13))
    world.reach("orders", hour(13))
    run(world)

    assert world.root().hours_ms is None
    assert not is_to_come(world)
