"""What a commit costs against the bare moves and checksums of its files, in the same run.

    python -m benchmarks.publish            all of these
    python -m benchmarks.publish small      10,000 files of 32 kB: about a thousand records each
    python -m benchmarks.publish tiny       10,000 files of 4 kB: hardly more than their footers
    python -m benchmarks.publish large      100 files of 10 MB

Ours is the tick of a shard that takes a job's staged files to the fact, as a node does it: sealed,
record, intent, every file verified, published and verified again, settled, fact, staging removed;
on a local lake and a file store, with threads. The peer does bare what a commit must do with its
files: reads each for its SHA-256, moves it so that nothing can be replaced (link, unlink), and
makes that survive a power cut. Beside it, one that does not care: a rename that replaces whatever
is there, and nothing is made to last. All take turns, each with files and folders of its own; what
they start from was flushed, so that nobody pays for the writing.
"""

import gc
import hashlib
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.held import Held
from benchmarks.report import Number, publish
from headgate import open_store
from headgate.ambient import SystemAmbient
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.engine import EventTime, InputFile, Job, Shape, Staged, StagedFile, Tally
from headgate.lake import LakeSettings
from headgate.lake.ledger import Ledger
from headgate.lake.opening import open_lake
from headgate.lake.syscalls import sync_whole
from headgate.landing import StreamSettings
from headgate.landing.jobs import GATHER_MS, Jobs
from headgate.landing.shard import ShardWork, Tools
from headgate.node import Hands
from headgate.periods import DEFAULT_FOLDER, HOUR_MS, FolderTemplate
from headgate.sources import FilesSettings, Plan, Range, Waiting
from headgate.store.changes import read

ROUNDS = 5
HOURS = 24
FIRST_HOUR_MS = 1_794_700_800_000  # a midnight
ROWS = 40  # of a file
PART = "part-{:05}-6f1c0c54-6e0b-4f0e-8f5b-3c1d3f6a7a11.c000.zstd.parquet"
STREAM = "orders"
PARTITION = "lane-0"


@dataclass(frozen=True)
class Size:
    files: int
    file_bytes: int


SIZES = {
    "tiny": Size(10_000, 4_000),
    "large": Size(100, 10_000_000),
    "small": Size(10_000, 32_000),
}


class Spent(NamedTuple):
    wall_s: float
    cpu_s: float  # of this process: what a busy machine does not change much


def write(root: Path, size: Size) -> list[tuple[int, str]]:
    """Files as Spark leaves them in a shard's folder: hour and path below it."""
    filling = os.urandom(size.file_bytes)
    found = []
    for n in range(size.files):
        hour_ms = FIRST_HOUR_MS + n * HOURS // size.files * HOUR_MS
        path = f"kind=data/hour={hour_ms}/{PART.format(n)}"
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(n.to_bytes(8, "big") + filling[8:])
        found.append((hour_ms, path))
    return found


class Prewritten:
    """An engine whose rows are there already: it moves their folder to where the job wants it."""

    def __init__(self, lake: Path, written: Path, files: Sequence[tuple[int, str]]) -> None:
        self._lake = lake
        self._written = written
        self._files = files

    def check(self, shape: Shape) -> None:
        return

    def stage(self, job: Job) -> Staged:
        (one,) = job.inputs
        (file,) = one.files
        folder = f"{job.folder}/shard={one.label}"
        (self._lake / job.folder).mkdir(parents=True)
        self._written.rename(self._lake / folder)
        rows = ROWS * len(self._files)
        last_ms = self._files[-1][0]
        return Staged(
            tuple(
                StagedFile(f"{folder}/{path}", one.label, "data", hour_ms, ROWS)
                for hour_ms, path in self._files
            ),
            (Tally(one.label, PARTITION, file.number, "data", rows, 1, rows, last_ms),),
        )

    def close(self) -> None:
        """Nothing is held open."""


class OneFile:
    """A source with one file, and nothing to do about it."""

    def partitions(self) -> tuple[str, ...]:
        return (PARTITION,)

    def look(self, positions: Mapping[str, str]) -> Waiting:
        return Waiting(0 if positions[PARTITION] else 1, 1, FIRST_HOUR_MS)

    def plan(
        self, positions: Mapping[str, str], *, size_bytes_max: int, until: Mapping[str, str] = {}
    ) -> Plan:
        del size_bytes_max, until
        file = InputFile(PARTITION, 0, "/incoming/0.json", 1, FIRST_HOUR_MS + HOURS * HOUR_MS)
        ranges = {PARTITION: Range(positions[PARTITION], "1")}
        return Plan("files", "json", (), ranges, (file,), (), {}, has_more=False)

    def confirm(self, plan: Plan) -> None:
        """It is the same."""

    def reconcile(self, plan: Plan, tallies: Sequence[Tally]) -> None:
        """It is all there."""

    def settle(self, positions: Mapping[str, str]) -> None:
        """It is kept."""


