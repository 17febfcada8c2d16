"""What status says, from documents that were written as nodes write them."""

import pytest

from headgate.ambient import SystemAmbient
from headgate.cluster import Advert, Order
from headgate.cluster.feeds import FeedState, feed_key
from headgate.cluster.picture import LEADER
from headgate.cluster.presence import DocumentPresence
from headgate.cluster.rights import Right
from headgate.cluster.roster import ROSTER, Entry, Roster
from headgate.cluster.session import session_key
from headgate.cluster.tasks import Task, Trouble, new_task, task_key
from headgate.errors import Unavailable
from headgate.status import (
    ClusterStatus,
    TaskStatus,
    as_json,
    exit_code,
    read_status,
    resting,
    shown_ms,
)
from headgate.store import Document, DocumentStore, Page
from headgate.store.codec import body_of
from headgate.store.memory import MemoryStore, Shelf
from headgate.testing.planted import ForwardingStore

FIVE = ("1/1", "1/2", "2/1", "2/2", "3/1")

TERM = 30_000
NOW = 10**12


class Hands(SystemAmbient):
    """A clock set by hand; this machine's may be off."""

    def __init__(self, off_ms: int = 0) -> None:
        self.ms = NOW
        self.off_ms = off_ms

    def wall_ns(self) -> int:
        return (self.ms + self.off_ms) * 1_000_000

    def monotonic_ms(self) -> int:
        return self.ms

    def boot_ms(self) -> int:
        return self.ms


class World:
    def __init__(self) -> None:
        self.hands = Hands()
        self.store: DocumentStore = MemoryStore(Shelf(self.hands), "test", self.hands)
        self._presence = DocumentPresence(self.store, self.hands, term_ms=TERM)

    def joins(self, session: str, *labels: str, draining: bool = False) -> None:
        advert = Advert(f"node-{session}", 2, labels, held_count=3, is_draining=draining)
        self._presence.join(session, advert)

    def put(self, name: str, value: object) -> None:
        self.store.create(name, body_of(value))

    def leads(self, session: str) -> None:
        self.put(LEADER, Right(holder=session, epoch=4, since_ms=NOW - 5_000))

    def has_task(self, number: int, **fields: object) -> None:
        known: dict[str, object] = {"kind": "k", "payload": "", **fields}
        self.put(task_key("f", number), Task(**known))  # type: ignore[arg-type]

    def status(self, off_ms: int = 0) -> ClusterStatus:
        here = Hands(off_ms)
        here.ms = self.hands.ms
        return read_status(self.store, here)


@pytest.fixture
def world() -> World:
    return World()


def one(status: ClusterStatus) -> TaskStatus:
    (task,) = status.tasks
    return task


def test_nothing_at_all_is_healthy_and_leaves_no_trace(world: World) -> None:
    status = world.status()

    assert (status.members, status.tasks, status.warnings) == ((), (), ())
    assert (status.is_healthy, exit_code(status), status.clock_off_ms) == (True, 0, None)
    assert world.store.list().documents == ()


def test_members_and_leader_with_their_ages(world: World) -> None:
    world.joins("a", "gpu")
    world.joins("b", draining=True)
    world.leads("a")
    world.hands.ms += 10_000

    status = world.status()

    assert status.leader is not None
    assert (status.leader.node, status.leader.epoch, status.leader.age_ms) == ("node-a", 4, 15_000)
    assert not status.leader.is_silent
    first, second = status.members
    assert (first.number, first.node, first.labels, first.is_leader) == (
        1,
        "node-a",
        ("gpu",),
        True,
    )
    assert 19_990 <= first.left_ms <= 20_010
    assert (second.is_draining, second.is_leader, second.held_count) == (True, False, 3)
    assert (status.is_healthy, status.warnings) == (True, ())


def test_a_leader_that_missed_a_renewal_is_silent(world: World) -> None:
    world.joins("a")
    world.leads("a")
    world.hands.ms += TERM * 2 // 3

    leader = world.status().leader

    assert leader is not None
    assert (leader.is_live, leader.is_silent) == (True, True)


def test_a_task_in_progress_has_a_holder_an_epoch_and_an_age(world: World) -> None:
    world.joins("a")
    world.leads("a")
    world.has_task(7, holder="a", epoch=2, since_ms=NOW - 3_000, starts=("2/1",))

    task = one(world.status())

    assert (task.name, task.kind, task.condition) == ("f/7", "k", "in progress")
    assert (task.node, task.epoch, task.held_ms, task.tries) == ("node-a", 2, 3_000, 1)


