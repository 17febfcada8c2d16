"""Tables: how far each table is, and what stands still and why. Values, read-only."""

from collections.abc import Iterable
from dataclasses import dataclass

from headgate.apply.notice import notice
from headgate.apply.table_document import TableDocument, table_key
from headgate.backlog.queue import entries
from headgate.errors import Corrupt
from headgate.store import DocumentStore
from headgate.store.changes import read


@dataclass(frozen=True, slots=True)
class TableStatus:
    name: str
    state: str  # running, halting, halted, damaged
    applied_up_to: str
    batches: int  # that were applied
    rows: int
    waiting: int  # entries of its backlog
    notice: str  # "": it runs; else what happened, what it means and the exact commands

    @property
    def is_healthy(self) -> bool:
        return self.state == "running"


def read_tables(store: DocumentStore, names: Iterable[str]) -> list[TableStatus]:
    """Raises Unavailable."""
    return [_read(store, name) for name in names]


def _read(store: DocumentStore, name: str) -> TableStatus:
    try:
        found = read(store, table_key(name), TableDocument)
        waiting = sum(1 for _ in entries(store, name))
    except Corrupt as error:
        return TableStatus(name, "damaged", "", 0, 0, 0, f"damaged: {error}")
    document = TableDocument() if found is None else found.value
    return TableStatus(
        name,
        document.state,
        document.applied_up_to,
        document.batches,
        document.rows,
        waiting,
        notice(name, document, waiting),
    )
