"""Presence: who is there, told by documents alone. Every store can do it.

    sessions/ID         a session (`session`): its member is there as long as it is live
    cluster/numbers     the next member's number; a number that was taken in vain leaves a hole

Each node writes only its own session, so many nodes renew without a conflict. Only whoever closes
one that is over meets its node there, and compare-and-set decides between the two: `close_over` is
the one place where somebody else's session is changed.

A renewal whose outcome is not known may be made again, because it is made on a version: of two,
only one can have taken effect, and what is found afterwards is either ours or closed.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from headgate.ambient import Ambient, Deadline
from headgate.cluster import Advert, Look, Member
from headgate.cluster import session as sessions
from headgate.cluster.session import TERM_MS, Seen, Watch, session_key, verdict
from headgate.cluster.store_clock import StoreClock
from headgate.errors import Conflict, Corrupt, Fenced, Invalid, OutcomeUnknown, Unavailable
from headgate.store import TIMEOUT_MS, DocumentStore, Version
from headgate.store.codec import Whole, body_of, parse
from headgate.store.names import key
from headgate.store.pages import pages

NUMBERS = key("cluster", "numbers")
NUMBER_TRIES_MAX = 100  # a mass restart: all nodes take one, and each try gives one to somebody
PAUSE_MS_MAX = 200  # between two of them
TRIES_MAX = 5  # of one's own session, which hardly anybody else writes
AGAIN = 0.1  # of a term: for a session that is over and could not be closed

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Numbers:
    next: Whole = 1
    changes: Whole = 0  # rung when somebody has come or gone: who waits below `cluster/` wakes up
    format: Literal[1] = 1


def close_over(
    store: DocumentStore, seen: Seen, why: str, *, timeout_ms: int = TIMEOUT_MS
) -> Version | None:
    """Closes a session as it was seen. None: it is no longer so, perhaps it was renewed.

    Raises Unavailable, OutcomeUnknown, Corrupt.
    """
    body = body_of(sessions.closed(seen.session, why))
    try:
        return store.replace(session_key(seen.id), body, seen.version, timeout_ms=timeout_ms)
    except Conflict:
        return None


class DocumentPresence:
    """Implements `headgate.cluster.Presence`; beyond it, what the one for ZooKeeper builds on."""

    def __init__(self, store: DocumentStore, ambient: Ambient, *, term_ms: int = TERM_MS) -> None:
        self.clock = StoreClock(store, ambient)
        self._store = store
        self._ambient = ambient
        self._term_ms = term_ms
        self._changing = threading.Lock()
        self._watch = Watch()
        self._mine: dict[str, Seen] = {}  # as last acknowledged
        self._reported: set[str] = set()  # damaged ones

    @property
    def hold_ms(self) -> int:
        return self._term_ms

    @property
    def term_ms(self) -> int:
        return self._term_ms

    def join(self, session: str, advert: Advert, *, timeout_ms: int = TIMEOUT_MS) -> Member:
        """Raises Fenced, too: an earlier try got through, and was closed meanwhile."""
        deadline = Deadline(self._ambient, timeout_ms)
        found = self.find(session, timeout_ms=deadline.left_ms())
        number = self._take_number(deadline) if found is None else found.session.number
        return self.join_as(session, advert, number, timeout_ms=deadline.left_ms())

    def join_as(
        self, session: str, advert: Advert, number: int, *, timeout_ms: int = TIMEOUT_MS
    ) -> Member:
        """With a number that was given elsewhere. An earlier try that got through keeps its own."""
        deadline = Deadline(self._ambient, timeout_ms)
        # Anew: whoever was closed by a clock of the store that was set must not go on with the old.
        self.clock.resync(timeout_ms=deadline.left_ms())
        expire = self.clock.latest_ms() + self._term_ms
        opened = sessions.opened(number, advert, expire, self._term_ms)
        try:
            version = self._store.create(
                session_key(session), body_of(opened), timeout_ms=deadline.left_ms()
            )
        except Conflict:
            # Ours, from an earlier try, and its expire counts from then: it has to be renewed.
            return self._renew(session, advert, None, deadline)
        member = self._acknowledged(Seen(session, opened, version))
        self._ring(deadline)
        return member

    def renew(self, member: Member, advert: Advert, *, timeout_ms: int = TIMEOUT_MS) -> Member:
        deadline = Deadline(self._ambient, timeout_ms)
        with self._changing:
            mine = self._mine.get(member.session)
        return self._renew(member.session, advert, mine, deadline)

    def leave(self, member: Member, *, timeout_ms: int = TIMEOUT_MS) -> None:
        self.end(member.session, sessions.LEFT, timeout_ms=timeout_ms)
        with self._changing:
            self._mine.pop(member.session, None)

    def end(self, session: str, why: str, *, timeout_ms: int = TIMEOUT_MS) -> None:
        """Closes it, however often it is renewed meanwhile. Raises Unavailable, OutcomeUnknown,
        Corrupt."""
        deadline = Deadline(self._ambient, timeout_ms)
        for _ in range(TRIES_MAX):
            found = self.find(session, timeout_ms=deadline.left_ms())
            if found is None or not found.session.is_live:
                return
            if close_over(self._store, found, why, timeout_ms=deadline.left_ms()) is not None:
                _log.info("session.closed", extra={"session": session, "why": why})
                self._ring(deadline)
                return
        raise Unavailable(_gave_up(session_key(session)))

    def look(self, *, timeout_ms: int = TIMEOUT_MS) -> Look:
        deadline = Deadline(self._ambient, timeout_ms)
        found = self._list(deadline)
        live = [seen for seen in found if seen.session.is_live]
        over = {seen.id for seen in found if not seen.session.is_live}
        members: list[Member] = []
        next_ms = self._ambient.monotonic_ms() + self._term_ms
        with self._changing:
            self._watch.keep({seen.id for seen in live})
        for seen in live:
            left, again_ms = self._judge(seen, deadline)
            if left is None:
                continue
            if left.session.is_live:
                members.append(left.member)
                next_ms = min(next_ms, again_ms)
            else:
                over.add(left.id)
        if len(live) > len(members):
            self._ring(deadline)
        by_number = tuple(sorted(members, key=lambda member: (member.number, member.session)))
        return Look(by_number, tuple(sorted(over)), next_ms)

    def is_over(self, session: str, *, timeout_ms: int = TIMEOUT_MS) -> bool:
        found = self.find(session, timeout_ms=timeout_ms)
        return found is None or not found.session.is_live

    def forget(self, session: str, *, timeout_ms: int = TIMEOUT_MS) -> None:
        deadline = Deadline(self._ambient, timeout_ms)
        found = self.find(session, timeout_ms=deadline.left_ms())
        if found is None:
            return
        if found.session.is_live:
            raise Invalid(
                f"{session_key(session)}: node {found.session.node} is still live, and only a "
                "session that is over can be forgotten; next: wait until it is, at most a term "
                "after its last renewal"
            )
        with suppress(Conflict):  # closed, it changes no more: somebody else has just forgotten it
            self._store.delete(session_key(session), found.version, timeout_ms=deadline.left_ms())

    def watch(self, ring: Callable[[], None]) -> None:
        """Documents do not ring by themselves; `next_ms` of a look says when one is worth it."""

    def close(self) -> None:
        """Nothing to give back: the store belongs to whoever opened it."""

    def find(self, session: str, *, timeout_ms: int = TIMEOUT_MS) -> Seen | None:
        """Raises Unavailable, Corrupt."""
        document = self._store.get(session_key(session), timeout_ms=timeout_ms)
        return None if document is None else sessions.read(document)

    def _take_number(self, deadline: Deadline) -> int:
        for tries in range(NUMBER_TRIES_MAX):
            found = self._store.get(NUMBERS, timeout_ms=deadline.left_ms())
            # Unknown is a conflict here: the number may be lost, and nobody misses it.
            with suppress(Conflict, OutcomeUnknown):
                if found is None:
                    first = body_of(Numbers(next=2))
                    self._store.create(NUMBERS, first, timeout_ms=deadline.left_ms())
                    return 1
                number = parse(found, Numbers).next
                after = body_of(replace(parse(found, Numbers), next=number + 1))
                self._store.replace(NUMBERS, after, found.version, timeout_ms=deadline.left_ms())
                return number
            pause_ms = self._ambient.random() * min(PAUSE_MS_MAX, 5 * 2**tries)
            self._ambient.sleep_ms(min(pause_ms, deadline.left_ms()))
        raise Unavailable(_gave_up(NUMBERS))

    def _ring(self, deadline: Deadline) -> None:
        """Tells those who wait, if it can: they would find out by themselves, only later. A write
        of somebody else that came in between has rung for us."""
        with suppress(Conflict, OutcomeUnknown, Unavailable, Corrupt):
            found = self._store.get(NUMBERS, timeout_ms=deadline.left_ms())
            if found is None:
                first = body_of(Numbers(changes=1))
                self._store.create(NUMBERS, first, timeout_ms=deadline.left_ms())
                return
            numbers = parse(found, Numbers)
            rung = body_of(replace(numbers, changes=numbers.changes + 1))
            self._store.replace(NUMBERS, rung, found.version, timeout_ms=deadline.left_ms())

    def _renew(self, session: str, advert: Advert, mine: Seen | None, deadline: Deadline) -> Member:
        """On what was last acknowledged, or on what is found if that was not the last word."""
        expire = self.clock.latest_ms(timeout_ms=deadline.left_ms()) + self._term_ms
        renewals = 0 if mine is None else mine.session.renewals
        for _ in range(TRIES_MAX):
            if mine is None:
                mine = self.find(session, timeout_ms=deadline.left_ms())
            if mine is None or not mine.session.is_live or mine.session.renewals < renewals:
                # Fewer renewals than were acknowledged: closed, forgotten, and brought back by a
                # repeated request.
                raise self._fenced(session, mine)
            again = sessions.renewed(mine.session, advert, expire)
            try:
                version = self._store.replace(
                    session_key(session),
                    body_of(again),
                    mine.version,
                    timeout_ms=deadline.left_ms(),
                )
            except Conflict:
                mine = None  # an earlier try of ours got through, or somebody closed it
            else:
                return self._acknowledged(Seen(session, again, version))
        raise Unavailable(_gave_up(session_key(session)))

    def _acknowledged(self, seen: Seen) -> Member:
        with self._changing:
            self._mine[seen.id] = seen
        return seen.member

    def _fenced(self, session: str, found: Seen | None) -> Fenced:
        with self._changing:
            self._mine.pop(session, None)
        if found is None:
            what = "is gone"
        elif found.session.is_live:
            what = "was closed and forgotten, and brought back by a repeated request"
        else:
            what = f"was closed: {found.session.why}"
        return Fenced(
            f"{session_key(session)}: {what}. What it held may belong to others by now. "
            "The node drops what it held and joins again by itself"
        )

    def _list(self, deadline: Deadline) -> list[Seen]:
        found: list[Seen] = []
        damaged: dict[str, str] = {}
        for page in pages(self._store, sessions.FOLDER, timeout_ms=deadline.left_ms()):
            damaged |= {one.key: one.reason for one in page.damaged}
            for document in page.documents:
                try:
                    found.append(sessions.read(document))
                except Corrupt as error:
                    damaged[document.key] = str(error)
        self._report(damaged)
        return found

    def _report(self, damaged: dict[str, str]) -> None:
        """Each once. It concerns only itself: neither there nor over, until a person decides."""
        with self._changing:
            new = damaged.keys() - self._reported
            self._reported = set(damaged)
        for name in sorted(new):
            _log.error("session.damaged", extra={"key": name, "reason": damaged[name]})

    def _judge(self, seen: Seen, deadline: Deadline) -> tuple[Seen | None, int]:
        """What is left of a live session, closed if it is over; and when to look again."""
        now = self._verdict(seen, deadline)
        if now.why is None:
            return seen, now.next_ms
        try:
            version = close_over(self._store, seen, now.why, timeout_ms=deadline.left_ms())
        except OutcomeUnknown:
            version = None
        if version is not None:
            _log.info(
                "session.closed",
                extra={"session": seen.id, "node": seen.session.node, "why": now.why},
            )
            return Seen(seen.id, sessions.closed(seen.session, now.why), version), now.next_ms
        try:
            found = self.find(seen.id, timeout_ms=deadline.left_ms())
        except Corrupt:
            return None, now.next_ms  # the next look's listing tells
        return found, self._ambient.monotonic_ms() + int(self._term_ms * AGAIN)

    def _verdict(self, seen: Seen, deadline: Deadline) -> sessions.Verdict:
        store_ms = self.clock.now_ms(timeout_ms=deadline.left_ms())
        if seen.session.expire <= store_ms:
            # Nobody is closed by an old idea of the store's time: its clock may have been set.
            store_ms = self.clock.now_ms(age_ms_max=self._term_ms, timeout_ms=deadline.left_ms())
        now_ms = self._ambient.monotonic_ms()
        with self._changing:
            since_ms = self._watch.see(seen, now_ms)
        return verdict(
            seen.session,
            since_ms=since_ms,
            now_ms=now_ms,
            store_ms=store_ms,
            term_ms=min(seen.session.term_ms, sessions.TERM_MS_MAX),
            chance=self._ambient.random(),
            is_steady=self.clock.steady_ms() >= self._term_ms,
        )


def _gave_up(name: str) -> str:
    return f"{name}: gave up, others changed it at every try; nothing was written. Try again later"
