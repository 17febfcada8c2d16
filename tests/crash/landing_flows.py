"""Flows of landing, for whoever hurts them: what one process does, and the next one finishes.

After a crash a new process comes with the next epoch. What must be equal in the end is what counts:
each record in the lake once, every position at the end, no journal. Not the numbers of commits, nor
which round a record came with.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

import pytest

from headgate.app.acts import Acts, Person
from headgate.commits import Announced, StepKind
from headgate.commits.checkpoint import Checkpoint, Wish, add_wish, checkpoint_key
from headgate.commits.record import record_path
from headgate.errors import OutcomeUnknown, Unavailable
from headgate.lake import Lake
from headgate.lake.ledger import Ledger
from headgate.lake.paths import STAGING
from headgate.landing import Output, StepSettings, StreamSettings
from headgate.landing.lake_mark import LakeMark, check_mark
from headgate.landing.names import DEAD, REDRIVE, labels_of
from headgate.landing.shard import SWEEP_MS
from headgate.landing.stream_document import shard_of
from headgate.periods import HOUR_MS
from headgate.store import DocumentStore, JsonObject
from headgate.store.changes import change, create_if_absent, read
from headgate.testing.estuary import settings_of
from headgate.testing.faults import Calm, Crashed, Harm, Point, Scripted, Stage, wrap
from tests.crash.landing_world import Process, World

SWEEPS_MAX = 4  # if one fails, the next one comes
ANN = Person("ann", "the disk was replaced")


@dataclass(frozen=True)
class Land:
    """Records of two hours, one unusable, in two source partitions."""

    settings: StreamSettings = field(default_factory=settings_of)
    name: str = ""

    def fresh(self) -> World:
        world = World(self.settings)
        world.ambient.pass_ms(10 * HOUR_MS)
        now_ms = world.now_ms
        world.drop("lane-0", now_ms - HOUR_MS - 10, now_ms - 10)
        world.drop("lane-1", now_ms - 5, None)
        return world

    def act(self, world: World, stage: Stage) -> None:
        Process(world, stage).until(world.is_landed)

    def recover(self, world: World, stage: Stage) -> None:
        self.act(world, stage)

    def state(self, world: World) -> Mapping[str, object]:
        return {**world.state(), "cries": list(world.cries)}

    def __str__(self) -> str:
        return self.name or type(self).__name__


@dataclass(frozen=True)
class MarkTheLake:
    """Store and lake meet for the first time."""

    def fresh(self) -> World:
        return World(settings_of(), is_marked=False)

    def act(self, world: World, stage: Stage) -> None:
        lake = wrap(Lake, world.lake, stage)
        store = wrap(DocumentStore, world.store, stage)
        for _ in range(5):
            try:
                check_mark(store, lake, world.ambient)
            except (Unavailable, OutcomeUnknown):
                continue
            return
        raise AssertionError("it does not come to an end")

    def recover(self, world: World, stage: Stage) -> None:
        self.act(world, stage)

    def state(self, world: World) -> object:
        mark = read(world.store, "lake", LakeMark)
        raw = world.lake.files().get("_headgate/lake.json", b"{}")
        assert mark is not None
        return mark.value.is_marked, json.loads(raw).get("id") == mark.value.id

    def __str__(self) -> str:
        return type(self).__name__


class LandTwoShardsInOneJob(Land):
    """Each commits for itself what one job staged for both."""

    def __init__(self, name: str = "") -> None:
        super().__init__(settings_of(2), name)

    def fresh(self) -> World:
        world = super().fresh()
        owners = {shard_of(one, 2) for one in world.estuary.brook.drops}
        assert owners == {0, 1}
        return world


class LandOutputs(Land):
    """One read for two outputs; a third record is taken by neither."""

    def __init__(self, name: str = "") -> None:
        outputs = (Output("bids", "id % 3 = 0"), Output("asks", "id % 3 = 1"))
        super().__init__(replace(settings_of(), outputs=outputs), name)

    def state(self, world: World) -> Mapping[str, object]:
        places = {
            json.loads(line)["id"]: path.rpartition("/")[0]
            for path, raw in world.estuary.published().items()
            for line in raw.decode().splitlines()
        }
        return {**super().state(world), "places": places}


class LandInRounds(Land):
    """More waits than one round reads: the next one is staged while the first is published."""

    def fresh(self) -> World:
        world = super().fresh()
        for _ in range(3):
            world.drop("lane-0", world.now_ms - 3)
        return world


@dataclass(frozen=True)
class Recover(Land):
    """A process died with its intent written, and with whatever `happen` does afterwards."""

    happen: Callable[[World], None] = lambda _: None

    def fresh(self) -> World:
        world = super().fresh()
        died_after(world, "replace", 2)  # after the take-over: the intent
        assert world.checkpoint().journal is not None
        self.happen(world)
        return world


def died_after(world: World, method: Literal["replace", "publish"], nth: int) -> None:
    """A process landed up to its nth replace of the checkpoint, or its nth publish."""
    point = Point(effect_of(world.settings, method, nth), Harm.CRASH_AFTER)
    with pytest.raises(Crashed):
        Land(world.settings).act(world, Scripted([point]))


@cache
def effect_of(settings: StreamSettings, method: str, nth: int) -> int:
    flow, calm = Land(settings), Calm()
    flow.act(flow.fresh(), calm)
    key = checkpoint_key(settings.name, 0)
    found = [
        number
        for number, call in enumerate(calm.calls, 1)
        if call.method == method and (method != "replace" or call.subject == key)
    ]
    return found[nth - 1]


def a_partition_joins(world: World) -> None:
    world.drop("lane-7", world.now_ms - 1)


class RecoverWhileAPartitionJoins(Recover):
    """The journal knows nothing of it, and its fact must leave it alone."""

    def __init__(self) -> None:
        super().__init__(happen=a_partition_joins)


def a_staged_file_is_lost(world: World) -> None:
    lost = [path for path in world.staged() if "kind=data" in path][-1]
    facts = world.lake.facts(lost)
    assert facts is not None
    world.lake.remove(lost, facts)


def the_wish(world: World) -> None:
    wish = Wish(ANN.reason, ANN.who, 0)
    key = checkpoint_key(world.settings.name, 0)
    change(world.store, key, Checkpoint, lambda found: add_wish(found, wish))


class Restage(Recover):
    """A staged file is lost: a person lets the range be read again. Whoever wakes up with the old
    journal in its hand may call for a person: its files are gone indeed."""

    def __init__(self) -> None:
        super().__init__(happen=a_staged_file_is_lost)

    def fresh(self) -> World:
        world = super().fresh()
        the_wish(world)
        return world

    def state(self, world: World) -> Mapping[str, object]:
        old = world.lake.files().get(record_path(world.settings.name, 0, 1), b"")
        return {**world.state(), "old record": b'"number": 1' in old}


class RestageAfterPublishing(Restage):
    """As before, and some of the old commit was published already, and lasts."""

    def fresh(self) -> World:
        world = Land.fresh(self)
        died_after(world, "publish", 2)  # after the record: a file
        assert len(world.estuary.published()) == 1
        a_staged_file_is_lost(world)
        world.lake.settle([path.rpartition("/")[0] for path in world.lake.files()])
        the_wish(world)
        return world


@dataclass(frozen=True)
class WithPowerCuts(Land):
    """A crash takes the power with it; at the end it fails once more. What was acknowledged
    stays."""

    flow: Land = field(default_factory=Land)

    def fresh(self) -> World:
        return self.flow.fresh()

    def act(self, world: World, stage: Stage) -> None:
        self.flow.act(world, stage)

    def recover(self, world: World, stage: Stage) -> None:
        world.lake.power_cut()
        self.flow.recover(world, stage)

    def state(self, world: World) -> Mapping[str, object]:
        world.lake.power_cut()
        return self.flow.state(world)

    def __str__(self) -> str:
        return f"{self.flow}WithPowerCuts"


class TakeOver(Land):
    """A shard with nothing to do, and a source partition that is new, gets another holder."""

    def fresh(self) -> World:
        world = super().fresh()
        super().act(world, Calm())
        world.estuary.brook.add("lane-7")
        return world

    def act(self, world: World, stage: Stage) -> None:
        process = Process(world, stage, is_eager=False)
        process.until(lambda: world.checkpoint().epoch == process.held.epoch)

    def state(self, world: World) -> Mapping[str, object]:
        is_held = world.checkpoint().epoch == world.epoch
        return {**super().state(world), "is held by the last": is_held}


class Sweep(Land):
    """Staging of older epochs lies about: of this shard, shared with another, a dead engine's."""

    def __init__(self) -> None:
        super().__init__(settings_of(2))

    def fresh(self) -> World:
        world = super().fresh()
        world.epoch = 3
        root = f"{STAGING}/{self.settings.name}"
        for attempt, inside in (
            (f"{1:032x}.0-1", "shard=0-1/kind=data/part-0.json"),
            (f"{2:032x}.0-2.1-2", "shard=0-2/part-0.json"),
            (f"{2:032x}.0-2.1-2", "shard=1-2/part-0.json"),
            (f"{2:032x}.0-2.1-2", "_temporary/0/part-0.json"),
        ):
            world.lake.put(f"{root}/{attempt}/{inside}", b"rubbish")
        return world

    def state(self, world: World) -> Mapping[str, object]:
        """After the next sweep: a late waker may write there again, and has no use of it."""
        world.ambient.pass_ms(SWEEP_MS)
        Process(world, Calm(), is_eager=False).turn()
        return {**super().state(world), "older": older(world)}


