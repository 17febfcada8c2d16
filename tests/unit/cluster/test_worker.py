"""A worker and one task: what each way of ending means for its document."""

from asyncio import CancelledError
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from headgate.cluster import Assignment, Order
from headgate.cluster.desk import Desk
from headgate.cluster.feeds import FeedState, feed_key
from headgate.cluster.tasks import (
    FAILED_TRIES_MAX,
    Task,
    claimed_task,
    new_task,
    task_key,
)
from headgate.cluster.trust import Trust
from headgate.cluster.worker import AGAIN_MS, IDLE_MS, RETRY_MS, RETRY_MS_MAX, Worker
from headgate.errors import Conflict, Ended, Fenced, Halted, Invalid, OutcomeUnknown, Unavailable
from headgate.store import DocumentStore
from headgate.store.changes import change, read
from headgate.store.codec import body_of
from headgate.testing.faults import Harm, Point, Scripted, wrap
from headgate.testing.manual import ManualAmbient, manual_store
from headgate.testing.steps import WELL_MS

FIVE = ("1/1", "1/2", "2/1", "2/2", "3/1")

KEY = task_key("demo", 0)
FAR = 10**9
Piece = int | None | BaseException


@dataclass
class ScriptedKind:
    """Works whose ticks end as the test says; the last one for ever."""

    pieces: list[Piece]
    name: str = "scripted"
    assignments: list[Assignment] = field(default_factory=list)
    ticks: int = 0
    well_ms: int | None = WELL_MS

    def start(self, assignment: Assignment) -> "ScriptedKind":
        self.assignments.append(assignment)
        return self

    def release_command(self, task: str) -> str:
        return f"go on with {task}"

    def tick(self) -> int | None:
        self.ticks += 1
        piece = self.pieces.pop(0) if len(self.pieces) > 1 else self.pieces[0]
        if isinstance(piece, BaseException):
            raise piece
        return piece


class Bench:
    """One worker, one task on its desk."""

    def __init__(self, *pieces: Piece, task: Task | None = None) -> None:
        self.ambient = ManualAmbient()
        self.behind = manual_store(self.ambient)
        self.stage = Scripted([])
        self.store = wrap(DocumentStore, self.behind, self.stage)
        self.desk = Desk()
        self.trust = Trust(self.ambient)
        self.kind = ScriptedKind(list(pieces) or [None])
        self.is_draining = False
        self.worker = Worker(
            self.store,
            self.desk,
            self.trust,
            {self.kind.name: self.kind},
            self.ambient,
            "node-1",
            lambda: self.is_draining,
        )
        self.behind.create(KEY, body_of(task or new_task(Order("scripted", b"payload"))))
        self.hold("mine")

    def hold(self, session: str) -> None:
        """As the steward does it."""
        self.trust.grant(session, self.ambient.boot_ms() + FAR)
        kept = change(
            self.behind, KEY, Task, lambda task: claimed_task(task, session, lambda _: True, 0)
        )
        assert self.desk.hold(kept, session, self.ambient.monotonic_ms())

    @property
    def task(self) -> Task:
        found = read(self.behind, KEY, Task)
        assert found is not None
        return found.value

    def run(self, ticks: int = 1, pause_ms: int = 0) -> None:
        for _ in range(ticks):
            self.worker.tick()
            self.ambient.pass_ms(pause_ms)

    def harm_next(self, *harms: Harm) -> None:
        """The next effects go wrong so."""
        for ahead, harm in enumerate(harms, len(self.stage.calls) + 1):
            self.stage._points[ahead] = Point(ahead, harm)

    def heal(self) -> None:
        self.stage._points.clear()


def test_a_task_is_started_counted_done_and_off_the_desk() -> None:
    bench = Bench(1_000_500, None)
    bench.run()
    assert (bench.task.starts, bench.task.start, bench.task.holder) == (("1/1",), "1/1", "mine")
    (assignment,) = bench.kind.assignments
    assert (assignment.key, assignment.payload) == (KEY, b"payload")
    assert (assignment.epoch, assignment.node) == (1, "node-1")
    assert bench.worker.tick() == 1_000_500  # not before it is due
    bench.ambient.pass_ms(500)
    bench.run()
    assert bench.task.state == "done"
    assert bench.desk.is_empty()
    assert [kept.value.state for kept in bench.desk.outcomes()[0]] == ["done"]


def test_l9_an_idle_worker_asks_nothing() -> None:
    bench = Bench()
    bench.run()
    before = len(bench.stage.calls)
    assert bench.worker.tick() == bench.ambient.monotonic_ms() + IDLE_MS
    assert len(bench.stage.calls) == before


def test_inv10_nothing_is_taken_up_without_trust() -> None:
    bench = Bench()
    bench.trust.end()
    assert bench.worker.tick() == bench.ambient.monotonic_ms() + AGAIN_MS
    bench.trust.grant("mine", bench.ambient.boot_ms())
    bench.run()
    assert bench.kind.ticks == 0
    assert bench.stage.calls == []


