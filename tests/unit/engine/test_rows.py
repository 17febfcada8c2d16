"""What a staged row of a log looks like, and what can be read from it again."""

import re
from dataclasses import replace
from typing import Any

import pytest

from headgate.engine import EventTime, LandAs, Shape, rows
from headgate.errors import Invalid

LANDED: tuple[LandAs, ...] = ("parquet", "avro", "json", "text")


def shape(reader: str, land_as: LandAs, source: str = "json", **changed: Any) -> Shape:
    how = EventTime("json", "$.at")
    return Shape("orders", reader, source, (), how, land_as, 1_000, 1_000, **changed)


@pytest.mark.parametrize("land_as", LANDED)
def test_only_of_a_log_a_row_says_how_far_ahead_it_was(land_as: LandAs) -> None:
    of_log = " ".join(rows.columns(shape("kafka", land_as), ()))
    assert "ahead_ms" in of_log
    assert "ahead_ms" not in " ".join(rows.columns(shape("files", land_as), ()))


def test_of_a_log_the_offset_is_in_the_place_of_file_and_line() -> None:
    (of_log,) = rows.columns(shape("kafka", "json"), ())
    (of_files,) = rows.columns(shape("files", "json"), ())
    assert '"line"' in of_files
    assert '"line"' not in of_log


def test_what_is_beside_a_record_stands_between_it_and_ours() -> None:
    extras = ("key", "headers", "timestamp")
    found = rows.columns(shape("kafka", "parquet", extras=extras), ())
    assert found[1:-1] == ["key", "headers", "timestamp", "timestamp_type"]
    found = rows.columns(shape("kafka", "parquet", "binary", extras=("key",)), ())
    assert found[:2] == ["CAST(raw AS BINARY) AS value", "key"]


def test_a_line_of_text_of_a_log_is_read_again_as_it_was_written() -> None:
    told = dict(rows.identity(shape("kafka", "text")))
    (pattern,) = {*re.findall(r"regexp_extract\(value, '(.*?)', [0-9]\)", told["ms"])}
    found = re.match(pattern.replace("\\\\", "\\").replace(r"\z", r"\Z"), "t~2/7/12@-5\ta/1@2\tb")
    assert found is not None
    assert found.groups() == ("t~2/7", "12", "-5", "a/1@2\tb")
    assert told["line"] == (
        "CAST(CASE WHEN kind IN ('data', 'late') THEN CAST(NULL AS STRING) "
        "ELSE get_json_object(value, '$._headgate.line') END AS BIGINT)"
    )


def test_a_line_of_letters_of_a_log_is_read_again_as_it_was_written() -> None:
    letters = replace(shape("files", "text", "dead-text"), event_time=EventTime("kafka", "x"))
    told = dict(rows.identity(letters))
    (pattern,) = {*re.findall(r"regexp_extract\(value, '(.*?)', [0-9]\)", told["ms"])}
    found = re.match(pattern.replace("\\\\", "\\").replace(r"\z", r"\Z"), "again-0/4:1@17\ta:1@2")
    assert found is not None
    assert found.groups() == ("again-0", "4", "1", "17", "a:1@2")


@pytest.mark.parametrize("land_as", ["parquet", "json"])
def test_the_event_time_read_again_is_clamped_to_the_arrival(land_as: LandAs) -> None:
    assert "ahead_ms" in dict(rows.identity(shape("kafka", land_as)))["ms"]
    assert "ahead_ms" not in dict(rows.identity(shape("files", land_as)))["ms"]


def test_in_parquet_no_offset_has_a_dictionary() -> None:
    found = rows.parquet_options(["value", "key", "_headgate"], is_of_log=True)
    assert found["parquet.enable.dictionary#_headgate.number"] == "false"
    assert "parquet.enable.dictionary#_headgate.line" not in found
    assert "parquet.enable.dictionary#key" not in found


def test_parquet_has_no_lines_to_land_as_text() -> None:
    with pytest.raises(Invalid, match="do not land as text"):
        rows.columns(shape("files", "text", "parquet"), ())
