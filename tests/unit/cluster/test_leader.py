"""The leader: one at a time, creates each task once, removes what is done, tidies up."""

from dataclasses import replace
from functools import partial

import pytest

from headgate.cluster import Advert, Order
from headgate.cluster.feeds import FeedState, feed_key
from headgate.cluster.leader import BATCH, Leader
from headgate.cluster.picture import LEADER, Drain, drain_key, read_picture
from headgate.cluster.presence import DocumentPresence
from headgate.cluster.rights import Right
from headgate.cluster.roster import ROSTER, Roster
from headgate.cluster.session import session_key
from headgate.cluster.tasks import (
    TASKS,
    Task,
    claimed_task,
    feed_and_number,
    finished,
    new_task,
    task_key,
)
from headgate.cluster.trust import GuardedStore, SessionPermit, Trust
from headgate.errors import Conflict, Fenced
from headgate.store import TIMEOUT_MS, DocumentStore, JsonObject, Version
from headgate.store.changes import change, read
from headgate.store.codec import body_of
from headgate.testing.faults import Calm, wrap
from headgate.testing.manual import ManualAmbient, manual_store
from headgate.testing.planted import ForwardingStore
from headgate.testing.steps import StepsFeed

TERM = 30_000


class World:
    def __init__(self, count: int = 3) -> None:
        self.ambient = ManualAmbient()
        self.store = manual_store(self.ambient)
        self.presence = DocumentPresence(self.store, self.ambient, term_ms=TERM)
        self.feed = StepsFeed("demo", count=count, steps=1)

    def join(self, session: str) -> "Candidate":
        member = self.presence.join(session, Advert(session, 1))
        return Candidate(self, session, member.number)

    def right(self) -> Right:
        found = read(self.store, LEADER, Right)
        assert found is not None
        return found.value

    def state(self) -> FeedState:
        found = read(self.store, feed_key("demo"), FeedState)
        assert found is not None
        return found.value

    def numbers(self) -> list[int]:
        return [feed_and_number(one.key)[1] for one in self.store.list(TASKS).documents]

    def do(self, *numbers: int) -> None:
        """Somebody does these tasks."""
        for number in numbers:
            key = task_key("demo", number)
            kept = change(
                self.store, key, Task, lambda task: claimed_task(task, "w", lambda _: True, 0)
            )
            change(self.store, key, Task, partial(_finished, kept.value.epoch))


def _finished(epoch: int, task: Task) -> Task:
    return finished("k", task, "w", epoch)


class Candidate:
    def __init__(self, world: World, session: str, number: int) -> None:
        self.world = world
        self.session = session
        self.number = number
        self.store: DocumentStore = world.store
        self.leader = Leader(world.presence, [world.feed], world.ambient)

    def step(self, *, is_draining: bool = False, is_new: bool = True) -> int:
        """With what it would see now."""
        return self.leader.step(
            self.store,
            self.session,
            read_picture(self.world.store),
            self.world.presence.look(),
            is_new=is_new,
            is_draining=is_draining,
        )


def test_the_first_becomes_leader_and_the_others_follow() -> None:
    world = World()
    first, second = world.join("first"), world.join("second")
    first.step()
    second.step()
    assert world.right() == Right(
        holder="first", epoch=1, since_ms=world.ambient.wall_ns() // 1_000_000
    )
    assert (first.leader.epoch, second.leader.epoch) == (1, None)


def test_q2_of_two_candidates_who_see_a_free_right_one_becomes_leader() -> None:
    world = World()
    first, second = world.join("first"), world.join("second")
    world.store.create(LEADER, body_of(Right()))
    seen = read_picture(world.store)
    first.step()
    look = world.presence.look()
    second.leader.step(world.store, "second", seen, look, is_new=True, is_draining=False)
    assert second.leader.epoch is None
    assert world.right().holder == "first"
    assert seen.leader is not None
    assert seen.leader.value.holder == "first"


def test_l3_a_follower_that_stops_leaves_the_leader_and_its_epoch_alone() -> None:
    world = World()
    leader, follower = world.join("leader"), world.join("follower")
    leader.step()
    follower.step()
    before = world.right()
    follower.step(is_draining=True)
    follower.step(is_draining=True)
    assert world.right() == before
    assert leader.leader.epoch == 1


