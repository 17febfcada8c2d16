"""Nodes that land one stream, some of them held in the middle of a commit."""

import os
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.record import from_bytes, record_path
from headgate.lake import Lake
from headgate.landing.kind import feed_name
from headgate.store.changes import read
from headgate.testing.drama.child import Child
from tests.e2e.crews import WITHIN_S, Crew

HELD = [
    sys.executable,
    str(Path(__file__).with_name("held.py")),
]  # `headgate`, as long as no file is there
LOOK_S = 0.002


def chance_of_this_run() -> random.Random:
    seed = int(os.environ.get("HEADGATE_SEED", random.randrange(10**6)))
    print(f"HEADGATE_SEED={seed}")
    return random.Random(seed)


@dataclass(slots=True, kw_only=True)
class LandingCrew(Crew):
    lake: Lake  # for looking
    stream: str
    shards: int

    @property
    def hold(self) -> Path:
        """As long as it is there, every commit stands still in its middle."""
        return self.folder / "hold"

    def checkpoint(self, shard: int) -> Checkpoint:
        found = read(self.store, checkpoint_key(self.stream, shard), Checkpoint)
        return Checkpoint() if found is None else found.value

    @property
    def rows(self) -> int:
        """Of all commits that are facts."""
        return sum(self.checkpoint(shard).rows for shard in range(self.shards))

    def holder_of(self, shard: int) -> str | None:
        """The name of the node that holds it."""
        child = self.holder(feed_name(self.stream), shard)
        return None if child is None else child.name

    def held(self) -> tuple[Child, list[int]]:
        """The first that stands in the middle of a commit, and the shards whose journal it holds:
        some of its files are published, some are not."""
        caught = self.hold.with_suffix(".caught")
        self.until(lambda: caught.exists() and caught.read_text() != "", "a commit is held")
        pid = int(caught.read_text())
        child = next(one for one in self.children.values() if one.pid == pid)
        return child, [shard for shard in range(self.shards) if self.holds(child.name, shard)]

    def kill_the_held(self) -> str:
        child, shards = self.held()
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
        path = record_path(self.stream, shard, journal.number)
        record = self.lake.read(path)
        if record is None:
            return 0, 0
        files = from_bytes(record, path).files
        there = [self.lake.facts(one.published) for one in files]
        return len(files) - there.count(None), len(files)

    def kill_one(self, wave: int, rows: int, chance: random.Random) -> str:
        """In the first wave in the middle of a commit, where it is held; then there, if the moment
        can be caught before so many rows have landed, or anywhere."""
        if wave == 0:
            return self.kill_the_held()
        if chance.random() < 0.5:
            return self.kill_in_mid_commit(rows, next(iter(self.children)))
        time.sleep(chance.uniform(0, 4))
        return self.kill(chance.choice([*self.children]))

    def kill_in_mid_commit(self, rows: int, otherwise: str) -> str:
        """The holder of a shard whose journal stands; if every commit is too fast for that, until
        so many rows have landed, whoever holds one then."""
        ends_s = time.monotonic() + WITHIN_S
        while time.monotonic() < ends_s and self.rows < rows:
            for shard in range(self.shards):
                journal = self.checkpoint(shard).journal
                name = self.holder_of(shard) if journal is not None and journal.rows else None
                if name is not None:
                    self.children[name].kill()
                    is_standing = self.checkpoint(shard).journal == journal
                    print(f"{name}: killed {'in' if is_standing else 'after'} a commit of {shard}")
                    return name
            time.sleep(LOOK_S)
        return self.kill(self.holder_of(0) or otherwise)
