"""How a large fleet shares many tasks, in the simulator: real loops, simulated time.

    python -m benchmarks.claims             100 nodes, 10,000 tasks
    python -m benchmarks.claims 20 1000     others

Three promises: a plan takes less than a second; an idle node asks the store at most ten times a
minute, whatever the number of tasks; when a node leaves, only its share moves. And how fast the
simulator itself is.
"""

import logging
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from unittest.mock import patch

from benchmarks.report import Number, publish
from headgate.cluster import Order, claims
from headgate.cluster.duties import NodeSettings
from headgate.cluster.feeds import FeedState, feed_key
from headgate.cluster.planner import Item, Plan, Seat, plan
from headgate.cluster.session import TERM_MS
from headgate.cluster.tasks import new_task, task_key
from headgate.errors import HeadgateError
from headgate.store import DocumentStore
from headgate.store.codec import body_of
from headgate.testing.checkers import checkers, watch
from headgate.testing.faults import wrap
from headgate.testing.fleet import Fleet, Scenario, play
from headgate.testing.simulation import Simulation
from headgate.testing.steps import StepsFeed
from headgate.testing.turmoil import scenario_of

HOUR_MS = 3_600_000
IDLE_MINUTES = 30
PLAN_S_MAX = 1.0
REQUESTS_MAX = 10
EFFECTS_MIN = 20_000
SEEDS = 60


class PlanTimes:
    """Every plan that any node makes, with the seconds it took."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, items: list[Item], seats: list[Seat], me: str) -> Plan:
        started = time.perf_counter()
        found = plan(items, seats, me)
        self.seconds.append(time.perf_counter() - started)
        return found


def held(fleet: Fleet) -> list[int]:
    return [len(fleet.duties[name].desk.keys()) for name in fleet.live()]


def create_tasks(fleet: Fleet, orders: tuple[Order, ...]) -> None:
    """As a leader long before: what is measured comes afterwards."""
    for number, order in enumerate(orders):
        fleet.store.create(task_key(fleet.feed.name, number), body_of(new_task(order)))
    fleet.store.create(feed_key(fleet.feed.name), body_of(FeedState(next=len(orders))))


def fleet_numbers(nodes: int, tasks: int) -> list[Number]:
    feed = StepsFeed("demo", tasks, steps=1_000, pause_ms=100 * HOUR_MS)
    times = PlanTimes()
    with Simulation(1) as simulation, patch.object(claims, "plan", times):
        fleet = Fleet(simulation, feed)
        create_tasks(fleet, feed.wanted(0, tasks))
        for number in range(nodes):
            fleet.boot(f"node-{number:03}")
        if not simulation.run(HOUR_MS, lambda: sum(held(fleet)) == tasks):
            raise SystemExit(f"only {sum(held(fleet))} of {tasks} tasks were claimed in an hour")
        claimed_ms = simulation.now_ms
        simulation.run(claimed_ms + 20 * TERM_MS)
        shares = held(fleet)
        before = {name: simulation.effects(name) for name in fleet.live()}
        simulation.run(simulation.now_ms + IDLE_MINUTES * 60_000)
        asked = [simulation.effects(name) - before[name] for name in fleet.live()]
        epochs = {name: dict(duties.desk.epochs()) for name, duties in fleet.duties.items()}
        leaver = fleet.live()[nodes // 2]
        share = len(epochs[leaver])
        simulation.machines[leaver].kill()
        simulation.run(
            simulation.now_ms + HOUR_MS,
            lambda: sum(held(fleet)) == tasks,
        )
        simulation.run(simulation.now_ms + 20 * TERM_MS)
        moved = sum(
            epoch != epochs[name].get(key)
            for name in fleet.live()
            for key, epoch in fleet.duties[name].desk.epochs().items()
        )
    size = {"nodes": nodes, "tasks": tasks}
    a_minute = max(asked) / IDLE_MINUTES
    return [
        Number(
            "claims.plan",
            max(times.seconds),
            "s",
            max(times.seconds) / PLAN_S_MAX,
            "the slowest of all plans, against a second",
            {**size, "median_s": statistics.median(times.seconds), "plans": len(times.seconds)},
        ),
        Number(
            "claims.idle",
            a_minute,
            "requests/min",
            a_minute / REQUESTS_MAX,
            "the busiest node, against ten a minute",
            {**size, "median": statistics.median(asked) / IDLE_MINUTES},
        ),
        Number(
            "claims.moves",
            moved,
            "tasks",
            moved / share,
            "tasks that moved when a node was killed, against its share",
            {
                **size,
                "share": share,
                "smallest_share": min(shares),
                "largest_share": max(shares),
                "claimed_after_s": claimed_ms / 1_000,
            },
        ),
    ]


def kernel_effects_a_second() -> float:
    """Five machines read and replace four documents in turn, with all checkers watching."""
    with Simulation(1) as simulation:
        watch(simulation, checkers(TERM_MS))
        bare = simulation.store()
        for number in range(4):
            bare.create(f"steps/demo/{number}", {"format": 1, "epoch": 1})
        for number in range(5):
            machine = simulation.boot(f"machine-{number}")
            store = wrap(DocumentStore, simulation.store(), machine.stage)
            machine.start("loop", partial(_replace_for_ever, store, number))
        started = time.perf_counter()
        simulation.run(60_000)
        seconds = time.perf_counter() - started
        return sum(simulation.effects(name) for name in simulation.machines) / seconds


def _replace_for_ever(store: DocumentStore, number: int) -> None:
    for turn in count(number):
        found = store.get(f"steps/demo/{turn % 4}")
        if found is not None:
            with suppress(HeadgateError):
                store.replace(found.key, {"format": 1, "epoch": turn}, found.version)


def simulator_numbers() -> list[Number]:
    """The kernel alone; a calm fleet of real nodes in it; and the turmoil that the tests play."""
    kernel = max(kernel_effects_a_second() for _ in range(3))
    nodes = {f"node-{number}": NodeSettings(f"node-{number}") for number in range(1, 6)}
    busy = Scenario(1, StepsFeed("demo", 60, 10, 200), nodes)
    calm = max(_effects_a_second([busy]) for _ in range(5))
    turmoil = _effects_a_second([scenario_of(seed) for seed in range(SEEDS)])
    peer = "against 20,000 a second, with all checkers"
    return [
        Number("claims.simulator", kernel, "effects/s", kernel / EFFECTS_MIN, peer, {}),
        Number(
            "claims.fleet",
            calm,
            "effects/s",
            calm / EFFECTS_MIN,
            f"the same with five real nodes in it, {peer}",
            {"turmoil": turmoil, "seeds": SEEDS},
        ),
    ]


def _effects_a_second(scenarios: Sequence[Scenario]) -> float:
    started = time.perf_counter()
    effects = sum(play(scenario).effects for scenario in scenarios)
    return effects / (time.perf_counter() - started)


def main() -> None:
    logging.disable(logging.CRITICAL)
    nodes, tasks = (int(argument) for argument in sys.argv[1:3]) if sys.argv[2:] else (100, 10_000)
    publish("claims", [*fleet_numbers(nodes, tasks), *simulator_numbers()])


if __name__ == "__main__":
    main()
