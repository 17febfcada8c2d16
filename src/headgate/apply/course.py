"""Course: what to do about a batch, from what the document and the table say. Pure.

"Not found" counts as not applied only while the version that was recorded before the run is in the
table's history: a table that was restored from an old copy, or is not mounted, has lost more than
the marker. A batch that is in the table under another run is never applied beside it.
"""

from dataclasses import dataclass
from typing import Literal

from headgate.apply import ATTEMPTS_MAX
from headgate.apply.table_document import Current, TableDocument, is_done
from headgate.backlog import Entry
from headgate.tables import Found, Seen

Place = Literal["done", "early", "next"]
"""Of the head of the backlog: it is in the table already, and its entry came back or was left over;
it sorts before a batch that is done; it is the next one."""


@dataclass(frozen=True, slots=True)
class IsIn:
    """The current batch is in the table."""

    found: Found


@dataclass(frozen=True, slots=True)
class ApplyIt:
    """Nothing of it is in the table."""

    base: str


@dataclass(frozen=True, slots=True)
class HaltAt:
    """A person must decide."""

    words: str


Course = IsIn | ApplyIt | HaltAt


def place_of(document: TableDocument, entry: Entry) -> Place:
    if is_done(document, entry.number):
        return "done"
    return "early" if entry.batch <= document.applied_up_to else "next"


def course_of_current(current: Current, seen: Seen) -> Course:
    """Of a run that somebody began, and of which nobody knows how it ended."""
    own = seen.runs.get(current.run)
    if own is not None and own.kind == "rows":
        if own.manifest == current.entry.manifest_hash:
            return IsIn(own)
        return HaltAt("the table has another batch under this run: two installations write to it")
    if own is not None and own.kind == "damaged":
        return HaltAt(f"the proof of this batch in the table cannot be read: {own.version}")
    if own is not None:
        return HaltAt("this run was committed as an empty batch, and nobody here halted the table")
    if current.attempt >= ATTEMPTS_MAX:
        return HaltAt(
            f"{current.attempt} attempts began, and none came to an end: a node dies by it"
        )
    return course_of_next(current.entry.batch, seen)


def course_of_next(batch: str, seen: Seen) -> Course:
    """Of a batch of which no run is under way."""
    for run, found in sorted(seen.runs.items()):
        if found.kind != "empty":
            return HaltAt(f"batch {batch} is in the table already, under run {run}: {found.kind}")
    if not seen.is_known:
        return HaltAt(
            "the version that was recorded is not in the table's history any more: it was "
            "deleted, restored from an old copy, or is not mounted; nobody can tell from it "
            "whether this batch was applied"
        )
    return ApplyIt(seen.base)
