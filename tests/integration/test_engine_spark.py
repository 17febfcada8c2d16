"""The engine on real Spark: formats, verdicts, odd files and names, several shards, a dead JVM."""

import base64
import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import RetriesExceeded, SparkRuntimeException, UnknownException
from pyspark.sql import functions as fn

from headgate.engine import EventTime, InputFile, Job, ShardInput, SparkSettings
from headgate.engine.failure import JobFailed
from headgate.engine.gateway.spark import is_gone, quieted, start
from headgate.engine.spark import SparkEngine
from headgate.errors import Invalid, Unavailable
from headgate.sources.spark import FilesReader
from headgate.testing.racing import PATIENCE_S, in_background
from tests.spark import (
    ARRIVAL_MS,
    AT_MS,
    HOUR_MS,
    USES_SPARK,
    Bench,
    bench,
    inputs,
    shape,
    spark_engine,
)

__all__ = ["bench", "spark_engine"]

pytestmark = USES_SPARK


def record(at_ms: object, **more: object) -> str:
    return json.dumps({"order": 1, "at": at_ms, **more})


def lines(*records: str) -> str:
    return "".join(f"{one}\n" for one in records)


def verdicts(rows: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    return [(row["kind"], row["reason"]) for row in rows]


def test_e1_every_line_is_one_row_with_its_number(bench: Bench) -> None:
    files = [
        bench.file(f"{n}.json", lines(*(record(AT_MS + n, n=i) for i in range(n * 700))))
        for n in range(1, 5)
    ]

    rows = bench.stage(*files)

    assert [(row["number"], row["line"]) for row in rows] == [
        (n, line) for n in range(1, 5) for line in range(1, n * 700 + 1)
    ]
    assert all(json.loads(row["value"])["n"] == row["line"] - 1 for row in rows)
    assert {row["partition"] for row in rows} == {"lane-0"}


def test_e1_a_file_larger_than_a_usual_split_has_each_of_its_lines_once(bench: Bench) -> None:
    """Spark would split it at 128 MB, and both halves would count their lines from one."""
    count, filling = 140_000, "x" * 960
    file = bench.file(
        "large.json", "".join(f'{{"at":{AT_MS},"x":"{n}{filling}"}}\n' for n in range(count))
    )
    assert file.stat().st_size > 134_217_728

    staged = bench.engine.stage(
        Job(shape(), bench.folder(), (ShardInput("0-1", inputs(file), {}),))
    )

    (tally,) = staged.tallies
    assert (tally.rows, tally.line_min, tally.line_max) == (count, 1, count)
    found = list[int]()
    for one in staged.files:
        rows = pq.ParquetFile(bench.lake / one.path).read(columns=["_headgate.line"])
        found += [row["_headgate"]["line"] for row in rows.to_pylist()]
    assert len(found) == count
    assert len(set(found)) == count


def test_e1_a_row_of_a_file_that_nobody_planned_fails_the_job(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [bench.file(f"{n}.json", lines(record(AT_MS), record(AT_MS))) for n in range(2)]
    monkeypatch.setattr("headgate.sources.spark.spellings_of", lambda url: (f"{url}.", f"{url}~"))

    with pytest.raises(JobFailed, match=r"\.json: not planned"):
        bench.stage(*files)


@pytest.mark.parametrize("count", [1, 3])
def test_e1_two_files_with_the_same_hash_are_not_taken_for_each_other(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Only the first line tells: of the others nobody compares the path."""
    files = [bench.file(f"{n}.json", lines(*[record(AT_MS)] * count)) for n in range(2)]
    monkeypatch.setattr(
        "headgate.sources.spark.fn.xxhash64", lambda column: fn.length(column) * 0 + 7
    )

    with pytest.raises(JobFailed, match=r"\.json: not planned"):
        bench.stage(*files)


def test_e4_files_tallies_and_footers_agree(bench: Bench) -> None:
    first = bench.file("a.json", lines(record(AT_MS), "", record(AT_MS + HOUR_MS), "{"))
    second = bench.file("b.json", lines(record(AT_MS + 5)))

    bench.stage(first, second)

    assert [
        (t.number, t.kind, t.rows, t.line_min, t.line_max, t.event_ms_max)
        for t in bench.staged.tallies
    ] == [
        (1, "data", 2, 1, 3, AT_MS + HOUR_MS),
        (1, "dead", 1, 4, 4, None),
        (1, "skip", 1, 2, 2, None),
        (2, "data", 1, 1, 1, AT_MS + 5),
    ]
    hours = sorted((f.kind, f.hour_ms, f.rows) for f in bench.staged.files if f.hour_ms is not None)
    assert hours == [("data", AT_MS, 2), ("data", AT_MS + HOUR_MS, 1)]


def test_k4_an_event_time_is_clamped_to_its_arrival_in_the_tally(bench: Bench) -> None:
    bench.stage(bench.file("a.json", lines(record(ARRIVAL_MS + 299_999))))
    [tally] = bench.staged.tallies
    assert (tally.kind, tally.event_ms_max) == ("data", ARRIVAL_MS)


@pytest.mark.parametrize("land_as", ["parquet", "json", "text"])
def test_each_line_gets_the_verdict_it_deserves(bench: Bench, land_as: str) -> None:
    cases: list[tuple[bytes, str, str | None]] = [
        (record(AT_MS).encode(), "data", None),
        (record(str(AT_MS)).encode(), "data", None),
        (record(AT_MS + 0.5).encode(), "data", None),
        (b'{"at":1.7935380001e12}', "data", None),
        (b'{"deep":{"er":[1,{"x":"\\u0041"}]},"at":1793538000123}', "data", None),
        (b'{"\\u0061t":1793538000123}', "data", None),
        (record(AT_MS - HOUR_MS).encode(), "late", None),
        (record(ARRIVAL_MS + 300_000).encode(), "data", None),
        (record(ARRIVAL_MS + 300_001).encode(), "dead", "ahead"),
        (b"", "skip", None),
        (b" \t ", "skip", None),
        (b'{"at":1793538000123', "dead", "bad json"),
        (b'{"at":1793538000123} x', "dead", "bad json"),
        (b'{"at":1793538000123},{"at":1}', "dead", "bad json"),
        (b'{"at":1793538000123}]', "dead", "bad json"),
        (b'[{"at":1793538000123}]', "dead", "bad json"),
        (b"17", "dead", "bad json"),
        (b'{"x":"' + b"y" * 3_000 + b'","at":1793538000123}', "dead", "too long"),
        (b'{"at":1793538000123,"x":"\xff\xfe"}', "dead", "not utf-8"),
        (b"\x00\x01\x80\xff", "dead", "not utf-8"),
        (b'{"x":1}', "dead", "no event time"),
        (b'{"at":null}', "dead", "no event time"),
        (b'{"at":"soon"}', "dead", "bad event time"),
        (b'{"at":""}', "dead", "bad event time"),
        (b'{"at":true}', "dead", "bad event time"),
        (b'{"at":{"x":1}}', "dead", "bad event time"),
        (b'{"at":1e999999999}', "dead", "bad event time"),
        (b'{"at":"1e-999999999"}', "dead", "bad event time"),
        (b'{"at":99999999999999999999999999}', "dead", "bad event time"),
        (b'{"at":253402300800000}', "dead", "bad event time"),
        (b'{"at":-62135596800001}', "dead", "bad event time"),
        (b'{"at":-62135596800000}', "late", None),
    ]
    file = bench.file("a.json", b"".join(raw + b"\n" for raw, _, _ in cases))

    rows = bench.stage(file, marks_ms={"lane-0": AT_MS}, land_as=land_as, record_bytes_max=2_000)

    found = [(row["kind"], row.get("reason")) for row in rows]
    assert found == [(kind, reason) for _, kind, reason in cases]
    for row, (raw, kind, _) in zip(rows, cases, strict=True):
        if land_as == "json" and kind in ("data", "late"):
            assert row["row"] == json.loads(raw)
        else:
            assert _raw_of(row) == raw


def _raw_of(row: dict[str, Any]) -> bytes:
    """The line as it came, from a staged row of any format."""
    if "value" in row:
        return row["raw"] if row["value"] is None else str(row["value"]).encode()
    landed = row["row"]
    if isinstance(landed, str):
        return landed.encode()
    if "raw_base64" in landed:
        return base64.b64decode(landed["raw_base64"])
    return str(landed["raw"]).encode()


def test_an_hour_is_late_from_the_moment_the_mark_reaches_its_end(bench: Bench) -> None:
    file = bench.file("a.json", lines(record(AT_MS), record(AT_MS + HOUR_MS)))
    for mark_ms, wanted in [
        (AT_MS + HOUR_MS - 1, ["data", "data"]),
        (AT_MS + HOUR_MS, ["late", "data"]),
        (AT_MS + 2 * HOUR_MS, ["late", "late"]),
    ]:
        rows = bench.stage(file, marks_ms={"lane-0": mark_ms, "lane-1": 2**60})
        assert [row["kind"] for row in rows] == wanted, mark_ms


@pytest.mark.parametrize(
    ("content", "count"),
    [
        (b"", 0),
        (b"\n", 1),
        (b"\xef\xbb\xbf" + record(AT_MS).encode(), 1),
        (b"\xef\xbb\xbf" + record(AT_MS).encode() + b"\r\n" + record(AT_MS).encode() + b"\r\n", 2),
        (record(AT_MS).encode(), 1),
        (record(AT_MS).encode() + b"\n" + record(AT_MS).encode(), 2),
        (bytes(range(256)) * 40, 41),
    ],
    ids=["0 bytes", "a line end", "BOM", "CRLF", "no last line end", "two lines", "noise"],
)
def test_odd_files_are_read_line_by_line(bench: Bench, content: bytes, count: int) -> None:
    rows = bench.stage(bench.file("a.json", content))
    assert [row["line"] for row in rows] == list(range(1, count + 1))
    if b"order" in content:
        assert [row["value"] for row in rows] == [record(AT_MS)] * count


def test_a_line_of_50_mb_is_a_dead_letter_and_whole(bench: Bench) -> None:
    long = '{"at":1793538000123,"x":"' + "y" * 50_000_000 + '"}'
    rows = bench.stage(bench.file("a.json", lines(record(AT_MS), long, record(AT_MS))))
    assert verdicts(rows) == [("data", None), ("dead", "too long"), ("data", None)]
    assert rows[1]["value"] == long


def test_gzip_is_unpacked(bench: Bench) -> None:
    packed = gzip.compress(lines(*[record(AT_MS)] * 1_000).encode())
    rows = bench.stage(bench.file("a.json.gz", packed), bench.file("b.json", lines(record(AT_MS))))
    assert [row["line"] for row in rows if row["number"] == 1] == list(range(1, 1_001))


NAMES = [
    "with space.json", "100%.json", "%41%20.json", "it's.json", 'double".json', "star*.json",
    "what?.json", "[a].json", "{a,b}.json", "back\\slash.json", "comma,.json", "a=b/c=d.json",
    "заказы.json", "注文/受.json", "colon:x.json", "#hash.json", "plus+.json", "é.json",
    "new\ttab.json",
]  # fmt: skip


def test_names_of_any_kind_are_read_and_nothing_else(bench: Bench) -> None:
    files = [bench.file(name, lines(record(AT_MS, name=name))) for name in NAMES]
    bench.file("stary.json", lines(record(AT_MS, name="a stranger")))
    bench.file("a.json", lines(record(AT_MS, name="a stranger")))
    bench.file("b.json", lines(record(AT_MS, name="a stranger")))

    rows = bench.stage(*files)
    assert [json.loads(row["value"])["name"] for row in rows] == NAMES

    for file, name in zip(files, NAMES, strict=True):  # one alone goes another way
        if name in ("star*.json", "100%.json", "注文/受.json"):
            assert [json.loads(row["value"])["name"] for row in bench.stage(file)] == [name]


def test_shards_of_one_job_have_folders_of_their_own(bench: Bench) -> None:
    first = bench.file("a.json", lines(record(AT_MS), record(AT_MS - HOUR_MS)))
    second = bench.file("b.json", lines(record(AT_MS), record(AT_MS - HOUR_MS), "x"))
    job = Job(
        shape(),
        bench.folder(),
        (
            ShardInput("0-3", inputs(first, partition="lane-0"), {"lane-0": AT_MS}),
            ShardInput("1-7", inputs(second, partition="lane-1"), {"lane-0": 2**60}),
        ),
    )
    rows = bench.run(job)
    assert [(row["label"], row["kind"], row["partition"]) for row in rows] == [
        ("0-3", "data", "lane-0"),
        ("0-3", "late", "lane-0"),
        ("1-7", "data", "lane-1"),
        ("1-7", "data", "lane-1"),
        ("1-7", "dead", "lane-1"),
    ]
    for file in bench.staged.files:
        assert file.path.startswith(f"{job.folder}/shard={file.label}/headgate_kind={file.kind}/")


def test_e3_the_same_inputs_give_the_same_rows(bench: Bench) -> None:
    file = bench.file("a.json", lines(*(record(AT_MS + n * 60_000) for n in range(60)), "{"))
    once, again = bench.stage(file), bench.stage(file)
    assert once == again


def test_few_files_however_many_were_read(bench: Bench) -> None:
    files = [
        bench.file(f"{n}.json", lines(record(AT_MS + n), record(AT_MS + HOUR_MS)))
        for n in range(30)
    ]
    bench.stage(*files)
    assert len(bench.staged.files) == 2  # one for each hour


def test_csv_with_and_without_a_header(bench: Bench) -> None:
    columns = ("id", "at", "note")
    body = f'1,{AT_MS},"a, ""b"""\n2,{AT_MS},\n\n3,{AT_MS}\n4,{AT_MS},x,y\n'
    how = EventTime("column", "at")

    rows = bench.stage(
        bench.file("a.csv", "id,at,note\n" + body), format="csv", columns=columns, event_time=how
    )
    assert verdicts(rows) == [
        ("skip", None), ("data", None), ("data", None), ("skip", None),
        ("dead", "bad csv"), ("dead", "bad csv"),
    ]  # fmt: skip
    assert json.loads(rows[1]["value"]) == {"id": "1", "at": str(AT_MS), "note": 'a, "b"'}
    assert json.loads(rows[2]["value"]) == {"id": "2", "at": str(AT_MS), "note": None}
    assert rows[4]["value"] == f"3,{AT_MS}"

    bare = bench.stage(
        bench.file("b.csv", body), format="csv-bare", columns=columns, event_time=how
    )
    assert [row["kind"] for row in bare] == ["data", "data", "skip", "dead", "dead"]
    landed = bench.stage(
        bench.file("c.csv", body), format="csv-bare", columns=columns, event_time=how,
        land_as="json",
    )  # fmt: skip
    assert landed[0]["row"] == {"value": rows[1]["value"]}


def test_text_by_a_regular_expression(bench: Bench) -> None:
    file = bench.file("a.log", "2026-11-01T13:00:01Z started\n\nno time here\n")
    how = EventTime("regex", r"^(\S+Z) ", unit="text")
    rows = bench.stage(file, format="text", event_time=how)
    assert verdicts(rows) == [
        ("data", None), ("dead", "no event time"), ("dead", "no event time"),
    ]  # fmt: skip
    landed = bench.stage(file, format="text", event_time=how, land_as="text")
    assert (landed[0]["row"], landed[0]["line"]) == ("2026-11-01T13:00:01Z started", 1)
    assert bench.staged.tallies[0].event_ms_max == AT_MS + 1_000


def test_a_tally_says_between_which_event_times_its_records_are(bench: Bench) -> None:
    times = (AT_MS + 700, AT_MS + 5, AT_MS + 90)
    bench.stage(bench.file("a.json", "".join(f'{{"at":{at}}}\n' for at in times)))
    (tally,) = bench.staged.tallies
    assert (tally.event_ms_min, tally.event_ms_max) == (AT_MS + 5, AT_MS + 700)


@pytest.mark.parametrize(
    ("how", "value", "wanted_ms"),
    [
        (EventTime("json", "$.at", "s"), 1_793_538_000, AT_MS),
        (EventTime("json", "$.at", "s"), 1_793_538_000.123, AT_MS + 123),
        (EventTime("json", "$.at", "s"), "1793538000.1239", AT_MS + 123),
        (EventTime("json", "$.at", "text"), "2026-11-01T13:00:00.5Z", AT_MS + 500),
        (EventTime("json", "$.at", "text"), "2026-11-01T14:00:00+01:00", AT_MS),
        (EventTime("json", "$.at", "text"), "2026-11-01", AT_MS - 13 * HOUR_MS),
        (EventTime("json", "$.at", "text"), "13:00:00", None),
        (EventTime("json", "$.at", "text", "dd/MM/yyyy HH:mm"), "01/11/2026 13:00", AT_MS),
        (EventTime("json", "$.at", "text", "dd/MM/yyyy HH:mm"), "31/31/2026 13:00", None),
        (EventTime("json", "$.at.x"), {"x": AT_MS}, AT_MS),
        (EventTime("sql", "get_json_object(value, '$.at') + 1"), AT_MS, AT_MS + 1),
        (EventTime("sql", "timestamp_millis(cast(get_json_object(value, '$.at') as bigint))"),
         AT_MS, AT_MS),
    ],
)  # fmt: skip
def test_event_times_of_every_kind(
    bench: Bench, how: EventTime, value: object, wanted_ms: int | None
) -> None:
    bench.stage(bench.file("a.json", lines(record(value))), event_time=how)
    [tally] = bench.staged.tallies
    assert (tally.kind, tally.event_ms_max) == (
        ("dead", None) if wanted_ms is None else ("data", wanted_ms)
    )


def test_parquet_keeps_its_columns(bench: Bench, tmp_path: Path) -> None:
    table = pa.table(
        {
            "at": pa.array([AT_MS, None, AT_MS + 1], pa.int64()),
            "line": ["a", "b", "c"],
            "x.y": [1, 2, 3],
        }
    )
    file = tmp_path / "a.parquet"
    pq.write_table(table, file)
    empty = bench.file("b.parquet", b"")

    bench.stage(file, empty, format="parquet", event_time=EventTime("column", "at"))

    read = pq.ParquetFile(bench.lake / bench.staged.files[0].path).read().to_pylist()
    assert [(row["line"], row["x.y"], row["_headgate"]["line"]) for row in read] == [
        ("a", 1, 1),
        ("c", 3, 3),
    ]
    assert bench.kinds() == {"data": 2, "dead": 1}
    rows = bench.stage(file, format="parquet", event_time=EventTime("column", "at"), land_as="json")
    assert [row["kind"] for row in rows] == ["data", "dead", "data"]


def test_columns_of_a_source_that_are_called_like_ours_are_kept_or_refused(
    bench: Bench, tmp_path: Path
) -> None:
    def written(name: str) -> Path:
        file = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"at": [AT_MS], name: ["theirs"]}), file)
        return file

    at = EventTime("column", "at")
    for name in ("kind", "hour", "label", "partition"):
        bench.stage(written(name), format="parquet", event_time=at)
        (file,) = bench.staged.files
        landed = pq.ParquetFile(bench.lake / file.path).read()
        assert landed.column(name).to_pylist() == ["theirs"]
    for name in ("Shard", "headgate_hour"):
        with pytest.raises(Invalid, match=f"have a column {name}, which is ours"):
            bench.stage(written(name), format="parquet", event_time=at)


