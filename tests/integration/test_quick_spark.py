"""The quick look at a record and the full parse: whenever the first says something, they agree.

It looks in two ways, by a function in Java and by patterns.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from headgate.engine import EventTime, Shape, verdict
from headgate.engine.quick.spark import JAR, is_installed
from headgate.engine.spark import SparkEngine
from tests.quick_jar import compiled, packed
from tests.spark import ARRIVAL_MS, USES_SPARK, bench, shape, spark_engine

__all__ = ["bench", "spark_engine"]

pytestmark = [*USES_SPARK, pytest.mark.slow]

BATCH = 4_000  # records of one example: one Spark job judges them all

NUMBERS = [
    "1793538000123", "1793538000123.0", "1793538000123.75", "1.793538e12", "1793538000123e0", "1e3",
    "1.5", "-0", "0", "01", "-", "+1", ".5", "5.", "0.1", "-1.5", "1E5", "1e", "1e+", "1e-400",
    "1e400", "179353800012345678901234567890", "9223372036854775808", "1793538000.1234567890123",
    "1793538000122.99999999999", "9" * 1_200, "0x10", "NaN", "Infinity", "1_000", "1 2", "00",
]  # fmt: skip
STRINGS = [
    '"1793538000123"', '" 1793538000123 "', '"1.793538e12"', '""', '" "', '"x"', '"at"',
    '"\\"at\\":5"', '"{\\"at\\":5}"', '"at":7', '"\\u0061t"', '"\\n"', '"\\x"', '"\\u12"',
    '"\\ud800"', '"\ttab"',
    '"\u00e9\u6ce8\U0001f600"', "'x'", '"a\\\\"', '"2026-11-01T13:00:00Z"', '"unfinished',
]  # fmt: skip
OTHERS = ["true", "false", "null", "True", "nul", "tru", "{}", "[]", "[1,]", "{,}", "[[[[1]]]]", ""]
USUAL = ["1793538000123", "1793538000123.5", '"1793538000123"', '"x"', "true", "null", "-1.5e3"]
KEYS = [
    '"at"', '"meta"', '"x"', '"\\u0061t"', '"AT"', '"at "', '""', '"a.t"', '"b"', "at", "'at'",
    '"a\\"t"', '"\u0430t"', "",
]  # fmt: skip
GAPS = ["", "", "", "", " ", "  ", "\t", "\r", "\u00a0"]
TAILS = ["x", ",", "}", "]", "{}", '"', ",{}", "],[{}", ',"list":[]']
SIGNS = '{}[],:"\\0 x\x00\x1f\x7f'


class Hostile:
    """JSON as it comes, and what is nearly JSON."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._harm = 0.0

    def record(self) -> str:
        self._harm = self._random.choice([0.0, 0.02, 0.3])
        is_aimed = self._random.random() < 0.5
        record = self._aimed() if is_aimed else self._object(self._random.randrange(5))
        record = (self._gap() if self._harms() else "") + record + self._gap()
        cut = self._random.randrange(len(record) + 1)
        match self._random.randrange(10):
            case 0:
                return record[:cut]
            case 1:
                return record + self._random.choice(TAILS)
            case 2:
                return record[:cut] + self._random.choice(SIGNS) + record[cut:]
            case 3:
                return record[:cut] + record[cut + 1 :]
        return record

    def _object(self, depth: int) -> str:
        return self._joined([self._pair(depth) for _ in range(self._random.randrange(5))])

    def _aimed(self) -> str:
        """As programs write it, with something at the end of every path."""
        self._harm = self._random.choice([0.0, 0.02])
        at, inner = (f'"at"{self._colon()}{self._random.choice(USUAL[:3])}' for _ in range(2))
        meta = f'"meta"{self._colon()}{self._joined([*self._beside(), inner, *self._beside()])}'
        return self._joined([*self._beside(), meta, *self._beside(), at, *self._beside()])

    def _beside(self) -> list[str]:
        return [self._pair(1) for _ in range(self._random.randrange(2))]

    def _joined(self, pairs: list[str]) -> str:
        return "{" + self._gap() + self._comma().join(pairs) + self._gap() + "}"

    def _pair(self, depth: int) -> str:
        return f"{self._key()}{self._colon()}{self._value(depth)}"

    def _colon(self) -> str:
        return f"{self._gap()}:{self._gap()}"

    def _value(self, depth: int) -> str:
        if depth == 0 or self._random.random() < 0.7:
            return self._random.choice([*NUMBERS, *STRINGS, *OTHERS] if self._harms() else USUAL)
        if self._random.random() < 0.5:
            return self._object(depth - 1)
        items = [self._value(depth - 1) for _ in range(self._random.randrange(4))]
        return "[" + self._gap() + self._comma().join(items) + self._gap() + "]"

    def _gap(self) -> str:
        return self._random.choice(GAPS) if self._harms() else self._random.choice(GAPS[:6])

    def _key(self) -> str:
        return self._random.choice(KEYS if self._harms() else KEYS[:3])

    def _harms(self) -> bool:
        return self._random.random() < self._harm

    def _comma(self) -> str:
        return f"{self._gap()},{self._gap()}"


Way = Literal["function", "patterns", "full"]
QUICK: tuple[Way, ...] = ("function", "patterns")


