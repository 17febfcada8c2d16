"""Fleet: simulated nodes that share tasks, as real ones would: the same loops, another clock.

A scenario is data: how many nodes and tasks, and what happens when. The steps of the tasks
(`steps`) are the effects that must happen once; `checkers` watch every call. After the turmoil
comes a calm time, in which everything has to be finished.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from headgate.cluster import Feed
from headgate.cluster.duties import Duties, NodeSettings
from headgate.cluster.picture import read_picture
from headgate.cluster.presence import DocumentPresence
from headgate.cluster.session import TERM_MS
from headgate.cluster.tasks import Task, released_by_person
from headgate.errors import Fenced, HeadgateError, OutcomeUnknown, Unavailable
from headgate.node import DRAIN_MS, RETRY_MS
from headgate.store import DocumentStore
from headgate.store.changes import change
from headgate.store.codec import parse
from headgate.store.names import parts
from headgate.store.pages import pages
from headgate.testing.checkers import Checker, checkers, watch
from headgate.testing.faults import wrap
from headgate.testing.simulation import Event, Fault, Machine, Simulation
from headgate.testing.simulation.network import LATENCIES_US
from headgate.testing.steps import STEPS, Progress, StepsFeed, StepsKind, find_faults

POLL_MS = 100
CALM_MS_MAX = 1_800_000  # for everything to be finished, after the turmoil


class Act(Enum):
    BOOT = "is started"
    DRAIN = "is drained"
    CLOCK = "the store's clock is set off by"


@dataclass(frozen=True, slots=True)
class Move:
    """Something that a person or a scheduler does."""

    act: Act
    time_ms: int
    node: str = ""
    amount_ms: int = 0

    def __str__(self) -> str:
        amount = f" {self.amount_ms} ms" if self.amount_ms else ""
        return f"{self.node or 'store'}: {self.act.value}{amount} at {self.time_ms / 1000:.3f} s"


@dataclass(frozen=True, slots=True)
class Scenario:
    seed: int
    feed: StepsFeed
    nodes: Mapping[str, NodeSettings]  # those that are there from the start
    happenings: tuple[Fault | Move, ...] = ()
    turmoil_ms: int = 0
    slowness: int = 1  # how many times longer than usual every call takes
    term_ms: int = TERM_MS


@dataclass(slots=True)
class Outcome:
    violations: list[str]
    effects: int
    finished_ms: int
    events: list[Event] = field(default_factory=list)

    @property
    def is_red(self) -> bool:
        return bool(self.violations)


class Fleet:
    """Booted nodes in one simulation."""

    def __init__(
        self,
        simulation: Simulation,
        feed: StepsFeed,
        *,
        term_ms: int = TERM_MS,
        more: Sequence[Feed] = (),
    ) -> None:
        self.simulation = simulation
        self.feed = feed
        self._more = more
        self.term_ms = term_ms
        self.store = simulation.store()
        self.duties: dict[str, Duties] = {}  # the last boot of each name
        self.errors: list[tuple[str, HeadgateError]] = []
        self._look_ms = 0

    def boot(self, name: str, settings: NodeSettings | None = None) -> None:
        """Nothing happens if it is running."""
        before = self.simulation.machines.get(name)
        if before is not None and not before.is_dead:
            return
        machine = self.simulation.boot(name)
        duties = self.duties[name] = self.duties_of(machine, settings or NodeSettings(name))
        for loop_name, loop in duties.loops().items():
            wake = machine.run_loop(loop_name, loop.tick, partial(self._retry, machine))
            loop.nudge.on_give(wake)

    def duties_of(self, machine: Machine, settings: NodeSettings) -> Duties:
        """What a node of this fleet does."""
        store = wrap(DocumentStore, self.store_of(machine), machine.stage)
        ambient = machine.ambient
        return Duties(
            settings,
            store,
            DocumentPresence(store, ambient, term_ms=self.term_ms),
            ambient,
            [StepsKind(store, ambient, machine.kill)],
            [*self._more, self.feed],
        )

    def store_of(self, machine: Machine) -> DocumentStore:  # noqa: ARG002 - for those who change it
        """What lies behind this machine's network."""
        return self.simulation.store()

    def drain(self, name: str) -> None:
        """As `headgate.node` does at a signal: finish, give back, leave, end."""
        machine = self.simulation.machines.get(name)
        if machine is not None and not machine.is_dead:
            machine.start("drain", partial(self._drain, machine, self.duties[name]))

    def is_done(self) -> bool:
        """Every task is done and removed, or set aside. Looked at once a second: it takes time."""
        if self.simulation.now_ms < self._look_ms:
            return False
        self._look_ms = self.simulation.now_ms + 1_000
        picture = read_picture(self.store)
        state = next(iter(picture.feeds.values()), None)
        if state is None or state.value.next < self.feed.count:
            return self.feed.count == 0
        return all(task.value.set_aside is not None for task in picture.tasks.values())

    def live(self) -> list[str]:
        return [name for name, one in self.simulation.machines.items() if not one.is_dead]

    def release_what_is_set_aside(self) -> int:
        """What a person does once the reason is gone; poison stays."""
        released = 0
        for key, task in read_picture(self.store).tasks.items():
            if task.value.set_aside is not None and int(parts(key)[-1]) not in self.feed.never_done:
                change(self.store, key, Task, released_by_person)
                released += 1
        return released

    def faults(self) -> list[str]:
        """What is wrong with the steps, if everything should be finished."""
        return find_faults(self.feed, progress(self.store))

    def _drain(self, machine: Machine, duties: Duties) -> None:
        duties.drain()
        ends_ms = machine.ambient.monotonic_ms() + DRAIN_MS
        while not duties.is_drained and machine.ambient.monotonic_ms() < ends_ms:
            machine.ambient.sleep_ms(POLL_MS)
        try:
            duties.membership.leave()
        except (Unavailable, OutcomeUnknown) as error:
            self.errors.append((machine.name, error))
        machine.kill()

    def _retry(self, machine: Machine, error: HeadgateError) -> int:
        if not isinstance(error, Fenced):
            self.errors.append((machine.name, error))
        ambient = machine.ambient
        return ambient.monotonic_ms() + int(RETRY_MS * (1 + ambient.random()))


