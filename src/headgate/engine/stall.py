"""Stall: whether jobs stand still for good, told by their stages alone.

    a task runs, one ended since the last look, or no stage is there ──▶ all is well
    stages are there, and nothing of that for the whole limit ─────────▶ they stand still

A cluster that has no free core for us looks the same as one that has forgotten us, so the limit
must be longer than anybody waits for a core. Pure: who looks brings the time.
"""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StageFacts:
    """Of a stage that is not over."""

    id: int
    attempt: int
    active: int  # tasks that run now
    ended: int  # tasks, well or not


class Stall:
    def __init__(self, limit_ms: int) -> None:
        self._limit_ms = limit_ms
        self._seen: frozenset[StageFacts] = frozenset()
        self._since_ms = 0

    def is_over_limit(self, stages: Collection[StageFacts], now_ms: int) -> bool:
        """As of this look; `now_ms` is monotonic."""
        seen = frozenset(stages)
        is_still = bool(seen) and seen == self._seen and not any(one.active for one in seen)
        if not is_still:
            self._seen, self._since_ms = seen, now_ms
            return False
        return now_ms - self._since_ms >= self._limit_ms
