"""Two nodes land orders and are killed with -9 at moments that chance decides; then the count.

    a wave of orders ──▶ a node is killed: in the middle of a commit, or at any moment ──▶ started
    again ──▶ … ──▶ everything has landed ──▶ both stop ──▶ counted in the lake, audited

The seed is printed. It decides which moments are aimed at; the rest is up to the machine.
"""

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headgate import DocumentStore
from headgate.ambient import SystemAmbient
from headgate.audit.inspection import audit
from headgate.cluster.tasks import Task, task_key
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.lake.opening import open_lake
from headgate.landing.kind import feed_name
from headgate.settings.loading import load
from headgate.store.changes import read
from headgate.store.registry import open_store
from headgate.testing.drama.child import Child
from headgate.testing.drama.orders import SPOILED, Batch, count, drop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

HEADGATE = str(Path(sys.executable).with_name("headgate"))
WAVES = 3
WAVE = 10_000  # records
HOURS = 20  # over which they are spread: so many files has a commit
SHARDS = 2
NODES = ("red", "blue")
WITHIN_S = 120.0
STOP_S = 60.0
LOOK_S = 0.002
SETTINGS = f"""\
namespace: kill
store: file:./state
lake: ./lake
streams:
  orders:
    source: {{kind: files, path: ./incoming, format: json, lanes: 4}}
    event_time: {{json: $.at, unit: ms}}
    shards: {SHARDS}
    shift: 1s
    grace: 0s
    allowed_lateness: {3 * HOURS}h
spark: {{master: "local[1]", conf: {{spark.driver.memory: 512m}}}}
"""


@dataclass(slots=True)
class Fleet:
    folder: Path
    store: DocumentStore
    children: dict[str, Child] = field(default_factory=dict)
    starts: int = 0

    def start(self, name: str) -> None:
        self.starts += 1
        if name in self.children:
            self.children[name].close()
        options = ["run", "--config", str(self.folder / "headgate.yaml"), "--name", name]
        command = [HEADGATE, "--log-level", "info", *options, "--term-seconds", "3"]
        self.children[name] = Child(name, command, self.folder / f"{name}-{self.starts}.log")

    def checkpoint(self, shard: int) -> Checkpoint:
        found = read(self.store, checkpoint_key("orders", shard), Checkpoint)
        return Checkpoint() if found is None else found.value

    @property
    def rows(self) -> int:
        """Of all commits that are facts."""
        return sum(self.checkpoint(shard).rows for shard in range(SHARDS))

    def holder(self, shard: int) -> str | None:
        """The name of the node that holds it."""
        task = read(self.store, task_key(feed_name("orders"), shard), Task)
        for child in self.children.values():
            child.read()
            if task is not None and child.session == task.value.holder != "":
                return child.name
        return None

    def kill_in_mid_commit(self, rows: int) -> str:
        """The holder of a shard whose journal stands; if every commit is too fast for that, until
        so many rows have landed, whoever holds one then."""
        ends_s = time.monotonic() + WITHIN_S
        while time.monotonic() < ends_s and self.rows < rows:
            for shard in range(SHARDS):
                journal = self.checkpoint(shard).journal
                name = self.holder(shard) if journal is not None and journal.rows else None
                if name is not None:
                    self.children[name].kill()
                    is_standing = self.checkpoint(shard).journal == journal
                    print(f"{name}: killed {'in' if is_standing else 'after'} a commit of {shard}")
                    return name
            time.sleep(LOOK_S)
        return self.kill(self.holder(0) or NODES[0])

    def kill(self, name: str) -> str:
        self.children[name].kill()
        print(f"{name}: killed")
        return name

    def until(self, is_so: Callable[[], bool], what: str) -> None:
        ends_s = time.monotonic() + WITHIN_S
        while not is_so():
            assert time.monotonic() < ends_s, f"{what}: not within {WITHIN_S:.0f} s\n{self.logs()}"
            time.sleep(0.1)

    def stop(self) -> None:
        for child in self.children.values():
            child.ask_to_stop()
        for child in self.children.values():
            assert child.await_end(STOP_S), f"{child.name} does not stop\n{self.logs()}"

    def logs(self) -> str:
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{log.name}:\n{log.read_text()[-3_000:]}" for log in logs)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    (tmp_path / "incoming").mkdir()
    (tmp_path / "headgate.yaml").write_text(SETTINGS)
    settings = load(tmp_path / "headgate.yaml", {})
    with closing(open_store(settings.store, settings.namespace)) as store:
        fleet = Fleet(tmp_path, store)
        try:
            yield fleet
        finally:
            for child in fleet.children.values():
                child.close()


def test_k17_k23_nodes_killed_with_minus_nine_while_they_land_lose_and_double_nothing(
    fleet: Fleet,
) -> None:
    seed = int(os.environ.get("HEADGATE_SEED", random.randrange(10**6)))
    print(f"HEADGATE_SEED={seed}")
    chance = random.Random(seed)
    now_ms = SystemAmbient().wall_ns() // 1_000_000
    for name in NODES:
        fleet.start(name)

    for wave in range(WAVES):
        before = wave * WAVE
        batch = Batch(before, WAVE, 8, HOURS, now_ms, spoiled=wave == 0)
        drop(fleet.folder / "incoming", batch, seed + wave)
        if wave == 0 or chance.random() < 0.5:
            killed = fleet.kill_in_mid_commit(before + WAVE)
        else:
            time.sleep(chance.uniform(0, 4))
            killed = fleet.kill(chance.choice(NODES))
        fleet.start(killed)
    wanted = WAVES * WAVE + len(SPOILED)
    fleet.until(lambda: fleet.rows >= wanted, "everything has landed")
    fleet.stop()

    proof = count(fleet.folder / "lake", range(WAVES * WAVE))
    assert (proof.missing, proof.doubled) == ((), ())
    assert (proof.hours.total() + proof.late, proof.dead) == (WAVES * WAVE, len(SPOILED))
    assert fleet.rows == wanted
    settings = load(fleet.folder / "headgate.yaml", {})
    lake = open_lake(settings.lake, SystemAmbient())
    assert audit(fleet.store, lake, settings.streams, is_deep=True).findings == ()
