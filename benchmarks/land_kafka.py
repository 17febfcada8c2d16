"""Landing a topic: 5 M JSON records of about 90 B in 4 partitions over 3 hours, to hourly zstd
Parquet.

Four ways in one run, on one warm session and a broker on the same machine: Structured Streaming
with `get_json_object` and a fresh checkpoint, a bare Spark batch job with our event-time
expression, the same job when its rows carry what ours do (event time, source partition, offset),
and Headgate from a topic that nobody has looked at yet to the fact: its ends are asked for, it is
read in one round, staged, counted again, confirmed, reconciled, journaled, published and made to
last; on a file store and a local lake, as a node does it.

    python -m benchmarks.land_kafka          the four ways, and what of a round is its commit
    python -m benchmarks.land_kafka topics   as many records in 200 topics, each a stream of its own
    python -m benchmarks.land_kafka memory   a node's, against four times the records, and against
                                             500 hours instead of 3
"""

import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from benchmarks.held import Held
from benchmarks.report import Number, publish
from benchmarks.resources import peak_while_idle_comes
from headgate import open_store
from headgate.ambient import SystemAmbient
from headgate.app.equipment import landing_equipment, opened_landing
from headgate.cluster.duties import NodeSettings
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.engine import Engine, EventTime, Job, Shape, SparkSettings, Staged, verdict
from headgate.engine.gateway.spark import start
from headgate.engine.quick.spark import is_installed
from headgate.lake import LakeSettings
from headgate.landing import StreamSettings
from headgate.periods import DEFAULT_FOLDER, FolderTemplate
from headgate.settings import Settings
from headgate.sources import KafkaSettings
from headgate.sources.kafka.options import for_spark
from headgate.store import DocumentStore
from headgate.store.changes import read
from tests.servers.kafka import KafkaBroker
from tests.servers.toxiproxy import Toxiproxy

RECORDS = 5_000_000
RECORDS_SHORT = 1_000_000  # of the round whose commit is measured
RECORDS_MANY = 20_000_000
PARTITIONS = 4
TOPICS = 200
WORKERS = NodeSettings("bench").workers
HOURS = 3
HOURS_MANY = 500
ROUNDS = 3
WARM_UPS = 3  # rounds: a node works for days, and Java is at its best after some tens of seconds
FIRST_MS = 1_793_538_000_000  # 2026-11-01T13:00 in UTC
HOUR_MS = 3_600_000
ROUND_BYTES = 2_000_000_000
ISOLATION = "read_committed"
PER_TASK = 250_000  # records that one task produces