def test_a_task_whose_holder_is_gone_is_free(world: World) -> None:
    world.joins("a")
    world.put(ROSTER, Roster(1, (Entry(1, "node-a", "a", 2), Entry(2, "node-x", "x", 2))))
    world.has_task(0, holder="x", epoch=2)

    task = one(world.status())

    assert (task.condition, task.node) == ("free", "node-x")


def test_a_task_set_aside_needs_a_person(world: World) -> None:
    world.joins("a")
    world.leads("a")
    trouble = Trouble("it is broken", "node-a", NOW - 1_000)
    world.has_task(3, epoch=5, starts=FIVE, error=trouble, set_aside=trouble)

    status = world.status()

    assert one(status).condition == "set aside"
    assert one(status).set_aside == one(status).error
    assert status.warnings == ("1 task was set aside (f/3): a person must look",)
    assert (status.is_healthy, exit_code(status)) == (False, 1)
    assert status.counts["set aside"] == 1


def test_a_task_set_aside_does_not_wait_for_a_node(world: World) -> None:
    world.has_task(0)
    world.has_task(1, set_aside=Trouble("it is broken", "node-a", NOW - 1_000))

    assert world.status().warnings == (
        "no node is running, and 1 task waits",
        "1 task was set aside (f/1): a person must look",
    )


def test_tasks_that_no_node_may_take_are_named_with_their_labels(world: World) -> None:
    world.joins("a", "cpu")
    world.leads("a")
    world.has_task(1, labels=("gpu", "tpu"))
    world.has_task(2, labels=("cpu",))

    status = world.status()

    assert [task.is_stranded for task in status.tasks] == [True, False]
    assert status.warnings == (
        "no node may take 1 task (f/1): they need one of the labels gpu, tpu, and no node has one",
    )
    assert exit_code(status) == 1


def test_a_node_that_drains_or_is_overdue_takes_nothing(world: World) -> None:
    world.joins("a", "gpu", draining=True)
    world.joins("b", "cpu")
    world.leads("b")
    world.has_task(1, labels=("gpu",))

    assert one(world.status()).is_stranded

    world.hands.ms += TERM + 2_000
    status = world.status()

    assert [member.is_overdue for member in status.members] == [True, True]
    assert status.warnings[0] == (
        "no node takes tasks: each one is overdue or draining, and 1 task waits"
    )
    assert "node node-a, number 1, is overdue by 2.0 s" in status.warnings[1]
    assert exit_code(status) == 1


def test_status_closes_nobody(world: World) -> None:
    world.joins("a")
    world.hands.ms += 10 * TERM
    before = world.store.get(session_key("a"))

    world.status()

    assert world.store.get(session_key("a")) == before


def test_tasks_without_any_node_need_a_person_who_sees_who_was_there(world: World) -> None:
    world.put(ROSTER, Roster(1, (Entry(3, "node-c", "c", 4, ("gpu",)),)))
    world.has_task(0)
    world.has_task(1)

    status = world.status()

    assert [(seen.number, seen.node) for seen in status.last_seen] == [(3, "node-c")]
    assert status.warnings == ("no node is running, and 2 tasks wait",)
    assert exit_code(status) == 1


def test_who_is_there_hides_who_was(world: World) -> None:
    world.joins("a")
    world.put(ROSTER, Roster(1, (Entry(3, "node-c", "c", 4),)))

    assert world.status().last_seen == ()


def test_nobody_leads(world: World) -> None:
    world.joins("a")

    assert world.status().warnings[0].startswith("nobody is leader yet")

    world.leads("gone")
    status = world.status()

    assert status.leader is not None
    assert (status.leader.is_live, status.leader.node) == (False, None)
    assert status.warnings[0].startswith("the leader, session gone, is gone")


def test_feeds_count_what_was_created_and_done(world: World) -> None:
    world.put(feed_key("f"), FeedState(1, 10, ((0, 4), (6, 7))))
    world.has_task(5, state="done")
    world.has_task(6)  # brought back by a leader that was late
    world.has_task(8)

    status = world.status()

    (feed,) = status.feeds
    assert (feed.name, feed.created, feed.done, feed.removed) == ("f", 10, 6, 5)
    assert one(status).name == "f/8"
    assert status.counts == {"in progress": 0, "free": 1, "set aside": 0, "done": 6}


