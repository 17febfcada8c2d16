"""Several outputs of a stream, in the settings."""

import pytest

from headgate.landing import Output
from tests.unit.settings.test_loading import problem, problems, settings, stream

BOTH = "{orders: {filter: \"get_json_object(value, '$.type') = 'order'\"}, clicks: {json: $.type, equals: click}}"  # noqa: E501 - one value
TABLE = "tables: {daily: {kind: parquet, path: t, feed: {stream: %s}}}\n"


def named(text: str, outputs: str = BOTH, **parts: str) -> str:
    """A stream of this name."""
    return stream(outputs=outputs, **parts).replace("  orders:\n", f"  {text}:\n")


def test_outputs_keep_their_order_and_a_path_becomes_a_condition() -> None:
    (one,) = settings(named("events")).streams.values()
    assert one.outputs == (
        Output("orders", "get_json_object(value, '$.type') = 'order'"),
        Output("clicks", "get_json_object(value, '$.type') = 'click'"),
    )


def test_an_output_is_flagged_like_a_stream_and_lands_with_its_own() -> None:
    found = settings(named("events") + TABLE % "clicks")
    assert list(found.streams) == ["events"]
    assert {name: (one.lands, one.of) for name, one in found.flagged.items()} == {
        "orders": ("events", "events"),
        "clicks": ("events", "events"),
    }
    assert sorted(found.every) == ["clicks", "events", "orders"]
    assert found.tables["daily"].stream == "clicks"
    assert (found.called("clicks"), found.called("events")) == ("clicks", "events")


def test_a_stream_without_outputs_is_flagged_itself() -> None:
    found = settings(stream())
    assert found.flagged == found.streams == found.every


def test_outputs_of_a_later_life_have_its_mark() -> None:
    text = named(
        "events",
        folder='"again/{yyyy}-{MM}-{dd}/{HH}/{stream}/data"',
        former_folders='["{yyyy}-{MM}-{dd}/{HH}/{stream}/data"]',
    )
    found = settings(text + TABLE % "clicks")
    assert list(found.flagged) == ["orders~2", "clicks~2"]
    assert [one.word for one in found.flagged.values()] == ["orders", "clicks"]
    assert found.tables["daily"].stream == "clicks~2"
    assert found.called("clicks~1") == "clicks"
    assert sorted(found.every) == [
        "clicks", "clicks~2", "events", "events~2", "orders", "orders~2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ("{a: {}}", "needs exactly one of `filter` and `json`"),
        ("{a: {filter: x, json: $.y, equals: z}}", "needs exactly one of `filter` and `json`"),
        ("{a: {json: $.y}}", "`json` and `equals` belong together"),
        ("{a: {filter: x, equals: z}}", "`json` and `equals` belong together"),
        ("{a: {json: y, equals: z}}", "json"),
        ("{a: {filter: ''}}", "is empty"),
        ("{a: {filter: \"x = 'y\"}}", "a ' is not closed"),
        ("{a: {filter: \"x = (1\"}}", "a ) is missing"),
        ("{a: {filter: \"x = 1) OR (y = 2\"}}", "a ) is not opened"),
        ("{a: {filter: \"x[0) = 1\"}}", "a ) is not opened"),
        ("{a: {filter: \"x = 1 -- why\"}}", "has a comment"),
        ("{a: {filter: \"x = 1; y\"}}", "without a ;"),
        ("{events: {filter: x}}", "streams.events has this name, too"),
        ("{Events: {filter: x}}", "differs from 'events' only in upper and lower case"),
        ("{a: {filter: x}, A: {filter: x}}", "differs from 'a' only in upper and lower case"),
        ("{a: {filter: x, folder: y}}", "folder"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_filter_is_refused(outputs: str, said: str) -> None:
    assert said in problem(named("events", outputs))


@pytest.mark.parametrize("text", ["x = '(;--'", 'y = "it\'s )"', r"z = 'a\'('", "`a)` = 1"])
def test_what_is_quoted_is_not_judged(text: str) -> None:
    if "--" in text:
        assert "has a comment" in problem(named("events", f'{{a: {{filter: "{text}"}}}}'))
        return
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    (one,) = settings(named("events", f'{{a: {{filter: "{quoted}"}}}}')).streams.values()
    assert one.outputs == (Output("a", text),)


def test_a_json_path_is_for_json_and_text() -> None:
    text = named("events", source="{kind: files, path: x, format: csv}", event_time="{column: at}")
    assert "outputs.clicks.json: has no meaning for csv: write a filter" in problem(text)


def test_a_table_takes_an_output_and_not_the_stream() -> None:
    assert "has outputs: name one of them, 'orders', 'clicks'" in problem(
        named("events") + TABLE % "events"
    )
    assert "there is no stream 'click'; the nearest is 'clicks'" in problem(
        named("events") + TABLE % "click"
    )


def test_a_template_has_no_outputs() -> None:
    source = "{kind: kafka, brokers: 'a:1', pattern: x}"
    text = named('"{topic}"', source=source)
    assert any("are not for a template" in str(one) for one in problems(text))
