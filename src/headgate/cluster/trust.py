"""Trust: how long this node may act under its session.

    none ── joined, renewed ──▶ until start + hold - margin ── time passes ──▶ over
      ▲                              │                                           │
      └──── session lost, left ──────┴───────────────────────────────────────────┘

Counted from the *start* of a renewal: what happened at the store, happened after that, so whoever
closes the session cannot do so before this node stopped (invariant 10). On the clock that goes on
while the machine sleeps. After a break of the store, a renewal of the same session brings it back.

Trust is a courtesy, not a guard: a node may be paused between asking and acting. What keeps that
harmless is compare-and-set.
"""

import threading
from typing import Protocol

from headgate.ambient import Ambient
from headgate.errors import Fenced
from headgate.store import (
    PAGE_DOCUMENTS_MAX,
    TIMEOUT_MS,
    Document,
    DocumentStore,
    JsonObject,
    Mark,
    Page,
    Version,
)


def trusted_until_ms(start_ms: int, hold_ms: int) -> int:
    """The margin, a tenth, is for clocks that run at different speeds."""
    return start_ms + hold_ms - hold_ms // 10


class Trust:
    """Set by the membership, asked by everybody else in this node, from any thread."""

    def __init__(self, ambient: Ambient) -> None:
        self._ambient = ambient
        # One value, and every reader looks at it once: another thread may end it meanwhile.
        self._changing = threading.Lock()
        self._is_over = False
        self._granted: tuple[str, int] | None = None

    def grant(self, session: str, until_ms: int) -> None:
        with self._changing:
            if not self._is_over:
                self._granted = (session, until_ms)

    def end(self, *, for_good: bool = False) -> None:
        """`for_good`: also if a renewal that is under way says otherwise afterwards."""
        with self._changing:
            self._is_over |= for_good
            self._granted = None

    @property
    def session(self) -> str | None:
        """The session this node has, whether or not it may act just now."""
        granted = self._granted
        return None if granted is None else granted[0]

    @property
    def until_ms(self) -> int:
        """On the boot clock; 0 without a session."""
        granted = self._granted
        return 0 if granted is None else granted[1]

    def left_ms(self, session: str) -> int:
        """Never negative; 0 for a session that is not this node's any more."""
        granted = self._granted
        if granted is None or granted[0] != session:
            return 0
        return max(0, granted[1] - self._ambient.boot_ms())

    def check(self, session: str) -> None:
        """Raises Fenced."""
        granted = self._granted
        if granted is None or granted[0] != session:
            raise Fenced(f"session {session[:8]} is no longer this node's; whoever holds it stops")
        if granted[1] <= self._ambient.boot_ms():
            raise Fenced(
                f"session {session[:8]} was not renewed in time; nothing is started under it"
            )


class Permit(Protocol):
    """Whether one may act, and for how long."""

    def check(self) -> None:
        """Raises Fenced."""

    def left_ms(self) -> int:
        """Never negative."""


class SessionPermit:
    """To act under one session of this node."""

    def __init__(self, trust: Trust, session: str) -> None:
        self._trust = trust
        self._session = session

    def check(self) -> None:
        self._trust.check(self._session)

    def left_ms(self) -> int:
        return self._trust.left_ms(self._session)


class GuardedStore:
    """The store, for whoever acts under a permit: every call asks for it first, and takes no longer
    than what is left of it."""

    def __init__(self, behind: DocumentStore, permit: Permit) -> None:
        self._behind = behind
        self._permit = permit

    def get(self, key: str, *, timeout_ms: int = TIMEOUT_MS) -> Document | None:
        return self._behind.get(key, timeout_ms=self._limit(timeout_ms))

    def create(self, key: str, body: JsonObject, *, timeout_ms: int = TIMEOUT_MS) -> Version:
        return self._behind.create(key, body, timeout_ms=self._limit(timeout_ms))

    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        return self._behind.replace(key, body, version, timeout_ms=self._limit(timeout_ms))

    def delete(self, key: str, version: Version, *, timeout_ms: int = TIMEOUT_MS) -> None:
        self._behind.delete(key, version, timeout_ms=self._limit(timeout_ms))

    def list(
        self,
        prefix: str = "",
        *,
        after: str = "",
        limit: int = PAGE_DOCUMENTS_MAX,
        timeout_ms: int = TIMEOUT_MS,
    ) -> Page:
        limit_ms = self._limit(timeout_ms)
        return self._behind.list(prefix, after=after, limit=limit, timeout_ms=limit_ms)

    def wait(self, prefix: str, since: Mark | None, *, timeout_ms: int) -> Mark:
        return self._behind.wait(prefix, since, timeout_ms=self._limit(timeout_ms))

    def now_ms(self, *, timeout_ms: int = TIMEOUT_MS) -> int:
        return self._behind.now_ms(timeout_ms=self._limit(timeout_ms))

    def close(self) -> None:
        """Stays open: the store belongs to the node."""

    def _limit(self, timeout_ms: int) -> int:
        self._permit.check()
        return min(timeout_ms, self._permit.left_ms())
