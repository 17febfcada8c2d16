"""Two nodes land orders and are killed with -9 at moments that chance decides; then the count.

    a wave of orders ──▶ a node is killed: in the middle of a commit, or at any moment ──▶ started
    again ──▶ … ──▶ everything has landed ──▶ both stop ──▶ counted in the lake, audited

The first one is held in the middle of a commit until it is killed there. The seed is printed. It
decides which moments are aimed at afterwards; the rest is up to the machine.
"""

import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headgate.ambient import SystemAmbient
from headgate.audit.inspection import audit
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.record import from_bytes, record_path
from headgate.lake.opening import open_lake
from headgate.landing.kind import feed_name
from headgate.periods import HOUR_MS
from headgate.settings.loading import load
from headgate.store.changes import read
from headgate.store.registry import open_store
from headgate.testing.drama.headcount import count_lake
from headgate.testing.drama.home import JAVA
from headgate.testing.drama.orders import SPOILED, Wave, drop
from tests.e2e.crews import WITHIN_S, Crew

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

HELD = [
    sys.executable,
    str(Path(__file__).with_name("held.py")),
]  # `headgate`, as long as no file is there
WAVES = 3
WAVE = 10_000  # records
HOURS = 20  # over which they are spread: so many files has a commit
SHARDS = 2
NODES = ("red", "blue")
STREAM = "заказы 注文"  # a name as people write it, also through journals and crashes
INCOMING = "приём/受注"
LOOK_S = 0.002
SETTINGS = f"""\
namespace: kill
store: file:./state
lake: ./lake
streams:
  {STREAM}:
    source: {{kind: files, path: ./{INCOMING}, format: json, lanes: 4}}
    event_time: {{json: $.at, unit: ms}}
    shards: {SHARDS}
    shift: 1s
    grace: 0s
    allowed_lateness: {3 * HOURS}h
spark:
  master: "local[1]"
  conf: {{spark.driver.memory: 512m, spark.driver.extraJavaOptions: "{JAVA}"}}
"""


class Fleet(Crew):
    @property
    def hold(self) -> Path:
        """As long as it is there, every commit stands still in its middle."""
        return self.folder / "hold"

    def checkpoint(self, shard: int) -> Checkpoint:
        found = read(self.store, checkpoint_key(STREAM, shard), Checkpoint)
        return Checkpoint() if found is None else found.value

    @property
    def rows(self) -> int:
        """Of all commits that are facts."""
        return sum(self.checkpoint(shard).rows for shard in range(SHARDS))

    def holder_of(self, shard: int) -> str | None:
        """The name of the node that holds it."""
        child = self.holder(feed_name(STREAM), shard)
        return None if child is None else child.name

    def kill_the_held(self) -> str:
        """The first that stands in the middle of a commit: some of its files are published, some
        are not, and its journal stands."""
        caught = self.hold.with_suffix(".caught")
        self.until(lambda: caught.exists() and caught.read_text() != "", "a commit is held")
        pid = int(caught.read_text())
        child = next(one for one in self.children.values() if one.pid == pid)
        shards = [shard for shard in range(SHARDS) if self.holds(child.name, shard)]
        child.kill()
        halves = [self.published(shard) for shard in shards]
        self.hold.unlink()
        assert any(0 < done < files for done, files in halves), halves
        print(f"{child.name}: killed in the middle of a commit, published of files: {halves}")
        return child.name

    def holds(self, name: str, shard: int) -> bool:
        return self.holder_of(shard) == name and self.checkpoint(shard).journal is not None

    def published(self, shard: int) -> tuple[int, int]:
        """Of the commit whose journal stands: files at their names, and all of them."""
        journal = self.checkpoint(shard).journal
        assert journal is not None
        path = self.folder / "lake" / record_path(STREAM, shard, journal.number)
        if not path.exists():
            return 0, 0
        files = from_bytes(path.read_bytes(), str(path)).files
        return sum((self.folder / "lake" / one.published).exists() for one in files), len(files)

    def kill_in_mid_commit(self, rows: int) -> str:
        """The holder of a shard whose journal stands; if every commit is too fast for that, until
        so many rows have landed, whoever holds one then."""
        ends_s = time.monotonic() + WITHIN_S
        while time.monotonic() < ends_s and self.rows < rows:
            for shard in range(SHARDS):
                journal = self.checkpoint(shard).journal
                name = self.holder_of(shard) if journal is not None and journal.rows else None
                if name is not None:
                    self.children[name].kill()
                    is_standing = self.checkpoint(shard).journal == journal
                    print(f"{name}: killed {'in' if is_standing else 'after'} a commit of {shard}")
                    return name
            time.sleep(LOOK_S)
        return self.kill(self.holder_of(0) or NODES[0])


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    (tmp_path / INCOMING).mkdir(parents=True)
    (tmp_path / "headgate.yaml").write_text(SETTINGS)
    settings = load(tmp_path / "headgate.yaml", {})
    with (
        closing(open_store(settings.store, settings.namespace)) as store,
        closing(Fleet(tmp_path, store, [*HELD, str(tmp_path / "hold")])) as fleet,
    ):
        yield fleet


def test_k17_k23_g6_nodes_killed_with_minus_nine_while_they_land_lose_and_double_nothing(
    fleet: Fleet,
) -> None:
    seed = int(os.environ.get("HEADGATE_SEED", random.randrange(10**6)))
    print(f"HEADGATE_SEED={seed}")
    chance = random.Random(seed)
    now_ms = SystemAmbient().wall_ns() // 1_000_000
    fleet.hold.touch()
    for name in NODES:
        fleet.start(name)

    for wave in range(WAVES):
        before = wave * WAVE
        ids, spoiled = range(before, before + WAVE), SPOILED if wave == 0 else ()
        records = Wave(f"orders-{wave}", ids, 8, now_ms - HOURS * HOUR_MS, now_ms, spoiled)
        drop(fleet.folder / INCOMING, records, seed)
        if wave == 0:
            killed = fleet.kill_the_held()
        elif chance.random() < 0.5:
            killed = fleet.kill_in_mid_commit(before + WAVE)
        else:
            time.sleep(chance.uniform(0, 4))
            killed = fleet.kill(chance.choice(NODES))
        fleet.start(killed)
    wanted = WAVES * WAVE + len(SPOILED)
    fleet.until(lambda: fleet.rows >= wanted, "everything has landed")
    fleet.stop()

    settings = load(fleet.folder / "headgate.yaml", {})
    folder, ids = settings.streams[STREAM].folder, range(WAVES * WAVE)
    found = count_lake(fleet.folder / "lake", folder, STREAM, ids)
    assert (found.missing, found.doubled, found.astray) == ([], [], [])
    assert (found.hours.total() + found.late, found.dead) == (WAVES * WAVE, len(SPOILED))
    assert fleet.rows == wanted
    lake = open_lake(settings.lake, SystemAmbient())
    assert audit(fleet.store, lake, settings.streams, is_deep=True).findings == ()
