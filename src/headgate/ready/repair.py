"""Repair: flags that a person or a cleaner deleted are raised again, from their certificates.

Depth first: the streams of an hour, the hour, and with its last hour the day. Which flags must be
there is told by the frontiers, not by what lies in folders; what is there is left as it is. It is
the root's holder that does it, through the journal, so that nothing is raised that is withdrawn
meanwhile.
"""

from collections.abc import Iterator
from itertools import islice

from headgate.commits.certificate import flag_paths, parent_flag_path
from headgate.commits.checkpoint import Wish
from headgate.commits.roots import Repair, RootDocument, place_of
from headgate.lake import Lake
from headgate.periods import Period, hours_between
from headgate.ready import RootSettings
from headgate.ready.archive import required, required_parent
from headgate.ready.propagation import raised_above

HOURS_MAX = 24  # that one pass looks at


def repair_of(first: Period, last: Period, wish: Wish) -> Repair:
    """From the first hour (or day) to the end of the last."""
    return Repair(first.start_ms, last.end_ms, wish)


def flagged_hours(document: RootDocument, repair: Repair) -> tuple[Period, ...]:
    """The next of them in which a flag can be: whoever asks for everything since 1970 waits for
    what there is."""
    from_ms, until_ms = span_of(document)
    whole = hours_between(max(repair.from_ms, from_ms), min(repair.until_ms, until_ms))
    return tuple(islice(whole, HOURS_MAX))


def span_of(document: RootDocument) -> tuple[int, int]:
    """From the first hour that may have a flag to the end of the last; empty: none has."""
    seats = document.streams.values()
    firsts = [seat.first_ms for seat in seats if seat.first_ms is not None]
    frontiers = [seat.frontier_ms for seat in seats if seat.frontier_ms is not None]
    return min(firsts, default=0), max(frontiers, default=0)


def missing_flags(
    lake: Lake, document: RootDocument, settings: RootSettings, hour: Period
) -> list[tuple[str, bytes]]:
    """Paths and bytes, children before parents. Raises Halted, Corrupt, Unavailable."""
    found: list[tuple[str, bytes]] = []
    for period, stream, paths in flags_of(document, settings, hour):
        gone = [path for path in paths if lake.facts(path) is None]
        if gone:
            if stream is None:
                raw = required_parent(lake, settings.name, period).raw
            else:
                raw = required(lake, period, stream).raw
            found += [(path, raw) for path in gone]
    return found


def flags_of(
    document: RootDocument, settings: RootSettings, hour: Period
) -> Iterator[tuple[Period, str | None, tuple[str, ...]]]:
    """Every flag that must be there by now, for this hour."""
    for stream in settings.streams:
        seat = document.streams.get(stream.name)
        if seat is None or seat.first_ms is None or seat.frontier_ms is None:
            continue
        is_flagged = seat.first_ms <= hour.start_ms and hour.end_ms <= seat.frontier_ms
        if is_flagged and place_of(hour, stream.name) not in document.reopened:
            yield hour, stream.name, flag_paths(stream.folder, hour, stream.name)
    for period in reversed(raised_above(document, hour)):
        is_last = period.kind == "hour" or period.end_ms == hour.end_ms
        flag = parent_flag_path(settings.folder, period)
        if is_last and flag is not None:
            yield period, None, (flag,)
