"""Remedies: what a person may do with a table. Each has a reason, is in the ledger before it is
done, and changes the table's document by compare-and-set.

    halt           running ──▶ halting; its holder closes the run, then it is halted
    retry          halted at a batch ──▶ running: the batch again, by a new run, as it is now
    skip           halted at a batch ──▶ running behind it: left out for good, on record
    mark_applied   the same: its rows are in the table, by hand
    resume         halted ──▶ running: where a person halted it, goes on as before; where it stopped
                   by itself, with the table as it is now; halting ──▶ running only if a person
                   knows that the table is gone, and what a node prepared in it as well

A halted table changes not at all: the run it stopped at was closed before. So nobody who wakes up
late can put rows beside what a person decided here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from shlex import quote
from typing import Literal

from headgate.ambient import Ambient
from headgate.apply.table_document import (
    Halt,
    Passed,
    TableDocument,
    halting,
    is_done,
    passed_by,
    set_going,
    table_key,
)
from headgate.backlog import Entry
from headgate.backlog.queue import entry_key, head
from headgate.errors import Fenced, Halted, Invalid
from headgate.lake.ledger import Ledger
from headgate.store import DocumentStore
from headgate.store.changes import Kept, change, read


@dataclass(frozen=True, slots=True)
class Decision:
    """Who decides, and why."""

    who: str
    reason: str


class Remedies:
    """For whoever has the store and the ledger of an installation. Every method raises Invalid (no
    such table or batch), Halted (it is not in a state for this), Unavailable, OutcomeUnknown."""

    def __init__(self, store: DocumentStore, ledger: Ledger, ambient: Ambient) -> None:
        self._store = store
        self._ledger = ledger
        self._ambient = ambient

    def halt(self, table: str, by: Decision) -> TableDocument:
        """Halting; a table that stands still already is left as it is."""
        found = self._found(table)
        if found.value.state != "running":
            return found.value
        self._note("table.halt", table, by)
        halt = Halt("", by.reason, by.who, self._now_ms())
        return self._change(found, lambda value: halting(value, halt))

    def retry(self, table: str, by: Decision) -> TableDocument:
        found = self._halted(table)
        if not stopped_at(found.value):
            raise Halted(
                f"{table}: stopped at no batch in particular, so there is none to retry; "
                f'next: headgate table resume {quote(table)} --reason "…"'
            )
        self._note("table.retry", table, by)
        return self._change(
            found, lambda value: _if_halted(value, lambda v: set_going(v, renews=True))
        )

    def resume(self, table: str, by: Decision, *, is_lost: bool = False) -> TableDocument:
        """If it stopped at a batch, with the table as it is now: a history that is gone is not
        asked for any more. What a person halted goes on where it was: a disk that is not mounted
        again must not become a new table. `is_lost`: also while it is halting, since nobody can
        close a run in a table that is gone."""
        found = self._found(table) if is_lost else self._halted(table)
        if found.value.state == "running":
            found = self._halted(table)
        self._note("table.resume", table, by)
        states = ("halting", "halted") if is_lost else ("halted",)
        return self._change(
            found,
            lambda value: (
                set_going(value, forgets_version=is_lost or _stopped_by_itself(value))
                if value.state in states
                else value
            ),
        )

    def skip(self, table: str, batch: str, by: Decision) -> TableDocument:
        return self._pass(table, batch, by, "skipped", "table.skip")

    def mark_applied(self, table: str, batch: str, by: Decision) -> TableDocument:
        return self._pass(table, batch, by, "marked applied", "table.mark_applied")

    def _pass(
        self,
        table: str,
        batch: str,
        by: Decision,
        how: Literal["skipped", "marked applied"],
        what: str,
    ) -> TableDocument:
        found = self._halted(table)
        entry = self._entry(table, found.value)
        if entry is None or entry.batch != batch:
            at = "nothing waits" if entry is None else f"it stands at {entry.batch}"
            raise Invalid(
                f"{table}: {at}, and only the batch it stands at can be passed, not {batch}; "
                "next: headgate status"
            )
        passed = Passed(batch, how, by.reason, by.who, self._now_ms())
        self._note(what, table, by, batch)
        return self._change(
            found, lambda value: _if_halted(value, lambda v: _once(v, entry, passed))
        )

    def _entry(self, table: str, document: TableDocument) -> Entry | None:
        if document.current is not None:
            return document.current.entry
        batch = stopped_at(document)
        kept = read(self._store, entry_key(table, batch), Entry) if batch else None
        kept = kept or head(self._store, table)
        return None if kept is None else kept.value

    def _found(self, table: str) -> Kept[TableDocument]:
        found = read(self._store, table_key(table), TableDocument)
        if found is None:
            raise Invalid(f"table {table}: no node has ever worked on it; next: headgate status")
        return found

    def _halted(self, table: str) -> Kept[TableDocument]:
        found = self._found(table)
        if found.value.state == "halting":
            raise Halted(
                f"{table}: is halting: until its run is closed, a node may still change it; "
                "next: headgate status, and again once it is halted"
            )
        if found.value.state != "halted":
            raise Halted(
                f"{table}: is not halted, so there is nothing to decide; "
                f'next: headgate table halt {quote(table)} --reason "…"'
            )
        return found

    def _change(
        self, found: Kept[TableDocument], decide: Callable[[TableDocument], TableDocument]
    ) -> TableDocument:
        try:
            return change(self._store, found.key, TableDocument, decide, found).value
        except Fenced as error:
            raise Invalid(f"{found.key}: is gone") from error

    def _note(self, what: str, table: str, by: Decision, batch: str = "") -> None:
        subject = f"{table} {batch}" if batch else table
        self._ledger.note(what, subject, by.reason, who=by.who, id=self._ambient.new_id())

    def _now_ms(self) -> int:
        return self._ambient.wall_ns() // 1_000_000


def stopped_at(document: TableDocument) -> str:
    """The batch it stands at; "": none in particular."""
    if document.current is not None:
        return document.current.entry.batch
    return "" if document.halt is None else document.halt.batch


def _stopped_by_itself(document: TableDocument) -> bool:
    return document.halt is not None and bool(document.halt.batch)


def _once(found: TableDocument, entry: Entry, passed: Passed) -> TableDocument:
    return found if is_done(found, entry.number) else passed_by(found, entry, passed)


def _if_halted(
    found: TableDocument, decide: Callable[[TableDocument], TableDocument]
) -> TableDocument:
    """Somebody may have decided meanwhile, or this very write got through: then it stays so."""
    return decide(found) if found.state == "halted" else found
