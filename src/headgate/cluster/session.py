"""Session: a node's sign of life, one document. What it holds are rights.

    live ── renew ──▶ live
     ├── the node leaves ─────────────────────────────────────────────▶ closed
     └── expire passed, or the version stood still for a whole term:
         anyone closes it by compare-and-set ─────────────────────────▶ closed

Closed is for ever: its node finds out at the next renewal, drops every right and opens a new
session. Others may then claim those rights: epoch + 1. Session ids never come back, so a closed
document may be deleted: a session without a document is over, too.

`expire` is in the store's time (`store_clock`); that it stood still, a watcher sees on its own
monotonic clock. So a wrong wall clock neither holds for ever nor closes anybody.

Looks are rare, and nobody is found late: renewed at a third of the term, a healthy session has two
thirds of it left. Whoever looks once a term sees the others so, or sees that one missed a renewal
and then looks again exactly at its `expire`.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from headgate.cluster import Advert, Member
from headgate.store import Document, Version
from headgate.store.codec import Truth, Whole, parse
from headgate.store.names import key, parts

FOLDER = "sessions"
TERM_MS = 30_000
TERM_MS_MAX = 3_600_000  # a session that asks for more gets this: nothing holds for ever
LEFT_MIN = 0.6  # of a term: who has less left missed a renewal
DOUBT = 0.4  # of a term: a live session is renewed within it
LEFT_MAX = 1.5  # of a term: who has more left did not count as we do

LEFT = "left"
EXPIRED = "it was not renewed in time"
STOOD_STILL = "it stood still for a whole term"


@dataclass(frozen=True, slots=True)
class Session:
    """The body of a session's document."""

    node: str
    number: Whole
    workers: Whole
    labels: tuple[str, ...]
    kinds: tuple[str, ...]
    held: tuple[str, ...]
    held_count: Whole
    is_draining: Truth
    state: Literal["live", "closed"]
    expire: Whole  # milliseconds, in the store's time
    renewals: Whole  # each renewal changes it
    why: str | None  # it was closed
    term_ms: Whole = TERM_MS  # its own: watchers judge each by what it promised
    format: Literal[1] = 1

    @property
    def is_live(self) -> bool:
        return self.state == "live"

    @property
    def advert(self) -> Advert:
        return Advert(
            node=self.node,
            workers=self.workers,
            labels=self.labels,
            kinds=self.kinds,
            held=self.held,
            held_count=self.held_count,
            is_draining=self.is_draining,
        )


def opened(number: int, advert: Advert, expire: int, term_ms: int = TERM_MS) -> Session:
    return Session(
        node=advert.node,
        number=number,
        workers=advert.workers,
        labels=advert.labels,
        kinds=advert.kinds,
        held=advert.held,
        held_count=advert.held_count,
        is_draining=advert.is_draining,
        state="live",
        expire=expire,
        renewals=0,
        why=None,
        term_ms=term_ms,
    )


def renewed(session: Session, advert: Advert, expire: int) -> Session:
    again = opened(session.number, advert, expire, session.term_ms)
    return replace(again, renewals=session.renewals + 1)


def closed(session: Session, why: str) -> Session:
    return replace(session, state="closed", why=why)


def session_key(session: str) -> str:
    return key(FOLDER, session)


@dataclass(frozen=True, slots=True)
class Seen:
    """A session as it was read."""

    id: str
    session: Session
    version: Version

    @property
    def member(self) -> Member:
        return Member(
            number=self.session.number,
            session=self.id,
            advert=self.session.advert,
            expires_at_ms=self.session.expire,
            version=self.version,
        )


def read(document: Document) -> Seen:
    """Raises Corrupt."""
    return Seen(parts(document.key)[-1], parse(document, Session), document.version)


class Watch:
    """What one watcher saw of the others: which version, and since when."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Version, int]] = {}

    def see(self, seen: Seen, now_ms: int) -> int:
        """Since when this version stands still, on the watcher's monotonic clock. `now_ms` was
        taken after the read: a write counts from when it was seen, never from before it."""
        version, since_ms = self._seen.get(seen.id, (None, now_ms))
        if version != seen.version:
            since_ms = now_ms
            self._seen[seen.id] = (seen.version, now_ms)
        return since_ms

    def keep(self, sessions: Collection[str]) -> None:
        """Forgets all others: they are closed or gone."""
        self._seen = {id: seen for id, seen in self._seen.items() if id in sessions}


@dataclass(frozen=True, slots=True)
class Verdict:
    why: str | None  # it is over; None: it is not
    next_ms: int  # on the monotonic clock: it is not over before


def verdict(
    session: Session,
    *,
    since_ms: int,
    now_ms: int,
    store_ms: int,
    term_ms: int,
    chance: float,
    is_steady: bool = True,
) -> Verdict:
    """Is this live session over, and when is it worth looking again? Values in, values out.

    `since_ms` and `now_ms` are the watcher's monotonic clock, `store_ms` is the store's, `chance`
    in [0, 1) spreads the looks of many watchers. `is_steady`: the watcher has known the store's
    clock for a term, and it did not jump; if not, it may be the clock that is wrong, and a session
    is over only if it was also not renewed while this watcher looked.
    """
    left_ms = session.expire - store_ms
    still_until_ms = since_ms + term_ms
    doubted_until_ms = since_ms + int(DOUBT * term_ms)
    if left_ms <= 0 and not is_steady and now_ms < doubted_until_ms:
        return Verdict(None, doubted_until_ms)
    if left_ms <= 0:
        return Verdict(EXPIRED, now_ms)
    if now_ms >= still_until_ms:
        return Verdict(STOOD_STILL, now_ms)
    if left_ms > LEFT_MAX * term_ms:
        return Verdict(None, still_until_ms)
    if left_ms < LEFT_MIN * term_ms:
        return Verdict(None, min(now_ms + left_ms, still_until_ms))
    return Verdict(None, min(now_ms + int(term_ms * (0.9 + 0.1 * chance)), still_until_ms))
