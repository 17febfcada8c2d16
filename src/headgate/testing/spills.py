"""Spills: known bugs of apply, one switch each: ways in which a table gets a batch twice, never, or
out of order.

Each takes the place of one small decision in `headgate.apply`.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from headgate.apply import course, work
from headgate.apply.course import Course, HaltAt, IsIn
from headgate.apply.table_document import Current, halted
from headgate.backlog.queue import head, remove
from headgate.store import DocumentStore
from headgate.tables import Seen
from headgate.testing.switches import Bug, Patch, switched_on


def planted_spill(bug: str) -> AbstractContextManager[None]:
    """While open, the code has that bug."""
    return switched_on(SPILLS[bug])


def _first_entry_removed() -> Sequence[Patch]:
    def remove_first(store: DocumentStore, table: str, _batch: str, _number: int) -> bool:
        kept = head(store, table)
        return kept is not None and remove(store, table, kept.value.batch, kept.value.number)

    return [(work, "remove", remove_first)]


def _not_found_counts_as_failed() -> Sequence[Patch]:
    honest = course.course_of_current

    def course_of_current(current: Current, seen: Seen) -> Course:
        found = honest(current, seen)
        return found if isinstance(found, IsIn) else HaltAt("the run was not found")

    return [(work, "course_of_current", course_of_current)]


def _not_found_is_always_believed() -> Sequence[Patch]:
    honest = course.course_of_next

    def course_of_next(batch: str, seen: Seen) -> Course:
        return honest(batch, replace(seen, is_known=True))

    return [(course, "course_of_next", course_of_next), (work, "course_of_next", course_of_next)]


def _entry_removed_before_the_commit() -> Sequence[Patch]:
    honest = work.TableWork._apply  # noqa: SLF001 - a switch is inside

    def apply(self: Any, current: Current) -> None:
        remove(self._store, self._settings.name, current.entry.batch, current.entry.number)
        honest(self, current)

    return [(work.TableWork, "_apply", apply)]


def _earlier_arrival_overtakes() -> Sequence[Patch]:
    honest = work.TableWork._recover  # noqa: SLF001

    def recover(self: Any, current: Current) -> None:
        kept = head(self._store, self._settings.name)
        if kept is None or kept.value == current.entry:
            honest(self, current)
            return
        self._tenure.write(lambda found: replace(found, current=None))
        self._take(kept.value)

    return [(work.TableWork, "_recover", recover)]


def _halted_before_the_run_is_closed() -> Sequence[Patch]:
    def close(self: Any, _current: Current | None) -> None:
        self._tenure.write(halted)

    return [(work.TableWork, "_close", close)]


SPILLS: Mapping[str, Bug] = {
    "first entry removed": _first_entry_removed,
    "not found counts as failed": _not_found_counts_as_failed,
    "not found is always believed": _not_found_is_always_believed,
    "entry removed before the commit": _entry_removed_before_the_commit,
    "earlier arrival overtakes": _earlier_arrival_overtakes,
    "halted before the run is closed": _halted_before_the_run_is_closed,
}