def progress(store: DocumentStore) -> list[Progress]:
    return [
        parse(document, Progress) for page in pages(store, STEPS) for document in page.documents
    ]


def play(
    scenario: Scenario,
    watchers: Callable[[Scenario], Sequence[Checker]] | None = None,
    *,
    with_events: bool = False,
) -> Outcome:
    """Runs a scenario to its end; stops at the first thing that is wrong."""
    faults = [one for one in scenario.happenings if not isinstance(one, Move)]
    watching = (watchers or _usual)(scenario)
    events: list[Event] = []
    latencies_us = [scenario.slowness * latency_us for latency_us in LATENCIES_US]
    with Simulation(scenario.seed, faults, latencies_us) as simulation:
        if with_events:
            simulation.observe(events.append)
        watch(simulation, watching)
        fleet = Fleet(simulation, scenario.feed, term_ms=scenario.term_ms)
        for name, settings in scenario.nodes.items():
            fleet.boot(name, settings)
        for move in scenario.happenings:
            if isinstance(move, Move):
                simulation.at(move.time_ms, partial(_carry_out, fleet, scenario, move))

        def is_red() -> bool:
            return any(checker.violations for checker in watching)

        simulation.run(scenario.turmoil_ms, is_red)
        is_done = not is_red() and _calm_down(fleet, scenario, is_red)
        violations = [f"{c.name}: {words}" for c in watching for words in c.violations]
        if not violations:
            violations = fleet.faults()
            if not is_done:
                violations.append(f"not everything was done by {simulation.now_ms} ms")
        effects = sum(simulation.effects(name) for name in simulation.machines)
        return Outcome(violations, effects, simulation.now_ms, events)


def _usual(scenario: Scenario) -> Sequence[Checker]:
    return checkers(scenario.term_ms)


def _carry_out(fleet: Fleet, scenario: Scenario, move: Move) -> None:
    match move.act:
        case Act.BOOT:
            fleet.boot(move.node, scenario.nodes.get(move.node))
        case Act.DRAIN:
            fleet.drain(move.node)
        case Act.CLOCK:
            fleet.simulation.shelf.clock_off_ms = move.amount_ms


def _calm_down(fleet: Fleet, scenario: Scenario, is_red: Callable[[], bool]) -> bool:
    """All who were there from the start come back, a person releases what was set aside."""
    simulation = fleet.simulation
    for name, settings in scenario.nodes.items():
        fleet.boot(name, settings)
    ends_ms = simulation.now_ms + CALM_MS_MAX
    while simulation.now_ms < ends_ms and not is_red():
        for name in scenario.nodes:
            fleet.boot(name, scenario.nodes[name])
        is_done = simulation.run(min(simulation.now_ms + 60_000, ends_ms), fleet.is_done)
        if is_done and not fleet.release_what_is_set_aside():
            return True
    return False
