"""What the document about batches promises, for the hours of our own streams."""

from functools import partial

import pytest

from headgate.errors import Fenced
from headgate.testing.faults import Call
from tests.crash.apply_world import Process, World, name_of
from tests.crash.landing_world import Watching

HOURS = 3


def flagged(count: int = HOURS) -> World:
    world = World()
    for number in range(count):
        world.flag(number, f"row{number}")
    return world


def wanted(count: int = HOURS) -> list[tuple[str, str]]:
    return [(name_of(n), f"row{n}") for n in range(count)]


def test_bf1_inv8_hours_flagged_in_any_order_enter_without_a_gap_in_time() -> None:
    world = World()
    process = Process(world)
    for number in (2, 1, 0):
        world.flag(number, f"row{number}")
        for _ in range(3):
            world.ambient.pass_ms(70_000)
            process.work.tick()
        assert (world.rows() == []) == (number > 0)  # none before the first of them
    process.until(partial(world.is_over, HOURS - 1))
    assert world.rows() == wanted()
    after = {proof.batch: proof.after for proof in world.proofs()}
    assert all(name_of(n - 1) in after[name_of(n)] for n in (1, 2))


def test_bf2_bf13_each_step_may_be_another_process_and_goes_on_where_the_last_stopped() -> None:
    """As with --max-seconds and any scheduler: nothing is kept but documents and files."""
    world = flagged()
    for _ in range(100):
        if world.is_over(HOURS - 1):
            break
        world.ambient.pass_ms(70_000)
        Process(world).work.tick()
    assert world.rows() == wanted()
    assert world.faults() == []


def test_bf12_bf14_batch_run_attempt_and_the_version_before_are_recorded_before_spark_runs() -> (
    None
):
    world = flagged()
    seen: list[tuple[str, int, int, str]] = []

    def look(call: Call) -> None:
        if call.method == "move":
            current = world.document().current
            assert current is not None
            seen.append((current.entry.batch, current.run, current.attempt, current.version))

    Process(world, Watching(look)).until(partial(world.is_over, HOURS - 1))
    assert [(batch, run, attempt) for batch, run, attempt, _ in seen] == [
        (name_of(n), n + 1, 1) for n in range(HOURS)
    ]
    assert all(version for *_, version in seen)
    assert len({version for *_, version in seen}) == HOURS  # each rests on the one before


def test_b11_inv9_a_second_run_on_a_busy_table_has_no_effect_on_it() -> None:
    """The first is in the middle of its Spark job; a second one takes the table over and applies
    everything; what the first brings then is refused, and it is told."""
    world = flagged()
    began: list[Call] = []

    def look(call: Call) -> None:
        if call.method == "move" and not began:
            began.append(call)
            Process(world).until(partial(world.is_over, HOURS - 1))

    first = Process(world, Watching(look))
    first.work.tick()  # what it brings is in the table already: it looks again
    world.ambient.pass_ms(70_000)
    with pytest.raises(Fenced):
        first.work.tick()
    assert began
    assert world.rows() == wanted()
    assert world.faults() == []


def added_before(effect: int) -> World | None:
    """The next hour is flagged before that effect of whoever applies the only one and finds the
    backlog empty. None: it has no such effect."""
    world = flagged(1)
    seen = [0]

    def look(_call: Call) -> None:
        seen[0] += 1
        if seen[0] == effect:
            world.flag(1, "row1")

    process = Process(world, Watching(look))
    process.until(lambda: world.is_over(0) or world.is_over(1))
    for _ in range(2):  # it rests, and looks again
        world.ambient.pass_ms(70_000)
        process.work.tick()
    if seen[0] < effect:
        return None
    process.until(partial(world.is_over, 1))
    return world


def test_b26_bf11_bf17_an_hour_added_at_any_moment_of_the_finish_is_applied_without_another() -> (
    None
):
    effect = 0
    while (world := added_before(effect + 1)) is not None:
        effect += 1
        assert world.rows() == wanted(2), effect
        assert world.faults() == [], effect
    assert effect > 20


@pytest.mark.parametrize("dies_after", range(1, 12))
def test_b23_b24_bf12_killed_after_any_tick_and_nothing_more_arrives_it_is_applied(
    dies_after: int,
) -> None:
    world = flagged(2)
    dead = Process(world)
    for _ in range(dies_after):
        world.ambient.pass_ms(70_000)
        dead.work.tick()
    Process(world).until(partial(world.is_over, 1))
    assert world.rows() == wanted(2)
    assert world.faults() == []
