"""A root's document: seats, frontiers, and what is open again."""

from dataclasses import replace

import pytest

from headgate.commits.checkpoint import Wish
from headgate.commits.roots import (
    FlagMove,
    Merging,
    Repair,
    RootDocument,
    RootJournal,
    Seat,
    begun,
    concluded,
    ended,
    in_trouble,
    intended,
    is_over_for_good,
    join_root,
    joined,
    merge_failed,
    merge_tried,
    place_of,
    repaired,
    retired,
    root_key,
    root_name,
    unwished,
    wished,
)
from headgate.errors import Corrupt
from headgate.periods import DEFAULT_FOLDER, HOUR_MS, FolderTemplate, Period
from headgate.store.changes import change
from headgate.store.codec import BODY_BYTES_MAX, body_of, encode, parse
from headgate.testing.manual import ManualAmbient, manual_store

WISH = Wish("why", "ann", 0)
MOVE = FlagMove("staged", "published", 1, "sha256:00")


@pytest.mark.parametrize(
    ("template", "root"),
    [
        (DEFAULT_FOLDER, "{yyyy}-{MM}-{dd}/{HH}"),
        ("{yyyy}-{MM}-{dd}/{HH}/{stream}", "{yyyy}-{MM}-{dd}/{HH}"),
        ("logs/{yyyy}{MM}{dd}{HH}/{stream}", "logs/{yyyy}{MM}{dd}{HH}"),
        ("{stream}/{yyyy}-{MM}-{dd}T{HH}", "{stream}/{yyyy}-{MM}-{dd}T{HH}"),
    ],
)
def test_kf16_streams_with_one_folder_above_their_hours_share_a_root(
    template: str, root: str
) -> None:
    assert root_name(FolderTemplate.parse(template)) == root


def test_a_root_with_a_long_name_has_a_key() -> None:
    assert len(root_key("x" * 5_000)) < 100
    assert root_key("a/b") != root_key("a")


def test_a_stream_takes_its_seat_at_the_frontier_of_then_and_keeps_it() -> None:
    store = manual_store(ManualAmbient())
    assert join_root(store, "root", "orders") is None
    key = root_key("root")
    change(store, key, RootDocument, lambda found: replace(found, hours_ms=5 * HOUR_MS))
    assert join_root(store, "root", "bids") == 5 * HOUR_MS
    change(store, key, RootDocument, lambda found: replace(found, hours_ms=9 * HOUR_MS))
    assert join_root(store, "root", "bids") == 5 * HOUR_MS
    assert join_root(store, "root", "orders") is None


def test_inv7_a_stream_joins_behind_the_hours_that_a_journal_is_about_to_flag() -> None:
    """Whoever carries the journal out does not ask who joined since."""
    journal = RootJournal("raise", "folder", (MOVE,), hours_ms=7 * HOUR_MS)
    before = RootDocument(streams={"orders": Seat(None, 0, 7 * HOUR_MS)}, hours_ms=5 * HOUR_MS)
    after = joined(intended("root", before, journal), "bids")
    assert after.streams["bids"] == Seat(7 * HOUR_MS)
    of_a_stream = RootJournal("raise", "folder", (MOVE,), frontiers_ms={"orders": 8 * HOUR_MS})
    assert joined(intended("root", before, of_a_stream), "bids").streams["bids"] == Seat(
        5 * HOUR_MS
    )


def test_inv7_a_stream_that_joins_while_flags_are_being_raised_begins_behind_them() -> None:
    journal = RootJournal("raise", "f", (MOVE,), hours_ms=7 * HOUR_MS)
    before = RootDocument(streams={"a": Seat(None, 0, 7 * HOUR_MS)}, hours_ms=5 * HOUR_MS)
    document = joined(intended("root", before, journal), "b")
    after = concluded("root", document, journal)
    assert after.streams["b"].floor_ms == after.hours_ms == 7 * HOUR_MS
    first = joined(intended("root", replace(before, hours_ms=None), journal), "b")
    assert first.streams["b"].floor_ms == 7 * HOUR_MS
    withdrawal = RootJournal("withdraw", "", (MOVE,))
    assert joined(intended("root", before, withdrawal), "b").streams["b"].floor_ms == 5 * HOUR_MS


