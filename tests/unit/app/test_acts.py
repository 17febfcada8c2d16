"""What a person asks of streams and shards: noted before it is done, and only if it is done."""

import json
from dataclasses import replace

import pytest

from headgate.app.acts import Acts, Person
from headgate.cluster import Order
from headgate.cluster.tasks import Task, Trouble, new_task, task_key
from headgate.commits.checkpoint import Checkpoint, Journal, checkpoint_key
from headgate.commits.record import Record, RecordFile, facts_of, record_path, to_bytes
from headgate.commits.streams import StreamDocument, stream_key
from headgate.errors import Corrupt, Halted, Invalid
from headgate.lake import Lake
from headgate.lake.ledger import Ledger, Line, read_ledger
from headgate.lake.memory import MemoryLake
from headgate.landing.kind import feed_name, kind_name
from headgate.store.changes import read
from headgate.store.codec import body_of
from headgate.testing.faults import Call, wrap
from headgate.testing.manual import ManualAmbient, manual_store
from tests.crash.landing_world import Watching

ADA = Person("ada", "because")
STREAM = "a/b é"
STAGED = "_headgate/staging/x/shard=0-3"
DEAD = "_dead/a%2Fb%20%C3%A9/2026-11-02/shard0-commit0000000001-0.json"


class World:
    def __init__(self) -> None:
        self.ambient = ManualAmbient()
        self.store = manual_store(self.ambient)
        self.lake = MemoryLake()
        self.acts = Acts(
            self.store, self.lake, Ledger(self.lake, "command line", self.ambient), self.ambient
        )

    def put(self, key: str, value: object) -> None:
        self.store.create(key, body_of(value))

    def notes(self) -> list[Line]:
        return list(read_ledger(self.lake, 0, 2**45))

    def has_task(self, aside: Trouble | None) -> None:
        task = replace(new_task(Order(kind_name(STREAM), b"{}")), set_aside=aside)
        self.put(task_key(feed_name(STREAM), 0), task)

    def task(self) -> Task:
        found = read(self.store, task_key(feed_name(STREAM), 0), Task)
        assert found is not None
        return found.value

    def checkpoint(self) -> Checkpoint:
        found = read(self.store, checkpoint_key(STREAM, 0), Checkpoint)
        assert found is not None
        return found.value

    def journals(self, *names: str) -> Record:
        """Staged files and their record, named by a journal."""
        files = []
        for name in names:
            self.lake.put(f"{STAGED}/{name}", name.encode())
            facts = facts_of(name.encode())
            size, checksum = facts.size_bytes, facts.checksum
            files.append(RecordFile("data", "", f"{STAGED}/{name}", f"d/{name}", size, checksum, 3))
        record = Record(STREAM, 0, 5, 3, "node", 0, 1, {}, {"data": 3}, tuple(files))
        raw = to_bytes(record)
        self.lake.put(f"{STAGED}/record.json", raw)
        facts = facts_of(raw)
        journal = Journal(
            5, 3, STAGED, f"{STAGED}/record.json", facts.size_bytes, facts.checksum,
            {}, {}, {}, (), 1,
        )  # fmt: skip
        self.put(checkpoint_key(STREAM, 0), Checkpoint(epoch=3, number=5, journal=journal))
        return record

    def states(self) -> list[str]:
        found = self.acts.journal(STREAM, 0)
        assert found is not None
        checkpoint, record = found
        assert record is not None
        return [step.state for step in self.acts.steps(STREAM, checkpoint, record)]


@pytest.fixture
def world() -> World:
    return World()


def test_a_release_is_noted_with_who_and_why_and_done(world: World) -> None:
    world.has_task(Trouble("broken", "node", 1))

    before = world.acts.release(STREAM, 0, ADA)

    assert before is not None
    assert before.set_aside is not None
    assert world.task().set_aside is None
    (line,) = world.notes()
    assert (line.what, line.subject, line.who, line.words) == (
        *("shard.released", f"{STREAM}/0", "ada", "because"),
    )


