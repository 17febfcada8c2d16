"""A whole node on clocks set by hand: the steward, and all loops together."""

from collections.abc import Callable, Sequence

import pytest

from headgate.cluster import Assignment
from headgate.cluster.nudge import Nudge
from headgate.cluster.picture import LEADER, Drain, drain_key, read_picture
from headgate.cluster.rights import Right
from headgate.cluster.steward import REFRESH_MS, Listener
from headgate.cluster.tasks import release_command, task_key
from headgate.errors import Conflict, Fenced
from headgate.store import TIMEOUT_MS, DocumentStore, JsonObject, Version
from headgate.store.changes import read
from headgate.store.codec import body_of
from headgate.store.memory import MemoryStore
from headgate.testing.faults import Call, Calm, Harm, Point, Scripted, Sort, wrap
from headgate.testing.fleet import progress
from headgate.testing.manual import ManualAmbient, ManualNode, manual_store, run_until
from headgate.testing.planted import ForwardingStore
from headgate.testing.steps import StepsFeed, StepsKind, find_faults

TERM = 30_000


class World:
    def __init__(self, feed: StepsFeed) -> None:
        self.ambient = ManualAmbient()
        self.store: MemoryStore = manual_store(self.ambient)
        self.feed = feed
        self.nodes: list[ManualNode] = []

    def boot(self, name: str, store: DocumentStore | None = None, workers: int = 1) -> ManualNode:
        behind = store or self.store
        kind = StepsKind(behind, self.ambient)
        node = ManualNode(
            name, behind, self.ambient, [kind], [self.feed], workers=workers, term_ms=TERM
        )
        self.nodes.append(node)
        return node

    def run_until_done(self) -> None:
        run_until(self.is_done, self.nodes, self.ambient)

    def is_done(self) -> bool:
        """Everything is removed, but what is set aside."""
        picture = read_picture(self.store)
        state = next(iter(picture.feeds.values()), None)
        is_created = state is not None and state.value.next >= self.feed.count
        return is_created and all(t.value.set_aside is not None for t in picture.tasks.values())

    def faults(self) -> Sequence[str]:
        return find_faults(self.feed, progress(self.store))


def test_one_node_does_all_tasks_step_by_step() -> None:
    world = World(StepsFeed("demo", count=10, steps=3, pause_ms=50))
    node = world.boot("one", workers=2)
    world.run_until_done()
    assert world.faults() == []
    assert node.errors == []
    assert node.duties.desk.is_empty()


def test_q1_three_nodes_share_tasks_and_each_has_its_part() -> None:
    world = World(StepsFeed("demo", count=9, steps=20, pause_ms=1_000))
    for name in ("a", "b", "c"):
        world.boot(name)
    run_until(
        lambda: len(world.nodes[0].duties.membership.look.members) == 3, world.nodes, world.ambient
    )
    run_until(
        lambda: [len(node.duties.desk.keys()) for node in world.nodes] == [3, 3, 3],
        world.nodes,
        world.ambient,
    )
    world.run_until_done()
    assert world.faults() == []


def test_l10_one_poison_in_100_and_99_are_done_and_no_node_is_lost() -> None:
    world = World(StepsFeed("demo", count=100, steps=1, poison=frozenset({42})))
    for name in ("a", "b", "c"):
        world.boot(name, workers=2)
    world.run_until_done()
    (left,) = read_picture(world.store).tasks.values()
    assert left.key == task_key("demo", 42)
    assert left.value.set_aside is not None
    assert "poison" in left.value.set_aside.words
    assert world.faults() == []
    assert [len(node.errors) for node in world.nodes] == [0, 0, 0]
    assert [node.duties.membership.lost for node in world.nodes] == [0, 0, 0]


class FirstWritesConflict(ForwardingStore):
    """Each first write of a shared document loses against somebody who was there before."""

    def __init__(self, behind: DocumentStore) -> None:
        super().__init__(behind)
        self.lost: set[str] = set()

    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        if key not in self.lost:
            self.lost.add(key)
            found = self.behind.get(key)
            if found is not None:
                self.behind.replace(key, found.body, found.version)
                raise Conflict(f"{key}: somebody was first")
        return super().replace(key, body, version, timeout_ms=timeout_ms)


def test_l5_with_a_conflict_at_every_first_write_everything_is_done_once() -> None:
    world = World(StepsFeed("demo", count=20, steps=2))
    store = FirstWritesConflict(world.store)
    world.boot("a", store)
    world.boot("b", store)
    world.run_until_done()
    assert world.faults() == []
    assert len(store.lost) > 40  # tasks, progress, feed, roster, sessions


