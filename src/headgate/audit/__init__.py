"""Audit: do the numbered invariants that can be seen in state hold, in store and lake as they are?

    inspection   the whole audit: documents, then stream by stream, root by root, table by table
    documents    checkpoints, and documents of streams, roots and tables, each for itself
    numbers      the commit records of a shard in order, and what is missing among them
    chain        invariant 2: from record to record, up to the checkpoint
    standing     invariant 4: nothing beyond the checkpoint but what its journal names
    account      what a record says of its own files and counts
    tree         the folders that hold data files
    sums         what records and listings say of a folder, small enough to keep for every hour
    belonging    invariant 1: a folder in which they differ, file by file
    merged       the same for small files that became fewer large ones
    hours        what the records of a stream say of each hour
    closed       invariant 6: nothing came to a closed hour after its certificate
    parents      invariant 7: a parent's flag implies every expected child's
    reading      a table: its documents, its proofs, its backlog
    sequence     invariant 8: what it took is a prefix of the order
    stillness    invariant 9: one run at a time, and none once it is halted
    steady       a look during which a root's document stands still
    leftovers    staging that nobody will publish
    verifying    certificates against flags and files, from the lake alone

It repairs nothing, holds no right and starts no Spark. Nodes may work meanwhile: a checkpoint is
read before what it vouches for and after what it must explain, and what looks wrong in a folder is
looked at again before it is told. Tables are read as checkpoints are; roots by `steady`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Finding:
    invariant: int | None  # None: damage, or a remark
    stream: str
    shard: int | None
    subject: str  # a path in the lake, a key in the store, or STREAM/SHARD/COMMIT
    words: str  # what is so
    meaning: str
    next: str  # a command, or an act and a command


@dataclass(frozen=True, slots=True)
class Checked:
    """What was looked at."""

    streams: int = 0
    shards: int = 0
    records: int = 0
    folders: int = 0  # of hours and of dead letters
    files: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)  # by kind, of concluded commits
    hours: int = 0  # of streams, that are closed
    parents: int = 0  # hours and days over all streams that have their flag
    tables: int = 0
    batches: int = 0  # with rows in those tables


@dataclass(frozen=True, slots=True)
class Audit:
    findings: tuple[Finding, ...]
    remarks: tuple[Finding, ...]  # break nothing, and somebody may want to know
    checked: Checked
    left_out: int = 0  # findings beyond the most that are kept

    @property
    def is_clean(self) -> bool:
        return not self.findings


class OnProgress(Protocol):
    def __call__(self, done: int, total: int | None, words: str) -> None: ...
