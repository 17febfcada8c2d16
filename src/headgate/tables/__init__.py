"""Tables: where finished batches go, each once and in order.

    site      a folder of this machine in which a table's batches lie
    parquet   the table that is such a folder: any reader opens it as one dataset
    spark     moves the rows of a batch

Safety does not rest on who applies: a batch enters by one commit of the table itself, with its
identity in it. Every table passes the same suite (`headgate.testing.contract.table`), whose tests
carry the numbers below.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

FoundAs = Literal["rows", "empty", "damaged"]
"""As what an identity is in a table: with its rows; as an empty batch; its proof cannot be read."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Of one run of a batch: a table takes it once."""

    batch: str
    run: int


@dataclass(frozen=True, slots=True)
class BatchFile:
    """A Parquet file below the root of the lake."""

    path: str
    size_bytes: int
    checksum: str
    rows: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What is to be applied, frozen."""

    name: str
    manifest: str  # the hash that it was frozen under
    files: tuple[BatchFile, ...]

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


@dataclass(frozen=True, slots=True)
class Found:
    """A run of a batch that is in the table."""

    kind: FoundAs
    version: str  # of the table with it
    manifest: str = ""
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """What one load of a table says."""

    is_known: bool  # the recorded version is in its history
    base: str  # to go on from
    runs: Mapping[int, Found] = field(default_factory=dict)  # of the batch that was asked for


@dataclass(frozen=True, slots=True)
class Taken:
    """A run of a batch that is in the table, for whoever looks at all of them."""

    identity: Identity
    found: Found
    after: str = ""  # the version before
    wrong: tuple[tuple[str, str], ...] = ()  # files of it that are not what its proof says: why


class Table(Protocol):
    """A target, for one holder.

    T1  A batch is in the table as a whole, with its identity, or not at all; a reader never sees a
        part of it.
    T2  An identity is taken once. Of several commits of it, with rows or empty, exactly one takes
        effect; the others are a Conflict and change nothing, however late they come.
    T3  look() shows every commit that was acknowledged before it.
    T4  A version that was recorded stays known while the table has it in its history, and only so
        long. The empty text is known to every table.
    T5  What was acknowledged, or was seen by look(), survives a power cut.
    T6  What was prepared and never committed is no part of the table. sweep() removes what holders
        before this one prepared; what is removed so cannot be committed any more.
    T7  Rows that are not those of the manifest are never committed.
    """

    def look(self, recorded: str, batch: str) -> Seen:
        """Raises Invalid (the place belongs to another table), Corrupt, Unavailable,
        OutcomeUnknown."""

    def apply(self, batch: Batch, identity: Identity, base: str) -> str:
        """The version with it. Raises Conflict (the identity is taken), JobFailed, Invalid,
        Unavailable (nothing was done), OutcomeUnknown."""

    def commit_empty(self, identity: Identity, base: str) -> str:
        """Takes the identity without rows. Raises Conflict, Unavailable, OutcomeUnknown."""

    def sweep(self) -> None:
        """Raises Unavailable, OutcomeUnknown."""


class Mover(Protocol):
    """Moves rows, and does not know what a table is."""

    def move(self, files: Sequence[BatchFile], folder: str, what: str) -> Mapping[str, int]:
        """All rows of these files, in few files in this folder (a URL), which is not there before;
        the names of those files, and how many rows each has, counted in what was written. `what` is
        for people. Raises JobFailed, Invalid, Unavailable (nothing that counts was done)."""
