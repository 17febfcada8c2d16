"""Claims: carries out what the planner says, one move at a time.

A claim is a compare-and-set; of several nodes that want the same task one gets it, and the others
read again. Between two moves is a random pause, so that nodes that woke together do not run side by
side down the same list.
"""

import logging
from collections import deque
from collections.abc import Mapping, Sequence

from headgate.ambient import Ambient
from headgate.cluster import Member, Presence
from headgate.cluster.desk import Desk
from headgate.cluster.picture import Picture
from headgate.cluster.planner import Item, Plan, Seat, plan
from headgate.cluster.settling import Settling
from headgate.cluster.tasks import UNUSABLE_MS, KeptTask, Task, claimed_task, given_back
from headgate.errors import Conflict, Corrupt, Fenced, Invalid, OutcomeUnknown, Unavailable
from headgate.store import DocumentStore
from headgate.store.changes import change, read

PAUSE_MS = 10  # at most, between two moves
REFUSED_MS = 250  # before the next plan, if a claim was refused: what we saw was too old
FRESH_MS = 10_000  # work that was begun later than this is not interrupted
FAR_MS = 3_600_000

log = logging.getLogger(__name__)


class Claims:
    def __init__(
        self, presence: Presence, desk: Desk, settling: Settling, ambient: Ambient
    ) -> None:
        self._presence = presence
        self._desk = desk
        self._settling = settling
        self._ambient = ambient
        self._moves: deque[tuple[str, bool]] = deque()  # key, and whether it is a claim
        self._is_planned = self._is_matched = False
        self._replan_ms = 0
        self._was_refused = False
        self._is_for_draining = False
        self._unusable: dict[str, int] = {}  # tasks that cannot be claimed, and until when
        self._over: set[str] = set()  # sessions that are over stay over

    def replan(self) -> None:
        """The picture is new, or the members are."""
        self._is_planned = self._is_matched = False
        self._moves.clear()

    def step(
        self,
        store: DocumentStore,
        session: str,
        picture: Picture,
        members: Sequence[Member],
        on_desk: Mapping[str, int],
        *,
        is_draining: bool,
    ) -> int:
        """One move. `on_desk`: epochs of what is held, taken when the picture got the outcomes of
        workers. Raises Unavailable, OutcomeUnknown, Fenced."""
        now_ms = self._ambient.monotonic_ms()
        self._match_desk(store, session, picture, on_desk, now_ms)
        settled_ms = self._settling.settled_ms
        if self._is_for_draining != is_draining:
            self._is_for_draining = is_draining
            self.replan()  # a plan made while the drain was asked for
        if not self._is_planned:
            if now_ms < settled_ms and not is_draining:
                return settled_ms
            found = self._plan(session, picture, members, is_draining=is_draining)
            self._moves.extend((key, False) for key in found.returns)
            self._moves.extend((key, True) for key in found.claims)
            self._is_planned = True
            self._replan_ms = now_ms + (FRESH_MS if found.is_waiting else FAR_MS)
        if not self._moves:
            if now_ms >= self._replan_ms:
                self._is_planned = False
            return max(now_ms, self._replan_ms)
        key, is_claim = self._moves.popleft()
        if is_claim:
            self._claim(store, session, picture, key, now_ms)
        else:
            self._give_back(store, session, picture, key)
        pause_ms = PAUSE_MS * self._ambient.random()
        if not self._moves:
            self._is_planned = False  # look whether anything is left to do
            if self._was_refused:
                self._was_refused, pause_ms = False, REFUSED_MS
        return now_ms + int(pause_ms)

    def _plan(
        self, session: str, picture: Picture, members: Sequence[Member], *, is_draining: bool
    ) -> Plan:
        live = {member.session for member in members}
        now_ms = self._ambient.monotonic_ms()
        begun = self._desk.begun(now_ms)
        fresh = begun - self._desk.begun(now_ms - FRESH_MS)
        items = [
            Item(
                key,
                task.value.holder if task.value.holder in live else None,
                task.value.kind,
                task.value.labels,
                key in begun,
                key in fresh,
            )
            for key, task in picture.tasks.items()
            if task.value.is_claimable and now_ms >= self._unusable.get(key, now_ms)
        ]
        seats = [
            Seat(
                m.session,
                m.number,
                0 if is_draining and m.session == session else workers_of(m),
                frozenset(m.advert.labels),
                frozenset(m.advert.kinds),
            )
            for m in members
        ]
        return plan(items, seats, session)

    def _match_desk(
        self,
        store: DocumentStore,
        session: str,
        picture: Picture,
        on_desk: Mapping[str, int],
        now_ms: int,
    ) -> None:
        """What the documents say is ours is on the desk, and nothing else is."""
        if self._is_matched:
            return
        self._is_matched = True
        for key, task in picture.tasks.items():
            is_mine = task.value.holder == session and task.value.is_claimable
            if is_mine and key not in on_desk:
                # Not while a worker has an earlier work of it in hand: then again later.
                self._is_matched &= self._desk.hold(task, session, now_ms)
        for key, epoch in on_desk.items():
            seen = picture.tasks.get(key)
            if seen is None or not _is_same(seen.value, session, epoch):
                # The picture may be older than the claim: ask before anything is dropped.
                current = _read_if_sound(store, key)
                if current is None or not _is_same(current.value, session, epoch):
                    log.info("task.dropped", extra={"task": key, "epoch": epoch})
                    self._desk.drop(key)
                if current is not None:
                    picture.tasks[key] = current

    def _claim(
        self, store: DocumentStore, session: str, picture: Picture, key: str, now_ms: int
    ) -> None:
        at_ms = self._ambient.wall_ns() // 1_000_000

        def wanted(task: Task) -> Task:
            return claimed_task(task, session, self._is_over, at_ms)

        try:
            kept = change(store, key, Task, wanted, picture.tasks.get(key))
        except Conflict:
            self._was_refused = True
            current = _read_if_sound(store, key)  # somebody was first
            if current is not None:
                picture.tasks[key] = current
            return
        except (Corrupt, Invalid) as error:
            # This one, or the session of its holder, is damaged: the others go on.
            log.error("task.unusable", extra={"task": key, "why": str(error)})
            self._unusable[key] = now_ms + UNUSABLE_MS
            self.replan()
            return
        except Fenced:
            if key not in picture.tasks or _read_if_sound(store, key) is not None:
                raise
            del picture.tasks[key]
            return
        picture.tasks[key] = kept
        log.info("task.claimed", extra={"task": key, "epoch": kept.value.epoch})
        self._desk.hold(kept, session, now_ms)

    def _give_back(self, store: DocumentStore, session: str, picture: Picture, key: str) -> None:
        held = self._desk.take_off(key)
        if held is None:
            self._was_refused = True  # in a worker's hand, who gives it back; or gone
            return

        def give_back() -> KeptTask:
            return change(store, key, Task, lambda task: given_back(task, session, held.epoch))

        try:
            kept = give_back()
        except (Unavailable, OutcomeUnknown):
            # It may still happen: nothing else is done with this task until it is known.
            held.report, held.is_returning = give_back, True
            self._desk.put_back(held, self._ambient.monotonic_ms())
            raise
        except BaseException:
            self._desk.let_go(held, None)
            raise
        picture.tasks[key] = kept
        self._desk.let_go(held, kept)
        log.info("task.given_back", extra={"task": key, "epoch": held.epoch})

    def _is_over(self, session: str) -> bool:
        if session not in self._over and self._presence.is_over(session):
            self._over.add(session)
        return session in self._over


def workers_of(member: Member) -> int:
    """How many of its workers count for the shares: none of a node that wants to stop."""
    return 0 if member.advert.is_draining else member.advert.workers


def _read_if_sound(store: DocumentStore, key: str) -> KeptTask | None:
    """None also of a damaged one: nobody can work on it, and the listing names it."""
    try:
        return read(store, key, Task)
    except Corrupt:
        return None


def _is_same(task: Task, session: str, epoch: int) -> bool:
    return task.holder == session and task.epoch == epoch and task.state == "outstanding"