@pytest.mark.parametrize("error", [Unavailable("away"), OutcomeUnknown("lost"), Conflict("first")])
def test_what_is_out_of_reach_is_no_failure(error: Exception) -> None:
    bench = Bench(error, None)
    for _ in range(20):
        bench.kind.pieces.insert(0, error)
    bench.run(21, AGAIN_MS)
    assert (bench.task.tries, bench.task.error) == (1, None)
    assert bench.worker.failures == 0
    assert len(bench.kind.assignments) == 1  # the same work goes on
    bench.run(1)
    assert bench.task.state == "done"


@pytest.mark.parametrize("error", [ValueError("no"), Invalid("no"), SystemExit(3), MemoryError()])
def test_l10_what_a_task_raises_is_its_own_failure(error: BaseException) -> None:
    bench = Bench(error, None)
    bench.run()
    assert bench.worker.failures == 1
    assert bench.task.tries == 1
    assert bench.task.error is not None
    assert bench.task.error.words.startswith(type(error).__name__)
    assert bench.task.error.node == "node-1"
    bench.run(1, RETRY_MS)  # too early
    assert bench.kind.ticks == 1
    bench.run(1)
    assert len(bench.kind.assignments) == 2  # a new work
    assert bench.task.state == "done"


def test_the_end_of_the_process_is_no_failure_of_the_task() -> None:
    bench = Bench(Ended())
    with pytest.raises(Ended):
        bench.run()
    assert bench.desk.is_empty()
    assert bench.task.error is None


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    "error",
    [CancelledError(), KeyboardInterrupt(), GeneratorExit(), Mute(), ValueError("\ud800")],
    ids=lambda error: type(error).__name__,
)
def test_l10_whatever_a_task_raises_is_its_failure_and_is_written(error: BaseException) -> None:
    bench = Bench(error, error, error, error, error)
    bench.run(5, RETRY_MS_MAX)
    assert bench.task.set_aside is not None
    assert bench.task.set_aside.words.startswith(type(error).__name__)


def test_l10_after_five_failures_it_is_set_aside_with_longer_and_longer_pauses() -> None:
    bench = Bench(ValueError("no"))
    pauses: list[int] = []
    for _ in range(FAILED_TRIES_MAX):
        start_ms = bench.ambient.monotonic_ms()
        bench.run()
        pauses.append(bench.desk.next_due_ms(FAR) - start_ms)
        bench.ambient.pass_ms(RETRY_MS_MAX)
    assert pauses[:4] == [RETRY_MS, 4 * RETRY_MS, 16 * RETRY_MS, RETRY_MS_MAX]
    assert bench.task.set_aside is not None
    assert bench.task.set_aside.words == "ValueError: no"
    assert bench.task.tries == FAILED_TRIES_MAX
    assert bench.desk.is_empty()
    assert bench.worker.failures == FAILED_TRIES_MAX


def test_a_halt_sets_it_aside_at_once() -> None:
    bench = Bench(Halted("a person must look"))
    bench.run()
    assert bench.task.set_aside is not None
    assert bench.task.set_aside.words == "Halted: a person must look"
    assert bench.task.holder == ""
    assert bench.desk.is_empty()


def test_what_is_set_aside_is_told_with_the_command_of_its_kind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(Halted("a person must look"))
    bench.run()
    assert told_next(caplog) == "go on with demo/0"


def test_of_an_unknown_kind_the_command_for_any_task_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    bench.worker._kinds = {}
    for _ in range(FAILED_TRIES_MAX):
        bench.run()
        bench.ambient.pass_ms(RETRY_MS_MAX)
    assert told_next(caplog) == 'headgate task release demo/0 --reason "…"'


def told_next(caplog: pytest.LogCaptureFixture) -> object:
    (event,) = [vars(one) for one in caplog.records if one.message == "task.set_aside"]
    return event["next"]


def test_an_unknown_kind_is_a_failure_that_names_the_kinds() -> None:
    bench = Bench(task=new_task(Order("new", b"")))
    bench.run()
    assert bench.task.error is not None
    assert "no task kind 'new' on this node, known are: scripted" in bench.task.error.words
    assert bench.task.tries == 1


def test_a_payload_that_cannot_be_read_is_a_failure() -> None:
    bench = Bench(task=replace(new_task(Order("scripted", b"")), payload="%%"))
    bench.run()
    assert bench.task.error is not None
    assert "not base64" in bench.task.error.words


def test_a_task_whose_nodes_died_five_times_is_set_aside_without_a_start() -> None:
    task = replace(new_task(Order("scripted", b"")), starts=FIVE)
    bench = Bench(task=task)
    bench.run()
    assert bench.kind.ticks == 0
    assert bench.task.set_aside is not None
    assert "its node ended 5 times while it ran" in bench.task.set_aside.words


def test_what_failed_before_is_told_too() -> None:
    bench = Bench(ValueError("first"))
    bench.run()
    bench.desk.drop_all()
    change(
        bench.behind,
        KEY,
        Task,
        lambda task: replace(task, holder="", starts=FIVE),
    )
    bench.hold("mine again")
    bench.run()
    assert bench.task.set_aside is not None
    assert bench.task.set_aside.words.endswith("the last error before: ValueError: first")


