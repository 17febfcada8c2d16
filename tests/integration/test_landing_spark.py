"""Real Spark lands what people drop: good records once, bad ones with the reason, whatever the
files and streams are called.

Many streams share a few runs of one App; each test looks at its own.
"""

import gzip
import json
import random
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate import RunResult
from headgate.periods import HOUR_MS
from tests.integration.landings import (
    MINUTE_MS,
    Yard,
    lines_of,
    now_ms,
    orders,
    sockets_to_java,
    whole_hour,
)
from tests.spark import USES_SPARK

__all__ = ["sockets_to_java"]

pytestmark = USES_SPARK

LONG = 50_000_000
NOISE = random.Random(5).randbytes(20_000)
HOSTILE_NAMES = (
    "with space.json",
    "100%.json",
    "100%25.json",
    'it\'s "quoted".json',
    "[a-z]*.json",
    "{a,b}?.json",
    "back\\slash.json",
    "at 2026-11-01T13:00:00.json",
    "semi;colon/a:b=c.json",
    "#hash&more.json",
    "данные.json",
    "台北 🎈.json",
    "e\u0301.json",
    "new\nline.json",
    "hour=3/%2F/inner.json",
)
REASONS = (
    "bad json",
    "no event time",
    "bad event time",
    "bad event time",
    "ahead",
    "too long",
    "not utf-8",
)
ALIKE = ("a:b", "a b", "a_b", "заказы", "日本 50%")


@dataclass(frozen=True, slots=True)
class Harvest:
    yard: Yard
    first: RunResult
    second: RunResult
    hour_ms: int  # three hours ago


@pytest.fixture(scope="module")
def harvest(tmp_path_factory: pytest.TempPathFactory) -> Harvest:
    yard = Yard(tmp_path_factory.mktemp("harvest"))
    hour_ms = whole_hour(3)
    drop_first(yard, hour_ms)
    csv_time = {"column": "at"}
    app = yard.app(
        yard.stream("orders", record_size_max="2KB"),
        yard.stream("odd"),
        yard.stream("long"),
        yard.stream("csv", csv_time, "csv", land_as="json"),
        yard.stream("bare", csv_time, "csv", {"columns": ["id", "at", "note"]}),
        yard.stream("text", {"regex": r"at=(\d+)", "unit": "s"}, "text", land_as="text"),
        yard.stream("json", land_as="json"),
        yard.stream("tables", {"column": "when"}, "parquet"),
        yard.stream("tables_json", {"column": "at"}, "parquet", land_as="json"),
        yard.stream("names", source={"lanes": 3}),
        *(yard.stream(name) for name in ALIKE),
        yard.stream("moved", source={"after_read": "move", "move_to": str(yard.root / "done")}),
        yard.stream("deleted", source={"after_read": "delete"}),
    )
    first = app.run(until="idle")
    drop_second(yard, hour_ms)
    second = app.run(until="idle")
    found = app.audit(is_deep=True)
    assert (found.findings, found.remarks, yard.staging()) == ((), (), [])
    return Harvest(yard, first, second, hour_ms)


def drop_first(yard: Yard, hour_ms: int) -> None:
    good = orders(range(40), hour_ms, 3 * MINUTE_MS)  # over two hours
    yard.drop("orders", "a.json", good[:20])
    yard.drop("orders", "b.json", b"\n".join(spoiled(hour_ms)) + b"\n")
    yard.drop("orders", "c.json", good[20:])
    yard.drop("odd", "0-empty.json", b"")
    yard.drop("odd", "1-noise.json", NOISE)
    yard.drop("odd", "2-bom.json", b"\xef\xbb\xbf" + lines_of(orders([1, 2], hour_ms)))
    crlf = lines_of(orders([3, 4], hour_ms)).replace(b"\n", b"\r\n")
    yard.drop("odd", "3-crlf.json", crlf + b"\r\n")
    yard.drop("odd", "4-no-end.json", lines_of(orders([5, 6], hour_ms)).rstrip(b"\n"))
    yard.drop("odd", "5-packed.json.gz", gzip.compress(lines_of(orders([7, 8], hour_ms))))
    yard.drop("odd", "6-packed-empty.json.gz", gzip.compress(b""))
    yard.drop("odd", "7-blank.json", b"\n  \n\n" + lines_of(orders([9], hour_ms)))
    yard.drop("long", "long.json", long_line(hour_ms) + b"\n" + lines_of(orders([2], hour_ms)))
    header = b"id,at,note\n"
    rows = f'1,{hour_ms},plain\n2,{hour_ms},"with, comma"\n3,,none\n4,{hour_ms}\n'.encode()
    yard.drop("csv", "with-header.csv", header + rows)
    yard.drop("bare", "without-header.csv", rows)
    seconds = hour_ms // 1000
    yard.drop("text", "a.log", f"at={seconds} first\nno time at all\nat={seconds} last".encode())
    yard.drop("json", "a.json", [{"id": 1, "at": hour_ms, "of": {"x": [1, None]}}, {"id": 2}])
    when = pa.array([hour_ms * 1000, None], pa.timestamp("us", "UTC"))
    table = pa.table({"id": [1, 2], "when": when})
    pq.write_table(table, yard.folder("tables") / "a.parquet")
    table = pa.table({"id": [1, 2], "at": [hour_ms, hour_ms], "name": ["x", None]})
    pq.write_table(table, yard.folder("tables_json") / "a.parquet")
    for n, name in enumerate(HOSTILE_NAMES):
        yard.drop("names", name, orders([n], hour_ms))
    for name in ALIKE:
        yard.drop(name, "same.json", [{"id": 1, "at": hour_ms, "stream": name}])
    for name in ("moved", "deleted"):
        yard.drop(name, "a.json", orders([1], hour_ms))
        yard.drop(name, "sub folder/a.json", orders([2], hour_ms))


