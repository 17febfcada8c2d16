"""What a person may do with a table, and when it is refused."""

from collections.abc import Callable

import pytest

from headgate.apply.notice import notice
from headgate.apply.remedies import Remedies
from headgate.errors import Halted, Invalid
from headgate.testing.faults import Calm
from tests.crash.apply_flows import ApplyOne, HaltAtAFailure
from tests.crash.apply_world import ANN, TABLE, Process, World, name_of, person
from tests.unit.apply.histories import a_history_that_is_gone_halts, deleted

ACTS: dict[str, Callable[[Remedies], object]] = {
    "retry": lambda one: one.retry(TABLE, ANN),
    "resume": lambda one: one.resume(TABLE, ANN),
    "skip": lambda one: one.skip(TABLE, name_of(1), ANN),
    "mark_applied": lambda one: one.mark_applied(TABLE, name_of(1), ANN),
}


def halted_world() -> World:
    world = HaltAtAFailure().fresh()
    Process(world).until(lambda: world.is_over(2))
    return world


@pytest.mark.parametrize("name", ACTS)
def test_each_act_of_a_person_is_in_the_ledger(name: str) -> None:
    world = halted_world()
    ACTS[name](person(world, Calm()))
    assert world.ledger().count(f"table.{name}") == 1
    assert world.document().state == "running"


@pytest.mark.parametrize("name", ACTS)
def test_a_running_table_leaves_nothing_to_decide(name: str) -> None:
    world = World()
    world.flag(0, "a")
    Process(world).until(lambda: world.is_over(0))
    before = world.document()
    with pytest.raises(Halted, match="is not halted"):
        ACTS[name](person(world, Calm()))
    assert world.document() == before
    assert world.ledger() == []


@pytest.mark.parametrize("name", ACTS)
def test_inv9_a_halting_table_is_not_decided_about(name: str) -> None:
    world = HaltAtAFailure().fresh()
    person(world, Calm()).halt(TABLE, ANN)
    with pytest.raises(Halted, match="a node may still change it"):
        ACTS[name](person(world, Calm()))
    assert world.document().state == "halting"


def test_only_the_batch_it_stands_at_can_be_passed() -> None:
    world = halted_world()
    with pytest.raises(Invalid, match=f"it stands at {name_of(1)}"):
        person(world, Calm()).skip(TABLE, name_of(2), ANN)
    assert world.document().state == "halted"


def test_a_skipped_batch_is_left_out_on_record_and_the_next_one_enters() -> None:
    world = halted_world()
    person(world, Calm()).skip(TABLE, name_of(1), ANN)
    Process(world).until(lambda: world.is_over(2))
    assert [batch for batch, _ in world.rows()] == [name_of(0), name_of(2)]
    (passed,) = world.document().passed
    assert (passed.batch, passed.how, passed.reason, passed.who) == (
        name_of(1),
        "skipped",
        ANN.reason,
        "ann",
    )
    kinds = {proof.batch: proof.kind for proof in world.proofs()}
    assert kinds[name_of(1)] == "empty"


def test_a_table_that_a_person_halted_between_batches_passes_its_head() -> None:
    world = World()
    world.flag(0, "a")
    Process(world).until(lambda: world.is_over(0))
    person(world, Calm()).halt(TABLE, ANN)
    process = Process(world)
    process.until(lambda: world.document().state == "halted")
    with pytest.raises(Halted, match="stopped at no batch in particular"):
        person(world, Calm()).retry(TABLE, ANN)
    with pytest.raises(Invalid, match="nothing waits"):
        person(world, Calm()).skip(TABLE, name_of(1), ANN)
    person(world, Calm()).resume(TABLE, ANN)
    world.flag(1, "b")
    process.until(lambda: world.is_over(1))
    assert len(world.rows()) == 2


def test_inv8_a_table_that_a_person_halted_is_not_begun_anew_where_its_disk_is_missing() -> None:
    """It was halted for its disk, and resumed before that was mounted again."""
    world = World()
    world.flag(0, "a")
    Process(world).until(lambda: world.is_over(0))
    person(world, Calm()).halt(TABLE, ANN)
    Process(world).until(lambda: world.document().state == "halted")
    before = world.basin.files()
    deleted(world)

    person(world, Calm()).resume(TABLE, ANN)
    world.flag(1, "b")
    Process(world).until(lambda: world.is_over(1))

    halt = world.document().halt
    assert world.basin.files() == {}
    assert halt is not None
    assert "not in the table's history" in halt.words

    for path, content in before.items():
        world.basin.put_at(path, content)
    person(world, Calm()).retry(TABLE, ANN)
    Process(world).until(lambda: world.is_over(1))
    assert world.rows() == [(name_of(0), "a"), (name_of(1), "b")]
    assert world.faults() == []


def test_halting_twice_is_fine_and_an_unknown_table_is_refused() -> None:
    world = halted_world()
    before = world.document()
    assert person(world, Calm()).halt(TABLE, ANN) == before
    with pytest.raises(Invalid, match="no node has ever worked on it"):
        person(world, Calm()).halt("other", ANN)


def test_a_table_that_is_gone_for_good_goes_on_by_a_persons_word() -> None:
    world = a_history_that_is_gone_halts()
    assert f"headgate table resume {TABLE} --lost" in notice(TABLE, world.document(), 1)

    person(world, Calm()).resume(TABLE, ANN, is_lost=True)
    Process(world).until(lambda: world.is_over(0))

    assert world.rows() == [(name_of(0), "a")]
    assert "table.resume" in world.ledger()


def test_a_running_table_is_not_lost() -> None:
    world = ApplyOne().fresh()
    Process(world).until(lambda: world.is_over(0))
    with pytest.raises(Halted, match="is not halted"):
        person(world, Calm()).resume(TABLE, ANN, is_lost=True)
