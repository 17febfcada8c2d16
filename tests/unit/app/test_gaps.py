"""What a person accepts as gone at a Kafka cluster: noted, written down, and then read on."""

from dataclasses import replace

import pytest

from headgate.app.acts import Person
from headgate.app.gaps import Accepted, GapActs
from headgate.cluster import Order
from headgate.cluster.tasks import Task, Trouble, new_task, task_key
from headgate.commits.checkpoint import Checkpoint, Journal, Wish, checkpoint_key
from headgate.commits.streams import StreamDocument, stream_key
from headgate.engine import EventTime
from headgate.errors import Halted, Invalid, Unavailable
from headgate.lake.ledger import Ledger, Line, read_ledger
from headgate.lake.memory import MemoryLake
from headgate.landing import StreamSettings
from headgate.landing.kind import feed_name, kind_name
from headgate.landing.stream_document import shard_of
from headgate.periods import DEFAULT_FOLDER, FolderTemplate
from headgate.sources import FilesSettings, KafkaSettings, SourceSettings
from headgate.sources.kafka.document import KafkaDocument, Life, document_key
from headgate.store.changes import read
from headgate.store.codec import body_of
from headgate.testing.manual import ManualAmbient, manual_store
from headgate.testing.weir import Weir

ADA = Person("ada", "we know")
SHARDS = 2
KAFKA = KafkaSettings("127.0.0.1:9", ("orders",))


def settings(source: SourceSettings = KAFKA) -> StreamSettings:
    folder = FolderTemplate.parse(DEFAULT_FOLDER)
    return StreamSettings("sales", source, EventTime("json", "$.at"), folder, shards=SHARDS)


class World:
    """A stream of one topic with four partitions, each of them read up to offset 5."""

    def __init__(self) -> None:
        self.ambient = ManualAmbient()
        self.store = manual_store(self.ambient)
        self.lake = MemoryLake()
        self.weir = Weir()
        self.weir.make("orders", 4)
        for partition in range(4):
            self.weir.send("orders", partition, [b"{}"] * 9)
        (self.life,) = self.weir.cluster().topics(["orders"]).values()
        ledger = Ledger(self.lake, "command line", self.ambient)
        self.acts = GapActs(self.store, self.lake, ledger, self.ambient)
        self.put(stream_key("sales"), StreamDocument(SHARDS))
        self.put(document_key("sales"), KafkaDocument({"orders": Life(self.life.id, 1, 4)}))
        for shard in range(SHARDS):
            self.put(checkpoint_key("sales", shard), self.of_shard(shard))
            self.put(task_key(feed_name("sales"), shard), new_task(Order(kind_name("sales"), b"")))

    def put(self, key: str, value: object) -> None:
        found = self.store.get(key)
        if found is None:
            self.store.create(key, body_of(value))
        else:
            self.store.replace(key, body_of(value), found.version)

    def of_shard(self, shard: int, position: str = "5") -> Checkpoint:
        mine = [f"orders/{n}" for n in range(4) if shard_of(f"orders/{n}", SHARDS) == shard]
        return Checkpoint(epoch=1, turn=1, number=3, positions=dict.fromkeys(mine, position))

    def sets_aside(self, *shards: int) -> None:
        for shard in shards:
            task = replace(
                new_task(Order(kind_name("sales"), b"")), set_aside=Trouble("gone", "node", 1)
            )
            self.put(task_key(feed_name("sales"), shard), task)

    def aside(self) -> list[int]:
        tasks = {n: read(self.store, task_key(feed_name("sales"), n), Task) for n in range(SHARDS)}
        return [n for n, task in tasks.items() if task is not None and task.value.set_aside]

    def document(self) -> KafkaDocument:
        found = read(self.store, document_key("sales"), KafkaDocument)
        assert found is not None
        return found.value

    def notes(self) -> list[Line]:
        return list(read_ledger(self.lake, 0, 2**45))

    def accept(self, what: str) -> Accepted:
        return self.acts.accept(settings(), what, self.weir.cluster(), ADA)


@pytest.fixture
def world() -> World:
    return World()


def test_what_expired_is_noted_accepted_and_read_on_behind(world: World) -> None:
    world.weir.expire("orders", 1, 8)
    shard = shard_of("orders/1", SHARDS)
    world.sets_aside(0, 1)

    done = world.accept("orders/1")

    assert done == Accepted(
        "sales", "orders/1", "offsets 5 to 7 expired before they were read", True, (shard,)
    )
    assert world.document().accepted == {"orders/1": 5}
    assert world.aside() == [1 - shard]  # that one stands for something else
    accepted, released = world.notes()
    assert (accepted.what, accepted.subject, accepted.who) == (
        *("gap.accepted", "sales/orders/1", "ada"),
    )
    assert accepted.words == "offsets 5 to 7 expired before they were read; we know"
    assert (released.what, released.subject) == ("shard.released", f"sales/{shard}")


def test_a_gap_that_was_accepted_is_accepted_once(world: World) -> None:
    world.weir.expire("orders", 1, 8)
    world.accept("orders/1")

    again = world.accept("orders/1")

    assert not again.is_anything_done
    assert len(world.notes()) == 1
    world.sets_aside(shard_of("orders/1", SHARDS))  # a crash before the release
    assert world.accept("orders/1").is_anything_done
    assert world.aside() == []