@pytest.mark.parametrize("land_as", ["parquet", "json"])
def test_dead_letters_are_judged_anew(bench: Bench, land_as: str) -> None:
    bad = [record(ARRIVAL_MS + 300_001), "{", '{"at":"\\u00e9"}']
    bench.stage(bench.file("a.json", lines(*bad).encode() + b"\xff\n"), land_as=land_as)
    [dead] = [file for file in bench.staged.files if file.kind == "dead"]

    letters = InputFile("dead-0", 1, str(bench.lake / dead.path), 1, ARRIVAL_MS + HOUR_MS)
    job = Job(shape(format="dead-json"), bench.folder(), (ShardInput("0-1", (letters,), {}),))
    rows = bench.run(job)

    assert sorted(verdicts(rows), key=str) == [
        ("data", None), ("dead", "bad event time"), ("dead", "bad json"), ("dead", "not utf-8"),
    ]  # fmt: skip
    assert sorted(row["line"] for row in rows) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("how", "told"),
    [
        (EventTime("sql", "no_such_column + 1"), "no_such_column"),
        (EventTime("sql", "((("), r"\(\(\("),
        (EventTime("json", "$.at", "text", "QQQQQQQ"), "QQQQQQQ"),
        (EventTime("json", "at"), "is no path"),
        (EventTime("column", "at"), "csv or parquet"),
    ],
)
def test_a_bad_expression_is_invalid_and_named(bench: Bench, how: EventTime, told: str) -> None:
    with pytest.raises(Invalid, match=told):
        bench.stage(bench.file("a.json", lines(record("x"))), event_time=how)


