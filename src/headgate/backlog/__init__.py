"""Backlog: the batches that wait for a table, in order, each with its manifest frozen.

    queue      entries: documents of the store, in the order of the batches' names
    manifest   what a batch consists of: a file of the lake, written once

An entry is a document of its own: it is there until it was applied itself, or set aside, and
needs no other signal. Deliberately absent: Spark, and what a table is.
"""

from dataclasses import dataclass
from typing import Literal

from headgate.store.codec import Whole


@dataclass(frozen=True, slots=True)
class Entry:
    batch: str  # entries are in the order of this text
    number: Whole  # in the order in which they were queued; never used again
    stream: str
    generation: Whole
    manifest: str  # path in the lake
    manifest_hash: str
    files: Whole
    rows: Whole
    format: Literal[1] = 1


@dataclass(frozen=True, slots=True)
class Aside:
    """A batch that is left out of the automatic flow."""

    batch: str
    generation: Whole
    manifest_hash: str
    reason: str
    at_ms: Whole  # wall time
    format: Literal[1] = 1
