"""Clock: this node's wall clock against the store's, and what may be believed of what it told.

Arrivals and proofs are wall times, and hours are closed by them: told by a wrong clock they must
move no watermark.
"""

from collections.abc import Callable

from headgate.ambient import Ambient
from headgate.errors import HeadgateError
from headgate.sources import Plan


class Clock:
    def __init__(
        self, ambient: Ambient, off_ms: Callable[[], int], node: str, skew_ms: int
    ) -> None:
        """`off_ms`: how far this clock is ahead of the store's; raises HeadgateError while nobody
        knows. `skew_ms`: how much is no harm."""
        self._ambient = ambient
        self._off_ms = off_ms
        self._node = node
        self._skew_ms = skew_ms

    def wall_ms(self) -> int:
        return self._ambient.wall_ns() // 1_000_000

    def store_ms(self) -> int:
        """By the store's clock, as far as it is known."""
        return self.discovery_ms() or self.wall_ms()

    def discovery_ms(self) -> int:
        """By the store's clock; 0 while nobody knows it: hours are closed by this."""
        try:
            return self.wall_ms() - self._off_ms()
        except HeadgateError:
            return 0

    def doubt(self, plan: Plan) -> str | None:
        """Why arrivals and proofs in this plan cannot be believed: then no watermark moves, and no
        record is called ahead of its arrival. Empty: they can; None: nobody knows."""
        try:
            off_ms = self._off_ms()
        except HeadgateError:
            return None
        told_ms = [
            *(file.arrival_ms for file in plan.files),
            *(span.seen_ms for span in plan.spans),
            *plan.ends_ms.values(),
        ]
        ahead_ms = max(told_ms, default=0) - (self.wall_ms() - off_ms)
        if ahead_ms > self._skew_ms:
            return (
                f"records were first seen {ahead_ms / 1000:,.0f} s from now: a clock was or is "
                "wrong, and no watermark moves until then; next: set the clock"
            )
        if abs(off_ms) > self._skew_ms:
            return (
                f"the clock of {self._node} is {off_ms / 1000:,.0f} s ahead of the "
                "store's: no watermark moves; next: set the clock"
            )
        return ""