def test_a_job_that_fails_says_why_in_one_line(bench: Bench) -> None:
    file = bench.file("a.json", lines(record(AT_MS)))
    how = EventTime("sql", "cast(value as int)")
    with pytest.raises(JobFailed, match="CAST_INVALID_INPUT") as caught:
        bench.stage(file, event_time=how)
    assert "\n" not in str(caught.value)

    gone = InputFile("lane-0", 1, str(file) + ".gone", 5, ARRIVAL_MS)
    with pytest.raises((JobFailed, Invalid), match="gone"):
        bench.run(Job(shape(), bench.folder(), (ShardInput("0-1", (gone,), {}),)))


def test_a_folder_is_used_once(bench: Bench) -> None:
    job = Job(
        shape(), bench.folder(),
        (ShardInput("0-1", inputs(bench.file("a.json", lines(record(AT_MS)))), {}),),
    )  # fmt: skip
    bench.run(job)
    with pytest.raises(JobFailed, match="already exists"):
        bench.run(job)


def test_two_jobs_at_once_do_not_disturb_each_other(bench: Bench) -> None:
    files = [
        bench.file(f"{n}.json", lines(*(record(AT_MS, n=i) for i in range(20_000))))
        for n in range(2)
    ]
    jobs = [
        Job(shape(), bench.folder(), (ShardInput(f"{n}-1", inputs(file), {}),))
        for n, file in enumerate(files)
    ]
    running = [in_background(bench.engine.stage, job) for job in jobs]
    for n, one in enumerate(running):
        staged = one.result(PATIENCE_S)
        assert sum(file.rows for file in staged.files) == 20_000
        assert {file.label for file in staged.files} == {f"{n}-1"}


