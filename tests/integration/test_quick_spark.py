"""The quick look at a record and the full parse: whenever the first says something, they agree."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from headgate.engine import EventTime, Shape, verdict
from headgate.engine.spark import SparkEngine
from tests.spark import ARRIVAL_MS, USES_SPARK, bench, shape, spark_engine

__all__ = ["bench", "spark_engine"]

pytestmark = [*USES_SPARK, pytest.mark.slow]

BATCH = 400  # records of one example: one Spark job judges them all

NUMBERS = [
    "1793538000123", "1793538000123.0", "1793538000123.75", "1.793538e12", "1793538000123e0", "1e3",
    "1.5", "-0", "0", "01", "-", "+1", ".5", "5.", "0.1", "-1.5", "1E5", "1e", "1e+", "1e-400",
    "1e400", "179353800012345678901234567890", "9223372036854775808", "1793538000.1234567890123",
    "1793538000122.99999999999", "9" * 1_200, "0x10", "NaN", "Infinity", "1_000", "1 2", "00",
]  # fmt: skip
STRINGS = [
    '"1793538000123"', '" 1793538000123 "', '"1.793538e12"', '""', '" "', '"x"', '"at"', '"\\"at\\":5"',
    '"{\\"at\\":5}"', '"at":7', '"\\u0061t"', '"\\n"', '"\\x"', '"\\u12"', '"\\ud800"', '"\ttab"',
    '"\u00e9\u6ce8\U0001f600"', "'x'", '"a\\\\"', '"2026-11-01T13:00:00Z"', '"unfinished',
]  # fmt: skip
OTHERS = ["true", "false", "null", "True", "nul", "tru", "{}", "[]", "[1,]", "{,}", "[[[[1]]]]", ""]
KEYS = [
    '"at"', '"at"', '"at"', '"x"', '"\\u0061t"', '"AT"', '"at "', '""', '"a.t"', '"meta"', '"b"', "at",
    "'at'", '"a\\"t"', '"\u0430t"', "",
]  # fmt: skip
GAPS = st.sampled_from(["", "", "", "", " ", "  ", "\t", "\r", "\u00a0"])


@st.composite
def values(draw: st.DrawFn, depth: int) -> str:
    plain = st.sampled_from([*NUMBERS, *STRINGS, *OTHERS])
    if depth == 0 or draw(st.integers(0, 3)):
        return draw(plain)
    if draw(st.booleans()):
        return draw(objects(depth - 1))
    items = draw(st.lists(values(depth - 1), max_size=3))
    return "[" + draw(GAPS) + ("," + draw(GAPS)).join(items) + draw(GAPS) + "]"


@st.composite
def objects(draw: st.DrawFn, depth: int) -> str:
    pairs = [
        draw(st.sampled_from(KEYS)) + draw(GAPS) + ":" + draw(GAPS) + draw(values(depth))
        for _ in range(draw(st.integers(0, 4)))
    ]
    return "{" + draw(GAPS) + (draw(GAPS) + "," + draw(GAPS)).join(pairs) + draw(GAPS) + "}"


@st.composite
def records(draw: st.DrawFn) -> str:
    """JSON as it comes, and what is nearly JSON."""
    record = draw(GAPS) + draw(objects(draw(st.integers(0, 4)))) + draw(GAPS)
    cut = draw(st.integers(0, len(record)))
    match draw(st.integers(0, 9)):
        case 0:
            return record[:cut]
        case 1:
            return record + draw(st.sampled_from(["x", ",", "}", "]", "{}", '"', ",{}", "],[{}"]))
        case 2:
            return (
                record[:cut]
                + draw(st.sampled_from(list('{}[],:"\\0 x\x00\x1f\x7f')))
                + record[cut:]
            )
        case 3:
            return record[:cut] + record[cut + 1 :]
    return record


def judged(engine: SparkEngine, how: Shape, found: Sequence[str], *, is_quick: bool) -> list[Any]:
    """Reason and event time of each record."""
    session = engine._opened()
    frame: DataFrame = session.createDataFrame(list(enumerate(found)), "n int, raw string").select(
        "n",
        "raw",
        fn.lit(2).alias("line"),
        fn.lit(ARRIVAL_MS).alias("arrival_ms"),
        fn.lit(0).alias("mark_ms"),
    )
    steps = verdict.before_event_time(how)
    if not is_quick:
        steps = [(name, "''" if name in ("glance", "quick") else sql) for name, sql in steps]
    for name, sql in [*steps, ("found", verdict.found(how))]:
        frame = frame.withColumn(name, fn.expr(sql))
    for name, sql in verdict.after_event_time(how, frame.schema["found"].dataType.simpleString()):
        frame = frame.withColumn(name, fn.expr(sql))
    rows = frame.select("n", "reason", "ms", "kind", "hour", "quick").collect()
    return [tuple(row)[1:] for row in sorted(rows)]


def is_object(record: str) -> bool | None:
    """As strict JSON; None where Spark is known to be more lenient."""
    if any(sign in record for sign in ["'", *map(chr, range(32))]):
        return None

    def refuse(text: str) -> None:
        raise ValueError(text)

    try:
        value = json.loads(record, parse_int=str, parse_float=str, parse_constant=refuse)
    except ValueError:
        return False
    return None if any(len(part) > 1_000 for part in record.split(",")) else isinstance(value, dict)


SHAPES = [
    shape(),
    shape(event_time=EventTime("json", "$.at", "s")),
    shape(event_time=EventTime("json", "$.at", "text")),
    shape(event_time=EventTime("json", "$.meta.at")),
    shape(event_time=EventTime("regex", r'"at":\s*(\d+)')),
]


@pytest.mark.parametrize(
    "how", SHAPES, ids=lambda how: f"{how.event_time.text} {how.event_time.unit}"
)
@settings(
    max_examples=3,
    deadline=None,
    suppress_health_check=[*HealthCheck],
)
@given(found=st.lists(records(), min_size=BATCH, max_size=BATCH))
def test_quick_and_full_agree_on_hostile_json(
    spark_engine: tuple[Any, Any], how: Shape, found: list[str]
) -> None:
    engine = spark_engine[0]
    quick = judged(engine, how, found, is_quick=True)
    full = judged(engine, how, found, is_quick=False)
    for record, one, other in zip(found, quick, full, strict=True):
        assert one[:-1] == other[:-1], record
        wanted = is_object(record)
        if wanted is not None and record.strip(" \t\r"):
            assert (one[0] != verdict.BAD_JSON) == wanted, record


@pytest.mark.parametrize(
    ("record", "is_taken"),
    [
        ('{"order":1,"at":1793538000123,"x":"y"}', True),
        ('{"order": 1, "at": "1793538000123", "ok": true}', True),
        ('{"a":{"b":[1,{"c":null}]},"at":1793538000123}', True),
        ('{ "at" : 1793538000123.5 , "list" : [ ] }', True),
        ('{"x":"\\u00e9\\"","at":1793538000123}', True),
        ('{"at":1793538000123,"at":5}', True),
        ('{"\\u0061t":5,"at":1793538000123}', False),
        ('{"at":1793538000123"}', False),
        ('{"at":"1793538000123}', False),
        ('{"at":1793538000123,}', False),
    ],
)
def test_the_quick_look_takes_what_programs_write(
    spark_engine: tuple[Any, Any], record: str, is_taken: bool
) -> None:
    [(*_, quick)] = judged(spark_engine[0], shape(), [record], is_quick=True)
    assert bool(quick) == is_taken
