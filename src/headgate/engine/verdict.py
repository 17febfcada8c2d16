"""Verdict: what becomes of one line, decided the same way each time.

    header, blank ─────────────────────────────────────────────▶ skip
    of a log that lands as text: more than one line; too long,
    not UTF-8, of a schema that nobody knows, not of its
    format, not of the declared columns, no event time,
    an unusable one, one too far ahead of its arrival,
    a stream has outputs, and none of their filters holds ─────▶ dead, with the reason
    its hour ended by the mark of its source partition ────────▶ late
    everything else ───────────────────────────────────────────▶ data

In this order; the first that holds decides. Expressions are text in Spark's SQL, over columns that
earlier ones made. Reasons are fixed words: people count and select by them.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from headgate.engine import EventTime, Shape
from headgate.engine.avro import HEADER_BYTES, Decoder, Path, path_of
from headgate.engine.jsonpath import (
    COMPACT,
    FLAT_BYTES_MAX,
    NESTED,
    NESTED_BYTES_MAX,
    SPACED,
    Style,
    keys_of,
    object_pattern,
    value_pattern,
)
from headgate.engine.sql import case, name, text
from headgate.errors import Invalid
from headgate.periods import HOUR_MS, YEAR_1_MS, YEAR_10000_MS

TOO_LONG: Final = "too long"
NOT_UTF8: Final = "not utf-8"
BAD_JSON: Final = "bad json"
BAD_CSV: Final = "bad csv"
NO_EVENT_TIME: Final = "no event time"
BAD_EVENT_TIME: Final = "bad event time"
AHEAD: Final = "ahead"
NOT_ONE_LINE: Final = "not one line"
BAD_AVRO: Final = "bad avro"
UNKNOWN_SCHEMA: Final = "unknown schema"
UNFIT: Final = "does not fit the declared columns"
NO_OUTPUT: Final = "no output"

REASONS: Final = (
    TOO_LONG, NOT_UTF8, BAD_JSON, BAD_CSV, NO_EVENT_TIME, BAD_EVENT_TIME, AHEAD, NOT_ONE_LINE,
    BAD_AVRO, UNKNOWN_SCHEMA, UNFIT, NO_OUTPUT,
)  # fmt: skip
SKIP: Final = "skip"  # in the place of a reason: no record at all
NO_HOUR: Final = "__HIVE_DEFAULT_PARTITION__"  # what Spark names the folder of a null

HEADGATE: Final = "_headgate"  # our columns, where those of the source stand beside them
FUNCTION: Final = "headgate_quick"  # `engine/quick`, where Spark has it

_IS_TOMBSTONE: Final = "raw IS NULL"
_QUICK: Final = (
    ("glance", COMPACT, FLAT_BYTES_MAX),
    ("look", SPACED, FLAT_BYTES_MAX),
    ("quick", NESTED, NESTED_BYTES_MAX),
)
_UNFIT: Final = "headgate_unfit"
_NO_TEXT: Final = "CAST(NULL AS STRING)"
_WHOLE: Final = ("tinyint", "smallint", "int", "bigint", "decimal", "string")
_CASTS: Final[Mapping[str, tuple[str, ...]]] = {
    "boolean": ("string",),
    "int": (*_WHOLE, "double"),
    "bigint": _WHOLE,
    "float": ("double", "string"),
    "double": ("string",),
    "decimal": ("string",),
    "date": ("string",),
    "timestamp": ("string",),
    "timestamp_ntz": ("string",),
}
_NO_TIMES: Final = ("boolean", "binary", "array", "map", "struct")
_PER_UNIT_MS: Final = {"ms": 1, "s": 1000}
# What a cast to decimal takes in little time and memory: exponents are short.
_NUMBER: Final = r"\A\s*[+-]?[0-9]{1,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,2})?\s*\z"
# Without a whole date Spark would fill in today's: another answer tomorrow.
_ISO_8601: Final = r"\A\s*[0-9]{4}-[0-9]{2}-[0-9]{2}([ T].*)?\z"


def before_event_time(
    shape: Shape, *, by_function: bool = False, decoders: Sequence[Decoder] = ()
) -> list[tuple[str, str]]:
    """Columns over `raw` and `line`, in this order."""
    fields = [("fields", _fields(shape))] if is_csv(shape) else []
    return [
        *quickly(shape, by_function=by_function),
        *fields,
        *_decoded(shape, decoders),
        ("flaw", flaw(shape, decoders)),
        *_cells(shape, decoders),
    ]


def after_event_time(shape: Shape, spark_type: str) -> list[tuple[str, str]]:
    """Columns over `found`, which has this type, `arrival_ms`, `mark_ms` and, with filters,
    `output`; in this order."""
    return [
        *instant(shape.event_time, spark_type, has_tombstones=is_of_log(shape)),
        ("reason", reason(shape)),
        ("hour", hour()),
        ("kind", kind()),
    ]


def quickly(shape: Shape, *, by_function: bool = False) -> list[tuple[str, str]]:
    """Columns, the last of them `quick`: not empty only for a record that is proven to be well
    formed; if the event time is taken by a JSON path, it is that value. `by_function`: Spark has
    ours, which takes a third of the time of patterns; of those, most records of most streams need
    no more than the first."""
    if not _is_json(shape):
        return []
    if by_function:
        is_short = f"octet_length(raw) <= {min(shape.record_bytes_max, NESTED_BYTES_MAX)}"
        return [("quick", case([(is_short, _by_function(shape))], "''"))]
    columns = list[tuple[str, str]]()
    for column, style, longest in _QUICK:
        is_short = f"octet_length(raw) <= {min(shape.record_bytes_max, longest)}"
        found = (f"{is_short} AND is_valid_utf8(raw)", _extract("raw", _pattern(shape, style)))
        earlier = [(f"{one} <> ''", one) for one, _ in columns[-1:]]
        columns.append((column, case([*earlier, found], "''")))
    return columns


def wanted_of_avro(shape: Shape) -> list[Path]:
    """Fields that anything is made of."""
    how = shape.event_time
    at = [path_of(how.text)] if how.by == "avro" else []
    return [*at, *((column,) for column, _ in shape.declared)]


def _cells(shape: Shape, decoders: Sequence[Decoder]) -> list[tuple[str, str]]:
    """A struct of the declared columns, and why they are not what the record has; null: they are.
    Fields that nobody declared are left out, and what a record does not have is null."""
    if not shape.declared:
        return []
    if shape.avro is None:
        fields = ", ".join(f"{name(column)} {told}" for column, told in shape.declared)
        options = f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', {text(_UNFIT)})"
        whole = f"from_json(raw, {text(f'{fields}, {_UNFIT} string')}, {options})"
    else:
        values = [(_is_its(shape, one), _cells_of(shape, one)) for one in decoders]
        whole = case(values, "NULL") if values else _no_cells(shape)
    return [("cells", case([("flaw IS NULL AND raw IS NOT NULL", whole)], "NULL"))]


def _cells_of(shape: Shape, decoder: Decoder) -> str:
    pairs, lost = list[str](), list[str]()
    for column, declared in shape.declared:
        leaf, told = decoder.at((column,)), decoder.schema.type_at((column,))
        if is_castable(told, declared):
            value = f"try_cast({leaf} AS {declared})"
            lost.append(f"({leaf} IS NOT NULL AND {value} IS NULL)")
        else:
            value = f"CAST(NULL AS {declared})"
            if decoder.schema.has((column,)):
                lost.append("true")
        pairs.append(f"{text(column)}, {value}")
    unfit = case([(" OR ".join(lost), "'x'")], "CAST(NULL AS STRING)") if lost else _NO_TEXT
    return f"named_struct({', '.join(pairs)}, {text(_UNFIT)}, {unfit})"


def _no_cells(shape: Shape) -> str:
    pairs = ", ".join(f"{text(column)}, CAST(NULL AS {told})" for column, told in shape.declared)
    return f"named_struct({pairs}, {text(_UNFIT)}, {_NO_TEXT})"


def is_castable(told: str, declared: str) -> bool:
    """Whether values of a type of Avro may become the declared one without another meaning: a bare
    number is no time."""
    if not told:
        return False
    kind, wanted = told.partition("(")[0], declared.partition("(")[0]
    return told == declared or wanted in _CASTS.get(kind, ())


def schema_id(shape: Shape) -> str:
    """As the frame of the record says it; null: it has none."""
    if shape.avro is None or not shape.avro.is_framed:
        return "CAST(NULL AS BIGINT)"
    raw = "CAST(raw AS BINARY)"
    is_framed = f"octet_length(raw) >= {HEADER_BYTES} AND substring({raw}, 1, 1) = X'00'"
    number = f"conv(hex(substring({raw}, 2, 4)), 16, 10)"
    return case([(is_framed, f"CAST({number} AS BIGINT)")], "NULL")


def _decoded(shape: Shape, decoders: Sequence[Decoder]) -> list[tuple[str, str]]:
    """`schema_id`, and a column for each schema: a record has something in its own only."""
    if shape.avro is None:
        return []
    body = "CAST(raw AS BINARY)"
    if shape.avro.is_framed:
        body = f"substring({body}, {HEADER_BYTES + 1})"
    is_short = f"octet_length(raw) <= {shape.record_bytes_max}"
    return [
        ("schema_id", schema_id(shape)),
        *((one.column, case([(f"{is_short} AND {_is_its(shape, one)}", one.decoded(body))], "NULL"))
          for one in decoders),
    ]  # fmt: skip


def _is_its(shape: Shape, decoder: Decoder) -> str:
    if decoder.id is not None:
        return f"schema_id = {decoder.id}"
    return "schema_id IS NOT NULL" if shape.avro and shape.avro.is_framed else "true"


def _avro_flaws(shape: Shape, decoders: Sequence[Decoder]) -> list[tuple[str, str]]:
    if shape.avro is None:
        return []
    bad, found = text(BAD_AVRO), list[tuple[str, str]]()
    if shape.avro.is_framed:
        found.append(("schema_id IS NULL", bad))
    if shape.avro.is_by_id:
        known = ", ".join(str(one.id) for one in decoders)
        found.append((f"schema_id NOT IN ({known})" if known else "true", text(UNKNOWN_SCHEMA)))
    found += [(f"{_is_its(shape, one)} AND {one.column} IS NULL", bad) for one in decoders]
    return found


def flaw(shape: Shape, decoders: Sequence[Decoder] = ()) -> str:
    """Why a line is no usable record whatever its event time; null if it is one."""
    branches = [("line = 1", text(SKIP))] if shape.format == "csv" else []
    if is_of_log(shape) and shape.land_as == "text":
        branches.append((r"raw RLIKE '[\\n\\r]'", text(NOT_ONE_LINE)))
    if _is_json(shape):
        branches.append(("quick <> ''", "CAST(NULL AS STRING)"))
    if is_of_log(shape):
        branches.append((_IS_TOMBSTONE, "CAST(NULL AS STRING)"))
    elif _is_json(shape) or is_csv(shape):
        branches.append((r"raw RLIKE '\\A\\s*\\z'", text(SKIP)))
    if not shape.format.endswith("parquet"):
        branches.append((f"octet_length(raw) > {shape.record_bytes_max}", text(TOO_LONG)))
    branches += _avro_flaws(shape, decoders)
    if not shape.format.endswith(("parquet", "binary", "avro")):
        branches.append(("NOT is_valid_utf8(raw)", text(NOT_UTF8)))
    if _is_json(shape):
        branches.append((f"NOT ({is_object('raw')})", text(BAD_JSON)))
    if is_csv(shape):
        # A quote that is not closed goes on in the next line, and half a record must not land.
        open_quote = """pmod(length(raw) - length(replace(raw, '"', '')), 2) = 1"""
        is_bad = f"fields IS NULL OR fields.bad IS NOT NULL OR {open_quote}"
        branches.append((is_bad, text(BAD_CSV)))
    return case(branches, "CAST(NULL AS STRING)")


def is_object(column: str) -> str:
    """One whole JSON object and nothing behind it, as Spark's full parse reads JSON.

    A parse stops at the end of the first value, so it cannot see what follows. Here it can: after
    the value, only `]` goes on well in one place, and only `}` in the other.
    """
    twice = f"""concat('{{"list":[', {column}, '],"one":', {column}, '}}')"""
    keys = f"json_object_keys({twice}) <=> array('list', 'one')"
    return rf"({column} RLIKE '\\A\\s*\\{{') AND {keys}"


def found(shape: Shape, decoders: Sequence[Decoder] = ()) -> str:
    """The event time as it stands in the record; null if there is none."""
    how = shape.event_time
    if how.by == "json":
        if not _is_json(shape):
            raise _mismatch(how, shape, "json lines")
        value = case([("quick <> ''", "quick")], f"get_json_object(raw, {text(how.text)})")
    elif how.by == "regex":
        if shape.format.endswith("parquet"):
            raise _mismatch(how, shape, "text, csv or json lines")
        value = f"nullif({_extract('raw', how.text)}, '')"
    elif how.by == "column":
        value = _column(how, shape)
    elif how.by == "avro":
        value = _in_avro(shape, decoders)
    elif how.by == "kafka":
        return "stamp_ms"  # whatever is wrong with the record: its letter shall tell it, too
    else:
        value = f"({how.text})"
    return case([("flaw IS NULL", value)], "NULL")


def instant(
    how: EventTime, spark_type: str, *, has_tombstones: bool = False
) -> list[tuple[str, str]]:
    """From `found`, which has this type, to `event_time` and `ms`; both null if it is unusable. A
    tombstone happened when its log says."""
    if how.by == "avro":
        value, ms = "found", "at"
        as_timestamp = "timestamp_millis(at)"
    elif _is_number(how, spark_type):
        value, ms = _ms(how, spark_type), "at"
        as_timestamp = "timestamp_millis(at)"
    else:
        value, ms = _timestamp(how, spark_type), "unix_millis(at)"
        as_timestamp = "at"
    if has_tombstones:
        stamp = "stamp_ms" if ms == "at" else "timestamp_millis(stamp_ms)"
        value = case([(_IS_TOMBSTONE, stamp)], value)
    in_calendar = f"{ms} BETWEEN {YEAR_1_MS} AND {YEAR_10000_MS - 1}"
    return [
        ("at", value),
        ("ms", case([(in_calendar, ms)], "CAST(NULL AS BIGINT)")),
        ("event_time", case([(in_calendar, as_timestamp)], "CAST(NULL AS TIMESTAMP)")),
    ]


def output(shape: Shape) -> str:
    """The number of the first filter that holds, over a record as the source has it; null: none.
    What is unknown does not hold."""
    taken = case(
        [(f"({condition})", str(n)) for n, (_, condition) in enumerate(shape.filters)],
        "CAST(NULL AS INT)",
    )
    return f"CASE WHEN {HEADGATE}.flaw IS NULL THEN {taken} END"


def reason(shape: Shape) -> str:
    none = [("output IS NULL", text(NO_OUTPUT))] if shape.filters else []
    lacks = "found IS NULL"
    if is_of_log(shape):
        lacks = case([(_IS_TOMBSTONE, "stamp_ms IS NULL")], lacks)
    return case(
        [
            ("flaw IS NOT NULL", "flaw"),
            *([(f"cells.{_UNFIT} IS NOT NULL", text(UNFIT))] if shape.declared else []),
            (lacks, text(NO_EVENT_TIME)),
            ("ms IS NULL", text(BAD_EVENT_TIME)),
            (f"ms - {shape.future_skew_ms} > arrival_ms", text(AHEAD)),
            *none,
        ],
        "CAST(NULL AS STRING)",
    )


def hour() -> str:
    """Hours since 1970, rounded down; null unless the row has one."""
    return case([("reason IS NULL", f"(ms - pmod(ms, {HOUR_MS})) DIV {HOUR_MS}")], "NULL")


def kind() -> str:
    return case(
        [
            (f"reason = {text(SKIP)}", "'skip'"),
            ("reason IS NOT NULL", "'dead'"),
            (f"(hour + 1) * {HOUR_MS} <= mark_ms", "'late'"),
        ],
        "'data'",
    )


def _by_function(shape: Shape) -> str:
    how = shape.event_time
    path = "\0".join(keys_of(how.text)).encode().hex() if how.by == "json" else ""
    is_number = str(how.unit != "text").lower()
    return f"{FUNCTION}(CAST(raw AS BINARY), X'{path}', {is_number})"


def _pattern(shape: Shape, style: Style) -> str:
    how = shape.event_time
    if how.by == "json":
        return value_pattern(style, how.text, is_number=how.unit != "text")
    return object_pattern(style)


def _is_json(shape: Shape) -> bool:
    return shape.format in ("json", "dead-json")


def is_log(shape: Shape) -> bool:
    """Read from a log: each record has an offset."""
    return shape.reader == "kafka"


def is_of_log(shape: Shape) -> bool:
    """Records of a log, also those that are driven in again: none is a blank line, one may have no
    value, and `stamp_ms` is the time that the log kept of it."""
    return is_log(shape) or shape.is_of_log


def tells_time(shape: Shape) -> bool:
    """Its staged text says the event time: it could not be taken from the record again."""
    return is_of_log(shape) or shape.event_time.by == "kafka"


def is_csv(shape: Shape) -> bool:
    return shape.format in ("csv", "csv-bare", "dead-csv")


def _fields(shape: Shape) -> str:
    """The fields of a line by number; `bad` is the line itself if they are too many or too few."""
    schema = ", ".join([*(f"c{n} STRING" for n in range(len(shape.columns))), "bad STRING"])
    options = "map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', 'bad', 'escape', '\"')"
    return f"from_csv(raw, '{schema}', {options})"


def _column(how: EventTime, shape: Shape) -> str:
    if shape.format.endswith("parquet"):
        return f"row.{name(how.text)}"
    if not is_csv(shape):
        raise _mismatch(how, shape, "csv or parquet")
    if how.text not in shape.columns:
        raise Invalid(
            f"stream {shape.stream}: no column {how.text!r} for its event time; the columns are "
            f"{', '.join(shape.columns) or 'none'}"
        )
    return f"fields.c{shape.columns.index(how.text)}"


def _in_avro(shape: Shape, decoders: Sequence[Decoder]) -> str:
    """In milliseconds, whatever each schema has; what is no time becomes one after all times."""
    path = path_of(shape.event_time.text)
    values = [(_is_its(shape, one), _ms_in(shape.event_time, one, path)) for one in decoders]
    return case(values, "CAST(NULL AS BIGINT)")


def _ms_in(how: EventTime, decoder: Decoder, path: Path) -> str:
    leaf, spark_type = decoder.at(path), decoder.schema.type_at(path)
    if not spark_type or spark_type.startswith(_NO_TIMES):
        return "CAST(NULL AS BIGINT)"
    if decoder.schema.logical_at(path) == "timestamp-nanos":
        ms = f"{leaf} DIV 1000000"
    elif _is_number(how, spark_type):
        ms = _ms(how, spark_type, leaf)
    else:
        ms = f"unix_millis({_timestamp(how, spark_type, leaf)})"
    return case([(f"{leaf} IS NOT NULL", f"coalesce({ms}, {YEAR_10000_MS}L)")], "NULL")


def _is_number(how: EventTime, spark_type: str) -> bool:
    return how.unit != "text" and spark_type not in ("timestamp", "timestamp_ntz", "date")


def _ms(how: EventTime, spark_type: str, found: str = "found") -> str:
    factor = _PER_UNIT_MS[how.unit]
    if spark_type in ("tinyint", "smallint", "int", "bigint"):
        return f"try_multiply(CAST({found} AS BIGINT), {factor}L)"
    as_text = f"CAST({found} AS STRING)"
    whole = f"try_multiply(try_cast({as_text} AS BIGINT), {factor}L)"
    part = f"floor(try_multiply(try_cast({as_text} AS DECIMAL(38, 9)), {factor}))"
    guarded = case([(f"{as_text} RLIKE {text(_NUMBER)}", f"try_cast({part} AS BIGINT)")], "NULL")
    return f"coalesce({whole}, {guarded})"


def _timestamp(how: EventTime, spark_type: str, found: str = "found") -> str:
    if spark_type == "timestamp":
        return found
    if spark_type in ("timestamp_ntz", "date"):
        return f"CAST({found} AS TIMESTAMP)"
    as_text = f"CAST({found} AS STRING)"
    if how.pattern:
        return f"try_to_timestamp({as_text}, {text(how.pattern)})"
    return case([(f"{as_text} RLIKE {text(_ISO_8601)}", f"try_to_timestamp({as_text})")], "NULL")


def _extract(column: str, pattern: str) -> str:
    return f"regexp_extract({column}, {text(pattern)}, 1)"


def _mismatch(how: EventTime, shape: Shape, wanted: str) -> Invalid:
    return Invalid(
        f"stream {shape.stream}: event_time {how.by} needs {wanted}, and the source has "
        f"{shape.format}"
    )
