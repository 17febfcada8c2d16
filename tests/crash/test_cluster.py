"""What nodes do to shared documents, crashed before and after each effect, or gone on late.

After a crash a new process comes, with a new session; that of the dead one is over. So what must be
equal in the end is what counts: which tasks are there, what was done and how often, who may act.
Not the epochs, which say how often a right changed hands.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from headgate.cluster import Advert
from headgate.cluster.claims import Claims
from headgate.cluster.desk import Desk
from headgate.cluster.feeds import FeedState, feed_key
from headgate.cluster.leader import Leader
from headgate.cluster.picture import LEADER, read_picture
from headgate.cluster.presence import DocumentPresence
from headgate.cluster.rights import Right
from headgate.cluster.roster import ROSTER, Roster
from headgate.cluster.session import EXPIRED, TERM_MS
from headgate.cluster.session import read as read_session
from headgate.cluster.settling import Settling
from headgate.cluster.tasks import (
    TASKS,
    Task,
    Trouble,
    new_task,
    released_by_person,
    task_key,
)
from headgate.cluster.trust import Trust
from headgate.cluster.worker import RETRY_MS_MAX, Worker
from headgate.errors import Fenced, OutcomeUnknown, Unavailable
from headgate.store import DocumentStore
from headgate.store.changes import change, read
from headgate.store.codec import body_of, parse
from headgate.store.memory import MemoryStore
from headgate.testing.crashes import Flow, check_every_crash, late_wakers
from headgate.testing.faults import Calm, Crashed, Harm, Point, Scripted, Stage, wrap
from headgate.testing.fleet import progress
from headgate.testing.manual import ManualAmbient, manual_store
from headgate.testing.steps import Step, StepsFeed, StepsKind, find_faults

FIVE = ("1/1", "1/2", "2/1", "2/2", "3/1")

LONG_MS = 10**9  # no session ends by itself while a flow lasts
TURNS_MAX = 60
KEY = task_key("demo", 0)
FEED = StepsFeed("demo", count=1, steps=2)


class World:
    """What all processes share."""

    def __init__(self) -> None:
        self.ambient = ManualAmbient()
        self.store: MemoryStore = manual_store(self.ambient)

    def create(self, feed: StepsFeed) -> None:
        """As a leader would have done it."""
        orders = feed.wanted(0, feed.count)
        for number, order in enumerate(orders):
            self.store.create(task_key(feed.name, number), body_of(new_task(order)))
        self.store.create(feed_key(feed.name), body_of(FeedState(next=feed.count)))

    def edit(self, decide: Callable[[Task], Task], key: str = KEY) -> None:
        change(self.store, key, Task, decide)

    def task(self, key: str = KEY) -> Task:
        found = read(self.store, key, Task)
        assert found is not None
        return found.value

    def tasks(self) -> dict[str, Task]:
        """Every document, also of a task that was removed and came back."""
        return {found.key: parse(found, Task) for found in self.store.list(TASKS).documents}

    def feed_state(self) -> FeedState:
        found = read(self.store, feed_key("demo"), FeedState)
        return FeedState() if found is None else found.value

    def live(self) -> list[str]:
        seen = [read_session(document) for document in self.store.list("sessions").documents]
        return [one.id for one in seen if one.session.is_live]


class Process:
    """One node with one worker, on its stage. When it starts, all before it are over."""

    def __init__(self, world: World, stage: Stage, feed: StepsFeed) -> None:
        self._world = world
        self._store = wrap(DocumentStore, world.store, stage)
        ambient = self._ambient = world.ambient
        self._others = DocumentPresence(world.store, ambient, term_ms=LONG_MS)
        for session in world.live():
            self._others.end(session, "it crashed")
        self.session = ambient.new_id()
        self._others.join(self.session, Advert("node", 1))
        trust = Trust(ambient)
        trust.grant(self.session, ambient.boot_ms() + LONG_MS)
        presence = DocumentPresence(self._store, ambient, term_ms=LONG_MS)
        kind = StepsKind(self._store, ambient)
        self.desk = Desk()
        self._leader = Leader(presence, [feed], ambient)
        self._claims = Claims(presence, self.desk, Settling(), ambient)
        self._worker = Worker(
            self._store, self.desk, trust, {kind.name: kind}, ambient, "node", lambda: False
        )

    def lead(self) -> None:
        picture, look = read_picture(self._store), self._others.look()
        self._leader.step(self._store, self.session, picture, look, is_new=True, is_draining=False)

    def claim(self, *, is_draining: bool = False) -> None:
        """One move."""
        picture, look = read_picture(self._store), self._others.look()
        self._claims.replan()
        on_desk = self.desk.epochs()
        self._claims.step(
            self._store, self.session, picture, look.members, on_desk, is_draining=is_draining
        )
        self._ambient.pass_ms(1_000)

    def work(self) -> None:
        self._worker.tick()
        self._ambient.pass_ms(RETRY_MS_MAX)

    def claim_or_work(self) -> None:
        if self.desk.is_empty():
            self.claim()
        else:
            self.work()

    def live_on(self) -> None:
        """All that a node does, once."""
        self.lead()
        self.claim_or_work()

    def until(self, is_over: Callable[[], bool], turn: Callable[[], None]) -> None:
        """As a node: an error that is no crash ends a turn, and nothing else."""
        for _ in range(TURNS_MAX):
            if is_over():
                return
            try:
                turn()
            except (Unavailable, OutcomeUnknown, Fenced):
                continue
        raise AssertionError("it does not come to an end")


@dataclass(frozen=True)
class JoinAndLeave:
    """A member comes, renews and goes. If it dies, a watcher closes its session after a term."""

    def fresh(self) -> World:
        return World()

    def act(self, world: World, stage: Stage) -> None:
        presence = DocumentPresence(wrap(DocumentStore, world.store, stage), world.ambient)
        member = presence.join("first", Advert("node", 1))
        presence.renew(member, Advert("node", 2))
        presence.leave(member)

    def recover(self, world: World, stage: Stage) -> None:
        watcher = DocumentPresence(wrap(DocumentStore, world.store, stage), world.ambient)
        watcher.look()
        world.ambient.pass_ms(TERM_MS + 1)
        for _ in range(TURNS_MAX):
            if not watcher.look().members:
                return

    def state(self, world: World) -> object:
        return world.live()


@dataclass(frozen=True)
class CloseWhatIsOver:
    """Somebody finds that a session was not renewed in time."""

    def fresh(self) -> World:
        world = World()
        DocumentPresence(world.store, world.ambient).join("dead", Advert("node", 1))
        world.ambient.pass_ms(TERM_MS + 1)
        return world

    def act(self, world: World, stage: Stage) -> None:
        watcher = DocumentPresence(wrap(DocumentStore, world.store, stage), world.ambient)
        for _ in range(TURNS_MAX):
            if not watcher.look().members:
                return
            world.ambient.pass_ms(TERM_MS // 2)  # who has just come doubts the store's clock

    def recover(self, world: World, stage: Stage) -> None:
        self.act(world, stage)

    def state(self, world: World) -> object:
        (document,) = world.store.list("sessions").documents
        session = read_session(document).session
        assert session.why in (EXPIRED, None)
        return session.state


@dataclass(frozen=True)
class OfProcesses(ABC):
    """What one node does, and a new one finishes by doing the same."""

    feed: StepsFeed = FEED

    def fresh(self) -> World:
        world = World()
        world.create(self.feed)
        return world

    @abstractmethod
    def act(self, world: World, stage: Stage) -> None: ...

    def recover(self, world: World, stage: Stage) -> None:
        self.act(world, stage)

    def __str__(self) -> str:
        return type(self).__name__


class ClaimATask(OfProcesses):
    def act(self, world: World, stage: Stage) -> None:
        process = Process(world, stage, self.feed)
        process.until(lambda: world.task().holder in world.live(), process.claim)

    def state(self, world: World) -> object:
        task = world.task()
        return task.holder in world.live(), task.tries, task.state


class GiveATaskBack(OfProcesses):
    """Free again is a task that nobody holds, or somebody whose session is over."""

    def act(self, world: World, stage: Stage) -> None:
        process = Process(world, stage, self.feed)

        def is_over() -> bool:
            return process.session not in world.live()

        process.until(lambda: not process.desk.is_empty() or is_over(), process.claim)
        process.until(
            lambda: world.task().holder != process.session or is_over(),
            lambda: process.claim(is_draining=True),
        )

    def state(self, world: World) -> object:
        return world.task().holder in world.live(), world.task().tries, world.task().state


class DoATask(OfProcesses):
    """Started, each of its steps once, done."""

    def act(self, world: World, stage: Stage) -> None:
        process = Process(world, stage, self.feed)
        process.until(lambda: world.task().state == "done", process.claim_or_work)

    def state(self, world: World) -> object:
        task = world.task()
        return find_faults(self.feed, progress(world.store)), task.state, task.holder, task.tries


class FailUntilSetAside(OfProcesses):
    """A task that has two tries left, and fails at each."""

    def __init__(self) -> None:
        super().__init__(StepsFeed("demo", count=1, steps=1, poison=frozenset({0})))

    def fresh(self) -> World:
        world = super().fresh()
        world.edit(lambda task: replace(task, starts=FIVE[:3]))
        return world

    def act(self, world: World, stage: Stage) -> None:
        process = Process(world, stage, self.feed)
        process.until(lambda: world.task().set_aside is not None, process.claim_or_work)

    def state(self, world: World) -> object:
        task = world.task()
        return task.set_aside is not None, task.tries, task.holder, task.state


class ReleaseByAPerson(OfProcesses):
    def fresh(self) -> World:
        world = super().fresh()
        trouble = Trouble("no", "node", 0)
        world.edit(
            lambda task: replace(
                task,
                set_aside=trouble,
                starts=FIVE,
                start="3/1",
                epoch=3,
            )
        )
        return world

    def act(self, world: World, stage: Stage) -> None:
        change(wrap(DocumentStore, world.store, stage), KEY, Task, released_by_person)

    def state(self, world: World) -> object:
        return world.task()


class TakeOffice(OfProcesses):
    """The right, the documents that are led, the roster."""

    def fresh(self) -> World:
        return World()

    def act(self, world: World, stage: Stage) -> None:
        process = Process(world, stage, replace(self.feed, count=0))
        process.until(lambda: all(self._facts(world)), process.lead)

    def state(self, world: World) -> object:
        return self._facts(world)

    def _facts(self, world: World) -> list[bool]:
        right, roster = read(world.store, LEADER, Right), read(world.store, ROSTER, Roster)
        if right is None or roster is None:
            return [False]
        listed = [entry.session for entry in roster.value.members]
        epochs = {right.value.epoch, roster.value.epoch, world.feed_state().epoch}
        return [right.value.holder in world.live(), listed == world.live(), len(epochs) == 1]


class CreateTasks(OfProcesses):
    """Push, then mark."""

    def __init__(self) -> None:
        super().__init__(StepsFeed("demo", count=2, steps=1))

    def fresh(self) -> World:
        return World()

    def act(self, world: World, stage: Stage) -> None:
        process = Process(world, stage, self.feed)
        process.until(lambda: world.feed_state().next == self.feed.count, process.lead)

    def state(self, world: World) -> object:
        return world.tasks(), world.feed_state().next


class RemoveWhatIsDone(OfProcesses):
    """Mark, then delete."""

    def __init__(self) -> None:
        super().__init__(StepsFeed("demo", count=2, steps=1))

    def fresh(self) -> World:
        world = super().fresh()
        for key in world.tasks():
            world.edit(lambda task: replace(task, state="done", epoch=1), key)
        return world

    def act(self, world: World, stage: Stage) -> None:
        process = Process(world, stage, self.feed)
        process.until(lambda: not world.tasks(), process.lead)

    def state(self, world: World) -> object:
        return world.tasks(), world.feed_state().removed


class WholeLife(OfProcesses):
    """A task is created, claimed, done and removed; what a late one brings back is tidied up."""

    def __init__(self) -> None:
        super().__init__(StepsFeed("demo", count=1, steps=1))

    def fresh(self) -> World:
        return World()

    def act(self, world: World, stage: Stage) -> None:
        process = Process(world, stage, self.feed)
        process.until(
            lambda: self._is_removed(world) or process.session not in world.live(),
            process.live_on,
        )

    def state(self, world: World) -> object:
        if world.tasks():
            calm = Calm()
            process = Process(world, calm, self.feed)
            process.until(lambda: not world.tasks(), process.live_on)
            touched = [str(call) for call in calm.calls if call.subject.startswith("steps/")]
            assert not touched, "a removed task was started"
        steps = [(one.input, len(one.steps)) for one in progress(world.store)]
        return steps, world.feed_state().next, world.feed_state().removed

    def _is_removed(self, world: World) -> bool:
        return world.feed_state().removed == ((0, 1),) and not world.tasks()


SMALL: list[Flow[World]] = [
    JoinAndLeave(),
    CloseWhatIsOver(),
    ClaimATask(),
    GiveATaskBack(),
    ReleaseByAPerson(),
    TakeOffice(),
    CreateTasks(),
    RemoveWhatIsDone(),
]
LARGE: list[Flow[World]] = [DoATask(), FailUntilSetAside(), WholeLife()]


@pytest.mark.parametrize("flow", SMALL, ids=lambda flow: type(flow).__name__)
def test_inv5_every_crash_point_leads_to_the_same_state(flow: Flow[World]) -> None:
    assert check_every_crash(flow) > 0


@pytest.mark.parametrize("flow", LARGE, ids=lambda flow: type(flow).__name__)
def test_inv5_every_crash_point_of_a_longer_flow_leads_to_the_same_state(
    flow: Flow[World],
) -> None:
    """During recovery only crashes: all pairs of harms would be many thousands."""
    assert check_every_crash(flow, again=[Harm.CRASH_AFTER]) > 0


@pytest.mark.parametrize("flow", [*SMALL, *LARGE], ids=lambda flow: type(flow).__name__)
def test_inv3_who_wakes_up_late_changes_nothing_more(flow: Flow[World]) -> None:
    assert late_wakers(flow) > 0


def steps_of(world: World) -> list[tuple[Step, ...]]:
    return [one.steps for one in progress(world.store)]


def last_effect(flow: Flow[World], method: str, prefix: str) -> int:
    """The number of the last such effect of a calm run."""
    world, calm = flow.fresh(), Calm()
    flow.act(world, calm)
    return max(
        number
        for number, call in enumerate(calm.calls, 1)
        if call.method == method and call.subject.startswith(prefix)
    )


def crash(flow: Flow[World], point: Point) -> World:
    world = flow.fresh()
    with pytest.raises(Crashed):
        flow.act(world, Scripted([point]))
    return world


def test_l6_a_crash_between_push_and_mark_makes_one_task_and_one_result() -> None:
    flow = WholeLife()
    pushed = last_effect(flow, "create", "cluster/tasks/")
    world = crash(flow, Point(pushed, Harm.CRASH_AFTER))
    assert (list(world.tasks()), world.feed_state().next) == ([KEY], 0)

    flow.recover(world, Calm())

    assert (world.tasks(), world.feed_state().next) == ({}, 1)
    assert find_faults(flow.feed, progress(world.store)) == []


def test_l6_the_task_may_be_done_before_it_is_marked() -> None:
    """Its workers do not wait for the leader; the mark comes first, and then the removal."""
    flow = WholeLife()
    world = crash(flow, Point(last_effect(flow, "create", "cluster/tasks/"), Harm.CRASH_AFTER))
    worker = Process(world, Calm(), flow.feed)
    worker.until(lambda: world.task().state == "done", worker.claim_or_work)

    flow.recover(world, Calm())

    assert (world.tasks(), world.feed_state().next) == ({}, 1)
    assert [len(steps) for steps in steps_of(world)] == [1]


def test_l16_a_second_run_after_the_last_step_is_a_no_op() -> None:
    flow = DoATask()
    world = crash(flow, Point(last_effect(flow, "replace", "steps/"), Harm.CRASH_AFTER))
    before = steps_of(world)
    assert world.task().state == "outstanding"
    assert [len(steps) for steps in before] == [2]

    flow.recover(world, Calm())

    assert world.task().state == "done"
    assert steps_of(world) == before


def test_inv3_the_late_result_of_a_paused_holder_is_refused() -> None:
    """It comes after another has taken over, and before that one is done."""
    flow = DoATask()
    world = flow.fresh()
    paused = Process(world, Calm(), flow.feed)
    paused.until(lambda: world.task().tries == 1, paused.claim_or_work)
    successor = Process(world, Calm(), flow.feed)
    successor.until(lambda: not successor.desk.is_empty(), successor.claim)
    taken = world.task()

    paused.until(paused.desk.is_empty, paused.work)

    assert world.task() == taken
    assert (taken.holder, taken.epoch) == (successor.session, 2)