class Counting:
    """How many calls, and how large the largest body of each folder."""

    def __init__(self) -> None:
        self.calls = 0
        self.sizes: dict[str, int] = {}

    def around(self, call: Call, act: Callable[[], object]) -> object:
        if call.sort is not Sort.LOCAL:
            self.calls += 1
        if call.method in ("create", "replace"):
            folder = "/".join(call.subject.split("/")[:2])
            size = len(str(call.args[1]))
            self.sizes[folder] = max(size, self.sizes.get(folder, 0))
        return act()


def counted(tasks: int) -> Counting:
    world, counting = World(StepsFeed("demo", count=tasks, steps=1)), Counting()
    world.ambient.chance = 0.0  # no pause between two claims
    world.boot("a", wrap(DocumentStore, world.store, counting), workers=3)
    world.run_until_done()
    assert world.faults() == []
    return counting


def test_l8_with_2000_tasks_documents_stay_small_and_calls_are_linear() -> None:
    few, many = counted(500), counted(2_000)
    for folder, size in few.sizes.items():
        if not folder.startswith("sessions/"):  # a session shows at most so many of what it holds
            assert many.sizes[folder] <= size + 20, folder
    assert many.calls < 4 * few.calls * 1.5


def effects_of_a_calm_node(feed: StepsFeed) -> int:
    world, calm = World(feed), Calm()
    world.boot("a", wrap(DocumentStore, world.store, calm))
    world.run_until_done()
    return len(calm.calls)


def test_l11_each_call_of_a_node_refused_once_and_the_next_tick_goes_on() -> None:
    feed = StepsFeed("demo", count=2, steps=2)
    effects = effects_of_a_calm_node(feed)
    assert effects > 30
    for effect in range(1, effects + 1):
        world, stage = World(feed), Scripted([Point(effect, Harm.REFUSE)])
        node = world.boot("a", wrap(DocumentStore, world.store, stage))
        world.run_until_done()
        assert stage.is_spent, effect
        assert world.faults() == [], effect
        assert len(node.errors) <= 1, effect
        assert node.duties.membership.lost == 0, effect


def test_l2_a_node_that_lost_its_session_drops_everything_and_comes_back() -> None:
    world = World(StepsFeed("demo", count=4, steps=100, pause_ms=500))
    node = world.boot("a")
    run_until(lambda: len(node.duties.desk.keys()) == 4, [node], world.ambient)
    before = node.session
    node.presence.end(before, "by a test")
    node.duties.membership.renew_now()
    node.tick()
    assert node.session != before
    run_until(lambda: len(node.duties.desk.keys()) == 4, [node], world.ambient)
    assert {task.value.holder for task in read_picture(world.store).tasks.values()} == {
        node.session
    }
    assert {task.value.epoch for task in read_picture(world.store).tasks.values()} == {2}
    right = read(world.store, LEADER, Right)
    assert right is not None
    assert (right.value.holder, right.value.epoch) == (node.session, 2)


def test_an_outage_longer_than_trust_stops_the_node_and_its_renewal_brings_it_back() -> None:
    world = World(StepsFeed("demo", count=2, steps=100, pause_ms=500))
    stage = Scripted([])
    node = world.boot("a", wrap(DocumentStore, world.store, stage))
    run_until(lambda: len(node.duties.desk.keys()) == 2, [node], world.ambient)
    session = node.session
    before = {key: task.value.epoch for key, task in read_picture(world.store).tasks.items()}
    for effect in range(len(stage.calls) + 1, len(stage.calls) + 5_000):
        stage._points[effect] = Point(effect, Harm.REFUSE)
    for _ in range(28):  # nobody else is there to close its session
        node.tick()
        world.ambient.pass_ms(1_000)
    assert node.duties.trust.left_ms(session) == 0
    stage._points.clear()
    run_until(lambda: node.duties.trust.left_ms(session) > 0, [node], world.ambient)
    assert node.session == session
    after = {key: task.value.epoch for key, task in read_picture(world.store).tasks.items()}
    assert after == before
    node.tick()
    assert len(node.duties.desk.keys()) == 2