class SweepWithinAnEpoch(LandTwoShardsInOneJob):
    """What the first holder left behind itself, of jobs that failed while the lake was away."""

    def fresh(self) -> World:
        world = super().fresh()
        for attempt, inside in (
            (f"{1:032x}.0-1", "shard=0-1/part-0.json"),
            (f"{2:032x}.0-1.1-1", "shard=1-1/part-0.json"),
            (f"{2:032x}.0-1.1-1", "_temporary/0/part-0.json"),
        ):
            world.lake.put(f"{STAGING}/{self.settings.name}/{attempt}/{inside}", b"rubbish")
        return world

    def act(self, world: World, stage: Stage) -> None:
        process = Process(world, stage)
        process.until(world.is_landed)
        for _ in range(SWEEPS_MAX):
            world.ambient.pass_ms(SWEEP_MS)
            process.turn()
            if not world.staged() or process.held.epoch < world.epoch:  # then others sweep
                return
        raise AssertionError(f"left by the holder itself: {world.staged()}")


def older(world: World) -> list[str]:
    """Staging of epochs that are over."""
    epochs = {shard: world.checkpoint(shard).epoch for shard in range(world.settings.shards)}
    found = []
    for path in world.staged():
        labels = labels_of(path.removeprefix(f"{STAGING}/").split("/")[1]) or []
        found += [path for shard, epoch in labels if epoch < epochs[shard]]
    return found


