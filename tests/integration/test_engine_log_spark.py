"""Records of a log on real Spark: tombstones, times, formats and tallies; no broker is needed."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from headgate.engine import (
    OFFSETS_TALLIED,
    EventTime,
    InputFile,
    InputSpan,
    Job,
    ShardInput,
    SparkSettings,
    Staged,
)
from headgate.engine.containers import values_of
from headgate.engine.failure import JobFailed
from headgate.engine.spark import Reader, SparkEngine
from headgate.sources.kafka.spark import ranges_of, told
from headgate.sources.spark import FilesReader
from tests.spark import ARRIVAL_MS, AT_MS, HOUR_MS, USES_SPARK, shape

pytestmark = USES_SPARK

STAMP_MS = AT_MS + 1_800_000  # half an hour before it is seen
SKEW_MS = 300_000
BY_LOG = EventTime("kafka", "timestamp")
COLUMNS = (
    "topic string, partition int, offset bigint, value binary, at_ms bigint, key binary, "
    "headers array<struct<key: string, value: binary>>, timestampType int"
)


@dataclass(frozen=True)
class Sent:
    """A record as it lies in its log."""

    offset: int
    value: bytes | None
    at_ms: int = STAMP_MS  # -1: none, as Kafka has it
    partition: int = 0
    topic: str = "t"
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] | None = None
    kind: int = 0  # 1: the time is that of the broker


@dataclass
class MemoryReader:
    """As `KafkaReader`, with records in memory: only their way out of the broker is another."""

    sent: list[Sent] = field(default_factory=list)

    def frame(self, session: SparkSession, job: Job) -> DataFrame:
        spans = [(shard, span) for shard in job.inputs for span in shard.spans]
        planned = {(one.topic, one.lane): range(one.first, one.next) for _, one in spans}
        rows = [
            (one.topic, one.partition, one.offset, one.value, one.at_ms, one.key, one.headers,
             one.kind)
            for one in self.sent
            if one.offset in planned.get((one.topic, one.partition), ())
        ]  # fmt: skip
        frame = session.createDataFrame(rows, COLUMNS)
        frame = frame.withColumn("timestamp", fn.expr("timestamp_millis(at_ms)")).drop("at_ms")
        return told(session, frame, job, spans)


READER = MemoryReader()


@dataclass
class LogBench:
    engine: SparkEngine
    lake: Path
    tmp: Path
    staged: Staged = field(default_factory=lambda: Staged((), ()))
    jobs: int = 0

    def stage(
        self, *sent: Sent, marks_ms: Mapping[str, int] | None = None, **changed: Any
    ) -> list[dict[str, Any]]:
        """The staged rows, by partition and offset."""
        return self.run([_spanned(sent, marks_ms or {})], *sent, **changed)

    def keep(self, *sent: Sent, **changed: Any) -> None:
        """Staged, and not looked at."""
        self._staged([_spanned(sent, {})], sent, changed)

    def run(self, inputs: list[ShardInput], *sent: Sent, **changed: Any) -> list[dict[str, Any]]:
        self._staged(inputs, sent, changed)
        found = list[dict[str, Any]]()
        for file in self.staged.files:
            rows = _rows_in(self.lake / file.path)
            assert len(rows) == file.rows
            found += [
                {"kind": file.kind, "hour_ms": file.hour_ms, "label": file.label, **row}
                for row in rows
            ]
        return sorted(found, key=lambda row: (row["partition"], row["number"]))

    def _staged(
        self, inputs: list[ShardInput], sent: Sequence[Sent], changed: Mapping[str, Any]
    ) -> None:
        READER.sent = [*sent]
        usual = {"reader": "kafka", "future_skew_ms": SKEW_MS}
        self.jobs += 1
        folder = f"_headgate/staging/{self.tmp.name}-{self.jobs}"
        self.staged = self.engine.stage(Job(shape(**{**usual, **changed}), folder, tuple(inputs)))


def _spanned(sent: Sequence[Sent], marks_ms: Mapping[str, int]) -> ShardInput:
    by_lane: dict[tuple[str, int], list[int]] = {}
    for one in sent:
        by_lane.setdefault((one.topic, one.partition), []).append(one.offset)
    spans = tuple(
        InputSpan(f"{topic}/{lane}", topic, lane, min(all_), max(all_) + 1, ARRIVAL_MS, 100)
        for (topic, lane), all_ in by_lane.items()
    )
    return ShardInput("0-1", (), marks_ms, spans)


def _rows_in(file: Path) -> list[dict[str, Any]]:
    if file.suffix in (".parquet", ".avro"):
        is_parquet = file.suffix == ".parquet"
        rows = pq.ParquetFile(file).read().to_pylist() if is_parquet else [*values_of(str(file))]
        return [{**row.pop("_headgate"), **row} for row in rows]
    return [_of_line(line) for line in file.read_bytes().decode().split("\n")[:-1]]


def _of_line(line: str) -> dict[str, Any]:
    if line.startswith('{"_headgate":{'):
        row = json.loads(line)
        return {"reason": None, **row.pop("_headgate"), "row": row}
    place, _, raw = line.partition("\t")
    identity, _, at_ms = place.rpartition("@")
    partition, _, offset = identity.rpartition("/")
    number, _, _ = offset.partition(":")  # of letters with their line
    told_ = {"partition": partition, "number": int(number), "at_ms": int(at_ms)}
    return {**told_, "reason": None, "row": raw}


@pytest.fixture(scope="module")
def log_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SparkEngine, Path]]:
    lake = tmp_path_factory.mktemp("lake")
    settings = SparkSettings(master="local[2]", needs=("kafka", "avro"))  # a session serves all
    readers: dict[str, Reader] = {"files": FilesReader(), "kafka": READER}
    engine = SparkEngine(settings, f"file://{lake}", readers)
    yield engine, lake
    engine.close()


@pytest.fixture
def bench(log_engine: tuple[SparkEngine, Path], tmp_path: Path) -> LogBench:
    return LogBench(*log_engine, tmp_path)


def record(at_ms: object = AT_MS, **more: object) -> bytes:
    return json.dumps({"at": at_ms, **more}).encode()


def verdicts(rows: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    return [(row["kind"], row["reason"]) for row in rows]


def ms_of(row: dict[str, Any]) -> int:
    return round(float(row["event_time"].timestamp()) * 1000)


# Verdicts


@pytest.mark.parametrize("land_as", ["parquet", "json", "text"])
def test_each_record_gets_the_verdict_it_deserves(bench: LogBench, land_as: str) -> None:
    cases: list[tuple[bytes | None, str, str | None]] = [
        (record(), "data", None),
        (record(str(AT_MS)), "data", None),
        (record(AT_MS - HOUR_MS), "late", None),
        (record(STAMP_MS + SKEW_MS), "data", None),
        (record(STAMP_MS + SKEW_MS + 1), "dead", "ahead"),
        (None, "data", None),
        (b"", "dead", "bad json"),
        (b" \t ", "dead", "bad json"),
        (b"{", "dead", "bad json"),
        (b"17", "dead", "bad json"),
        (b'{"x":"' + b"y" * 3_000 + b'"}', "dead", "too long"),
        (b'{"at":1793538000123,"x":"\xff\xfe"}', "dead", "not utf-8"),
        (b"\x00\x01\x80\xff", "dead", "not utf-8"),
        (b'{"x":1}', "dead", "no event time"),
        (b'{"at":"soon"}', "dead", "bad event time"),
    ]
    sent = [Sent(n, raw) for n, (raw, _, _) in enumerate(cases)]

    rows = bench.stage(*sent, marks_ms={"t/0": AT_MS}, land_as=land_as, record_bytes_max=2_000)

    assert verdicts(rows) == [(kind, reason) for _, kind, reason in cases]
    assert [row["number"] for row in rows] == [one.offset for one in sent]
    for row, (raw, kind, _) in zip(rows, cases, strict=True):
        if kind == "dead":
            assert _raw_of(row) == raw
    assert "skip" not in {one.kind for one in bench.staged.files}


def _raw_of(row: dict[str, Any]) -> bytes | None:
    if "value" in row:
        found = row["raw"] if row["value"] is None else str(row["value"]).encode()
        return None if found is None else bytes(found)
    if "raw_base64" in row["row"]:
        return base64.b64decode(row["row"]["raw_base64"])
    raw = row["row"]["raw"]
    return None if raw is None else str(raw).encode()


@pytest.mark.parametrize("how", [EventTime("json", "$.at"), BY_LOG, EventTime("sql", "timestamp")])
@pytest.mark.parametrize("land_as", ["parquet", "json", "text"])
def test_a_tombstone_lands_with_the_time_of_its_log(
    bench: LogBench, how: EventTime, land_as: str
) -> None:
    (row,) = bench.stage(Sent(7, None), event_time=how, land_as=land_as)

    assert (row["kind"], row["hour_ms"], row["number"]) == ("data", AT_MS, 7)
    if land_as == "parquet":
        assert (row["value"], row["raw"], ms_of(row)) == (None, None, STAMP_MS)
    elif land_as == "json":
        assert row["row"] == {"value": None}
        assert row["event_time"] == "2026-11-01T13:30:00.000Z"
    else:
        assert (row["row"], row["at_ms"]) == ("", STAMP_MS)
    (tally,) = bench.staged.tallies
    assert (tally.rows, tally.event_ms_max) == (1, STAMP_MS)


@pytest.mark.parametrize("land_as", ["parquet", "json", "text"])
@pytest.mark.parametrize(
    ("at_ms", "reason"), [(-1, "no event time"), (ARRIVAL_MS + SKEW_MS + 1, "ahead")]
)
def test_a_tombstone_without_a_usable_time_is_dead(
    bench: LogBench, land_as: str, at_ms: int, reason: str
) -> None:
    (row,) = bench.stage(Sent(7, None, at_ms), land_as=land_as)
    assert verdicts([row]) == [("dead", reason)]
    assert _raw_of(row) is None
    assert (row["partition"], row["number"]) == ("t/0", 7)


@pytest.mark.parametrize("land_as", ["parquet", "json", "text"])
def test_an_empty_value_of_text_is_a_record(bench: LogBench, land_as: str) -> None:
    rows = bench.stage(Sent(0, b""), Sent(1, b" "), format="text", event_time=BY_LOG,
                       land_as=land_as)  # fmt: skip
    assert verdicts(rows) == [("data", None)] * 2


# Times


def test_the_time_of_the_log_is_the_event_time_of_whatever_it_holds(bench: LogBench) -> None:
    sent = [Sent(0, b"anything"), Sent(1, b"", AT_MS), Sent(2, b"x", -1), Sent(3, b"x", 0)]
    rows = bench.stage(*sent, format="text", event_time=BY_LOG)
    assert verdicts(rows) == [("data", None)] * 2 + [("dead", "no event time")] * 2
    assert [ms_of(row) for row in rows[:2]] == [STAMP_MS, AT_MS]


def test_a_dead_letter_tells_the_time_of_its_log(bench: LogBench) -> None:
    (row,) = bench.stage(Sent(0, b"{"), event_time=BY_LOG)
    assert verdicts([row]) == [("dead", "bad json")]
    assert ms_of(row) == STAMP_MS


@pytest.mark.parametrize("land_as", ["parquet", "json"])
def test_k4_event_times_are_clamped_to_the_arrival_of_each_record(
    bench: LogBench, land_as: str
) -> None:
    sent = [
        Sent(0, record(AT_MS + 7), AT_MS + 10),
        Sent(1, record(AT_MS + 60_000), AT_MS + 20),  # a minute ahead of when it was there
        Sent(2, record(AT_MS + 5), AT_MS + 5),
    ]
    rows = bench.stage(*sent, land_as=land_as)
    assert [row.get("ahead_ms") for row in rows] == [None, 59_980, None]
    (tally,) = bench.staged.tallies
    assert (tally.rows, tally.event_ms_max, tally.event_ms_min) == (3, AT_MS + 20, AT_MS + 5)


@pytest.mark.parametrize("land_as", ["parquet", "json", "text"])
def test_k4_nothing_arrived_later_than_it_was_seen(bench: LogBench, land_as: str) -> None:
    """A time of the log that is ahead is the producer's: at most it is the look's."""
    bench.stage(Sent(0, record(ARRIVAL_MS + 1_000), ARRIVAL_MS + 2_000), land_as=land_as)
    (tally,) = bench.staged.tallies
    assert (tally.kind, tally.event_ms_max) == ("data", ARRIVAL_MS)


def test_a_record_without_a_time_of_its_log_arrived_when_it_was_seen(bench: LogBench) -> None:
    rows = bench.stage(Sent(0, record(ARRIVAL_MS), -1), Sent(1, record(ARRIVAL_MS), 0))
    assert verdicts(rows) == [("data", None)] * 2
    assert [row["ahead_ms"] for row in rows] == [None, None]


# What is landed


MULTI_LINE = b'{\n  "at": 1793538000000,\r\n  "x": [1,\n 2],\n  "y": "a\\nb"\n}\n'


def test_json_of_several_lines_lands_as_one(bench: LogBench) -> None:
    sent = [Sent(0, MULTI_LINE), Sent(1, b"\n{ }\n", AT_MS), Sent(2, record())]
    rows = bench.stage(*sent, land_as="json", event_time=BY_LOG)
    assert verdicts(rows) == [("data", None)] * 3
    assert rows[0]["row"] == json.loads(MULTI_LINE)
    assert rows[1]["row"] == {}
    assert rows[2]["row"] == {"at": AT_MS}
    assert sum(tally.rows for tally in bench.staged.tallies) == 3


def test_a_line_end_inside_of_a_value_is_not_lost(bench: LogBench) -> None:
    """Spark lets it pass, though JSON does not."""
    raw = b'{"at":1793538000000,\n"x":"one\ntwo","y":"\\u0041"}'
    (row,) = bench.stage(Sent(0, raw), land_as="json")
    assert verdicts([row]) == [("data", None)]
    assert row["row"] == {"at": AT_MS, "x": "one\ntwo", "y": "A"}


def test_json_of_several_lines_lands_in_parquet_as_it_came(bench: LogBench) -> None:
    (row,) = bench.stage(Sent(0, MULTI_LINE))
    assert (row["kind"], row["value"]) == ("data", MULTI_LINE.decode())


def test_a_line_of_text_says_where_and_when(bench: LogBench) -> None:
    bench.stage(Sent(41, b"a\tb"), format="text", event_time=BY_LOG, land_as="text")
    (file,) = bench.staged.files
    assert (bench.lake / file.path).read_bytes() == b"t/0/41@%d\ta\tb\n" % STAMP_MS
    (tally,) = bench.staged.tallies
    assert (tally.partition, tally.number, tally.line_min, tally.line_max) == ("t/0", 0, 41, 41)
    assert (tally.event_ms_max, tally.event_ms_min) == (STAMP_MS, STAMP_MS)


@pytest.mark.parametrize("source", ["text", "json"])
def test_what_is_more_than_one_line_is_dead_where_lines_are_landed(
    bench: LogBench, source: str
) -> None:
    values = [MULTI_LINE, b'{"at":1793538000000}\r', b'{"at":1793538000000}']
    sent = [Sent(n, value) for n, value in enumerate(values)]
    rows = bench.stage(*sent, format=source, event_time=BY_LOG, land_as="text")
    assert verdicts(rows) == [("dead", "not one line")] * 2 + [("data", None)]
    assert [_raw_of(row) for row in rows[:2]] == values[:2]


def test_bytes_land_as_they_are(bench: LogBench) -> None:
    values = [bytes(range(256)), b"", None, b"\n\xff", "ü".encode()]
    sent = [Sent(n, value) for n, value in enumerate(values)]
    rows = bench.stage(*sent, format="binary", event_time=BY_LOG)
    assert verdicts(rows) == [("data", None)] * 5
    assert [row["value"] for row in rows] == values


def test_bytes_that_are_too_many_are_dead(bench: LogBench) -> None:
    sent = [Sent(0, b"\xff" * 11), Sent(1, b"\xff" * 10)]
    rows = bench.stage(*sent, format="binary", event_time=BY_LOG, record_bytes_max=10)
    assert verdicts(rows) == [("dead", "too long"), ("data", None)]
    assert rows[0]["value"] == b"\xff" * 11


@pytest.mark.parametrize("source", ["json", "binary"])
def test_what_is_beside_a_record_has_columns_of_its_own(bench: LogBench, source: str) -> None:
    first = Sent(
        0, record(), key=b"\x00k", headers=(("a", b"1"), ("a", None), ("b", b"\xff")), kind=0
    )
    sent = [first, Sent(1, record(), kind=1), Sent(2, None, key=b"gone"), Sent(3, b"{")]

    rows = bench.stage(
        *sent, format=source, event_time=BY_LOG, extras=("key", "headers", "timestamp")
    )

    assert [row["key"] for row in rows] == [b"\x00k", None, b"gone", None]
    assert rows[0]["headers"] == [
        {"key": "a", "value": b"1"}, {"key": "a", "value": None}, {"key": "b", "value": b"\xff"},
    ]  # fmt: skip
    assert [row["headers"] for row in rows[1:]] == [None] * 3
    assert [row["timestamp_type"] for row in rows] == ["create", "append", "create", "create"]
    assert {round(row["timestamp"].timestamp() * 1000) for row in rows} == {STAMP_MS}


def test_an_expression_sees_the_time_and_the_place_in_the_log(bench: LogBench) -> None:
    how = EventTime("sql", "timestamp + make_dt_interval(0, 0, 0, offset)")
    rows = bench.stage(Sent(3, b"x"), Sent(5, b"y"), format="text", event_time=how)
    assert [ms_of(row) for row in rows] == [STAMP_MS + 3_000, STAMP_MS + 5_000]


# Tallies


@pytest.mark.parametrize("land_as", ["parquet", "json", "text"])
def test_e4_tallies_are_of_buckets_of_offsets(bench: LogBench, land_as: str) -> None:
    edge = OFFSETS_TALLIED
    offsets = [edge - 2, edge - 1, edge, edge + 5, 3 * edge + 1]
    sent = [
        *(Sent(one, record()) for one in offsets),
        Sent(edge + 1, b"{"),
        Sent(edge + 2, record(AT_MS - HOUR_MS)),
        Sent(edge, record(), partition=3),
    ]

    bench.stage(*sent, marks_ms={"t/0": AT_MS}, land_as=land_as)

    assert [
        (one.partition, one.number, one.kind, one.rows, one.line_min, one.line_max)
        for one in bench.staged.tallies
    ] == [
        ("t/0", 0, "data", 2, edge - 2, edge - 1),
        ("t/0", edge, "data", 2, edge, edge + 5),
        ("t/0", edge, "dead", 1, edge + 1, edge + 1),
        ("t/0", edge, "late", 1, edge + 2, edge + 2),
        ("t/0", 3 * edge, "data", 1, 3 * edge + 1, 3 * edge + 1),
        ("t/3", edge, "data", 1, edge, edge),
    ]


@pytest.mark.parametrize("topics", [("t", "t"), ("t", "u")])
def test_two_shards_share_a_job_and_nothing_else(bench: LogBench, topics: tuple[str, str]) -> None:
    """Of one topic facts are looked up by number, of several they are joined."""
    first, second = topics
    inputs = [
        ShardInput("0-1", (), {f"{first}~2/0": AT_MS + HOUR_MS},
                   (InputSpan(f"{first}~2/0", first, 0, 0, 2, ARRIVAL_MS, 10),)),
        ShardInput("1-4", (), {}, (InputSpan(f"{second}/3", second, 3, 5, 6, ARRIVAL_MS, 10),)),
    ]  # fmt: skip
    sent = [
        Sent(0, record(), topic=first), Sent(1, record(AT_MS + HOUR_MS), topic=first),
        Sent(5, record(), topic=second, partition=3),
    ]  # fmt: skip

    rows = bench.run(inputs, *sent, future_skew_ms=2 * HOUR_MS)

    found = {(row["label"], row["partition"], row["number"], row["kind"]) for row in rows}
    assert found == {
        ("0-1", f"{first}~2/0", 0, "late"), ("0-1", f"{first}~2/0", 1, "data"),
        ("1-4", f"{second}/3", 5, "data"),
    }  # fmt: skip


def test_a_range_without_records_stages_nothing(bench: LogBench) -> None:
    span = InputSpan("t/0", "t", 0, 0, 3, ARRIVAL_MS, 10)
    assert bench.run([ShardInput("0-1", (), {}, (span,))]) == []
    assert bench.staged == Staged((), ())


# Letters of a log, driven in again


@pytest.mark.parametrize(
    ("source", "land_as"),
    [
        *(
            (source, land_as)
            for source in ("json", "text")
            for land_as in ("parquet", "json", "text")
        ),
        ("binary", "parquet"),
    ],
)
def test_letters_of_a_log_keep_its_time_when_they_are_driven_in_again(
    bench: LogBench, source: str, land_as: str
) -> None:
    how: dict[str, Any] = {"format": source, "event_time": BY_LOG, "land_as": land_as}
    value = b'{"x":1}' if source != "binary" else b"\xff\x00"
    (dead,) = bench.stage(Sent(0, value), record_bytes_max=1, **how)
    assert verdicts([dead]) == [("dead", "too long")]

    driven_in(bench, **how)

    (tally,) = bench.staged.tallies
    assert (tally.kind, tally.rows, tally.event_ms_max) == ("data", 1, STAMP_MS)


def driven_in(bench: LogBench, **how: Any) -> list[dict[str, Any]]:
    """Letters that were just staged, in their order."""
    letters = [bench.lake / one.path for one in bench.staged.files if one.kind == "dead"]
    files = [
        InputFile("again-0", n, str(one), one.stat().st_size, ARRIVAL_MS)
        for n, one in enumerate(letters)
    ]
    told = {**how, "reader": "files", "format": f"dead-{how['format']}", "is_of_log": True}
    return bench.run([ShardInput("0-1", tuple(files), {})], **told)


EXTRAS = ("key", "headers", "timestamp")
BESIDE = ("key", "headers", "timestamp", "timestamp_type")


@pytest.mark.parametrize("land_as", ["parquet", "avro"])
@pytest.mark.parametrize(
    ("source", "declared"), [("json", ()), ("text", ()), ("binary", ()), ("json", (("x", "int"),))]
)
def test_letters_of_a_log_land_with_what_it_kept_beside_them(
    bench: LogBench, source: str, declared: tuple[tuple[str, str], ...], land_as: str
) -> None:
    how: dict[str, Any] = {"format": source, "event_time": BY_LOG, "land_as": land_as}
    how |= {"extras": EXTRAS, "declared": declared}
    headers = (("a", b"1"), ("a", None), ("b", b"\xff"))
    sent = [
        Sent(0, b'{"x":1}', key=b"\x00k", headers=headers, kind=1),
        Sent(1, b'{"x":2}', STAMP_MS + 1),
    ]
    dead = bench.stage(*sent, record_bytes_max=1, **how)
    assert verdicts(dead) == [("dead", "too long")] * 2
    kept = [{column: row[column] for column in BESIDE} for row in dead]
    assert [one["key"] for one in kept] == [b"\x00k", None]

    still = driven_in(bench, record_bytes_max=1, **how)  # and they are letters once more
    assert verdicts(still) == [("dead", "too long")] * 2
    rows = driven_in(bench, **how)

    assert verdicts(rows) == [("data", None)] * 2
    assert [{column: row[column] for column in BESIDE} for row in rows] == kept
    assert [ms_of(row) for row in rows] == [STAMP_MS, STAMP_MS + 1]
    if declared:
        assert [row["x"] for row in rows] == [1, 2]
    else:
        values = [row["value"] for row in rows]
        assert values == [one.value if source == "binary" else one.value.decode() for one in sent]  # type: ignore[union-attr] # all have one


@pytest.mark.parametrize("before", [(), ("key",)])
@pytest.mark.parametrize("landed_as", ["parquet", "json"])
def test_letters_from_before_it_was_landed_are_driven_in_all_the_same(
    bench: LogBench, before: tuple[str, ...], landed_as: str
) -> None:
    how: dict[str, Any] = {"format": "json", "event_time": EventTime("json", "$.at")}
    extras = before if landed_as == "parquet" else ()
    sent = Sent(0, record(), key=b"k")
    bench.stage(sent, record_bytes_max=1, land_as=landed_as, extras=extras, **how)

    (row,) = driven_in(bench, land_as="parquet", extras=EXTRAS, **how)

    assert (row["kind"], row["key"]) == ("data", b"k" if extras else None)
    assert [row[column] for column in BESIDE[1:]] == [None] * 3


def test_a_declared_column_of_a_letter_is_not_taken_for_the_key(bench: LogBench) -> None:
    how: dict[str, Any] = {"format": "json", "event_time": BY_LOG}
    unfit = Sent(0, b'{"key":7,"timestamp":"2026-11-01","x":"no"}')
    declared = (("key", "int"), ("timestamp", "date"), ("x", "int"))
    bench.stage(unfit, declared=declared, **how)

    (row,) = driven_in(bench, extras=EXTRAS, **how)

    assert (row["kind"], row["key"], row["timestamp"]) == ("data", None, None)


@pytest.mark.parametrize("how", [EventTime("json", "$.at"), BY_LOG])
@pytest.mark.parametrize("land_as", ["parquet", "avro", "json", "text"])
def test_a_tombstone_that_is_driven_in_again_lands_with_the_time_of_its_log(
    bench: LogBench, how: EventTime, land_as: str
) -> None:
    told: dict[str, Any] = {"format": "json", "event_time": how, "land_as": land_as}
    (dead,) = bench.stage(Sent(7, None), filters=(("orders", "value LIKE '%order%'"),), **told)
    assert verdicts([dead]) == [("dead", "no output")]

    (row,) = driven_in(bench, filters=(("gone", "value IS NULL"),), **told)

    assert (row["kind"], row["hour_ms"]) == ("data", AT_MS)
    (tally,) = bench.staged.tallies
    assert (tally.rows, tally.event_ms_max) == (1, STAMP_MS)
    if land_as == "json":
        assert row["row"] == {"value": None}
    elif land_as == "text":
        assert (row["row"], row["at_ms"]) == ("", STAMP_MS)
    else:
        assert row["value"] is None


def test_letters_of_a_log_are_judged_as_its_records_are(bench: LogBench) -> None:
    """None is a blank line, and one that lands as text must be one."""
    text: dict[str, Any] = {"format": "json", "event_time": BY_LOG, "land_as": "text"}
    bench.stage(Sent(0, MULTI_LINE), Sent(1, b" "), **text)
    reasons = ["not one line", "bad json"]
    assert [row["reason"] for row in driven_in(bench, **text)] == reasons

    rows = driven_in(bench, **{**text, "land_as": "json"})

    assert verdicts(rows) == [("data", None), ("dead", "bad json")]
    assert rows[0]["row"] == json.loads(MULTI_LINE)


def test_an_expression_sees_the_time_that_a_letter_kept(bench: LogBench) -> None:
    how: dict[str, Any] = {"format": "text", "event_time": EventTime("sql", "timestamp")}
    bench.stage(Sent(0, b"x"), extras=EXTRAS, record_bytes_max=0, **how)
    seen = (("a", "partition IS NULL AND offset IS NULL AND year(timestamp) = 2026"),)
    (row,) = driven_in(bench, extras=EXTRAS, filters=seen, **how)
    assert (row["kind"], ms_of(row)) == ("data", STAMP_MS)


# What Spark's reader is asked for


def test_every_partition_has_a_start_and_an_end() -> None:
    spans = [
        InputSpan("t/0", "t", 0, 5, 9, 0, 1),
        InputSpan("t/3", "t", 3, 0, 2, 0, 1),
        InputSpan("u~2/0", "u", 0, 7, 3_500_000, 0, 1),
    ]
    found = ranges_of(spans)
    assert json.loads(found["assign"]) == {"t": [0, 3], "u": [0]}
    assert json.loads(found["startingOffsets"]) == {"t": {"0": 5, "3": 0}, "u": {"0": 7}}
    assert json.loads(found["endingOffsets"]) == {"t": {"0": 9, "3": 2}, "u": {"0": 3_500_000}}
    assert int(found["minPartitions"]) == 4
    with pytest.raises(JobFailed, match="u/0: planned twice"):
        ranges_of([*spans, replace(spans[2], partition="u/0")])
