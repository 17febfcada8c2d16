"""Closing, merging, flagging, propagating, withdrawing and repairing, crashed before and after each
effect, twice; gone on late; with a reply lost."""

import pytest

from headgate.commits.certificate import FLAG
from headgate.testing.crashes import HARMS, check_every_crash, late_wakers, woken_midway
from headgate.testing.faults import Call, Calm, Crashed, Harm, Point, Scripted
from tests.crash.ready_flows import (
    FLOWS,
    POWER_CUTS,
    Close,
    CloseAlone,
    EraseAlone,
    Mend,
    Merge,
    MergeAlone,
    Withdraw,
    WithdrawAlone,
    WithdrawAndHold,
    WithPowerCuts,
    delete,
    hold,
    let_go,
    wish_withdrawn,
)
from tests.crash.ready_world import Process, World, hour, run, settings_of

CRASHES = (Harm.CRASH_BEFORE, Harm.CRASH_AFTER)
WHOLE = {"CloseAlone": Close(), "WithdrawAlone": Withdraw()}  # in the long versions


def test_a_calm_run_ends_well() -> None:
    """Else every comparison with it would prove nothing."""
    world = Close().fresh()
    run(world)
    assert world.faults() == []
    assert [path for path in world.flags() if path.count("/") < 3] == [
        "2027-01-15/23/_READY",
        "2027-01-15/_READY",
        "2027-01-16/00/_READY",
    ]


def test_a_calm_merge_ends_well() -> None:
    world = Merge().fresh()
    rows = world.rows("orders", hour(23))
    run(world)
    names = [path.rpartition("/")[2] for path in world.data() if "/orders/" in path]
    assert names == [
        "merge00001-0.json",
        "merge00001-1.json",
        "shard0-commit0000000003-0.json",
    ]
    assert world.rows("orders", hour(23)) == rows
    found = world.certificate("orders", hour(23))
    assert [file.rows for file in found.files] == [5, 5, 9]
    assert (found.counts["landed"], found.commits) == (19, {"0": ((1, 6),)})
    assert world.root().merging == {}


@pytest.mark.parametrize("flow", FLOWS, ids=str)
def test_inv6_inv7_the_audit_of_a_calm_run_is_clean(flow: Close) -> None:
    world = flow.fresh()
    flow.act(world, Calm())
    assert world.findings() == []


@pytest.mark.parametrize("flow", FLOWS, ids=str)
def test_k24_inv5_flags_end_the_same_from_every_crash(flow: Close) -> None:
    assert check_every_crash(flow, (*HARMS, Harm.REFUSE), again=()) > 50


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    "flow", [CloseAlone(), WithdrawAlone(), Mend(), MergeAlone(), EraseAlone()], ids=str
)
def test_inv5_a_crash_during_the_recovery_of_flags_changes_nothing(
    flow: Close, request: pytest.FixtureRequest
) -> None:
    is_soak = request.config.getoption("--soak") is not None
    again = (*CRASHES, Harm.LOSE_REPLY) if is_soak else (Harm.CRASH_AFTER,)
    flow = WHOLE.get(str(flow), flow) if is_soak else flow
    assert check_every_crash(flow, CRASHES if is_soak else (Harm.CRASH_AFTER,), again) > 20


@pytest.mark.parametrize("flow", POWER_CUTS, ids=str)
def test_flags_that_were_acknowledged_survive_a_power_cut(flow: WithPowerCuts) -> None:
    assert check_every_crash(flow, CRASHES, again=()) > 20


@pytest.mark.parametrize("flow", FLOWS, ids=str)
def test_k11_inv7_a_holder_that_wakes_up_late_changes_no_flag(flow: Close) -> None:
    assert late_wakers(flow) > 10


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    "flow", [CloseAlone(), WithdrawAlone(), MergeAlone(), EraseAlone()], ids=str
)
def test_k11_inv7_a_late_holder_in_the_middle_of_the_recovery_changes_no_flag(
    flow: Close, request: pytest.FixtureRequest
) -> None:
    is_soak = request.config.getoption("--soak") is not None

    def is_asked_for(call: Call) -> bool:
        return is_soak or call.method in ("replace", "publish", "publish_all")

    flow = WHOLE.get(str(flow), flow) if is_soak else flow
    assert woken_midway(flow, is_asked_for) > 50


def test_k24_after_a_crash_between_the_two_flag_files_the_next_tick_raises_the_missing_one() -> (
    None
):
    flow = Close()
    calm = Calm()
    flow.act(flow.fresh(), calm)
    first = f"2027-01-15/23/orders/data/{FLAG}"
    effect = next(n for n, call in enumerate(calm.calls, 1) if first in call.args)
    point = Point(effect, Harm.CRASH_AFTER)
    world = flow.fresh()
    with pytest.raises(Crashed):
        flow.act(world, Scripted([point]))
    before = world.flags()
    assert f"2027-01-15/23/orders/{FLAG}" not in before

    Process(world).work.tick()

    assert {first, f"2027-01-15/23/orders/{FLAG}"} <= set(world.flags())


def test_a_withdrawn_hour_and_its_parents_are_flagged_again_as_the_next_generation() -> None:
    world = Withdraw().fresh()
    run(world)
    names = [path for path in world.flags() if path.startswith("2027-01-15")]
    assert names == [
        "2027-01-15/23/_READY",
        "2027-01-15/23/_READY.1",
        "2027-01-15/23/bids/_READY",
        "2027-01-15/23/bids/data/_READY",
        "2027-01-15/23/orders/_READY",
        "2027-01-15/23/orders/_READY.1",
        "2027-01-15/23/orders/data/_READY",
        "2027-01-15/23/orders/data/_READY.1",
        "2027-01-15/_READY",
        "2027-01-15/_READY.1",
    ]
    assert world.faults() == []


def test_kf19_a_hold_file_keeps_a_withdrawn_hour_and_its_parents_open() -> None:
    world = WithdrawAndHold().fresh()
    run(world)
    flags = [path for path in world.flags() if path.endswith(FLAG)]
    assert [path for path in flags if path.startswith("2027-01-15")] == [
        "2027-01-15/23/bids/_READY",
        "2027-01-15/23/bids/data/_READY",
    ]


@pytest.mark.parametrize("content", [None, b"somebody edited it\n"])
def test_inv6_a_withdrawn_hour_is_not_flagged_again_over_files_that_are_not_those_it_certified(
    content: bytes | None,
) -> None:
    world = World(settings_of("orders"))
    world.open("orders", hour(13))
    world.land("orders", hour(13))
    world.reach("orders", hour(14))
    run(world)
    (path,) = world.data()
    kept = world.data()[path]
    hold(world, "orders", 13)
    wish_withdrawn(world, "orders", 13)
    run(world)
    delete(world, path)
    if content is not None:
        world.lake.put(path, content)
    let_go(world, "orders", 13)
    run(world)
    (place,) = [one for one in world.root().reopened if "/" in one]
    assert path in world.root().troubles[place]
    assert f"2027-01-15/13/orders/{FLAG}" not in world.flags()

    world.lake.put(path, kept)
    run(world)
    assert (world.root().reopened, world.root().troubles) == ({}, {})
    assert world.certificate("orders", hour(13)).generation == 2


def test_k15_deleted_flags_are_raised_again_with_the_same_bytes() -> None:
    world = Mend().fresh()
    run(world)
    calm = Close().fresh()
    run(calm)
    assert world.flags() == calm.flags()
    assert world.bodies() == calm.bodies()
