"""What every part of the store contract uses: fixtures, bodies, attempts."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar

import pytest

from headgate.ambient import SystemAmbient
from headgate.errors import Conflict
from headgate.store import Document, DocumentStore, JsonObject, Mark, Version
from headgate.testing.harness import Opened, StoreHarness
from headgate.testing.racing import PATIENCE_S, in_background

DAY_NS = 86_400 * 1_000_000_000
CALLS_MAX = 20_000
TROUBLE_S = 5  # trouble that lets nobody through is not waited for longer
LONG_MS = 30_000
SHORT_MS = 1_000


class ContractBase:
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


def numbered(n: int) -> JsonObject:
    return {"format": 1, "n": n}


def filled(n: int) -> JsonObject:
    return {"format": 1, "n": n, "filling": [n] * (1 if n % 2 else 20_000)}


def sized(size_bytes: int) -> JsonObject:
    empty = len('{"filling":"","format":1}')
    return {"format": 1, "filling": "x" * (size_bytes - empty)}


def present(found: Document | None) -> Document:
    assert found is not None, "the document is not there"
    return found


def number(value: object) -> int:
    assert isinstance(value, int)
    return value


def texts(value: object) -> list[str]:
    assert isinstance(value, list)
    return [str(item) for item in value]


def attempt(
    store: DocumentStore, verb: str, name: str, version: Version, n: int
) -> Callable[[], bool]:
    def attempt() -> bool:
        try:
            if verb == "create":
                store.create(name, numbered(n))
            elif verb == "replace":
                store.replace(name, numbered(n), version)
            else:
                store.delete(name, version)
        except Conflict:
            return False
        return True

    return attempt


def append_item(store: DocumentStore, name: str, item: str) -> None:
    for _ in range(1_000):
        found = present(store.get(name))
        try:
            items: JsonObject = {"format": 1, "items": [*texts(found.body["items"]), item]}
            store.replace(name, items, found.version)
        except Conflict:
            continue
        return
    pytest.fail(f"{item}: 1,000 conflicts")


def replaced(store: DocumentStore, name: str, body: JsonObject) -> Version:
    found = present(store.get(name, timeout_ms=SHORT_MS))
    return store.replace(name, body, found.version, timeout_ms=SHORT_MS)


def create_all(stores: Sequence[DocumentStore], names: Sequence[str]) -> None:
    def create(store: DocumentStore, share: Sequence[str]) -> None:
        for name in share:
            store.create(name, numbered(1))

    count = len(stores)
    running = [in_background(create, s, names[n::count]) for n, s in enumerate(stores)]
    for one in running:
        one.result(4 * PATIENCE_S)


def settled(store: DocumentStore, prefix: str) -> Mark:
    """A mark that stays the same while nothing happens: late wake-ups of the past are over."""
    mark = store.wait(prefix, None, timeout_ms=LONG_MS)
    for _ in range(20):
        again = store.wait(prefix, mark, timeout_ms=100)
        if again == mark:
            return mark
        mark = again
    pytest.fail("the mark changes though nothing does")
