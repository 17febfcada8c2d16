"""Holes: offsets without a record. Pure.

A transaction ends in a marker that is no record, what was aborted is nobody's, and compaction takes
records away: fewer records than offsets are no loss by themselves. So what was staged is counted in
buckets of offsets, and where something is missing, the cluster is asked how many records a reader
sees in that bucket: another client counts them, which knows nothing of what was staged.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headgate.engine import OFFSETS_TALLIED, InputSpan, Tally
from headgate.errors import Corrupt


@dataclass(frozen=True, slots=True)
class Bucket:
    """Offsets of one span, as many as are tallied together."""

    span: InputSpan
    first: int
    next: int
    rows: int

    @property
    def missing(self) -> int:
        return self.next - self.first - self.rows


def buckets_with_holes(spans: Sequence[InputSpan], tallies: Iterable[Tally]) -> list[Bucket]:
    """Raises Corrupt: rows that were not planned, or more than there are offsets."""
    by_name = {span.partition: span for span in spans}
    rows: dict[tuple[str, int], int] = {}
    for tally in tallies:
        span = by_name.get(tally.partition)
        where = f"{tally.partition}, offsets {tally.line_min:,} to {tally.line_max:,}"
        if span is None or tally.line_min < span.first or tally.line_max >= span.next:
            raise _wrong(where, "rows that were not planned")
        one = (tally.partition, tally.number)
        rows[one] = rows.get(one, 0) + tally.rows
    found = []
    for span in spans:
        for start in range(_start(span.first), span.next, OFFSETS_TALLIED):
            first, following = max(start, span.first), min(start + OFFSETS_TALLIED, span.next)
            bucket = Bucket(span, first, following, rows.get((span.partition, start), 0))
            if bucket.missing < 0:
                words = f"{bucket.rows:,} rows of {following - first:,} offsets: some are doubled"
                raise _wrong(f"{span.partition}, offsets {first:,} to {following - 1:,}", words)
            if bucket.missing:
                found.append(bucket)
    return found


def check_bucket(bucket: Bucket, seen: int) -> None:
    """`seen`: what another reader counts there. Raises Corrupt."""
    if seen != bucket.rows:
        where = f"{bucket.span.partition}, offsets {bucket.first:,} to {bucket.next - 1:,}"
        raise _wrong(where, f"{bucket.rows:,} rows were staged, and {seen:,} records are there")


def _start(offset: int) -> int:
    return offset - offset % OFFSETS_TALLIED


def _wrong(where: str, said: str) -> Corrupt:
    return Corrupt(
        f"{where}: {said}. What was staged is not what was planned, and nothing of it is "
        "committed. Next: the range is read again; if it stays so, headgate status says where"
    )
