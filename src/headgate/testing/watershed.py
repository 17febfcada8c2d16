"""Watershed: everything at once, in the simulation, by a seed: streams land, their hours are
flagged, tables take them.

The same loops as in earnest; engine, sources, lake and tables are in memory, each behind every
machine's own network. Nodes are killed, paused, cut off and drained; source partitions join, and a
stream; `anglers` decide and take things away; `buoys` watch. Between the hours there are nights, in
which everybody is paused: so an hour costs no more than its ends. After the turmoil comes a calm
time, in which everything has to land, to be flagged and to be applied.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from headgate.apply import TableSettings
from headgate.apply.kind import TableFeed, TableKind
from headgate.apply.work import TableTools
from headgate.cluster import Feed, Kind
from headgate.cluster.duties import Duties, NodeSettings
from headgate.cluster.presence import DocumentPresence
from headgate.cluster.session import TERM_MS
from headgate.cluster.store_clock import StoreClock
from headgate.commits.roots import RootDocument, root_key
from headgate.engine import Engine
from headgate.lake import Lake
from headgate.lake.ledger import Ledger
from headgate.landing import StreamSettings
from headgate.landing.jobs import Jobs
from headgate.landing.kind import LandFeed, LandKind
from headgate.landing.shard import Tools
from headgate.periods import HOUR_MS, aligned
from headgate.ready import ReadyStream, RootSettings
from headgate.ready.kind import RootFeed, RootKind
from headgate.ready.work import RootTools
from headgate.sources import Source
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.tables import Mover, Table
from headgate.tables.parquet import ParquetTable
from headgate.tables.site import Site
from headgate.testing.anglers import Anglers, Errand, Visit
from headgate.testing.basin import Ladle
from headgate.testing.brook import Brook, BrookSource, Speck
from headgate.testing.buoys import water_checkers
from headgate.testing.checkers import Checker, checkers, watch
from headgate.testing.confluence import FOLDER, ROOT, Pool, Reach, Waters, faults, is_over
from headgate.testing.estuary import Estuary, settings_of
from headgate.testing.faults import wrap
from headgate.testing.fleet import CALM_MS_MAX, Act, Fleet, Move, Outcome
from headgate.testing.flotsam import landing_checkers
from headgate.testing.mill import Mill
from headgate.testing.simulation import Event, Fault, Machine, Simulation
from headgate.testing.tide import NO_STEPS, START_MS

LATENESS_MS = 30_000
SKEW_MS = 300_000
CALM_STEP_MS = 15_000
DARK_MS = 5_000  # without power


@dataclass(frozen=True, slots=True)
class Tributary:
    """A stream. `table`: whether one takes its hours."""

    name: str
    shards: int
    joins_ms: int  # nodes that are started before do not know it
    table: bool


@dataclass(frozen=True, slots=True)
class Poured:
    """Records that arrive at a source partition; without any, it joins."""

    time_ms: int
    stream: str
    partition: str
    specks: tuple[Speck, ...]
    arrival_ms: int  # wall time


@dataclass(frozen=True, slots=True)
class Night:
    time_ms: int
    duration_ms: int


@dataclass(frozen=True, slots=True)
class WatershedScenario:
    seed: int
    streams: tuple[Tributary, ...]
    nodes: tuple[NodeSettings, ...]
    begins_ms: int
    poured: tuple[Poured, ...]
    nights: tuple[Night, ...]
    happenings: tuple[Fault | Move | Visit, ...] = ()
    poison: frozenset[str] = frozenset()  # words in paths that no table can take
    turmoil_ms: int = 0  # when it ends
    term_ms: int = TERM_MS

    @property
    def slack_ms(self) -> int:
        """How wrong the store's clock can be."""
        moves = [one for one in self.happenings if isinstance(one, Move)]
        return max((abs(one.amount_ms) for one in moves if one.act is Act.CLOCK), default=0)