def judged(engine: SparkEngine, how: Shape, found: Sequence[str | bytes], way: Way) -> list[Any]:
    """Reason and event time of each record."""
    session = engine._opened()
    records = [(n, one.encode() if isinstance(one, str) else one) for n, one in enumerate(found)]
    frame: DataFrame = session.createDataFrame(records, "n int, raw binary").select(
        "n",
        fn.col("raw").cast("string").alias("raw"),
        fn.lit(2).alias("line"),
        fn.lit(ARRIVAL_MS).alias("arrival_ms"),
        fn.lit(0).alias("mark_ms"),
    )
    steps = verdict.before_event_time(how, by_function=way == "function")
    if way == "full":
        steps = [
            (name, "''" if name in ("glance", "look", "quick") else sql) for name, sql in steps
        ]
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


@pytest.mark.parametrize("way", QUICK)
@pytest.mark.parametrize("how", SHAPES, ids=lambda how: how.event_time.text + how.event_time.unit)
@settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.generate],  # a failure names its record, which is short
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=st.integers(0, 2**32))
def test_quick_and_full_agree_on_hostile_json(
    spark_engine: tuple[SparkEngine, Path], how: Shape, way: Way, seed: int
) -> None:
    hostile = Hostile(seed)
    found = [hostile.record() for _ in range(BATCH)]
    engine = spark_engine[0]

    quick = judged(engine, how, found, way)
    full = judged(engine, how, found, "full")

    for record, one, other in zip(found, quick, full, strict=True):
        assert one[:-1] == other[:-1], record
        wanted = is_object(record)
        if wanted is not None and record.strip(" \t\r"):
            assert (one[0] != verdict.BAD_JSON) == wanted, record
    assert sum(bool(one[-1]) for one in quick) > BATCH // 10, "the quick look had its say"


# By Unicode's table of well-formed bytes: the first and last of each row, and what is beside it.
LETTERS = [
    "c280", "dfbf", "e0a080", "efbfbf", "ed9fbf", "ee8080", "f0908080", "f48fbfbf", "efbfbd",
    "80", "bf", "c0af", "c1bf", "c2", "c241", "c2c2", "e09fbf", "e0a0", "e0a041", "eda080",
    "edbfbf", "f08fbfbf", "f09080", "f0908041", "f4908080", "f5808080", "ff", "fe", "efbbbf",
    "00", "1f", "7f",
]  # fmt: skip


@pytest.mark.parametrize("way", QUICK)
def test_bytes_that_are_no_text_are_dead_letters_whoever_looks(
    spark_engine: tuple[SparkEngine, Path], way: Way
) -> None:
    places = ['{"x":"%","at":5}', '{"%":1,"at":5}', '{"at":"%"}', '{"at":5}%', '%{"at":5}']
    found = [
        place.encode().replace(b"%", bytes.fromhex(one)) for place in places for one in LETTERS
    ]
    quick = judged(spark_engine[0], shape(), found, way)
    full = judged(spark_engine[0], shape(), found, "full")

    for record, one, other in zip(found, quick, full, strict=True):
        assert one[:-1] == other[:-1], record
        try:
            record.decode()
        except UnicodeDecodeError:
            assert one[0] == verdict.NOT_UTF8, record


@pytest.mark.parametrize("way", QUICK)
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
    spark_engine: tuple[SparkEngine, Path], record: str, is_taken: bool, way: Way
) -> None:
    [(*_, quick)] = judged(spark_engine[0], shape(), [record], way)
    assert bool(quick) == is_taken


@pytest.mark.parametrize("way", QUICK)
def test_a_fraction_that_is_wanted_as_text_is_what_the_full_parse_makes_of_it(
    spark_engine: tuple[SparkEngine, Path], way: Way
) -> None:
    how = shape(event_time=EventTime("json", "$.at", "text", "yyyy.MM"))
    found = ['{"at":2026.10}', '{"at":2026.11}', '{"at":"2026.10"}']  # the first becomes 2026.1
    quick, full = (judged(spark_engine[0], how, found, one) for one in (way, "full"))
    assert [one[:-1] for one in quick] == [one[:-1] for one in full]
    assert [one[0] for one in full] == [verdict.BAD_EVENT_TIME, None, None]


@pytest.mark.parametrize("way", QUICK)
def test_minus_zero_is_zero_for_the_full_parse_and_so_for_the_quick_look(
    spark_engine: tuple[SparkEngine, Path], way: Way
) -> None:
    how = shape(event_time=EventTime("json", "$.at", "text", "H"))
    found = ['{"at":-0}', '{"at":0}', '{"at":-1}', '{"at":"-0"}']
    quick, full = (judged(spark_engine[0], how, found, one) for one in (way, "full"))
    assert [one[:-1] for one in quick] == [one[:-1] for one in full]
    assert [one[1] for one in full] == [0, 0, None, None]


@pytest.mark.parametrize("depth", [1, 15, 16, 17, 400, 20_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"x":', "}")])
def test_depth_costs_no_stack(
    spark_engine: tuple[SparkEngine, Path], depth: int, opening: str, closing: str
) -> None:
    record = f'{{"x":{opening * depth}1{closing * depth},"at":1793538000123}}'
    [(*quick, taken)] = judged(spark_engine[0], shape(), [record], "function")
    [(*full, _)] = judged(spark_engine[0], shape(), [record], "full")
    assert quick == full
    assert bool(taken) == (depth <= 16)


def test_landing_uses_the_function(spark_engine: tuple[SparkEngine, Path]) -> None:
    assert is_installed(spark_engine[0]._opened(), is_remote=False)
    assert spark_engine[0]._has_quick


def test_the_jar_is_made_of_its_source() -> None:
    assert packed(JAR) == compiled()
