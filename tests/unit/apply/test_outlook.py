"""Whether batches will enter a table, without anything else happening."""

from dataclasses import replace

import pytest

from headgate.apply.outlook import has_batches_to_come
from headgate.apply.table_document import Current, Halt, State, TableDocument, table_key
from headgate.backlog import Entry
from headgate.backlog.queue import queue
from headgate.store.codec import body_of
from tests.crash.apply_world import SETTINGS, START_MS, TABLE, World, name_of

HALT = Halt("", "because", "ada", 1)


def is_to_come(world: World, first_hour_ms: int | None = START_MS) -> bool:
    return has_batches_to_come(world.store, world.lake, SETTINGS, first_hour_ms)


def put(world: World, document: TableDocument) -> None:
    world.store.create(table_key(TABLE), body_of(document))


def entry(number: int) -> Entry:
    return Entry(name_of(number), number, SETTINGS.stream, 1, "m", "h", 1, 10)


def test_without_a_flag_nothing_is_to_come() -> None:
    assert not is_to_come(World())


def test_the_first_hour_is_to_come_once_it_has_its_flag() -> None:
    world = World()
    world.flag(1, "b")
    assert not is_to_come(world)

    world.flag(0, "a")
    assert is_to_come(world)


def test_a_stream_whose_first_hour_is_not_known_has_nothing_to_come() -> None:
    world = World()
    world.flag(0, "a")

    assert not is_to_come(world, None)


@pytest.mark.parametrize(("flagged", "expected"), [(2, False), (3, True), (4, False)])
def test_behind_the_last_one_queued_exactly_the_next_hour_counts(
    flagged: int, expected: bool
) -> None:
    world = World()
    put(world, TableDocument(queued=3, queued_up_to=name_of(2), applied_up_to=name_of(2)))
    world.flag(flagged, "row")

    assert is_to_come(world) == expected


def test_an_entry_of_the_backlog_is_to_come_whatever_the_lake_says() -> None:
    world = World()
    put(world, TableDocument(queued=1, queued_up_to=name_of(0)))
    queue(world.store, TABLE, entry(0))

    assert is_to_come(world, None)


def test_a_batch_under_way_is_to_come() -> None:
    world = World()
    put(world, TableDocument(run=1, current=Current(entry(0), 1, 1, "")))

    assert is_to_come(world, None)


@pytest.mark.parametrize(("state", "expected"), [("halting", True), ("halted", False)])
def test_inv9_a_halted_table_waits_for_a_person_and_one_that_is_halting_does_not(
    state: State, expected: bool
) -> None:
    world = World()
    world.flag(0, "a")
    queue(world.store, TABLE, entry(0))
    put(world, replace(TableDocument(state=state), halt=HALT))

    assert is_to_come(world) == expected
