"""Tide: a fleet that lands records, in the simulation, by a seed.

The same loops as in earnest; the engine, the source and the lake are in memory, each behind every
machine's own network. Records come while nodes are killed, paused, cut off and drained; source
partitions join; some records are late, some unusable. After the turmoil comes a calm time, in which
everything has to land. Then each record must be in the lake once, and the audit must be clean.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from headgate.audit.inspection import audit
from headgate.cluster.duties import Duties, NodeSettings
from headgate.cluster.presence import DocumentPresence
from headgate.cluster.session import TERM_MS
from headgate.cluster.store_clock import StoreClock
from headgate.engine import Engine
from headgate.lake import Lake
from headgate.lake.ledger import Ledger
from headgate.landing import Output, StreamSettings
from headgate.landing.jobs import Jobs
from headgate.landing.kind import LandFeed, LandKind
from headgate.landing.shard import Tools
from headgate.periods import HOUR_MS
from headgate.sources import Source
from headgate.store import DocumentStore
from headgate.testing.brook import BrookSource, Speck
from headgate.testing.checkers import Checker, checkers, watch
from headgate.testing.estuary import Estuary, settings_of
from headgate.testing.faults import wrap
from headgate.testing.fleet import CALM_MS_MAX, Act, Fleet, Move, Outcome
from headgate.testing.flotsam import landing_checkers
from headgate.testing.mill import Mill
from headgate.testing.simulation import AtEffect, Event, Fault, Machine, Simulation
from headgate.testing.simulation.timeline import START_US
from headgate.testing.steps import StepsFeed
from headgate.testing.turmoil import draw

NO_STEPS = StepsFeed("none", 0, 1)
EFFECTS_MAX = 2_000  # of one node; a fault beyond its last effect strikes nobody
START_MS = START_US // 1_000


@dataclass(frozen=True, slots=True)
class Dropped:
    """Records that arrive at a source partition."""

    time_ms: int
    partition: str
    specks: tuple[Speck, ...]


@dataclass(frozen=True, slots=True)
class TideScenario:
    seed: int
    shards: int
    nodes: tuple[NodeSettings, ...]
    drops: tuple[Dropped, ...]
    happenings: tuple[Fault | Move, ...] = ()
    turmoil_ms: int = 0
    term_ms: int = TERM_MS
    outputs: tuple[Output, ...] = ()


class Tide(Fleet):
    """Booted nodes that land one stream."""

    def __init__(self, simulation: Simulation, settings: StreamSettings, term_ms: int) -> None:
        super().__init__(simulation, NO_STEPS, term_ms=term_ms)
        self.estuary = Estuary(settings)

    def duties_of(self, machine: Machine, settings: NodeSettings) -> Duties:
        stream, brook, ambient = self.estuary.settings, self.estuary.brook, machine.ambient
        store = wrap(DocumentStore, self.store_of(machine), machine.stage)
        lake: Lake = wrap(Lake, self.estuary.lake, machine.stage)
        engine: Engine = wrap(Engine, Mill(brook, self.estuary.lake), machine.stage)
        jobs = Jobs(engine, lake, ambient)

        def open_source(one: StreamSettings, shard: int, _epoch: int, _: DocumentStore) -> Source:
            source = BrookSource(brook, shard, one.shards, lambda: ambient.wall_ns() // 1_000_000)
            return wrap(Source, source, machine.stage)

        tools = Tools(
            store,
            lake,
            jobs,
            open_source,
            Ledger(lake, machine.name, ambient),
            ambient,
            StoreClock(store, ambient).off_ms,
            {},
        )
        return Duties(
            settings,
            store,
            DocumentPresence(store, ambient, term_ms=self.term_ms),
            ambient,
            [LandKind(stream, tools)],
            [LandFeed(stream)],
            {"jobs": jobs},
        )

    def is_done(self) -> bool:
        """Looked at once a second: it takes time."""
        if self.simulation.now_ms < self._look_ms:
            return False
        self._look_ms = self.simulation.now_ms + 1_000
        return self.estuary.is_landed(self.store)

    def faults(self) -> list[str]:
        found = self.estuary.faults()
        streams = {self.estuary.settings.name: self.estuary.settings}
        for finding in audit(self.store, self.estuary.lake, streams).findings:
            found.append(f"audit, invariant {finding.invariant}: {finding.words}")
        return found


def play_tide(
    scenario: TideScenario,
    watchers: Callable[[Tide], Sequence[Checker]] | None = None,
    *,
    with_events: bool = False,
) -> Outcome:
    """Runs a scenario to its end; stops at the first thing that is wrong."""
    faults = [one for one in scenario.happenings if not isinstance(one, Move)]
    events: list[Event] = []
    with Simulation(scenario.seed, faults) as simulation:
        if with_events:
            simulation.observe(events.append)
        settings = replace(
            settings_of(scenario.shards), future_skew_ms=HOUR_MS, outputs=scenario.outputs
        )
        tide = Tide(simulation, settings, scenario.term_ms)
        watching = (watchers or _usual)(tide)
        watch(simulation, watching)
        for partition in {drop.partition for drop in scenario.drops if drop.time_ms == 0}:
            tide.estuary.brook.add(partition)
        for node in scenario.nodes:
            tide.boot(node.name, node)
        for drop in scenario.drops:
            act = partial(tide.estuary.brook.drop, drop.partition, drop.specks)
            simulation.at(drop.time_ms, partial(act, START_MS + drop.time_ms))
        for move in scenario.happenings:
            if isinstance(move, Move):
                simulation.at(move.time_ms, partial(_carry_out, tide, scenario, move))

        def is_red() -> bool:
            return any(checker.violations for checker in watching)

        simulation.run(scenario.turmoil_ms, is_red)
        is_done = not is_red() and _calm_down(tide, scenario, is_red)
        violations = [f"{c.name}: {words}" for c in watching for words in c.violations]
        if not violations and not is_done:
            violations.append(f"not everything had landed by {simulation.now_ms} ms")
        violations += [] if violations else tide.faults()
        effects = sum(simulation.effects(name) for name in simulation.machines)
        return Outcome(violations, effects, simulation.now_ms, events)


def _usual(tide: Tide) -> Sequence[Checker]:
    return (*checkers(tide.term_ms), *landing_checkers(tide.estuary))


def _carry_out(tide: Tide, scenario: TideScenario, move: Move) -> None:
    match move.act:
        case Act.BOOT:
            known = {node.name: node for node in scenario.nodes}
            tide.boot(move.node, known.get(move.node))
        case Act.DRAIN:
            tide.drain(move.node)
        case Act.CLOCK:
            tide.simulation.shelf.clock_off_ms = move.amount_ms


def _calm_down(tide: Tide, scenario: TideScenario, is_red: Callable[[], bool]) -> bool:
    simulation = tide.simulation
    simulation.shelf.clock_off_ms = 0
    ends_ms = simulation.now_ms + CALM_MS_MAX
    while simulation.now_ms < ends_ms and not is_red():
        for node in scenario.nodes:
            tide.boot(node.name, node)
        tide.release_what_is_set_aside()
        if simulation.run(min(simulation.now_ms + 60_000, ends_ms), tide.is_done):
            return True
    return False


def tide_of(seed: int) -> TideScenario:
    """The same for the same seed, on every machine."""
    random = Random(f"tide {seed}")
    names = [f"node-{number}" for number in range(1, random.randint(1, 4) + 1)]
    nodes = tuple(NodeSettings(name, workers=random.randint(1, 3)) for name in names)
    turmoil_ms = random.choice([60_000, 120_000, 240_000])
    partitions = [f"lane-{number}" for number in range(random.randint(1, 5))]
    joins_ms = {one: 0 if random.random() < 0.8 else turmoil_ms // 2 for one in partitions}
    drops = []
    for first in range(0, 3 * random.randint(2, 20), 3):
        partition = random.choice(partitions)
        time_ms = max(joins_ms[partition], random.randrange(turmoil_ms))
        specks = tuple(
            Speck(first + number, _event_ms(random, time_ms))
            for number in range(random.randint(1, 3))
        )
        drops.append(Dropped(time_ms, partition, specks))
    happenings: list[Fault | Move] = []
    for _ in range(random.randint(0, 10)):
        for one in draw(random, names, turmoil_ms):
            if isinstance(one, AtEffect):
                one = replace(one, effect=random.randint(1, EFFECTS_MAX))
            happenings.append(one)
    shards = random.choice([1, 1, 2, 3])
    first_drops = [Dropped(0, one, ()) for one in partitions if not joins_ms[one]]
    return TideScenario(
        seed,
        shards,
        nodes,
        tuple(sorted([*first_drops, *drops], key=lambda drop: drop.time_ms)),
        tuple(happenings),
        turmoil_ms,
    )


def _event_ms(random: Random, time_ms: int) -> int | None:
    """Mostly just now; sometimes long ago, unusable, or far ahead."""
    now_ms = START_MS + time_ms
    kind = random.randrange(20)
    if kind == 0:
        return None
    if kind == 1:
        return now_ms + 40 * HOUR_MS
    if kind < 6:
        return now_ms - random.randrange(3 * HOUR_MS)
    return now_ms - random.randrange(30_000)
