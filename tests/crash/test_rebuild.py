"""A store that is lost at any moment and made anew from the lake: nothing is lost or doubled."""

from dataclasses import replace
from zlib import crc32

import pytest

from headgate.app.acts import Person
from headgate.app.rebuild import KEY, Rebuild, RebuildDocument, Rebuilt
from headgate.app.retention import RetentionActs
from headgate.audit.reading import no_site
from headgate.commits.certificate import hold_path
from headgate.commits.checkpoint import Checkpoint
from headgate.errors import Halted, Invalid
from headgate.lake import FileFacts, Lake, LakeSettings
from headgate.lake.ledger import Ledger
from headgate.lake.memory import Stored
from headgate.landing import Output, StreamSettings
from headgate.landing.lake_mark import KEY as MARK
from headgate.periods import HOUR_MS, FolderTemplate, Period
from headgate.settings import Settings
from headgate.store import DocumentStore, JsonObject
from headgate.store.changes import create_if_absent, read
from headgate.store.pages import pages
from headgate.testing.crashes import HARMS, check_every_crash
from headgate.testing.estuary import settings_of
from headgate.testing.faults import Call, Calm, Crashed, Harm, Point, Scripted, Stage, wrap
from headgate.testing.manual import manual_store
from tests.crash.landing_world import Process, Watching, World, world_of
from tests.crash.together_world import MINUTE_MS, Shore

PERSON = Person("ann", "the disk of the store is gone")
OUTPUTS = (Output("bids", "id % 3 = 0"), Output("asks", "id % 3 = 1"))  # the third is dead
CRASHES = (Harm.CRASH_BEFORE, Harm.CRASH_AFTER)


def rebuild(world: World, stage: Stage | None = None, *more: StreamSettings) -> Rebuilt:
    lake = wrap(Lake, world.lake, stage or Calm())
    store = wrap(DocumentStore, world.store, stage or Calm())
    streams = {one.name: one for one in (world.settings, *more)}
    return Rebuild(
        store,
        lake,
        Ledger(lake, "here", world.ambient),
        world.ambient,
        Settings("memory:x", LakeSettings("/lake"), streams=streams),
        folders_of=lambda _: (),
        open_site=no_site,
    ).run(PERSON)


def lose(world: World) -> None:
    world.store = manual_store(world.ambient)


def keys(world: World) -> list[str]:
    return [one.key for page in pages(world.store) for one in page.documents]


class LostInMidShift:
    """A node lands two shards; at any effect it dies, and the store with it."""

    shards = 2
    outputs: tuple[Output, ...] = ()

    def fresh(self) -> World:
        world = world_of(replace(settings_of(self.shards), outputs=self.outputs))
        for lane in range(2):
            world.estuary.brook.add(f"lane-{lane}")
            base = world.now_ms - 2 * HOUR_MS
            for _ in range(5):  # three are a round
                world.drop(f"lane-{lane}", *(base + n * MINUTE_MS for n in range(2)), None)
        return world

    def act(self, world: World, stage: Stage) -> None:
        Process(world, stage).until(world.is_landed)

    def recover(self, world: World, stage: Stage) -> None:
        lose(world)
        assert rebuild(world).audit.findings == ()
        self.act(world, stage)

    def state(self, world: World) -> object:
        return world.state()

    def __str__(self) -> str:
        return type(self).__name__


class Rebuilding(LostInMidShift):
    """The store was lost in the middle of a commit; the command is killed at any effect, and given
    again. Then a node goes on."""

    def fresh(self) -> World:
        world = super().fresh()
        calm = Calm()
        LostInMidShift.act(self, LostInMidShift.fresh(self), calm)
        found = [n for n, call in enumerate(calm.calls, 1) if is_first_publish(call)]
        with pytest.raises(Crashed):
            LostInMidShift.act(self, world, Scripted([Point(found[1], Harm.CRASH_AFTER)]))
        lose(world)
        return world

    def act(self, world: World, stage: Stage) -> None:
        marker = read(world.store, KEY, RebuildDocument)
        if marker is None or marker.value.state == "running":
            assert rebuild(world, stage).audit.findings == ()

    def state(self, world: World) -> object:
        Process(world, Calm()).until(world.is_landed)
        return world.state()

    def recover(self, world: World, stage: Stage) -> None:
        self.act(world, stage)


