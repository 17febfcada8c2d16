"""Streams as a Python program writes them: judged at once, in words about the call."""

from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

import headgate
from headgate import App, Files, Invalid, Kafka, Stream, Table
from headgate.settings.keys import every_key
from headgate.settings.model import schema
from headgate.sources import FilesSettings


def orders(**options: Any) -> Stream:
    return Stream("orders", Files("/in"), "$.at", **options)


def test_options_are_keyword_arguments_with_the_words_of_the_settings() -> None:
    app = App("memory:x", "/lake")
    source = Files(Path("/in"), "csv", lanes=4, min_age="10s", columns=["id", "at"])

    app.add(Stream("orders", source, {"column": "at"}, shift="1m", shards=2, nodes=["big"]))

    found = app.settings.streams["orders"]
    assert (found.shift_ms, found.shards, found.nodes) == (60_000, 2, ("big",))
    assert isinstance(found.source, FilesSettings)
    assert (found.source.path, found.source.lanes) == ("/in", 4)
    assert (found.source.min_age_ms, found.source.columns) == (10_000, ("id", "at"))
    assert found.grace_ms == 30_000  # left out: the default


@pytest.mark.parametrize(
    ("declaration", "title", "others"),
    [
        (Files, "source", {"kind"}),
        (Kafka, "source of kind kafka", {"kind"}),
        (Stream, "stream", set()),
    ],
)
def test_every_key_of_the_settings_has_its_argument(
    declaration: Any, title: str, others: set[str]
) -> None:
    names = {one.name for one in fields(declaration)} - {"name"}

    assert names | others == set(every_key(schema())[title])


def test_a_stream_is_judged_when_it_is_added_with_every_problem_and_no_file() -> None:
    app = App("memory:x", "/lake")

    with pytest.raises(Invalid) as caught:
        app.add(orders(shift="5 minutes", shards=0))

    said = str(caught.value).split("\n")
    assert said[0] == "stream orders: 2 problems, so nothing of it is used"
    assert sorted(line.split(":")[0] for line in said[1:3]) == ["  shards", "  shift"]
    assert said[3:] == ["next: correct the call"]
    assert "line" not in str(caught.value)
    assert app.settings.streams == {}

    app.add(orders(shift="5m"))  # its name was not taken
    assert list(app.settings.streams) == ["orders"]


def test_a_problem_of_its_source_is_named_by_its_argument() -> None:
    with pytest.raises(Invalid, match=r"\n  source\.lanes: "):
        App("memory:x", "/lake").add(Stream("orders", Files("/in", lanes=0), "$.at"))


def test_a_value_that_no_setting_can_have_is_refused_in_words() -> None:
    with pytest.raises(Invalid, match="is a timedelta, and a setting is a text"):
        App("memory:x", "/lake").add(orders(shift=cast(Any, timedelta(minutes=5))))


def test_an_app_is_judged_when_it_is_made() -> None:
    with pytest.raises(
        Invalid, match=r"App\(…\): 1 problem.*\n  store: .*\nnext: correct the call"
    ):
        App("nonsense", "/lake")


def test_a_name_is_taken_once() -> None:
    app = App("memory:x", "/lake")
    app.add(orders())

    with pytest.raises(Invalid, match="was added already"):
        app.add(orders())


def test_what_is_imported_later_is_listed_too() -> None:
    assert {*headgate.__all__} <= {*dir(headgate)}
    assert all(getattr(headgate, name) is not None for name in headgate.__all__)


def test_a_path_may_have_any_letter() -> None:
    app = App("memory:x", "/lake")

    app.add(Stream("orders", Files("/in/📦 注文"), "$.at"))

    assert app.settings.streams["orders"].source.words == "/in/📦 注文"


def test_a_table_is_added_behind_its_stream() -> None:
    app = App("memory:x", "/lake")
    app.add(orders())

    app.add(Table("orders", stream="orders", path=Path("/tables/orders")))  # names of two kinds

    found = app.settings.tables["orders"]
    assert (found.kind, found.stream, found.path) == ("parquet", "orders", "/tables/orders")


def test_a_table_without_its_stream_is_refused_and_not_added() -> None:
    app = App("memory:x", "/lake")

    with pytest.raises(Invalid, match=r"table sums: 1 problem.*\n  feed\.stream: .*orders"):
        app.add(Table("sums", stream="orders", path="/tables/sums"))

    assert app.settings.tables == {}


@pytest.mark.parametrize(
    "ask",
    [
        lambda app: app.why("order"),
        lambda app: app.wait("order", "2026-11-01T13", "1s"),
        lambda app: app.certificate("order", "2026-11-01T13"),
        lambda app: app.retry_table("order", "why not"),
    ],
    ids=["why", "wait", "certificate", "retry_table"],
)
def test_a_name_that_is_not_known_is_answered_with_those_that_are(
    ask: Callable[[App], object], tmp_path: Path
) -> None:
    app = App("memory:x", tmp_path)
    app.add(orders())
    app.add(Table("orders", stream="orders", path="/tables/orders"))

    with pytest.raises(Invalid, match="known: orders; next: correct the name"):
        ask(app)


def test_a_day_is_no_hour(tmp_path: Path) -> None:
    app = App("memory:x", tmp_path)
    app.add(orders())

    with pytest.raises(Invalid, match="2026-11-01 is a day; next: name an hour of it"):
        app.why("orders", "2026-11-01")