def spoiled(hour_ms: int) -> list[bytes]:
    """Line by line, as REASONS says."""
    return [
        b'{"id": 100, "at": ',
        b'{"id": 101}',
        b'{"id": 102, "at": "yesterday"}',
        b'{"id": 103, "at": 99999999999999999}',
        b'{"id": 104, "at": %d}' % (hour_ms + 24 * HOUR_MS),
        b'{"id": 105, "at": %d, "fill": "%s"}' % (hour_ms, b"x" * 2_100),
        b'{"id": 106, "at": %d, "name": "\xff\xfe"}' % hour_ms,
    ]


def long_line(hour_ms: int) -> bytes:
    return b'{"id": 1, "at": %d, "fill": "%s"}' % (hour_ms, b"x" * LONG)


def drop_second(yard: Yard, hour_ms: int) -> None:
    yard.drop("orders", "late.json", orders([200, 201], hour_ms))
    yard.drop("orders", "now.json", orders([202], now_ms()))
    yard.drop("csv", "with-header.csv", f"id,at,note\n5,{now_ms()},again\n".encode())
    yard.drop("moved", "a.json", orders([3, 4], now_ms()))
    yard.drop("deleted", "a.json", orders([3, 4], now_ms()))


def test_g1_each_record_lands_once_in_the_folder_of_its_hour(harvest: Harvest) -> None:
    rows = harvest.yard.rows("orders")

    assert rows.ids() == Counter([*range(40), 200, 201, 202])
    in_first = [row for row in rows.data if row.value["id"] < 40]
    assert Counter(row.hour for row in in_first) == {
        hour_folder(harvest.hour_ms): 20,
        hour_folder(harvest.hour_ms + HOUR_MS): 20,
    }
    assert all(row.hour == hour_folder(row.value["at"]) for row in rows.data)
    assert {row.place.removeprefix(row.hour) for row in rows.data} == {"/orders/data"}
    result = harvest.first.streams["orders"]
    assert (result.landed, result.late, result.dead, result.gaps) == (40, 0, len(REASONS), 0)
    assert harvest.first.is_idle
    assert harvest.second.is_idle


def test_g1_each_row_says_from_which_line_of_which_file_it_is(harvest: Harvest) -> None:
    rows = harvest.yard.rows("orders")

    places = {row.value["id"]: row.position for row in rows.data}
    assert [places[n] for n in (0, 19)] == [("lane-0", 0, 1), ("lane-0", 0, 20)]
    assert [places[n] for n in (20, 39)] == [("lane-0", 2, 1), ("lane-0", 2, 20)]
    every = [row.position for row in (*rows.data, *rows.late, *rows.dead)]
    assert len(every) == len(set(every))


def test_records_older_than_the_watermark_are_diverted(harvest: Harvest) -> None:
    rows = harvest.yard.rows("orders")

    assert rows.ids("late") == Counter([200, 201])
    assert {row.place for row in rows.late} == {f"_late/{hour_folder(harvest.hour_ms)}/orders/data"}
    assert harvest.second.streams["orders"].late == 2


def test_q10_what_cannot_be_landed_is_a_dead_letter_with_reason_place_and_raw_record(
    harvest: Harvest,
) -> None:
    dead = sorted(harvest.yard.rows("orders").dead, key=lambda row: row.line)

    wanted = spoiled(harvest.hour_ms)
    assert [(row.reason, row.raw) for row in dead] == list(zip(REASONS, wanted, strict=True))
    assert [row.position for row in dead] == [("lane-0", 1, n) for n in range(1, len(wanted) + 1)]