class LostInMidShiftWithOutputs(LostInMidShift):
    """One read lands under two names."""

    outputs = OUTPUTS


class RebuildingOutputs(Rebuilding):
    outputs = OUTPUTS


def is_first_publish(call: Call) -> bool:
    return call.method == "publish" and "commit0" in str(call.args)


@pytest.mark.parametrize("flow", [LostInMidShift(), LostInMidShiftWithOutputs()], ids=str)
def test_the_store_lost_in_mid_shift_and_made_anew_loses_and_doubles_nothing(
    flow: LostInMidShift,
) -> None:
    assert check_every_crash(flow, CRASHES, again=()) > 50


@pytest.mark.parametrize("flow", [Rebuilding(), RebuildingOutputs()], ids=str)
def test_a_rebuild_that_is_killed_anywhere_is_finished_by_the_same_command(
    flow: Rebuilding,
) -> None:
    assert check_every_crash(flow, (*HARMS, Harm.REFUSE), again=()) > 20


def test_a_commit_is_finished_in_a_lake_with_checksums_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a bucket has them: the journal that stands must name what that lake will tell."""

    def facts(stored: Stored) -> FileFacts:
        return FileFacts(len(stored.content), f"crc32:{crc32(stored.content):08x}")

    monkeypatch.setattr(Stored, "facts", property(facts))
    calm, flow = Calm(), LostInMidShift()
    flow.act(flow.fresh(), calm)
    first = next(n for n, call in enumerate(calm.calls, 1) if is_first_publish(call))
    world = flow.fresh()
    with pytest.raises(Crashed):
        flow.act(world, Scripted([Point(first, Harm.CRASH_AFTER)]))
    lose(world)
    assert rebuild(world).standing != ()
    Process(world, Calm()).until(world.is_landed)
    assert (world.cries, world.audit()) == ([], ())


class LostWhileFlagged:
    """A root's holder closes hours of two streams, withdraws one, erases another; at any effect it
    dies, and the store with it."""

    outputs: tuple[Output, ...] = ()  # of the first

    def fresh(self) -> Shore:
        shore = Shore("orders", "trades", outputs=self.outputs)
        for stream in ("orders", "trades"):
            base = shore.hour(0).start_ms
            shore.drop(base + MINUTE_MS, base + 5 * MINUTE_MS, stream=stream)
        shore.land()
        shore.pass_ms(3 * HOUR_MS)
        shore.land()
        return shore

    def act(self, shore: Shore, stage: Stage) -> None:
        shore.flag(shore.holder(stage))

    def recover(self, shore: Shore, stage: Stage) -> None:
        self.lose(shore)
        shore.land()
        self.act(shore, stage)

    def lose(self, shore: Shore) -> None:
        lose(shore.base)
        for world in shore.worlds.values():
            world.store = shore.base.store
        others = [one.settings for one in shore.worlds.values() if one is not shore.base]
        assert rebuild(shore.base, None, *others).audit.findings == ()

    def state(self, shore: Shore) -> object:
        shore.flag()
        root = shore.root()
        return (
            {one.name: shore.flagged(one.name) for one in shore.settings().streams},
            shore.over_all(),
            shore.faults(),
            {name: (one.first_ms, one.frontier_ms) for name, one in root.streams.items()},
            (root.hours_ms, root.days_ms, root.journal, root.reopened, root.repair),
            [world.audit() for world in shore.worlds.values()],
        )

    def __str__(self) -> str:
        return type(self).__name__


class LostWhileOutputsAreFlagged(LostWhileFlagged):
    outputs = OUTPUTS


class LostWhileAnOutputIsHeld(LostWhileOutputsAreFlagged):
    """One output has certificates, and the other waits for a hold file to go: its hours must not be
    forgotten."""

    def fresh(self) -> Shore:
        shore = super().fresh()
        shore.base.lake.put(self.hold(shore), b"")
        return shore

    def hold(self, shore: Shore) -> str:
        first = Period(shore.hour(-3).start_ms, "hour")
        return hold_path(shore.base.settings.folder, first, "asks")

    def state(self, shore: Shore) -> object:
        files = shore.base.lake.files()
        held = shore.flagged("asks")
        path = next((one for one in files if one == self.hold(shore)), None)
        facts = None if path is None else shore.base.lake.facts(path)
        if path is not None and facts is not None:
            shore.base.lake.remove(path, facts)
        return held, super().state(shore)


@pytest.mark.parametrize(
    "flow",
    [LostWhileFlagged(), LostWhileOutputsAreFlagged(), LostWhileAnOutputIsHeld()],
    ids=str,
)
def test_inv6_inv7_the_store_lost_while_flags_are_raised_ends_with_the_same_flags(
    flow: LostWhileFlagged,
) -> None:
    assert check_every_crash(flow, CRASHES, again=()) > 30


class LostWhileErased(LostWhileFlagged):
    """The files of an hour are erased, with one that came late."""

    face = "orders"  # what has its flags

    def fresh(self) -> Shore:
        shore = super().fresh()
        shore.flag()
        shore.drop(shore.hour(-3).start_ms + 7 * MINUTE_MS)
        shore.land("orders")
        root = shore.settings()
        base = shore.base
        ledger = Ledger(base.lake, "here", base.ambient)
        acts = RetentionActs(base.store, base.lake, ledger, base.ambient, [root])
        acts.ask(acts.erasing(shore.flagged(self.face)[0], PERSON, self.face))
        return shore

    def recover(self, shore: Shore, stage: Stage) -> None:
        self.lose(shore)
        shore.land()
        base, hour = shore.base, shore.flagged(self.face)[0]
        ledger = Ledger(base.lake, "here", base.ambient)
        acts = RetentionActs(base.store, base.lake, ledger, base.ambient, [shore.settings()])
        acts.ask(acts.erasing(hour, PERSON, self.face))  # what was only asked for is lost
        self.act(shore, stage)

    def state(self, shore: Shore) -> object:
        shore.flag()
        files = shore.base.lake.files()
        seat = shore.root().streams[self.face]
        return (
            shore.flagged(self.face),
            sorted(path for path in files if f"/{self.face}/" in path and path[0] != "_"),
            sorted(path for path in files if path.startswith("_late/")),
            seat.removed,
            [one for one in shore.base.audit() if one.invariant in (2, 6, 7)],
            shore.verified().findings,
        )


class LostWhileAnOutputIsErased(LostWhileErased):
    outputs, face = OUTPUTS, "bids"


@pytest.mark.parametrize("flow", [LostWhileErased(), LostWhileAnOutputIsErased()], ids=str)
def test_the_store_lost_while_an_hour_is_erased_brings_nothing_back(flow: LostWhileErased) -> None:
    assert check_every_crash(flow, CRASHES, again=()) > 20


class LostWhileErasedAgain(LostWhileErased):
    """What came late after an hour was erased goes by the same command again."""

    def fresh(self) -> Shore:
        shore = super().fresh()
        shore.flag()
        shore.drop(shore.flagged(self.face)[0].start_ms + 8 * MINUTE_MS)
        shore.land("orders")
        base = shore.base
        ledger = Ledger(base.lake, "here", base.ambient)
        acts = RetentionActs(base.store, base.lake, ledger, base.ambient, [shore.settings()])
        acts.ask(acts.erasing(shore.flagged(self.face)[0], PERSON, self.face))
        return shore


def test_the_store_lost_while_late_records_are_erased_brings_nothing_back() -> None:
    assert check_every_crash(LostWhileErasedAgain(), CRASHES, again=()) > 15


# What is refused


def landed(outputs: tuple[Output, ...] = ()) -> World:
    world = (LostInMidShiftWithOutputs() if outputs else LostInMidShift()).fresh()
    Process(world, Calm()).until(world.is_landed)
    return world


def test_a_store_that_is_not_empty_is_refused() -> None:
    world = landed()
    before = keys(world)
    with pytest.raises(Halted, match=r"the store is not empty.*headgate store ls"):
        rebuild(world)
    assert keys(world) == before
    lose(world)
    rebuild(world)
    with pytest.raises(Halted, match="the store is not empty"):
        rebuild(world)


def test_inv6_no_flag_is_raised_in_a_folder_in_which_the_hour_never_landed() -> None:
    shore, new = LostWhileFlagged().fresh(), "other/{yyyy}-{MM}-{dd}/{HH}/{stream}/data"
    shore.flag()
    for world in shore.worlds.values():
        world.settings = replace(world.settings, folder=FolderTemplate.parse(new))
    before = dict(shore.base.lake.files())
    with pytest.raises(Halted, match=r"lies in another folder than other/.*as it was"):
        LostWhileFlagged().lose(shore)
    assert shore.base.lake.files() == before


def test_a_node_that_runs_is_refused() -> None:
    world = landed()
    lose(world)
    expire_ms = world.store.now_ms() + 30_000
    body: JsonObject = {"format": 1, "node": "n-1", "state": "live", "expire": expire_ms}
    world.store.create("sessions/a", body)
    with pytest.raises(Halted, match=r"node n-1 runs on this store.*stop every node"):
        rebuild(world)


def test_a_node_that_starts_before_the_end_lands_nothing() -> None:
    world = landed()
    lose(world)
    create_if_absent(world.store, KEY, RebuildDocument("x", "ann", "…", 0))
    with pytest.raises(Halted, match=r"belongs to another installation.*headgate store rebuild"):
        Process(world, Calm()).turn()


def test_a_lake_without_its_mark_is_refused() -> None:
    world = World(settings_of(), is_marked=False)
    with pytest.raises(Halted, match=r"has no _headgate/lake.json"):
        rebuild(world)


def test_a_record_that_is_gone_is_named_and_nobody_lands() -> None:
    world = landed()
    lose(world)
    later = max(path for path in world.lake.files() if path.endswith("/0000000002.json"))
    path = later.replace("0000000002", "0000000001")
    facts = world.lake.facts(path)
    assert facts is not None
    world.lake.remove(path, facts)
    with pytest.raises(Halted, match="the record of commit 1 is not there"):
        rebuild(world)
    assert world.store.get(MARK) is None


def test_published_files_without_a_record_are_found_and_nobody_lands() -> None:
    world = landed()
    lose(world)
    last = max(
        path for path in world.lake.files() if path.startswith("_headgate/commits/orders/0/")
    )
    files = [path for path in world.estuary.published() if path_of_commit(path) in last]
    assert files
    facts = world.lake.facts(last)
    assert facts is not None
    world.lake.remove(last, facts)
    found = rebuild(world)
    assert {one.subject for one in found.audit.findings} >= {
        one for one in files if "shard0-" in one
    }
    assert world.store.get(MARK) is None


def path_of_commit(path: str) -> str:
    return path.rpartition("commit")[2].partition("-")[0]


def test_another_number_of_shards_is_refused() -> None:
    world = landed()
    lose(world)
    world.settings = settings_of(1)
    with pytest.raises(Invalid, match="write shards"):
        rebuild(world)


def test_a_stream_that_began_anew_is_named_before_anything_is_done() -> None:
    world = landed()
    lose(world)
    world.settings = replace(world.settings, folder=replace(world.settings.folder, life=2))
    with pytest.raises(Halted, match=r"stream orders: began anew.*restore the store from a backup"):
        rebuild(world)
    assert keys(world) == []


@pytest.mark.parametrize(("before", "after"), [((), OUTPUTS), (OUTPUTS, ())])
def test_outputs_that_came_or_went_since_are_refused(
    before: tuple[Output, ...], after: tuple[Output, ...]
) -> None:
    world = landed(before)
    lose(world)
    world.settings = replace(world.settings, outputs=after)
    with pytest.raises(Invalid, match=r"stream orders landed with.* outputs.*write them as before"):
        rebuild(world)
    assert world.store.get(MARK) is None


def test_inv6_an_output_that_may_come_back_is_asked_for_until_it_is_retired() -> None:
    """Else the commits with its files would be forgotten with the hours of the others."""
    world = landed(OUTPUTS)
    lose(world)
    world.settings = replace(world.settings, outputs=OUTPUTS[:1])
    told = rf"landed hours of its output {OUTPUTS[1].name}, which nobody retired.*as before"
    with pytest.raises(Invalid, match=told):
        rebuild(world)
    ledger = Ledger(world.lake, "here", world.ambient)
    ledger.note("stream.retired", OUTPUTS[1].name, "over", who="ann")
    rebuild(world)
    assert "streams/orders" in keys(world)


def test_another_document_that_somebody_wrote_meanwhile_ends_it() -> None:
    world = landed()
    lose(world)

    def meanwhile(call: Call) -> None:
        if call.method == "create" and "checkpoints/orders/00000" in str(call.args):
            create_if_absent(world.store, "checkpoints/orders/00000", Checkpoint(epoch=3))

    with pytest.raises(Halted, match="somebody else writes to this store"):
        rebuild(world, Watching(meanwhile))
