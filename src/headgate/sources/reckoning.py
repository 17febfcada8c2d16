"""Reckoning: what was read is what was planned. Pure.

A file's rows are counted in what was staged, whatever became of each. They carry the numbers of
their lines: so many rows as the last line's number, from line 1 on, and none is missing or there
twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.engine import Tally
from headgate.errors import Corrupt
from headgate.sources import Plan

# An empty file of these formats has bytes: a footer, the frame of a compressed nothing.
_MAY_BE_EMPTY = ("parquet", "dead")


@dataclass(slots=True)
class _Count:
    rows: int = 0
    line_min: int = 0
    line_max: int = 0

    def add(self, tally: Tally) -> None:
        self.line_min = min(self.line_min, tally.line_min) if self.rows else tally.line_min
        self.line_max = max(self.line_max, tally.line_max)
        self.rows += tally.rows


def reconcile(plan: Plan, tallies: Sequence[Tally]) -> None:
    """Raises Corrupt, naming the file and what is wrong."""
    counts: dict[tuple[str, int], _Count] = {}
    for tally in tallies:
        if tally.rows > 0:
            counts.setdefault((tally.partition, tally.number), _Count()).add(tally)
    for file in plan.files:
        count = counts.pop((file.partition, file.number), _Count())
        where = f"{file.path} ({file.partition}, number {file.number})"
        may_be_empty = plan.format in _MAY_BE_EMPTY or file.path.endswith(".gz")
        if count.rows == 0 and may_be_empty:
            continue
        if count.rows == 0:
            raise _wrong(where, f"none of its {file.size_bytes:,} bytes became a row")
        if count.line_min != 1:
            raise _wrong(where, f"its first row is line {count.line_min:,}")
        if count.rows != count.line_max:
            less = "lost" if count.rows < count.line_max else "doubled"
            said = f"{count.rows:,} rows of {count.line_max:,} lines: some were {less}"
            raise _wrong(where, said)
    for partition, number in counts:
        raise _wrong(f"{partition}, number {number}", "rows of a file that was not planned")


def _wrong(where: str, said: str) -> Corrupt:
    return Corrupt(
        f"{where}: {said}. What was staged is not what was planned, and nothing of it is "
        "committed. Next: the range is read again; if it stays so, headgate status says where"
    )
