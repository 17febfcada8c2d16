from typing import Any

import pytest

from headgate.engine import EventTime, LandAs, Shape, verdict
from headgate.errors import Invalid


def shape(source: str, how: EventTime, columns: tuple[str, ...] = ()) -> Shape:
    return Shape("orders", "files", source, columns, how, "parquet", 1_000, 1_000)


@pytest.mark.parametrize(
    ("source", "how", "told"),
    [
        ("csv", EventTime("json", "$.at"), "needs json lines"),
        ("text", EventTime("column", "at"), "needs csv or parquet"),
        ("parquet", EventTime("regex", "(.*)"), "needs text, csv or json lines"),
        ("csv", EventTime("column", "at"), "no column 'at'.*none"),
    ],
)
def test_an_event_time_that_the_source_cannot_have_is_invalid(
    source: str, how: EventTime, told: str
) -> None:
    with pytest.raises(Invalid, match=told):
        verdict.found(shape(source, how))


def test_a_column_of_csv_is_found_by_its_place() -> None:
    found = verdict.found(shape("csv", EventTime("column", "at"), ("id", "at")))
    assert found == "CASE WHEN flaw IS NULL THEN fields.c1 ELSE NULL END"


def test_only_json_is_looked_at_quickly() -> None:
    how = EventTime("regex", "(.*)")
    names = [name for name, _ in verdict.before_event_time(shape("text", how))]
    assert names == ["flaw"]
    names = [name for name, _ in verdict.before_event_time(shape("json", how))]
    assert names == ["glance", "look", "quick", "flaw"]


def log_shape(source: str = "json", land_as: LandAs = "parquet", **changed: Any) -> Shape:
    how = changed.pop("how", EventTime("json", "$.at"))
    return Shape("orders", "kafka", source, (), how, land_as, 1_000, 1_000, **changed)


BY_LOG = EventTime("kafka", "timestamp")


def test_a_blank_value_of_a_log_is_no_line_to_skip() -> None:
    assert "'skip'" in verdict.flaw(shape("json", EventTime("json", "$.at")))
    assert "'skip'" not in verdict.flaw(log_shape())


def test_a_tombstone_has_no_flaw() -> None:
    assert verdict.flaw(log_shape()).startswith(
        "CASE WHEN quick <> '' THEN CAST(NULL AS STRING) WHEN raw IS NULL THEN CAST(NULL AS STRING)"
    )
    assert "raw IS NULL" not in verdict.flaw(shape("json", EventTime("json", "$.at")))


@pytest.mark.parametrize("source", ["json", "text"])
def test_only_what_lands_as_text_must_be_one_line_and_that_is_asked_first(source: str) -> None:
    found = verdict.flaw(log_shape(source, "text"))
    assert found.startswith(r"CASE WHEN raw RLIKE '[\\n\\r]' THEN 'not one line'")
    assert found.count("not one line") == 1
    assert "not one line" not in verdict.flaw(log_shape(source, "json"))
    assert "not one line" not in verdict.flaw(log_shape(source, "parquet"))


def test_bytes_are_only_measured() -> None:
    found = verdict.flaw(log_shape("binary", how=BY_LOG))
    assert "too long" in found
    for other in ("utf", "json", "line"):
        assert other not in found


def test_the_time_of_a_log_is_found_whatever_the_record_is() -> None:
    assert verdict.found(log_shape(how=BY_LOG)) == "stamp_ms"


def test_a_tombstone_happened_when_its_log_says() -> None:
    at = dict(verdict.instant(EventTime("json", "$.at"), "string", has_tombstones=True))["at"]
    assert at.startswith("CASE WHEN raw IS NULL THEN stamp_ms ELSE")
    how = EventTime("json", "$.at", "text")
    at = dict(verdict.instant(how, "string", has_tombstones=True))["at"]
    assert at.startswith("CASE WHEN raw IS NULL THEN timestamp_millis(stamp_ms) ELSE")
    assert "stamp_ms" not in dict(verdict.instant(how, "string"))["at"]


def test_a_tombstone_lacks_an_event_time_if_its_log_has_none() -> None:
    found = verdict.reason(log_shape())
    assert "WHEN CASE WHEN raw IS NULL THEN stamp_ms IS NULL ELSE found IS NULL END" in found
    assert "stamp_ms" not in verdict.reason(shape("json", EventTime("json", "$.at")))


def test_reasons_are_fixed_words() -> None:
    assert len({*verdict.REASONS}) == len(verdict.REASONS)
    assert verdict.NOT_ONE_LINE in verdict.REASONS


@pytest.mark.parametrize(
    ("told", "declared", "expected"),
    [
        ("int", "bigint", True),
        ("bigint", "int", True),  # a number that is too large does not fit
        ("bigint", "decimal(20,0)", True),
        ("bigint", "timestamp", False),  # of which unit?
        ("bigint", "double", False),  # not every one of them
        ("decimal(9,2)", "decimal(9,2)", True),
        ("decimal(9,2)", "decimal(9,0)", False),
        ("timestamp", "timestamp", True),
        ("timestamp", "bigint", False),
        ("string", "bigint", False),
        ("binary", "string", False),
        ("array<int>", "array<int>", True),
        ("array<int>", "array<bigint>", False),
        ("", "string", False),
    ],
)
def test_a_value_of_avro_keeps_its_meaning(told: str, declared: str, expected: bool) -> None:
    assert verdict.is_castable(told, declared) is expected