def test_a_drained_node_gives_all_back_and_the_other_finishes() -> None:
    world = World(StepsFeed("demo", count=6, steps=10, pause_ms=200))
    a, b = world.boot("a"), world.boot("b")
    run_until(lambda: len(a.duties.desk.keys()) == 3, world.nodes, world.ambient)
    a.duties.drain()
    run_until(lambda: a.duties.is_drained, world.nodes, world.ambient)
    right = read(world.store, LEADER, Right)
    assert right is not None
    assert right.value.holder != a.session
    holders = {task.value.holder for task in read_picture(world.store).tasks.values()}
    assert a.session not in holders
    a.duties.membership.leave()
    world.nodes.remove(a)
    run_until(world.is_done, [b], world.ambient)
    assert world.faults() == []


def test_a_person_drains_a_node_by_a_document() -> None:
    world = World(StepsFeed("demo", count=2, steps=50, pause_ms=500))
    node = world.boot("a")
    run_until(lambda: not node.duties.desk.is_empty(), [node], world.ambient)
    world.store.create(drain_key(node.session), body_of(Drain("by a test", 0)))
    run_until(lambda: node.duties.is_drained, [node], world.ambient)
    assert all(not task.value.holder for task in read_picture(world.store).tasks.values())


def test_l9_an_idle_node_asks_little() -> None:
    world, calm = World(StepsFeed("demo", count=2, steps=1)), Calm()
    node = world.boot("a", wrap(DocumentStore, world.store, calm))
    world.run_until_done()
    for _ in range(20):
        node.tick()
        world.ambient.pass_ms(100)
    calm.calls.clear()
    for _ in range(600):  # a minute
        node.tick()
        world.ambient.pass_ms(100)
    asked = [call for call in calm.calls if call.sort is not Sort.WAIT]
    assert len(asked) <= 20  # six renewals and a few looks


def test_listings_are_some_time_apart_however_much_is_written() -> None:
    world, calm = World(StepsFeed("demo", count=30, steps=30, pause_ms=10)), Calm()
    node = world.boot("a", wrap(DocumentStore, world.store, calm), workers=3)
    start_ms = world.ambient.monotonic_ms()
    for _ in range(500):
        node.tick()
        world.ambient.pass_ms(10)
    took_ms = world.ambient.monotonic_ms() - start_ms
    listings = [c for c in calm.calls if c.method == "list" and c.subject == "cluster"]
    assert len(listings) <= took_ms // REFRESH_MS + 2


def test_the_listener_gives_its_nudge_when_something_was_written() -> None:
    ambient = ManualAmbient()
    store, written = manual_store(ambient), Nudge()
    listener = Listener(store, ambient, written)
    listener.tick()
    assert written.take()  # the first mark: nobody knows what was before
    store.create("cluster/x", {"format": 1})
    assert listener.tick() > ambient.monotonic_ms()
    assert written.take()


def test_what_is_damaged_concerns_only_itself() -> None:
    world = World(StepsFeed("demo", count=3, steps=1))
    world.store.create(task_key("demo", 1), {"format": 1, "no": "task"})
    node = world.boot("a")
    run_until(lambda: len(progress(world.store)) == 2, [node], world.ambient)
    assert [one.key for one in read_picture(world.store).damaged] == [task_key("demo", 1)]


class FencedOnce:
    """A work that stops by its own judgement after a while, although its node holds the task."""

    name = "steps"
    well_ms = None

    def __init__(self, ambient: ManualAmbient) -> None:
        self._ambient = ambient
        self.ticks = 0

    def start(self, _assignment: Assignment) -> "FencedOnce":
        return self

    def release_command(self, task: str) -> str:
        return release_command(task)

    def tick(self) -> int | None:
        self.ticks += 1
        if self.ticks == 3:
            raise Fenced("something else was faster")
        return None if self.ticks > 3 else self._ambient.monotonic_ms() + 10_000


def test_a_task_that_was_let_go_and_is_still_ours_is_taken_up_again() -> None:
    """Nobody writes anything in between: only the desk knows that it is missing."""
    world = World(StepsFeed("demo", count=1, steps=1))
    kind = FencedOnce(world.ambient)
    node = ManualNode("a", world.store, world.ambient, [kind], [world.feed], term_ms=TERM)
    run_until(world.is_done, [node], world.ambient)
    assert kind.ticks == 4
    assert node.errors == []


@pytest.mark.parametrize("times", [1, 3])
def test_inv3_a_session_closed_again_and_again_does_no_step_twice(times: int) -> None:
    world = World(StepsFeed("demo", count=3, steps=12, pause_ms=300))
    node = world.boot("a")
    for _ in range(times):
        run_until(lambda: not node.duties.desk.is_empty(), [node], world.ambient)
        node.presence.end(node.session, "by a test")
        node.duties.membership.renew_now()
        node.tick()
    world.run_until_done()
    assert world.faults() == []
