"""Landfall: two nodes land orders; one is killed in the middle of a commit; then the count.

    orders dropped ──▶ both nodes read ──▶ a journal stands: its node is killed with -9
      ──▶ the other finishes that commit, and goes on ──▶ more orders ──▶ all landed ──▶ the count

Each arrow waits for what it says, with a bound. All processes are ended when `play` returns or
raises.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from headgate.ambient import SystemAmbient
from headgate.audit.inspection import audit
from headgate.commits.checkpoint import Checkpoint, Journal, checkpoint_key
from headgate.commits.record import from_bytes
from headgate.errors import HeadgateError, Unavailable
from headgate.lake.opening import open_lake
from headgate.landing.report import Report, report_key
from headgate.settings.loading import load
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.store.registry import open_store
from headgate.testing.drama.child import Child, State
from headgate.testing.drama.orders import SPOILED, Batch, Proof, count, drop

STREAM = "orders"
NODES = ("node-1", "node-2")
SHARDS = 2
HOURS = 30
LOOK_S = 0.002  # while a commit is to be caught in the act
SHOW_S = 0.25
ACT_S_MAX = 240.0
STOP_S_MAX = 60.0

SETTINGS = """\
namespace: demo
store: file:./state
lake: ./lake
streams:
  orders:
    source: {{kind: files, path: ./incoming, format: json, lanes: 4}}
    event_time: {{json: $.at, unit: ms}}
    shards: {shards}
    shift: 2s
    grace: 0s
    allowed_lateness: {hours}h      # both halves of the orders are of the same hours
