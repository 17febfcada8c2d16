"""A world in memory in which processes land a stream: what they share, and one process of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headgate.audit import Finding
from headgate.audit.inspection import audit
from headgate.commits import StepKind
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.record import Record, from_bytes, record_path
from headgate.engine import Engine
from headgate.errors import Conflict, Corrupt, Fenced, Halted, OutcomeUnknown, Unavailable
from headgate.lake import Lake
from headgate.lake.ledger import Ledger
from headgate.lake.memory import MemoryLake
from headgate.lake.paths import STAGING
from headgate.landing import StreamSettings
from headgate.landing.jobs import Jobs
from headgate.landing.lake_mark import check_mark
from headgate.landing.shard import ShardWork, Tools
from headgate.landing.sweeper import sweep
from headgate.periods import HOUR_MS
from headgate.sources import Source
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.store.memory import MemoryStore
from headgate.testing.brook import BrookSource, Speck
from headgate.testing.estuary import Estuary, settings_of
from headgate.testing.faults import Call, Calm, Stage, wrap
from headgate.testing.manual import ManualAmbient, manual_store
from headgate.testing.mill import Mill

TURNS_MAX = 200


class World:
    """What all processes share. `cries` are the calls for a person that somebody made."""

    def __init__(self, settings: StreamSettings, *, is_marked: bool = True) -> None:
        """`is_marked`: store and lake have met before."""
        self.ambient = ManualAmbient()
        self.store: MemoryStore = manual_store(self.ambient)
        self.estuary = Estuary(settings)
        self.settings = settings
        self.epoch = 0
        self.cries: list[str] = []
        if is_marked:
            check_mark(self.store, self.estuary.lake, self.ambient)

    @property
    def now_ms(self) -> int:
        return self.ambient.wall_ns() // 1_000_000

    @property
    def lake(self) -> MemoryLake:
        return self.estuary.lake

    def drop(self, partition: str, *events_ms: int | None) -> None:
        first = len(self.estuary.brook.ids())
        specks = [Speck(first + n, event_ms) for n, event_ms in enumerate(events_ms)]
        self.estuary.brook.drop(partition, specks, self.now_ms)

    def checkpoint(self, shard: int = 0) -> Checkpoint:
        found = read(self.store, checkpoint_key(self.settings.name, shard), Checkpoint)
        return Checkpoint() if found is None else found.value

    def is_landed(self) -> bool:
        return self.estuary.is_landed(self.store)

    def staged(self) -> list[str]:
        return [path for path in self.lake.files() if path.startswith(STAGING)]

    def audit(self) -> tuple[Finding, ...]:
        return audit(self.store, self.lake, {self.settings.name: self.settings}).findings

    def state(self) -> dict[str, object]:
        checks = [self.checkpoint(shard) for shard in range(self.settings.shards)]
        return {
            "faults": self.estuary.faults(),
            "positions": [dict(one.positions) for one in checks],
            "watched": [sorted(one.watermarks) for one in checks],
            "journals": [one.journal for one in checks],
            "audit": self.audit(),
        }


@dataclass
class Held:
    """What the cluster would give a work, without its guard: this holder goes on as long as it
    likes, also when the next one is there."""

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
    """One node that holds all shards, with an epoch of its own."""

    world: World
    stage: Stage
    kinds: Callable[[DocumentStore], Mapping[str, StepKind]] = lambda _: {}
    is_eager: bool = True
    turns_left: int = 10  # once a shard is lost to another holder
    works: list[ShardWork] = field(init=False)

    def __post_init__(self) -> None:
        world, stage = self.world, self.stage
        world.epoch += 1
        self.lake = wrap(Lake, world.lake, stage)
        self.mill = Mill(world.estuary.brook, world.lake)
        self.store = wrap(DocumentStore, world.store, stage)
        self.jobs = Jobs(wrap(Engine, self.mill, stage), self.lake, world.ambient)
        self.held = Held(world.epoch)

        def open_source(
            settings: StreamSettings, shard: int, _epoch: int, _store: DocumentStore
        ) -> Source:
            source = BrookSource(world.estuary.brook, shard, settings.shards, lambda: world.now_ms)
            return wrap(Source, source, stage)

        self.tools = tools = Tools(
            self.store,
            self.lake,
            self.jobs,
            open_source,
            Ledger(self.lake, "node", world.ambient),
            world.ambient,
            lambda: 0,
            self.kinds(self.store),
            eager_since_ms=world.now_ms if self.is_eager else None,
        )
        shards = range(world.settings.shards)
        self.works = [ShardWork(self.held, world.settings, shard, tools) for shard in shards]

    def turn(self) -> None:
        """A tick of each shard, then of the engine's loop. As in a node, only Fenced ends a work;
        whatever calls for a person is heard."""
        for work in list(self.works):
            try:
                work.tick()
            except (Unavailable, OutcomeUnknown, Conflict):
                continue
            except Fenced:
                self.works.remove(work)
                if not self.works:
                    raise
            except (Halted, Corrupt) as error:
                self.world.cries.append(str(error))
                raise
        self.world.ambient.pass_ms(250)
        self.jobs.tick()

    def until(self, is_over: Callable[[], bool]) -> None:
        for _ in range(TURNS_MAX):
            if is_over():
                return
            self.turn()
            if len(self.works) < self.world.settings.shards:
                self.turns_left -= 1  # what it still holds it brings to an end, the rest never
                if not self.turns_left:
                    return
        raise AssertionError("it does not come to an end")


def world_of(settings: StreamSettings | None = None) -> World:
    world = World(settings or settings_of())
    world.ambient.pass_ms(10 * HOUR_MS)
    return world


def land(world: World) -> None:
    Process(world, Calm()).until(world.is_landed)
    assert world.estuary.faults() == []
    assert world.audit() == ()


def record_of(world: World, number: int) -> Record:
    path = record_path(world.settings.name, 0, number)
    raw = world.lake.read(path)
    assert raw is not None, path
    return from_bytes(raw, path)


class Watching:
    """Looks at the world before each effect."""

    def __init__(self, look: Callable[[Call], None]) -> None:
        self._look = look

    def around(self, call: Call, act: Callable[[], object]) -> object:
        self._look(call)
        return act()


def land_while_it_is_swept(world: World) -> None:
    """Whoever holds the shard sweeps before each effect, whatever is under way."""

    def look(_call: Call) -> None:
        checkpoint = world.checkpoint()
        sweep(
            world.lake, world.settings.name, 0, checkpoint, lambda _: None, process.jobs.is_needed
        )

    process = Process(world, Watching(look))
    process.until(world.is_landed)
