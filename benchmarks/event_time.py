"""Taking the event time out of JSON: by our function, by our patterns, and by Spark's own parse.

The records are those of `land_files`, in one warm session; each way reads them all and writes
nothing. What reading alone takes is told, too.
"""

import statistics
import tempfile
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from benchmarks.land_files import RECORDS, SHAPE, generate
from benchmarks.report import Number, publish
from headgate.engine import SparkSettings, verdict
from headgate.engine.gateway.spark import start
from headgate.engine.quick.spark import is_installed

ROUNDS = 3
WARM_UPS = 2
CORES = 2


def ways(session: SparkSession, files: list[Path]) -> dict[str, DataFrame]:
    lines = session.read.text([str(file) for file in files]).coalesce(CORES)
    raw = lines.withColumnRenamed("value", "raw")
    by_function = by_patterns = raw
    for column, expression in verdict.quickly(SHAPE, by_function=True):
        by_function = by_function.withColumn(column, fn.expr(expression))
    for column, expression in verdict.quickly(SHAPE):
        by_patterns = by_patterns.withColumn(column, fn.expr(expression))
    return {
        "reading": raw,
        "parse": raw.withColumn("quick", fn.get_json_object("raw", SHAPE.event_time.text)),
        "patterns": by_patterns,
        "function": by_function,
    }


def main() -> None:
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as place:
        session, _ = start(SparkSettings(master=f"local[{CORES}]"))
        if not is_installed(session, is_remote=False):
            raise SystemExit("this Spark does not take our function")
        files = generate(session, Path(place) / "in")
        for n in range(WARM_UPS + ROUNDS):
            for name, frame in ways(session, files).items():
                started = time.perf_counter()
                frame.write.format("noop").mode("overwrite").save()
                if n >= WARM_UPS:
                    times.setdefault(name, []).append(time.perf_counter() - started)
        session.stop()
    took = {name: statistics.median(all_s) for name, all_s in times.items()}
    detail = {f"{name}_s": value for name, value in took.items()}
    publish(
        "event_time",
        [
            Number(
                f"event_time.{name}", RECORDS / took[name], "records/s",
                took["parse"] / took[name], "get_json_object", detail,
            )
            for name in ("patterns", "function")
        ],
    )  # fmt: skip


if __name__ == "__main__":
    main()
