"""Ready hours become entries: in order, bounded in a pass, each once."""

import pytest

from headgate.apply.intake import HOURS_MAX, Intake
from headgate.apply.table_document import TableTenure
from headgate.backlog.queue import entries
from headgate.commits.removals import Statement, statement_path, to_bytes
from headgate.errors import Corrupt
from headgate.store.codec import body_of
from tests.crash.apply_world import SETTINGS, START_MS, TABLE, World, hour, name_of


def intake_of(world: World, epoch: int = 1) -> tuple[Intake, TableTenure]:
    tenure = TableTenure(world.store, TABLE, epoch, SETTINGS.stream)
    tenure.take_over()
    return Intake(SETTINGS, world.store, world.lake, tenure), tenure


def test_a_pass_is_bounded_and_the_next_one_goes_on() -> None:
    world = World()
    for number in range(HOURS_MAX + 3):
        world.flag(number, "row")
    intake, tenure = intake_of(world)
    assert intake.take_in(START_MS, 0) == HOURS_MAX
    assert intake.take_in(START_MS, 0) == 3
    assert intake.take_in(START_MS, 0) == 0
    found = world.entries()
    assert [one.number for one in found] == list(range(HOURS_MAX + 3))
    assert [one.batch for one in found] == [name_of(n) for n in range(HOURS_MAX + 3)]
    assert tenure.document.queued_up_to == name_of(HOURS_MAX + 2)


def test_an_hour_that_is_not_ready_holds_back_those_behind_it() -> None:
    world = World()
    world.flag(1, "b")
    intake, _ = intake_of(world)
    assert intake.take_in(None, 0) == 0
    assert intake.take_in(START_MS, 0) == 0
    world.flag(0, "a")
    assert intake.take_in(START_MS, 0) == 2


def test_bf16_the_same_generation_again_changes_nothing_and_another_is_set_aside() -> None:
    world = World()
    first = world.flag(0, "a")
    intake, _ = intake_of(world)
    intake.take_in(START_MS, 0)
    before = world.entries()
    assert not intake.offer(first, 5)
    assert intake.offer(world.flag(0, "a", "late", generation=2), 5)
    assert world.entries() == before
    assert [(one.generation, one.at_ms) for one in world.asides()] == [(2, 5)]


def test_an_hour_flagged_again_after_a_crash_keeps_the_entry_that_is_there() -> None:
    """The entry was made, and its maker died before the cursor moved."""
    world = World()
    world.flag(0, "a")
    first, _ = intake_of(world)
    first.take_in(START_MS, 0)
    (entry,) = world.entries()
    other = World()
    other.lake = world.lake
    other.store.create("backlog/orders_daily/2026-11-01T00", body_of(entry))
    world.flag(0, "a", "late", generation=2)
    second, tenure = intake_of(other)
    assert second.take_in(START_MS, 5) == 1
    assert other.entries() == [entry]
    assert tenure.document.queued == 1
    assert [one.generation for one in other.asides()] == [2]


def test_a_certificate_of_another_hour_is_refused() -> None:
    world = World()
    world.flag(1, "b")
    raw = world.lake.read(world.flag_path(1))
    assert raw is not None
    world.lake.stage(world.flag_path(0), raw)
    intake, _ = intake_of(world)
    with pytest.raises(Corrupt, match=f"is the certificate of orders {name_of(1)}"):
        intake.certificate(hour(0))
    assert intake.certificate(hour(2)) is None


def test_inv8_hours_that_lie_where_the_folder_was_before_are_never_left_out() -> None:
    world = World()
    world.flag(0, "a")
    intake, tenure = intake_of(world)
    assert intake.take_in(START_MS, 0) == 1
    world.flag(2, "c")  # in the new folder, which begins with that hour
    with pytest.raises(Corrupt, match=f"{name_of(1)} .* write the folder of before"):
        intake.take_in(hour(2).start_ms, 0)
    assert tenure.document.queued_up_to == name_of(0)
    world.flag(1, "b")
    assert intake.take_in(START_MS, 0) == 2


def test_an_hour_whose_files_are_gone_on_purpose_is_queued_without_files() -> None:
    world = World()
    world.flag(0, "row")
    world.flag(1, "row")
    said = Statement(
        SETTINGS.stream, name_of(0), 1, "expired", "sha256:0", (), (), "old", "ann", 0, 0, "n"
    )
    world.lake.put(statement_path(said.stream, said.period, said.number), to_bytes(said))
    intake, _ = intake_of(world)
    assert intake.take_in(START_MS, 0) == 2
    first, second = entries(world.store, TABLE)
    assert ((first.files, first.rows), (second.files, second.rows)) == ((0, 0), (1, 1))