def test_files_of_nothing_noise_and_other_line_ends_are_read_line_by_line(
    harvest: Harvest,
) -> None:
    rows = harvest.yard.rows("odd")

    assert rows.ids() == Counter(range(1, 10))
    noise = {n: line for n, line in enumerate(NOISE.split(b"\n"), start=1) if line.strip()}
    found = {row.line: row.raw for row in rows.dead}
    assert found == {n: line.removesuffix(b"\r") for n, line in noise.items()}
    assert {row.number for row in rows.dead} == {1}
    assert {row.reason for row in rows.dead} <= {"not utf-8", "bad json"}


def test_a_line_of_fifty_megabytes_is_a_dead_letter_as_it_was(harvest: Harvest) -> None:
    rows = harvest.yard.rows("long")

    (letter,) = rows.dead
    assert (letter.reason, letter.line) == ("too long", 1)
    assert letter.raw == long_line(harvest.hour_ms)
    assert rows.ids() == Counter([2])


def test_csv_with_and_without_a_header_lands_by_the_names_of_its_columns(harvest: Harvest) -> None:
    at = str(harvest.hour_ms)
    for stream in ("csv", "bare"):
        rows = harvest.yard.rows(stream)
        values = [value_of(row.value) for row in rows.data]
        assert values[:2] == [
            {"id": "1", "at": at, "note": "plain"},
            {"id": "2", "at": at, "note": "with, comma"},
        ]
        assert rows.reasons == {"no event time": 1, "bad csv": 1}
        assert {row.raw for row in rows.dead} == {b"3,,none", f"4,{at}".encode()}


def test_text_lands_as_text_and_json_as_json(harvest: Harvest) -> None:
    text, lines = harvest.yard.rows("text"), harvest.yard.rows("json")

    seconds = harvest.hour_ms // 1000
    assert [(row.line, row.raw.decode()) for row in text.data] == [
        (1, f"at={seconds} first"),
        (3, f"at={seconds} last"),
    ]
    assert [(row.line, row.raw) for row in text.dead] == [(2, b"no time at all")]
    assert [row.value for row in lines.data] == [
        {"id": 1, "at": harvest.hour_ms, "of": {"x": [1, None]}}
    ]
    assert [(row.reason, row.raw) for row in lines.dead] == [("no event time", b'{"id": 2}')]


def test_parquet_lands_with_its_own_columns(harvest: Harvest) -> None:
    own, as_json = harvest.yard.rows("tables"), harvest.yard.rows("tables_json")

    assert [(row.value["id"], row.line) for row in own.data] == [(1, 1)]
    assert [(row.value["id"], row.reason) for row in own.dead] == [(2, "no event time")]
    assert [row.value for row in as_json.data] == [
        {"id": 1, "at": harvest.hour_ms, "name": "x"},
        {"id": 2, "at": harvest.hour_ms, "name": None},
    ]


def test_files_of_any_name_are_read_once(harvest: Harvest) -> None:
    rows = harvest.yard.rows("names")

    assert rows.ids() == Counter(range(len(HOSTILE_NAMES)))
    assert rows.dead == []


def test_g10_streams_whose_names_are_alike_or_of_any_script_land_apart(harvest: Harvest) -> None:
    places = set()
    for name in ALIKE:
        rows = harvest.yard.rows(name)
        assert [row.value["stream"] for row in rows.data] == [name]
        places.add(rows.data[0].place)
    assert len(places) == len(ALIKE)


def test_the_same_name_with_other_content_is_another_file(harvest: Harvest) -> None:
    again = [row.value for row in harvest.yard.rows("csv").data if row.number == 1]

    assert [value_of(one)["id"] for one in again] == ["5"]


def test_what_was_read_is_kept_moved_or_deleted(harvest: Harvest) -> None:
    yard = harvest.yard

    assert len(list(yard.folder("orders").iterdir())) == 5
    for name in ("moved", "deleted"):
        assert yard.rows(name).ids() == Counter([1, 2, 3, 4])
        assert [path for path in yard.folder(name).rglob("*") if path.is_file()] == []
    moved = [path for path in (yard.root / "done").rglob("*") if path.is_file()]
    assert sorted(path.read_bytes().count(b"\n") for path in moved) == [1, 1, 2]


def value_of(value: Any) -> Any:
    """A csv row that landed as json is a text with an object in it."""
    return json.loads(value) if isinstance(value, str) else value


def hour_folder(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d/%H")
