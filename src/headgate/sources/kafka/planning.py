"""Planning: how much of each source partition is read next. Values in, values out.

What may soon expire at the source is read first. Of the rest each gets the same share, and what one
does not need goes to the others: a hot one does not starve a quiet one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

RISK_MS = 3_600_000  # what expires so soon goes before everything else
BYTES_GUESSED = 500  # of a record, while nobody has looked at any


@dataclass(frozen=True, slots=True)
class Log:
    """A source partition as of one look."""

    first: int  # what is read next; behind what is gone
    high: int
    end: int  # so far it may be read now
    expires_ms: int | None = None  # when the next record to read will be gone; None: nobody knows
    record_bytes: int = BYTES_GUESSED

    @property
    def waiting(self) -> int:
        return self.end - self.first

    @property
    def is_proof(self) -> bool:
        """Whoever has read to its end has read all that was there: no transaction is open."""
        return self.end >= self.high


def shares(
    logs: Mapping[str, Log], *, records_max: int, size_bytes_max: int, now_ms: int, turn: int = 0
) -> dict[str, int]:
    """How many offsets of each; none of those that get nothing. At least one if anything waits.
    `turn`: counted up from plan to plan; where there is not one for each, another is first."""
    waiting = {name: log for name, log in logs.items() if log.waiting > 0}
    left = Room(max(1, records_max), max(1, size_bytes_max))
    found: dict[str, int] = {}
    soonest = sorted(
        (log.expires_ms, name)
        for name, log in waiting.items()
        if log.expires_ms is not None and log.expires_ms < now_ms + RISK_MS
    )
    for _, name in soonest:
        found[name] = left.take(waiting[name].waiting, waiting[name].record_bytes)
    rest = sorted(name for name in waiting if name not in found)
    first = turn % max(1, len(rest))
    for name in rest[first:] + rest[:first]:  # one of each, as far as it goes
        found[name] = left.take(1, waiting[name].record_bytes)
    rest.sort(key=lambda name: waiting[name].waiting)  # what the smallest leave is for the others
    for n, name in enumerate(rest):
        fair = left.share(len(rest) - n, waiting[name].record_bytes)
        wanted = min(waiting[name].waiting - found[name], fair)
        found[name] += left.take(wanted, waiting[name].record_bytes)
    return {name: taken for name, taken in found.items() if taken > 0}


@dataclass(slots=True)
class Room:
    """What is left of a round."""

    records: int
    size_bytes: int

    def share(self, among: int, record_bytes: int) -> int:
        return min(self.records // among, self.size_bytes // (among * record_bytes))

    def take(self, wanted: int, record_bytes: int) -> int:
        if self.records <= 0 or self.size_bytes <= 0:
            return 0
        taken = min(wanted, self.records, max(1, self.size_bytes // record_bytes))
        self.records -= taken
        self.size_bytes -= taken * record_bytes
        return taken
