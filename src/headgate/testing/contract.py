"""The store contract: the suite that every document store passes, whoever wrote it.

    class TestMine(StoreContract):
        @pytest.fixture
        def harness(self, tmp_path):
            return MyHarness(tmp_path)

A test's name starts with the guarantee it guards (`DocumentStore` lists them), or with the id of a
fault of an earlier system (`docs/why/faults.md`). There are no optional parts: a backend that
cannot do something fails.
"""

import json
import threading
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import ClassVar

import pytest

from headgate.ambient import SystemAmbient
from headgate.errors import Conflict, Corrupt, Invalid, OutcomeUnknown, Unavailable
from headgate.store import Document, DocumentStore, JsonObject, Mark, Version
from headgate.store.codec import BODY_BYTES_MAX
from headgate.store.names import KEY_BYTES_MAX, PART_BYTES_MAX, key, parts
from headgate.store.pages import pages
from headgate.store.trie import trie_key, trie_name
from headgate.testing.harness import Opened, StoreHarness, WrongClock
from headgate.testing.history import Recorder, find_violations, run_clients
from headgate.testing.planted import LosesReplies
from headgate.testing.racing import PATIENCE_S, Threads, at_once, eventually, until

DAY_NS = 86_400 * 1_000_000_000
CALLS_MAX = 20_000
TROUBLE_S = 8  # trouble that lets nobody through is not waited for longer
LONG_MS = 30_000
SHORT_MS = 1_000


