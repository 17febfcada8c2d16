"""Picking: which of the numbered files are read next. Pure."""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from headgate.sources.folder import Entry

PLAN_FILES_MAX = 2_000


class Candidate(NamedTuple):
    """A numbered file, or a row of numbers that are no longer known."""

    first: int
    number: int  # the last one
    entry: Entry
    arrival_ms: int
    columns: tuple[str, ...]
    is_lost: bool

    @property
    def has_records(self) -> bool:
        """An empty file has none: the range goes over it, as over a lost one."""
        return not self.is_lost and self.entry.size_bytes > 0


def pick(
    waiting: Mapping[str, Sequence[Candidate]], size_bytes_max: int
) -> dict[str, list[Candidate]]:
    """From each lane so many from the front that they are of one shape and no larger together than
    that; at least one file if any waits.

    The lane of which the least was taken is next, and of several the one whose file waits longest:
    none is starved by another.
    """
    picked: dict[str, list[Candidate]] = {}
    shape: tuple[str, ...] | None = None
    total_bytes = 0
    total_files = 0
    heap = [(0, files[0].arrival_ms, lane) for lane, files in waiting.items() if files]
    heapify(heap)
    while heap and total_files < PLAN_FILES_MAX:
        taken_bytes, _, lane = heappop(heap)
        files, mine = waiting[lane], picked.setdefault(lane, [])
        one = files[len(mine)]
        size_bytes = 0
        if one.has_records:
            size_bytes = one.entry.size_bytes
            is_other = shape is not None and one.columns != shape
            if is_other or (total_bytes > 0 and total_bytes + size_bytes > size_bytes_max):
                continue
            shape = one.columns
        mine.append(one)
        total_files += 1
        total_bytes += size_bytes
        if len(mine) < len(files):
            heappush(heap, (taken_bytes + size_bytes, files[len(mine)].arrival_ms, lane))
    return {lane: files for lane, files in picked.items() if files}
