"""Membership: a node's own place among the members, and its picture of the others.

    outside ── join ──▶ member ── renew, at a third of the hold ──▶ member
      ▲                   ├── leave ─────────────────────────────▶ outside, for good
      └───────────────────┴── a renewal finds it over: Fenced

This is the only loop that must never wait for another: as long as it runs, the node may act. A node
that was fenced has lost every right; it comes back under a new session, as if just started.
"""

import logging
from collections.abc import Callable

from headgate.ambient import Ambient
from headgate.cluster import Advert, Look, Member, Presence
from headgate.cluster.nudge import Nudge
from headgate.cluster.trust import Trust, trusted_until_ms
from headgate.errors import Corrupt, Fenced

log = logging.getLogger(__name__)


class Membership:
    def __init__(
        self,
        presence: Presence,
        trust: Trust,
        ambient: Ambient,
        advert: Callable[[], Advert],
        changed: Nudge,
    ) -> None:
        self._presence = presence
        self._trust = trust
        self._ambient = ambient
        self._advert = advert
        self._changed = changed  # given when members came or went, this one included
        self._look_now = Nudge()
        self._session = ""  # of the join under way
        self._member: Member | None = None
        self._has_left = False
        self._renew_due_ms = 0
        self._look_due_ms = 0
        self._look = Look((), (), 0)
        self.nudge = Nudge()  # wakes this loop
        self.lost = 0  # sessions that others closed
        presence.watch(self.look_again)

    @property
    def member(self) -> Member | None:
        return self._member

    @property
    def look(self) -> Look:
        """The last one."""
        return self._look

    def look_again(self) -> None:
        """Somebody may have come or gone: look at once."""
        self._look_now.give()
        self.nudge.give()

    def renew_now(self) -> None:
        """The advert has changed in a way that others should know soon."""
        self._renew_due_ms = 0
        self.nudge.give()

    def leave(self) -> None:
        """For good. Raises Unavailable, OutcomeUnknown; leaving again is fine."""
        self._has_left = True
        self._trust.end(for_good=True)
        member = self._member  # a renewal under way may find meanwhile that it is over
        if member is not None:
            self._presence.leave(member)
            log.info("member.left", extra={"number": member.number})
            self._member = None

    def tick(self) -> int:
        """Joins, renews, looks. Raises Unavailable, OutcomeUnknown: the next tick tries again."""
        self.nudge.take()
        now_ms = self._ambient.monotonic_ms()
        if self._has_left:
            return now_ms + self._presence.hold_ms
        if self._member is None:
            self._join(now_ms)
        elif now_ms >= self._renew_due_ms:
            self._renew(self._member, now_ms)
        if self._look_now.take() or self._ambient.monotonic_ms() >= self._look_due_ms:
            self._look_around()
        return min(self._renew_due_ms, self._look_due_ms)

    def _join(self, now_ms: int) -> None:
        # The same id until it is known how the last try ended: at most one member comes of it.
        self._session = self._session or self._ambient.new_id()
        start_ms = self._ambient.boot_ms()
        try:
            member = self._presence.join(self._session, self._advert())
        except Fenced:
            self._session = ""  # an earlier try got through, and was closed since: a new id
            raise
        self._session = ""
        self._member = member
        self._trusted(member, start_ms, now_ms)
        self._look_due_ms = 0
        level = logging.WARNING if self.lost else logging.INFO  # after a loss people want to know
        log.log(level, "member.joined", extra={"number": member.number, "session": member.session})

    def _renew(self, member: Member, now_ms: int) -> None:
        start_ms = self._ambient.boot_ms()
        try:
            self._member = self._presence.renew(
                member, self._advert(), timeout_ms=self._presence.hold_ms // 3
            )
        except (Fenced, Corrupt) as error:  # closed, or so damaged that nobody can renew it
            self.lost += 1
            log.warning("session.lost", extra={"session": member.session, "why": str(error)})
            self._trust.end()
            self._member = None
            self._renew_due_ms = 0
            self._changed.give()
            return
        self._trusted(member, start_ms, now_ms)

    def _trusted(self, member: Member, start_ms: int, now_ms: int) -> None:
        hold_ms = self._presence.hold_ms
        if self._has_left:
            return  # while this renewal was under way
        was_over = self._trust.left_ms(member.session) == 0
        # Counted from before the request: a slow reply must not stretch trust (invariant 10).
        self._trust.grant(member.session, trusted_until_ms(start_ms, hold_ms))
        self._renew_due_ms = now_ms + hold_ms // 3
        if was_over:
            self._changed.give()

    def _look_around(self) -> None:
        before = _who(self._look)
        self._look_due_ms = 0  # if this one fails: the hint is taken, and must not be lost
        self._look = self._presence.look()
        self._look_due_ms = self._look.next_ms
        if _who(self._look) != before:
            self._changed.give()


def _who(look: Look) -> list[tuple[str, int, bool]]:
    """What of the members concerns the others' plans."""
    return [(m.session, m.advert.workers, m.advert.is_draining) for m in look.members]
