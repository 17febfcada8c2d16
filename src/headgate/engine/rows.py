"""Rows: what a staged row looks like in each format, and what can be read from it again.

    parquet   `value` (or the columns of a Parquet source) and `_headgate`, a struct
    json      the object itself with `_headgate` as its first key; other sources: `value` beside it
    text      `<partition>/<number>:<line>`, a tab, the record

Dead letters and skipped lines keep the line as it came: in Parquet as `value`, or as bytes in
`_headgate.raw` where it is no UTF-8; in json and text as an object with `raw` or `raw_base64`.
Expressions are text in Spark's SQL.
"""

from collections.abc import Sequence
from typing import Final

from headgate.engine import Shape
from headgate.engine.sql import case, name, text
from headgate.engine.verdict import SKIP
from headgate.errors import Invalid

HEADGATE: Final = "_headgate"

_IDENTITY: Final = ("partition", "number", "line")
_IS_GOOD: Final = "reason IS NULL"
_WHEN: Final = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
_REASON: Final = f"nullif(reason, {text(SKIP)})"


def parquet_options(columns: Sequence[str]) -> dict[str, str]:
    """How files with these columns are written: without what costs for every value, and finds
    nothing. Sizes before encoding, dictionaries of values that hardly come twice, and the smallest
    and largest of texts between which nobody looks."""
    different, texts = [f"{HEADGATE}.line", f"{HEADGATE}.event_time"], [f"{HEADGATE}.partition"]
    if {*columns} == {"value", HEADGATE}:  # lines; else it may be a column of the source
        different.append("value")
        texts.append("value")
    return {
        "parquet.size.statistics.enabled": "false",
        **{f"parquet.enable.dictionary#{column}": "false" for column in different},
        **{f"parquet.column.statistics.enabled#{column}": "false" for column in texts},
    }


def columns(shape: Shape, of_parquet: Sequence[str]) -> list[str]:
    """The staged columns, without those that become folders. Raises Invalid."""
    if shape.land_as == "text" and shape.format.endswith("parquet"):
        raise Invalid(
            f"stream {shape.stream}: Parquet files have no lines to land as text; next: set "
            "land_as: parquet or json"
        )
    if shape.land_as == "json":
        return [f"{_json_line(shape)} AS value"]
    if shape.land_as == "text":
        return [f"{_text_line()} AS value"]
    if shape.format.endswith("parquet"):
        return [
            *(f"row.{name(c)} AS {name(c)}" for c in of_parquet),
            f"{_struct('NULL')} AS {HEADGATE}",
        ]
    as_bytes = case(
        [(f"{_IS_GOOD} OR is_valid_utf8(raw)", "CAST(NULL AS BINARY)")], "CAST(raw AS BINARY)"
    )
    value = case([(_IS_GOOD, _value(shape)), ("is_valid_utf8(raw)", "raw")], "NULL")
    return [f"{value} AS value", f"{_struct(as_bytes)} AS {HEADGATE}"]


def _struct(as_bytes: str) -> str:
    return (
        f"named_struct('event_time', event_time, 'partition', partition, 'number', number, "
        f"'line', line, 'reason', {_REASON}, "
        f"'raw', CAST({as_bytes} AS BINARY))"
    )


def _value(shape: Shape) -> str:
    """What a good row of lines holds: of csv the row by the names of its columns."""
    if shape.format not in ("csv", "csv-bare", "dead-csv"):
        return "raw"
    pairs = ", ".join(f"{text(column)}, fields.c{n}" for n, column in enumerate(shape.columns))
    return f"to_json(named_struct({pairs}), map('ignoreNullFields', 'false'))"


def _json_line(shape: Shape) -> str:
    if shape.format.endswith("parquet"):
        whole = "to_json(row, map('ignoreNullFields', 'false'))"
        return f"concat({_head(_REASON)}, ',\"value\":', {whole}, '}}')"
    if shape.format in ("json", "dead-json"):
        # Behind the first brace; an empty object takes no comma.
        rest = r"regexp_replace(raw, '\\A\\s*\\{\\s*', '')"
        comma = case([(f"startswith({rest}, '}}')", "''")], "','")
        good = f"concat({_head('NULL')}, {comma}, {rest})"
    else:
        good = f"concat({_head('NULL')}, ',\"value\":', {_quoted(_value(shape))}, '}}')"
    return case([(_IS_GOOD, good)], _dead_line())


def _text_line() -> str:
    good = "concat(partition, '/', CAST(number AS STRING), ':', CAST(line AS STRING), '\\t', raw)"
    return case([(_IS_GOOD, good)], _dead_line())


def _dead_line() -> str:
    raw = case(
        [("is_valid_utf8(raw)", f"concat('\"raw\":', {_quoted('raw')})")],
        "concat('\"raw_base64\":\"', base64(CAST(raw AS BINARY)), '\"')",
    )
    return f"concat({_head(_REASON)}, ',', {raw}, '}}')"


def _head(reason: str) -> str:
    """`{"_headgate":{…}`; what follows is up to the caller."""
    moment = f"concat('\"', date_format(event_time, {text(_WHEN)}), '\"')"
    parts = [
        "'{\"_headgate\":{\"event_time\":'", f"coalesce({moment}, 'null')",
        "',\"partition\":'", _quoted("partition"),
        "',\"number\":'", "CAST(number AS STRING)", "',\"line\":'", "CAST(line AS STRING)",
    ]  # fmt: skip
    if reason != "NULL":
        parts += ["',\"reason\":'", f"coalesce({_quoted(reason)}, 'null')"]
    return f"concat({', '.join(parts)}, '}}')"


def _quoted(value: str) -> str:
    """As a JSON string."""
    # There is no function for a bare string: a list of one, without its brackets.
    listed = f"to_json(array({value}))"
    return f"substring({listed}, 2, length({listed}) - 2)"


def identity(shape: Shape) -> list[tuple[str, str]]:
    """From a staged row to `partition`, `number`, `line`, and `ms`, its event time. Of a line of
    text, `raw` instead of that and what a verdict needs."""
    if shape.land_as == "parquet":
        fields = [(field, f"{HEADGATE}.{field}") for field in ("partition", "number", "line")]
        return [*fields, ("ms", f"unix_millis({HEADGATE}.event_time)")]
    head = [(field, f"get_json_object(value, '$._headgate.{field}')") for field in _IDENTITY]
    if shape.land_as == "json":
        moment = "get_json_object(value, '$._headgate.event_time')"
        return [*map(_typed, head), ("ms", f"unix_millis(CAST({moment} AS TIMESTAMP))")]
    # What is not usable is landed as json there, too.
    is_line = "kind IN ('data', 'late')"
    told = [
        (field, case([(is_line, _in_text(group))], in_json))
        for group, (field, in_json) in enumerate(head, start=1)
    ]
    rest = [("raw", _in_text(4)), ("arrival_ms", f"{2**62}L"), ("mark_ms", f"{-(2**62)}L")]
    return [*map(_typed, told), *rest]


def _typed(column: tuple[str, str]) -> tuple[str, str]:
    field, expression = column
    return field, expression if field == "partition" else f"CAST({expression} AS BIGINT)"


def _in_text(group: int) -> str:
    return rf"regexp_extract(value, '(?s)\\A([^\\t]*)/([0-9]+):([0-9]+)\\t(.*)\\z', {group})"
