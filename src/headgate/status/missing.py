"""Missing: what a source no longer had when it was to be read, in words. Values, read-only.

A gap is on record as soon as it is found: in its commit, in the ledger, in the certificates of the
hours that it may concern. Nobody has to accept it there, and nothing waits for it; so whoever looks
is told of it for some days, and finds it in history for ever.
"""

from contextlib import suppress
from dataclasses import dataclass

from headgate.commits.certificate import Certificate, flag_paths, from_bytes
from headgate.commits.checkpoint import Checkpoint
from headgate.commits.record import Record
from headgate.commits.replay import read_record
from headgate.errors import Corrupt, Unavailable
from headgate.lake import Lake
from headgate.landing import StreamSettings
from headgate.periods import Period

TOLD_MS = 7 * 86_400_000  # since it was found: later its number among the gaps is enough


@dataclass(frozen=True, slots=True)
class Missing:
    """The gaps of a shard's last commit that had any."""

    number: int  # of the commit
    at_ms: int  # its wall time
    gaps: int  # in it; 0: its record cannot be read now
    words: str  # of the first
    since: str  # hours to which what is missing may have belonged, first and last; "": not known
    until: str

    def concerns(self, hour: Period) -> bool:
        return bool(self.since) and self.since <= str(hour) <= self.until


def read_missing(
    lake: Lake | None, stream: str, shard: int, checkpoint: Checkpoint | None, at_ms: int
) -> Missing | None:
    """None: nothing is, or it was found long ago. `lake`: None: it is not there."""
    last = None if checkpoint is None else checkpoint.last_gap
    if last is None or at_ms - last.at_ms > TOLD_MS:
        return None
    record: Record | None = None
    if lake is not None:
        with suppress(Unavailable, Corrupt):  # the audit names it
            record = read_record(lake, stream, shard, last.number)
    return missing_in(record, last.number, last.at_ms)


def missing_in(record: Record | None, number: int, at_ms: int) -> Missing:
    gaps = () if record is None else record.gaps
    if not gaps:
        return Missing(number, at_ms, 0, "something was gone before it was read", "", "")
    return Missing(
        number,
        at_ms,
        len(gaps),
        gaps[0].reason,
        min(gap.since for gap in gaps),
        max(gap.until for gap in gaps),
    )


def certified(lake: Lake, settings: StreamSettings, hour: Period) -> Certificate | None:
    """What the flag of an hour says; None: it is not there. Raises Corrupt, Unavailable."""
    flag = flag_paths(settings.folder, hour, settings.name)[-1]
    raw = lake.read(flag)
    return None if raw is None else from_bytes(raw, flag)


def others(gaps: int) -> str:
    return f", and {gaps - 1:,} more" if gaps > 1 else ""