def test_l3_a_leader_that_resigns_keeps_its_epoch_in_the_document() -> None:
    world = World()
    leader, follower = world.join("leader"), world.join("follower")
    leader.step()
    leader.step(is_draining=True)
    assert leader.leader.epoch is None
    assert (world.right().holder, world.right().epoch) == ("", 1)
    follower.step()
    assert (world.right().holder, world.right().epoch) == ("follower", 2)
    leader.step(is_draining=True)  # again is fine
    assert world.right().holder == "follower"


def test_l4_a_leader_whose_session_was_closed_in_a_tick_starts_nothing_more() -> None:
    world = World(count=3)
    leader = world.join("leader")
    trust = Trust(world.ambient)
    trust.grant("leader", world.ambient.boot_ms() + TERM)
    calm = Calm()

    class ClosedInATick(ForwardingStore):
        """The first task is created; then the session is lost."""

        def create(self, key: str, body: JsonObject, *, timeout_ms: int = TIMEOUT_MS) -> Version:
            version = super().create(key, body, timeout_ms=timeout_ms)
            if key == task_key("demo", 0):
                world.presence.end("leader", "by a test")
                trust.end()
                calm.calls.clear()
            return version

    behind = ClosedInATick(wrap(DocumentStore, world.store, calm))
    leader.store = GuardedStore(behind, SessionPermit(trust, "leader"))

    with pytest.raises(Fenced):
        leader.step()

    assert calm.calls == []
    assert world.numbers() == [0]


def test_l4_a_leader_that_goes_on_without_asking_is_refused_by_the_epochs() -> None:
    world = World(count=3)
    old, new = world.join("old"), world.join("new")
    old.step()
    stale = read_picture(world.store)
    look = world.presence.look()
    world.presence.end("old", "by a test")
    new.step()
    assert world.right().epoch == 2
    world.do(0)
    before = {d.key: d.version for d in world.store.list("cluster").documents}
    stale.tasks[task_key("demo", 0)] = read_picture(world.store).tasks[task_key("demo", 0)]
    stale.roster = None
    with pytest.raises(Fenced):
        old.leader.step(world.store, "old", stale, look, is_new=True, is_draining=False)
    assert {d.key: d.version for d in world.store.list("cluster").documents} == before


def test_each_input_becomes_one_task_in_batches() -> None:
    world = World(count=BATCH + 20)
    leader = world.join("leader")
    assert leader.step() == world.ambient.monotonic_ms()  # more to do
    assert world.numbers() == list(range(BATCH))
    assert leader.step() > world.ambient.monotonic_ms()
    assert world.numbers() == list(range(BATCH + 20))
    assert world.state() == FeedState(epoch=1, next=BATCH + 20)
    version = world.store.get(feed_key("demo"))
    leader.step()
    assert world.store.get(feed_key("demo")) == version


def test_l6_a_task_that_was_pushed_and_not_marked_is_found_again() -> None:
    world = World(count=2)
    world.store.create(task_key("demo", 0), body_of(new_task(Order("steps", b"first"))))
    world.join("leader").step()
    assert world.numbers() == [0, 1]
    found = read(world.store, task_key("demo", 0), Task)
    assert found is not None
    assert found.value.payload == "Zmlyc3Q="  # not written over


def test_l8_what_is_done_is_marked_and_removed() -> None:
    world = World(count=3)
    leader = world.join("leader")
    leader.step()
    world.do(0, 2)
    leader.step()
    assert world.numbers() == [1]
    assert world.state().removed == ((0, 1), (2, 3))
    world.do(1)
    leader.step()
    assert world.numbers() == []
    assert world.state() == FeedState(epoch=1, next=3, removed=((0, 3),))


def test_what_is_not_marked_as_created_is_not_removed_yet() -> None:
    """Its number could be given again: first the mark, in the same step, then the removal."""
    world = World(count=1)
    world.store.create(
        task_key("demo", 0),
        body_of(world.feed.wanted(0, 1) and new_task(world.feed.wanted(0, 1)[0])),
    )
    world.do(0)
    leader = world.join("leader")
    leader.step()
    assert world.numbers() == [0]
    assert world.state().next == 1
    leader.step()
    assert world.numbers() == []
    assert world.state().removed == ((0, 1),)


def test_a_removed_task_that_came_back_is_removed_again() -> None:
    world = World(count=1)
    leader = world.join("leader")
    leader.step()
    world.do(0)
    leader.step()
    world.store.create(task_key("demo", 0), body_of(new_task(Order("steps", b""))))
    leader.step()
    assert world.numbers() == []


