"""Sequence: invariant 8: the batches in a table, with those passed on record, are a prefix of its
backlog order; and every hour that was queued is in the table, was passed, or waits.

    document, before ──▶ the table's own proofs, in order ──▶ entries ──▶ document, after

What the first reading says is applied must be in the table; what is in the table beyond the last
reading must be its current run. So nobody has to stand still meanwhile.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from headgate.apply import TableSettings
from headgate.apply.table_document import PASSED_MAX, TableDocument, table_key
from headgate.audit import Finding
from headgate.audit.advice import halt_table
from headgate.audit.steady import AGAIN
from headgate.backlog import Aside, Entry
from headgate.errors import Invalid
from headgate.periods import HOUR_MS, Period, hours_between
from headgate.tables import Taken

TOLD_MAX = 20

Passed = Callable[[], Collection[str]]
"""Every batch that a person let the table pass, by the ledger."""


def hour_of(batch: str) -> Period | None:
    try:
        found = Period.parse(batch)
    except Invalid:
        return None
    return found if found.kind == "hour" and str(found) == batch else None


def first_of(document: TableDocument) -> Period | None:
    """The hour of entry 0, by the document itself: hours are queued one after the other."""
    last = hour_of(document.queued_up_to)
    if last is None or not document.queued:
        return None
    try:
        return Period(last.start_ms - (document.queued - 1) * HOUR_MS, "hour")
    except Invalid:
        return None  # more hours than the calendar has


@dataclass(slots=True)
class Sequence:
    """What one look at a table found, batch by batch in order."""

    settings: TableSettings
    before: TableDocument
    mark_id: str  # "": it has none
    taken: int = 0  # batches with rows
    ahead: list[Taken] = field(default_factory=list)  # with rows, beyond what was applied before
    closed: dict[int, Taken] = field(default_factory=dict)  # runs of the batch current before
    run: int = 0  # the highest
    _missing: list[str] = field(default_factory=list)
    _rows: int = 0
    _next: Period | None = None  # the next hour that must be there
    _last: Taken | None = None  # with rows
    _applied: Taken | None = None  # the last of them that no person let it pass
    _passed: set[str] = field(default_factory=set)
    _doubles: int = 0

    def __post_init__(self) -> None:
        self._next = first_of(self.before)
        self._passed = {one.batch for one in self.before.passed}

    def add(self, taken: Taken) -> Iterator[Finding]:
        """The next run, in the order of batches and runs."""
        batch, run = taken.identity.batch, taken.identity.run
        self.run = max(self.run, run)
        current = self.before.current
        if current is not None and current.entry.batch == batch:
            self.closed[run] = taken
        for path, words in taken.wrong:
            meaning = "readers of the table get other rows than were applied"
            next_ = f"put it back from a backup, then {AGAIN}"
            yield self.found(None, path, words, meaning, next_)
        if taken.found.kind == "empty":
            return
        hour, first = hour_of(batch), first_of(self.before)
        if hour is None or (first is not None and hour < first):
            words = "is in the table, and is no hour that was ever queued"
            yield self.found(8, self.name(batch), words, _NOT_OURS, self.stop())
            return
        if self._last is not None and self._last.identity.batch == batch:
            words = f"is in the table twice: by run {self._last.identity.run} and by run {run}"
            yield self.found(9, self.name(batch), words, "its rows are counted twice", self.stop())
            self._doubles += 1
            return
        self.taken += 1
        yield from self._in_order(taken)
        if batch > self.before.applied_up_to:
            self.ahead.append(taken)
        else:
            self._skip_to(hour)
            self._next = hour.next()
            if batch not in self._passed:
                self._rows += taken.found.rows
        self._last = taken
        if batch not in self._passed:
            self._applied = taken

    def _in_order(self, taken: Taken) -> Iterator[Finding]:
        """It came after the batch before it, by its own proof."""
        last, is_known = self._applied, taken.found.kind == "rows" and self.mark_id
        behind = _folder_of(taken.after)
        if not is_known or not behind:
            return  # the first, or the first since a person took the table as it was
        # Only folders are compared: a table whose mark was lost has another one since.
        if last is None or behind != _folder_of(last.found.version):
            known = "nothing" if last is None else f"batch {last.identity.batch}"
            words = f"entered the table behind {taken.after}, and before it in order is {known}"
            meaning = "batches entered out of order, or one between them was taken out"
            yield self.found(8, self.name(taken.identity.batch), words, meaning, self.stop())

    def _skip_to(self, hour: Period | None) -> None:
        """Hours before this one are not in the table."""
        last = hour_of(self.before.applied_up_to)
        if self._next is None or last is None:
            return
        end_ms = last.end_ms if hour is None else hour.start_ms
        self._missing += [str(one) for one in hours_between(self._next.start_ms, end_ms)]

    def end(self, after: TableDocument, in_ledger: Passed) -> Iterator[Finding]:
        """`after`: read when everything else was; the document keeps only the last that were
        passed."""
        self._skip_to(None)
        passed = self._passed | {one.batch for one in after.passed}
        lost = [batch for batch in self._missing if batch not in passed]
        if lost and len(after.passed) >= PASSED_MAX:
            noted = in_ledger()
            lost = [batch for batch in lost if batch not in noted]
        if lost:
            more = f", and {len(lost) - 1:,} more" if len(lost) > 1 else ""
            words = f"is not in the table{more}, and it is applied up to {after.applied_up_to}"
            meaning = "its rows are missing, and nobody let the table pass it on record"
            yield self.found(8, self.name(lost[0]), words, meaning, self.restore())
        elif not self._doubles and not self._is_counted():
            words = f"counts {self.before.rows:,} rows, and its batches in order {self._rows:,}"
            meaning = "a batch was counted twice, or is not what was applied"
            yield self.found(8, table_key(self.settings.name), words, meaning, AGAIN)
        yield from self._beyond(after)

    def _is_counted(self) -> bool:
        return len(self.before.passed) >= PASSED_MAX or self._rows == self.before.rows

    def _beyond(self, after: TableDocument) -> Iterator[Finding]:
        """What is in the table and not on record is its current run, and nothing else."""
        current = after.current
        for taken in self.ahead[:TOLD_MAX]:
            batch, run = taken.identity.batch, taken.identity.run
            if batch <= after.applied_up_to or taken.found.kind == "damaged":
                continue
            is_current = current is not None and (current.entry.batch, current.run) == (batch, run)
            if after.state == "halted":
                words = f"is in the table by run {run}, and the table is halted before it"
                meaning = "a table that stands still was changed"
                yield self.found(9, self.name(batch), words, meaning, self.look())
            elif not is_current:
                words = (
                    f"is in the table by run {run}, and the document says that it is applied up "
                    f"to {after.applied_up_to or 'nothing'}"
                )
                yield self.found(8, self.name(batch), words, _NOT_OURS, self.stop())
            elif current is not None and taken.found.manifest != current.entry.manifest_hash:
                words = f"is in the table by run {run} with another manifest than was queued"
                yield self.found(8, self.name(batch), words, _NOT_OURS, self.stop())

    # Words

    def name(self, batch: str) -> str:
        return f"{self.settings.name} {batch}"

    def found(
        self, invariant: int | None, subject: str, words: str, meaning: str, next_: str
    ) -> Finding:
        return Finding(invariant, self.settings.stream, None, subject, words, meaning, next_)

    def stop(self) -> str:
        return halt_table(self.settings.name)

    def restore(self) -> str:
        return f"put it back from a backup, then {AGAIN}"

    def look(self) -> str:
        return "headgate status"


_NOT_OURS = "a store was rolled back, or a second installation writes to this table"


def _folder_of(version: str) -> str:
    """Of the batch that a version ends with; "": it is a table without any."""
    return version.partition("/")[2]


def check_progress(
    settings: TableSettings, document: TableDocument, first_hour_ms: int | None
) -> Iterator[Finding]:
    """How far a table is, by its document alone. `first_hour_ms`: of its stream, if that is known.
    Pure."""
    first, last = first_of(document), hour_of(document.queued_up_to)
    if document.queued and (first is None or last is None):
        words = f"{document.queued:,} hours were queued, up to {document.queued_up_to!r}"
        yield _doubt(settings, f"{words}, which is no hour")
        return
    if first is not None and first_hour_ms is not None and first.start_ms != first_hour_ms:
        wanted = Period(first_hour_ms, "hour")
        words = f"{document.queued:,} hours were queued up to {document.queued_up_to}"
        yield _doubt(settings, f"{words}, and the first hour of {settings.stream} is {wanted}")
    if document.applied_up_to > document.queued_up_to:
        words = f"it is applied up to {document.applied_up_to}, and queued up to "
        yield _doubt(settings, f"{words}{document.queued_up_to or 'nothing'}")
        return
    applied = 0
    if first is not None and document.applied_up_to:
        hour = hour_of(document.applied_up_to)
        applied = 0 if hour is None else (hour.end_ms - first.start_ms) // HOUR_MS
    ends = [end for _, end in document.done]
    if max(ends, default=0) != applied:
        words = f"it is applied up to {document.applied_up_to or 'nothing'}, entry {applied}"
        yield _doubt(settings, f"{words}, and entries up to {max(ends, default=0)} are done")
    done = sum(end - start for start, end in document.done)
    counted = document.batches + len(document.passed)
    if counted > done or (len(document.passed) < PASSED_MAX and counted != done):
        words = f"{done:,} entries are done, and {document.batches:,} batches were applied and "
        yield _doubt(settings, f"{words}{len(document.passed):,} passed")
    current = document.current
    if current is not None and current.entry.batch <= document.applied_up_to:
        words = f"batch {current.entry.batch} is current, and it is applied up to "
        yield _doubt(settings, f"{words}{document.applied_up_to}")


def _doubt(settings: TableSettings, words: str) -> Finding:
    meaning = "a batch is left out, or enters the table twice"
    key = table_key(settings.name)
    return Finding(8, settings.stream, None, key, words, meaning, AGAIN)


def check_waiting(
    settings: TableSettings,
    before: TableDocument,
    waiting: Mapping[int, Entry],
    asides: Collection[Aside],
    after: TableDocument,
) -> Iterator[Finding]:
    """Every hour that was queued is done, waits or is set aside, under its own number. Entries were
    listed between the two readings. Pure."""
    first, name = first_of(after), settings.name
    if first is None:
        for entry in list(waiting.values())[:TOLD_MAX]:
            if entry.number:
                yield _odd_entry(settings, entry, "nothing was ever queued")
        return
    aside = {one.batch for one in asides}
    lost: list[str] = []
    for number in _not_done(after, before.queued):
        batch = str(Period(first.start_ms + number * HOUR_MS, "hour"))
        if number not in waiting and batch not in aside:
            lost.append(batch)
    if lost:
        more = f", and {len(lost) - 1:,} more" if len(lost) > 1 else ""
        yield Finding(
            8,
            settings.stream,
            None,
            f"{name} {lost[0]}",
            f"was queued, is not applied and not passed, and does not wait{more}",
            "the table would go on without it",
            halt_table(name),
        )
    told = 0
    for number, entry in sorted(waiting.items()):
        batch = str(Period(first.start_ms + number * HOUR_MS, "hour"))
        if (number > after.queued or entry.batch != batch) and told < TOLD_MAX:
            told += 1
            yield _odd_entry(settings, entry, f"the hour with this number is {batch}")
    current = after.current
    if current is not None:
        numbers = _not_done(after, current.entry.number)
        earlier = (str(Period(first.start_ms + n * HOUR_MS, "hour")) for n in numbers)
        left = next((batch for batch in earlier if batch not in aside), None)
        if left is not None:
            words = f"batch {current.entry.batch} is current, and {left} before it is not done"
            yield _doubt(settings, words)


def _not_done(document: TableDocument, until: int) -> Iterator[int]:
    """Numbers below this one. They are as many as wait, and no more: `done` has few spans."""
    start = 0
    for first, end in (*sorted(document.done), (until, until)):
        yield from range(start, min(first, until))
        start = max(start, end)


def _odd_entry(settings: TableSettings, entry: Entry, why: str) -> Finding:
    words = f"waits as number {entry.number}, and {why}"
    meaning = "batches would enter the table in another order than their hours"
    subject = f"{settings.name} {entry.batch}"
    next_ = halt_table(settings.name)
    return Finding(8, settings.stream, None, subject, words, meaning, next_)
