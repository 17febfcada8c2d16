"""Store clock: the store's time as one node knows it, so that no node's wall clock matters.

The store is asked once, and again every ten minutes; in between, the node's boot clock counts on.
When exactly the store looked at its clock is not known, only that it was during the request:

    asked ──────── the store looks: S ──────── answered
    S + time since asked      at most this late       for what we promise others: `latest_ms`
    S + time since answered   at least this late      to judge others by: `now_ms`

Nobody is judged by more than has passed, and nobody promises less. What drift does in ten minutes
is far less than the margin of trust.
"""

import threading
from dataclasses import dataclass

from headgate.ambient import Ambient
from headgate.store import TIMEOUT_MS, DocumentStore

RESYNC_MS = 600_000
JUMP_MS = 2_000  # more than drift does between two comparisons


@dataclass(frozen=True, slots=True)
class _Sync:
    store_ms: int
    asked_ms: int  # on the boot clock, as the next
    answered_ms: int


class StoreClock:
    """All methods may be called from several threads, and raise Unavailable."""

    def __init__(self, store: DocumentStore, ambient: Ambient) -> None:
        self._store = store
        self._ambient = ambient
        self._changing = threading.Lock()
        self._last: _Sync | None = None
        self._steady_since_ms = ambient.monotonic_ms()

    def steady_ms(self) -> int:
        """For how long the store's clock has gone on as ours do, as far as this node saw."""
        return self._ambient.monotonic_ms() - self._steady_since_ms

    def now_ms(self, *, age_ms_max: int = RESYNC_MS, timeout_ms: int = TIMEOUT_MS) -> int:
        """The store's clock shows this, or a round trip more; compared not longer ago than that."""
        sync = self._sync(age_ms_max, timeout_ms)
        return sync.store_ms + self._ambient.boot_ms() - sync.answered_ms

    def latest_ms(self, *, timeout_ms: int = TIMEOUT_MS) -> int:
        """The store's clock shows no more than this."""
        sync = self._sync(RESYNC_MS, timeout_ms)
        return sync.store_ms + 1 + self._ambient.boot_ms() - sync.asked_ms

    def off_ms(self, *, timeout_ms: int = TIMEOUT_MS) -> int:
        """How far this node's wall clock is ahead of the store's; negative: behind."""
        shown_ms = self.now_ms(timeout_ms=timeout_ms)
        return self._ambient.wall_ns() // 1_000_000 - shown_ms

    def resync(self, *, timeout_ms: int = TIMEOUT_MS) -> None:
        """For who has a reason to believe that the store's clock was set."""
        self._ask(timeout_ms)

    def _sync(self, age_ms_max: int, timeout_ms: int) -> _Sync:
        with self._changing:
            last = self._last
        if last is not None and self._ambient.boot_ms() - last.answered_ms <= age_ms_max:
            return last
        return self._ask(timeout_ms)

    def _ask(self, timeout_ms: int) -> _Sync:
        asked_ms = self._ambient.boot_ms()
        store_ms = self._store.now_ms(timeout_ms=timeout_ms)
        sync = _Sync(store_ms, asked_ms, self._ambient.boot_ms())
        with self._changing:
            if self._last is None or _has_jumped(self._last, sync):
                self._steady_since_ms = self._ambient.monotonic_ms()
            self._last = sync
        return sync


def _has_jumped(last: _Sync, now: _Sync) -> bool:
    """Whether the store's clock shows what it cannot, if it went on as ours did."""
    least_ms = last.store_ms + now.asked_ms - last.answered_ms - JUMP_MS
    most_ms = last.store_ms + now.answered_ms - last.asked_ms + JUMP_MS
    return not least_ms <= now.store_ms <= most_ms