def test_where_nothing_is_gone_nothing_is_accepted(world: World) -> None:
    world.sets_aside(0, 1)
    before = world.document()

    for low in (0, 5):
        world.weir.expire("orders", 1, low)
        with pytest.raises(
            Halted, match=rf"nothing of it is gone: offset 5 is read next, .* {low} on"
        ):
            world.accept("orders/1")

    assert (world.document(), world.notes(), world.aside()) == (before, [], [0, 1])


@pytest.mark.parametrize(
    ("position", "why"), [("", "nobody has looked at it yet"), ("closed", "it is over")]
)
def test_of_what_is_not_being_read_nothing_can_be_gone(
    world: World, position: str, why: str
) -> None:
    for shard in range(SHARDS):
        world.put(checkpoint_key("sales", shard), world.of_shard(shard, position))

    with pytest.raises(Halted, match=why):
        world.accept("orders/1")


def test_what_expired_before_the_first_read_is_gone_from_where_that_was_fixed(
    world: World,
) -> None:
    shard = shard_of("orders/1", SHARDS)
    world.put(checkpoint_key("sales", shard), world.of_shard(shard, ""))
    world.put(document_key("sales"), replace(world.document(), starts={"orders/1": 2}))
    world.weir.expire("orders", 1, 8)

    done = world.accept("orders/1")

    assert done.words == "offsets 2 to 7 expired before they were read"
    assert world.document().accepted == {"orders/1": 2}


@pytest.mark.parametrize(("wish", "accepted"), [(None, 7), (Wish("gone", "ada", 1), 5)])
def test_a_commit_that_is_not_finished_counts_unless_it_is_to_be_staged_again(
    world: World, wish: Wish | None, accepted: int
) -> None:
    """A look comes after it, or begins where it began."""
    shard = shard_of("orders/1", SHARDS)
    journal = Journal(4, 1, "f", "f/r", 1, "sha256:0", {"orders/1": "7"}, {}, {}, (), 1)
    checkpoint = replace(world.of_shard(shard), number=4, journal=journal, restage=wish)
    world.put(checkpoint_key("sales", shard), checkpoint)
    world.weir.expire("orders", 1, 8)

    world.accept("orders/1")

    assert world.document().accepted == {"orders/1": accepted}


def test_a_topic_that_was_made_again_is_read_from_its_beginning(world: World) -> None:
    world.weir.make("orders")
    world.sets_aside(0, 1)

    done = world.accept("orders")

    assert (done.is_new, done.released) == (True, (0, 1))
    assert world.document().lives == {"orders": Life("id-2", 2, 0)}
    assert world.aside() == []
    assert [line.what for line in world.notes()] == ["gap.accepted", *["shard.released"] * 2]
    assert not world.accept("orders").is_anything_done
    world.sets_aside(1)  # a crash before the last release
    assert world.accept("orders").released == (1,)


def test_a_topic_that_is_the_same_as_ever_is_no_gap(world: World) -> None:
    with pytest.raises(Halted, match="is the one that was read from the start"):
        world.accept("orders")
    assert world.notes() == []


def test_a_partition_of_a_topic_that_was_made_again_leads_to_the_topic(world: World) -> None:
    world.weir.make("orders", 2)

    with pytest.raises(Halted, match=r"headgate gap accept sales orders --reason"):
        world.accept("orders/1")


@pytest.mark.parametrize("what", ["orders", "orders/1"])
def test_a_topic_that_is_not_there_is_named_as_such(world: World, what: str) -> None:
    world.weir.delete("orders")

    with pytest.raises(Halted, match="topic orders is not there"):
        world.accept(what)
    assert world.notes() == []


def test_nothing_is_decided_while_the_cluster_does_not_answer(world: World) -> None:
    world.weir.leaderless.add(("orders", 1))
    with pytest.raises(Unavailable, match="cannot be asked for its first offset now"):
        world.accept("orders/1")
    world.weir.is_silent = True
    with pytest.raises(Unavailable):
        world.accept("orders")
    assert world.notes() == []


@pytest.mark.parametrize(
    ("what", "hint"), [("order/1", "orders/1"), ("ordres", "orders"), ("orders/9", "orders/")]
)
def test_an_unknown_name_is_told_with_the_nearest(world: World, what: str, hint: str) -> None:
    with pytest.raises(Invalid, match=f"the nearest is '{hint}"):
        world.accept(what)


def test_files_that_vanish_need_nobody_to_accept_it(world: World) -> None:
    with pytest.raises(Invalid, match="is read from files"):
        world.acts.accept(settings(FilesSettings("/in")), "lane-0", world.weir.cluster(), ADA)


def test_a_stream_that_nobody_ever_read_has_no_gaps(world: World) -> None:
    other = replace(settings(), name="clicks")
    with pytest.raises(Invalid, match="no node has ever read it here"):
        world.acts.accept(other, "orders", world.weir.cluster(), ADA)
