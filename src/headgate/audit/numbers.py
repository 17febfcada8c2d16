"""Numbers: the commit records of a shard in the order of their numbers, one at a time.

Whether a commit was replaced stands in the record behind it, always: only the last commit that was
journaled can be replaced, by the next number. So one record of foresight is enough.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from headgate.commits.checkpoint import Checkpoint
from headgate.commits.record import Record, record_folder
from headgate.commits.replay import read_record
from headgate.errors import Corrupt
from headgate.lake import Entry, Lake
from headgate.lake.pages import entries_of

RECORD_NAME = re.compile(r"([0-9]{10,20})\.json")


@dataclass(frozen=True, slots=True)
class Present:
    record: Record


@dataclass(frozen=True, slots=True)
class Replaced:
    """Journaled and never finished: its files are gone, its range is in the commit behind it."""

    record: Record


@dataclass(frozen=True, slots=True)
class Missing:
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    number: int
    words: str


Item = Present | Replaced | Missing | Unreadable


def last_concluded(checkpoint: Checkpoint) -> int:
    return checkpoint.number if checkpoint.journal is None else checkpoint.journal.number - 1


def number_of(entry: Entry) -> int | None:
    """Of the commit whose record this is; None: it is none."""
    found = RECORD_NAME.fullmatch(entry.path.rpartition("/")[2])
    return None if found is None or entry.is_folder else int(found[1])


def history(lake: Lake, stream: str, shard: int, checkpoint: Checkpoint) -> Iterator[Item]:
    """Of all commits that this checkpoint says are concluded. Raises Unavailable."""
    last = last_concluded(checkpoint)
    before: Present | Unreadable | None = None
    expected = 1
    for entry in entries_of(lake, record_folder(stream, shard)):
        number = number_of(entry)
        if number is None or number < expected:
            continue
        if number > last:
            break
        found = _item(lake, stream, shard, number)
        replaced = found.record.replaces if isinstance(found, Present) else None
        yield from _told(before, expected, number - 1, replaced)
        before, expected = found, number + 1
    replaced = None if checkpoint.journal is None else checkpoint.journal.replaces
    yield from _told(before, expected, last, replaced)


def _item(lake: Lake, stream: str, shard: int, number: int) -> Present | Unreadable:
    try:
        record = read_record(lake, stream, shard, number)
    except Corrupt as error:
        return Unreadable(number, str(error))
    # It was listed: whoever removed it since made a hole.
    return Unreadable(number, "it was there, and is gone") if record is None else Present(record)


def _told(
    before: Present | Unreadable | None, expected: int, last: int, replaced: int | None
) -> Iterator[Item]:
    """The record before, now that it is known whether it was replaced; then the hole behind it."""
    if isinstance(before, Present) and replaced == before.record.number:
        yield Replaced(before.record)
    elif before is not None:
        yield before
    if replaced == last:
        last -= 1  # its record was lost before it was published: that is why it was replaced
    if expected <= last:
        yield Missing(expected, last)
