"""Checkpoint: a shard's document: how far it is, what it promised, and the journal of a commit that
is not finished.

    take over: epoch, turn + 1 ──▶ held ── intend: the journal ──▶ journaled ── conclude ──┐
                                    ▲                                                      │
                                    └──────────────────── the fact ────────────────────────┘

A **tenure** is one holder's time with it. It acts only on what its own last acknowledged write
contained: after Conflict or OutcomeUnknown it knows nothing until it has taken over again, by a
write. That write comes after whatever an earlier, unanswered one may have done, or refuses it.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from headgate.errors import Conflict, Corrupt, Fenced, Halted, OutcomeUnknown
from headgate.store import DocumentStore
from headgate.store.changes import Kept, create_if_absent, read
from headgate.store.codec import BODY_BYTES_MAX, Truth, Whole, body_of
from headgate.store.names import key

CHECKPOINTS = "checkpoints"
ROWS = ("data", "late", "dead")  # kinds of rows that a commit leaves in the lake

Spans = tuple[tuple[Whole, Whole], ...]
"""Commit numbers as half-open spans, in order."""


@dataclass(frozen=True, slots=True)
class Gapped:
    """Commits, from `first` up to `next`, with gaps that concern these periods, both included."""

    first: Whole
    next: Whole
    since: str
    until: str


@dataclass(frozen=True, slots=True)
class LastGap:
    """The last commit that had gaps: its record says which. For people."""

    number: Whole
    at_ms: Whole  # wall time of its fact


@dataclass(frozen=True, slots=True)
class Journal:
    """A commit that everybody who holds this shard must finish: where its record is, and what its
    fact will set."""

    number: Whole
    epoch: Whole  # of the holder that staged it
    folder: str  # of this shard in the attempt's staging
    record: str  # staged path of the commit record
    size_bytes: Whole
    checksum: str
    positions: Mapping[str, str]
    watermarks: Mapping[str, Whole]
    ends_ms: Mapping[
        str, Whole
    ]  # source partitions that it reads to the end, and when that was seen
    periods: tuple[str, ...]
    shift: Whole  # that ends with this commit; 0: none does
    counts: Mapping[str, Whole] = field(default_factory=dict)  # rows by kind, and gaps
    replaces: Whole | None = None
    discovered_ms: Whole = 0  # its source partitions are all that there were then, at least
    reached: Mapping[str, str] = field(default_factory=dict)  # how each watermark that moves was
    open_from: str = ""  # periods that sort before it have their certificate
    gapped: tuple[Gapped, ...] = ()  # itself, if it has gaps

    @property
    def rows(self) -> int:
        return sum(self.counts.get(kind, 0) for kind in ROWS)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asked of this shard."""

    reason: str
    who: str
    at_ms: Whole


@dataclass(frozen=True, slots=True)
class Checkpoint:
    epoch: Whole = 0
    turn: Whole = 0  # grows with each take-over
    number: Whole = 0  # of the last commit that was journaled
    shift: Whole = 0  # the last that is over
    positions: Mapping[str, str] = field(default_factory=dict)
    watermarks: Mapping[str, Whole | None] = field(default_factory=dict)  # None: joined, none yet
    ends_ms: Mapping[str, Whole] = field(default_factory=dict)
    periods: Mapping[str, Spans] = field(default_factory=dict)  # commits with files in each
    journal: Journal | None = None
    restage: Wish | None = None  # of the journal that stands
    counts: Mapping[str, Whole] = field(default_factory=dict)  # of all commits
    committed_ms: Whole = 0  # wall time of the last fact: for people
    discovered_ms: Whole = 0  # by the store's clock: the source was asked after that, and every
    # source partition that it named and that belongs to this shard is in here
    reached: Mapping[str, str] = field(default_factory=dict)  # how each watermark was
    gapped: tuple[Gapped, ...] = ()  # commits with gaps that concern periods that are open
    last_gap: LastGap | None = None  # None: no commit had any
    ended: Wish | None = None  # a person let the stream begin anew: nobody takes this over
    is_clearing: Truth = False  # what is left of the journal's commit is being removed: from now on
    # it can only be staged again, also if what was lost comes back
    format: Literal[1] = 1

    @property
    def rows(self) -> int:
        """That lie in the lake."""
        return sum(self.counts.get(kind, 0) for kind in ROWS)


@dataclass(frozen=True, slots=True)
class Base:
    """What a round was staged from: its intent is refused if the checkpoint says otherwise."""

    epoch: int
    positions: Mapping[str, str]
    watermarks: Mapping[str, int | None]


def checkpoint_key(stream: str, shard: int) -> str:
    return f"{CHECKPOINTS}/{key(stream, f'{shard:05}')}"


