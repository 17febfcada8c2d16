"""Avro files, written by a library that is none of ours, and broken in all ways."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pytest

from headgate.engine.containers import rows_of, values_of
from headgate.errors import Corrupt, Unavailable

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "topLevelRecord",
    "fields": [
        {"name": "value", "type": ["bytes", "null"]},
        {
            "name": "headers",
            "type": [
                {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "headers",
                        "namespace": "topLevelRecord",
                        "fields": [{"name": "key", "type": ["string", "null"]}],
                    },
                },
                "null",
            ],
        },
        {
            "name": "_headgate",
            "type": {
                "type": "record",
                "name": "_headgate",
                "namespace": "topLevelRecord",
                "fields": [
                    {
                        "name": "event_time",
                        "type": [{"type": "long", "logicalType": "timestamp-micros"}, "null"],
                    },
                    {"name": "number", "type": "long"},
                    {"name": "is_odd", "type": "boolean"},
                    {"name": "share", "type": "double"},
                    {"name": "small", "type": "float"},
                    {"name": "counts", "type": {"type": "map", "values": "int"}},
                ],
            },
        },
    ],
}


def row(number: int) -> dict[str, Any]:
    return {
        "value": None if number % 3 else b"\x00\xff" * number,
        "headers": [{"key": "a"}, {"key": None}] if number % 2 else None,
        "_headgate": {
            "event_time": datetime(2026, 11, 1, 13, 0, 0, number, tzinfo=UTC),
            "number": -number * 10**9,
            "is_odd": bool(number % 2),
            "share": number / 7,
            "small": number / 4,
            "counts": {"x": number},
        },
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "x.avro"


def write(file: Path, rows: int, codec: str = "deflate") -> None:
    with file.open("wb") as content:
        fastavro.writer(
            content, fastavro.parse_schema(SCHEMA), map(row, range(rows)), codec, sync_interval=500
        )


@pytest.mark.parametrize("codec", ["null", "deflate"])
@pytest.mark.parametrize("rows", [0, 1, 300])
def test_rows_are_counted_and_come_as_they_were_written(file: Path, rows: int, codec: str) -> None:
    write(file, rows, codec)
    assert rows_of(str(file)) == rows
    assert list(values_of(str(file))) == [row(number) for number in range(rows)]


def test_a_file_that_is_cut_off_anywhere_is_never_whole(file: Path) -> None:
    """But at the end of a block: there nobody could tell."""
    write(file, 40)
    whole, counts = file.read_bytes(), set[int]()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        with suppress(Corrupt):
            counts.add(rows_of(str(file)))
    assert 40 not in counts
    assert len(counts) < 30


@pytest.mark.parametrize("place", [0, 3, -1, -20])
def test_a_changed_mark_is_noticed(file: Path, place: int) -> None:
    write(file, 40)
    content = bytearray(file.read_bytes())
    content[place] ^= 0xFF
    file.write_bytes(content)
    with pytest.raises(Corrupt):
        list(values_of(str(file)))


def test_a_codec_that_nobody_knows_and_a_file_that_is_gone(file: Path) -> None:
    write(file, 40, "bzip2")
    assert rows_of(str(file)) == 40
    with pytest.raises(Corrupt, match="packed by bzip2"):
        list(values_of(str(file)))
    with pytest.raises(Unavailable, match="cannot be read"):
        rows_of(str(file.with_name("gone.avro")))