class Redrive(Land):
    """A person lets every dead letter be driven in again."""

    def fresh(self) -> World:
        world = super().fresh()
        super().act(world, Calm())
        assert letters(world, DEAD)
        return world

    def act(self, world: World, stage: Stage) -> None:
        lake = wrap(Lake, world.lake, stage)
        store = wrap(DocumentStore, world.store, stage)
        acts = Acts(store, lake, Ledger(lake, "ann", world.ambient), world.ambient)
        for letter in list(acts.dead_letters(self.settings.name)):
            acts.redrive(self.settings.name, letter.path, ANN)

    def state(self, world: World) -> Mapping[str, object]:
        return {"dead": letters(world, DEAD), "to be driven in": letters(world, REDRIVE)}


def letters(world: World, folder: str) -> dict[str, bytes]:
    return {p: raw for p, raw in world.lake.files().items() if p.startswith(f"{folder}/")}


@dataclass(frozen=True)
class Announce:
    """`headgate.commits.StepKind`: a note in the store that a commit is there. It sees to it that
    it is called after the files and before the fact."""

    world: World
    store: DocumentStore
    name: str = "announce"

    def body(self, announced: Announced) -> JsonObject:
        return {"number": announced.number, "files": list(announced.published)}

    def verify(self, body: JsonObject) -> bool:
        return self.store.get(f"announced/{body['number']}") is not None

    def execute(self, body: JsonObject) -> None:
        files = body["files"]
        assert isinstance(files, list)
        journal = self.world.checkpoint().journal
        if journal is None or journal.number != body["number"]:
            self.world.cries.append(f"{body['number']} is announced after its fact")
        if not {str(one) for one in files} <= set(self.world.lake.files()):
            self.world.cries.append(f"{body['number']} is announced before its files")
        create_if_absent(self.store, f"announced/{body['number']}", Said())


@dataclass(frozen=True)
class Said:
    format: int = 1


class WithOwnSteps(Land):
    """Each commit is announced elsewhere, by a step of the user's own."""

    def __init__(self) -> None:
        super().__init__(replace(settings_of(), steps=(StepSettings("announce"),)))

    def act(self, world: World, stage: Stage) -> None:
        def kinds(store: DocumentStore) -> Mapping[str, StepKind]:
            return {"announce": Announce(world, store)}

        Process(world, stage, kinds).until(world.is_landed)

    def state(self, world: World) -> Mapping[str, object]:
        said = [document.key for document in world.store.list("announced").documents]
        number = world.checkpoint().number
        wanted = [f"announced/{one}" for one in range(1, number + 1)]
        return {**super().state(world), "is all announced": sorted(said) == sorted(wanted)}


LANDING: Sequence[Land] = (
    Land(),
    Land(replace(settings_of(), name="заказы/注文 %"), name="LandInAnyScript"),
    LandTwoShardsInOneJob(),
    LandInRounds(),
    LandOutputs(),
    WithOwnSteps(),
    Recover(),
    RecoverWhileAPartitionJoins(),
    Restage(),
    RestageAfterPublishing(),
    TakeOver(),
    Sweep(),
    SweepWithinAnEpoch("SweepWithinAnEpoch"),
    Redrive(),
)
POWER_CUTS = tuple(
    WithPowerCuts(flow=flow) for flow in (Land(), Recover(), RestageAfterPublishing(), Redrive())
)
