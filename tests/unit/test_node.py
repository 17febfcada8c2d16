"""The node: threads around the loops, which no error ends, and an end in good order.

The only unit tests with threads. Each waits for a condition, with a bound.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headgate import node as node_module
from headgate.ambient import Deadline, SystemAmbient
from headgate.cluster import settling
from headgate.cluster.duties import Duties, NodeSettings
from headgate.cluster.nudge import Nudge
from headgate.cluster.picture import LEADER, Drain, drain_key, read_picture
from headgate.cluster.presence import DocumentPresence
from headgate.cluster.rights import Right
from headgate.errors import Fenced, Unavailable
from headgate.node import Ending, Node
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.store.codec import body_of
from headgate.store.memory import MemoryStore, Shelf
from headgate.testing.faults import Call, wrap
from headgate.testing.fleet import progress
from headgate.testing.steps import StepsFeed, StepsKind, find_faults

TERM_MS = 2_000
BOUND_MS = 20_000
FAR_MS = 600_000


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members are not waited for: here all come at once."""
    monkeypatch.setattr(settling, "SETTLE_MS", 10)


class Switch:
    """A stage that lets everything through, or nothing."""

    def __init__(self) -> None:
        self.is_out = False

    def around(self, call: Call, act: Callable[[], object]) -> object:
        if self.is_out:
            raise Unavailable(f"{call}: no store")
        return act()


class World:
    def __init__(self, feed: StepsFeed) -> None:
        self.ambient = SystemAmbient()
        self.store = MemoryStore(Shelf(), "test", self.ambient)
        self.feed = feed
        self.switch = Switch()

    def node(self, name: str = "node", *, drain_ms: int = BOUND_MS) -> Node:
        store = wrap(DocumentStore, self.store, self.switch)
        presence = DocumentPresence(store, self.ambient, term_ms=TERM_MS)
        duties = Duties(
            NodeSettings(name),
            store,
            presence,
            self.ambient,
            [StepsKind(store, self.ambient)],
            [self.feed],
        )
        return Node(duties, self.ambient, drain_ms=drain_ms)

    def wait_for(self, is_so: Callable[[], bool]) -> None:
        deadline = Deadline(self.ambient, BOUND_MS)
        while not is_so():
            assert not deadline.is_over(), "it did not happen in time"
            self.ambient.sleep_ms(5)

    def is_finished(self) -> bool:
        picture = read_picture(self.store)
        state = next(iter(picture.feeds.values()), None)
        return state is not None and state.value.next == self.feed.count and not picture.tasks

    def live(self) -> int:
        presence = DocumentPresence(self.store, self.ambient, term_ms=TERM_MS)
        return len(presence.look().members)


@contextmanager
def running(node: Node) -> Iterator[list[Ending]]:
    """Runs it in a thread of the test's; what it returned is there at the end."""
    results: list[Ending] = []
    thread = threading.Thread(target=lambda: results.append(node.run()), daemon=True)
    thread.start()
    try:
        yield results
    finally:
        node.drain()
        thread.join(BOUND_MS / 1000)
        assert not thread.is_alive(), "the node did not stop"


def test_a_node_does_all_tasks_drains_and_leaves() -> None:
    world = World(StepsFeed("demo", count=5, steps=3))
    node = world.node()
    with running(node) as results:
        world.wait_for(world.is_finished)
    assert results == [Ending.DRAINED]
    assert find_faults(world.feed, progress(world.store)) == []
    assert world.live() == 0
    assert dict(node.errors) == {}
    right = read(world.store, LEADER, Right)
    assert right is not None
    assert right.value.holder == ""


def test_two_nodes_share_and_the_one_that_stays_finishes() -> None:
    world = World(StepsFeed("demo", count=6, steps=4, pause_ms=50))
    first, second = world.node("first"), world.node("second")
    with running(second):
        with running(first) as results:
            world.wait_for(lambda: world.live() == 2 and bool(progress(world.store)))
        assert results == [Ending.DRAINED]
        world.wait_for(world.is_finished)
    assert find_faults(world.feed, progress(world.store)) == []


def test_a_node_is_drained_by_a_document_and_by_asking_twice() -> None:
    world = World(StepsFeed("demo", count=2, steps=1_000, pause_ms=50))
    node = world.node()
    with running(node) as results:
        world.wait_for(lambda: bool(progress(world.store)))
        (member,) = DocumentPresence(world.store, world.ambient).look().members
        world.store.create(drain_key(member.session), body_of(Drain("a test", 0)))
        world.wait_for(lambda: bool(results))
        node.drain()
        node.drain()
    assert results == [Ending.DRAINED]
    tasks = read_picture(world.store).tasks.values()
    assert [(task.value.holder, task.value.tries) for task in tasks] == [("", 0), ("", 0)]


