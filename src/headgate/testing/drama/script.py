"""Script: what happens to the nodes, and when; then the proof.

    all hold their share ──▶ one is killed with -9 ──▶ others took over ──▶ one is paused
      ──▶ the last took over ──▶ it is woken ──▶ joined again ──▶ all done ──▶ stopped in good order

Each arrow waits for what it says, with a bound; nothing depends on how fast a machine is, as long
as the tasks last. All processes are ended when `play` returns or raises.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from headgate.ambient import SystemAmbient
from headgate.errors import Conflict, HeadgateError, Invalid, Unavailable
from headgate.status import ClusterStatus, read_status
from headgate.store import DocumentStore
from headgate.store.codec import parse
from headgate.store.file import STRIPES, stripe_of
from headgate.store.names import key, parts
from headgate.store.pages import pages
from headgate.store.registry import open_store
from headgate.store.url import parse as parse_url
from headgate.testing.drama.child import Child, State
from headgate.testing.drama.tale import Tale
from headgate.testing.steps import STEPS, Progress, StepsFeed, find_faults

LOOK_S = 0.25
CALM = 1 / 3  # of a term, between two acts: so that people can follow
ACT_S_MAX = 60.0
END_S_MAX = 180.0
STOP_S_MAX = 30.0
PROBE_MS = 300
CLEAN_ROUNDS_MAX = 5


@dataclass(frozen=True, slots=True)
class Plan:
    url: str
    namespace: str
    logs: Path  # an empty folder
    command: tuple[str, ...]  # how `headgate` is started
    feed: StepsFeed
    nodes: int
    workers: int
    term_s: float
    seed: int  # of the choice who is killed and who is paused


@dataclass(frozen=True, slots=True)
class Cell:
    """A task, as the picture shows it."""

    steps: int
    node: str | None
    epoch: int
    is_done: bool


@dataclass(frozen=True, slots=True)
class NodeCell:
    name: str
    pid: int
    state: State
    number: str
    is_leader: bool
    holds: int


@dataclass(frozen=True, slots=True)
class Picture:
    elapsed_s: float
    nodes: tuple[NodeCell, ...]
    cells: tuple[Cell, ...]
    news: tuple[str, ...]  # since the last picture

    @property
    def steps(self) -> int:
        return sum(cell.steps for cell in self.cells)

    @property
    def done(self) -> int:
        return sum(cell.is_done for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Outcome:
    faults: tuple[str, ...]
    picture: Picture
    takeovers: int
    refused: int
    lost: int
    epoch_max: int

    @property
    def is_proved(self) -> bool:
        return not self.faults


Show = Callable[[Picture], None]


def play(plan: Plan, show: Show) -> Outcome:
    """Raises Invalid, and what the store raises."""
    if parse_url(plan.url).scheme == "memory":
        raise Invalid("memory: lives in one process, others do not see it; next: try file:./state")
    with closing(open_store(plan.url, plan.namespace)) as store:
        stage = _Stage(plan, store, show)
        try:
            stage.play()
        finally:
            stage.end()
        return stage.outcome()


def clean_up(store: DocumentStore) -> None:
    """Removes all documents of the namespace. Raises what the store raises."""
    for _ in range(CLEAN_ROUNDS_MAX):
        found = False
        for page in pages(store):
            for document in page.documents:
                found = True
                with suppress(Conflict):  # the last request of a killed process came late
                    store.delete(document.key, document.version)
        if not found:
            return


class _Stage:
    def __init__(self, plan: Plan, store: DocumentStore, show: Show) -> None:
        self._plan = plan
        self._store = store
        self._show = show
        self._ambient = SystemAmbient()
        self._chance = random.Random(plan.seed)
        self._start_s = time.monotonic()
        self._tale = Tale()
        self._news: list[str] = []
        self._status: ClusterStatus | None = None
        self._progress: Mapping[int, Progress] = {}
        self._faults: list[str] = []
        self._children = [self._child(f"node-{n}") for n in range(1, plan.nodes + 1)]
        self._picture = Picture(0.0, (), (), ())

    def play(self) -> None:
        self._await(self._all_hold_their_share, "all nodes hold their share")
        self._rest()
        killed, paused = self._chance.sample(self._children, 2)
        self._kill(killed)
        self._await(lambda: self._holds(killed) == 0, f"{killed.name} is taken over")
        self._rest()
        self._pause(paused)
        self._await(lambda: self._holds(paused) == 0, f"{paused.name} is taken over")
        self._rest()
        self._wake(paused)
        self._await(lambda: paused.state == "running", f"{paused.name} is back")
        self._await(lambda: self._is_all_done, "all tasks are done", END_S_MAX)
        self._stop()

    def end(self) -> None:
        for child in self._children:
            child.close()

    def outcome(self) -> Outcome:
        progress = self._read_progress()
        faults = [*self._faults, *find_faults(self._plan.feed, list(progress.values()))]
        if not self._tale.takeovers:
            faults.append("nobody had to take over anything: the tasks were too short to show it")
        epochs = [step.epoch for done in progress.values() for step in done.steps]
        return Outcome(
            tuple(faults),
            self._picture,
            self._tale.takeovers,
            self._tale.refused,
            self._tale.lost,
            max(epochs, default=0),
        )

    def _child(self, name: str) -> Child:
        plan, feed = self._plan, self._plan.feed
        command = [
            *(*plan.command, "--log-level", "info", "run", "--store", plan.url),
            *("--namespace", plan.namespace, "--name", name, "--workers", str(plan.workers)),
            *("--term-seconds", str(plan.term_s), "--demo-tasks", str(feed.count)),
            *("--demo-steps", str(feed.steps), "--demo-pause-ms", str(feed.pause_ms)),
        ]
        return Child(name, command, plan.logs / f"{name}.log")

    def _kill(self, child: Child) -> None:
        held = self._holds(child)
        child.kill()
        self._say(f"{child.name} is killed with -9, and held {held} tasks")

    def _pause(self, child: Child) -> None:
        if not child.pause(self._is_harmless):
            self._faults.append(f"{child.name} could not be paused without holding others up")
            return
        self._say(
            f"{child.name} is paused (SIGSTOP) for longer than its session lives, and holds "
            f"{self._holds(child)} tasks"
        )

    def _wake(self, child: Child) -> None:
        if child.state == "paused":
            self._say(f"{child.name} is woken (SIGCONT), and does not know that time has passed")
            self._tale.wake(child.name)
            child.wake()

    def _stop(self) -> None:
        self._say(f"all {self._plan.feed.count} tasks are done; the nodes left are asked to stop")
        left = [child for child in self._children if child.is_there]
        for child in left:
            child.ask_to_stop()
        until_s = time.monotonic() + STOP_S_MAX
        self._await(lambda: not any(child.is_there for child in left), "nodes stop", STOP_S_MAX)
        for child in left:
            if not child.await_end(max(0.0, until_s - time.monotonic())) or child.code != 0:
                self._faults.append(f"{child.name} ended with {child.code}; its log: {child.log}")
        self._look()

    def _rest(self) -> None:
        until_s = time.monotonic() + CALM * self._plan.term_s
        while time.monotonic() < until_s:
            self._look()

    def _await(self, is_so: Callable[[], bool], what: str, s_max: float = ACT_S_MAX) -> None:
        """A thing that does not come is a fault, and the play goes on to its end."""
        until_s = time.monotonic() + s_max
        self._look()
        while not is_so():
            if time.monotonic() >= until_s:
                self._faults.append(f"after {s_max:g} s, it is not so that {what}")
                return
            if not any(child.is_there for child in self._children):
                logs = ", ".join(str(child.log) for child in self._children)
                self._faults.append(f"no node is left, before {what}; their logs: {logs}")
                return
            self._look()

    def _look(self) -> None:
        with suppress(Unavailable):  # the next look tells
            self._status = read_status(self._store, self._ambient)
            self._progress = self._read_progress()
        events = [event for child in self._children for event in child.read()]
        now_s = time.monotonic()
        self._news += self._tale.hear(events, now_s)
        self._news += self._tale.flush(now_s)
        self._draw()
        time.sleep(LOOK_S)

    def _say(self, words: str) -> None:
        self._news.append(words)
        self._draw()

    def _draw(self) -> None:
        self._picture = self._composed()
        self._news = []
        self._show(self._picture)

    def _composed(self) -> Picture:
        status = self._status
        tasks = {} if status is None else {task.name: task for task in status.tasks}
        leader = "" if status is None or status.leader is None else status.leader.session
        is_created = status is not None and any(feed.created for feed in status.feeds)
        by_session = {child.session: child.name for child in self._children}
        cells = []
        for number in range(self._plan.feed.count):
            task = tasks.get(f"{self._plan.feed.name}/{number}")
            steps = len(self._progress[number].steps) if number in self._progress else 0
            if task is None:
                cells.append(Cell(steps, None, 0, is_created and steps >= self._plan.feed.steps))
            else:
                node = by_session.get(task.session) or task.node
                cells.append(Cell(steps, node, task.epoch, False))
        nodes = tuple(
            NodeCell(
                child.name,
                child.pid,
                child.state,
                child.number,
                bool(leader) and child.session == leader,
                self._holds(child),
            )
            for child in self._children
        )
        return Picture(time.monotonic() - self._start_s, nodes, tuple(cells), tuple(self._news))

    def _read_progress(self) -> Mapping[int, Progress]:
        return {
            int(parts(document.key)[-1]): parse(document, Progress)
            for page in pages(self._store, key(STEPS, self._plan.feed.name))
            for document in page.documents
        }

    def _holds(self, child: Child) -> int:
        """As the documents say; what nobody took over yet is still its."""
        if self._status is None or not child.session:
            return 0
        return sum(task.session == child.session for task in self._status.tasks)

    def _all_hold_their_share(self) -> bool:
        least = self._plan.feed.count // len(self._children)
        is_shared = all(self._holds(child) >= least for child in self._children)
        return is_shared and bool(self._progress)

    def _is_harmless(self) -> bool:
        return parse_url(self._plan.url).scheme != "file" or is_nobody_held_up(self._store)

    @property
    def _is_all_done(self) -> bool:
        return any(
            feed.name == self._plan.feed.name and feed.removed == self._plan.feed.count
            for feed in (() if self._status is None else self._status.feeds)
        )


def is_nobody_held_up(store: DocumentStore) -> bool:
    """On files, who stops in the middle of a write keeps others from writing there."""
    try:
        for name in _probes():
            version = store.create(name, {"format": 1}, timeout_ms=PROBE_MS)
            store.delete(name, version, timeout_ms=PROBE_MS)
    except HeadgateError:
        return False
    return True


def _probes() -> Iterator[str]:
    """A key for every lock of the file store."""
    wanted = set(range(STRIPES))
    number = 0
    while wanted:
        name = key("probe", str(number))
        if stripe_of(name) in wanted:
            wanted.discard(stripe_of(name))
            yield name
        number += 1