def test_a_task_that_changed_since_the_look_is_not_deleted() -> None:
    world = World(count=1)
    leader = world.join("leader")
    leader.step()
    world.do(0)
    seen = read_picture(world.store)
    change(world.store, task_key("demo", 0), Task, lambda task: replace(task, since_ms=77))
    look = world.presence.look()
    leader.leader.step(world.store, "leader", seen, look, is_new=True, is_draining=False)
    assert world.numbers() == [0]
    leader.step()
    assert world.numbers() == []


class ConflictsFirst(ForwardingStore):
    """The first write of each document loses, as if somebody else had been there."""

    def __init__(self, behind: DocumentStore) -> None:
        super().__init__(behind)
        self.refused: set[tuple[str, str]] = set()

    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        if ("replace", key) not in self.refused:
            self.refused.add(("replace", key))
            found = self.behind.get(key)
            if found is not None:  # somebody writes the same again: the version moves
                self.behind.replace(key, found.body, found.version)
            raise Conflict(f"{key}: somebody was first")
        return super().replace(key, body, version, timeout_ms=timeout_ms)

    def delete(self, key: str, version: Version, *, timeout_ms: int = TIMEOUT_MS) -> None:
        if ("delete", key) not in self.refused:
            self.refused.add(("delete", key))
            raise Conflict(f"{key}: somebody was first")
        super().delete(key, version, timeout_ms=timeout_ms)


def test_l5_with_a_conflict_at_every_first_write_no_task_is_missing() -> None:
    world = World(count=7)
    leader = world.join("leader")
    leader.store = ConflictsFirst(world.store)
    leader.step()
    leader.step()
    assert world.numbers() == list(range(7))
    assert world.state().next == 7
    world.do(*range(7))
    leader.step()
    leader.step()
    assert world.numbers() == []
    assert world.state().removed == ((0, 7),)


def test_l7_the_roster_is_who_is_there_after_fifty_restarts() -> None:
    world = World(count=0)
    leader = world.join("leader")
    leader.step()
    for restart in range(50):
        member = world.presence.join(f"n{restart}", Advert(f"n{restart}", 1))
        leader.step()
        world.presence.leave(member)
    last = world.presence.join("last", Advert("last", 2, ("gpu",)))
    leader.step()
    found = read(world.store, ROSTER, Roster)
    assert found is not None
    assert [(one.node, one.number) for one in found.value.members] == [
        ("leader", 1),
        ("last", last.number),
    ]
    me = world.presence.look().members[0]
    for _ in range(4):
        world.ambient.pass_ms(TERM // 3)
        world.presence.renew(me, me.advert)
        world.presence.renew(last, last.advert)
        leader.step()
    assert len(world.store.list("sessions").documents) == 2  # what is over was forgotten


def test_a_session_that_is_over_is_forgotten_only_after_a_while() -> None:
    world = World(count=0)
    leader = world.join("leader")
    gone = world.presence.join("gone", Advert("gone", 1))
    world.presence.leave(gone)
    leader.step()
    assert world.store.get(session_key("gone")) is not None


def test_a_drain_of_a_session_that_is_over_is_removed() -> None:
    world = World(count=0)
    leader = world.join("leader")
    gone = world.presence.join("gone", Advert("gone", 1))
    for session in ("gone", "leader"):
        world.store.create(drain_key(session), body_of(Drain("a test", 0)))
    world.presence.leave(gone)
    leader.step()
    assert list(read_picture(world.store).drains) == [drain_key("leader")]


def test_a_leader_back_in_office_first_takes_the_documents_in_hand() -> None:
    world = World(count=1)
    first, second = world.join("first"), world.join("second")
    first.step()
    first.step(is_draining=True)
    second.step()
    assert world.state().epoch == 2
    second.step(is_draining=True)
    first.step()
    assert first.leader.epoch == 3
    assert world.state().epoch == 3


def test_an_idle_leader_writes_nothing() -> None:
    world = World(count=1)
    leader = world.join("leader")
    leader.step()
    leader.step()
    calm = Calm()
    leader.store = wrap(DocumentStore, world.store, calm)
    leader.step(is_new=False)
    leader.step()
    assert [call for call in calm.calls if call.method != "get"] == []
