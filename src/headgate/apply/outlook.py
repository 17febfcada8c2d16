"""Outlook: whether batches will enter a table without anything else happening. Read-only."""

from headgate.apply import TableSettings
from headgate.apply.table_document import TableDocument, table_key
from headgate.backlog.queue import head
from headgate.commits.certificate import flag_paths
from headgate.lake import Lake
from headgate.periods import Period
from headgate.store import DocumentStore
from headgate.store.changes import read


def has_batches_to_come(
    store: DocumentStore, lake: Lake, table: TableSettings, first_hour_ms: int | None
) -> bool:
    """What a halted table has in its backlog waits for a person; one that is halting is about to
    be. `first_hour_ms`: of its stream. Raises Unavailable, Corrupt."""
    found = read(store, table_key(table.name), TableDocument)
    document = TableDocument() if found is None else found.value
    if document.state != "running":
        return document.state == "halting"
    if document.current is not None or head(store, table.name) is not None:
        return True
    if first_hour_ms is None:
        return False
    last = document.queued_up_to
    following = Period.parse(last).next() if last else Period.hour_of(first_hour_ms)
    flags = flag_paths(table.folder, following, table.stream)
    return lake.facts(flags[0]) is not None
