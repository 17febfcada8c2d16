"""Whom the next hour over all streams waits for, and what a person can do about it."""

from dataclasses import replace
from typing import Any

import pytest

from headgate.commits.checkpoint import Wish
from headgate.commits.roots import RootDocument, Seat, place_of, root_key, root_name
from headgate.commits.streams import Pause, StreamDocument, stream_key
from headgate.periods import HOUR_MS, Period
from headgate.status.overall import RETIRED, as_json, awaited, left_seats, overall
from headgate.status.still import Advice
from headgate.status.why import without_settings
from headgate.store.codec import body_of
from tests.unit.status.test_streams import World, settings_of

DAY = Period.parse("2026-11-01")
OVER = Wish("over", "ann", 0)


def hour(number: int) -> Period:
    return Period(DAY.start_ms + number * HOUR_MS, "hour")


def seat(first: int | None, frontier: int = 0, last: int | None = None, **fields: Any) -> Seat:
    if first is None:
        return Seat(**fields)
    last_ms = None if last is None else hour(last).start_ms
    return Seat(None, hour(first).start_ms, hour(frontier).start_ms, last_ms, **fields)


def root(hours: int | None = None, **streams: Seat) -> RootDocument:
    return RootDocument(streams=streams, hours_ms=None if hours is None else hour(hours).start_ms)


def waits(document: RootDocument, *own: str) -> list[tuple[str, str, bool]]:
    found = overall("root", document, own)
    return [(one.stream, one.words, one.is_in_settings) for one in found.waits]


def test_k7_the_next_hour_names_each_stream_that_has_no_flag_there() -> None:
    document = root(5, a=seat(0, 9), b=seat(0, 5), c=seat(0, 3), d=seat(7, 7))
    found = overall("root", document, "abcd")
    assert (found.hour, found.ready_ms) == (hour(5), hour(5).start_ms)
    assert waits(document, *"abcd") == [
        ("b", "it has no flag of its own there yet", True),
        ("c", "it has no flag of its own there yet; its own next is 2026-11-01T03", True),
    ]


def test_k7_a_stream_without_data_is_waited_for_by_name() -> None:
    document = root(None, a=seat(0, 9), silent=Seat())
    assert waits(document, "a", "silent") == [
        ("silent", "nothing of it has landed, so nobody knows its first hour", True)
    ]
    assert waits(root(None, silent=Seat()), "silent")[0][0] == "silent"


def test_a_stream_that_left_the_settings_is_waited_for_and_named() -> None:
    document = root(5, a=seat(0, 9), old=seat(0, 5), gone=Seat())
    assert [(stream, is_own) for stream, _, is_own in waits(document, "a")] == [
        ("gone", False),
        ("old", False),
    ]
    assert left_seats(document, ["a"]) == ["old", "gone"]
    assert all("not in the settings any more" in words for _, words, _ in waits(document, "a"))


@pytest.mark.parametrize(
    "over",
    [
        seat(0, 5, 5),  # it ended where the flags are
        replace(seat(0, 3), last_ms=hour(3).start_ms, retired=OVER),
        Seat(last_ms=0, retired=OVER),
    ],
)
def test_nobody_waits_for_a_stream_that_is_over(over: Seat) -> None:
    document = root(5, a=seat(0, 9), old=over)
    assert waits(document, "a") == []
    assert left_seats(document, ["a"]) == []
    assert overall("root", document, ["a"]).streams == ("a",)


def test_a_withdrawn_hour_is_waited_for() -> None:
    document = replace(root(5, a=seat(0, 9), b=seat(0, 9)), reopened={place_of(hour(5), "b"): 2})
    ((stream, words, _),) = waits(document, "a", "b")
    assert (stream, words) == ("b", "its flag was withdrawn, and the next generation is to come")
    assert [one.stream for one in awaited(document, ("a", "b"), hour(6))] == []


def test_once_all_have_ended_there_is_no_next_hour() -> None:
    found = overall("root", root(5, a=seat(0, 5, 5)), ["a"])
    assert (found.hour, found.waits, found.streams) == (None, (), ())
    assert as_json(found)["hour"] is None


def test_trouble_with_parents_is_told() -> None:
    document = replace(
        root(5, a=seat(0, 9)),
        troubles={
            "/hour": "gone; next: restore it",
            "a": "told with its hours",
            "1970-01-01T03/a": "cannot come back",
        },
    )
    assert overall("root", document, ["a"]).troubles == (
        "gone; next: restore it",
        "1970-01-01T03/a: cannot come back",
    )


# ── in status ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def world() -> World:
    found = World()
    document = root(5, orders=seat(0, 9), old=seat(0, 5))
    found.put(root_key(root_name(settings_of().folder)), document)
    return found


def test_k7_status_names_a_stream_that_left_the_settings_with_the_command(world: World) -> None:
    found = world.look()
    (old,) = [one for one in found.streams if one.name == "old"]  # it has nothing but a seat
    (standing,) = old.standing
    assert (standing.kind, standing.is_for_a_person) == ("not in the settings", True)
    assert "no hour from 2026-11-01T05 on gets the flag over all streams (old, orders)" in (
        standing.meaning
    )
    assert standing.advice == Advice("stream retire", ("old",), RETIRED)
    assert not found.is_healthy
    assert [(one.hour, [w.stream for w in one.waits]) for one in found.roots] == [
        (hour(5), ["old"])
    ]
    why = without_settings(old)
    assert (why.state, why.advice) == ("not in the settings", standing.advice)
    assert "no hour from 2026-11-01T05 on" in why.words


def test_a_retired_stream_is_over_and_needs_nobody(world: World) -> None:
    retired = Pause("the shop is closed", "ann", 0)
    world.put(stream_key("old"), StreamDocument(1, retired=retired))
    key = root_key(root_name(settings_of().folder))
    kept = world.store.get(key)
    assert kept is not None
    over = root(5, orders=seat(0, 9), old=seat(0, 5, 5, retired=OVER))
    world.store.replace(key, body_of(over), kept.version)
    world.joins("a", "land:orders")

    found = world.look()

    (old,) = [one for one in found.streams if one.name == "old"]
    assert (old.ended, old.standing) == ("retired by ann: the shop is closed", ())
    assert found.is_healthy
    assert without_settings(old).state == "ended"


def test_a_stream_past_its_last_hour_is_shown_as_ended() -> None:
    world = World()
    last_ms = Period.hour_of(world.now_ms).start_ms - 3 * HOUR_MS
    world.settings["orders"] = replace(settings_of(), last_hour_ms=last_ms)
    world.has_checkpoint(discovered_ms=world.now_ms)
    assert world.orders().ended == f"ended: its last hour was {Period.hour_of(last_ms)}"
    world.settings["orders"] = replace(settings_of(), last_hour_ms=last_ms + 9 * HOUR_MS)
    assert world.orders().ended == ""
