"""Queue: the entries of a table, in order.

    queued: create ──▶ head ── applied or skipped: that very document is deleted
                         └── it sorts before one that is done: set aside, then deleted

Queuing the same batch again finds its entry and changes nothing. Removing asks for the number: what
somebody queued under the same name since stays.
"""

from collections.abc import Iterator
from typing import Final

from headgate.backlog import Aside, Entry
from headgate.errors import Conflict
from headgate.store import DocumentStore
from headgate.store.changes import Kept, create_if_absent, read
from headgate.store.codec import body_of, damaged, parse
from headgate.store.names import key

BACKLOG: Final = "backlog"
ASIDE: Final = "aside"
PAGE: Final = 100


def backlog_prefix(table: str) -> str:
    return f"{BACKLOG}/{key(table)}"


def entry_key(table: str, batch: str) -> str:
    return f"{BACKLOG}/{key(table, batch)}"


def aside_key(table: str, batch: str, generation: int) -> str:
    return f"{ASIDE}/{key(table, batch, f'{generation:05}')}"


def head(store: DocumentStore, table: str) -> Kept[Entry] | None:
    """The first in order; None: nothing waits. Raises Corrupt, Unavailable."""
    page = store.list(backlog_prefix(table), limit=1)
    if page.damaged:
        raise damaged(page.damaged[0].place, page.damaged[0].reason)
    if not page.documents:
        return None
    found = page.documents[0]
    return Kept(found.key, parse(found, Entry), found.version)


def entries(store: DocumentStore, table: str) -> Iterator[Entry]:
    """All that wait, in order, a page at a time. Raises Corrupt, Unavailable."""
    after: str | None = ""
    while after is not None:
        page = store.list(backlog_prefix(table), after=after, limit=PAGE)
        if page.damaged:
            raise damaged(page.damaged[0].place, page.damaged[0].reason)
        for document in page.documents:
            yield parse(document, Entry)
        after = page.next_after


def queue(store: DocumentStore, table: str, entry: Entry) -> Entry:
    """What waits under this name now: this, or what was there before. Raises Unavailable,
    OutcomeUnknown (again is harmless), Corrupt."""
    name = entry_key(table, entry.batch)
    create_if_absent(store, name, entry)
    found = read(store, name, Entry)
    if found is None:
        raise Conflict(f"{name}: was taken from the backlog just now")
    return found.value


def remove(store: DocumentStore, table: str, batch: str, number: int) -> bool:
    """Exactly that entry; whether it was there. Raises Conflict, Unavailable, OutcomeUnknown."""
    found = read(store, entry_key(table, batch), Entry)
    if found is None or found.value.number != number:
        return False
    store.delete(found.key, found.version)
    return True


def requeue(store: DocumentStore, table: str, entry: Entry) -> None:
    """The entry of this number is now so. Raises Conflict, Unavailable, OutcomeUnknown, Corrupt."""
    found = read(store, entry_key(table, entry.batch), Entry)
    if found is None or found.value.number != entry.number:
        raise Conflict(f"{entry_key(table, entry.batch)}: was taken from the backlog just now")
    store.replace(found.key, body_of(entry), found.version)


def take_back(store: DocumentStore, table: str, batch: str, generation: int) -> None:
    """It is set aside no more. Raises Conflict, Unavailable, OutcomeUnknown, Corrupt."""
    found = read(store, aside_key(table, batch, generation), Aside)
    if found is not None:
        store.delete(found.key, found.version)


def put_aside(store: DocumentStore, table: str, aside: Aside) -> None:
    """The first reason stays. Raises Unavailable, OutcomeUnknown (again is harmless)."""
    create_if_absent(store, aside_key(table, aside.batch, aside.generation), aside)


def asides(store: DocumentStore, table: str) -> Iterator[Aside]:
    """All that are set aside, in order. Raises Corrupt, Unavailable."""
    after: str | None = ""
    while after is not None:
        page = store.list(f"{ASIDE}/{key(table)}", after=after, limit=PAGE)
        if page.damaged:
            raise damaged(page.damaged[0].place, page.damaged[0].reason)
        for document in page.documents:
            yield parse(document, Aside)
        after = page.next_after