SPARK = SparkSettings(needs=("kafka",))
SHAPE = Shape(
    "orders", "kafka", "json", (), EventTime("json", "$.at"), "parquet", 16_000_000, 300_000
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Topic:
    brokers: str
    name: str
    records: int


@dataclass(slots=True)
class Watched:
    """An engine, and when it was done."""

    engine: Engine
    staged_s: float = 0.0

    def check(self, shape: Shape) -> None:
        self.engine.check(shape)

    def stage(self, job: Job) -> Staged:
        staged = self.engine.stage(job)
        self.staged_s = time.perf_counter()
        return staged

    def close(self) -> None:
        self.engine.close()


def produce(session: SparkSession, topic: Topic, hours: int = HOURS) -> None:
    """Orders whose event times are spread over the hours in every partition."""
    make(topic.brokers, [topic.name], PARTITIONS)
    lane = fn.pmod(fn.col("id"), fn.lit(PARTITIONS)).cast("int")
    send(session, topic, hours, topic=fn.lit(topic.name), partition=lane)


def produce_many(session: SparkSession, brokers: str) -> list[Topic]:
    """The same records, in many topics of one partition each."""
    topics = [Topic(brokers, f"topic-{n:03}", RECORDS // TOPICS) for n in range(TOPICS)]
    make(brokers, [topic.name for topic in topics], 1)
    name = fn.format_string("topic-%03d", fn.pmod(fn.col("id"), fn.lit(TOPICS)))
    send(session, Topic(brokers, "", RECORDS), HOURS, topic=name, partition=fn.lit(0))
    return topics


def make(brokers: str, names: list[str], partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": brokers})
    wanted = [NewTopic(name, partitions, 1) for name in names]
    for made in admin.create_topics(wanted).values():
        made.result()


def send(session: SparkSession, topic: Topic, hours: int, /, **where: Column) -> None:
    n = fn.col("id")
    line = fn.format_string(
        '{"order":%d,"at":%d,"customer":"c%06d","item":"%s","price":%d.%02d}',
        n,
        fn.lit(FIRST_MS) + fn.pmod(n * 7919, fn.lit(hours * HOUR_MS)),
        fn.pmod(n * 31, fn.lit(100_000)),
        fn.substring(fn.md5(n.cast("string")), 1, 4),
        fn.pmod(n * 17, fn.lit(900)),
        fn.pmod(n * 13, fn.lit(100)),
    )
    rows = session.range(0, topic.records, 1, max(1, topic.records // PER_TASK)).select(
        line.alias("value"), *(column.alias(name) for name, column in where.items())
    )
    to = rows.write.format("kafka").mode("append")
    to = to.option("kafka.bootstrap.servers", topic.brokers).option("kafka.batch.size", "1000000")
    to.option("kafka.linger.ms", "100").option("kafka.compression.type", "lz4").save()


def streaming(session: SparkSession, topic: Topic, place: str) -> None:
    """What one would write without Headgate; `place` as Spark writes it."""
    read_from = session.readStream.format("kafka").option("kafka.bootstrap.servers", topic.brokers)
    rows = read_from.option("subscribe", topic.name).option("startingOffsets", "earliest").load()
    lines = rows.select(fn.col("value").cast("string").alias("value"))
    at = fn.get_json_object("value", "$.at").cast("bigint")
    write_to = _by_hour(lines.withColumn("at", at)).writeStream.partitionBy("hour")
    query = (
        write_to.format("parquet")
        .option("compression", "zstd")
        .option("path", f"{place}/lake")
        .option("checkpointLocation", f"{place}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def quick(session: SparkSession, topic: Topic, place: Path, *, has_origin: bool = False) -> None:
    """No more than a batch job from first to last offset, read as we do, with our event-time
    expression. `has_origin`: each row says its event time, its source partition and its offset, as
    ours do; without that nobody can prove from the files that it is there once."""
    lanes = range(PARTITIONS)
    read_from = session.read.format("kafka").options(**for_spark(topic.brokers, {}, {}, ISOLATION))
    ends = {str(lane): topic.records // PARTITIONS for lane in lanes}
    rows = (
        read_from.option("assign", json.dumps({topic.name: [*lanes]}))
        .option("startingOffsets", json.dumps({topic.name: {str(lane): 0 for lane in lanes}}))
        .option("endingOffsets", json.dumps({topic.name: ends}))
        .load()
    )
    origin = ["partition", "offset"] if has_origin else []
    frame = rows.select(fn.col("value").cast("string").alias("raw"), *origin)
    for column, expression in verdict.quickly(SHAPE, by_function=True):
        frame = frame.withColumn(column, fn.expr(expression))
    at = "CASE WHEN quick <> '' THEN quick ELSE get_json_object(raw, '$.at') END"
    found = fn.expr(at).cast("bigint").alias("at")
    lines = frame.select(fn.col("raw").alias("value"), found, *origin)
    if has_origin:
        partition = fn.concat(fn.lit(f"{topic.name}/"), fn.col("partition").cast("string"))
        lines = lines.withColumn("event_time", fn.timestamp_millis("at"))
        lines = lines.withColumn("partition", partition)
    by_hour = _by_hour(lines).write.partitionBy("hour")
    by_hour.option("compression", "zstd").parquet(f"{place}/lake")


def _by_hour(rows: DataFrame) -> DataFrame:
    return rows.withColumn("hour", fn.expr(f"CAST(at DIV {HOUR_MS} AS STRING)"))


@contextmanager
def ready_to_land(
    topics: Sequence[Topic], place: Path, lake: LakeSettings | None = None
) -> Iterator[tuple[Callable[[], None], Watched]]:
    """Headgate with a state and a lake of its own, on the session that is there; `lake`: one that
    is not at that place. Each topic is a stream, and each stream has one commit."""
    streams = {
        topic.name: StreamSettings(
            topic.name, KafkaSettings(topic.brokers, (topic.name,)), SHAPE.event_time,
            FolderTemplate.parse(DEFAULT_FOLDER), round_bytes=ROUND_BYTES,
        )
        for topic in topics
    }  # fmt: skip
    ambient = SystemAmbient()
    settings = Settings(
        f"file:{place}/state", lake or LakeSettings(str(place / "lake")), streams=streams
    )
    with (
        opened_landing(settings, ambient) as landing,
        closing(open_store(settings.store, ambient=ambient)) as store,
        ThreadPoolExecutor(WORKERS) as workers,
    ):
        engine = Watched(landing.engine)
        watched = replace(landing, engine=engine)
        equip = landing_equipment(settings, watched, "bench", kinds={}, eager_since_ms=0)
        equipment = equip(store, ambient)
        jobs = equipment.loops["jobs"]
        kinds = equipment.kinds[: len(topics)]  # the first ones are the streams
        works = {
            topic: kind.start(Held(topic.name)) for topic, kind in zip(topics, kinds, strict=True)
        }

        def advance(topic: Topic) -> int:
            works[topic].tick()
            return rows_in_fact(store, topic.name)

        def act() -> None:
            left = list(topics)
            while left:
                rows = list(workers.map(advance, left))
                for topic, found in zip(left, rows, strict=True):
                    assert found in (0, topic.records), f"{found} rows in the first commit"
                left = [topic for topic, found in zip(left, rows, strict=True) if found == 0]
                next_ms = jobs.tick()
                pause_ms = next_ms - ambient.monotonic_ms() if left else 0
                ambient.sleep_ms(max(0, min(pause_ms, 50)))

        yield act, engine


@contextmanager
def landing_by_us(topic: Topic, place: Path) -> Iterator[Callable[[], None]]:
    with ready_to_land([topic], place) as (act, _):
        yield act


def rows_in_fact(store: DocumentStore, stream: str) -> int:
    found = read(store, checkpoint_key(stream, 0), Checkpoint)
    return 0 if found is None else found.value.counts.get("data", 0)


def measured(session: SparkSession, topic: Topic, place: Path) -> dict[str, list[float]]:
    """Seconds of each way, which take turns."""
    ways: dict[str, Callable[[Path], AbstractContextManager[Callable[[], None]]]] = {
        "streaming": lambda own: nullcontext(lambda: streaming(session, topic, str(own))),
        "quick": lambda own: nullcontext(lambda: quick(session, topic, own)),
        "same": lambda own: nullcontext(lambda: quick(session, topic, own, has_origin=True)),
        "ours": lambda own: landing_by_us(topic, own),
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
            check(own / "lake", topic.records)
            if n >= WARM_UPS:
                times[name].append(seconds)
            print(f"{name} {seconds:.1f} s", file=sys.stderr)
            shutil.rmtree(own)
    return times


def check(lake: Path, records: int) -> None:
    """Every way must have landed all of it."""
    found = [path for path in lake.rglob("*.parquet") if "_headgate" not in path.parts]
    rows = sum(pq.read_metadata(path).num_rows for path in found)
    assert rows == records, f"{rows} rows in {len(found)} files of {lake}"


def commits(topic: Topic, place: Path) -> list[tuple[float, float]]:
    """Seconds of a round, and of them those from staged to fact: it is confirmed, reconciled,
    journaled, published and made to last."""
    found = list[tuple[float, float]]()
    for n in range(ROUNDS):
        own = place / f"short-{n}"
        own.mkdir()
        with ready_to_land([topic], own) as (act, engine):
            started = time.perf_counter()
            act()
            ended = time.perf_counter()
        found.append((ended - started, ended - engine.staged_s))
        print(f"commit {found[-1][1]:.2f} of {found[-1][0]:.2f} s", file=sys.stderr)
        shutil.rmtree(own)
    return found


@contextmanager
def produced(
    *wanted: tuple[str, int, int], spark: SparkSettings = SPARK
) -> Iterator[tuple[SparkSession, list[Topic]]]:
    """A session, and topics by name, records and hours on a broker of their own."""
    with Toxiproxy() as network, KafkaBroker(network) as broker:
        session, _ = start(spark)
        topics = [Topic(broker.address, name, records) for name, records, _ in wanted]
        for topic, (*_, hours) in zip(topics, wanted, strict=True):
            produce(session, topic, hours)
        yield session, topics
        session.stop()


def land() -> None:
    with (
        tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder,
        produced(("orders", RECORDS, HOURS), ("short", RECORDS_SHORT, HOURS)) as (session, topics),
    ):
        if not is_installed(session, is_remote=False):
            raise SystemExit("this Spark does not take our function")
        whole, short = topics
        times = measured(session, whole, Path(folder))
        rounds = commits(short, Path(folder))
    took = {name: statistics.median(all_s) for name, all_s in times.items()}
    detail = {f"{name}_s": value for name, value in took.items()}
    rate = RECORDS / took["ours"]
    round_s, commit_s = sorted(rounds, key=lambda one: one[1] / one[0])[ROUNDS // 2]
    publish(
        "land_kafka",
        [
            Number(
                "land_kafka.commit", 100 * commit_s / round_s, "%", commit_s / round_s,
                f"the whole round of {RECORDS_SHORT:,} records",
                {"round_s": round_s, "commit_s": commit_s},
            ),
            Number(
                "land_kafka.quick", rate, "records/s", took["quick"] / took["ours"],
                "a bare Spark batch job with our event-time expression", detail,
            ),
            Number(
                "land_kafka.same", rate, "records/s", took["same"] / took["ours"],
                "the same job, with event time, source partition and offset in each row", detail,
            ),
            Number(
                "land_kafka", rate, "records/s", took["streaming"] / took["ours"],
                "Structured Streaming with get_json_object", detail,
            ),
        ],
    )  # fmt: skip


def many() -> None:
    """Topics against one topic, both by Headgate, which take turns."""
    with (
        tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder,
        produced(("orders", RECORDS, HOURS)) as (session, one),
    ):
        ways = {"one": one, "many": produce_many(session, one[0].brokers)}
        times: dict[str, list[float]] = {name: [] for name in ways}
        for n in range(WARM_UPS + ROUNDS):
            for name, topics in ways.items():
                own = Path(folder) / f"{name}-{n}"
                own.mkdir()
                with ready_to_land(topics, own) as (act, _):
                    started = time.perf_counter()
                    act()
                    seconds = time.perf_counter() - started
                check(own / "lake", RECORDS)
                if n >= WARM_UPS:
                    times[name].append(seconds)
                print(f"{name} {seconds:.1f} s", file=sys.stderr)
                shutil.rmtree(own)
    took = {f"{name}_s": statistics.median(all_s) for name, all_s in times.items()}
    publish(
        "land_kafka",
        [
            Number(
                "land_kafka.topics", RECORDS / took["many_s"], "records/s",
                took["one_s"] / took["many_s"], f"one topic with as many records as {TOPICS}", took,
            ),
        ],
    )  # fmt: skip


SETTINGS = """\
store: file:./state
lake: ./lake
streams:
  orders:
    source: {{kind: kafka, brokers: "{brokers}", topics: [{topic}]}}
    event_time: {{json: $.at, unit: ms}}
    allowed_lateness: 30d  # every round has the same hours
spark: {{conf: {{spark.driver.memory: 1g}}}}
"""


def memory() -> None:
    """Of a node as a process of its own, as `benchmarks.resources` does it."""
    with produced(
        ("few", RECORDS, HOURS), ("many", RECORDS_MANY, HOURS), ("wide", RECORDS, HOURS_MANY)
    ) as (session, topics):
        session.stop()
        few, many, wide = (peak_of(topic) for topic in topics)
    detail = {
        f"{what}_{name}": value
        for name, peaks in (("few", few), ("many", many), ("wide", wide))
        for what, value in peaks.items()
    }
    told = (("records", many, f"{RECORDS:,} records"), ("hours", wide, f"{HOURS} hours"))
    publish(
        "land_kafka",
        [
            Number(
                f"land_kafka.{process}_by_{of}", peaks[f"{process}_mb"], "MB",
                peaks[f"{process}_mb"] / few[f"{process}_mb"], against, detail,
            )
            for of, peaks, against in told
            for process in ("java", "python")
        ],
    )  # fmt: skip


def peak_of(topic: Topic) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as name:
        folder = Path(name)
        settings = SETTINGS.format(brokers=topic.brokers, topic=topic.name)
        (folder / "headgate.yaml").write_text(settings)
        peaks = peak_while_idle_comes(folder)
        rows = sum(
            json.loads(path.read_text())["counts"].get("data", 0)
            for path in (folder / "lake/_headgate/commits").rglob("*.json")
        )
        assert rows == topic.records, (rows, topic.records)
        print(f"{topic.name} {peaks}", file=sys.stderr)
        return peaks


if __name__ == "__main__":
    {"land": land, "topics": many, "memory": memory}[(sys.argv[1:] or ["land"])[0]]()
