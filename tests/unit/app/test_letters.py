"""Dead letters in lines of JSON. Those in Parquet are looked at end to end."""

import base64
import json

import pytest

from headgate.app.letters import (
    Letter,
    Origin,
    Origins,
    ahead_ms,
    check_redrivable,
    folder_of,
    letters_of,
    reasons_in,
    rows_on_record,
)
from headgate.commits.record import Record, RecordFile, facts_of, record_path, to_bytes
from headgate.errors import Corrupt, Halted, Invalid
from headgate.lake.memory import MemoryLake
from headgate.sources import FilesSettings
from headgate.sources.book import Book
from headgate.sources.folder import Entry
from headgate.sources.lanes import Shaped
from headgate.store import DocumentStore
from headgate.testing.manual import ManualAmbient, manual_store

PATH = "_dead/orders/2026-11-02/shard0-commit0000000007-0.json"


def line(reason: str | None, number: int, **rest: object) -> bytes:
    told = {"event_time": None, "partition": "lane-0", "number": 3, "line": number}
    told |= {} if reason is None else {"reason": reason}
    return json.dumps({"_headgate": told, **rest}).encode() + b"\n"


def lake_of(*lines: bytes) -> MemoryLake:
    lake = MemoryLake()
    lake.put(PATH, b"".join(lines))
    return lake


def test_q10_a_letter_says_why_from_where_and_what_it_was() -> None:
    lake = lake_of(line("bad json", 1, raw='{"a":'), line("no event time", 2, raw="{}"))

    assert list(letters_of(lake, PATH)) == [
        Letter("bad json", "lane-0", 3, 1, b'{"a":'),
        Letter("no event time", "lane-0", 3, 2, b"{}"),
    ]
    assert next(letters_of(lake, PATH)).position == "lane-0/3:1"


def test_a_record_that_is_no_text_comes_back_as_its_bytes() -> None:
    raw = bytes(range(256))
    lake = lake_of(line("not utf-8", 1, raw_base64=base64.b64encode(raw).decode()))

    assert next(letters_of(lake, PATH)).raw == raw


def test_a_late_record_is_itself_whatever_its_fields_are_called() -> None:
    lake = lake_of(line(None, 1, raw="x", id=5), line(None, 2, value="a,b"))

    first, second = letters_of(lake, PATH)

    assert (first.reason, json.loads(first.raw or b"")) == ("late", {"raw": "x", "id": 5})
    assert second.raw == b"a,b"


def test_a_letter_of_a_log_without_a_value_has_none() -> None:
    (letter,) = letters_of(lake_of(line("no output", 0, raw=None)), PATH)
    assert (letter.raw, letter.position) == (None, "lane-0/3")


def test_reasons_are_counted() -> None:
    lake = lake_of(*(line("too long", n, raw="x") for n in range(3)), line("ahead", 4, raw="y"))

    reasons, numbers = reasons_in(lake, PATH)
    assert reasons == {"too long": 3, "ahead": 1}
    assert numbers == {("lane-0", 3): 4}


@pytest.mark.parametrize("spoiled", [b"{\n", b"[]\n", b'{"raw": "x"}\n', b"\xff\n"])
def test_a_file_that_is_none_of_ours_is_corrupt(spoiled: bytes) -> None:
    with pytest.raises(Corrupt, match="next: headgate audit"):
        list(letters_of(lake_of(spoiled), PATH))


def test_a_file_that_is_gone_is_said_to_be() -> None:
    with pytest.raises(Invalid, match="is not there any more"):
        list(letters_of(MemoryLake(), PATH))


