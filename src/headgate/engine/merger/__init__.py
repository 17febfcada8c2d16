"""The merger: rewrites the rows of several files into one. In earnest that is Spark.

It does not know what an hour or a commit is, and removes nothing. Values only: the crash matrix and
the simulation have another one behind the same protocol.
"""

from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class MergeJob:
    folder: str  # of its own, below the root of the lake
    format: Literal["parquet", "lines", "packed"]  # lines: of json or text, kept; packed: gzipped
    groups: tuple[tuple[str, ...], ...]  # paths below the root of the lake
    what: str  # for people


@dataclass(frozen=True, slots=True)
class Merged:
    """What became of one group."""

    path: str  # below the root of the lake
    rows: int


class Merger(Protocol):
    """Safe to be called from several threads; each job has a folder of its own.

    M1  Every row of a group's files is in the one file that becomes of them, once, or the job
        fails.
    M2  Rows are counted in what was written, after the write.
    M3  Nothing outside the job's folder is touched.
    """

    def merge(self, job: MergeJob) -> tuple[Merged, ...]:
        """In the order of the groups. Raises JobFailed, Invalid, Unavailable (nothing that counts
        was done)."""
