"""Search: which commit of a shard read a position. By records alone, and few of them.

Where a source partition is after a commit never goes back: so the numbers are halved until one is
left.
"""

from collections.abc import Callable
from dataclasses import dataclass

from headgate.commits.record import Record
from headgate.errors import Corrupt

ReadRecord = Callable[[int], Record | None]
"""The published record of a number; None: there is none."""

END = 1 << 63  # behind every number: a source partition that is over


@dataclass(frozen=True, slots=True)
class Reading:
    """The commit that read it: `record`, from `first` to before `next`."""

    record: Record
    first: int
    next: int


def commit_that_read(
    read: ReadRecord, last: int, partition: str, number: int, is_end: Callable[[str], bool]
) -> Reading | None:
    """Of the commits up to `last`, which are concluded. `is_end`: a position that is no number, and
    behind all. None: nothing up to there has read it. Raises Corrupt, Unavailable."""
    search = _Search(read, partition, is_end)
    if last == 0 or search.position(last) <= number:
        return None
    low, high = 1, last  # it is behind `number` after `high`
    while low < high:
        middle = (low + high) // 2
        if search.position(middle) > number:
            high = middle
        else:
            low = middle + 1
    return search.reading(low, last)


class _Search:
    def __init__(self, read: ReadRecord, partition: str, is_end: Callable[[str], bool]) -> None:
        self._read = read
        self._partition = partition
        self._is_end = is_end

    def position(self, number: int) -> int:
        """After this commit."""
        for earlier in range(number, 0, -1):  # ends at once, where records tell all positions
            record = self._record(earlier)
            if record is None:
                continue
            span = record.ranges.get(self._partition)
            if span is not None:
                return self._number(span.next)
            if record.positions:
                return self._number(record.positions.get(self._partition, ""))
        return 0

    def reading(self, number: int, last: int) -> Reading:
        """A commit that was never finished is followed by one that read the same again."""
        record = self._record(number)
        for later in range(number + 1, last + 1):
            following = self._record(later)
            if following is not None and following.replaces != later - 1:
                break
            record = following
        span = None if record is None else record.ranges.get(self._partition)
        if record is None or span is None:
            raise Corrupt(
                f"commit {number}: its record does not tell of {self._partition}, and later ones "
                "do; next: headgate audit"
            )
        return Reading(record, self._number(span.first), self._number(span.next))

    def _record(self, number: int) -> Record | None:
        """None: it was replaced before its record was published. Raises Corrupt: it is lost."""
        found = self._read(number)
        if found is None:
            following = self._read(number + 1)
            if following is None or following.replaces != number:
                raise Corrupt(f"commit {number}: its record is gone; next: headgate audit")
        return found

    def _number(self, position: str) -> int:
        return END if self._is_end(position) else int(position or 0)
