"""A stream begins anew, and the command is crashed before and after each effect, and repeated."""

from dataclasses import dataclass

from headgate.app.resetting import ResetActs
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.roots import RootDocument, root_key, root_name
from headgate.commits.streams import StreamDocument, stream_key
from headgate.lake import Lake
from headgate.lake.ledger import Ledger
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.testing.crashes import check_every_crash, late_wakers
from headgate.testing.estuary import STREAM
from headgate.testing.faults import Calm, Harm, Stage, wrap
from tests.crash.landing_world import Process
from tests.unit.app.test_resetting import ADA, INTO, NEW, World, settings_with


@dataclass(frozen=True)
class BeginAnew:
    """Whoever comes after a crash types the same command again; then a node lands."""

    def fresh(self) -> World:
        return World(2)

    def act(self, world: World, stage: Stage) -> None:
        store = wrap(DocumentStore, world.store, stage)
        lake = wrap(Lake, world.lake, stage)
        acts = ResetActs(store, lake, Ledger(lake, "command line", world.ambient), world.ambient)
        acts.reset(world.next, INTO, settings_with(world.next), ADA)

    recover = act

    def state(self, world: World) -> object:
        documents = [read(world.store, stream_key(one), StreamDocument) for one in (STREAM, NEW)]
        streams = [one and (one.value.shards, one.value.retired is None) for one in documents]
        checkpoints = [
            read(world.store, checkpoint_key(STREAM, shard), Checkpoint) for shard in range(2)
        ]
        ended = [one and (one.value.ended, one.value.journal) for one in checkpoints]
        folders = (world.settings.folder, world.next.folder)
        roots = [read(world.store, root_key(root_name(one)), RootDocument) for one in folders]
        seats = [
            one and {name: (s.retired is None, s.last_ms) for name, s in one.value.streams.items()}
            for one in roots
        ]
        noted = {line.what for line in world.notes()}
        count = [line.what for line in world.notes()].count("stream.reset")
        new = world.begins()
        Process(new, Calm()).until(new.is_landed)
        return streams, ended, seats, noted, count, set(new.estuary.landed().values())


def test_inv5_a_stream_begins_anew_from_every_crash() -> None:
    assert check_every_crash(BeginAnew(), again=(Harm.CRASH_AFTER,)) > 100
    assert late_wakers(BeginAnew()) > 10