def test_what_is_damaged_is_named_and_the_rest_is_there(world: World) -> None:
    world.joins("a")
    world.leads("a")
    world.store.create(task_key("f", 1), {"format": 1, "kind": 3})
    world.store.create("cluster/tasks/strange", body_of(new_task(Order("k", b""))))
    world.store.create("sessions/b", {"format": 1})
    world.has_task(2)

    status = world.status()

    assert sorted(one.key for one in status.damaged) == [
        "cluster/tasks/f/0000000/0000000001",
        "cluster/tasks/strange",
        "sessions/b",
    ]
    assert one(status).name == "f/2"
    assert [member.node for member in status.members] == ["node-a"]
    assert (status.is_healthy, exit_code(status)) == (False, 4)
    assert status.warnings == ("3 documents are damaged: what depends on them stands still",)


@pytest.mark.parametrize(
    ("off_ms", "words"),
    [(5_000, "5.0 s ahead of"), (-90_000, "1 min 30 s behind"), (900, None)],
)
def test_a_wrong_clock_is_said(world: World, off_ms: int, words: str | None) -> None:
    world.joins("a")
    world.leads("a")

    status = world.status(off_ms)

    assert status.clock_off_ms == off_ms
    assert [words is not None and words in warning for warning in status.warnings] == (
        [] if words is None else [True]
    )
    assert status.leader is not None
    assert status.leader.age_ms == 5_000  # by the store's clock


class ComesAndGoes(ForwardingStore):
    """Between the listing of documents and that of sessions, a node leaves."""

    def list(self, prefix: str = "", **options: object) -> Page:
        if prefix == "sessions":
            found = self.behind.get(session_key("a"))
            assert isinstance(found, Document)
            self.behind.delete(session_key("a"), found.version)
        return self.behind.list(prefix, **options)  # type: ignore[arg-type]


def test_who_leaves_during_the_look_holds_nothing(world: World) -> None:
    world.joins("a")
    world.has_task(0, holder="a", epoch=1)
    world.store = ComesAndGoes(world.store)

    assert one(world.status()).condition == "free"


class Gone(ForwardingStore):
    def list(self, *_: object, **__: object) -> Page:
        raise Unavailable("nobody answers")


def test_a_store_out_of_reach_is_unavailable(world: World) -> None:
    world.store = Gone(world.store)

    with pytest.raises(Unavailable):
        world.status()


def test_json_has_the_command_that_releases(world: World) -> None:
    world.joins("a")
    world.has_task(1)
    world.has_task(2, set_aside=Trouble("x", "n", 1))

    body = as_json(world.status(), lambda task: f"release {task.name}")

    tasks = body["tasks"]
    assert isinstance(tasks, list)
    assert [task["next"] for task in tasks] == [None, "release f/2"]
    assert body["counts"] == {"in_progress": 0, "free": 1, "set_aside": 1, "done": 0}


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "0.0 s"),
        (59_940, "59.9 s"),
        (60_000, "1 min 0 s"),
        (3_600_000, "1 h 0 min"),
        (97_200_000, "1 d 3 h"),
    ],
)
def test_a_duration_for_people(ms: int, words: str) -> None:
    assert shown_ms(ms) == words


@pytest.mark.parametrize(("after_ms", "is_silent"), [(11_900, False), (12_100, True)])
def test_a_node_that_missed_a_renewal_seems_to_be_gone_long_before_it_is_overdue(
    world: World, after_ms: int, is_silent: bool
) -> None:
    world.joins("a")
    world.leads("a")
    world.has_task(1, holder="a", epoch=2)
    world.hands.ms += after_ms

    status = world.status()
    (member,) = status.members

    assert (member.is_silent, one(status).is_silent) == (is_silent, is_silent)
    assert not member.is_overdue
    assert one(status).left_ms == member.left_ms
    assert bool(status.warnings) is is_silent
    if is_silent:
        assert status.warnings[0].startswith(
            "node node-a, number 1, seems to be gone: nothing was heard of it for 12.1 s; its "
            "session ends in about 17.9 s"
        )


def test_a_fleet_at_rest_without_a_node_is_healthy_and_no_task_waits(world: World) -> None:
    world.has_task(1)

    status = resting(world.status())

    assert (status.is_at_rest, status.is_healthy, exit_code(status)) == (True, True, 0)
    assert status.warnings == ()


def test_at_rest_what_was_set_aside_still_needs_a_person(world: World) -> None:
    world.has_task(1, set_aside=Trouble("it is broken", "node-a", NOW - 1_000))

    status = resting(world.status())

    assert exit_code(status) == 1
    assert status.warnings == ("1 task was set aside (f/1): a person must look",)