def test_settings_that_would_split_a_file_are_refused(tmp_path: Path) -> None:
    settings = SparkSettings(conf={"spark.sql.files.maxPartitionBytes": "1000"})
    with pytest.raises(Invalid, match="maxPartitionBytes"):
        SparkEngine(settings, f"file://{tmp_path}", {})


def test_a_lake_of_any_name_is_staged_in(bench: Bench, tmp_path: Path) -> None:
    lake = tmp_path / "my [lake] {1}% ü"
    lake.mkdir()
    other = SparkEngine(SparkSettings(), f"file://{lake}", {"files": FilesReader()})
    own = Bench(other, lake, tmp_path)
    rows = own.stage(own.file("a.json", lines(record(AT_MS))))
    assert verdicts(rows) == [("data", None)]
    other.close()  # the session belongs to another: it goes on
    assert bench.stage(bench.file("b.json", lines(record(AT_MS))))


CHILD = """
import os, signal, subprocess, sys
from pathlib import Path
from headgate.errors import Unavailable
from headgate.engine import Job, ShardInput, SparkSettings
from headgate.engine.spark import SparkEngine
from headgate.sources.spark import FilesReader
from tests.spark import Bench, shape, inputs, AT_MS

place = Path(sys.argv[1])
engine = SparkEngine(SparkSettings(master="local[1]"), f"file://{place}", {"files": FilesReader()})
bench = Bench(engine, place, place / "in")
file = bench.file("a.json", '{"at":%d}\\n' % AT_MS)
print(len(bench.stage(file)), flush=True)
found = subprocess.run(["pgrep", "-P", str(os.getpid()), "java"], capture_output=True, text=True)
os.kill(int(found.stdout.split()[0]), signal.SIGKILL)
try:
    bench.stage(file)
    print("no error", flush=True)
except Unavailable as error:
    print(f"unavailable: {error}", flush=True)
print(len(bench.stage(file)), flush=True)
engine.close()
engine.close()
"""


