"""Columns as a person declares them."""

import pytest

from headgate.errors import Invalid
from headgate.settings.ddl import columns_of
from tests.unit.settings.test_kafka import source
from tests.unit.settings.test_loading import orders, problem, stream


def test_columns_are_spelled_as_spark_does() -> None:
    text = """ID BIGINT, at timestamp,
        price Decimal(9, 2), n DECIMAL, tags ARRAY<STRING>,
        deep STRUCT<a: int, b: MAP<STRING, ARRAY<DOUBLE>>>, long LONG"""
    assert columns_of(text) == (
        ("ID", "bigint"),
        ("at", "timestamp"),
        ("price", "decimal(9,2)"),
        ("n", "decimal(10,0)"),
        ("tags", "array<string>"),
        ("deep", "struct<a:int,b:map<string,array<double>>>"),
        ("long", "bigint"),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id", "needs a type where 'the end' is"),
        ("id BIGINTT", "'BIGINTT' is no type; the nearest is BIGINT"),
        ("id BIGINT,", "needs a name where 'the end' is"),
        ("id BIGINT note STRING", "cannot be read from 'note' on"),
        ("id BIGINT NOT NULL", "cannot be read from 'NOT' on"),
        ("id BIGINT; DROP", "cannot be read from '; DROP' on"),
        ("`a b` INT", "cannot be read from '`a b` INT' on"),
        ("id INT, ID STRING", "'ID' is there twice"),
        ("s STRUCT<a: int, A: int>", "'A' is there twice"),
        ("s STRUCT<a int>", "needs ':' where 'int' is"),
        ("s ARRAY<INT", "needs '>' where 'the end' is"),
        ("s ARRAY", "needs '<' where 'the end' is"),
        ("s MAP<INT, INT>", "the keys of a MAP are STRING"),
        ("d DECIMAL(39, 0)", "write at most DECIMAL(38, 38)"),
        ("d DECIMAL(2, 3)", "write at most DECIMAL(38, 38)"),
        ("d DECIMAL(x)", "needs a number where 'x' is"),
        ("a " + "ARRAY<" * 30 + "INT" + ">" * 30, "more than 20 deep"),
        ("1a INT", "needs a name where '1' is"),
    ],
)
def test_what_is_no_column_is_refused(text: str, said: str) -> None:
    with pytest.raises(Invalid) as error:
        columns_of(text)
    assert said in str(error.value)


def test_columns_reach_the_stream_and_there_are_none_unless_asked_for() -> None:
    assert orders(stream(columns='"id BIGINT"')).columns == (("id", "bigint"),)
    assert orders(stream()).columns == ()


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"columns": '"id BIGNT"'}, "columns: 'BIGNT' is no type; the nearest is BIGINT"),
        ({"land_as": "json"}, "columns: is for parquet and avro, and the stream lands as json"),
        ({"late_records": "dead-letter"}, "columns: dead letters are records as they came"),
        ({"columns": '"_headgate INT"'}, "columns: a column '_headgate' is there already"),
        ({"columns": '"Headgate_Kind INT"'}, "columns: a column 'Headgate_Kind' is there already"),
        (
            {"source": source(land="[key]"), "columns": '"key INT"'},
            "columns: a column 'key' is there already",
        ),
        (
            {"source": "{kind: files, path: x, format: csv}", "event_time": "{column: at}"},
            "columns: is for json and avro records, and these are csv",
        ),
    ],
)
def test_columns_that_cannot_be_are_refused(parts: dict[str, str], said: str) -> None:
    assert said in problem(stream(**{"columns": '"id BIGINT"', **parts}))
