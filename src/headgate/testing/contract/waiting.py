"""Waiting: S8, wake-ups."""

import pytest

from headgate.errors import Unavailable
from headgate.store import DocumentStore, Mark, Version
from headgate.testing.contract.base import (
    LONG_MS,
    SHORT_MS,
    TROUBLE_S,
    ContractBase,
    attempt,
    numbered,
    present,
    replaced,
    settled,
)
from headgate.testing.harness import Opened, StoreHarness
from headgate.testing.planted import LosesReplies
from headgate.testing.racing import PATIENCE_S, eventually, in_background, until

WRITES = 20


class Waiting(ContractBase):
    def test_s8_the_first_mark_comes_at_once(self, store: DocumentStore) -> None:
        first = in_background(store.wait, "tasks", None, timeout_ms=10 * LONG_MS)
        assert first.result(PATIENCE_S) is not None

    @pytest.mark.parametrize("verb", ["create", "replace", "delete"])
    @pytest.mark.parametrize("prefix", ["tasks", "", "tasks/deep"])
    def test_s8_a_write_after_the_mark_is_not_missed(
        self, opened: Opened, prefix: str, verb: str
    ) -> None:
        writer, waiter = opened(), opened()
        name = "tasks/deep/1"
        version = Version("") if verb == "create" else writer.create(name, numbered(0))
        mark = settled(waiter, prefix)
        attempt(writer, verb, name, version, 1)()
        # Missed, it would return with its time, which is longer than our patience.
        assert in_background(changed, waiter, prefix, mark).result(PATIENCE_S)

    @pytest.mark.parametrize("prefix", ["tasks", ""])
    def test_s8_l9_a_write_wakes_a_blocked_waiter(self, opened: Opened, prefix: str) -> None:
        writer, waiter = opened(), opened()
        version = writer.create("tasks/1", numbered(0))
        for n in range(3):
            mark = settled(waiter, prefix)
            waiting = in_background(changed, waiter, prefix, mark)
            # Settled: it does not return by itself. By now it waits, or is about to.
            assert not until(waiting.done, within_s=0.15)
            version = writer.replace("tasks/1", numbered(n), version)
            assert waiting.result(PATIENCE_S)

    def test_s8_l9_without_a_change_a_wait_ends_with_its_time(self, store: DocumentStore) -> None:
        store.create("tasks/1", numbered(1))
        mark = settled(store, "tasks")
        waiting = in_background(store.wait, "tasks", mark, timeout_ms=2_000)
        assert not until(waiting.done, within_s=0.5), "it blocks"
        waiting.result(15)  # for two seconds; no measurement, but a limit that is ignored shows
        assert store.wait("tasks", mark, timeout_ms=0) is not None

    def test_q14_trouble_and_lost_wake_ups_only_delay(
        self, harness: StoreHarness, opened: Opened, disturbance: str
    ) -> None:
        """Whoever looks after each wait sees the end, whatever woke it or did not."""
        waiter, writer = opened(), opened()
        writer.create("tasks/1", numbered(0))
        if disturbance == "reply lost":
            writer = LosesReplies(writer, seed=1)

        def write() -> None:
            for n in range(1, WRITES + 1):
                eventually(lambda: replaced(writer, "tasks/1", numbered(n)))  # noqa: B023

        def is_seen(mark: list[Mark | None]) -> bool:
            try:
                found = present(waiter.get("tasks/1", timeout_ms=SHORT_MS))
                mark[0] = waiter.wait("tasks", mark[0], timeout_ms=200)
            except Unavailable:
                return False
            return found.body["n"] == WRITES

        mark: list[Mark | None] = [None]
        with self._trouble(harness, disturbance):
            writing = in_background(write)
            until(lambda: writing.done() or is_seen(mark), within_s=TROUBLE_S)
        writing.result(2 * PATIENCE_S)
        assert until(lambda: is_seen(mark), within_s=PATIENCE_S)


def changed(store: DocumentStore, prefix: str, mark: Mark) -> bool:
    """Waits for a change, longer than anybody is patient; a wait that returns early is repeated."""
    return any(store.wait(prefix, mark, timeout_ms=10 * LONG_MS) != mark for _ in range(100))
