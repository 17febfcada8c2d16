"""Records that land as declared columns, on real Spark; and those that do not fit."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headgate.engine import AvroCoding, EventTime, InputFile, ShardInput, SparkSettings
from headgate.engine.containers import values_of
from headgate.engine.footers import values_of as parquet_values
from headgate.engine.spark import Reader, SparkEngine
from headgate.engine.verdict import UNFIT
from headgate.settings.ddl import columns_of
from headgate.sources.kafka.registry import KnownSchemas, Registry
from headgate.sources.spark import FilesReader
from tests.integration.test_engine_log_spark import READER, LogBench, Sent, verdicts
from tests.kafka.avro import framed
from tests.servers.registry import RegistryServer
from tests.spark import ARRIVAL_MS, AT_MS, USES_SPARK

pytestmark = USES_SPARK

OF_JSON = columns_of(
    "id BIGINT, at BIGINT, note STRING, price DECIMAL(9, 2), seen TIMESTAMP, "
    "deep STRUCT<a: INT, tags: ARRAY<STRING>>"
)
OF_AVRO = columns_of("id BIGINT, at TIMESTAMP, note STRING, small SMALLINT, tags ARRAY<STRING>")
BY_ID = AvroCoding("registry", is_framed=True, is_by_id=True)


def schema_of(**fields: Any) -> dict[str, Any]:
    told = [{"name": name, "type": kind} for name, kind in fields.items()]
    return {"type": "record", "name": "Order", "fields": told}


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
TAGS = {"type": "array", "items": "string"}
FIRST = schema_of(id="int", at=MILLIS, note=["null", "string"])
SECOND = schema_of(tags=TAGS, at=MICROS, small="int", other="double", id="long")
MISFIT = schema_of(id="long", at=MILLIS, note="long", tags="string")


@pytest.fixture(scope="module")
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as server:
        for number, schema in enumerate((FIRST, SECOND, MISFIT), start=1):
            server.register(number, schema)
        yield server


@pytest.fixture
def bench(tmp_path: Path, server: RegistryServer) -> LogBench:
    readers: dict[str, Reader] = {"files": FilesReader(), "kafka": READER}
    schemas = KnownSchemas({}, {"registry": Registry(server.url)})
    settings = SparkSettings(master="local[2]", needs=("kafka", "avro"))  # a session serves all
    lake = tmp_path / "lake"
    lake.mkdir()
    return LogBench(SparkEngine(settings, f"file://{lake}", readers, schemas), lake, tmp_path)


def again(bench: LogBench, **told: Any) -> list[dict[str, Any]]:
    """The letters that were just staged, driven in."""
    files = [bench.lake / one.path for one in bench.staged.files if one.kind == "dead"]
    inputs = tuple(
        InputFile("again-0", n, str(one), one.stat().st_size, ARRIVAL_MS)
        for n, one in enumerate(files)
    )
    return bench.run([ShardInput("0-1", inputs, {})], reader="files", **told)


def test_json_becomes_columns_and_what_does_not_fit_stays_as_it_came(bench: LogBench) -> None:
    fitting = {
        "id": 2**62, "at": AT_MS, "note": "a \u2603", "price": 7.25, "unknown": {"x": 1},
        "seen": "2026-11-01T13:00:00Z", "deep": {"a": 1, "tags": ["x", None]},
    }  # fmt: skip
    cases: list[tuple[bytes | None, str, str | None]] = [
        (json.dumps(fitting).encode(), "data", None),
        (json.dumps({"at": AT_MS}).encode(), "data", None),
        (json.dumps({"at": AT_MS, "note": {"a": 1}, "id": None}).encode(), "data", None),
        (None, "data", None),
        (json.dumps({"at": AT_MS, "id": "seven"}).encode(), "dead", UNFIT),
        (json.dumps({"at": AT_MS, "id": 1.5}).encode(), "dead", UNFIT),
        (json.dumps({"at": AT_MS, "id": 2**63}).encode(), "dead", UNFIT),
        (json.dumps({"at": AT_MS, "id": [1]}).encode(), "dead", UNFIT),
        (json.dumps({"at": AT_MS, "seen": "soon"}).encode(), "dead", UNFIT),
        (json.dumps({"at": AT_MS, "deep": {"a": "x"}}).encode(), "dead", UNFIT),
        (json.dumps({"at": AT_MS, "deep": 7}).encode(), "dead", UNFIT),
        (json.dumps({"at": AT_MS, "price": 12345678.5}).encode(), "dead", UNFIT),
        (b'{"at":', "dead", "bad json"),
        (b"\xff", "dead", "not utf-8"),
        (json.dumps({"id": 7}).encode(), "dead", "no event time"),
    ]

    rows = bench.stage(*(Sent(n, raw) for n, (raw, _, _) in enumerate(cases)), declared=OF_JSON)

    assert verdicts(rows) == [(kind, reason) for _, kind, reason in cases]
    assert [row["raw"] for row in rows] == [raw if k == "dead" else None for raw, k, _ in cases]
    assert "value" not in rows[0]
    own = [column for column, _ in OF_JSON]
    assert [rows[0][column] for column in own] == [
        *(2**62, AT_MS, "a \u2603", Decimal("7.25"), datetime(2026, 11, 1, 13, tzinfo=UTC)),
        {"a": 1, "tags": ["x", None]},
    ]
    assert [rows[1][column] for column in own] == [None, AT_MS, None, None, None, None]
    assert rows[2]["note"] == '{"a":1}'

    wider = columns_of("id STRING, at BIGINT")
    driven = again(bench, format="dead-json", declared=wider)

    assert [(one["kind"], one["id"]) for one in driven][:4] == [
        *(("data", "seven"), ("data", "1.5"), ("data", str(2**63)), ("data", "[1]")),
    ]
    assert verdicts(driven)[8:] == [
        *(("dead", "bad json"), ("dead", "not utf-8"), ("dead", "no event time")),
    ]


@pytest.mark.parametrize("land_as", ["parquet", "avro"])
def test_avro_of_several_schemas_becomes_the_same_columns(bench: LogBench, land_as: str) -> None:
    at = datetime.fromtimestamp(AT_MS / 1000, UTC)
    cases: list[tuple[bytes, str, str | None]] = [
        (framed(1, FIRST, {"id": 7, "at": at, "note": "a"}), "data", None),
        (framed(1, FIRST, {"id": 8, "at": at, "note": None}), "data", None),
        (
            framed(2, SECOND, {"id": 9, "at": at, "tags": ["x"], "small": 5, "other": 0.5}),
            "data",
            None,
        ),
        (
            framed(2, SECOND, {"id": 9, "at": at, "tags": [], "small": 40_000, "other": 0.5}),
            "dead",
            UNFIT,
        ),
        (framed(3, MISFIT, {"id": 9, "at": at, "note": 1, "tags": "x"}), "dead", UNFIT),
        (framed(1, FIRST, {"id": 7, "at": at, "note": "a"})[:-1], "dead", "bad avro"),
    ]
    told: dict[str, Any] = {
        "format": "avro", "avro": BY_ID, "declared": OF_AVRO, "land_as": land_as,
        "event_time": EventTime("avro", "at"),
    }  # fmt: skip

    bench.keep(*(Sent(n, raw) for n, (raw, _, _) in enumerate(cases)), **told)

    rows = rows_of(bench)
    assert [(row["_headgate"]["reason"]) for row in rows] == [reason for _, _, reason in cases]
    own = [column for column, _ in OF_AVRO]
    assert [[row[column] for column in own] for row in rows[:3]] == [
        [7, at, "a", None, None],
        [8, at, None, None, None],
        [9, at, None, 5, ["x"]],
    ]
    assert [row["_headgate"]["raw"] for row in rows[3:]] == [raw for raw, _, _ in cases[3:]]
    assert [row["_headgate"]["schema_id"] for row in rows] == [1, 1, 2, 2, 3, 1]


def rows_of(bench: LogBench) -> list[dict[str, Any]]:
    """By offset, of any format that has columns."""
    found = list[dict[str, Any]]()
    for one in bench.staged.files:
        path = bench.lake / one.path
        read = parquet_values if path.suffix == ".parquet" else values_of
        found += read(str(path))
    return sorted(found, key=lambda row: int(row["_headgate"]["number"]))
