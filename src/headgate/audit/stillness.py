"""Stillness: invariant 9: at most one run may be changing a table, and none once it is halted.

A halted table has its run closed: its identity is taken by an empty batch, in the table itself. As
long as it is not, a node that was paused can wake up and put its rows in.
"""

from collections.abc import Iterator, Mapping

from headgate.apply import TableSettings
from headgate.apply.notice import run_name
from headgate.apply.table_document import TableDocument, table_key
from headgate.audit import Finding
from headgate.audit.advice import halt_table
from headgate.audit.steady import AGAIN
from headgate.tables import Taken


def check_current(settings: TableSettings, document: TableDocument) -> Iterator[Finding]:
    """By the document alone. Pure."""
    current = document.current
    if current is not None and current.run != document.run:
        words = f"run {current.run} is current, and the last that was begun is {document.run}"
        yield _found(settings, table_key(settings.name), words, "two runs may change the table")
    if document.state != "running" and document.halt is None:
        words = f"it is {document.state}, and nobody says why"
        yield _found(settings, table_key(settings.name), words, "nobody can decide about it")


def check_closed(
    settings: TableSettings, before: TableDocument, runs: Mapping[int, Taken]
) -> Iterator[Finding]:
    """`runs`: of its current batch, read after the document. Pure."""
    current = before.current
    if before.state != "halted" or current is None:
        return
    own, name = runs.get(current.run), run_name(settings.name, current.run)
    subject = f"{settings.name} {current.entry.batch}"
    if own is None:
        words = f"the table is halted, and its run {name} is not closed in it"
        yield _found(settings, subject, words, "a node that was paused could still change it")
    elif own.found.kind == "rows" and own.found.manifest == current.entry.manifest_hash:
        words = f"the table is halted, and the rows of its run {name} are in it"
        meaning = "a person would decide about a batch that is there already"
        yield _found(settings, subject, words, meaning)


def check_runs(settings: TableSettings, run: int, after: TableDocument) -> Iterator[Finding]:
    """`run`: the highest in the table; `after`: read behind it. Pure."""
    if run > after.run:
        words = f"run {run} is in the table, and the last that was begun is {after.run}"
        meaning = "a store was rolled back, or a second installation writes to this table"
        subject = table_key(settings.name)
        next_ = halt_table(settings.name)
        yield Finding(9, settings.stream, None, subject, words, meaning, next_)


def _found(settings: TableSettings, subject: str, words: str, meaning: str) -> Finding:
    return Finding(9, settings.stream, None, subject, words, meaning, AGAIN)
