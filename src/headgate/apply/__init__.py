"""Apply: the ready hours of a stream enter a table, each once and in order.

    intake           ready hours become entries of the backlog
    table_document   how far a table is: pure changes, and one holder's time with it
    course           what to do about the batch that is next or current: pure
    work             the work of one table: queue, apply, recover, halt
    remedies         what a person may do with a table that stands still
    notice           why a table stands still, and the exact commands
    kind             how it looks to the cluster

One task for each table. It meets the other stages in documents and files only.
"""

from dataclasses import dataclass

from headgate.periods import FolderTemplate

TRIES_MAX = 3
"""A batch that failed so often in one run halts its table."""

ATTEMPTS_MAX = 10
"""Attempts of one run, also those of which nobody could say how they ended."""


@dataclass(frozen=True, slots=True)
class TableSettings:
    name: str
    stream: str
    folder: FolderTemplate  # of the stream
    path: str  # of the table: a folder of this machine
    tries_max: int = TRIES_MAX
    nodes: tuple[str, ...] = ()  # labels: only nodes that have one of them; none: any
