"""Landing files: 5 M JSON lines of about 100 B in 40 files over 3 hours, to hourly zstd Parquet.

Three ways in one run, on one warm session: a plain Spark batch job with `get_json_object`, the same
with our event-time expression, and Headgate from files that nobody has seen yet to the fact: they
are numbered, read in one round, staged, counted again, journaled, published and made to last; on a
file store and a local lake, as a node does it.
"""

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from benchmarks.held import Held
from benchmarks.report import Number, publish
from headgate import open_store
from headgate.ambient import SystemAmbient
from headgate.app.equipment import landing_equipment, opened_landing
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.engine import EventTime, Shape, SparkSettings, verdict
from headgate.engine.gateway.spark import start
from headgate.engine.quick.spark import is_installed
from headgate.lake import LakeSettings
from headgate.landing import StreamSettings
from headgate.periods import DEFAULT_FOLDER, FolderTemplate
from headgate.settings import Settings
from headgate.sources import FilesSettings
from headgate.store import DocumentStore
from headgate.store.changes import read

RECORDS = 5_000_000
FILES = 40
HOURS = 3
ROUNDS = 3
WARM_UPS = 3  # rounds: a node works for days, and Java is at its best after some tens of seconds
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
        fn.substring(fn.md5(n.cast("string")), 1, 4),
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
    for column, expression in verdict.quickly(SHAPE, by_function=True):
        frame = frame.withColumn(column, fn.expr(expression))
    at = "CASE WHEN quick <> '' THEN quick ELSE get_json_object(raw, '$.at') END"
    _land(
        frame.select(fn.col("raw").alias("value"), fn.expr(at).cast("bigint").alias("at")), target
    )


def _land(rows: DataFrame, target: str) -> None:
    hourly = rows.withColumn("hour", fn.expr(f"CAST(at DIV {HOUR_MS} AS STRING)"))
    by_hour = hourly.repartition("hour").write.partitionBy("hour")
    by_hour.option("compression", "zstd").parquet(target)


@contextmanager
def ready_to_land(incoming: Path, place: Path) -> Iterator[Callable[[], None]]:
    """Headgate with a state and a lake of its own, on the session that is there."""
    stream = StreamSettings(
        "orders", FilesSettings(str(incoming)), SHAPE.event_time,
        FolderTemplate.parse(DEFAULT_FOLDER),
    )  # fmt: skip
    lake, ambient = LakeSettings(str(place / "lake")), SystemAmbient()
    settings = Settings(f"file:{place}/state", lake, streams={"orders": stream})
    with (
        opened_landing(settings, ambient) as landing,
        closing(open_store(settings.store, ambient=ambient)) as store,
    ):
        equip = landing_equipment(settings, landing, "bench", kinds={}, eager_since_ms=0)
        equipment = equip(store, ambient)
        (kind, *_), jobs = equipment.kinds, equipment.loops["jobs"]  # the first is the stream
        work = kind.start(Held())

        def act() -> None:
            while (rows := rows_in_fact(store)) == 0:
                work.tick()
                next_ms = jobs.tick()
                ambient.sleep_ms(max(0, min(next_ms - ambient.monotonic_ms(), 50)))
            assert rows == RECORDS, f"{rows} rows in the first commit"

        yield act


def rows_in_fact(store: DocumentStore) -> int:
    found = read(store, checkpoint_key("orders", 0), Checkpoint)
    return 0 if found is None else found.value.counts.get("data", 0)


def measured(session: SparkSession, place: Path) -> dict[str, list[float]]:
    """Seconds of each way, which take turns."""
    incoming = place / "in"
    files = generate(session, incoming)
    ways: dict[str, Callable[[Path], AbstractContextManager[Callable[[], None]]]] = {
        "plain": lambda own: nullcontext(lambda: plain(session, files, f"{own}/lake")),
        "quick": lambda own: nullcontext(lambda: plain_quick(session, files, f"{own}/lake")),
        "ours": lambda own: ready_to_land(incoming, own),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for n in range(WARM_UPS + ROUNDS):
        for name, way in ways.items():
            own = place / f"{name}-{n}"
            own.mkdir()
            with way(own) as act:
                started = time.perf_counter()
                act()
                seconds = time.perf_counter() - started
            if n >= WARM_UPS:
                times[name].append(seconds)
            print(f"{name} {seconds:.1f} s", file=sys.stderr)
            shutil.rmtree(own)
    return times


def main() -> None:
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as place:
        session, _ = start(SparkSettings())
        if not is_installed(session, is_remote=False):
            raise SystemExit("this Spark does not take our function")
        times = measured(session, Path(place))
        session.stop()
    took = {name: statistics.median(all_s) for name, all_s in times.items()}
    detail = {f"{name}_s": value for name, value in took.items()}
    rate = RECORDS / took["ours"]
    publish(
        "land_files",
        [
            Number(
                "land_files.quick", rate, "records/s", took["quick"] / took["ours"],
                "the same Spark job with our event-time expression", detail,
            ),
            Number(
                "land_files", rate, "records/s", took["plain"] / took["ours"],
                "a plain Spark job with get_json_object", detail,
            ),
        ],
    )  # fmt: skip


if __name__ == "__main__":
    main()
