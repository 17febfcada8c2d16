"""Expressions of the settings, judged by real Spark before there is a record."""

import pytest

from headgate.engine import EventTime
from headgate.errors import Invalid
from tests.spark import AT, USES_SPARK, Bench, bench, shape, spark_engine

__all__ = ["bench", "spark_engine"]

pytestmark = USES_SPARK


@pytest.mark.parametrize(
    ("kind", "columns", "filters", "event_time", "said"),
    [
        ("json", (), ["value IS NULL"], AT, ""),
        ("json", (), ["timestamp IS NULL"], AT, "filter of output 0"),  # files have none
        ("json", (), [], EventTime("sql", "value LIKE"), "Spark refuses event_time sql"),
        ("json", (), [], EventTime("sql", "value IS NULL"), "gives a boolean"),
        ("json", (), [], EventTime("sql", "get_json_object(value, '$.at')"), ""),
        ("csv-bare", ("a", "b"), ["a = 'x'", "c = 'x'"], EventTime("column", "b"), "output 1"),
        ("csv", (), ["any_name = 'x'"], EventTime("column", "at"), ""),  # the first line says them
        ("csv", (), ["any_name = 'x'", "any_name LIKE"], EventTime("sql", "any"), "output 1"),
        ("parquet", (), ["any_name = 'x'"], EventTime("sql", "no_such_function(a)"), "refuses"),
        ("parquet", (), ["length(any_name)", "1 + 1"], EventTime("sql", "a + b"), "output 1"),
    ],
)
def test_expressions_are_judged_without_a_record(
    bench: Bench,
    kind: str,
    columns: tuple[str, ...],
    filters: list[str],
    event_time: EventTime,
    said: str,
) -> None:
    named = tuple((str(n), one) for n, one in enumerate(filters))
    asked = shape(format=kind, columns=columns, filters=named, event_time=event_time)
    if not said:
        bench.engine.check(asked)
        return
    with pytest.raises(Invalid, match=said):
        bench.engine.check(asked)


@pytest.mark.parametrize("condition", ["timestamp > current_timestamp()", "offset % 2 = 0"])
def test_what_a_log_has_beside_a_record_is_known_without_one(bench: Bench, condition: str) -> None:
    bench.engine.check(shape(reader="kafka", filters=(("a", condition),)))
