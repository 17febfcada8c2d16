import pytest

from headgate.ambient import SystemAmbient
from headgate.errors import Conflict
from headgate.store import TIMEOUT_MS, Document, DocumentStore
from headgate.store.memory import MemoryStore, Shelf
from headgate.testing.hammer.crew import clean_up
from headgate.testing.hammer.judge import COUNTER, Counter
from headgate.testing.hammer.writer import counter_body, entry_key
from headgate.testing.planted import ForwardingStore


class Restless(ForwardingStore):
    """Somebody replaces the counter so many times, each time right after a look at it."""

    def __init__(self, behind: DocumentStore, times: int) -> None:
        super().__init__(behind)
        self._times = times

    def get(self, key: str, *, timeout_ms: int = TIMEOUT_MS) -> Document | None:
        found = super().get(key, timeout_ms=timeout_ms)
        if found is not None and self._times:
            self._times -= 1
            self.behind.replace(key, found.body, found.version)
        return found


def hammered() -> MemoryStore:
    store = MemoryStore(Shelf(), "default", SystemAmbient())
    store.create(COUNTER, counter_body(Counter(0, {})))
    for number in (1, 2):
        store.create(entry_key(number), {"format": 1, "write": f"1.1-{number}"})
    store.create(f"{COUNTER}/1", {"format": 1})
    store.create("mine", {"format": 1})
    return store


def keys(store: DocumentStore) -> list[str]:
    return [document.key for document in store.list().documents]


def test_clean_up_removes_what_the_hammer_wrote_and_nothing_else() -> None:
    store = hammered()

    clean_up(store)
    clean_up(store)

    assert keys(store) == [f"{COUNTER}/1", "mine"]


def test_clean_up_tries_again_when_the_last_request_of_a_killed_process_comes_late() -> None:
    store = hammered()

    clean_up(Restless(store, times=2))

    assert keys(store) == [f"{COUNTER}/1", "mine"]


def test_clean_up_gives_up_while_somebody_keeps_writing() -> None:
    with pytest.raises(Conflict, match="next: "):
        clean_up(Restless(hammered(), times=1_000))
