"""Landing, crashed before and after each effect, twice; gone on late; with a reply lost.

After a crash a new process comes with the next epoch. What must be equal in the end is what counts:
each record in the lake once, every position at the end, no journal, nothing staged that nobody will
publish. Not the numbers of commits, nor which round a record came with.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from headgate.audit.inspection import audit
from headgate.commits.checkpoint import Checkpoint, Wish, add_wish, checkpoint_key
from headgate.commits.record import record_path
from headgate.engine import Engine
from headgate.errors import Conflict, Fenced, Halted, OutcomeUnknown, Unavailable
from headgate.lake import Lake
from headgate.lake.ledger import Ledger
from headgate.lake.paths import STAGING
from headgate.landing import StreamSettings
from headgate.landing.jobs import Jobs
from headgate.landing.shard import ShardWork, Tools
from headgate.landing.stream_document import shard_of
from headgate.periods import HOUR_MS
from headgate.sources import Source
from headgate.store import DocumentStore
from headgate.store.changes import change, read
from headgate.store.memory import MemoryStore
from headgate.testing.brook import BrookSource, Speck
from headgate.testing.crashes import check_every_crash, late_wakers
from headgate.testing.estuary import STREAM, Estuary, settings_of
from headgate.testing.faults import Calm, Crashed, Harm, Point, Scripted, Stage, wrap
from headgate.testing.manual import ManualAmbient, manual_store
from headgate.testing.mill import Mill

TURNS_MAX = 200


class World:
    def __init__(self, settings: StreamSettings) -> None:
        self.ambient = ManualAmbient()
        self.store: MemoryStore = manual_store(self.ambient)
        self.estuary = Estuary(settings)
        self.settings = settings
        self.epoch = 0

    @property
    def now_ms(self) -> int:
        return self.ambient.wall_ns() // 1_000_000

    def drop(self, partition: str, *events_ms: int | None) -> None:
        first = len(self.estuary.brook.ids())
        specks = [Speck(first + n, event_ms) for n, event_ms in enumerate(events_ms)]
        self.estuary.brook.drop(partition, specks, self.now_ms)

    def checkpoint(self, shard: int = 0) -> Checkpoint:
        found = read(self.store, checkpoint_key(STREAM, shard), Checkpoint)
        return Checkpoint() if found is None else found.value

    def staged(self) -> list[str]:
        return [path for path in self.estuary.lake.files() if path.startswith(STAGING)]

    def state(self) -> object:
        checks = [self.checkpoint(shard) for shard in range(self.settings.shards)]
        streams = {self.settings.name: self.settings}
        return {
            "faults": self.estuary.faults(),
            "positions": [dict(one.positions) for one in checks],
            "journals": [one.journal for one in checks],
            "audit": audit(self.store, self.estuary.lake, streams).findings,
        }


@dataclass
class Held:
    """What the cluster would give a work: this holder, until the next one comes."""

    world: World
    epoch: int
    key: str = "cluster/tasks/land"
    payload: bytes = b""
    node: str = "node"
    is_draining: bool = False

    def check(self) -> None:
        return

    def left_ms(self) -> int:
        return 10_000

    def guard(self, store: DocumentStore) -> DocumentStore:
        return store


@dataclass
class Process:
    """One node that holds all shards. When it starts, all before it are over."""

    world: World
    stage: Stage
    works: list[ShardWork] = field(init=False)

    def __post_init__(self) -> None:
        world, stage = self.world, self.stage
        world.epoch += 1
        lake = wrap(Lake, world.estuary.lake, stage)  # type: ignore[type-abstract]
        engine = wrap(Engine, Mill(world.estuary.brook, world.estuary.lake), stage)
        self.store = wrap(DocumentStore, world.store, stage)
        self.jobs = Jobs(engine, lake, world.ambient)

        def open_source(
            settings: StreamSettings, shard: int, _epoch: int, _store: DocumentStore
        ) -> Source:
            source = BrookSource(world.estuary.brook, shard, settings.shards, lambda: world.now_ms)
            return wrap(Source, source, stage)

        tools = Tools(
            self.store,
            lake,
            self.jobs,
            open_source,
            Ledger(lake, "node", world.ambient),
            world.ambient,
            lambda: 0,
            {},
            eager_since_ms=world.now_ms,
        )
        held = Held(world, world.epoch)
        shards = range(world.settings.shards)
        self.works = [ShardWork(held, world.settings, shard, tools) for shard in shards]

    def until(self, is_over: Callable[[], bool]) -> None:
        for _ in range(TURNS_MAX):
            if is_over():
                return
            for work in self.works:
                try:
                    work.tick()
                except (Unavailable, OutcomeUnknown, Conflict, Fenced):
                    continue
            self.world.ambient.pass_ms(250)
            self.jobs.tick()
        raise AssertionError("it does not come to an end")


@dataclass(frozen=True)
class Land:
    """Records of two hours, one unusable, in two source partitions."""

    settings: StreamSettings = field(default_factory=settings_of)
    name: str = ""

    def fresh(self) -> World:
        world = World(self.settings)
        world.ambient.pass_ms(10 * HOUR_MS)
        now_ms = world.now_ms
        world.drop("lane-0", now_ms - HOUR_MS, now_ms - 10)
        world.drop("lane-1", now_ms - 5, None)
        return world

    def act(self, world: World, stage: Stage) -> None:
        Process(world, stage).until(lambda: world.estuary.is_landed(world.store))

    def recover(self, world: World, stage: Stage) -> None:
        self.act(world, stage)

    def state(self, world: World) -> Mapping[str, object]:
        return world.state()  # type: ignore[return-value]

    def __str__(self) -> str:
        return self.name or type(self).__name__


class LandTwoShardsInOneJob(Land):
    """Each commits for itself what one job staged for both."""

    def __init__(self) -> None:
        super().__init__(settings_of(2))

    def fresh(self) -> World:
        world = super().fresh()
        owners = {shard_of(one, 2) for one in world.estuary.brook.drops}
        assert owners == {0, 1}
        return world


@dataclass(frozen=True)
class Recover(Land):
    """A process died with its intent written, and with whatever `happen` does afterwards."""

    happen: Callable[[World], None] = lambda _: None

    def fresh(self) -> World:
        world = super().fresh()
        with pytest.raises(Crashed):
            self.act(world, Scripted([Point(intent_of(Land()), Harm.CRASH_AFTER)]))
        assert world.checkpoint().journal is not None
        self.happen(world)
        return world


def intent_of(flow: Land) -> int:
    """The effect that writes the journal."""
    calm = Calm()
    flow.act(flow.fresh(), calm)
    writes = [
        number
        for number, call in enumerate(calm.calls, 1)
        if call.method == "replace" and call.subject == checkpoint_key(STREAM, 0)
    ]
    return writes[1]  # after the take-over


def a_partition_joins(world: World) -> None:
    world.drop("lane-7", world.now_ms - 1)


def the_staged_file_is_lost(world: World) -> None:
    lake = world.estuary.lake
    (data,) = [path for path in world.staged() if "kind=data" in path]
    facts = lake.facts(data)
    assert facts is not None
    lake.remove(data, facts)


def the_wish(world: World) -> None:
    wish = Wish("disk was replaced", "ann", 0)
    change(world.store, checkpoint_key(STREAM, 0), Checkpoint, lambda found: add_wish(found, wish))


class Restage(Recover):
    """A staged file is lost: a person lets the range be read again."""

    def __init__(self) -> None:
        super().__init__(happen=the_staged_file_is_lost)

    def fresh(self) -> World:
        world = super().fresh()
        the_wish(world)
        return world

    def state(self, world: World) -> Mapping[str, object]:
        old = world.estuary.lake.files().get(record_path(STREAM, 0, 1), b"")
        return {**super().state(world), "old record": b'"number": 1' in old}


class RestageAfterPublishing(Recover):
    """As before, and some of the old commit was published already."""

    def __init__(self) -> None:
        super().__init__(happen=the_staged_file_is_lost)

    def fresh(self) -> World:
        world = super().fresh()
        with pytest.raises(Halted):
            self.act(world, Calm())
        assert world.estuary.published() == {}
        the_wish(world)
        return world


FLOWS = [
    Land(),
    LandTwoShardsInOneJob(),
    Recover(),
    Recover(name="RecoverWhileAPartitionJoins", happen=a_partition_joins),
    Restage(),
    RestageAfterPublishing(),
]


@pytest.mark.parametrize("flow", FLOWS, ids=str)
def test_k23_inv5_landing_ends_the_same_from_every_crash(flow: Land) -> None:
    assert check_every_crash(flow, again=()) > 100


@pytest.mark.parametrize("flow", FLOWS, ids=str)
def test_inv5_a_crash_during_the_recovery_changes_nothing(flow: Land) -> None:
    crash = (Harm.CRASH_AFTER,)
    assert check_every_crash(flow, crash, again=(Harm.CRASH_AFTER, Harm.LOSE_REPLY)) > 1_000


@pytest.mark.parametrize("flow", FLOWS, ids=str)
def test_k19_a_late_waker_changes_nothing(flow: Land) -> None:
    assert late_wakers(flow) > 15
