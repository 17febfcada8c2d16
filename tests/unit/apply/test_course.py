"""What to do about a batch: every answer of the table against every state of its run."""

import pytest

from headgate.apply import ATTEMPTS_MAX
from headgate.apply.course import (
    ApplyIt,
    HaltAt,
    IsIn,
    course_of_current,
    course_of_next,
    place_of,
)
from headgate.apply.table_document import Current, TableDocument
from headgate.backlog import Entry
from headgate.tables import Found, FoundAs, Seen

ENTRY = Entry("2026-11-01T13", 7, "orders", 1, "m", "sha256:m", 1, 10)


def current(attempt: int = 1) -> Current:
    return Current(ENTRY, 42, attempt, "v1")


def seen(*, is_known: bool = True, **runs: FoundAs) -> Seen:
    return Seen(
        is_known,
        "v1",
        {int(run[1:]): Found(kind, "v2", "sha256:m", 10) for run, kind in runs.items()},
    )


def test_rows_of_this_run_are_the_batch_applied() -> None:
    assert course_of_current(current(), seen(r42="rows")) == IsIn(
        Found("rows", "v2", "sha256:m", 10)
    )
    assert isinstance(course_of_current(current(), seen(r42="rows", is_known=False)), IsIn)


def test_b4_not_found_means_not_applied_only_while_the_recorded_version_is_known() -> None:
    assert course_of_current(current(), seen()) == ApplyIt("v1")
    assert course_of_next(ENTRY.batch, seen()) == ApplyIt("v1")
    for course in (
        course_of_current(current(), seen(is_known=False)),
        course_of_next(ENTRY.batch, seen(is_known=False)),
    ):
        assert isinstance(course, HaltAt)
        assert "history" in course.words


def test_rows_of_another_manifest_under_this_run_halt() -> None:
    found = Seen(True, "v1", {42: Found("rows", "v2", "sha256:other", 10)})
    course = course_of_current(current(), found)
    assert isinstance(course, HaltAt)
    assert "two installations" in course.words


@pytest.mark.parametrize(("kind", "words"), [("empty", "empty batch"), ("damaged", "be read")])
def test_a_run_that_is_closed_or_damaged_is_not_applied(kind: FoundAs, words: str) -> None:
    course = course_of_current(current(), seen(r42=kind))
    assert isinstance(course, HaltAt)
    assert words in course.words


@pytest.mark.parametrize("kind", ["rows", "damaged"])
def test_a_batch_that_another_run_brought_in_is_not_applied_beside_it(kind: FoundAs) -> None:
    for course in (
        course_of_current(current(), seen(r41=kind)),
        course_of_next(ENTRY.batch, seen(r41=kind)),
    ):
        assert isinstance(course, HaltAt)
        assert "under run 41" in course.words


def test_an_earlier_run_that_was_closed_is_no_hindrance() -> None:
    assert course_of_current(current(), seen(r41="empty")) == ApplyIt("v1")


def test_attempts_that_nobody_ends_have_an_end() -> None:
    assert isinstance(course_of_current(current(ATTEMPTS_MAX - 1), seen()), ApplyIt)
    assert isinstance(course_of_current(current(ATTEMPTS_MAX), seen()), HaltAt)
    assert isinstance(course_of_current(current(ATTEMPTS_MAX), seen(r42="rows")), IsIn)


def test_b1_b2_the_place_of_an_entry_is_by_its_number_and_then_by_its_name() -> None:
    document = TableDocument(applied_up_to="2026-11-01T13", done=((0, 8),))
    assert place_of(document, ENTRY) == "done"
    early = Entry("2026-11-01T13", 9, "orders", 2, "m", "h", 1, 1)
    assert place_of(document, early) == "early"
    later = Entry("2026-11-01T14", 8, "orders", 1, "m", "h", 1, 1)
    assert place_of(document, later) == "next"