def test_a_first_hour_is_fixed_once() -> None:
    document = begun(joined(RootDocument(), "orders"), "orders", HOUR_MS)
    assert document.streams["orders"] == Seat(None, HOUR_MS, HOUR_MS)
    assert begun(document, "orders", 0) == document
    assert ended(document, "orders", 9 * HOUR_MS).streams["orders"].last_ms == 9 * HOUR_MS


def test_an_end_is_never_before_flags_that_are_there_and_can_be_taken_back() -> None:
    document = replace(RootDocument(), streams={"a": Seat(None, 0, 5 * HOUR_MS)})
    over = ended(document, "a", 3 * HOUR_MS)
    assert over.streams["a"].last_ms == 5 * HOUR_MS
    assert ended(over, "a", None) == document
    passed = replace(over, hours_ms=6 * HOUR_MS)
    assert is_over_for_good(passed, "a")
    assert ended(passed, "a", None) == passed
    assert not is_over_for_good(replace(over, hours_ms=5 * HOUR_MS), "a")


def test_inv7_an_end_that_a_standing_journal_goes_past_stays() -> None:
    """Who takes over may have settings without it, and the journal is carried out all the same."""
    journal = RootJournal("raise", "f", (MOVE,), hours_ms=6 * HOUR_MS)
    seats = {"a": Seat(None, 0, 5 * HOUR_MS, 5 * HOUR_MS), "b": Seat(None, 0, 6 * HOUR_MS)}
    standing = RootDocument(streams=seats, hours_ms=5 * HOUR_MS, journal=journal)
    assert is_over_for_good(standing, "a")
    assert ended(standing, "a", None) == standing


def test_an_end_is_never_before_flags_that_a_standing_journal_raises() -> None:
    journal = RootJournal("raise", "f", (MOVE,), {"a": 7 * HOUR_MS})
    standing = RootDocument(streams={"a": Seat(None, 0, 5 * HOUR_MS)}, journal=journal)
    seat = concluded("root", ended(standing, "a", 3 * HOUR_MS), journal).streams["a"]
    assert (seat.frontier_ms, seat.last_ms) == (7 * HOUR_MS, 7 * HOUR_MS)


@pytest.mark.parametrize(
    ("seat", "expected"),
    [
        (Seat(), 0),  # nothing of it was ever expected
        (Seat(3 * HOUR_MS), 3 * HOUR_MS),
        (Seat(None, HOUR_MS, 5 * HOUR_MS), 5 * HOUR_MS),
        (Seat(None, HOUR_MS, 5 * HOUR_MS, 9 * HOUR_MS), 5 * HOUR_MS),
    ],
)
def test_a_retired_stream_ends_at_its_frontier_once_and_for_good(seat: Seat, expected: int) -> None:
    document = replace(RootDocument(), streams={"a": seat})
    over = retired(document, "a", WISH)
    assert over.streams["a"] == replace(seat, last_ms=expected, retired=WISH)
    assert retired(over, "a", replace(WISH, who="bob")) == over
    assert ended(over, "a", None) == over
    assert ended(over, "a", 20 * HOUR_MS) == over


def test_what_a_standing_journal_flags_of_a_retired_stream_counts() -> None:
    journal = RootJournal("raise", "f", (MOVE,), {"a": 7 * HOUR_MS})
    document = RootDocument(streams={"a": Seat(None, 0, 5 * HOUR_MS)}, journal=journal)
    over = concluded("root", retired(document, "a", WISH), journal)
    seat = over.streams["a"]
    assert (seat.frontier_ms, seat.last_ms) == (7 * HOUR_MS, 7 * HOUR_MS)


def test_a_fact_sets_what_its_journal_says_and_nothing_else() -> None:
    before = RootDocument(
        streams={"a": Seat(None, 0, 0), "b": Seat(None, 0, 0)},
        reopened={"2026-11-01": 2, "2026-11-01T13": 3},
        wishes={"x": WISH, "y": WISH},
    )
    journal = RootJournal("raise", "f", (MOVE,), {"a": HOUR_MS}, 5, None, {"x": 2}, ("2026-11-01",))
    after = concluded("root", intended("root", before, journal), journal)
    assert after == replace(
        before,
        streams={"a": Seat(None, 0, HOUR_MS), "b": Seat(None, 0, 0)},
        hours_ms=5,
        reopened={"2026-11-01T13": 3, "x": 2},
        wishes={"y": WISH},
    )