class Watershed(Fleet):
    """Booted nodes that land streams, flag their hours and apply them to tables."""

    def __init__(self, simulation: Simulation, scenario: WatershedScenario) -> None:
        super().__init__(simulation, NO_STEPS, term_ms=scenario.term_ms)
        self.scenario = scenario
        self.waters = waters_of(scenario)
        self.anglers = Anglers(simulation, self.waters)
        self._all = Brook()  # of all streams: one engine reads them, source partitions differ
        self.until_ms = 0  # hours that end by then must be flagged in the end

    def duties_of(self, machine: Machine, settings: NodeSettings) -> Duties:
        ambient = machine.ambient
        store = wrap(DocumentStore, self.store_of(machine), machine.stage)
        lake: Lake = wrap(Lake, self.waters.lake, machine.stage)
        brooks = {name: one.brook for name, one in self.waters.streams.items()}
        clock = StoreClock(store, ambient)
        engine: Engine = wrap(Engine, Mill(self._all, self.waters.lake), machine.stage)
        jobs = Jobs(engine, lake, ambient)
        ledger = Ledger(lake, machine.name, ambient)

        def open_source(one: StreamSettings, shard: int, _epoch: int, _: DocumentStore) -> Source:
            # By the store's clock, as in earnest; inside of a call nobody can be asked for it.
            source = BrookSource(brooks[one.name], shard, one.shards, self.simulation.shelf.now_ms)
            return wrap(Source, source, machine.stage)

        def open_table(one: TableSettings, epoch: int, check: Callable[[], None]) -> Table:
            site = wrap(Site, self.waters.pools[one.name], machine.stage)
            mover = wrap(Mover, ladle_of(self.waters, one.name), machine.stage)
            return ParquetTable(one.name, site, mover, ambient, epoch, check)

        streams = self._known_streams()
        root = root_of(streams)
        tables = [one for one in self.waters.tables.values() if one.stream in streams]
        root_tools = RootTools(store, lake, ledger, ambient, clock.now_ms)
        table_tools = TableTools(
            store, lake, open_table, partial(first_hour_ms, store), ledger, ambient
        )

        tools = Tools(store, lake, jobs, open_source, ledger, ambient, clock.off_ms, {})
        kinds: list[Kind] = [LandKind(one, tools) for one in streams.values()]
        kinds += [RootKind(root, root_tools), *(TableKind(one, table_tools) for one in tables)]
        feeds: list[Feed] = [*map(LandFeed, streams.values()), RootFeed(root)]
        presence = DocumentPresence(store, ambient, term_ms=self.term_ms)
        return Duties(
            settings,
            store,
            presence,
            ambient,
            kinds,
            [*feeds, *map(TableFeed, tables)],
            {"jobs": jobs},
        )

    def _known_streams(self) -> Mapping[str, StreamSettings]:
        now_ms = self.simulation.now_ms
        known = [one.name for one in self.scenario.streams if one.joins_ms <= now_ms]
        return {name: self.waters.streams[name].settings for name in known}

    def pour(self, poured: Poured) -> None:
        brook = self.waters.streams[poured.stream].brook
        joined = (poured.stream, poured.partition)
        self.waters.joined_ms.setdefault(joined, START_MS + self.simulation.now_ms)
        brook.add(poured.partition)
        self._all.drops[poured.partition] = brook.drops[poured.partition]
        if poured.specks:
            brook.drop(poured.partition, poured.specks, poured.arrival_ms)

    def fall_asleep(self, night: Night) -> None:
        self.simulation.tell("all", f"night for {night.duration_ms} ms")
        for machine in self.simulation.machines.values():
            machine.pause(night.duration_ms)

    def is_done(self) -> bool:
        """Looked at once a second: it takes time."""
        if self.simulation.now_ms < self._look_ms:
            return False
        self._look_ms = self.simulation.now_ms + 1_000
        if not is_over(self.waters, self.store, self.until_ms):
            return False
        return not self.is_a_flag_lost()

    def is_a_flag_lost(self) -> bool:
        """One that must be there, or that a person took."""
        return bool(self.waters.gone_flags or self.waters.missing_flags(self.store, self.until_ms))

    def faults(self) -> list[str]:
        return faults(self.waters, self.store, self.until_ms, self.scenario.slack_ms)


def waters_of(scenario: WatershedScenario) -> Waters:
    lake = Reach()
    streams = {
        one.name: Estuary(
            replace(
                settings_of(one.shards),
                name=one.name,
                allowed_lateness_ms=LATENESS_MS,
                future_skew_ms=SKEW_MS,
            ),
            Brook(),
            lake,
        )
        for one in scenario.streams
    }
    tables = {
        name: TableSettings(name, one.name, FOLDER, f"/basin/{name}")
        for one in scenario.streams
        if one.table
        for name in (f"{one.name}_daily",)
    }
    ladle = Ladle(lake.read, lambda _url, _content: None)
    ladle.poison |= scenario.poison
    pools = {name: Pool() for name in tables}
    return Waters(lake, streams, tables, pools, ladle, poison=scenario.poison)


