"""Needs: which tables have not yet taken a batch, for whoever wants to take its files away.

A table that is applied up to a batch needs nothing of it any more. One that is behind it does, also
if it has not queued it yet. A table that is made later has its document before it looks at any
batch: whoever says first that files go, and asks for tables then, misses none.

Only two words of a table's document are read here; the rest is the business of whoever applies.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from headgate.store import DocumentStore, JsonObject
from headgate.store.codec import damaged
from headgate.store.names import parts
from headgate.store.pages import pages

TABLES: Final = "tables"


@dataclass(frozen=True, slots=True)
class Needing:
    """A table that has not taken a batch."""

    table: str
    applied_up_to: str  # "": nothing
    is_halted: bool


def tables_behind(
    store: DocumentStore, stream: str, batch: str, without: Collection[str] = ()
) -> Iterator[Needing]:
    """Those that take this stream and have not taken this batch of it, or a later one. One that
    nobody held since documents name the stream counts, too. Raises Unavailable, Corrupt."""
    for page in pages(store, TABLES):
        if page.damaged:
            raise damaged(page.damaged[0].place, page.damaged[0].reason)
        for document in page.documents:
            table = parts(document.key)[-1]
            applied_up_to = _text(document.body, "applied_up_to")
            is_fed = _text(document.body, "stream") in ("", stream)
            if is_fed and applied_up_to < batch and table not in without:
                yield Needing(table, applied_up_to, document.body.get("state") != "running")


def _text(body: JsonObject, name: str) -> str:
    found = body.get(name)
    return found if isinstance(found, str) else ""