def taken_over(name: str, found: Checkpoint, epoch: int, partitions: Iterable[str]) -> Checkpoint:
    """In this holder's hand, with every source partition that belongs to the shard: one that is new
    has no watermark, which holds its hours back. Raises Fenced."""
    if found.epoch > epoch:
        raise Fenced(f"{name}: epoch {epoch} was followed by {found.epoch}; this holder stops")
    if found.ended is not None:
        raise Fenced(f"{name}: {found.ended.who} let its stream begin anew; this holder stops")
    new = [one for one in partitions if one not in found.positions]
    return replace(
        found,
        epoch=epoch,
        turn=found.turn + 1,
        positions={**found.positions, **dict.fromkeys(new, "")},
        watermarks={**found.watermarks, **dict.fromkeys(new)},
    )


def base_of(found: Checkpoint) -> Base:
    return Base(found.epoch, dict(found.positions), dict(found.watermarks))


def base_after(found: Checkpoint, journal: Journal) -> Base:
    """What the next round is staged from while this journal is carried out."""
    return base_of(concluded("", replace(found, journal=journal), journal, 0))


def intended(name: str, found: Checkpoint, base: Base, journal: Journal) -> Checkpoint:
    """With the journal of the next commit. Raises Conflict: it was staged from something else;
    Corrupt: somebody would break a rule; Halted: its fact would not fit."""
    if found.journal is not None and journal.replaces != found.journal.number:
        raise Corrupt(f"{name}: commit {found.journal.number} is not finished (invariant 4)")
    if journal.number != found.number + 1:
        raise Conflict(f"{name}: commit {journal.number} does not follow {found.number}")
    is_same = (
        found.epoch == base.epoch
        and all(found.positions.get(one) == position for one, position in base.positions.items())
        and all(found.watermarks.get(one) == mark for one, mark in base.watermarks.items())
    )
    if not is_same:
        raise Conflict(f"{name}: the round was staged from another state; it is planned again")
    wanted = replace(found, number=journal.number, journal=journal, restage=None, is_clearing=False)
    check_fits(name, wanted)
    check_fits(name, concluded(name, wanted, journal, found.committed_ms))
    return wanted


def concluded(name: str, found: Checkpoint, journal: Journal, at_ms: int) -> Checkpoint:
    """The fact: everything that the journal says, and only that. Raises Corrupt."""
    if found.journal != journal:
        raise Corrupt(f"{name}: another journal stands than commit {journal.number}")
    if found.is_clearing:
        raise Corrupt(f"{name}: files of commit {journal.number} are being removed")
    for partition, mark in journal.watermarks.items():
        before = found.watermarks.get(partition)
        if before is not None and mark < before:
            raise Corrupt(f"{name}: the watermark of {partition} would move back")
    return replace(
        found,
        journal=None,
        restage=None,
        shift=max(found.shift, journal.shift),
        positions={**found.positions, **journal.positions},
        watermarks={**found.watermarks, **journal.watermarks},
        ends_ms={**found.ends_ms, **journal.ends_ms},
        periods=with_number(
            since(found.periods, journal.open_from), journal.periods, journal.number
        ),
        discovered_ms=max(found.discovered_ms, journal.discovered_ms),
        reached={**found.reached, **journal.reached},
        counts=added(found.counts, journal.counts),
        gapped=with_gaps(found.gapped, journal.gapped, journal.open_from),
        last_gap=LastGap(journal.number, at_ms) if journal.gapped else found.last_gap,
        committed_ms=max(found.committed_ms, at_ms),
    )


def clearing(name: str, found: Checkpoint, journal: Journal) -> Checkpoint:
    """Before the first file of its commit is removed: whoever removes one later than it knows must
    not take it from a commit that was finished since. Raises Corrupt."""
    if found.journal != journal:
        raise Corrupt(f"{name}: another journal stands than commit {journal.number}")
    return replace(found, is_clearing=True)


def added(before: Mapping[str, int], more: Mapping[str, int]) -> Mapping[str, int]:
    return {one: before.get(one, 0) + more.get(one, 0) for one in (*before, *more)}


def with_number(
    periods: Mapping[str, Spans], touched: Iterable[str], number: int
) -> Mapping[str, Spans]:
    found = dict(periods)
    for period in touched:
        spans = found.get(period, ())
        if spans and spans[-1][1] == number:
            found[period] = (*spans[:-1], (spans[-1][0], number + 1))
        else:
            found[period] = (*spans, (number, number + 1))
    return found


def with_gaps(
    known: Iterable[Gapped], more: Iterable[Gapped], open_from: str
) -> tuple[Gapped, ...]:
    """Commits that follow one another and concern the same periods are one."""
    found: list[Gapped] = []
    for one in (one for one in (*known, *more) if one.until >= open_from):
        last = found[-1] if found else None
        if last == replace(one, first=one.first if last is None else last.first, next=one.first):
            found[-1] = replace(one, first=last.first)
        else:
            found.append(one)
    return tuple(found)


