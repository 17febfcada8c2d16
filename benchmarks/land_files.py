"""Landing files: 5 M JSON lines of about 100 B in 40 files over 3 hours, to hourly zstd Parquet.

Three ways in one run, on one warm session: a plain Spark batch job with `get_json_object`, the same
with our event-time expression, and the engine with everything on.
"""

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from benchmarks.report import Number, publish
from headgate.engine import EventTime, InputFile, Job, Shape, ShardInput, SparkSettings, verdict
from headgate.engine.spark import SparkEngine
from headgate.sources.spark import FilesReader

RECORDS = 5_000_000
FILES = 40
HOURS = 3
ROUNDS = 3
FIRST_MS = 1_793_538_000_000  # 2026-11-01T13:00 in UTC
HOUR_MS = 3_600_000

SHAPE = Shape(
    "orders", "files", "json", (), EventTime("json", "$.at"), "parquet", 16_000_000, 300_000
)  # fmt: skip


def generate(session: SparkSession, folder: Path) -> list[Path]:
    """Orders whose event times are spread over the hours in every file."""
    n = fn.col("id")
    line = fn.format_string(
        '{"order":%d,"at":%d,"customer":"c%06d","item":"%s","price":%d.%02d,"paid":true}',
        n,
        fn.lit(FIRST_MS) + fn.pmod(n * 7919, fn.lit(HOURS * HOUR_MS)),
        fn.pmod(n * 31, fn.lit(100_000)),
        fn.substring(fn.md5(n.cast("string")), 1, 12),
        fn.pmod(n * 17, fn.lit(900)),
        fn.pmod(n * 13, fn.lit(100)),
    )
    session.range(0, RECORDS, 1, FILES).select(line.alias("value")).write.text(str(folder))
    return sorted(folder.glob("part-*"))


def plain(session: SparkSession, files: list[Path], target: str) -> None:
    """What one would write without Headgate."""
    lines = session.read.text([str(file) for file in files])
    at = fn.get_json_object("value", "$.at").cast("bigint")
    _land(lines.withColumn("at", at), target)


def plain_quick(session: SparkSession, files: list[Path], target: str) -> None:
    """The same with our event-time expression."""
    frame = session.read.text([str(file) for file in files]).withColumnRenamed("value", "raw")
    for column, expression in verdict.before_event_time(SHAPE)[:2]:
        frame = frame.withColumn(column, fn.expr(expression))
    at = "CASE WHEN quick <> '' THEN quick ELSE get_json_object(raw, '$.at') END"
    _land(
        frame.select(fn.col("raw").alias("value"), fn.expr(at).cast("bigint").alias("at")), target
    )


def _land(rows: DataFrame, target: str) -> None:
    hourly = rows.withColumn("hour", fn.expr(f"CAST(at DIV {HOUR_MS} AS STRING)"))
    by_hour = hourly.repartition("hour").write.partitionBy("hour")
    by_hour.option("compression", "zstd").parquet(target)


def main() -> None:
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as place:
        lake = Path(place) / "lake"
        lake.mkdir()
        engine = SparkEngine(SparkSettings(), f"file://{lake}", {"files": FilesReader()})
        session = engine._opened()
        files = generate(session, Path(place) / "in")
        arrival_ms = FIRST_MS + HOURS * HOUR_MS
        inputs = tuple(
            InputFile("lane-0", n, str(file), os.path.getsize(file), arrival_ms)
            for n, file in enumerate(files, start=1)
        )

        def staged(target: str) -> None:
            folder = str(Path(target).relative_to(lake))
            done = engine.stage(Job(SHAPE, folder, (ShardInput("0-1", inputs, {}),)))
            assert sum(tally.rows for tally in done.tallies) == RECORDS

        ways: dict[str, Callable[[str], None]] = {
            "plain": lambda target: plain(session, files, target),
            "quick": lambda target: plain_quick(session, files, target),
            "engine": staged,
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for n in range(ROUNDS + 1):  # the first warms up
            for name, way in ways.items():
                target = lake / f"{name}-{n}"
                started = time.perf_counter()
                way(str(target))
                if n:
                    times[name].append(time.perf_counter() - started)
                print(f"{name} {time.perf_counter() - started:.1f} s", file=sys.stderr)
                shutil.rmtree(target)
        engine.close()
    took = {name: statistics.median(all_s) for name, all_s in times.items()}
    detail = {f"{name}_s": value for name, value in took.items()}
    rate = RECORDS / took["engine"]
    publish(
        "land_files",
        [
            Number(
                "land_files.quick", rate, "records/s", took["quick"] / took["engine"],
                "the same Spark job with our event-time expression", detail,
            ),
            Number(
                "land_files", rate, "records/s", took["plain"] / took["engine"],
                "a plain Spark job with get_json_object", detail,
            ),
        ],
    )  # fmt: skip


if __name__ == "__main__":
    main()