class StoreContract:
    outages: ClassVar[Sequence[str]]
    disturbances: ClassVar[Sequence[str]] = ()
    history_calls: ClassVar[int] = 120  # of each client

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "outage" in metafunc.fixturenames:
            metafunc.parametrize("outage", self.outages)
        if "disturbance" in metafunc.fixturenames:
            metafunc.parametrize("disturbance", ["calm", "reply lost", *self.disturbances])

    @pytest.fixture
    def harness(self) -> StoreHarness:
        pytest.fail("bind the contract: give your class a fixture named harness")

    @pytest.fixture
    def namespace(self) -> str:
        return f"t{SystemAmbient().new_id()[:12]}"

    @pytest.fixture
    def opened(self, harness: StoreHarness, namespace: str) -> Iterator[Opened]:
        with Opened(harness, namespace) as opened:
            yield opened

    @pytest.fixture
    def store(self, opened: Opened) -> DocumentStore:
        return opened()

    @staticmethod
    def _trouble(harness: StoreHarness, disturbance: str) -> AbstractContextManager[None]:
        if disturbance in ("calm", "reply lost"):
            return nullcontext()
        return harness.disturbance(disturbance)

    # S1

    def test_s1_a_reader_sees_a_complete_document_or_none(self, opened: Opened) -> None:
        writer, reader = opened(), opened()
        version = writer.create("doc", _filled(0))
        is_over = threading.Event()

        def read() -> int:
            reads = 0
            while not is_over.is_set():
                found = _present(reader.get("doc"))
                assert found.body == _filled(_number(found.body["n"])), "torn"
                reads += 1
            return reads

        with Threads() as threads:
            reading = threads.start(read)
            for n in range(1, 25):
                version = writer.replace("doc", _filled(n), version)
            is_over.set()
            assert reading.result(PATIENCE_S) > 0

    # S2

    def test_s2_create_is_refused_while_the_document_is_there(self, store: DocumentStore) -> None:
        store.create("doc", _body(1))
        with pytest.raises(Conflict):
            store.create("doc", _body(2))
        assert _present(store.get("doc")).body == _body(1)

    def test_s2_replace_is_refused_once_the_version_moved(self, store: DocumentStore) -> None:
        first = store.create("doc", _body(1))
        second = store.replace("doc", _body(2), first)
        with pytest.raises(Conflict):
            store.replace("doc", _body(3), first)
        assert _present(store.get("doc")) == Document("doc", _body(2), second)

    def test_s2_delete_is_refused_once_the_version_moved(self, store: DocumentStore) -> None:
        first = store.create("doc", _body(1))
        second = store.replace("doc", _body(2), first)
        with pytest.raises(Conflict):
            store.delete("doc", first)
        store.delete("doc", second)
        assert store.get("doc") is None

    def test_s2_what_is_absent_cannot_be_replaced_or_deleted(self, store: DocumentStore) -> None:
        version = store.create("doc", _body(1))
        store.delete("doc", version)
        for refused in (
            lambda: store.replace("doc", _body(2), version),
            lambda: store.delete("doc", version),
            lambda: store.replace("never/there", _body(2), version),
        ):
            with pytest.raises(Conflict):
                refused()
        assert store.get("doc") is None

    def test_s2_another_documents_version_is_refused(self, store: DocumentStore) -> None:
        one = store.create("one", _body(1))
        store.create("two", _body(1))
        with pytest.raises(Conflict):
            store.replace("two", _body(2), one)

    @pytest.mark.parametrize("verb", ["create", "replace", "delete"])
    def test_s2_of_racing_writers_exactly_one_wins(self, opened: Opened, verb: str) -> None:
        stores = [opened() for _ in range(6)]
        for n in range(8):
            name = f"race-{n}"
            version = Version("") if verb == "create" else stores[0].create(name, _body(0))
            attempts: list[Callable[[], object]] = [
                _attempt(store, verb, name, version, client) for client, store in enumerate(stores)
            ]
            won = [client for client, winner in enumerate(at_once(attempts)) if winner]
            assert len(won) == 1, f"{verb}: {won} all won"
            found = stores[0].get(name)
            assert (None if found is None else found.body["n"]) == (
                None if verb == "delete" else won[0]
            )

    def test_l5_a_conflict_in_every_write_loses_nothing(self, opened: Opened) -> None:
        stores = [opened() for _ in range(5)]
        stores[0].create("list", {"format": 1, "items": []})

        def append(client: int, store: DocumentStore) -> None:
            for n in range(8):
                _append(store, "list", f"{client}/{n}")

        with Threads() as threads:
            running = [threads.start(append, n, store) for n, store in enumerate(stores)]
            for one in running:
                one.result(PATIENCE_S)
        items = _present(stores[0].get("list")).body["items"]
        assert sorted(_texts(items)) == [f"{c}/{n}" for c in range(5) for n in range(8)]

    # S3

    def test_s3_another_client_sees_every_acknowledged_write(self, opened: Opened) -> None:
        writer, reader = opened(), opened()
        version = writer.create("f/doc", _body(0))
        for n in range(1, 30):
            version = writer.replace("f/doc", _body(n), version)
            assert reader.get("f/doc") == Document("f/doc", _body(n), version)
            assert reader.list("f").documents == (Document("f/doc", _body(n), version),)
        writer.delete("f/doc", version)
        assert reader.get("f/doc") is None
        assert reader.list("f").documents == ()

    # S4

    def test_s4_no_version_comes_back(self, store: DocumentStore) -> None:
        seen: list[Version] = []
        for _ in range(4):  # the same name, the same bodies, again and again
            version = store.create("doc", _body(1))
            seen.append(version)
            for _ in range(3):
                version = store.replace("doc", _body(1), version)
                seen.append(version)
            store.delete("doc", version)
        assert len(set(seen)) == len(seen)

    def test_s4_a_version_from_before_a_deletion_is_refused(self, store: DocumentStore) -> None:
        old = store.create("doc", _body(1))
        store.delete("doc", old)
        new = store.create("doc", _body(1))
        with pytest.raises(Conflict):
            store.replace("doc", _body(2), old)
        with pytest.raises(Conflict):
            store.delete("doc", old)
        assert _present(store.get("doc")).version == new

    def test_s4_a_parents_comings_and_goings_change_no_version(self, store: DocumentStore) -> None:
        child = store.create("a/b", _body(1))
        parent = store.create("a", _body(2))
        store.delete("a", parent)
        again = store.create("a", _body(3))
        assert _present(store.get("a/b")) == Document("a/b", _body(1), child)
        with pytest.raises(Conflict):
            store.replace("a", _body(4), parent)
        store.delete("a/b", child)
        assert _present(store.get("a")) == Document("a", _body(3), again)

    # S5

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

        with Threads() as threads:
            running = threads.start(
                lambda: run_clients(
                    stores, recorder, ["x", "y", "z"], seed=7, is_over=is_over, calls_max=CALLS_MAX
                )
            )
            until(all_made(self.history_calls), within_s=PATIENCE_S)
            with self._trouble(harness, disturbance):
                until(all_made(20), within_s=TROUBLE_S)
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

    # S6

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
            store.create(name, _body(1))
        assert [d.key for d in store.list().documents] == sorted(names, key=parts)

    def test_s6_a_prefix_is_whole_parts_and_not_itself_listed(self, store: DocumentStore) -> None:
        for name in ("a", "a/b", "a/c/d", "ab", "b/a"):
            store.create(name, _body(1))
        assert [d.key for d in store.list("a").documents] == ["a/b", "a/c/d"]
        assert [d.key for d in store.list("a/c").documents] == ["a/c/d"]
        assert store.list("nothing/here").documents == ()

    def test_s6_pages_meet_without_gap_or_overlap(self, store: DocumentStore) -> None:
        names = sorted(("a", "a/x", "a/y", "a/y/z", "b", "c/d/e", "c/d/f", "d"), key=parts)
        for n, name in enumerate(names):
            store.create(name, _body(n))
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
            writer.create(name, _body(1))
        is_over = threading.Event()

        def churn() -> None:
            while not is_over.is_set():
                for n in range(1, 60, 14):
                    writer.delete(f"f/{n:03}", writer.create(f"f/{n:03}", _body(2)))

        with Threads() as threads:
            churning = threads.start(churn)
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
        _create_all([opened() for _ in range(6)], names)
        found = list(pages(opened(), "positions", limit=1_000, timeout_ms=LONG_MS))
        assert [d.key for page in found for d in page.documents] == names
        assert len(found) >= 5

    def test_s6_a_trie_holds_everything_in_no_order(self, opened: Opened) -> None:
        names = [f"queue {n}" for n in range(100)]
        _create_all([opened() for _ in range(4)], [trie_key("queues", name) for name in names])
        store = opened()
        found = [d.key for page in pages(store, "queues", limit=30) for d in page.documents]
        assert sorted(trie_name("queues", name) for name in found) == sorted(names)
        assert len(found) == len(names)
        assert _present(store.get(trie_key("queues", "queue 7"))).body == _body(1)

    # S7

    def test_g6_g10_different_names_are_different_documents(self, store: DocumentStore) -> None:
        names = [
            *(
                "a:b",
                "a b",
                "a_b",
                "a.b",
                "a+b",
                "a%b",
                "A:B",
                "a b ",
                " a b",
                "a\\b",
                "a*b",
                "a?b",
            ),
            *(".", "..", "...", ".a", "a.", "~", "-", "!", "zookeeper", "a.json", "con", "_doc"),
            *("Straße", "STRASSE", "日本語", "дом", "😀", "\u200b", "\ue000", "\U0010fffd", "#"),
            *("\0", "\x01", "\x7f", "a\nb", "a/b", "%2F", "%2f"),
            unicodedata.normalize("NFC", "é"),
            unicodedata.normalize("NFD", "é"),
        ]
        for n, name in enumerate(names):
            store.create(key("names", name), _body(n))
        for n, name in enumerate(names):
            assert _present(store.get(key("names", name))).body == _body(n), name
        found = [parts(d.key)[1] for d in store.list("names").documents]
        assert found == sorted(names)

    def test_g6_bodies_come_back_as_they_were(self, store: DocumentStore) -> None:
        body: JsonObject = {
            "format": 1,
            "text": '日本語 дом 😀 \u2028 \0 \x1f " \\ / </script>',
            "numbers": [0, -1, 2**53 + 1, 2**63, -(2**70), 1.5, -0.0, 1e300, 5e-324, 0.1],
            "nothing": None,
            "truth": [True, False],
            "deep": {"": {"a.b": [[[]], {}]}, "_id": "x", "$ref": 1},
        }
        store.create("doc", body)
        found = _present(store.get("doc")).body
        assert json.dumps(found, sort_keys=True) == json.dumps(body, sort_keys=True)
        assert store.list().documents[0].body == body

    def test_s7_a_body_may_have_a_million_bytes_and_no_more(self, store: DocumentStore) -> None:
        fits = _sized(BODY_BYTES_MAX)
        version = store.create("doc", fits, timeout_ms=LONG_MS)
        assert _present(store.get("doc", timeout_ms=LONG_MS)).body == fits
        with pytest.raises(Invalid, match="1,000,000"):
            store.replace("doc", _sized(BODY_BYTES_MAX + 1), version)
        with pytest.raises(Invalid, match="1,000,000"):
            store.create("other", _sized(BODY_BYTES_MAX + 1))
        assert _present(store.get("doc", timeout_ms=LONG_MS)).version == version
        assert store.get("other") is None

    @pytest.mark.parametrize(
        "body",
        [
            *({}, {"format": 0}, {"format": "1"}, {"format": True}, {"format": 1, "x": {1, 2}}),
            *({"format": 1, "x": float("nan")}, {"format": 1, "x": "\ud800"}),
            *({"format": 1, 5: 6}, {"format": 1, "x": (1, 2)}),
        ],
        ids=ascii,
    )
    def test_s7_what_is_no_body_is_refused(self, store: DocumentStore, body: JsonObject) -> None:
        with pytest.raises(Invalid):
            store.create("doc", body)
        version = store.create("doc", _body(1))
        with pytest.raises(Invalid):
            store.replace("doc", body, version)
        assert _present(store.get("doc")) == Document("doc", _body(1), version)

    def test_s7_the_longest_names_fit(self, store: DocumentStore) -> None:
        longest = [
            "x" * PART_BYTES_MAX,
            "X" * PART_BYTES_MAX,
            "ж" * (PART_BYTES_MAX // 2),
            "/".join(["y" * 199, "z" * 200]),
            "/".join(["d"] * (KEY_BYTES_MAX // 2)),
        ]
        for n, name in enumerate(longest):
            store.create(name, _body(n))
        for n, name in enumerate(longest):
            assert _present(store.get(name)).body == _body(n)
        assert [d.key for d in store.list().documents] == sorted(longest, key=parts)

    @pytest.mark.parametrize(
        "name",
        [
            "",
            "/",
            "a/",
            "/a",
            "a//b",
            "a%",
            "%41",
            "\ud800",
            "x" * 256,
            "x/" * 200 + "x",
            "n" * 500,
        ],
        ids=lambda name: ascii(name[:12]),
    )
    def test_s7_what_is_no_key_is_refused(self, store: DocumentStore, name: str) -> None:
        for refused in (
            lambda: store.get(name),
            lambda: store.create(name, _body(1)),
            lambda: store.replace(name, _body(1), Version("v")),
            lambda: store.delete(name, Version("v")),
        ):
            with pytest.raises(Invalid):
                refused()
        assert store.list().documents == ()

    # S8

    def test_s8_the_first_mark_comes_at_once(self, store: DocumentStore) -> None:
        assert store.wait("tasks", None, timeout_ms=LONG_MS)

    @pytest.mark.parametrize("verb", ["create", "replace", "delete"])
    @pytest.mark.parametrize("prefix", ["tasks", "", "tasks/deep"])
    def test_s8_a_write_after_the_mark_is_not_missed(
        self, opened: Opened, prefix: str, verb: str
    ) -> None:
        writer, waiter = opened(), opened()
        name = "tasks/deep/1"
        version = Version("") if verb == "create" else writer.create(name, _body(0))
        mark = _settled(waiter, prefix)
        _attempt(writer, verb, name, version, 1)()
        with Threads() as threads:  # would take LONG_MS if it were missed
            waiting = threads.start(waiter.wait, prefix, mark, timeout_ms=10 * LONG_MS)
            assert waiting.result(PATIENCE_S) != mark

    @pytest.mark.parametrize("prefix", ["tasks", ""])
    def test_s8_l9_a_write_wakes_a_blocked_waiter(self, opened: Opened, prefix: str) -> None:
        writer, waiter = opened(), opened()
        version = writer.create("tasks/1", _body(0))
        for n in range(3):
            mark = _settled(waiter, prefix)
            with Threads() as threads:
                waiting = threads.start(waiter.wait, prefix, mark, timeout_ms=10 * LONG_MS)
                version = writer.replace("tasks/1", _body(n), version)
                assert waiting.result(PATIENCE_S) != mark

    def test_s8_l9_without_a_change_a_wait_ends_with_its_time(self, store: DocumentStore) -> None:
        store.create("tasks/1", _body(1))
        mark = _settled(store, "tasks")
        with Threads() as threads:
            waiting = threads.start(store.wait, "tasks", mark, timeout_ms=300)
            waiting.result(PATIENCE_S)
        assert store.wait("tasks", mark, timeout_ms=0)

    def test_q14_trouble_and_lost_wake_ups_only_delay(
        self, harness: StoreHarness, opened: Opened, disturbance: str
    ) -> None:
        """Whoever looks after each wait sees the end, whatever woke it or did not."""
        writer, waiter = opened(), opened()
        writer.create("tasks/1", _body(0))

        def follow() -> None:
            mark = None
            while True:
                with suppress(Unavailable):
                    if _present(waiter.get("tasks/1", timeout_ms=SHORT_MS)).body["n"] == 20:
                        return
                    mark = waiter.wait("tasks", mark, timeout_ms=200)

        with Threads() as threads:
            following = threads.start(follow)
            with self._trouble(harness, disturbance):
                for n in range(1, 21):
                    eventually(lambda: _replaced(writer, "tasks/1", _body(n)))  # noqa: B023
            following.result(PATIENCE_S)

    # S9

    def test_s9_a_damaged_document_is_corrupt_and_concerns_no_other(
        self, harness: StoreHarness, store: DocumentStore, namespace: str
    ) -> None:
        names = ["f/a", "f/b", "f/c"]
        versions = {name: store.create(name, _body(1)) for name in names}
        place = harness.damage(namespace, "f/b")

        with pytest.raises(Corrupt) as caught:
            store.get("f/b")
        assert place in str(caught.value), "the message names the place"
        page = store.list("f")
        assert [d.key for d in page.documents] == ["f/a", "f/c"]
        assert [d.key for d in page.damaged] == ["f/b"]
        assert place in page.damaged[0].place
        assert [d.key for page in pages(store, "f", limit=1) for d in page.documents] == [
            "f/a",
            "f/c",
        ]
        store.replace("f/a", _body(2), versions["f/a"])
        store.delete("f/c", versions["f/c"])
        with pytest.raises(Conflict):
            store.create("f/b", _body(3))

    # S10

    def test_s10_an_outage_is_answered_in_time_and_survived(
        self, harness: StoreHarness, store: DocumentStore, outage: str
    ) -> None:
        version = store.create("doc", _body(1))
        refused: list[Callable[[], object]] = [
            lambda: store.replace("doc", _body(2), version, timeout_ms=SHORT_MS),
            lambda: store.create("other", _body(2), timeout_ms=SHORT_MS),
        ]
        may_work: list[Callable[[], object]] = [
            lambda: store.delete("doc", version, timeout_ms=SHORT_MS),
            lambda: store.get("doc", timeout_ms=SHORT_MS),
            lambda: store.list(timeout_ms=SHORT_MS),
            lambda: store.now_ms(timeout_ms=SHORT_MS),
            lambda: store.wait("", None, timeout_ms=SHORT_MS),
        ]
        with harness.outage(outage), Threads() as threads:
            for call in refused:
                with pytest.raises((Unavailable, OutcomeUnknown)):
                    threads.start(call).result(PATIENCE_S)
            for call in may_work:
                try:
                    threads.start(call).result(PATIENCE_S)
                except (Unavailable, OutcomeUnknown):
                    continue
        # The same client, not opened anew. What was unknown may have happened: read first.
        for number in range(2, 5):
            found = eventually(lambda: store.get("doc", timeout_ms=SHORT_MS))
            if found is None:
                eventually(lambda: store.create("doc", _body(9), timeout_ms=SHORT_MS))
                continue
            eventually(lambda: _replaced(store, "doc", _body(number)))  # noqa: B023 - called at once
        assert _present(store.get("doc", timeout_ms=LONG_MS)).body["n"] in (4, 9)

    # S11, S12, and what time must not do

    def test_s11_the_stores_clock_is_the_one_of_its_machine(self, store: DocumentStore) -> None:
        here = SystemAmbient()
        before_ms = here.wall_ns() // 1_000_000
        told_ms = store.now_ms()
        after_ms = here.wall_ns() // 1_000_000
        slack_ms = 2_000  # clocks of different granularity, on one machine
        assert before_ms - slack_ms <= told_ms <= after_ms + slack_ms

    def test_s12_namespaces_do_not_see_each_other(
        self, harness: StoreHarness, namespace: str
    ) -> None:
        with Opened(harness, namespace) as one, Opened(harness, namespace + "2") as two:
            a, b = one(), two()
            version = a.create("doc", _body(1))
            assert b.get("doc") is None
            assert b.list().documents == ()
            other = b.create("doc", _body(2))
            with pytest.raises(Conflict):
                b.replace("doc", _body(3), version)
            b.delete("doc", other)
            assert _present(a.get("doc")) == Document("doc", _body(1), version)

    @pytest.mark.parametrize("off_days", [-3_000, 3_000])
    def test_l12_a_wrong_wall_clock_changes_nothing(self, opened: Opened, off_days: int) -> None:
        wrong, right = opened(WrongClock(off_days * DAY_NS)), opened()
        version = wrong.create("f/doc", _body(1))
        mark = right.wait("f", None, timeout_ms=SHORT_MS)
        version = right.replace("f/doc", _body(2), version)
        version = wrong.replace("f/doc", _body(3), version)
        assert right.get("f/doc") == Document("f/doc", _body(3), version)
        with Threads() as threads:
            waiting = threads.start(right.wait, "f", mark, timeout_ms=10 * LONG_MS)
            assert waiting.result(PATIENCE_S) != mark
        assert wrong.list("f").documents == right.list("f").documents

    def test_q6_ninety_idle_days_expire_nothing(self, opened: Opened) -> None:
        version = opened().create("positions/idle", _body(1))
        later = opened(WrongClock(90 * DAY_NS))
        later.delete("other", later.create("other", _body(2)))
        assert later.list("positions").documents == (Document("positions/idle", _body(1), version),)
        later.replace("positions/idle", _body(3), version)

    def test_s10_closing_twice_is_fine(self, harness: StoreHarness, namespace: str) -> None:
        store = harness.open(namespace, SystemAmbient())
        store.create("doc", _body(1))
        store.close()
        store.close()


def _body(n: int) -> JsonObject:
    return {"format": 1, "n": n}


def _filled(n: int) -> JsonObject:
    return {"format": 1, "n": n, "filling": [n] * (1 if n % 2 else 20_000)}


def _sized(size_bytes: int) -> JsonObject:
    empty = len('{"filling":"","format":1}')
    return {"format": 1, "filling": "x" * (size_bytes - empty)}


def _present(found: Document | None) -> Document:
    assert found is not None, "the document is not there"
    return found


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


def _texts(value: object) -> list[str]:
    assert isinstance(value, list)
    return [str(item) for item in value]


def _attempt(
    store: DocumentStore, verb: str, name: str, version: Version, n: int
) -> Callable[[], bool]:
    def attempt() -> bool:
        try:
            if verb == "create":
                store.create(name, _body(n))
            elif verb == "replace":
                store.replace(name, _body(n), version)
            else:
                store.delete(name, version)
        except Conflict:
            return False
        return True

    return attempt


def _append(store: DocumentStore, name: str, item: str) -> None:
    for _ in range(1_000):
        found = _present(store.get(name))
        try:
            items: JsonObject = {"format": 1, "items": [*_texts(found.body["items"]), item]}
            store.replace(name, items, found.version)
        except Conflict:
            continue
        return
    pytest.fail(f"{item}: 1,000 conflicts")


def _replaced(store: DocumentStore, name: str, body: JsonObject) -> Version:
    found = _present(store.get(name, timeout_ms=SHORT_MS))
    return store.replace(name, body, found.version, timeout_ms=SHORT_MS)


def _create_all(stores: Sequence[DocumentStore], names: Sequence[str]) -> None:
    def create(store: DocumentStore, share: Sequence[str]) -> None:
        for name in share:
            store.create(name, _body(1))

    with Threads() as threads:
        count = len(stores)
        running = [threads.start(create, s, names[n::count]) for n, s in enumerate(stores)]
        for one in running:
            one.result(4 * PATIENCE_S)


def _settled(store: DocumentStore, prefix: str) -> Mark:
    """A mark that stays the same while nothing happens: late wake-ups of the past are over."""
    mark = store.wait(prefix, None, timeout_ms=LONG_MS)
    for _ in range(20):
        again = store.wait(prefix, mark, timeout_ms=100)
        if again == mark:
            return mark
        mark = again
    pytest.fail("the mark changes though nothing does")
