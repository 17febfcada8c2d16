"""Landing a topic in a lake that is not on this disk: as `land_kafka`, against Structured Streaming
to the same place, its checkpoint beside it.

Both take turns on one warm session; broker and lake are on the same machine. Ours is from a topic
that nobody has looked at yet to the fact: Spark stages there by itself, what it staged is counted
again, and the commit publishes it as that lake does it.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.land_kafka import (
    HOURS,
    RECORDS,
    ROUNDS,
    WARM_UPS,
    Topic,
    produced,
    ready_to_land,
    streaming,
)
from benchmarks.report import Number, publish
from headgate.engine import SparkSettings
from headgate.lake import LakeSettings


@dataclass(frozen=True, slots=True)
class Shore:
    """Where both land, by the name of a folder."""

    name: str  # of the number
    lake: Callable[[str], LakeSettings]
    url: Callable[[str], str]  # of the same folder, as Spark writes it
    spark: SparkSettings


@contextmanager
def landing_by_us(topic: Topic, lake: LakeSettings) -> Iterator[Callable[[], None]]:
    with (
        tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as state,
        ready_to_land([topic], Path(state), lake) as (act, _),
    ):
        yield act


def measured(session: SparkSession, topic: Topic, shore: Shore) -> dict[str, list[float]]:
    """Seconds of each way, which take turns."""
    times: dict[str, list[float]] = {"streaming": [], "ours": []}
    for n in range(WARM_UPS + ROUNDS):
        ways: dict[str, AbstractContextManager[Callable[[], None]]] = {
            "streaming": nullcontext(
                partial(streaming, session, topic, shore.url(f"streaming-{n}"))
            ),
            "ours": landing_by_us(topic, shore.lake(f"ours-{n}/lake")),
        }
        for name, way in ways.items():
            with way as act:
                started = time.perf_counter()
                act()
                seconds = time.perf_counter() - started
            check(session, shore.url(f"{name}-{n}/lake"), topic.records)
            if n >= WARM_UPS:
                times[name].append(seconds)
            print(f"{name} {seconds:.1f} s", file=sys.stderr)
    return times


def check(session: SparkSession, lake: str, records: int) -> None:
    """Both must have landed all of it; names with a `_` are not read."""
    rows = session.read.option("recursiveFileLookup", "true").parquet(lake).count()
    assert rows == records, f"{rows} rows in {lake}"


def land(shore: Shore) -> None:
    with produced(("orders", RECORDS, HOURS), spark=shore.spark) as (session, (topic,)):
        times = measured(session, topic, shore)
    took = {f"{name}_s": statistics.median(all_s) for name, all_s in times.items()}
    publish(
        shore.name,
        [
            Number(
                shore.name, RECORDS / took["ours_s"], "records/s",
                took["streaming_s"] / took["ours_s"],
                "Structured Streaming with get_json_object to the same place", took,
            ),
        ],
    )  # fmt: skip