@pytest.mark.parametrize("is_there", [True, False])
def test_a_release_of_what_is_not_set_aside_decides_nothing_and_notes_nothing(
    world: World, is_there: bool
) -> None:
    if is_there:
        world.has_task(None)

    before = world.acts.release(STREAM, 0, ADA)

    assert (before is not None) is is_there
    assert world.notes() == []


def test_a_pause_is_done_once_and_so_is_its_end(world: World) -> None:
    world.put(stream_key(STREAM), StreamDocument(1))

    assert world.acts.pause(STREAM, ADA)
    assert not world.acts.pause(STREAM, ADA)
    assert world.acts.resume(STREAM, ADA)
    assert not world.acts.resume(STREAM, ADA)

    assert [line.what for line in world.notes()] == ["stream.paused", "stream.resumed"]


def test_a_stream_that_no_node_has_read_cannot_be_paused(world: World) -> None:
    with pytest.raises(Invalid, match="no node has ever read it"):
        world.acts.pause(STREAM, ADA)


def test_a_restage_is_wished_noted_and_the_shard_released(world: World) -> None:
    world.has_task(Trouble("gone", "node", 1))
    world.journals("x")

    world.acts.restage(STREAM, 0, ADA)

    wish = world.checkpoint().restage
    assert wish is not None
    assert (wish.who, wish.reason) == ("ada", "because")
    assert world.task().set_aside is None
    assert [line.what for line in world.notes()] == ["journal.restage", "shard.released"]


def test_there_is_nothing_to_restage_without_a_journal(world: World) -> None:
    world.put(checkpoint_key(STREAM, 0), Checkpoint(number=3))

    with pytest.raises(Halted, match="no journal stands"):
        world.acts.restage(STREAM, 0, ADA)
    assert world.notes() == []


def test_the_steps_of_a_journal_say_how_far_each_is(world: World) -> None:
    record = world.journals("x", "y", "z")
    assert world.states() == ["staged", "staged", "staged", "staged"]

    world.lake.publish(f"{STAGED}/record.json", record_path(STREAM, 0, 5))
    world.lake.publish(f"{STAGED}/x", "d/x")
    world.lake.put("d/y", b"y")
    facts = world.lake.facts(f"{STAGED}/z")
    assert facts is not None
    world.lake.remove(f"{STAGED}/z", facts)

    assert world.states() == ["done", "done", "published", "missing"]
    assert world.acts.journal(STREAM, 0) == (world.checkpoint(), record)


def test_a_step_whose_name_another_file_has_says_so(world: World) -> None:
    world.journals("x")
    world.lake.put("d/x", b"another")

    assert world.states() == ["staged", "another file has its name"]


def test_the_record_of_a_journal_may_be_gone_and_of_a_shard_everything(world: World) -> None:
    assert world.acts.journal(STREAM, 0) is None
    world.put(checkpoint_key(STREAM, 0), Checkpoint(number=3))

    assert world.acts.journal(STREAM, 0) == (Checkpoint(number=3), None)


def test_g5_half_a_record_is_corrupt(world: World) -> None:
    world.journals("x")
    world.lake.put(record_path(STREAM, 0, 5), b'{"stream"')

    with pytest.raises(Corrupt):
        world.acts.journal(STREAM, 0)


def test_inv4_a_letter_of_a_commit_that_is_not_finished_stays_where_it_is(world: World) -> None:
    """Whoever finishes it would find it lost; read again, its records would come twice."""
    world.journals("a")
    letter = DEAD.replace("commit0000000001", "commit0000000005")
    for path in (letter, DEAD):
        world.lake.put(path, b"{}")
    with pytest.raises(Halted, match=r"is not finished.*headgate status 'a/b é'"):
        world.acts.redrive(STREAM, letter, ADA)
    assert world.lake.read(letter) == b"{}"
    assert world.notes() == []
    assert world.acts.redrive(STREAM, DEAD, ADA), "of one that is"


