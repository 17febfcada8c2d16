"""Settling: the wait after somebody joined, until the list of members stands still.

A fleet that is started at once then makes one plan, not one for each that comes. After an outage of
all, the last roster says how many there were; until as many are back the wait is longer.
"""

from collections.abc import Sequence

from headgate.cluster import Member
from headgate.cluster.roster import Roster

SETTLE_MS = 3_000
SETTLE_MS_MAX = 15_000


class Settling:
    def __init__(self) -> None:
        self._seen: frozenset[str] = frozenset()
        self._expected: int | None = None  # how many there were before an outage of all
        self._grew_first_ms = self._grew_last_ms = -SETTLE_MS
        self._settled_ms = 0

    @property
    def settled_ms(self) -> int:
        """When the list will have stood still for long enough, if nobody else comes."""
        return self._settled_ms

    def see(self, members: Sequence[Member], roster: Roster | None, now_ms: int) -> bool:
        """Whether the members are others than before."""
        sessions = frozenset(member.session for member in members)
        if self._expected is None:
            known = () if roster is None else roster.members
            is_outage_over = all(entry.session not in sessions for entry in known)
            self._expected = len(known) if is_outage_over else 0
        is_changed = sessions != self._seen
        if not sessions <= self._seen:
            if now_ms >= self._grew_last_ms + SETTLE_MS:
                self._grew_first_ms = now_ms
            self._grew_last_ms = now_ms
        self._seen = sessions
        longest_ms = self._grew_first_ms + SETTLE_MS_MAX
        if len(sessions) < self._expected:
            self._settled_ms = longest_ms
        else:
            self._settled_ms = min(self._grew_last_ms + SETTLE_MS, longest_ms)
        if now_ms >= self._settled_ms:
            self._expected = 0
        return is_changed
