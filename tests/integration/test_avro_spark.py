"""Avro records on real Spark: which become rows, by which time, and which are dead letters."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.engine import AvroCoding, EventTime, InputFile, ShardInput, SparkSettings
from headgate.engine import spark as engine_spark
from headgate.engine.spark import Reader, SparkEngine
from headgate.errors import Invalid, Unavailable
from headgate.sources.kafka.registry import KnownSchemas, Registry
from headgate.sources.spark import FilesReader
from tests.integration.test_engine_log_spark import READER, LogBench, Sent, ms_of, verdicts
from tests.kafka.avro import encoded, frame, framed
from tests.servers.registry import RegistryServer
from tests.spark import ARRIVAL_MS, AT_MS, HOUR_MS, USES_SPARK

pytestmark = USES_SPARK

PLAIN = AvroCoding("file", is_framed=False, is_by_id=False)
FRAMED = AvroCoding("file", is_framed=True, is_by_id=False)
BY_ID = AvroCoding("registry", is_framed=True, is_by_id=True)
AT = EventTime("avro", "at")


def schema_of(at: Any, *more: dict[str, Any]) -> dict[str, Any]:
    fields = [{"name": "note", "type": "string"}, {"name": "at", "type": at}, *more]
    return {"type": "record", "name": "shop.Order", "fields": fields}


MILLIS = schema_of("long")
SECONDS = schema_of(["null", "int"], {"name": "late", "type": "boolean"})
LOGICAL = schema_of({"type": "long", "logicalType": "timestamp-micros"})
TEXT = schema_of("string")
TIMELESS = {"type": "record", "name": "Other", "fields": [{"name": "x", "type": "int"}]}
NOTHING = {"type": "record", "name": "Nothing", "fields": []}


@pytest.fixture(scope="module")
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as server:
        for number, schema in enumerate((MILLIS, LOGICAL, TEXT, TIMELESS, NOTHING), start=1):
            server.register(number, schema)
        yield server


@pytest.fixture
def bench(tmp_path: Path, server: RegistryServer) -> Iterator[LogBench]:
    server.asked.clear()
    readers: dict[str, Reader] = {"files": FilesReader(), "kafka": READER}
    schemas = KnownSchemas({"file": json.dumps(MILLIS)}, {"registry": Registry(server.url)})
    settings = SparkSettings(master="local[2]", needs=("kafka", "avro"))  # a session serves all
    lake = tmp_path / "lake"
    lake.mkdir()
    yield LogBench(SparkEngine(settings, f"file://{lake}", readers, schemas), lake, tmp_path)
    server.answer = None


def stage(
    bench: LogBench, *values: bytes | None, coding: AvroCoding = PLAIN, **changed: Any
) -> list[dict[str, Any]]:
    told = {"format": "avro", "avro": coding, "event_time": AT, **changed}
    return bench.stage(*(Sent(n, value) for n, value in enumerate(values)), **told)


def order(at_ms: int, note: str = "n") -> bytes:
    return encoded(MILLIS, {"note": note, "at": at_ms})


def test_a_plain_record_lands_as_it_came_in_the_hour_of_its_field(bench: LogBench) -> None:
    good, late = order(AT_MS), order(AT_MS - HOUR_MS, "x" * 50)

    rows = stage(bench, good, late, None, good[:-1], b"", b"\xff" * 30, order(2**61))

    assert verdicts(rows) == [
        ("data", None),
        ("data", None),
        ("data", None),  # a tombstone, by the time of its log
        *[("dead", "bad avro")] * 3,
        ("dead", "bad event time"),
    ]
    assert [row["value"] for row in rows[:4]] == [good, late, None, good[:-1]]
    assert [ms_of(row) for row in rows[:2]] == [AT_MS, AT_MS - HOUR_MS]
    assert "schema_id" not in rows[0]


def test_a_record_that_is_cut_off_anywhere_is_bad(bench: LogBench) -> None:
    whole = order(AT_MS, "some words")
    rows = stage(bench, *(whole[:length] for length in range(len(whole) + 1)))
    assert verdicts(rows) == [*[("dead", "bad avro")] * len(whole), ("data", None)]


def test_a_frame_is_needed_and_its_id_kept_where_one_file_has_the_schema(bench: LogBench) -> None:
    body = order(AT_MS)
    rows = stage(bench, frame(258) + body, body, b"\x01" + frame(258)[1:] + body, coding=FRAMED)
    assert verdicts(rows) == [("data", None), *[("dead", "bad avro")] * 2]
    assert [row["schema_id"] for row in rows] == [258, None, None]
    assert rows[0]["value"] == frame(258) + body


def test_each_id_is_decoded_by_its_own_schema(bench: LogBench, server: RegistryServer) -> None:
    micros = (AT_MS + 5) * 1_000
    iso = EventTime("avro", "at", "text")
    values = [
        framed(1, MILLIS, {"note": "a", "at": AT_MS + 1}),
        framed(2, LOGICAL, {"note": "b", "at": micros}),
        framed(4, TIMELESS, {"x": 1}),
        framed(5, NOTHING, {}),
        framed(1, MILLIS, {"note": "c", "at": AT_MS + 2}),
    ]

    rows = stage(bench, *values, coding=BY_ID)

    assert verdicts(rows) == [
        *[("data", None)] * 2,
        *[("dead", "no event time")] * 2,
        ("data", None),
    ]
    assert [row["schema_id"] for row in rows] == [1, 2, 4, 5, 1]
    times = [ms_of(row) for row in rows if row["kind"] == "data"]
    assert times == [AT_MS + 1, AT_MS + 5, AT_MS + 2]
    assert sorted(server.asked) == [1, 2, 4, 5]

    text = framed(3, TEXT, {"note": "d", "at": "2026-11-01T13:00:00.007Z"})
    bad = framed(3, TEXT, {"note": "d", "at": "soon"})
    rows = stage(bench, text, bad, values[1], coding=BY_ID, event_time=iso)

    assert verdicts(rows) == [("data", None), ("dead", "bad event time"), ("data", None)]
    assert [ms_of(rows[0]), ms_of(rows[2])] == [AT_MS + 7, AT_MS + 5]
    assert sorted(server.asked) == [1, 2, 3, 4, 5]  # what is known is not asked for again

    stage(bench, values[0], coding=BY_ID, stream="others")

    assert bench.engine._ids == {
        ("orders", "registry"): {1, 2, 3, 4, 5},
        ("others", "registry"): {1},  # no column for what only others have
    }


def test_a_schema_that_shows_up_later_costs_a_second_look_and_no_record(
    bench: LogBench, server: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_spark, "RECORDS_LOOKED_AT", 1)
    values = [framed(1, MILLIS, {"note": "", "at": AT_MS + n}) for n in range(5)]
    values += [framed(2, LOGICAL, {"note": "", "at": (AT_MS + 9) * 1_000}), frame(99) + b"x"]

    rows = stage(bench, *values, coding=BY_ID)

    assert verdicts(rows) == [*[("data", None)] * 6, ("dead", "unknown schema")]
    assert rows[-1]["schema_id"] == 99
    assert rows[-1]["value"] == frame(99) + b"x"
    assert sorted(server.asked) == [1, 2, 99]
    assert sum(one.rows for one in bench.staged.tallies) == 7


@pytest.mark.parametrize("looked_at", [1, 1_000])
def test_a_registry_that_is_away_makes_no_dead_letter(
    bench: LogBench, server: RegistryServer, monkeypatch: pytest.MonkeyPatch, looked_at: int
) -> None:
    monkeypatch.setattr(engine_spark, "RECORDS_LOOKED_AT", looked_at)
    good = framed(1, MILLIS, {"note": "", "at": AT_MS})
    assert verdicts(stage(bench, good, coding=BY_ID)) == [("data", None)]
    server.answer = (503, b"away")

    with pytest.raises(Unavailable, match="none became a dead letter"):
        stage(bench, good, framed(2, LOGICAL, {"note": "", "at": AT_MS * 1_000}), coding=BY_ID)
    assert verdicts(stage(bench, good, coding=BY_ID)) == [("data", None)]  # what is known is enough


def test_records_that_have_no_such_frame_stop_the_stream(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_spark, "IDS_MAX", 3)
    monkeypatch.setattr(engine_spark, "RECORDS_LOOKED_AT", 1)
    with pytest.raises(Invalid, match="more than 3 ids of schemas that nobody knows"):
        stage(bench, *(frame(number) + b"x" for number in range(100, 106)), coding=BY_ID)


def test_the_time_may_come_from_the_log_and_the_record_is_still_looked_at(bench: LogBench) -> None:
    by_log = EventTime("kafka", "timestamp")
    rows = stage(bench, order(7), order(7)[:-1], event_time=by_log)
    assert verdicts(rows) == [("data", None), ("dead", "bad avro")]


def test_letters_of_an_unknown_schema_are_driven_in_when_it_is_known(
    bench: LogBench, server: RegistryServer
) -> None:
    letter = framed(77, LOGICAL, {"note": "", "at": AT_MS * 1_000})
    (row,) = stage(bench, letter, coding=BY_ID)
    assert row["reason"] == "unknown schema"
    (dead,) = [bench.lake / one.path for one in bench.staged.files]
    server.register(77, LOGICAL)

    file = InputFile("again-0", 4, str(dead), dead.stat().st_size, ARRIVAL_MS)
    told: dict[str, Any] = {"format": "dead-avro", "avro": BY_ID, "event_time": AT}
    rows = bench.run([ShardInput("0-1", (file,), {})], reader="files", **told)

    del server.schemas[77]
    assert verdicts(rows) == [("data", None)]
    assert (rows[0]["value"], rows[0]["schema_id"], ms_of(rows[0])) == (letter, 77, AT_MS)
