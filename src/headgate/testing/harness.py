"""Harness: what a contract needs of a backend beside the thing itself."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from headgate.ambient import Ambient, SystemAmbient
from headgate.cluster import Presence
from headgate.lake import FileFacts, Lake
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


class LakeHarness(Protocol):
    """What the suite for the lake needs of a backend. One harness has one lake, empty at first."""

    has_modes: bool
    """Whether files and folders have a mode and a group."""
    folder_mode: int
    """One of a folder, if they have modes, with all kinds of bits that there are."""
    is_lasting: bool
    """Whether every write that was acknowledged survives a power cut, sealed or not."""

    def open(self, *, file_mode: int | None = None, folder_mode: int | None = None) -> Lake:
        """One more client of the same lake."""

    def facts_of(self, content: bytes) -> FileFacts:
        """What this lake says of such a file, found out without it."""

    def put(self, path: str, content: bytes) -> None:
        """As an engine, or a careless hand: in place, whatever is there, neither sealed nor
        settled."""

    def files(self) -> Mapping[str, bytes]:
        """Everything there is, by path, as somebody else sees it."""

    def ways_out(self) -> Sequence[str]:
        """Paths of plain names that lead out of the root, if this backend can have such."""

    def mode_of(self, path: str) -> int:
        """Of a file or a folder."""

    def power_cut(self) -> None:
        """Everything is as it was when it was last made to last. Clients stay open."""

    def outage(self, name: str) -> AbstractContextManager[None]:
        """While open, no write can succeed. `LakeContract.outages` has the names."""


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
