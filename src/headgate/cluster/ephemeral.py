"""Ephemeral: presence on a store that itself notices when a client is gone.

    member's znode made ──▶ session created, with its number ──▶ …
    the znode ends, with its client or by its hand ──▶ the session is closed by whoever looks

So a node that dies is over as soon as ZooKeeper says so, and everybody is told; the session remains
the truth, and its `expire` the rule if ZooKeeper says nothing. Order matters twice: the znode is
made before its session, and a look reads sessions before znodes. Then a live session that was read
and has no znode has lost it.

A renewal holds as long as ZooKeeper waits for a silent client, at most a term. That counts from a
message of the same client, so a renewal first makes sure that the znode is there and belongs to
this client: a new connection may have come with a new ZooKeeper session, and the znode has ended.
"""

import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Protocol

from headgate.ambient import Ambient, Deadline
from headgate.cluster import Advert, Look, Member, Presence
from headgate.cluster.presence import AGAIN, DocumentPresence
from headgate.cluster.session import TERM_MS
from headgate.errors import Fenced, OutcomeUnknown, Unavailable
from headgate.store import TIMEOUT_MS, DocumentStore
from headgate.store.znodes import ZooKeeperStore

NODE_ENDED = "its member node ended"


class Ephemerals(Protocol):
    """Numbered nodes that end with the client that made them. No number is given twice.

    All raise Unavailable.
    """

    def session_ms(self, *, timeout_ms: int = TIMEOUT_MS) -> int:
        """Nothing of a client ends before it was silent for that long."""

    def make(self, session: str, node: str, *, timeout_ms: int = TIMEOUT_MS) -> int:
        """Its number. Raises OutcomeUnknown, too."""

    def find(self, session: str, *, timeout_ms: int = TIMEOUT_MS) -> int | None:
        """The number of the one that this client made for a session."""

    def is_mine(self, number: int, *, timeout_ms: int = TIMEOUT_MS) -> bool:
        """Is it there, and does it end with this client?"""

    def numbers(self, *, timeout_ms: int = TIMEOUT_MS) -> Collection[int]:
        """Of all that are there. The next that comes or goes rings."""

    def remove(self, number: int, *, timeout_ms: int = TIMEOUT_MS) -> None:
        """Removing one that is gone is fine."""

    def watch(self, ring: Callable[[], None]) -> None: ...


class EphemeralPresence:
    """Implements `headgate.cluster.Presence`."""

    def __init__(self, documents: DocumentPresence, nodes: Ephemerals, ambient: Ambient) -> None:
        self._documents = documents
        self._nodes = nodes
        self._ambient = ambient
        self._changing = threading.Lock()
        self._asked: set[str] = set()  # sessions whose node may have been made
        self._session_ms = documents.hold_ms

    @property
    def hold_ms(self) -> int:
        return min(self._documents.hold_ms, self._session_ms)

    def join(self, session: str, advert: Advert, *, timeout_ms: int = TIMEOUT_MS) -> Member:
        """Raises Fenced, too: an earlier try got through, and was closed meanwhile."""
        deadline = Deadline(self._ambient, timeout_ms)
        number = self._node(session, advert, deadline)
        self._session_ms = self._nodes.session_ms(timeout_ms=deadline.left_ms())
        try:
            member = self._documents.join_as(session, advert, number, timeout_ms=deadline.left_ms())
        except Fenced:
            self._drop(number, deadline)
            raise
        if member.number != number:  # the session of an earlier try, whose node has ended
            self._drop(number, deadline)
            member = self.renew(member, advert, timeout_ms=deadline.left_ms())
        with self._changing:
            self._asked.discard(session)
        return member

    def renew(self, member: Member, advert: Advert, *, timeout_ms: int = TIMEOUT_MS) -> Member:
        deadline = Deadline(self._ambient, timeout_ms)
        if not self._nodes.is_mine(member.number, timeout_ms=deadline.left_ms()):
            self._documents.end(member.session, NODE_ENDED, timeout_ms=deadline.left_ms())
        self._session_ms = self._nodes.session_ms(timeout_ms=deadline.left_ms())
        try:
            return self._documents.renew(member, advert, timeout_ms=deadline.left_ms())
        except Fenced:
            self._drop(member.number, deadline)
            raise

    def leave(self, member: Member, *, timeout_ms: int = TIMEOUT_MS) -> None:
        deadline = Deadline(self._ambient, timeout_ms)
        self._documents.leave(member, timeout_ms=deadline.left_ms())
        self._drop(member.number, deadline)

    def look(self, *, timeout_ms: int = TIMEOUT_MS) -> Look:
        deadline = Deadline(self._ambient, timeout_ms)
        look = self._documents.look(timeout_ms=deadline.left_ms())
        numbers = self._nodes.numbers(timeout_ms=deadline.left_ms())
        members, over, next_ms = [], set(look.over), look.next_ms
        for member in look.members:
            if member.number in numbers:
                members.append(member)
                continue
            try:
                self._documents.end(member.session, NODE_ENDED, timeout_ms=deadline.left_ms())
            except OutcomeUnknown:
                members.append(member)
                soon_ms = self._ambient.monotonic_ms() + int(self._documents.hold_ms * AGAIN)
                next_ms = min(next_ms, soon_ms)
            else:
                over.add(member.session)
        return Look(tuple(members), tuple(sorted(over)), next_ms)

    def is_over(self, session: str, *, timeout_ms: int = TIMEOUT_MS) -> bool:
        return self._documents.is_over(session, timeout_ms=timeout_ms)

    def forget(self, session: str, *, timeout_ms: int = TIMEOUT_MS) -> None:
        self._documents.forget(session, timeout_ms=timeout_ms)

    def watch(self, ring: Callable[[], None]) -> None:
        """Each look leaves a watch for the next change, so it rings once between two looks; also
        when the connection, and with it the watch, is lost."""
        self._nodes.watch(ring)

    def close(self) -> None:
        """Nothing to give back: the store belongs to whoever opened it."""

    def _node(self, session: str, advert: Advert, deadline: Deadline) -> int:
        with self._changing:
            is_asked = session in self._asked
            self._asked.add(session)
        number = self._nodes.find(session, timeout_ms=deadline.left_ms()) if is_asked else None
        if number is None:
            number = self._nodes.make(session, advert.node, timeout_ms=deadline.left_ms())
        return number

    def _drop(self, number: int, deadline: Deadline) -> None:
        """What is left behind harms nobody, and ends with this client."""
        with suppress(Unavailable):
            self._nodes.remove(number, timeout_ms=deadline.left_ms())


def open_presence(store: DocumentStore, ambient: Ambient, *, term_ms: int = TERM_MS) -> Presence:
    """The best that this store can do. Raises Unavailable."""
    documents = DocumentPresence(store, ambient, term_ms=term_ms)
    if isinstance(store, ZooKeeperStore):
        return EphemeralPresence(documents, store.member_nodes, ambient)
    return documents
