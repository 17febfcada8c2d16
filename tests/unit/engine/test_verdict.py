import pytest

from headgate.engine import EventTime, Shape, verdict
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
