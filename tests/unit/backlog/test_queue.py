"""Entries of a backlog: in order, queued once, removed by their number."""

from dataclasses import replace

from headgate.backlog import Aside, Entry
from headgate.backlog.queue import asides, entries, head, put_aside, queue, remove
from headgate.store.memory import MemoryStore
from headgate.testing.manual import ManualAmbient, manual_store


def store_of() -> MemoryStore:
    return manual_store(ManualAmbient())


def entry(batch: str, number: int = 0) -> Entry:
    return Entry(batch, number, "orders", 1, f"m/{batch}", "sha256:1", 1, 10)


def test_bf3_the_head_is_the_first_in_order_whenever_it_was_queued() -> None:
    store = store_of()
    assert head(store, "t") is None
    for number, batch in enumerate(("2026-11-01T02", "2026-10-31T23", "2026-11-01T00")):
        queue(store, "t", entry(batch, number))
    queue(store, "other", entry("2026-01-01T00"))
    first = head(store, "t")
    assert first is not None
    assert first.value.batch == "2026-10-31T23"
    assert [one.batch for one in entries(store, "t")] == [
        "2026-10-31T23",
        "2026-11-01T00",
        "2026-11-01T02",
    ]


def test_bf16_the_same_batch_again_changes_nothing() -> None:
    store = store_of()
    kept = queue(store, "t", entry("2026-11-01T00"))
    again = queue(store, "t", replace(kept, manifest_hash="sha256:2"))
    assert again == kept
    assert list(entries(store, "t")) == [kept]


def test_b1_removing_concerns_that_entry_and_no_other() -> None:
    store = store_of()
    queue(store, "t", entry("2026-11-01T00", 0))
    queue(store, "t", entry("2026-11-01T01", 1))
    assert not remove(store, "t", "2026-11-01T01", 0)
    assert remove(store, "t", "2026-11-01T01", 1)
    assert not remove(store, "t", "2026-11-01T01", 1)
    assert [one.number for one in entries(store, "t")] == [0]


def test_more_entries_than_a_page_are_all_found() -> None:
    store = store_of()
    for number in range(230):
        queue(store, "t", entry(f"{number:04}", number))
    assert [one.number for one in entries(store, "t")] == list(range(230))


def test_the_first_reason_for_setting_aside_stays() -> None:
    store = store_of()
    for reason in ("first", "second"):
        put_aside(store, "t", Aside("2026-11-01T00", 2, "sha256:2", reason, 5))
    assert [one.reason for one in asides(store, "t")] == ["first"]
    assert list(asides(store, "other")) == []
