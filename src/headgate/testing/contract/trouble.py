"""Trouble: S9 to S12, damage, outages, clocks and neighbours."""

from collections.abc import Callable

import pytest

from headgate.ambient import SystemAmbient
from headgate.errors import Conflict, Corrupt, OutcomeUnknown, Unavailable
from headgate.store import Document, DocumentStore
from headgate.store.pages import pages
from headgate.testing.contract.base import (
    DAY_NS,
    LONG_MS,
    SHORT_MS,
    ContractBase,
    numbered,
    present,
    replaced,
)
from headgate.testing.harness import Opened, StoreHarness, WrongClock
from headgate.testing.racing import PATIENCE_S, eventually, in_background

ANSWER_S = 8  # for a call that has SHORT_MS, and less than one that ignores it would take


class Trouble(ContractBase):
    def test_s9_a_damaged_document_is_corrupt_and_concerns_no_other(
        self, harness: StoreHarness, store: DocumentStore, namespace: str
    ) -> None:
        names = ["f/a", "f/b", "f/c"]
        versions = {name: store.create(name, numbered(1)) for name in names}
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
        store.replace("f/a", numbered(2), versions["f/a"])
        store.delete("f/c", versions["f/c"])
        with pytest.raises(Conflict):
            store.create("f/b", numbered(3))

    def test_s10_an_outage_is_answered_in_time_and_survived(
        self, harness: StoreHarness, store: DocumentStore, outage: str
    ) -> None:
        version = store.create("doc", numbered(1))
        refused: list[Callable[[], object]] = [
            lambda: store.replace("doc", numbered(2), version, timeout_ms=SHORT_MS),
            lambda: store.create("other", numbered(2), timeout_ms=SHORT_MS),
        ]
        may_work: list[Callable[[], object]] = [
            lambda: store.delete("doc", version, timeout_ms=SHORT_MS),
            lambda: store.get("doc", timeout_ms=SHORT_MS),
            lambda: store.list(timeout_ms=SHORT_MS),
            lambda: store.now_ms(timeout_ms=SHORT_MS),
            lambda: store.wait("", None, timeout_ms=SHORT_MS),
        ]
        with harness.outage(outage):
            errors = []
            for call in refused:
                with pytest.raises((Unavailable, OutcomeUnknown)) as caught:
                    in_background(call).result(ANSWER_S)
                errors.append(caught.type)
            for call in may_work:
                try:
                    in_background(call).result(ANSWER_S)
                except (Unavailable, OutcomeUnknown):
                    continue
        if errors[1] is Unavailable:
            assert eventually(lambda: store.get("other", timeout_ms=SHORT_MS)) is None, "S5"
        # The same client, not opened anew. What was unknown may have happened: read first.
        for number in range(2, 5):
            found = eventually(lambda: store.get("doc", timeout_ms=SHORT_MS))
            if found is None:
                eventually(lambda: store.create("doc", numbered(9), timeout_ms=SHORT_MS))
                continue
            eventually(lambda: replaced(store, "doc", numbered(number)))  # noqa: B023 - called at once
        assert present(store.get("doc", timeout_ms=LONG_MS)).body["n"] in (4, 9)

    def test_s11_the_stores_clock_is_the_one_of_its_machine(self, store: DocumentStore) -> None:
        here = SystemAmbient()
        before_ms = here.wall_ns() // 1_000_000
        told_ms = store.now_ms()
        after_ms = here.wall_ns() // 1_000_000
        slack_ms = 2_000  # clocks of different granularity, on one machine
        assert before_ms - slack_ms <= told_ms <= after_ms + slack_ms

    def test_s11_a_callers_wrong_clock_is_not_the_stores(self, opened: Opened) -> None:
        wrong, right = opened(WrongClock(30 * DAY_NS)), opened()
        assert abs(wrong.now_ms() - right.now_ms()) < DAY_NS // 1_000_000

    def test_s12_namespaces_do_not_see_each_other(
        self, harness: StoreHarness, namespace: str
    ) -> None:
        with Opened(harness, namespace) as one, Opened(harness, namespace + "2") as two:
            a, b = one(), two()
            version = a.create("doc", numbered(1))
            assert b.get("doc") is None
            assert b.list().documents == ()
            other = b.create("doc", numbered(2))
            with pytest.raises(Conflict):
                b.replace("doc", numbered(3), version)
            with pytest.raises(Conflict):
                b.delete("doc", version)
            b.delete("doc", other)
            assert present(a.get("doc")) == Document("doc", numbered(1), version)

    @pytest.mark.parametrize("off_days", [-3_000, 3_000])
    def test_l12_a_wrong_wall_clock_changes_nothing(self, opened: Opened, off_days: int) -> None:
        wrong, right = opened(WrongClock(off_days * DAY_NS)), opened()
        version = wrong.create("f/doc", numbered(1))
        mark = right.wait("f", None, timeout_ms=SHORT_MS)
        version = right.replace("f/doc", numbered(2), version)
        version = wrong.replace("f/doc", numbered(3), version)
        assert right.get("f/doc") == Document("f/doc", numbered(3), version)
        waiting = in_background(right.wait, "f", mark, timeout_ms=10 * LONG_MS)
        assert waiting.result(PATIENCE_S) != mark
        assert wrong.list("f").documents == right.list("f").documents

    def test_q6_ninety_idle_days_expire_nothing(self, opened: Opened) -> None:
        version = opened().create("positions/idle", numbered(1))
        later = opened(WrongClock(90 * DAY_NS))
        later.delete("other", later.create("other", numbered(2)))
        assert later.list("positions").documents == (
            Document("positions/idle", numbered(1), version),
        )
        later.replace("positions/idle", numbered(3), version)

    def test_s10_closing_twice_is_fine(self, harness: StoreHarness, namespace: str) -> None:
        store = harness.open(namespace, SystemAmbient())
        store.create("doc", numbered(1))
        store.close()
        store.close()
