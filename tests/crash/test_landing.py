"""Landing, crashed before and after each effect, twice; gone on late; with a reply lost; with the
power cut."""

import pytest

from headgate.commits import replay
from headgate.testing.crashes import HARMS, check_every_crash, late_wakers, woken_midway
from headgate.testing.faults import Call, Calm, Harm
from tests.crash.landing_flows import (
    LANDING,
    POWER_CUTS,
    Land,
    LandInRounds,
    LandTwoShardsInOneJob,
    MarkTheLake,
    Recover,
    Restage,
    WithPowerCuts,
    a_staged_file_is_lost,
    died_after,
    the_wish,
)
from tests.crash.landing_world import Process, Watching

CRASHES = (Harm.CRASH_BEFORE, Harm.CRASH_AFTER)


@pytest.mark.parametrize("flow", LANDING, ids=str)
def test_a_calm_run_ends_well(flow: Land) -> None:
    """Else every comparison with it would prove nothing."""
    world = flow.fresh()
    flow.act(world, Calm())
    state = dict(flow.state(world))
    assert not any(state.get(one) for one in ("faults", "audit", "cries", "older", "dead"))
    assert state.get("is held by the last", True)
    assert state.get("is all announced", True)
    assert state.get("old record", True)


@pytest.mark.parametrize("flow", LANDING, ids=str)
def test_k23_g6_g11_inv5_landing_ends_the_same_from_every_crash(flow: Land) -> None:
    assert check_every_crash(flow, (*HARMS, Harm.REFUSE), again=()) > 20


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("flow", [one for one in LANDING if not one.name], ids=str)
def test_inv5_a_crash_during_the_recovery_changes_nothing(
    flow: Land, request: pytest.FixtureRequest
) -> None:
    is_soak = request.config.getoption("--soak") is not None
    first = CRASHES if is_soak else (Harm.CRASH_AFTER,)
    again = (*CRASHES, Harm.LOSE_REPLY) if is_soak else (Harm.CRASH_AFTER,)
    assert check_every_crash(flow, first, again) > 5


@pytest.mark.parametrize("flow", [Land(), Recover()], ids=str)
def test_inv5_files_that_are_published_at_once_end_the_same_from_every_crash(
    flow: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "AT_ONCE_MIN", 1)
    monkeypatch.setattr(replay, "AT_ONCE_MAX", 1)  # so that a crash comes between any two
    assert check_every_crash(flow, again=()) > 20
    assert late_wakers(flow) > 3


@pytest.mark.parametrize("flow", POWER_CUTS, ids=str)
def test_what_was_acknowledged_survives_a_power_cut(flow: WithPowerCuts) -> None:
    assert check_every_crash(flow, CRASHES, again=()) > 10


def test_store_and_lake_meet_once_from_every_crash() -> None:
    assert check_every_crash(MarkTheLake()) > 100
    assert late_wakers(MarkTheLake()) > 5


@pytest.mark.parametrize("flow", LANDING, ids=str)
def test_k19_a_late_waker_changes_nothing(flow: Land) -> None:
    assert late_wakers(flow) > 3


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    "flow", [Land(), LandTwoShardsInOneJob(), LandInRounds(), Recover(), Restage()], ids=str
)
def test_k19_g14_a_late_waker_in_the_middle_of_the_recovery_changes_nothing(
    flow: Land, request: pytest.FixtureRequest
) -> None:
    is_soak = request.config.getoption("--soak") is not None

    def is_asked_for(call: Call) -> bool:
        return is_soak or call.method in ("replace", "publish", "remove")

    assert woken_midway(flow, is_asked_for) > 50


def test_inv5_who_clears_a_commit_late_takes_nothing_from_whoever_came_after() -> None:
    """A person lets it be staged again, and then finds the lost file in a backup after all."""
    world = Land().fresh()
    died_after(world, "publish", 2)  # after the record: a file
    backup = {path: world.lake.files()[path] for path in world.staged()}
    a_staged_file_is_lost(world)
    the_wish(world)
    is_over = False

    def look(call: Call) -> None:
        nonlocal is_over
        if call.method == "remove" and not is_over:  # staging is cleared: it is paused here
            is_over = True
            for path, content in backup.items():
                world.lake.put(path, content)
            Process(world, Calm()).until(world.is_landed)

    Process(world, Watching(look)).until(lambda: is_over and world.is_landed())
    assert is_over
    assert (world.estuary.faults(), world.audit()) == ([], ())
