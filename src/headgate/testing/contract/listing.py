"""Listing: S6, order and pages."""

import threading

import pytest

from headgate.errors import Invalid
from headgate.store import DocumentStore
from headgate.store.names import parts
from headgate.store.pages import pages
from headgate.store.trie import trie_key, trie_name
from headgate.testing.contract.base import LONG_MS, ContractBase, create_all, numbered, present
from headgate.testing.harness import Opened
from headgate.testing.racing import PATIENCE_S, in_background


class Listing(ContractBase):
    def test_s6_a_listing_is_in_the_order_of_the_parts(self, store: DocumentStore) -> None:
        names = [
            "a",
            "a/b",
            "a/b/c",
            "a-b",
            "a.b",
            "b",
            "b/a",
            "B",
            "é",
            "z",
            "日本",
            "😀",
            "\uffff",
        ]
        for name in reversed(names):
            store.create(name, numbered(1))
        assert [d.key for d in store.list().documents] == sorted(names, key=parts)

    def test_s6_a_prefix_is_whole_parts_and_not_itself_listed(self, store: DocumentStore) -> None:
        for name in ("a", "a/b", "a/c/d", "ab", "b/a"):
            store.create(name, numbered(1))
        assert [d.key for d in store.list("a").documents] == ["a/b", "a/c/d"]
        assert [d.key for d in store.list("a/c").documents] == ["a/c/d"]
        assert store.list("nothing/here").documents == ()

    def test_s6_pages_meet_without_gap_or_overlap(self, store: DocumentStore) -> None:
        names = sorted(("a", "a/x", "a/y", "a/y/z", "b", "c/d/e", "c/d/f", "d"), key=parts)
        for n, name in enumerate(names):
            store.create(name, numbered(n))
        for limit in (1, 2, 3, 8, 9):
            found = [page for page in pages(store, limit=limit)]
            assert [d.key for page in found for d in page.documents] == names
            assert all(len(page.documents) <= limit for page in found)
        assert [d.key for d in store.list(after="a/y").documents] == names[3:]
        assert [d.key for d in store.list(after="a/yy").documents] == names[4:], "need not exist"
        assert [d.key for d in store.list("c", after="a").documents] == ["c/d/e", "c/d/f"]
        assert store.list("c", after="d").documents == ()

    def test_s6_a_page_has_a_limit(self, store: DocumentStore) -> None:
        for limit in (0, -1, 1_001):
            with pytest.raises(Invalid):
                store.list(limit=limit)

    def test_s6_what_stays_is_listed_once_while_others_come_and_go(self, opened: Opened) -> None:
        staying = [f"f/{n:03}" for n in range(0, 60, 2)]
        writer, reader = opened(), opened()
        for name in staying:
            writer.create(name, numbered(1))
        is_over = threading.Event()

        def churn() -> None:
            while not is_over.is_set():
                for n in range(1, 60, 14):
                    writer.delete(f"f/{n:03}", writer.create(f"f/{n:03}", numbered(2)))

        churning = in_background(churn)
        try:
            for _ in range(5):
                found = [d.key for page in pages(reader, "f", limit=7) for d in page.documents]
                assert [name for name in found if name in staying] == staying
                assert len(found) == len(set(found))
        finally:
            is_over.set()
        churning.result(PATIENCE_S)

    def test_l13_q5_five_thousand_names_come_in_pages_of_a_thousand(self, opened: Opened) -> None:
        names = [f"positions/{n:05}" for n in range(5_000)]
        create_all([opened() for _ in range(6)], names)
        found = list(pages(opened(), "positions", limit=1_000, timeout_ms=LONG_MS))
        assert [d.key for page in found for d in page.documents] == names
        assert len(found) >= 5

    def test_s6_a_trie_holds_everything_in_no_order(self, opened: Opened) -> None:
        names = [f"queue {n}" for n in range(100)]
        create_all([opened() for _ in range(4)], [trie_key("queues", name) for name in names])
        store = opened()
        found = [d.key for page in pages(store, "queues", limit=30) for d in page.documents]
        assert sorted(trie_name("queues", name) for name in found) == sorted(names)
        assert len(found) == len(names)
        assert present(store.get(trie_key("queues", "queue 7"))).body == numbered(1)
