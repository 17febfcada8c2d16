"""Harness: what a contract needs of a backend beside the thing itself."""

from contextlib import AbstractContextManager
from typing import Protocol

from headgate.ambient import Ambient, SystemAmbient
from headgate.cluster import Presence
from headgate.store import DocumentStore


class StoreHarness(Protocol):
    """What the suite needs of a backend beside the store itself."""

    def open(self, namespace: str, ambient: Ambient) -> DocumentStore:
        """One more client of the same store; the suite closes it."""

    def damage(self, namespace: str, key: str) -> str:
        """Spoils a stored document as a bad disk or a careless hand would; the place it is at."""

    def outage(self, name: str) -> AbstractContextManager[None]:
        """While open, no write can succeed. `StoreContract.outages` has the names."""

    def disturbance(self, name: str) -> AbstractContextManager[None]:
        """While open, something goes wrong that the store must stand; healed at the end.
        `StoreContract.disturbances` has the names."""


class PresenceHarness(Protocol):
    """What the suite for presence needs of a backend. What it opens, the harness's owner closes."""

    def open(self, namespace: str, ambient: Ambient, term_ms: int) -> Presence:
        """One more client of the same store."""

    def open_lossy(self, namespace: str, ambient: Ambient, term_ms: int, seed: int) -> Presence:
        """One whose writes are not always answered (OutcomeUnknown): they happen or they do not.
        `planted.LosesReplies` makes such a store."""


class Opened:
    """Opens clients of one namespace and closes them all at the end."""

    def __init__(self, harness: StoreHarness, namespace: str) -> None:
        self._harness = harness
        self._namespace = namespace
        self._stores: list[DocumentStore] = []

    def __call__(self, ambient: Ambient | None = None) -> DocumentStore:
        store = self._harness.open(self._namespace, ambient or SystemAmbient())
        self._stores.append(store)
        return store

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, *error: object) -> None:
        for store in self._stores:
            store.close()


class WrongClock(SystemAmbient):
    def __init__(self, off_ns: int) -> None:
        self._off_ns = off_ns

    def wall_ns(self) -> int:
        return super().wall_ns() + self._off_ns