def since(periods: Mapping[str, Spans], first: str) -> Mapping[str, Spans]:
    """Those that are still open. Periods sort as their words do."""
    return {period: spans for period, spans in periods.items() if period >= first}


def check_fits(name: str, wanted: Checkpoint) -> None:
    """Raises Halted: nobody could write this."""
    body = json.dumps(body_of(replace(wanted, periods={})), ensure_ascii=False)
    size_bytes = len(body.encode()) + sum(
        len(period) + 10 + 24 * len(spans) for period, spans in wanted.periods.items()
    )
    if size_bytes > BODY_BYTES_MAX - 10_000:
        raise Halted(
            f"{name}: its next checkpoint would have {size_bytes:,} bytes, and "
            f"{BODY_BYTES_MAX:,} fit the store; too many periods are open or too many source "
            "partitions are in one shard; next: headgate status shows which hours stand still"
        )


class Tenure:
    """One holder's time with one checkpoint. `store` is guarded: it asks for trust at each call."""

    def __init__(self, store: DocumentStore, stream: str, shard: int, epoch: int) -> None:
        self._store = store
        self._key = checkpoint_key(stream, shard)
        self._epoch = epoch
        self._kept: Kept[Checkpoint] | None = None

    @property
    def is_held(self) -> bool:
        """Whether it is known what the checkpoint says."""
        return self._kept is not None

    @property
    def checkpoint(self) -> Checkpoint:
        """As of the last acknowledged write of this tenure."""
        return self._known().value

    def lose(self) -> None:
        """After whatever makes it doubtful what the checkpoint says."""
        self._kept = None

    def take_over(self, partitions: Iterable[str]) -> Checkpoint:
        """By a write, always. Raises Fenced, Conflict, Unavailable, OutcomeUnknown, Corrupt."""
        self._kept = None
        found = read(self._store, self._key, Checkpoint)
        if found is None:
            create_if_absent(self._store, self._key, Checkpoint())
            found = read(self._store, self._key, Checkpoint)
        if found is None:
            raise Corrupt(f"{self._key}: is gone, and checkpoints are never deleted")
        wanted = tuple(partitions)
        return self._write(found, lambda value: taken_over(self._key, value, self._epoch, wanted))

    def join(self, partitions: Iterable[str]) -> Checkpoint:
        """With source partitions that were found since; a write only if there are any."""
        wanted = tuple(partitions)
        known = self._known()
        if all(one in known.value.positions for one in wanted):
            return known.value
        return self._write(known, lambda value: taken_over(self._key, value, self._epoch, wanted))

    def intend(self, base: Base, journal: Journal) -> Checkpoint:
        """Raises as `intended`, and Unavailable, OutcomeUnknown."""
        return self._write(self._known(), lambda value: intended(self._key, value, base, journal))

    def clear(self, journal: Journal) -> Checkpoint:
        """Raises as `clearing`, and Conflict, Unavailable, OutcomeUnknown."""
        return self._write(self._known(), lambda value: clearing(self._key, value, journal))

    def conclude(self, journal: Journal, at_ms: int) -> Checkpoint:
        return self._write(self._known(), lambda value: concluded(self._key, value, journal, at_ms))

    def _known(self) -> Kept[Checkpoint]:
        if self._kept is None:
            raise Conflict(f"{self._key}: what it says is not known; it is taken over again")
        return self._kept

    def _write(
        self, found: Kept[Checkpoint], decide: Callable[[Checkpoint], Checkpoint]
    ) -> Checkpoint:
        """`found` is kept only once this write is acknowledged: what was merely read is nothing to
        act on, however the write fails."""
        wanted = decide(found.value)
        try:
            version = self._store.replace(self._key, body_of(wanted), found.version)
        except (Conflict, OutcomeUnknown):
            self._kept = None
            raise
        self._kept = Kept(self._key, wanted, version)
        return wanted


def ended_for_good(name: str, found: Checkpoint, wish: Wish) -> Checkpoint:
    """Nobody can journal anything from here on: who holds it is refused, and nobody takes it over.
    Raises Halted: a commit is not finished."""
    if found.journal is not None:
        raise Halted(
            f"{name}: commit {found.journal.number} is journaled and not finished, and nobody "
            "would finish it; next: headgate run --until idle with the settings as they were, then "
            "the same command again"
        )
    return found if found.ended is not None else replace(found, ended=wish)


def add_wish(found: Checkpoint, wish: Wish) -> Checkpoint:
    """A person wants the standing journal to be staged again."""
    return found if found.journal is None else replace(found, restage=wish)