def ladle_of(waters: Waters, table: str) -> Ladle:
    """One for each table, and one poison for all."""
    ladle = Ladle(waters.lake.read, waters.pools[table].put_at)
    ladle.poison = waters.ladle.poison
    return ladle


def root_of(streams: Mapping[str, StreamSettings]) -> RootSettings:
    known = (ReadyStream(name, FOLDER, one.allowed_lateness_ms) for name, one in streams.items())
    return RootSettings(ROOT, tuple(known))


def first_hour_ms(store: DocumentStore, stream: str) -> int | None:
    found = read(store, root_key(ROOT), RootDocument)
    seat = None if found is None else found.value.streams.get(stream)
    return None if seat is None else seat.first_ms


def play_watershed(scenario: WatershedScenario, *, with_events: bool = False) -> Outcome:
    """Runs a scenario to its end; stops at the first thing that is wrong."""
    others = (Move, Visit)
    blows = [one for one in scenario.happenings if not isinstance(one, others)]
    events: list[Event] = []
    with Simulation(scenario.seed, blows) as simulation:
        if with_events:
            simulation.observe(events.append)
        watershed = Watershed(simulation, scenario)
        watching = _watching(watershed)
        watch(simulation, watching)
        _plan(watershed)

        def is_red() -> bool:
            return any(checker.violations for checker in watching)

        simulation.run(scenario.turmoil_ms, is_red)
        is_done = not is_red() and _calm_down(watershed, is_red)
        violations = [f"{c.name}: {words}" for c in watching for words in c.violations]
        if not violations and not is_done:
            violations.append(f"not everything was over by {simulation.now_ms} ms")
        violations += [] if violations else watershed.faults()
        effects = sum(simulation.effects(name) for name in simulation.machines)
        return Outcome(violations, effects, simulation.now_ms, events)


def _watching(watershed: Watershed) -> Sequence[Checker]:
    simulation, waters = watershed.simulation, watershed.waters
    landing = [one for estuary in waters.streams.values() for one in landing_checkers(estuary)]
    own = water_checkers(
        waters,
        simulation.store(),
        lambda: START_MS + simulation.now_ms,
        watershed.scenario.slack_ms,
    )
    return (*checkers(watershed.term_ms), *landing, *own)


def _plan(watershed: Watershed) -> None:
    scenario, simulation = watershed.scenario, watershed.simulation
    for poured in scenario.poured:
        simulation.at(poured.time_ms, partial(watershed.pour, poured))
    for node in scenario.nodes:
        simulation.at(scenario.begins_ms, partial(watershed.boot, node.name, node))
    for night in scenario.nights:
        simulation.at(night.time_ms, partial(watershed.fall_asleep, night))
    for one in scenario.happenings:
        if isinstance(one, Move):
            simulation.at(one.time_ms, partial(_carry_out, watershed, one))
        elif isinstance(one, Visit):
            simulation.at(one.time_ms, partial(watershed.anglers.come, one))
            if one.errand is Errand.TRIP:
                for node in scenario.nodes:
                    simulation.at(one.time_ms + DARK_MS, partial(watershed.boot, node.name, node))


def _carry_out(watershed: Watershed, move: Move) -> None:
    match move.act:
        case Act.BOOT:
            known = {node.name: node for node in watershed.scenario.nodes}
            watershed.boot(move.node, known.get(move.node))
        case Act.DRAIN:
            watershed.drain(move.node)
        case Act.CLOCK:
            watershed.simulation.shelf.clock_off_ms = move.amount_ms


def _calm_down(watershed: Watershed, is_red: Callable[[], bool]) -> bool:
    """Clocks are set right; whoever runs with old settings is started again; persons come."""
    simulation, scenario = watershed.simulation, watershed.scenario
    simulation.shelf.clock_off_ms = 0
    over_ms = START_MS + simulation.now_ms - LATENESS_MS - scenario.slack_ms
    watershed.until_ms = aligned(over_ms, HOUR_MS)
    for machine in simulation.machines.values():
        machine.set_wall_off(0)
        machine.kill()
    ends_ms = simulation.now_ms + CALM_MS_MAX
    while simulation.now_ms < ends_ms and not is_red():
        for node in scenario.nodes:
            watershed.boot(node.name, node)
        watershed.anglers.set_right(watershed.is_a_flag_lost())
        watershed.release_what_is_set_aside()
        if simulation.run(min(simulation.now_ms + CALM_STEP_MS, ends_ms), watershed.is_done):
            return True
    return False
