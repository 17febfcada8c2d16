"""Removed: files that are gone on purpose: by a statement in the lake, of an hour that expired or
was erased.

What a statement names may be gone from the moment it is published, and must be gone once the root's
document says so. Nothing lands it again: a file that is back is a finding. Certificate and flag of
such an hour stay, and are judged as those of any other.
"""

from collections.abc import Iterable, Iterator

from headgate.audit import Finding
from headgate.audit.advice import look_again, restore
from headgate.audit.sums import Sum
from headgate.commits.removals import Statement, mark_path, removed_hours, statements_of
from headgate.errors import Corrupt
from headgate.lake import Lake
from headgate.lake.paths import folder_of

TOLD_MAX = 20  # files of one hour


def statements_in(lake: Lake, stream: str) -> Iterator[Statement | Finding]:
    """All of a stream; of one that cannot be read, the finding. Raises Unavailable."""
    for period in removed_hours(lake, stream):
        try:
            yield from statements_of(lake, stream, period)
        except Corrupt as error:
            meaning = "nobody can say which files went on purpose, and which are lost"
            yield Finding(
                None, stream, None, f"{stream} {period}", str(error), meaning, restore("it", stream)
            )


def add_removal(sums: dict[str, Sum], statement: Statement) -> None:
    """After all records: what came late is not expected any more. Files on time are judged by the
    certificate of their hour."""
    for file in statement.late:
        sums.setdefault(folder_of(file.path), Sum()).take(file.path, file.size_bytes)


def removed_paths(lake: Lake, stream: str, periods: Iterable[str]) -> set[str]:
    """Everything that statements of these hours name. Raises Unavailable."""
    found: set[str] = set()
    for period in periods:
        try:
            every = statements_of(lake, stream, period)
        except Corrupt:
            continue  # a finding of its own
        found.update(file.path for one in every for file in one.every)
    return found


def judged_removal(
    lake: Lake, stream: str, period: str, flags: Iterable[str], *, is_finished: bool
) -> Iterator[Finding]:
    """Of an hour that is removed; of one that is being removed nothing is wrong. Raises
    Unavailable."""
    try:
        every = statements_of(lake, stream, period)
    except Corrupt:
        return  # a finding of its own
    subject = f"{stream} {period}"
    if not every:
        words = "its files are gone on purpose by the store, and no statement in the lake says so"
        meaning = "readers of the lake cannot tell it from a loss"
        yield Finding(6, stream, None, subject, words, meaning, restore("it", stream))
    if not is_finished:
        return
    back = [file.path for one in every for file in one.every if lake.facts(file.path) is not None]
    for path in back[:TOLD_MAX]:
        words = f"was {every[0].how} on purpose by {every[0].who}, and is there again"
        meaning = "somebody put it back: what was to be gone can be read"
        next_ = f"move it away; then {look_again(stream)}"
        yield Finding(6, stream, None, path, words, meaning, next_)
    for how in dict.fromkeys(one.how for one in every):
        gone = [mark for flag in flags if lake.facts(mark := mark_path(flag, how)) is None]
        for mark in gone:
            words = f"the mark is gone, and its hour was {how} on purpose"
            meaning = "who reads the folder takes the flag for files that are there"
            yield Finding(6, stream, None, mark, words, meaning, restore("it", stream))
