"""Steward: the loop that keeps this node's hands full: sees, leads if it may, claims its share.

It looks at the documents when something under `cluster/` was written, and not otherwise: an idle
node asks nothing, whatever the number of tasks.
"""

import logging
from contextlib import suppress
from functools import partial

from headgate.ambient import Ambient
from headgate.cluster.claims import FAR_MS, Claims
from headgate.cluster.desk import Desk
from headgate.cluster.leader import FEED_MS, Leader
from headgate.cluster.membership import Membership
from headgate.cluster.nudge import Nudge
from headgate.cluster.picture import CLUSTER, Picture, drain_key, read_picture
from headgate.cluster.settling import Settling
from headgate.cluster.tasks import Task, taken_back
from headgate.cluster.trust import GuardedStore, SessionPermit, Trust
from headgate.errors import Corrupt, Fenced, Invalid
from headgate.store import PAGE_DOCUMENTS_MAX, DocumentStore, Mark
from headgate.store.changes import change

REFRESH_MS = 250  # between the starts of two listings, at least
REFRESH_PAGE_MS = 20  # for each page and member: all nodes together ask for 50 pages a second
WAIT_MS = 60_000
LISTEN_MS = 50  # between two wake-ups, at least


log = logging.getLogger(__name__)


class Listener:
    """The loop that waits for a change under `cluster/`, without holding anything up."""

    def __init__(self, store: DocumentStore, ambient: Ambient, written: Nudge) -> None:
        self._store = store
        self._ambient = ambient
        self._written = written
        self._mark: Mark | None = None
        self.nudge = Nudge()  # nobody gives it: what ends this wait is the store

    def tick(self) -> int:
        """Raises Unavailable: the next tick goes on from the same mark."""
        mark = self._store.wait(CLUSTER, self._mark, timeout_ms=WAIT_MS)
        if mark != self._mark:
            self._mark = mark
            self._written.give()
        return self._ambient.monotonic_ms() + LISTEN_MS


class Steward:
    def __init__(
        self,
        store: DocumentStore,
        membership: Membership,
        trust: Trust,
        leader: Leader,
        claims: Claims,
        settling: Settling,
        desk: Desk,
        ambient: Ambient,
        *,
        written: Nudge,
        changed: Nudge,
    ) -> None:
        self._store = store
        self._membership = membership
        self._trust = trust
        self._leader = leader
        self._claims = claims
        self._settling = settling
        self._desk = desk
        self._ambient = ambient
        self._written = written
        self._changed = changed
        self._session = ""
        self._picture = Picture()
        self._is_seen = False  # the picture can be acted on
        self._is_stale = self._is_new = True
        self._refresh_due_ms = 0
        self._is_draining = False
        self._lost_starts: dict[str, str] = {}  # of a session that is over, by task
        self.nudge = Nudge()  # wakes this loop
        for other in (written, changed, desk.changed):
            other.on_give(self.nudge.give)

    @property
    def is_draining(self) -> bool:
        return self._is_draining

    def drain(self) -> None:
        """Gives everything back and takes nothing new, from the next tick on. From any thread."""
        self._is_draining = True
        self.nudge.give()

    @property
    def has_nothing(self) -> bool:
        """Drained: no task and no leader right is left with this node."""
        return self._desk.is_empty() and self._leader.epoch is None

    def tick(self) -> int:
        """Raises what the store raises; the next tick sees everything anew."""
        self.nudge.take()
        now_ms = self._ambient.monotonic_ms()
        session = self._trust.session
        if session != self._session:
            self._lost_starts |= self._desk.drop_all()
            self._claims.replan()
            self._session = session or ""
            self._is_seen = False
        if session is None or self._trust.left_ms(session) == 0:
            return now_ms + FAR_MS  # a renewal wakes us
        if self._changed.take():
            self._claims.replan()
        self._is_stale |= self._written.take()
        self._is_stale |= self._desk.loose.take()
        store = GuardedStore(self._store, SessionPermit(self._trust, session))
        try:
            return self._see_and_act(store, session)
        except BaseException:
            self._is_seen = False  # half done, or seen wrongly: look again
            raise

    def _see_and_act(self, store: DocumentStore, session: str) -> int:
        now_ms = self._ambient.monotonic_ms()
        if not self._is_seen or (self._is_stale and now_ms >= self._refresh_due_ms):
            self._picture = self._refresh(store)
            self._is_seen = True
        self._take_starts_back(store)
        picture, look = self._picture, self._membership.look
        outcomes, on_desk = self._desk.outcomes()
        for outcome in outcomes:
            picture.tasks[outcome.key] = outcome
            self._is_new = True  # no new plan: what was written rings, and is seen by all
        if drain_key(session) in picture.drains and not self._is_draining:
            self.drain()
        is_draining = self._is_draining
        is_new, self._is_new = self._is_new, False
        roster = None if picture.roster is None else picture.roster.value
        if self._settling.see(look.members, roster, now_ms):
            self._claims.replan()
        settled_ms = self._settling.settled_ms
        try:
            lead_ms = self._leader.step(
                store,
                session,
                picture,
                look,
                is_new=is_new,
                is_draining=is_draining,
                is_settled=now_ms >= settled_ms,
            )
        except (Corrupt, Invalid) as error:
            # Nobody leads as long as this is damaged; this node goes on with its share.
            log.error("leader.failed", extra={"why": str(error)})
            lead_ms = now_ms + FEED_MS
        claim_ms = self._claims.step(
            store, session, picture, look.members, on_desk, is_draining=is_draining
        )
        refresh_ms = self._refresh_due_ms if self._is_stale else now_ms + FAR_MS
        settle_ms = settled_ms if settled_ms > now_ms else now_ms + FAR_MS
        return min(lead_ms, claim_ms, refresh_ms, settle_ms)

    def _take_starts_back(self, store: DocumentStore) -> None:
        """This node lost its session and lives: what it had begun did not bring it down."""
        while self._lost_starts:
            key, start = next(iter(self._lost_starts.items()))
            with suppress(Fenced, Corrupt, Invalid):  # removed by now, or damaged
                change(store, key, Task, partial(taken_back, start=start))
            del self._lost_starts[key]

    def _refresh(self, store: DocumentStore) -> Picture:
        start_ms = self._ambient.monotonic_ms()
        self._desk.outcomes()  # the listing shows them: they were acknowledged before
        self._is_stale = False
        self._is_new = True
        picture = read_picture(store, self._picture)
        pages = len(picture.tasks) // PAGE_DOCUMENTS_MAX + 1
        pause_ms = REFRESH_PAGE_MS * pages * max(1, len(self._membership.look.members))
        spread = 0.75 + 0.5 * self._ambient.random()  # nodes that woke together part again
        self._refresh_due_ms = start_ms + max(REFRESH_MS, int(pause_ms * spread))
        self._claims.replan()
        self._membership.look_again()  # who writes may have come, or be about to go
        return picture
