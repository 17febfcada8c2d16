"""Writes: S1 to S5, of concurrent readers and writers."""

import threading
from collections.abc import Callable

import pytest

from headgate.errors import Conflict
from headgate.store import Document, DocumentStore, Version
from headgate.testing.contract.base import (
    CALLS_MAX,
    TROUBLE_S,
    ContractBase,
    append_item,
    attempt,
    filled,
    number,
    numbered,
    present,
    texts,
)
from headgate.testing.harness import Opened, StoreHarness
from headgate.testing.history import Recorder, find_violations, run_clients
from headgate.testing.planted import LosesReplies
from headgate.testing.racing import PATIENCE_S, at_once, in_background, until


class Writes(ContractBase):
    def test_s1_a_reader_sees_a_complete_document_or_none(self, opened: Opened) -> None:
        writer, reader = opened(), opened()
        version = writer.create("doc", filled(0))
        is_over = threading.Event()
        reads = [0]

        def read() -> None:
            while not is_over.is_set():
                found = present(reader.get("doc"))
                assert found.body == filled(number(found.body["n"])), "torn"
                reads[0] += 1

        reading = in_background(read)
        for n in range(1, 25):
            version = writer.replace("doc", filled(n), version)
        # However slow the reader is: it has met writes.
        while reads[0] < 5 and not reading.done():
            version = writer.replace("doc", filled(n := n + 1), version)
        is_over.set()
        reading.result(PATIENCE_S)

    def test_s2_create_is_refused_while_the_document_is_there(self, store: DocumentStore) -> None:
        store.create("doc", numbered(1))
        with pytest.raises(Conflict):
            store.create("doc", numbered(2))
        assert present(store.get("doc")).body == numbered(1)

    def test_s2_replace_is_refused_once_the_version_moved(self, store: DocumentStore) -> None:
        first = store.create("doc", numbered(1))
        second = store.replace("doc", numbered(2), first)
        with pytest.raises(Conflict):
            store.replace("doc", numbered(3), first)
        assert present(store.get("doc")) == Document("doc", numbered(2), second)

    def test_s2_delete_is_refused_once_the_version_moved(self, store: DocumentStore) -> None:
        first = store.create("doc", numbered(1))
        second = store.replace("doc", numbered(2), first)
        with pytest.raises(Conflict):
            store.delete("doc", first)
        store.delete("doc", second)
        assert store.get("doc") is None

    def test_s2_what_is_absent_cannot_be_replaced_or_deleted(self, store: DocumentStore) -> None:
        version = store.create("doc", numbered(1))
        store.delete("doc", version)
        for refused in (
            lambda: store.replace("doc", numbered(2), version),
            lambda: store.delete("doc", version),
            lambda: store.replace("never/there", numbered(2), version),
        ):
            with pytest.raises(Conflict):
                refused()
        assert store.get("doc") is None

    def test_s2_another_documents_version_is_refused(self, store: DocumentStore) -> None:
        one = store.create("one", numbered(1))
        store.create("two", numbered(1))
        with pytest.raises(Conflict):
            store.replace("two", numbered(2), one)

    @pytest.mark.parametrize("verb", ["create", "replace", "delete"])
    def test_s2_b10_of_racing_writers_exactly_one_wins(self, opened: Opened, verb: str) -> None:
        stores = [opened() for _ in range(6)]
        for n in range(8):
            name = f"race-{n}"
            version = Version("") if verb == "create" else stores[0].create(name, numbered(0))
            attempts: list[Callable[[], object]] = [
                attempt(store, verb, name, version, client) for client, store in enumerate(stores)
            ]
            won = [client for client, winner in enumerate(at_once(attempts)) if winner]
            assert len(won) == 1, f"{verb}: {won} all won"
            found = stores[0].get(name)
            assert (None if found is None else found.body["n"]) == (
                None if verb == "delete" else won[0]
            )

    def test_s2_one_client_serves_many_threads(self, store: DocumentStore) -> None:
        """Each in a corner of its own, and all at once: nobody gets another one's answer."""

        def work(corner: int) -> None:
            for n in range(8):
                name = f"corner-{corner}/{n}"
                version = store.create(name, numbered(corner))
                version = store.replace(name, numbered(corner * 100 + n), version)
                assert store.get(name) == Document(name, numbered(corner * 100 + n), version)
                assert store.list(f"corner-{corner}").documents[-1].key == name
                if n % 2:
                    store.delete(name, version)
                    assert store.get(name) is None

        for running in [in_background(work, corner) for corner in range(6)]:
            running.result(PATIENCE_S)
        left = [document.key for document in store.list().documents]
        assert left == [f"corner-{corner}/{n}" for corner in range(6) for n in (0, 2, 4, 6)]

    def test_l5_a_conflict_in_every_write_loses_nothing(self, opened: Opened) -> None:
        stores = [opened() for _ in range(5)]
        stores[0].create("list", {"format": 1, "items": []})

        def append(client: int, store: DocumentStore) -> None:
            for n in range(8):
                append_item(store, "list", f"{client}/{n}")

        running = [in_background(append, n, store) for n, store in enumerate(stores)]
        for one in running:
            one.result(PATIENCE_S)
        items = present(stores[0].get("list")).body["items"]
        assert sorted(texts(items)) == [f"{c}/{n}" for c in range(5) for n in range(8)]

    def test_s3_another_client_sees_every_acknowledged_write(self, opened: Opened) -> None:
        writer, reader = opened(), opened()
        version = writer.create("f/doc", numbered(0))
        for n in range(1, 30):
            version = writer.replace("f/doc", numbered(n), version)
            assert reader.get("f/doc") == Document("f/doc", numbered(n), version)
            assert reader.list("f").documents == (Document("f/doc", numbered(n), version),)
        writer.delete("f/doc", version)
        assert reader.get("f/doc") is None
        assert reader.list("f").documents == ()

    def test_s4_no_version_comes_back(self, store: DocumentStore) -> None:
        seen: list[Version] = []
        for _ in range(4):  # the same name, the same bodies, again and again
            version = store.create("doc", numbered(1))
            seen.append(version)
            for _ in range(3):
                version = store.replace("doc", numbered(1), version)
                seen.append(version)
            store.delete("doc", version)
        assert len(set(seen)) == len(seen)

    def test_s4_a_version_from_before_a_deletion_is_refused(self, store: DocumentStore) -> None:
        old = store.create("doc", numbered(1))
        store.delete("doc", old)
        new = store.create("doc", numbered(1))
        with pytest.raises(Conflict):
            store.replace("doc", numbered(2), old)
        with pytest.raises(Conflict):
            store.delete("doc", old)
        assert present(store.get("doc")).version == new

    def test_s4_a_parents_comings_and_goings_change_no_version(self, store: DocumentStore) -> None:
        child = store.create("a/b", numbered(1))
        parent = store.create("a", numbered(2))
        store.delete("a", parent)
        again = store.create("a", numbered(3))
        assert present(store.get("a/b")) == Document("a/b", numbered(1), child)
        with pytest.raises(Conflict):
            store.replace("a", numbered(4), parent)
        store.delete("a/b", child)
        assert present(store.get("a")) == Document("a", numbered(3), again)

    def test_s5_histories_are_linearizable(
        self, harness: StoreHarness, opened: Opened, disturbance: str
    ) -> None:
        recorder = Recorder()
        stores = {f"c{n}": opened() for n in range(5)}
        if disturbance == "reply lost":
            stores = {
                name: LosesReplies(store, n) for n, (name, store) in enumerate(stores.items())
            }
        made = dict.fromkeys(stores, 0)
        goal = dict.fromkeys(stores, CALLS_MAX)

        def is_over(client: str, calls: int) -> bool:
            made[client] = calls
            return calls >= goal[client]

        def all_made(more: int) -> Callable[[], bool]:
            wanted = {client: calls + more for client, calls in made.items()}
            return lambda: running.done() or all(made[c] >= wanted[c] for c in made)

        running = in_background(
            lambda: run_clients(
                stores, recorder, ["x", "y", "z"], seed=7, is_over=is_over, calls_max=CALLS_MAX
            )
        )
        until(all_made(self.history_calls), within_s=PATIENCE_S)
        with self._trouble(harness, disturbance):
            until(all_made(20), within_s=TROUBLE_S)
            if disturbance not in ("calm", "reply lost"):  # moments are no trouble
                until(running.done, within_s=2)
        # And a little after it is healed, so that the way back is seen, too.
        goal.update({client: calls + 30 for client, calls in made.items()})
        running.result(2 * PATIENCE_S)
        # Nothing hidden: the last word of the store is part of the history.
        last = {"last": opened()}
        run_clients(
            last, recorder, ["x", "y", "z"], seed=8, is_over=lambda _client, calls: calls >= 12
        )
        assert not (found := find_violations(recorder.calls)), "\n\n".join(map(str, found))
        told = {call.told for call in recorder.calls}
        assert {"done", "found", "conflict"} <= told, f"nothing was put to the test: {told}"
