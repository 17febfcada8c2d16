"""Watching: a loop of the node that ends a Spark session whose jobs stand still.

A standalone master that was restarted without its state does not know its applications any more. It
gives them no executor and tells nobody, and a job would wait for ever. Whoever waits for it is told
instead that the session is gone, and the next job starts another.
"""

import logging
from collections.abc import Callable, Sequence

from headgate.ambient import Ambient
from headgate.cluster.nudge import Nudge
from headgate.engine.stall import StageFacts, Stall
from headgate.status import shown_ms

LOOK_MS_MAX = 15_000
LOOK_MS_MIN = 200
LOOKS = 10  # in the time after which a session is given up

log = logging.getLogger(__name__)


class Watch:
    """`headgate.cluster.duties.Loop`."""

    def __init__(
        self,
        limit_ms: int,
        look: Callable[[], Sequence[StageFacts]],
        give_up: Callable[[str], None],
        ambient: Ambient,
    ) -> None:
        """`look`: at the stages of all jobs; `give_up`: the session, with a reason for people."""
        self._limit_ms = limit_ms
        self._look_ms = min(max(limit_ms // LOOKS, LOOK_MS_MIN), LOOK_MS_MAX)
        self._stall = Stall(limit_ms)
        self._look = look
        self._give_up = give_up
        self._ambient = ambient
        self.nudge = Nudge()

    def tick(self) -> int:
        stages, now_ms = self._look(), self._ambient.monotonic_ms()
        if self._stall.is_over_limit(stages, now_ms):
            words = (
                f"no task of its jobs ran for {shown_ms(self._limit_ms)}: the cluster has no free "
                "core for it, or its master was restarted and does not know it any more"
            )
            log.warning("spark.stalled", extra={"stages": len(stages), "why": words})
            self._give_up(words)
        return now_ms + self._look_ms