def run_apart(program: str, place: Path) -> subprocess.CompletedProcess[str]:
    """With a driver of its own, which may die."""
    return subprocess.run(
        [sys.executable, "-c", program, str(place)],
        capture_output=True, text=True, timeout=240, cwd=Path(__file__).parents[2], check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_a_killed_java_process_costs_one_job_only(tmp_path: Path) -> None:
    told = run_apart(CHILD, tmp_path)
    said = told.stdout.splitlines()
    assert said[0] == "1", told.stderr
    assert said[1].startswith("unavailable: stream orders: "), told.stderr
    assert said[2:] == ["1"], told.stderr


GIVEN_UP = """
import sys
from pathlib import Path
from headgate.errors import Unavailable
from headgate.engine import SparkSettings
from headgate.engine.gateway.spark import give_up, own_context
from headgate.engine.spark import SparkEngine
from headgate.engine.watch.spark import stages_now
from headgate.sources.spark import FilesReader
from tests.spark import Bench, AT_MS

class Stalls(FilesReader):
    acts = []

    def frame(self, session, job):
        frame = super().frame(session, job)
        while self.acts:
            self.acts.pop()("no task ran for an age")
        return frame

place = Path(sys.argv[1])
print(stages_now(), flush=True)  # and no driver is started for it
engine = SparkEngine(SparkSettings(master="local[1]"), f"file://{place}", {"files": Stalls()})
bench = Bench(engine, place, place / "in")
file = bench.file("a.json", '{"at":%d}\\n' % AT_MS)
print(len(bench.stage(file)), stages_now(), own_context() is not None, flush=True)
Stalls.acts.append(give_up)
try:
    bench.stage(file)
    print("no error", flush=True)
except Unavailable as error:
    print(error, flush=True)
print(len(bench.stage(file)), flush=True)
give_up("between two jobs")
print(own_context(), len(bench.stage(file)), flush=True)
engine.close()
"""


@pytest.mark.slow
def test_a_session_that_is_given_up_costs_one_job_at_most(tmp_path: Path) -> None:
    told = run_apart(GIVEN_UP, tmp_path)
    assert told.stdout.splitlines() == [
        "()",
        "1 () True",
        "stream orders: the Spark job failed: its session is gone (no task ran for an age), "
        "nothing was landed; next: try again, another one is started",
        "1",
        "None 1",
    ], told.stderr


def test_a_node_without_java_waits_and_does_not_blame_the_shard(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.stage(bench.file("a.json", lines(record(AT_MS))))  # others go on with theirs
    monkeypatch.setattr("pyspark.sql.SparkSession._instantiatedSession", None)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")

    with pytest.raises(
        Unavailable, match=r"no java was found in JAVA_HOME=/nowhere.*unset JAVA_HOME"
    ):
        start(SparkSettings())


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (SparkRuntimeException("[INVALID_HANDLE.SESSION_NOT_FOUND] the handle is invalid"), True),
        (RetriesExceeded("knocked in vain"), True),
        (UnknownException("Job 3 cancelled because SparkContext was shut down"), True),
        (UnknownException("Cannot call methods on a stopped SparkContext."), True),
        (ConnectionRefusedError("nobody is there"), True),
        (SparkRuntimeException("[CAST_INVALID_INPUT] the value 'x' is no number"), False),
    ],
)
def test_a_session_that_is_lost_is_told_from_a_job_that_fails(
    error: Exception, expected: bool
) -> None:
    assert is_gone(error) is expected


