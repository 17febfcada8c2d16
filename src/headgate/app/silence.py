"""Silence: why a node that just joined has nothing to do yet: others may have been killed.

    joined ── nothing in hand after a while ──▶ the others are named, once
           └─ one of them missed a renewal ───▶ it seems to be gone: named, with the time when its
                                                work is free

A node that was killed keeps its work for the rest of its session. Whoever started the next one is
told so; later, when everything runs, status and log are enough.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headgate.ambient import Ambient
from headgate.app.nodes import Joined
from headgate.cluster.session import DOUBT
from headgate.cluster.store_clock import StoreClock
from headgate.errors import OutcomeUnknown, Unavailable
from headgate.status.fleet import MemberStatus, read_members

LOOK_MS = 1_000
PATIENCE_MS = 3_000  # without work, before it is told whom it may wait for
LISTEN_MS = 60_000  # since it joined, or since somebody was told of last


@dataclass(frozen=True, slots=True)
class Silent:
    """Another node, as it was last heard of."""

    node: str
    number: int
    silent_ms: int
    free_ms: int  # in about so long its work is free, if it is gone
    is_gone: bool  # as it seems: it missed a renewal


OnSilent = Callable[[Sequence[Silent]], None]


class Listening:
    """Asked ten times a second; looks at the sessions once a second, for a while."""

    def __init__(self, joined: Joined, ambient: Ambient, tell: OnSilent) -> None:
        self.joined = joined
        self._ambient = ambient
        self._tell = tell
        self._clock = StoreClock(joined.store, ambient)
        self._began_ms = ambient.monotonic_ms()
        self._until_ms = self._began_ms + LISTEN_MS
        self._next_ms = 0
        self._has_told_whom = False
        self._gone: set[str] = set()  # sessions that were told of

    def poll(self) -> None:
        now_ms = self._ambient.monotonic_ms()
        if now_ms < self._next_ms or now_ms >= self._until_ms:
            return
        self._next_ms = now_ms + LOOK_MS
        try:
            members = read_members(self.joined.store, self._clock.now_ms())
        except (Unavailable, OutcomeUnknown):
            return  # for people only: the next look tells
        own = self.joined.duties.membership.member
        others = [one for one in members if own is None or one.session != own.session]
        self._tell_of(others, now_ms)

    def _tell_of(self, others: Sequence[MemberStatus], now_ms: int) -> None:
        gone = [one for one in others if one.is_silent]
        new = [one for one in gone if one.session not in self._gone]
        is_idle = not self.joined.duties.desk.keys()
        if new:
            self._gone |= {one.session for one in new}
            self._tell([self._silent(one, now_ms) for one in new])
            self._until_ms = now_ms + LISTEN_MS
        elif others and is_idle and not gone and not self._has_told_whom:
            if now_ms < self._began_ms + PATIENCE_MS:
                return
            self._tell([self._silent(one, now_ms) for one in others])
        self._has_told_whom |= bool(others) and now_ms >= self._began_ms + PATIENCE_MS
        if any(self._free_ms(one, now_ms) <= 0 for one in gone):
            self.joined.duties.membership.look_again()  # what was told comes true

    def _silent(self, one: MemberStatus, now_ms: int) -> Silent:
        free_ms = max(0, self._free_ms(one, now_ms))
        return Silent(one.node, one.number, one.silent_ms, free_ms, one.is_silent)

    def _free_ms(self, one: MemberStatus, now_ms: int) -> int:
        """Whoever just came does not trust the store's clock alone (`cluster.session`)."""
        return max(one.left_ms, self._began_ms + int(DOUBT * one.term_ms) - now_ms)