def ours(folder: Path, size: Size) -> Spent:
    """Seconds of the tick that commits."""
    ambient, lake_folder = SystemAmbient(), folder / "lake"
    settings = StreamSettings(
        STREAM,
        FilesSettings("/incoming"),
        EventTime("json", "$.at"),
        FolderTemplate.parse(DEFAULT_FOLDER),
    )
    with closing(Hands()) as hands, closing(open_store(f"file:{folder}/state")) as store:
        lake = open_lake(LakeSettings(str(lake_folder)), ambient, hands.each)
        written = folder / "lake/written"
        jobs = Jobs(Prewritten(lake_folder, written, write(written, size)), lake, ambient)
        tools = Tools(
            store,
            lake,
            jobs,
            lambda *_: OneFile(),
            Ledger(lake, "bench", ambient),
            ambient,
            lambda: 0,
            {},
            eager_since_ms=0,
            each=hands.each,
        )
        work = ShardWork(Held(), settings, 0, tools)
        work.tick()  # takes over
        work.tick()  # starts a round
        ambient.sleep_ms(GATHER_MS)
        jobs.tick()
        seconds = timed(work.tick)
        found = read(store, checkpoint_key(STREAM, 0), Checkpoint)
    if found is None or found.value.positions != {PARTITION: "1"} or found.value.journal:
        raise SystemExit(f"no fact: {found}")
    if count_of(lake_folder, "20*/**/*.parquet") != size.files:
        raise SystemExit("not every file was published")
    if count_of(lake_folder, "_headgate/staging/**/*.*"):
        raise SystemExit("something is still staged")
    return seconds


def count_of(folder: Path, pattern: str) -> int:
    return sum(path.is_file() for path in folder.glob(pattern))


def raw(folder: Path, size: Size, *, is_careful: bool) -> Spent:
    """Seconds of the moves and checksums alone."""
    staged, root = folder / "staged", folder / "published"
    root.mkdir()
    moves, folders = [], set()
    for n, (hour_ms, path) in enumerate(write(staged, size)):
        hour = f"{root}/{hour_ms}/{STREAM}/data"
        folders.add(hour)
        moves.append((str(staged / path), f"{hour}/shard0-commit0000000001-{n}.parquet"))

    def act() -> list[str]:
        for hour in folders:
            os.makedirs(hour)
        checksums = []
        for path, _ in moves:
            with open(path, "rb") as file:
                checksums.append(hashlib.sha256(file.read()).hexdigest())
        if not is_careful:
            for path, published in moves:
                os.rename(path, published)
            return checksums
        sync_file_system(root)
        for path, published in moves:
            os.link(path, published)
            os.unlink(path)
        for one in folders:
            sync_folder(one)
        return checksums

    return timed(act)


def sync_file_system(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    sync_whole(handle)
    os.close(handle)


def sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def timed(act: Callable[[], object]) -> Spent:
    os.sync()
    gc.collect()
    started, used = time.perf_counter(), time.process_time()
    act()
    return Spent(time.perf_counter() - started, time.process_time() - used)


PEERS: dict[str, Callable[[Path, Size], Spent]] = {
    "ours": ours,
    "raw": lambda folder, size: raw(folder, size, is_careful=True),
    "careless": lambda folder, size: raw(folder, size, is_careful=False),
}


def measure(name: str) -> Number:
    size, times = SIZES[name], {peer: list[Spent]() for peer in PEERS}
    for _ in range(ROUNDS):
        for peer, act in PEERS.items():
            with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
                times[peer].append(act(Path(folder), size))
    found = {peer: statistics.median(one.wall_s for one in all_) for peer, all_ in times.items()}
    cpu = {peer: statistics.median(one.cpu_s for one in all_) for peer, all_ in times.items()}
    return Number(
        f"publish.{name}",
        size.files / found["ours"],
        "files/s",
        found["ours"] / found["raw"],
        "SHA-256 of each file and a move that cannot replace, made to last, in Python",
        {
            "files": size.files,
            "file_bytes": size.file_bytes,
            **{f"{peer}_s": seconds for peer, seconds in found.items()},
            **{f"{peer}_cpu_s": seconds for peer, seconds in cpu.items()},
            "ratio_careless": found["ours"] / found["careless"],
            "ratio_cpu": cpu["ours"] / cpu["raw"],
        },
    )


def main() -> None:
    logging.disable(logging.CRITICAL)
    numbers = [measure(name) for name in sys.argv[1:] or SIZES]
    publish("publish", numbers)


if __name__ == "__main__":
    main()
