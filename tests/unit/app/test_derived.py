"""How far a table is, by its own proofs and the ledger; how far a stream with outputs is closed."""

import pytest

from headgate.app.derived import Certified, closed_by, table_document
from headgate.apply import TableSettings
from headgate.apply.table_document import TableDocument
from headgate.errors import Halted
from headgate.lake.ledger import Line
from headgate.periods import DEFAULT_FOLDER, HOUR_MS, FolderTemplate, Period
from headgate.tables import Found, Identity, Taken

TABLE = TableSettings("daily", "orders", FolderTemplate.parse(DEFAULT_FOLDER), "/srv/daily")
FIRST = Period.parse("2026-11-01T10")


def name(number: int) -> str:
    return str(Period(FIRST.start_ms + number * HOUR_MS, "hour"))


def rows(number: int, run: int, count: int = 5) -> Taken:
    identity = Identity(name(number), run)
    version = f"id/headgate_batch={name(number)}/headgate_run={run}"
    return Taken(identity, Found("rows", version, "m", count))


def closed(number: int, run: int) -> Taken:
    return Taken(Identity(name(number), run), Found("empty", "id/…"))


def act(what: str, number: int | None = None) -> Line:
    subject = "daily" if number is None else f"daily {name(number)}"
    return Line("1", 7, "here", "ann", what, subject, "why", {})


def made(taken: list[Taken], *acts: Line) -> TableDocument:
    found = table_document(TABLE, "id", taken, FIRST.start_ms, acts)
    assert found is not None
    return found


def test_it_goes_on_behind_the_last_batch_that_entered() -> None:
    found = made([rows(0, 1), rows(1, 2, 3)])
    assert (found.applied_up_to, found.queued_up_to, found.queued) == (name(1), name(1), 2)
    assert (found.run, found.batches, found.rows, found.done) == (2, 2, 8, ((0, 2),))
    assert found.version == f"id/headgate_batch={name(1)}/headgate_run=2"
    assert (found.stream, found.state) == ("orders", "running")


def test_b2_a_batch_that_was_passed_on_record_is_not_applied_again() -> None:
    found = made([rows(0, 1), closed(1, 2)], act("table.skip", 1))
    assert (found.applied_up_to, found.run) == (name(1), 2)
    assert [(one.batch, one.how) for one in found.passed] == [(name(1), "skipped")]
    marked = made([rows(0, 1)], act("table.mark_applied", 1))
    assert marked.applied_up_to == name(1)
    assert marked.passed[0].how == "marked applied"


def test_a_run_that_was_closed_is_followed_by_another_of_the_same_batch() -> None:
    found = made([rows(0, 1), closed(1, 2)])
    assert (found.applied_up_to, found.run, found.state) == (name(0), 2, "running")


def test_inv9_what_a_person_halted_stays_so_until_a_person_sets_it_going() -> None:
    assert made([rows(0, 1)], act("table.halt")).state == "halting"
    assert made([rows(0, 1)], act("table.halt"), act("table.resume")).state == "running"
    assert made([], act("table.halt")).state == "halting"


def test_a_table_that_has_taken_nothing_needs_no_document() -> None:
    assert table_document(TABLE, "id", [], FIRST.start_ms, ()) is None


def test_a_damaged_proof_or_an_unknown_first_hour_is_refused() -> None:
    damaged = Taken(Identity(name(0), 1), Found("damaged", "id/…"))
    with pytest.raises(Halted, match="is damaged"):
        made([damaged])
    with pytest.raises(Halted, match="has no certificate"):
        table_document(TABLE, "id", [rows(0, 1)], None, ())


# Outputs


@pytest.mark.parametrize(
    ("ends", "over_all", "expected"),
    [
        ([5], None, (5, 5)),
        ([5, 3], 3, (5, 3)),  # the checkpoints forget what both have
        ([None], None, (None, None)),
        ([None, None], 2, (None, None)),
        ([5, None], None, (5, 0)),  # one is held back since the first hour
        ([5, None], 4, (5, 4)),  # one came later: it begins where the flags over all streams end
    ],
)
def test_hours_are_closed_for_some_outputs_before_they_are_for_all(
    ends: list[int | None], over_all: int | None, expected: tuple[int | None, int | None]
) -> None:
    faces = [None if end is None else Certified(0, end * HOUR_MS, {}, ()) for end in ends]
    found = closed_by(faces, 0, None if over_all is None else over_all * HOUR_MS)
    assert found == tuple(None if one is None else one * HOUR_MS for one in expected)
