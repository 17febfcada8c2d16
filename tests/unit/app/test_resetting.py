"""A stream that begins anew: what it had stays as it is, and nobody of its old life goes on."""

from dataclasses import replace

import pytest

from headgate.app.acts import Person
from headgate.app.resetting import Reset, ResetActs
from headgate.apply.table_document import TableDocument, table_key
from headgate.audit.inspection import audit
from headgate.cluster import Order
from headgate.cluster.session import Session, session_key
from headgate.cluster.tasks import Task, new_task, task_key
from headgate.commits.checkpoint import Checkpoint, Journal, Wish, checkpoint_key
from headgate.commits.roots import (
    Removal,
    RootDocument,
    RootJournal,
    Seat,
    join_root,
    root_key,
    root_name,
)
from headgate.commits.streams import StreamDocument, stream_key
from headgate.errors import Fenced, Halted, Invalid, Unavailable
from headgate.lake import LakeSettings
from headgate.lake.ledger import Ledger, Line, read_ledger
from headgate.landing import StreamSettings
from headgate.landing.kind import feed_name, kind_name
from headgate.landing.stream_document import open_stream
from headgate.periods import HOUR_MS, FolderTemplate, life_name
from headgate.settings import Settings, TableSettings
from headgate.store.changes import read
from headgate.store.codec import body_of
from headgate.testing.brook import Speck
from headgate.testing.estuary import STREAM, Estuary, settings_of
from headgate.testing.faults import Calm
from tests.crash.landing_world import Process
from tests.crash.landing_world import World as LandingWorld

ADA = Person("ada", "the topic was made again")
INTO = "again/{yyyy}-{MM}-{dd}/{HH}/{stream}/data"
NEW = "orders~2"


def next_life(shards: int = 1) -> StreamSettings:
    """As the settings have it once the old folder is a former one."""
    folder = replace(FolderTemplate.parse(INTO), life=2)
    return replace(settings_of(shards), name=NEW, folder=folder)


def settings_with(stream: StreamSettings, table: str = "") -> Settings:
    tables = {table: TableSettings(table, "parquet", stream.name, "/t")} if table else {}
    former = {STREAM: settings_of(stream.shards)}
    streams = {stream.name: stream}
    return Settings("memory:", LakeSettings("/lake"), streams=streams, tables=tables, past=former)


class World(LandingWorld):
    """A stream of which something has landed, and whose nodes are gone."""

    def __init__(self, shards: int = 1) -> None:
        super().__init__(settings_of(shards))
        self.ambient.pass_ms(10 * HOUR_MS)
        self.drop("lane-0", self.now_ms - 10)
        self.drop("lane-1", self.now_ms - 20, None)
        Process(self, Calm()).until(self.is_landed)
        for shard in range(shards):
            self.put(task_key(feed_name(STREAM), shard), new_task(Order(kind_name(STREAM), b"")))
        self.acts = ResetActs(
            self.store, self.lake, Ledger(self.lake, "command line", self.ambient), self.ambient
        )
        self.next = next_life(shards)

    def put(self, key: str, value: object) -> None:
        found = self.store.get(key)
        if found is None:
            self.store.create(key, body_of(value))
        else:
            self.store.replace(key, body_of(value), found.version)

    def look(self, into: str = INTO, table: str = "") -> Reset | None:
        return self.acts.look(self.next, into, settings_with(self.next, table))

    def reset(self, into: str = INTO) -> Reset | None:
        return self.acts.reset(self.next, into, settings_with(self.next), ADA)

    def notes(self) -> list[Line]:
        return list(read_ledger(self.lake, 0, 2**45))

    def begins(self) -> LandingWorld:
        """The same store, lake and source, for whoever lands the new life."""
        world = LandingWorld.__new__(LandingWorld)
        world.__dict__.update(vars(self))
        world.settings = self.next
        world.estuary = Estuary(self.next, self.estuary.brook, self.estuary.lake)
        return world


@pytest.fixture
def world() -> World:
    return World()


def test_it_lands_all_anew_beside_what_landed_before(world: World) -> None:
    before = dict(world.lake.files())
    done = world.reset()

    assert done == Reset(NEW, STREAM, INTO, (world.checkpoint().number,), 3, None)
    new = world.begins()
    Process(new, Calm()).until(new.is_landed)
    landed = new.estuary.landed()
    assert set(landed.values()) == {2}  # each in its old place and in its new one
    kept = {path: raw for path, raw in before.items() if "ledger" not in path}
    assert {path: world.lake.files()[path] for path in kept} == kept
    new_ones = {path for path in world.lake.files() if path not in before and path[0] != "_"}
    assert new_ones
    assert all(path.startswith("again/") and "/orders/data/" in path for path in new_ones)
    every = settings_with(world.next).every
    assert audit(world.store, world.lake, every).findings == ()


