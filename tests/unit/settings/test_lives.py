"""A stream that began anew, in the settings: its earlier lives are known, and each has its name."""

import pytest

from headgate.periods import DEFAULT_FOLDER, Period
from tests.unit.settings.test_loading import problem, settings, stream

AGAIN = f"again/{DEFAULT_FOLDER}"
FORMER = f'["{DEFAULT_FOLDER}"]'
TABLE = "tables: {daily: {kind: parquet, path: t, feed: {stream: orders}}}\n"


def test_each_life_has_its_name_and_its_folder() -> None:
    former = f'["{DEFAULT_FOLDER}", "{AGAIN}"]'
    third = f"third/{DEFAULT_FOLDER}"
    found = settings(stream(TABLE, folder=f'"{third}"', former_folders=former))

    assert {name: one.folder.text for name, one in found.streams.items()} == {"orders~3": third}
    assert {name: one.folder.text for name, one in found.past.items()} == {
        "orders": DEFAULT_FOLDER,
        "orders~2": AGAIN,
    }
    assert found.tables["daily"].stream == "orders~3"
    every = [found.called(one) for one in ("orders", "orders~1", "orders~2", "orders~3", "x~1")]
    assert every == ["orders~3", "orders", "orders~2", "orders~3", "x~1"]


def test_folders_say_the_name_without_its_life_and_lead_back_to_it() -> None:
    (one,) = settings(stream(folder=f'"{AGAIN}"', former_folders=FORMER)).streams.values()
    assert (one.name, one.word, one.life) == ("orders~2", "orders", 2)
    hour = Period.parse("2026-11-01T13")
    folder = one.folder.folder(hour, stream=one.name)
    assert folder == "again/2026-11-01/13/orders/data"
    place = one.folder.match(folder)
    assert place is not None
    assert (place.stream, place.period) == ("orders~2", hour)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"folder": f'"{AGAIN}"', "former_folders": f'["{AGAIN}"]'}, "the same root as a former"),
        ({"folder": f'"x/{AGAIN}"', "former_folders": '["a/b"]'}, "folder template 'a/b'"),
        ({"former_folders": FORMER}, "needs a new folder"),
        (
            {"folder": '"{yyyy}/{MM}/{dd}/{HH}/{stream}"', "former_folders": FORMER},
            "starts with a name of its own",
        ),
    ],
)
def test_a_life_needs_a_root_of_its_own(parts: dict[str, str], said: str) -> None:
    assert said in problem(stream(**parts))


def test_no_other_stream_has_the_name_of_a_life() -> None:
    other = "  orders~2: {source: {kind: files, path: x}, event_time: {json: $.at}}\n"
    text = stream(other, folder=f'"{AGAIN}"', former_folders=FORMER)
    assert "there is a stream 'orders~2'" in problem(text)


def test_a_template_does_not_begin_anew_as_a_whole() -> None:
    text = stream(
        source="{kind: kafka, brokers: 'a:1', pattern: x}",
        folder=f'"{AGAIN}"',
        former_folders=FORMER,
    ).replace("  orders:", '  "{topic}":')
    assert "is not for a template" in problem(text)