@pytest.mark.parametrize("harms", [[Harm.REFUSE], [Harm.LOSE_REQUEST] * 12, [Harm.LOSE_REPLY] * 12])
def test_the_result_outlives_an_outage_and_the_work_is_not_done_again(
    harms: Sequence[Harm],
) -> None:
    bench = Bench(0, None)
    bench.run()
    bench.harm_next(*harms)
    bench.run(1, AGAIN_MS)
    assert bench.kind.ticks == 2
    bench.heal()
    bench.run(1)
    assert bench.task.state == "done"
    assert bench.kind.ticks == 2
    assert bench.desk.is_empty()


def test_a_failure_that_cannot_be_told_costs_no_task() -> None:
    bench = Bench(ValueError("no"), None)
    bench.run(0)
    bench.harm_next(*[Harm.REFUSE] * 3)  # already the start
    bench.run(3, AGAIN_MS)
    assert bench.kind.ticks == 0
    bench.heal()
    bench.run(2, RETRY_MS)
    assert bench.task.state == "done"


def test_l2_who_lost_the_task_stops_and_changes_nothing() -> None:
    bench = Bench(0, 0, None)
    bench.run()
    taken = change(
        bench.behind, KEY, Task, lambda task: claimed_task(task, "other", lambda _: True, 0)
    )
    bench.kind.pieces[:] = [None]
    bench.run()
    assert bench.task == taken.value
    assert bench.desk.is_empty()
    assert bench.desk.outcomes()[0] == []


def test_l2_what_was_dropped_while_in_hand_is_not_told() -> None:
    bench = Bench(0, None)
    bench.run()
    (assignment,) = bench.kind.assignments
    assignment.check()
    bench.desk.drop(KEY)
    with pytest.raises(Fenced, match="epoch 1 is over"):
        assignment.check()
    assert assignment.left_ms() == 0
    with pytest.raises(Fenced):
        assignment.guard(bench.store).get(KEY)


def test_a_work_may_ask_how_long_it_may_act() -> None:
    bench = Bench(0, None)
    bench.run()
    (assignment,) = bench.kind.assignments
    assert assignment.left_ms() == FAR
    bench.trust.grant("mine", bench.ambient.boot_ms())
    with pytest.raises(Fenced):
        assignment.check()


@pytest.mark.parametrize("how", ["drained", "wanted back"])
def test_a_task_comes_to_a_good_end_and_is_given_back_without_its_try(how: str) -> None:
    bench = Bench(0)
    bench.run()
    (assignment,) = bench.kind.assignments
    assert not assignment.is_draining
    if how == "drained":
        bench.is_draining = True
    else:
        held = bench.desk.take_due(FAR)
        assert held is not None
        assert bench.desk.take_off(KEY) is None
        bench.desk.put_back(held, 0)
    assert assignment.is_draining
    bench.run()
    assert bench.kind.ticks == 2  # one piece more
    assert (bench.task.holder, bench.task.tries, bench.task.epoch) == ("", 0, 1)
    assert bench.desk.is_empty()


def test_a_drained_node_starts_nothing() -> None:
    bench = Bench()
    bench.is_draining = True
    bench.run()
    assert bench.kind.ticks == 0
    assert bench.task.holder == ""


def test_a_removed_task_that_came_back_is_not_started() -> None:
    bench = Bench()
    bench.behind.create(feed_key("demo"), body_of(FeedState(epoch=1, next=1, removed=((0, 1),))))
    before = bench.task
    bench.run()
    assert bench.kind.ticks == 0
    assert bench.task == before
    assert bench.desk.is_empty()


def test_a_task_that_ran_for_a_while_is_forgiven() -> None:
    bench = Bench(ValueError("no"), 0)
    bench.run(1, RETRY_MS)
    bench.run(1, WELL_MS)
    assert bench.task.tries == 2
    bench.run(1)
    assert (bench.task.tries, bench.task.error) == (0, None)
    before = len(bench.stage.calls)
    bench.run(1)
    assert len(bench.stage.calls) == before  # once
    bench.kind.pieces[:] = [ValueError("again")]
    bench.run(1)
    assert bench.desk.next_due_ms(FAR) == bench.ambient.monotonic_ms() + RETRY_MS  # as the first


def test_several_workers_share_one_desk() -> None:
    bench = Bench(0)
    second = Worker(
        bench.store, bench.desk, bench.trust, {}, bench.ambient, "node-1", lambda: False
    )
    held = bench.desk.take_due(FAR)
    assert held is not None
    assert second.tick() == bench.ambient.monotonic_ms() + IDLE_MS
    bench.desk.put_back(held, 0)


def test_a_work_that_fails_at_its_first_look_fails_as_any_other() -> None:
    class Refusing(ScriptedKind):
        def start(self, assignment: Assignment) -> ScriptedKind:
            raise Invalid(f"{assignment.key}: no payload of ours")

    bench = Bench()
    bench.worker._kinds = {"scripted": Refusing([None])}
    bench.run()
    assert bench.task.error is not None
    assert "no payload of ours" in bench.task.error.words