def test_a_remote_that_is_no_connect_server_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"sc://HOST:PORT; next: correct it, or leave it out"):
        SparkEngine(SparkSettings(remote="local[1]"), f"file://{tmp_path}", {})


def test_spark_logs_as_usual_for_whoever_sets_a_level_or_a_file() -> None:
    options = "spark.driver.extraJavaOptions"
    ours = quieted({options: "-Xss4m"})[options]
    assert ours.startswith("-Dlog4j2.configurationFile=file:///")
    assert ours.endswith("/log4j2.properties -Xss4m")
    for theirs in ({"spark.log.level": "INFO"}, {options: "-Dlog4j2.configurationFile=x"}):
        assert quieted(theirs) == theirs


CUT_OFF = """
import gzip, sys
from pathlib import Path
from headgate.engine import SparkSettings
from headgate.engine.failure import JobFailed
from headgate.engine.spark import SparkEngine
from headgate.sources.spark import FilesReader
from tests.spark import Bench, AT_MS

place = Path(sys.argv[1])
engine = SparkEngine(SparkSettings(master="local[1]"), f"file://{place}", {"files": FilesReader()})
bench = Bench(engine, place, place / "in")
packed = gzip.compress(b"".join(b'{"at":%d}\\n' % (AT_MS + n) for n in range(9_000)))
try:
    bench.stage(bench.file("a b.json.gz", packed[:-100]))
except JobFailed as error:
    print(error, flush=True)
engine.close()
"""


@pytest.mark.slow
def test_a_file_that_is_cut_off_is_named_and_java_has_no_pages_to_say(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", CUT_OFF, str(tmp_path)],
        capture_output=True, text=True, timeout=240, cwd=Path(__file__).parents[2], check=False,
    )  # fmt: skip
    place = f"{tmp_path}/in/a b.json.gz"
    assert f"the Spark job failed: {place} is cut off (EOFException: " in told.stdout, told.stderr
    assert told.stdout.endswith(f"or go without it: rm '{place}'\n")
    assert [line for line in told.stderr.splitlines() if "incubator" not in line] == []