def test_flags_are_finished_before_others_are_begun() -> None:
    journal = RootJournal("raise", "f", (MOVE,))
    standing = intended("root", RootDocument(), journal)
    with pytest.raises(Corrupt, match="not finished"):
        intended("root", standing, journal)
    with pytest.raises(Corrupt, match="another journal"):
        concluded("root", standing, replace(journal, folder="g"))


def test_a_frontier_never_moves_back() -> None:
    journal = RootJournal("raise", "f", (), {"a": 0})
    standing = RootDocument(streams={"a": Seat(None, 0, HOUR_MS)}, journal=journal)
    with pytest.raises(Corrupt, match="would move back"):
        concluded("root", standing, journal)


def test_a_try_to_merge_counts_when_it_begins_and_another_hour_begins_anew() -> None:
    document = merge_tried(RootDocument(), "a", "2026-11-01T13")
    document = merge_failed(document, "a", "no room")
    assert document.merging == {"a": Merging("2026-11-01T13", 1, "no room")}
    assert merge_tried(document, "a", "2026-11-01T13").merging["a"].tries == 2
    assert merge_tried(document, "a", "2026-11-01T14").merging["a"].tries == 1


def test_the_fact_of_a_merge_forgets_its_tries_and_moves_no_frontier() -> None:
    before = RootDocument(
        streams={"a": Seat(None, 0, 0)},
        merging={"a": Merging("2026-11-01T13", 2, "no room"), "b": Merging("2026-11-01T13", 1)},
    )
    journal = RootJournal("merge", "f", (MOVE,), merges=("a",))
    after = concluded("root", intended("root", before, journal), journal)
    assert after == replace(before, merging={"b": Merging("2026-11-01T13", 1)})


def test_a_wish_is_kept_until_it_is_fulfilled_or_void() -> None:
    document = wished(RootDocument(), "place", WISH)
    assert document.wishes == {"place": WISH}
    assert unwished(document, "place") == RootDocument()


def test_a_repair_ends_with_its_last_hour() -> None:
    document = RootDocument(repair=Repair(0, 2 * HOUR_MS, WISH))
    half = repaired(document, HOUR_MS)
    assert half.repair == Repair(HOUR_MS, 2 * HOUR_MS, WISH)
    assert repaired(half, 2 * HOUR_MS).repair is None
    assert repaired(RootDocument(), 5) == RootDocument()


def test_an_hour_of_a_stream_and_its_parents_are_places_apart() -> None:
    hour = Period.parse("2026-11-01T13")
    places = {place_of(hour), place_of(hour.day()), place_of(hour, "a/b"), place_of(hour, "a")}
    assert len(places) == 4
    assert ["/" in place for place in (place_of(hour), place_of(hour, "a/b"))] == [False, True]


def test_it_comes_back_from_the_store_as_it_was() -> None:
    store = manual_store(ManualAmbient())
    journal = RootJournal("withdraw", "", (MOVE,), reopens={"p": 2})
    document = RootDocument(
        3, 4, {"a": Seat(1, 2, 3, 4)}, 5, 6, {"p": 1}, {"q": WISH}, Repair(1, 2, WISH), {}, journal
    )
    store.create("roots/x", body_of(document))
    found = store.get("roots/x")
    assert found is not None
    assert parse(found, RootDocument) == document


def test_words_for_people_are_never_why_a_root_of_many_streams_does_not_fit() -> None:
    names, why = [f"topic-{n}" for n in range(2_000)], "é" * 2_000
    found = RootDocument(streams=dict.fromkeys(names, Seat(1, 2, 3)))
    for name in names:
        found = merge_tried(found, name, "2026-11-01T13")
        found = merge_failed(found, name, why)
    found = in_trouble(found, dict.fromkeys(names, why))
    assert found.troubles["topic-7"] == found.merging["topic-7"].why == "é" * 50
    assert len(encode("roots/x", body_of(found))) <= BODY_BYTES_MAX
    assert in_trouble(found, {"orders": why}).troubles == {"orders": why}