def test_l11_an_outage_ends_no_loop() -> None:
    world = World(StepsFeed("demo", count=4, steps=6, pause_ms=20))
    node = world.node()
    with running(node):
        world.wait_for(lambda: bool(progress(world.store)))
        world.switch.is_out = True
        world.wait_for(lambda: node.errors["membership"] > 0)
        world.switch.is_out = False
        world.wait_for(world.is_finished)
    assert find_faults(world.feed, progress(world.store)) == []


def test_a_drain_has_an_end_if_the_store_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_module, "LEAVE_MS", 100)
    world = World(StepsFeed("demo", count=2, steps=1_000, pause_ms=20))
    node = world.node(drain_ms=50)
    with running(node) as results:
        world.wait_for(lambda: bool(progress(world.store)))
        world.switch.is_out = True
        node.drain()
        world.wait_for(lambda: bool(results))
        world.switch.is_out = False
    assert results == [Ending.TIMED_OUT]


def test_a_drain_without_a_store_ends_with_the_trust(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(node_module, "LEAVE_MS", 100)
    world = World(StepsFeed("demo", count=0, steps=1))
    node = world.node(drain_ms=10 * BOUND_MS)
    with running(node) as results:
        world.wait_for(lambda: world.live() == 1)
        world.switch.is_out = True
        node.drain()
        world.wait_for(lambda: bool(results))
        world.switch.is_out = False
    assert results == [Ending.UNHEARD]
    said = [one for one in caplog.records if one.message == "loop.failed"]
    assert len(said) <= 4, "an outage floods the log"


def test_a_drain_waits_for_a_store_that_is_away_for_a_moment() -> None:
    world = World(StepsFeed("demo", count=0, steps=1))
    node = world.node(drain_ms=10 * BOUND_MS)
    with running(node) as results:
        world.wait_for(lambda: world.live() == 1)
        world.switch.is_out = True
        world.wait_for(lambda: node.errors["membership"] > 0)
        time.sleep(TERM_MS / 1_000)  # its trust is over
        node.drain()
        time.sleep(0.3)
        assert not results, "it gave up at once"
        world.switch.is_out = False
        world.wait_for(lambda: bool(results))
    assert results == [Ending.DRAINED]


class OneLoop:
    """Stands for all loops of a node; its ticks end as the test says."""

    def __init__(self, *errors: Exception) -> None:
        self.nudge = Nudge()
        self.errors = list(errors)
        self.ticks = 0

    def tick(self) -> int:
        self.ticks += 1
        if self.errors:
            raise self.errors.pop(0)
        return SystemAmbient().monotonic_ms() + FAR_MS


def bare_node() -> Node:
    duties: Any = None
    return Node(duties, SystemAmbient())


def test_what_a_loop_raises_is_counted_and_fenced_is_no_error() -> None:
    node = bare_node()
    loop = OneLoop(Unavailable("away"), Fenced("over"), KeyError("a bug"))
    before_ms = node._ambient.monotonic_ms()
    for _ in range(3):
        assert node._tick("loop", loop) > before_ms  # again soon
    assert node.errors["loop"] == 2
    assert node._tick("loop", loop) >= before_ms + FAR_MS


def test_a_nudge_wakes_a_loop_before_its_time() -> None:
    world, node, loop = World(StepsFeed("demo", 0, 1)), bare_node(), OneLoop()
    thread = threading.Thread(target=node._run_loop, args=("loop", loop), daemon=True)
    thread.start()
    world.wait_for(lambda: loop.ticks == 1)
    loop.nudge.give()
    world.wait_for(lambda: loop.ticks == 2)
    node._is_stopped.set()
    loop.nudge.give()
    thread.join(BOUND_MS / 1000)
    assert not thread.is_alive()


def test_a_stop_between_two_ticks_is_not_slept_through() -> None:
    """It comes just after the loop has asked whether it shall stop."""
    node, loop = bare_node(), OneLoop()

    class JustAfter(threading.Event):
        is_first = True

        def is_set(self) -> bool:
            if self.is_first:
                self.is_first = False
                self.set()
                for wake in node._wakes:
                    wake.set()
                return False
            return super().is_set()

    node._is_stopped = JustAfter()
    thread = threading.Thread(target=node._run_loop, args=("loop", loop), daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive()
