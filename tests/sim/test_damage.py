"""A damaged document, a feed that fails, a task that is too large: each concerns only itself."""

import pytest

from headgate.cluster import Order
from headgate.cluster.feeds import feed_key
from headgate.cluster.picture import LEADER, read_picture
from headgate.cluster.roster import ROSTER
from headgate.cluster.session import TERM_MS, session_key
from headgate.cluster.tasks import PAYLOAD_BYTES_MAX, task_key
from headgate.testing.fleet import Fleet
from headgate.testing.simulation import Simulation
from headgate.testing.steps import StepsFeed

FEED = StepsFeed("demo", 12, 3, 2_000)


def damage(fleet: Fleet, key: str) -> None:
    found = fleet.store.get(key)
    assert found is not None
    fleet.store.replace(key, {"format": 1, "nonsense": True}, found.version)


def run_for(fleet: Fleet, terms: int) -> bool:
    return fleet.simulation.run(fleet.simulation.now_ms + terms * TERM_MS, fleet.is_done)


def states(fleet: Fleet) -> list[str]:
    return [task.value.state for task in read_picture(fleet.store).tasks.values()]


def leader_of(fleet: Fleet) -> str:
    return next(name for name in fleet.live() if fleet.duties[name].leader.epoch is not None)


def booted(simulation: Simulation, names: str = "abc") -> Fleet:
    fleet = Fleet(simulation, FEED)
    for name in names:
        fleet.boot(name)
    simulation.run(6_000)
    return fleet


def test_without_a_readable_leader_document_the_tasks_are_still_done() -> None:
    with Simulation(1) as simulation:
        fleet = booted(simulation)
        damage(fleet, LEADER)
        fleet.simulation.machines[leader_of(fleet)].kill()
        run_for(fleet, 4)
        assert set(states(fleet)) == {"done"}  # and stay: nobody leads, so nobody removes


def test_a_damaged_roster_stops_nothing() -> None:
    with Simulation(1) as simulation:
        fleet = booted(simulation)
        damage(fleet, ROSTER)
        fleet.boot("d")
        assert run_for(fleet, 4)


def test_the_damaged_session_of_a_dead_node_holds_only_what_it_held() -> None:
    with Simulation(1) as simulation:
        fleet = booted(simulation)
        dead = next(name for name in fleet.live() if name != leader_of(fleet))
        member = fleet.duties[dead].membership.member
        assert member is not None
        held = set(fleet.duties[dead].desk.keys())
        simulation.machines[dead].kill()
        damage(fleet, session_key(member.session))
        run_for(fleet, 6)
        left = read_picture(fleet.store).tasks
        assert held
        assert set(left) <= held


def test_a_node_whose_own_session_is_damaged_comes_back() -> None:
    with Simulation(1) as simulation:
        fleet = booted(simulation, "a")
        member = fleet.duties["a"].membership.member
        assert member is not None
        damage(fleet, session_key(member.session))
        run_for(fleet, 2)
        again = fleet.duties["a"].membership.member
        assert again is not None
        assert again.session != member.session


def test_a_damaged_task_holds_up_no_other() -> None:
    with Simulation(1) as simulation:
        fleet = booted(simulation)
        damage(fleet, task_key("demo", 3))
        simulation.machines[leader_of(fleet)].kill()
        run_for(fleet, 6)
        assert read_picture(fleet.store).tasks == {}


class Failing:
    name = "failing"

    def wanted(self, first: int, limit: int) -> tuple[Order, ...]:
        raise OSError("the source is down")


class Large:
    name = "large"

    def wanted(self, first: int, limit: int) -> tuple[Order, ...]:
        sizes = [10, PAYLOAD_BYTES_MAX + 1, 20]
        return tuple(Order("nobody", b"x" * size) for size in sizes[first : first + limit])


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_feed_that_fails_or_is_damaged_holds_up_no_other(is_damaged: bool) -> None:
    with Simulation(1) as simulation:
        fleet = Fleet(simulation, FEED, more=[Failing()])
        if is_damaged:
            fleet.store.create(feed_key("failing"), {"format": 1, "nonsense": True})
        fleet.boot("a")
        simulation.run(4 * TERM_MS)
        assert fleet.faults() == []


def test_an_input_that_is_too_large_takes_its_place_set_aside() -> None:
    with Simulation(1) as simulation:
        fleet = Fleet(simulation, FEED, more=[Large()])
        fleet.boot("a")
        simulation.run(2 * TERM_MS)
        tasks = read_picture(fleet.store).tasks
        aside = tasks[task_key("large", 1)].value.set_aside
        assert aside is not None
        assert "600,000" in aside.words
        assert tasks[task_key("large", 2)].value.set_aside is None