def test_a_letter_that_is_put_away_while_it_is_driven_in_again_is_not_read_twice(
    world: World,
) -> None:
    """Its first move was cut in half: it lies in both places."""
    waiting, read_since = (DEAD.replace("_dead", one) for one in ("_redrive", "_redriven"))
    for path in (DEAD, waiting):
        world.lake.put(path, b"{}")
    looks: list[Call] = []

    def look(call: Call) -> None:
        if call.method == "facts" and call.args[0] in (waiting, read_since):
            looks.append(call)
            if len(looks) == 2:
                world.lake.publish(waiting, read_since)  # by who landed it

    lake = wrap(Lake, world.lake, Watching(look))
    acts = Acts(world.store, lake, Ledger(lake, "command line", world.ambient), world.ambient)
    assert not acts.redrive(STREAM, DEAD, ADA)
    assert [path for path in world.lake.files() if not path.startswith("_headgate")] == [read_since]


def test_a_redriven_letter_lies_where_its_stream_reads_it_again(world: World) -> None:
    world.lake.put(DEAD, b"{}")

    assert world.acts.redrive(STREAM, DEAD, ADA)
    assert not world.acts.redrive(STREAM, DEAD, ADA)

    assert world.lake.read(DEAD.replace("_dead", "_redrive")) == b"{}"
    assert list(world.acts.dead_letters(STREAM)) == []
    assert [line.subject for line in world.notes()] == [DEAD]


def test_a_letter_whose_name_still_waits_stays_where_it_is(world: World) -> None:
    world.lake.put(DEAD, b"{}")
    world.lake.put(DEAD.replace("_dead", "_redrive"), json.dumps({"older": 1}).encode())

    with pytest.raises(Halted, match="still waits"):
        world.acts.redrive(STREAM, DEAD, ADA)
    assert world.lake.read(DEAD) == b"{}"


def test_a_letter_whose_move_was_cut_in_half_is_driven_in_once(world: World) -> None:
    for path in (DEAD, DEAD.replace("_dead", "_redrive")):
        world.lake.put(path, b"{}")

    assert world.acts.redrive(STREAM, DEAD, ADA)

    assert world.lake.read(DEAD) is None
    assert world.lake.read(DEAD.replace("_dead", "_redrive")) == b"{}"


def test_a_letter_that_was_read_since_its_move_was_cut_in_half_is_not_read_twice(
    world: World,
) -> None:
    for path in (DEAD, DEAD.replace("_dead", "_redriven")):
        world.lake.put(path, b"{}")

    assert not world.acts.redrive(STREAM, DEAD, ADA)

    assert world.lake.read(DEAD) is None
    assert world.lake.read(DEAD.replace("_dead", "_redrive")) is None
    assert world.notes() == []


@pytest.mark.parametrize("path", ["2026-11-01/00/orders/data/x.json", "_dead/other/x.json"])
def test_only_dead_letters_of_the_stream_are_driven_in(world: World, path: str) -> None:
    world.lake.put(path, b"{}")

    with pytest.raises(Invalid, match="is no dead letter"):
        world.acts.redrive(STREAM, path, ADA)


def test_a_retired_stream_leaves_no_task_that_a_node_is_missed_for() -> None:
    world = World()
    world.put(stream_key(STREAM), StreamDocument(2))
    world.has_task(Trouble("poison", "n", 0))

    assert world.acts.retire(STREAM, ADA, {}) == {}

    assert (world.task().state, world.task().holder, world.task().set_aside) == ("done", "", None)
    found = read(world.store, stream_key(STREAM), StreamDocument)
    assert found is not None
    assert found.value.retired is not None
    assert [line.what for line in world.notes()] == ["stream.retired"]
    assert world.acts.retire(STREAM, ADA, {}) is None


def test_inv4_a_stream_is_not_retired_over_a_commit_that_nobody_would_finish() -> None:
    world = World()
    world.put(stream_key(STREAM), StreamDocument(1))
    world.journals("a")
    with pytest.raises(Halted, match="commit 5 is journaled and not finished"):
        world.acts.retire(STREAM, ADA, {})
    assert world.notes() == []