def test_it_is_on_the_ledger_and_done_once(world: World) -> None:
    assert world.reset() is not None
    assert world.reset() is None

    lines = [line for line in world.notes() if line.what == "stream.reset"]
    (line,) = lines
    assert (line.subject, line.who) == (STREAM, "ada")
    assert line.words == f"begins anew as {NEW} in {INTO}; the topic was made again"
    document = read(world.store, stream_key(STREAM), StreamDocument)
    assert document is not None
    assert document.value.retired is not None
    task = read(world.store, task_key(feed_name(STREAM), 0), Task)
    assert task is not None
    assert task.value.state == "done"


def test_a_look_changes_nothing(world: World) -> None:
    documents = {one: world.store.get(one) for one in _keys(world)}
    files = dict(world.lake.files())

    assert world.look() is not None

    assert {one: world.store.get(one) for one in _keys(world)} == documents
    assert dict(world.lake.files()) == files


def test_nothing_of_the_new_life_is_read_before_a_person_says_so(world: World) -> None:
    with pytest.raises(Unavailable, match="next: headgate stream reset orders --into 'again/"):
        open_stream(world.store, world.next)
    world.reset()
    assert open_stream(world.store, world.next).retired is None


@pytest.mark.parametrize("folder", [settings_of().folder.text, INTO])
def test_inv3_a_node_of_the_old_life_that_wakes_up_commits_nothing(folder: str) -> None:
    """Whatever folder its settings had."""
    world = World()
    world.settings = replace(world.settings, folder=FolderTemplate.parse(folder))
    sleeper = Process(world, Calm())
    world.drop("lane-0", world.now_ms - 5)
    before = world.checkpoint().number
    sleeper.turn()  # a round is staged, and nothing is journaled
    assert (sleeper.jobs.ran, world.checkpoint().number) == (1, before)
    world.reset()
    published = {path for path in world.lake.files() if path[0] != "_"}

    sleeper.turn()  # its intent is refused
    with pytest.raises((Fenced, Invalid), match=r"begin anew|was retired by ada"):
        sleeper.turn()

    assert (world.checkpoint().number, world.checkpoint().journal) == (before, None)
    assert {path for path in world.lake.files() if path[0] != "_"} == published


def test_settings_and_command_must_agree(world: World) -> None:
    with pytest.raises(Invalid, match=r"the settings say folder: again/.*, and the command other/"):
        world.look(INTO.replace("again", "other"))
    with pytest.raises(Invalid, match=r"lands in .* as it is; .* add that to its former_folders"):
        world.acts.look(world.settings, world.settings.folder.text, settings_with(world.settings))
    assert world.notes() == [line for line in world.notes() if line.what == "commit.made"]


def test_there_must_be_a_life_before_it(world: World) -> None:
    folder = replace(world.next.folder, life=3)
    third = replace(world.next, name=life_name(STREAM, 3), folder=folder)
    with pytest.raises(Invalid, match="no node has ever read its life 2 here"):
        world.acts.look(third, INTO, settings_with(third))


def test_inv4_a_commit_that_is_not_finished_holds_it(world: World) -> None:
    journal = Journal(9, 1, "f", "r", 1, "c", {}, {}, {}, (), 0)
    world.put(checkpoint_key(STREAM, 0), replace(world.checkpoint(), number=9, journal=journal))

    with pytest.raises(Halted, match="commit 9 is journaled and not finished"):
        world.reset()
    assert not any(line.what == "stream.reset" for line in world.notes())


def test_a_node_that_holds_a_shard_holds_it(world: World) -> None:
    session = Session("n1", 1, 1, (), (), (), 0, False, "live", 2**50, 1, None)
    world.put(session_key("s1"), session)
    held = replace(new_task(Order(kind_name(STREAM), b"")), holder="s1", epoch=9)
    world.put(task_key(feed_name(STREAM), 0), held)

    with pytest.raises(Halted, match=r"node n1 holds it.* headgate node drain n1"):
        world.reset()


