"""What the contract of presence needs of each backend: clients, also such as lose replies."""

from collections.abc import Callable
from random import Random

from headgate.ambient import Ambient
from headgate.cluster import Presence
from headgate.cluster.ephemeral import EphemeralPresence, Ephemerals, open_presence
from headgate.cluster.presence import DocumentPresence
from headgate.errors import OutcomeUnknown
from headgate.store import TIMEOUT_MS, DocumentStore
from headgate.store.znodes import ZooKeeperStore
from headgate.testing.planted import LosesReplies


class StorePresences:
    """Over any store; close() closes all that were opened."""

    def __init__(self, open_store: Callable[[str, Ambient], DocumentStore]) -> None:
        self._open_store = open_store
        self._stores: list[DocumentStore] = []

    def open(self, namespace: str, ambient: Ambient, term_ms: int) -> Presence:
        return open_presence(self._opened(namespace, ambient), ambient, term_ms=term_ms)

    def open_lossy(self, namespace: str, ambient: Ambient, term_ms: int, seed: int) -> Presence:
        store = self._opened(namespace, ambient)
        documents = DocumentPresence(LosesReplies(store, seed), ambient, term_ms=term_ms)
        if isinstance(store, ZooKeeperStore):
            return EphemeralPresence(documents, LosesNodes(store.member_nodes, seed), ambient)
        return documents

    def close(self) -> None:
        for store in self._stores:
            store.close()

    def _opened(self, namespace: str, ambient: Ambient) -> DocumentStore:
        store = self._open_store(namespace, ambient)
        self._stores.append(store)
        return store


class LosesNodes:
    """Some members' nodes are made or are not, and their answer says, rightly, unknown."""

    def __init__(self, behind: Ephemerals, seed: int) -> None:
        self._behind = behind
        self._random = Random(seed)
        self.session_ms = behind.session_ms
        self.find = behind.find
        self.is_mine = behind.is_mine
        self.numbers = behind.numbers
        self.remove = behind.remove
        self.watch = behind.watch

    def make(self, session: str, node: str, *, timeout_ms: int = TIMEOUT_MS) -> int:
        self._lose(session)
        number = self._behind.make(session, node, timeout_ms=timeout_ms)
        self._lose(session)
        return number

    def _lose(self, session: str) -> None:
        if self._random.random() < 0.3:
            raise OutcomeUnknown(f"{session}: no answer")
