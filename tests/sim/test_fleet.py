"""A simulated fleet in situations that earlier systems got wrong, each by its name."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from headgate.cluster.duties import NodeSettings
from headgate.cluster.picture import read_picture
from headgate.cluster.session import FOLDER, TERM_MS
from headgate.cluster.tasks import TASKS
from headgate.testing.checkers import body_of, checkers, watch
from headgate.testing.faults import Harm
from headgate.testing.fleet import Fleet, Scenario, play, progress
from headgate.testing.simulation import AtEffect, AtTime, Blow, Event, Fault, Happening, Simulation
from headgate.testing.simulation.network import LATENCIES_US
from headgate.testing.steps import StepsFeed

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
TEN_YEARS_MS = 10 * 365 * 24 * HOUR_MS
LONG = StepsFeed("demo", count=27, steps=1_000, pause_ms=HOUR_MS)


class Moves:
    """Who took which task, and who gave one back unfinished."""

    def __init__(self) -> None:
        self.claims: list[tuple[str, str]] = []  # machine, key
        self.returns: list[str] = []
        self._holders: dict[str, object] = {}

    def see(self, event: Event) -> None:
        call = event.call
        if event.happening is not Happening.ACTED or isinstance(event.outcome, Exception):
            return
        if call is None or call.method != "replace" or not call.subject.startswith(TASKS):
            return
        body = body_of(call)
        before, holder = self._holders.get(call.subject, ""), body.get("holder")
        if holder and holder != before:
            self.claims.append((event.machine, call.subject))
        if not holder and before and body.get("state") != "done" and not body.get("set_aside"):
            self.returns.append(call.subject)
        self._holders[call.subject] = holder

    def forget(self) -> None:
        self.claims.clear()
        self.returns.clear()


@contextmanager
def fleet_of(
    names: list[str],
    feed: StepsFeed,
    faults: list[Fault] | None = None,
    seed: int = 1,
    latencies_us: Sequence[int] = LATENCIES_US,
) -> Iterator[tuple[Fleet, Moves]]:
    """Booted, and watched: at the end nothing may have broken a rule."""
    watching = checkers(TERM_MS)
    with Simulation(seed, faults or [], latencies_us) as simulation:
        moves = Moves()
        simulation.observe(moves.see)
        watch(simulation, watching)
        fleet = Fleet(simulation, feed)
        for name in names:
            fleet.boot(name)
        yield fleet, moves
        assert [words for checker in watching for words in checker.violations] == []


def nodes(count: int) -> list[str]:
    return [f"node-{number}" for number in range(1, count + 1)]


def held_by_each(fleet: Fleet) -> dict[str, int]:
    return {name: len(fleet.duties[name].desk.keys()) for name in fleet.live()}


def is_all_held(fleet: Fleet) -> Callable[[], bool]:
    return lambda: sum(held_by_each(fleet).values()) == fleet.feed.count


def run_for(fleet: Fleet, duration_ms: int, is_over: Callable[[], bool] | None = None) -> bool:
    return fleet.simulation.run(fleet.simulation.now_ms + duration_ms, is_over)


def test_l1_a_task_of_ten_terms_keeps_its_holder() -> None:
    feed = StepsFeed("demo", count=3, steps=11, pause_ms=TERM_MS)
    with fleet_of(nodes(3), feed) as (fleet, moves):
        assert run_for(fleet, 15 * TERM_MS, fleet.is_done)

        assert len(moves.claims) == 3
        assert [step.epoch for done in progress(fleet.store) for step in done.steps] == [1] * 33


@pytest.mark.parametrize("blow", [Blow.PAUSE, Blow.SLEEP, Blow.CUT])
def test_l2_q13_a_holder_that_comes_back_after_its_session_does_nothing_more(blow: Blow) -> None:
    feed = StepsFeed("demo", count=6, steps=6, pause_ms=10_000)
    lost: list[Fault] = [AtTime("node-1", 20_000, blow, 3 * TERM_MS)]
    with fleet_of(nodes(2), feed, lost) as (fleet, moves):
        assert run_for(fleet, 20 * TERM_MS, fleet.is_done)

        assert fleet.faults() == []
        assert len(moves.claims) > 6  # taken over
        run_for(fleet, 3 * TERM_MS)
        assert fleet.duties["node-1"].membership.lost == 1
        assert fleet.live() == nodes(2)


def test_l7_fifty_restarts_leave_a_list_of_the_living() -> None:
    with fleet_of(nodes(3), StepsFeed("demo", 3, 1_000, HOUR_MS)) as (fleet, _):
        for restart in range(50):
            run_for(fleet, 5_000)
            name = f"node-{restart % 3 + 1}"
            fleet.simulation.machines[name].kill()
            run_for(fleet, 100)
            fleet.boot(name)
        run_for(fleet, 10 * TERM_MS)

        roster = read_picture(fleet.store).roster
        assert roster is not None
        assert sorted(entry.node for entry in roster.value.members) == nodes(3)
        assert len(fleet.store.list(FOLDER).documents) == 3


@pytest.mark.parametrize("count", [0, 5, 500])
def test_l9_an_idle_node_asks_at_most_ten_times_a_minute(count: int) -> None:
    feed = StepsFeed("demo", count, 1_000, HOUR_MS)
    with fleet_of(nodes(4), feed) as (fleet, _):
        assert run_for(fleet, 5 * MINUTE_MS, is_all_held(fleet))
        run_for(fleet, 5 * MINUTE_MS)
        before = {name: fleet.simulation.effects(name) for name in nodes(4)}
        run_for(fleet, 30 * MINUTE_MS)

        for name in nodes(4):
            assert fleet.simulation.effects(name) - before[name] <= 30 * 10


@pytest.mark.parametrize("off_ms", [TEN_YEARS_MS, -TEN_YEARS_MS, 5 * TERM_MS, -5 * TERM_MS])
def test_l12_a_wrong_clock_neither_holds_for_ever_nor_loses_what_it_holds(off_ms: int) -> None:
    wrong: list[Fault] = [AtTime("node-1", 0, Blow.SKEW, off_ms)]
    with fleet_of(nodes(2), LONG, wrong) as (fleet, moves):
        assert run_for(fleet, TERM_MS, is_all_held(fleet))
        run_for(fleet, 10 * TERM_MS)
        assert len(moves.claims) == LONG.count  # nobody was closed

        fleet.simulation.machines["node-1"].kill()
        assert run_for(fleet, 2 * TERM_MS, lambda: held_by_each(fleet) == {"node-2": LONG.count})


def test_q7_an_idle_fleet_shares_with_a_newcomer_within_a_term() -> None:
    with fleet_of(nodes(2), LONG) as (fleet, moves):
        assert run_for(fleet, TERM_MS, is_all_held(fleet))
        run_for(fleet, 5 * TERM_MS)
        moves.forget()

        fleet.boot("node-3")
        assert run_for(fleet, TERM_MS, lambda: sorted(held_by_each(fleet).values()) >= [8, 9, 9])
        assert len(moves.claims) <= 9  # what the newcomer gets, and no more


@pytest.mark.parametrize("is_graceful", [True, False])
def test_q12_of_27_tasks_only_the_leavers_nine_move(is_graceful: bool) -> None:
    with fleet_of(nodes(3), LONG) as (fleet, moves):
        assert run_for(fleet, TERM_MS, is_all_held(fleet))
        run_for(fleet, TERM_MS)
        assert sorted(held_by_each(fleet).values()) == [9, 9, 9]
        moves.forget()

        if is_graceful:
            fleet.drain("node-2")
        else:
            fleet.simulation.machines["node-2"].kill()
        assert run_for(fleet, 3 * TERM_MS, lambda: sorted(held_by_each(fleet).values()) == [13, 14])
        run_for(fleet, 3 * TERM_MS)
        assert len(moves.claims) == 9


def test_a_graceful_leaver_is_replaced_within_a_second() -> None:
    with fleet_of(nodes(2), LONG) as (fleet, _):
        assert run_for(fleet, TERM_MS, is_all_held(fleet))
        run_for(fleet, TERM_MS)

        fleet.drain("node-1")
        assert run_for(fleet, 1_000, lambda: held_by_each(fleet).get("node-2") == LONG.count)


@pytest.mark.parametrize("seed", range(5))
def test_q14_lost_wake_ups_and_connections_lost_in_a_claim_only_delay(seed: int) -> None:
    faults: list[Fault] = [
        AtEffect(name, effect, harm)
        for name in nodes(3)
        for effect, harm in [
            *((effect, Harm.LOSE_WAKE_UP) for effect in range(1, 200, 2)),
            *((effect, Harm.LOSE_REPLY) for effect in range(20 + seed, 80, 14)),
        ]
    ]
    with fleet_of(nodes(3), StepsFeed("demo", 20, 3, 1_000), faults, seed) as (fleet, _):
        assert run_for(fleet, 40 * TERM_MS, fleet.is_done)
        assert fleet.faults() == []


@pytest.mark.parametrize("is_graceful", [True, False])
@pytest.mark.parametrize("seed", [1, 2])
def test_twenty_nodes_restarted_at_once_rebalance_once(is_graceful: bool, seed: int) -> None:
    feed = StepsFeed("demo", count=200, steps=1_000, pause_ms=HOUR_MS)
    # Somebody whom a call costs seconds comes late, and gets its share as a latecomer.
    brisk = [min(latency_us, 100_000) for latency_us in LATENCIES_US]
    with fleet_of(nodes(20), feed, seed=seed, latencies_us=brisk) as (fleet, moves):
        assert run_for(fleet, 2 * TERM_MS, is_all_held(fleet))
        run_for(fleet, TERM_MS)
        for name in nodes(20):
            if is_graceful:
                fleet.drain(name)
            else:
                fleet.simulation.machines[name].kill()
        assert run_for(fleet, TERM_MS, lambda: fleet.live() == [])
        moves.forget()

        for name in nodes(20):
            fleet.boot(name)
        assert run_for(fleet, 3 * TERM_MS, is_all_held(fleet))
        run_for(fleet, 2 * TERM_MS)

        assert sorted(key for _, key in moves.claims) == sorted({key for _, key in moves.claims})
        assert len(moves.claims) == 200  # each task moved once
        assert moves.returns == []
        assert set(held_by_each(fleet).values()) == {10}


def test_the_last_roster_outlives_an_outage_of_all() -> None:
    with fleet_of(nodes(3), StepsFeed("demo", 0, 1)) as (fleet, _):
        run_for(fleet, TERM_MS)
        for name in nodes(3):
            fleet.simulation.machines[name].kill()
        run_for(fleet, 10 * TERM_MS)

        roster = read_picture(fleet.store).roster
        assert roster is not None
        assert sorted(entry.node for entry in roster.value.members) == nodes(3)
        numbers = {entry.number for entry in roster.value.members}

        for name in nodes(3):
            fleet.boot(name)
        run_for(fleet, 3 * TERM_MS)
        again = read_picture(fleet.store).roster
        assert again is not None
        assert min(entry.number for entry in again.value.members) > max(numbers)


def test_a_label_restricts_a_task_and_a_node_without_it_takes_the_others() -> None:
    with Simulation(1) as simulation:
        fleet = Fleet(simulation, StepsFeed("demo", 6, 1_000, HOUR_MS, labels=("gpu",)))
        fleet.boot("plain")
        run_for(fleet, 2 * TERM_MS)
        assert held_by_each(fleet) == {"plain": 0}

        fleet.boot("special", NodeSettings("special", labels=("gpu", "big")))
        assert run_for(fleet, TERM_MS, lambda: held_by_each(fleet) == {"plain": 0, "special": 6})


@pytest.mark.parametrize("harm", [Harm.CRASH_BEFORE, Harm.CRASH_AFTER, Harm.PAUSE_BEFORE])
def test_inv5_a_node_lost_at_each_of_its_effects_leaves_nothing_undone(harm: Harm) -> None:
    duration_ms = 2 * TERM_MS if harm is Harm.PAUSE_BEFORE else 0
    settings = {name: NodeSettings(name) for name in nodes(2)}
    feed = StepsFeed("demo", 4, 2, 100)
    for effect in range(1, 60):
        lost = AtEffect("node-1", effect, harm, duration_ms)
        outcome = play(Scenario(3, feed, settings, (lost,), 3 * TERM_MS))
        assert outcome.violations == [], lost


def test_outages_of_the_store_use_up_no_tries() -> None:
    """Every node loses its session again and again, in the middle of its work, and lives."""
    cuts: list[Fault] = [
        AtTime(name, time_ms, Blow.CUT, 2 * TERM_MS)
        for name in nodes(2)
        for time_ms in range(20_000, 90 * TERM_MS, 4 * TERM_MS)
    ]
    feed = StepsFeed("demo", 4, 1_000, TERM_MS // 10)
    with fleet_of(nodes(2), feed, cuts) as (fleet, _):
        run_for(fleet, 90 * TERM_MS)
        assert min(fleet.duties[name].membership.lost for name in nodes(2)) >= 6

        tasks = read_picture(fleet.store).tasks.values()
        assert [task.value.set_aside for task in tasks] == [None] * 4
        assert max(task.value.tries for task in tasks) <= 2
