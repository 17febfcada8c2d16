"""Apply, crashed before and after each effect, twice; gone on late; halted while somebody is
paused."""

from contextlib import suppress
from functools import partial

import pytest

from headgate.apply.intake import manifest_of
from headgate.backlog import Entry
from headgate.backlog.manifest import freeze, hash_of
from headgate.backlog.queue import queue
from headgate.errors import HeadgateError
from headgate.testing.basin import Basin
from headgate.testing.crashes import HARMS, check_every_crash, late_wakers, woken_midway
from headgate.testing.faults import Call, Calm, Crashed, Harm
from tests.crash.apply_flows import FLOWS, REMEDIES, Apply, ApplyOne, HaltAtAFailure
from tests.crash.apply_world import (
    ANN,
    STREAM,
    TABLE,
    TURN_MS,
    AtEffect,
    Process,
    World,
    name_of,
    person,
)

CRASHES = (Harm.CRASH_BEFORE, Harm.CRASH_AFTER)
EFFECTS_MAX = 300


@pytest.mark.parametrize("flow", FLOWS, ids=str)
def test_a_calm_run_ends_well(flow: Apply) -> None:
    """Else every comparison with it would prove nothing."""
    world = flow.fresh()
    flow.act(world, Calm())
    state = flow.state(world)
    assert state["faults"] == []
    assert state["cries"] == []


@pytest.mark.parametrize("flow", FLOWS, ids=str)
def test_b2_b4_b23_b24_b25_inv8_apply_ends_the_same_from_every_crash(flow: Apply) -> None:
    assert check_every_crash(flow, (*HARMS, Harm.REFUSE), again=()) > 20


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("flow", [ApplyOne(), *FLOWS[1:]], ids=str)
def test_inv5_a_crash_during_the_recovery_changes_nothing(
    flow: Apply, request: pytest.FixtureRequest
) -> None:
    is_soak = request.config.getoption("--soak") is not None
    first = CRASHES if is_soak else (Harm.CRASH_AFTER,)
    again = (*CRASHES, Harm.LOSE_REPLY) if is_soak else (Harm.CRASH_AFTER,)
    assert check_every_crash(flow, first, again) > 5


@pytest.mark.parametrize("flow", FLOWS, ids=str)
def test_b10_b11_inv9_a_late_waker_changes_nothing(flow: Apply) -> None:
    assert late_wakers(flow) > 3


@pytest.mark.parametrize("flow", [ApplyOne(), HaltAtAFailure(), *REMEDIES[::2]], ids=str)
def test_b10_b11_inv9_a_late_waker_in_the_middle_of_the_recovery_changes_nothing(
    flow: Apply, request: pytest.FixtureRequest
) -> None:
    is_soak = request.config.getoption("--soak") is not None

    def is_asked_for(call: Call) -> bool:
        return is_soak or call.method in ("replace", "publish_folder", "delete", "create")

    assert woken_midway(flow, is_asked_for) > 50


def test_inv9_whoever_is_paused_cannot_change_a_halted_table() -> None:
    assert halted_while_paused() > 20


def halted_while_paused() -> int:
    """Before each effect of a holder a person halts the table, and the next holder sees to it; then
    the first goes on. How many effects that were."""
    for effect in range(1, EFFECTS_MAX):
        world = ApplyOne().fresh()
        kept: list[object] = []

        stage = AtEffect(effect, partial(halt, world, kept))
        with suppress(HeadgateError):
            Process(world, stage).until(partial(world.is_over, 0))
        if not stage.is_spent:
            return effect
        assert world.document().state == "halted", effect
        assert world.rows() == kept[0], f"{stage.calls[effect - 1]}: a halted table changed"
    raise AssertionError("it makes no end of effects")


def halt(world: World, kept: list[object]) -> None:
    other = Process(world)
    other.until(lambda: world.document().epoch > 0)
    person(world, Calm()).halt(TABLE, ANN)
    other.until(lambda: world.document().state == "halted")
    kept.append(world.rows())


@pytest.mark.parametrize("dies", [False, True], ids=["it goes on", "it dies"])
def test_b1_b26_inv8_an_earlier_batch_that_arrives_is_neither_lost_nor_out_of_order(
    dies: bool,
) -> None:
    assert earlier_arrivals(dies=dies) > 20


def earlier_arrivals(*, dies: bool) -> int:
    """A batch that sorts before the only other one arrives before each effect of a process, which
    may die there. How many effects that were."""
    for effect in range(1, EFFECTS_MAX):
        world = World()
        world.flag(0, "a")
        stage = AtEffect(effect, partial(arrive, world, dies))
        with suppress(Crashed):
            Process(world, stage).until(partial(world.is_over, 0))
        if not stage.is_spent:
            return effect
        Process(world).until(partial(world.is_over, 0))
        (last,) = [proof for proof in world.proofs() if proof.batch == name_of(0)]
        firsts = [proof for proof in world.proofs() if proof.batch == name_of(-1)]
        where = f"{effect}, after {stage.calls[-1:]}"
        if firsts:
            assert name_of(-1) in last.after, f"{where}: it overtook the current batch"
            assert world.asides() == [], where
        else:
            assert [one.batch for one in world.asides()] == [name_of(-1)], f"{where}: it is lost"
        assert len(world.rows()) == 1 + len(firsts), where
    raise AssertionError("it makes no end of effects")


def arrive(world: World, dies: bool) -> None:
    manifest = manifest_of(TABLE, world.flag(-1, "early"))
    path, digest = freeze(world.lake, manifest), hash_of(manifest)
    entry = Entry(name_of(-1), 900, STREAM, 1, path, digest, 1, 1)
    queue(world.store, TABLE, entry)
    if dies:
        raise Crashed("it died")


def test_inv9_a_node_without_the_tables_disk_halts_nothing_that_others_can_still_change() -> None:
    world = ApplyOne().fresh()
    calm = Calm()
    Process(ApplyOne().fresh(), calm).until(lambda: any(is_entry(call) for call in calm.calls))
    effect = next(number for number, call in enumerate(calm.calls, 1) if is_entry(call))

    def look_without_the_disk() -> None:
        real, world.basin = world.basin, Basin()
        other = Process(world)
        for _ in range(10):
            world.ambient.pass_ms(TURN_MS)
            with suppress(HeadgateError):
                other.work.tick()
        assert world.document().state == "halting"
        assert world.basin.files() == {}
        world.basin = real

    stage = AtEffect(effect, look_without_the_disk)
    with suppress(HeadgateError):
        Process(world, stage).until(lambda: bool(world.rows()))
    assert stage.is_spent
    Process(world).until(partial(world.is_over, 0))
    assert world.document().state == "running"
    assert world.rows() == [(name_of(0), "a")]


def is_entry(call: Call) -> bool:
    return call.method == "publish_folder" and str(call.args[1]).startswith("headgate_batch=")
