"""Table document: how far a table is, and the run that may be changing it.

    running ── begin: batch, run, attempt, version before ──▶ current ── it is in ──▶ running
       ▲                                                         │
       │                              failed too often, a person, a history that is gone
       │                                                         ▼
       └── a person: retry, skip, … ── halted ◀── its identity is taken ── halting

*Halting* until the run's identity is committed as an empty batch: only then can nobody change the
table any more who was paused (invariant 9). `applied_up_to` passes the current batch and no other,
by one compare-and-set, and its entry is deleted afterwards (invariant 8).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from headgate.backlog import Entry
from headgate.backlog.needs import TABLES
from headgate.cluster.feeds import Spans, joined
from headgate.errors import Conflict, Corrupt, Fenced, OutcomeUnknown
from headgate.store import DocumentStore
from headgate.store.changes import Kept, create_if_absent, read
from headgate.store.codec import Whole, body_of
from headgate.store.names import key

SYSTEM = "system"
PASSED_MAX = 100  # the last ones; the ledger has all
WORDS_MAX = 2_000

State = Literal["running", "halting", "halted"]


@dataclass(frozen=True, slots=True)
class Current:
    """The run that may be changing the table."""

    entry: Entry
    run: Whole
    attempt: Whole
    version: str  # of the table before


@dataclass(frozen=True, slots=True)
class Halt:
    """Why it stands still, or is about to."""

    batch: str  # "": none in particular
    words: str
    who: str
    at_ms: Whole  # wall time


@dataclass(frozen=True, slots=True)
class Passed:
    """A batch that a person let the table pass."""

    batch: str
    how: Literal["skipped", "marked applied"]
    reason: str
    who: str
    at_ms: Whole


@dataclass(frozen=True, slots=True)
class TableDocument:
    epoch: Whole = 0
    turn: Whole = 0  # grows with each take-over
    state: State = "running"
    queued: Whole = 0  # how many entries were ever made: the number of the next one
    queued_up_to: str = ""
    run: Whole = 0  # the last that was begun
    current: Current | None = None
    tries: Whole = 0  # of the current run that failed
    trouble: str = ""  # of the last failure
    applied_up_to: str = ""  # every batch up to this one is in the table, or passed on record
    version: str = ""  # of the table, as last known; "": nothing was ever recorded
    done: Spans = ()  # numbers of entries that were applied or passed
    batches: Whole = 0  # that were applied
    rows: Whole = 0
    passed: tuple[Passed, ...] = ()
    halt: Halt | None = None
    renews: bool = False  # a person retries: the manifest of the next batch is frozen anew
    stream: str = ""  # whose hours it takes; "": nobody has held it since documents say so
    format: Literal[1] = 1


def table_key(table: str) -> str:
    return f"{TABLES}/{key(table)}"


def is_done(found: TableDocument, number: int) -> bool:
    return any(first <= number < end for first, end in found.done)


# What the document may become; each wants nothing of what it was already.


def taken_over(name: str, found: TableDocument, epoch: int, stream: str) -> TableDocument:
    """Raises Fenced."""
    if found.epoch > epoch:
        raise Fenced(f"{name}: epoch {epoch} was followed by {found.epoch}; this holder stops")
    return replace(found, epoch=epoch, turn=found.turn + 1, stream=stream)


def queued(found: TableDocument, entry: Entry) -> TableDocument:
    """With the next batch in its backlog. Raises Corrupt."""
    if entry.number != found.queued or entry.batch <= found.queued_up_to:
        raise Corrupt(f"batch {entry.batch} is queued as number {entry.number}: out of order")
    return replace(found, queued=found.queued + 1, queued_up_to=entry.batch)


def begun(found: TableDocument, entry: Entry, base: str) -> TableDocument:
    """With this batch as its current one. Raises Corrupt: a rule would be broken."""
    if found.current is not None or found.state != "running":
        raise Corrupt(f"batch {entry.batch} is begun while another is current (invariant 9)")
    if entry.batch <= found.applied_up_to:
        raise Corrupt(f"batch {entry.batch} comes after {found.applied_up_to} (invariant 8)")
    current = Current(entry, found.run + 1, 1, base)
    return replace(
        found, run=current.run, current=current, tries=0, trouble="", version=base, renews=False
    )


def begun_again(found: TableDocument) -> TableDocument:
    """Raises Corrupt."""
    current = _current_of(found)
    return replace(found, current=replace(current, attempt=current.attempt + 1))


def failed(found: TableDocument, words: str, tries_max: int, at_ms: int) -> TableDocument:
    """One more try that failed; halting, if that was the last one. Raises Corrupt."""
    current = _current_of(found)
    counted = replace(found, tries=found.tries + 1, trouble=words[:WORDS_MAX])
    if counted.tries < tries_max:
        return begun_again(counted)
    return halting(counted, Halt(current.entry.batch, words[:WORDS_MAX], SYSTEM, at_ms))


def applied(found: TableDocument, version: str, rows: int) -> TableDocument:
    """The current batch is in the table. What a person halted stays so. Raises Corrupt."""
    current = _current_of(found)
    is_wanted = found.state == "halting" and found.halt is not None and found.halt.who != SYSTEM
    return replace(
        _past(found, current.entry),
        state="halted" if is_wanted else "running",
        halt=found.halt if is_wanted else None,
        version=version,
        batches=found.batches + 1,
        rows=found.rows + rows,
    )


def halting(found: TableDocument, halt: Halt) -> TableDocument:
    return found if found.state != "running" else replace(found, state="halting", halt=halt)


def halted(found: TableDocument) -> TableDocument:
    """Nobody can change the table any more. Raises Corrupt."""
    if found.state != "halting":
        raise Corrupt("a table is halted that was not halting: somebody may still change it")
    return replace(found, state="halted")


def set_going(
    found: TableDocument, *, forgets_version: bool = False, renews: bool = False
) -> TableDocument:
    """A halted one goes on, by a new run."""
    return replace(
        found,
        state="running",
        halt=None,
        current=None,
        tries=0,
        trouble="",
        version="" if forgets_version else found.version,
        renews=renews,
    )


def passed_by(found: TableDocument, entry: Entry, passed: Passed) -> TableDocument:
    """A halted one goes on behind this batch, on record."""
    kept = (*found.passed, passed)[-PASSED_MAX:]
    return replace(set_going(_past(found, entry)), passed=kept)


def _past(found: TableDocument, entry: Entry) -> TableDocument:
    if entry.batch <= found.applied_up_to:
        raise Corrupt(f"batch {entry.batch} is behind {found.applied_up_to} (invariant 8)")
    return replace(
        found,
        current=None,
        tries=0,
        trouble="",
        applied_up_to=entry.batch,
        done=joined(found.done, [entry.number]),
    )


def _current_of(found: TableDocument) -> Current:
    if found.current is None:
        raise Corrupt("a table that has no current batch is said to apply one")
    return found.current


class TableTenure:
    """One holder's time with the document. It acts only on what its own last acknowledged write
    contained, and takes over again, by a write, after whatever makes that doubtful."""

    def __init__(self, store: DocumentStore, table: str, epoch: int, stream: str) -> None:
        self._store = store
        self._key = table_key(table)
        self._epoch = epoch
        self._stream = stream
        self._kept: Kept[TableDocument] | None = None

    @property
    def document(self) -> TableDocument:
        """As of the last acknowledged write of this tenure."""
        return self._known().value

    def is_held(self) -> bool:
        """Whether nobody wrote since, as a person may. Raises Unavailable, Corrupt."""
        if self._kept is None:
            return False
        found = self._store.get(self._key)
        return found is not None and found.version == self._kept.version

    def lose(self) -> None:
        self._kept = None

    def take_over(self) -> TableDocument:
        """By a write, always. Raises Fenced, Conflict, Unavailable, OutcomeUnknown, Corrupt."""
        self._kept = None
        found = read(self._store, self._key, TableDocument)
        if found is None:
            create_if_absent(self._store, self._key, TableDocument())
            found = read(self._store, self._key, TableDocument)
        if found is None:
            raise Corrupt(f"{self._key}: is gone, and such documents are never deleted")
        return self._write(
            found, lambda value: taken_over(self._key, value, self._epoch, self._stream)
        )

    def write(self, decide: Callable[[TableDocument], TableDocument]) -> TableDocument:
        """Raises what `decide` raises, Conflict, Unavailable, OutcomeUnknown."""
        return self._write(self._known(), decide)

    def _known(self) -> Kept[TableDocument]:
        if self._kept is None:
            raise Conflict(f"{self._key}: what it says is not known; it is taken over again")
        return self._kept

    def _write(
        self, found: Kept[TableDocument], decide: Callable[[TableDocument], TableDocument]
    ) -> TableDocument:
        wanted = decide(found.value)
        try:
            version = self._store.replace(self._key, body_of(wanted), found.version)
        except (Conflict, OutcomeUnknown):
            self._kept = None
            raise
        self._kept = Kept(self._key, wanted, version)
        return wanted
