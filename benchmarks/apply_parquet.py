"""Applying 200 hours to a Parquet table, against a bare loop of the same Spark writes.

    python -m benchmarks.apply_parquet [HOURS]

Ours is a table's work as a node does it: each hour's certificate becomes a manifest and an entry,
its run is recorded, its files are looked at, moved by Spark, counted, sealed with checksums, put
into the table by one rename with their proof, made to last, recorded as applied. The peer reads and
writes the same files with the same options in a loop, and nothing else. Both on one warm session,
in turns of 20 hours, on a file store and a local lake. At most 1.15 times.
"""

import io
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.held import Held
from benchmarks.report import Number, publish
from benchmarks.shore import TEMPLATE, begin, land, open_shore, reach, root_of
from headgate import open_store
from headgate.ambient import SystemAmbient
from headgate.app.equipment import Landing, table_opener
from headgate.apply import TableSettings
from headgate.apply.table_document import TableDocument, table_key
from headgate.apply.work import TableTools, TableWork
from headgate.engine import SparkSettings
from headgate.engine.gateway.spark import TARGET_BYTES, start
from headgate.engine.merger.spark import SparkMerger
from headgate.engine.spark import SparkEngine
from headgate.lake.ledger import Ledger
from headgate.node import Hands
from headgate.periods import HOUR_MS, Period
from headgate.ready.work import RootTools, RootWork
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.tables.spark import SparkMover

HOURS = 200
TURN = 20  # hours that one does before the other
ROWS = 250_000  # of an hour: 70 in a second
STREAM = TABLE = "orders"
FIRST = Period.parse("2026-10-01T00")
SETTINGS = SparkSettings(master="local[2]")


@dataclass(frozen=True)
class World:
    folder: Path
    store: DocumentStore
    work: TableWork
    session: SparkSession
    hours: list[Period]

    def files(self, hour: Period) -> list[Path]:
        folder = self.folder / "lake" / TEMPLATE.folder(hour, stream=STREAM)
        return sorted(folder.glob("*.parquet"))

    def applied(self) -> int:
        found = read(self.store, table_key(TABLE), TableDocument)
        return 0 if found is None else found.value.batches

    def ours(self, count: int) -> float:
        """Seconds until so many more are in the table."""
        wanted = self.applied() + count
        began_s = time.monotonic()
        while self.applied() < wanted:
            self.work.tick()
        return time.monotonic() - began_s

    def bare(self, hours: list[Period], folder: str) -> float:
        began_s = time.monotonic()
        for hour in hours:
            files = self.files(hour)
            reader = self.session.read.option("mergeSchema", "true")
            rows = reader.option("recursiveFileLookup", "true").parquet(*map(str, files))
            size_bytes = sum(file.stat().st_size for file in files)
            writer = rows.coalesce(max(1, math.ceil(size_bytes / TARGET_BYTES))).write
            writer = writer.mode("errorifexists").option("compression", "zstd")
            writer = writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
            writer.parquet(str(self.folder / folder / f"batch={hour}"))
        return time.monotonic() - began_s


def content_of(hour: Period) -> bytes:
    ids = list(range(ROWS))
    table = pa.table(
        {
            "value": [f'{{"id":{hour.start_ms + n},"item":"{n * 7919 % 100_003:x}"}}' for n in ids],
            "headgate_position": ids,
        }
    )
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()


@contextmanager
def world_of(folder: Path, count: int) -> Iterator[World]:
    """Hours that are landed and flagged, and a table that has none of them."""
    ambient = SystemAmbient()
    hours = [Period(FIRST.start_ms + n * HOUR_MS, "hour") for n in range(count)]
    with closing(Hands()) as hands, closing(open_store(f"file:{folder}/state")) as store:
        lake = open_shore(folder / "lake", ambient)
        begin(store, STREAM, hours[0])
        content = content_of(hours[0])
        for hour in hours:
            land(store, lake, STREAM, hour, content, ROWS, "parquet")
        reach(store, STREAM, hours[-1].end_ms)
        now_ms = lambda: ambient.wall_ns() // 1_000_000  # noqa: E731 - a clock
        ledger = Ledger(lake, "bench", ambient)
        root = RootWork(
            Held(), root_of([STREAM]), RootTools(store, lake, ledger, ambient, now_ms, hands.each)
        )
        while (root.tick() or 0) <= ambient.monotonic_ms():
            continue
        session, _ = start(SETTINGS)
        with closing(SparkMover(SETTINGS, lake.url)) as mover:
            engine = SparkEngine(SETTINGS, lake.url, {})
            merger = SparkMerger(SETTINGS, lake.url)
            opener = table_opener(Landing(lake, engine, mover, merger, hands), ambient)
            first_ms = partial(lambda _: hours[0].start_ms)
            tools = TableTools(store, lake, opener, first_ms, ledger, ambient)
            settings = TableSettings(TABLE, STREAM, TEMPLATE, str(folder / "table"))
            yield World(folder, store, TableWork(Held(), settings, tools), session, hours)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else HOURS
    ours: list[float] = []
    bare: list[float] = []
    with (
        tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name,
        world_of(Path(name), count) as world,
    ):
        world.bare(world.hours[:TURN], "warm")  # Spark is warm
        for first in range(0, count, TURN):  # with the intake of all hours in the first turns
            turn = world.hours[first : first + TURN]
            bare.append(world.bare(turn, "bare"))
            ours.append(world.ours(len(turn)))
        rows = pq.ParquetDataset(str(world.folder / "table")).read(columns=["value"]).num_rows
        if rows != count * ROWS:
            raise SystemExit(f"{rows:,} rows are in the table, and not {count * ROWS:,}")
    ratios = [one / other for one, other in zip(ours, bare, strict=True)]
    detail = {
        "hours": count,
        "rows_of_an_hour": ROWS,
        "ours_s": sum(ours),
        "bare_s": sum(bare),
        "ratio_median": statistics.median(ratios),
        "ratio_least": min(ratios),
        "ratio_most": max(ratios),
    }
    ratio = sum(ours) / sum(bare)
    value = sum(ours) / count
    publish("apply_parquet", [Number("apply_parquet", value, "s/hour", ratio, "bare", detail)])


if __name__ == "__main__":
    main()