spark: {{master: "local[2]", conf: {{spark.driver.memory: 1g}}}}
"""


@dataclass(frozen=True, slots=True)
class Plan:
    folder: Path  # an empty one
    command: tuple[str, ...]  # how `headgate` is started
    records: int = 200_000
    files: int = 16
    term_s: float = 4
    seed: int = 7


@dataclass(frozen=True, slots=True)
class ShardCell:
    name: str
    node: str
    epoch: int
    commits: int
    rows: int
    doing: str


@dataclass(frozen=True, slots=True)
class NodeCell:
    name: str
    pid: int
    state: State


@dataclass(frozen=True, slots=True)
class Picture:
    elapsed_s: float
    nodes: tuple[NodeCell, ...]
    shards: tuple[ShardCell, ...]
    news: tuple[str, ...]

    @property
    def rows(self) -> int:
        return sum(shard.rows for shard in self.shards)


@dataclass(frozen=True, slots=True)
class Caught:
    """The commit in whose middle a node was killed."""

    name: str
    node: str
    journal: Journal
    published: int
    files: int


@dataclass(frozen=True, slots=True)
class Outcome:
    proof: Proof
    findings: tuple[str, ...]
    caught: Caught | None
    elapsed_s: float
    commits: int
    spoiled: int

    @property
    def is_proved(self) -> bool:
        is_dead_right = self.proof.dead == self.spoiled
        return self.proof.is_right and is_dead_right and not self.findings


Show = Callable[[Picture], None]


def play(plan: Plan, show: Show) -> Outcome:
    """Raises what the store raises; Unavailable if a step of the story does not come."""
    (plan.folder / "headgate.yaml").write_text(SETTINGS.format(shards=SHARDS, hours=2 * HOURS))
    stage = _Stage(plan, show)
    try:
        return stage.play()
    finally:
        stage.end()


@dataclass(slots=True)
class _Stage:
    plan: Plan
    show: Show
    children: dict[str, Child] = field(default_factory=dict)
    news: list[str] = field(default_factory=list)
    began_s: float = field(default_factory=time.monotonic)

    def play(self) -> Outcome:
        plan = self.plan
        incoming = plan.folder / "incoming"
        incoming.mkdir()
        until_ms = SystemAmbient().wall_ns() // 1_000_000
        half = plan.records // 2
        first = Batch(0, half, plan.files // 2, HOURS, until_ms, spoiled=True)
        second = Batch(half, plan.records - half, plan.files // 2, HOURS, until_ms)
        drop(incoming, first, plan.seed)
        self.news.append(f"{half:,} orders are dropped into {incoming}, in {first.files} files")
        settings = load(plan.folder / "headgate.yaml", {})
        with closing(open_store(settings.store, settings.namespace)) as store:
            for name in NODES:
                self._start(name)
            caught = self._kill_in_mid_commit(store)
            self._until(store, lambda: self._rows(store) >= half, "the first half has landed")
            drop(incoming, second, plan.seed + 1)
            self.news.append(f"{second.count:,} more orders are dropped")
            wanted = plan.records + len(SPOILED)
            self._until(store, lambda: self._rows(store) >= wanted, "everything has landed")
            self._stop(store)
            lake = open_lake(settings.lake, SystemAmbient())
            found = audit(store, lake, settings.streams).findings
            proof = count(plan.folder / "lake", range(plan.records))
            commits = sum(one.commits for one in self._shards(store))
        return Outcome(
            proof,
            tuple(finding.words for finding in found),
            caught,
            time.monotonic() - self.began_s,
            commits,
            len(SPOILED),
        )

    def end(self) -> None:
        for child in self.children.values():
            child.close()

    def _start(self, name: str) -> None:
        plan = self.plan
        config = str(plan.folder / "headgate.yaml")
        options = ["--name", name, "--term-seconds", str(plan.term_s)]
        command = [*plan.command, "--log-level", "info", "run", "--config", config, *options]
        self.children[name] = Child(name, command, plan.folder / f"{name}.log")

    def _kill_in_mid_commit(self, store: DocumentStore) -> Caught | None:
        """Looks all the time; a journal that stands is a commit that is not finished."""
        ends_s, shown_s = time.monotonic() + ACT_S_MAX, 0.0
        while time.monotonic() < ends_s:
            for shard in range(SHARDS):
                found = read(store, checkpoint_key(STREAM, shard), Checkpoint)
                if found is not None and found.value.journal is not None:
                    caught = self._kill(store, shard, found.value.journal)
                    if caught is not None:
                        return caught
            if time.monotonic() - shown_s > SHOW_S:
                shown_s = time.monotonic()
                self._show(store)
            if self._rows(store) >= self.plan.records // 2:
                return None  # each commit was faster than our looks
            time.sleep(LOOK_S)
        raise Unavailable(f"no commit began within {ACT_S_MAX:.0f} s; next: see the logs")

    def _kill(self, store: DocumentStore, shard: int, journal: Journal) -> Caught | None:
        """With some of its files published, and some not. None: the commit was faster."""
        lake, name = self.plan.folder / "lake", self._holder(store, shard)
        path = lake / f"_headgate/commits/{STREAM}/{shard}/{journal.number:010}.json"
        if name not in self.children or not journal.rows:
            return None
        while not path.exists():  # the record is published first
            if not self._stands(store, shard, journal):
                return None
        files = [lake / file.published for file in from_bytes(path.read_bytes(), "").files]
        while not any(file.exists() for file in files[len(files) // 3 :]):
            if not self._stands(store, shard, journal):
                return None
        self.children[name].kill()
        if not self._stands(store, shard, journal):
            self.news.append(f"{name} was killed with -9, a moment after a commit")
            return Caught(f"{STREAM}/{shard}", name, journal, len(files), len(files))
        done = sum(file.exists() for file in files)
        self.news.append(
            f"{name} was killed with -9 in the middle of commit {STREAM}/{shard}/{journal.number}: "
            f"{done} of {len(files)} files were published, and no position had moved"
        )
        return Caught(f"{STREAM}/{shard}", name, journal, done, len(files))

    def _stands(self, store: DocumentStore, shard: int, journal: Journal) -> bool:
        found = read(store, checkpoint_key(STREAM, shard), Checkpoint)
        return found is not None and found.value.journal == journal

    def _holder(self, store: DocumentStore, shard: int) -> str:
        found = read(store, report_key(STREAM, shard), Report)
        return "" if found is None else found.value.node

    def _rows(self, store: DocumentStore) -> int:
        return sum(one.rows for one in self._shards(store))

    def _shards(self, store: DocumentStore) -> Sequence[ShardCell]:
        cells = []
        for shard in range(SHARDS):
            found = read(store, checkpoint_key(STREAM, shard), Checkpoint)
            report = read(store, report_key(STREAM, shard), Report)
            one = Checkpoint() if found is None else found.value
            cells.append(
                ShardCell(
                    f"{STREAM}/{shard}",
                    "" if report is None else report.value.node,
                    one.epoch,
                    one.number - (one.journal is not None),
                    one.rows,
                    "" if report is None else report.value.doing,
                )
            )
        return cells

    def _until(self, store: DocumentStore, is_over: Callable[[], bool], what: str) -> None:
        ends_s = time.monotonic() + ACT_S_MAX
        while not is_over():
            if time.monotonic() > ends_s:
                raise Unavailable(f"{what}: not within {ACT_S_MAX:.0f} s; next: see the logs")
            self._show(store)
            time.sleep(SHOW_S)
        self.news.append(what)
        self._show(store)

    def _stop(self, store: DocumentStore) -> None:
        for child in self.children.values():
            child.ask_to_stop()
        for child in self.children.values():
            child.await_end(STOP_S_MAX)
        self._show(store)

    def _show(self, store: DocumentStore) -> None:
        for child in self.children.values():
            for event in child.read():
                self.news += _told(event.name, child.name, event.fields)
        nodes = tuple(NodeCell(one.name, one.pid, one.state) for one in self.children.values())
        news, self.news = tuple(self.news), []
        try:
            shards = tuple(self._shards(store))
        except HeadgateError:
            shards = ()
        self.show(Picture(time.monotonic() - self.began_s, nodes, shards, news))


def _told(event: str, node: str, fields: Mapping[str, str]) -> list[str]:
    if event == "spark.started":
        return [f"{node} started Spark, now that there is something to read"]
    if event == "journal.found":
        shard, number = fields["shard"], fields["commit"]
        return [f"{node} took {shard} over and finishes commit {number} from its journal"]
    return []