def test_rows_are_those_of_the_commit_record_that_has_this_file() -> None:
    lake = lake_of(line("ahead", 1, raw="y"))
    facts = facts_of(b"")
    file = RecordFile("dead", "", "staged", PATH, facts.size_bytes, facts.checksum, 42)
    lake.put(
        record_path("orders", 0, 7),
        to_bytes(Record("orders", 0, 7, 1, "node", 0, 0, {}, {"dead": 42}, (file,))),
    )

    assert rows_on_record(lake, "orders", PATH) == 42
    assert rows_on_record(lake, "orders", PATH.replace("7-0", "8-0")) is None
    assert rows_on_record(lake, "orders", "_dead/orders/2026-11-02/made by hand.json") is None


def test_g6_the_folder_of_a_stream_of_any_name_is_plain() -> None:
    assert folder_of("a/b é") == "_dead/a%2Fb%20%C3%A9"


def test_rows_of_parquet_that_lie_as_json_cannot_be_driven_in() -> None:
    with pytest.raises(Halted, match="came from Parquet files and lie here as JSON"):
        check_redrivable(PATH, "parquet")
    check_redrivable(PATH, "json")
    check_redrivable(PATH.replace(".json", ".parquet"), "parquet")


# ── where it came from ────────────────────────────────────────────────────────────────────────────


def numbered(*paths: str) -> tuple[DocumentStore, Book, int]:
    """A lane in which these files got their numbers, and when they arrived."""
    ambient = ManualAmbient()
    store = manual_store(ambient)
    book = Book(store, "orders", "lane-0", 1, ambient)
    book.open()
    book.number([Shaped(Entry(path, 5, 1), ()) for path in paths])
    return store, book, ambient.wall_ns() // 1_000_000


def test_a_letter_is_traced_to_the_file_that_it_came_from_and_its_arrival() -> None:
    store, _, now_ms = numbered("a.json", "b/c.json")
    origins = Origins(store, MemoryLake(), "orders", FilesSettings("/srv/in"))

    assert origins.of("lane-0", 1) == Origin("/srv/in/b/c.json", now_ms)
    assert origins.of("lane-0", 2) == origins.of("lane-9", 0) == Origin("", None)


def test_a_file_that_was_put_away_is_forgotten() -> None:
    store, book, _ = numbered("a.json", "b.json")
    book.deal_with(book.lane.batches[0], 2)

    origins = Origins(store, MemoryLake(), "orders", FilesSettings("/srv/in"))

    assert origins.of("lane-0", 0) == Origin("", None)


def test_looking_for_a_file_takes_no_lane_from_its_holder() -> None:
    store, book, _ = numbered("a.json")
    Origins(store, MemoryLake(), "orders", None).of("lane-0", 0)

    book.check()  # raises if somebody else opened it


@pytest.mark.parametrize("moment", ["2026-11-01T13:05:00.250Z", None, "soon"])
def test_a_letter_knows_its_event_time_if_it_had_one(moment: str | None) -> None:
    told = {"event_time": moment, "partition": "lane-0", "number": 3, "line": 1, "reason": "ahead"}
    lake = lake_of(json.dumps({"_headgate": told, "raw": "x"}).encode() + b"\n")

    wanted = 1_793_538_300_250 if moment is not None and "T" in moment else None
    assert next(letters_of(lake, PATH)).event_ms == wanted


def test_how_far_ahead_of_its_arrival_a_record_is_or_at_least_of_its_commit() -> None:
    lake = MemoryLake()
    record = Record("orders", 0, 7, 3, "node-1", 9_000, 1, {}, {"dead": 1})
    lake.put(record_path("orders", 0, 7), to_bytes(record))
    letter = Letter("ahead", "lane-0", 3, 1, b"x", 20_000)

    known, forgotten = Origin("/srv/in/a.json", 5_000), Origin("", None)

    assert ahead_ms(lake, "orders", PATH, letter, known) == 15_000
    assert ahead_ms(lake, "orders", PATH, letter, forgotten) == 11_000
    assert ahead_ms(MemoryLake(), "orders", PATH, letter, forgotten) is None
    other = Letter("bad json", "lane-0", 3, 1, b"x", 20_000)
    assert ahead_ms(lake, "orders", PATH, other, known) is None