@pytest.mark.parametrize("path", ["again/x", "_late/again/2026-11-01/x"])
def test_the_new_folder_must_be_empty(world: World, path: str) -> None:
    world.lake.put(path, b"x")
    with pytest.raises(Invalid, match="is not empty"):
        world.reset()


def test_the_new_root_must_be_new(world: World) -> None:
    root = root_name(world.next.folder)
    join_root(world.store, root, STREAM)  # by a node that knew the folder too early: no flag there
    assert world.look() is not None
    join_root(world.store, root, "clicks")
    with pytest.raises(Invalid, match="is not new: clicks has flags"):
        world.reset()
    world.put(root_key(root), RootDocument(streams={STREAM: Seat(first_ms=0, frontier_ms=HOUR_MS)}))
    with pytest.raises(Invalid, match="is not new: orders has flags"):
        world.reset()


def test_a_table_that_took_hours_of_the_old_life_does_not_go_on(world: World) -> None:
    assert world.look(table="daily") is not None
    world.put(table_key("daily"), TableDocument())
    with pytest.raises(Invalid, match="table daily took hours of orders"):
        world.look(table="daily")


def test_the_hours_that_were_flagged_are_told(world: World) -> None:
    root = root_key(root_name(world.settings.folder))
    world.put(root, RootDocument(streams={STREAM: Seat(0, 0, 5 * HOUR_MS)}))

    found = world.look()

    assert found is not None
    assert str(found.until) == "1970-01-01T05"
    world.reset()
    document = read(world.store, root, RootDocument)
    assert document is not None
    assert document.value.streams[STREAM].last_ms == 5 * HOUR_MS
    assert document.value.streams[STREAM].retired is not None


def _keys(world: World) -> list[str]:
    return [
        stream_key(STREAM), stream_key(NEW), checkpoint_key(STREAM, 0), task_key("land:orders", 0),
        root_key(root_name(world.settings.folder)), root_key(root_name(world.next.folder)),
    ]  # fmt: skip


def test_records_that_come_later_land_in_the_new_life_alone(world: World) -> None:
    world.reset()
    new = world.begins()
    Process(new, Calm()).until(new.is_landed)
    new.estuary.brook.drop("lane-0", [Speck(99, world.now_ms - 1)], world.now_ms)
    Process(new, Calm()).until(new.is_landed)
    assert new.estuary.landed()[99] == 1
    found = read(world.store, checkpoint_key(STREAM, 0), Checkpoint)
    assert found is not None
    assert found.value.ended is not None


def test_files_that_are_to_go_are_gone_before_nobody_knows_where_they_lie(world: World) -> None:
    root, seats = root_key(root_name(world.settings.folder)), {STREAM: Seat(0, 0, 5 * HOUR_MS)}
    removal = Removal("erased", STREAM, 0, HOUR_MS, Wish("by law", "bob", 0))
    world.put(root, RootDocument(streams=seats, removals=(removal,)))
    with pytest.raises(Halted, match=r"bob asked that hours of orders are erased.*is not done"):
        world.reset()
    world.put(root, RootDocument(streams=seats))
    assert world.reset() is not None


def test_flags_of_the_old_root_are_finished_first_and_then_nobodys_task(world: World) -> None:
    root, key = root_name(world.settings.folder), task_key("ready:{yyyy}-{MM}-{dd}/{HH}", 0)
    world.put(key, new_task(Order(f"ready:{root}", b"")))
    journal = RootJournal("raise", "f", ())
    seats = {STREAM: Seat(0, 0, 5 * HOUR_MS)}
    world.put(root_key(root), RootDocument(streams=seats, journal=journal))
    with pytest.raises(Halted, match=r"flags in root .* are being raised"):
        world.reset()
    world.put(root_key(root), RootDocument(streams=seats))

    world.reset()

    task = read(world.store, key, Task)
    assert task is not None
    assert task.value.state == "done"


def test_the_root_of_others_stays_as_it_is(world: World) -> None:
    root, key = root_name(world.settings.folder), task_key("ready:{yyyy}-{MM}-{dd}/{HH}", 0)
    world.put(key, new_task(Order(f"ready:{root}", b"")))
    both = settings_with(world.next)
    clicks = replace(settings_of(), name="clicks")
    both = replace(both, streams={**both.streams, "clicks": clicks})

    world.acts.reset(world.next, INTO, both, ADA)

    task = read(world.store, key, Task)
    assert task is not None
    assert task.value.state == "outstanding"
