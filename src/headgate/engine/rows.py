"""Rows: what a staged row looks like in each format, and what can be read from it again.

    parquet   `value` (or the columns of a Parquet source) and `_headgate`, a struct
    avro      the same
    json      the object itself with `_headgate` as its first key; other sources: `value` beside it
    text      `<partition>/<number>:<line>`, a tab, the record; of a log with its event time, in
              milliseconds since 1970: `<partition>/<offset>@<time>`; of its letters that are driven
              in again: `<partition>/<number>:<line>@<time>`

Of a log, `number` is the offset and there is no line; `ahead_ms` says by how much a record's event
time is ahead of its arrival, and what the source has beside a record (key, headers, timestamp) has
columns of its own; dead letters have them, too, so that they are still there if one is driven in
again. Of framed Avro, `schema_id` is the id that the record says.

Dead letters and skipped lines keep the line as it came: in Parquet and Avro as `value`, or as bytes
in `_headgate.raw` where it is no UTF-8; in json and text as an object with `raw` or `raw_base64`.
With declared columns a record becomes those, in the place of `value`; then dead letters and skipped
lines are bytes in `_headgate.raw`, too.
Expressions are text in Spark's SQL.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from headgate.engine import Shape
from headgate.engine.sql import case, name, text
from headgate.engine.verdict import SKIP, is_log, is_of_log, tells_time
from headgate.errors import Invalid

HEADGATE: Final = "_headgate"
OURS: Final = (  # columns of staged rows
    *(HEADGATE, "shard", "headgate_kind", "headgate_hour", "headgate_output"),
)

_IDENTITY: Final = ("partition", "number", "line")
_IS_GOOD: Final = "reason IS NULL"
_WHEN: Final = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
_REASON: Final = f"nullif(reason, {text(SKIP)})"
_AHEAD_MS: Final = "CASE WHEN ms > arrival_ms THEN ms - arrival_ms END"

# Line ends are blanks between the values of a record. Inside of one, where Spark lets them pass,
# they are told as JSON wants it: then the whole is written anew.
_FLAT: Final = r"regexp_replace(raw, '[\\n\\r]+', ' ')"
_IN_ONE_LINE: Final = case(
    [
        (r"NOT raw RLIKE '[\\n\\r]'", "raw"),
        (f"get_json_object(raw, '$') <=> get_json_object({_FLAT}, '$')", _FLAT),
    ],
    "get_json_object(raw, '$')",
)

EXTRA_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "key": ("key",),
    "headers": ("headers",),
    "timestamp": ("timestamp", "timestamp_type"),
}
"""What a source may have beside a record, and the columns that it becomes."""

EXTRA_TYPES: Final[Mapping[str, str]] = {
    "key": "binary",
    "headers": "array<struct<key:string,value:binary>>",
    "timestamp": "timestamp",
    "timestamp_type": "string",
}
"""Of those columns, as Spark spells them."""


def parquet_options(columns: Sequence[str], *, is_of_log: bool = False) -> dict[str, str]:
    """How files with these columns are written: without what costs for every value, and finds
    nothing. Sizes before encoding, dictionaries of values that hardly come twice, and the smallest
    and largest of texts between which nobody looks."""
    counter = "number" if is_of_log else "line"
    different = [f"{HEADGATE}.{counter}", f"{HEADGATE}.event_time"]
    texts = [f"{HEADGATE}.partition"]
    # Of lines; else it may be a column of the source.
    if "value" in columns and (is_of_log or {*columns} == {"value", HEADGATE}):
        different.append("value")
        texts.append("value")
    return {
        "parquet.size.statistics.enabled": "false",
        **{f"parquet.enable.dictionary#{column}": "false" for column in different},
        **{f"parquet.column.statistics.enabled#{column}": "false" for column in texts},
    }


def extra_columns(shape: Shape) -> list[str]:
    return [column for extra in shape.extras for column in EXTRA_COLUMNS[extra]]


def has_columns(shape: Shape) -> bool:
    """Of others a row is one line."""
    return shape.land_as in ("parquet", "avro")


def columns(shape: Shape, of_parquet: Sequence[str]) -> list[str]:
    """The staged columns, without those that become folders. Raises Invalid."""
    if shape.land_as in ("text", "avro") and shape.format.endswith("parquet"):
        raise Invalid(
            f"stream {shape.stream}: Parquet files do not land as {shape.land_as}; next: set "
            "land_as: parquet or json"
        )
    if shape.land_as == "json":
        return [f"{_json_line(shape)} AS value"]
    if shape.land_as == "text":
        return [f"{_text_line(shape)} AS value"]
    if shape.format.endswith("parquet"):
        return [
            *(f"row.{name(c)} AS {name(c)}" for c in of_parquet),
            f"{_struct(shape, 'NULL')} AS {HEADGATE}",
        ]
    extras = extra_columns(shape)
    if shape.declared:
        own = [f"cells.{name(column)} AS {name(column)}" for column, _ in shape.declared]
        kept = case([(_IS_GOOD, "NULL")], "CAST(raw AS BINARY)")
        return [*own, *extras, f"{_struct(shape, kept)} AS {HEADGATE}"]
    if shape.format.endswith(("binary", "avro")):
        return ["CAST(raw AS BINARY) AS value", *extras, f"{_struct(shape, 'NULL')} AS {HEADGATE}"]
    as_bytes = case(
        [(f"{_IS_GOOD} OR is_valid_utf8(raw)", "CAST(NULL AS BINARY)")], "CAST(raw AS BINARY)"
    )
    value = case([(_IS_GOOD, _value(shape)), ("is_valid_utf8(raw)", "raw")], "NULL")
    return [f"{value} AS value", *extras, f"{_struct(shape, as_bytes)} AS {HEADGATE}"]


def _struct(shape: Shape, as_bytes: str) -> str:
    ahead = f", 'ahead_ms', {_AHEAD_MS}" if is_log(shape) else ""
    if shape.avro is not None and shape.avro.is_framed:
        ahead += ", 'schema_id', schema_id"
    return (
        f"named_struct('event_time', event_time, 'partition', partition, 'number', number, "
        f"'line', line, 'reason', {_REASON}, "
        f"'raw', CAST({as_bytes} AS BINARY){ahead})"
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
        return f"concat({_head(_REASON, shape)}, ',\"value\":', {whole}, '}}')"
    if shape.format in ("json", "dead-json"):
        # Behind the first brace; an empty object takes no comma.
        whole = _IN_ONE_LINE if is_of_log(shape) else "raw"
        rest = rf"regexp_replace({whole}, '\\A\\s*\\{{\\s*', '')"
        comma = case([(f"startswith({rest}, '}}')", "''")], "','")
        good = f"concat({_head('NULL', shape)}, {comma}, {rest})"
    else:
        good = f"concat({_head('NULL', shape)}, ',\"value\":', {_quoted(_value(shape))}, '}}')"
    tombstone = f"concat({_head('NULL', shape)}, ',\"value\":null}}')"
    branches = [(f"{_IS_GOOD} AND raw IS NULL", tombstone)] if is_of_log(shape) else []
    return case([*branches, (_IS_GOOD, good)], _dead_line(shape))


def _text_line(shape: Shape) -> str:
    line = "" if is_log(shape) else ", ':', CAST(line AS STRING)"
    line += ", '@', CAST(ms AS STRING)" if tells_time(shape) else ""
    raw = "coalesce(raw, '')" if is_of_log(shape) else "raw"
    good = f"concat(partition, '/', CAST(number AS STRING){line}, '\\t', {raw})"
    return case([(_IS_GOOD, good)], _dead_line(shape))


def _dead_line(shape: Shape) -> str:
    raw = case(
        [
            ("raw IS NULL", "'\"raw\":null'"),
            ("is_valid_utf8(raw)", f"concat('\"raw\":', {_quoted('raw')})"),
        ],
        "concat('\"raw_base64\":\"', base64(CAST(raw AS BINARY)), '\"')",
    )
    return f"concat({_head(_REASON, shape)}, ',', {raw}, '}}')"


def _head(reason: str, shape: Shape) -> str:
    """`{"_headgate":{…}`; what follows is up to the caller."""
    moment = f"concat('\"', date_format(event_time, {text(_WHEN)}), '\"')"
    parts = [
        "'{\"_headgate\":{\"event_time\":'", f"coalesce({moment}, 'null')",
        "',\"partition\":'", _quoted("partition"),
        "',\"number\":'", "CAST(number AS STRING)",
    ]  # fmt: skip
    if is_log(shape):
        ahead = f"concat(',\"ahead_ms\":', CAST({_AHEAD_MS} AS STRING))"
        parts.append(f"coalesce({ahead}, '')")
    else:
        parts += ["',\"line\":'", "CAST(line AS STRING)"]
    if reason != "NULL":
        parts += ["',\"reason\":'", f"coalesce({_quoted(reason)}, 'null')"]
    return f"concat({', '.join(parts)}, '}}')"


def _quoted(value: str) -> str:
    """As a JSON string."""
    # There is no function for a bare string: a list of one, without its brackets.
    listed = f"to_json(array({value}))"
    return f"substring({listed}, 2, length({listed}) - 2)"


def identity(shape: Shape) -> list[tuple[str, str]]:
    """From a staged row to `partition`, `number`, `line`, and `ms`, its event time; of a log
    clamped to its arrival, if the row says that. Of a line of a file's text, `raw` instead of that
    and what a verdict needs."""
    if has_columns(shape):
        fields = [(field, f"{HEADGATE}.{field}") for field in _IDENTITY]
        ms = f"unix_millis({HEADGATE}.event_time)"
        if is_log(shape):
            ms += f" - coalesce({HEADGATE}.ahead_ms, 0L)"
        return [*fields, ("ms", ms)]
    head = [(field, f"get_json_object(value, '$._headgate.{field}')") for field in _IDENTITY]
    if shape.land_as == "json":
        moment = "get_json_object(value, '$._headgate.event_time')"
        ms = f"unix_millis(CAST({moment} AS TIMESTAMP))"
        if is_log(shape):
            ahead = "get_json_object(value, '$._headgate.ahead_ms')"
            ms += f" - coalesce(CAST({ahead} AS BIGINT), 0L)"
        return [*map(_typed, head), ("ms", ms)]
    # What is not usable is landed as json there, too.
    is_line = "kind IN ('data', 'late')"
    told = [(field, case([(is_line, _in_text(shape, field))], in_json)) for field, in_json in head]
    if tells_time(shape):
        return [
            *map(_typed, told),
            _typed(("ms", case([(is_line, _in_text(shape, "ms"))], "NULL"))),
        ]
    rest = [
        ("raw", _in_text(shape, "raw")), ("arrival_ms", f"{2**62}L"), ("mark_ms", f"{-(2**62)}L"),
    ]  # fmt: skip
    return [*map(_typed, told), *rest]


def _typed(column: tuple[str, str]) -> tuple[str, str]:
    field, expression = column
    return field, expression if field == "partition" else f"CAST({expression} AS BIGINT)"


_OF_FILES: Final[tuple[str, Mapping[str, int]]] = (
    r"(?s)\\A([^\\t]*)/([0-9]+):([0-9]+)\\t(.*)\\z",
    {"partition": 1, "number": 2, "line": 3, "raw": 4},
)
_OF_LOGS: Final[tuple[str, Mapping[str, int]]] = (
    r"(?s)\\A([^\\t]*)/([0-9]+)@(-?[0-9]+)\\t(.*)\\z",
    {"partition": 1, "number": 2, "ms": 3},
)
_OF_LETTERS: Final[tuple[str, Mapping[str, int]]] = (
    r"(?s)\\A([^\\t]*)/([0-9]+):([0-9]+)@(-?[0-9]+)\\t(.*)\\z",
    {"partition": 1, "number": 2, "line": 3, "ms": 4},
)
"""A line of text, and which group of it is what."""


def _in_text(shape: Shape, field: str) -> str:
    of_files = _OF_LETTERS if tells_time(shape) else _OF_FILES
    pattern, groups = _OF_LOGS if is_log(shape) else of_files
    if field not in groups:
        return "CAST(NULL AS STRING)"
    return f"regexp_extract(value, '{pattern}', {groups[field]})"
