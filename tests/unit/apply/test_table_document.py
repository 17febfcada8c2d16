"""What a table's document may become, and what it never does."""

from dataclasses import replace

import pytest

from headgate.apply import TRIES_MAX
from headgate.apply.table_document import (
    PASSED_MAX,
    SYSTEM,
    Halt,
    Passed,
    TableDocument,
    TableTenure,
    applied,
    begun,
    begun_again,
    failed,
    halted,
    halting,
    is_done,
    passed_by,
    queued,
    set_going,
    table_key,
    taken_over,
)
from headgate.backlog import Entry
from headgate.errors import Conflict, Corrupt, Fenced
from headgate.store.codec import body_of
from headgate.testing.manual import ManualAmbient, manual_store


def entry(batch: str = "2026-11-01T13", number: int = 0) -> Entry:
    return Entry(batch, number, "orders", 1, "m", "sha256:m", 1, 10)


CURRENT = begun(TableDocument(), entry(), "v1")
BY_ANN = Halt("", "maintenance", "ann", 5)


def test_a_batch_is_begun_with_a_new_run_and_the_version_before() -> None:
    assert CURRENT.current is not None
    assert (CURRENT.current.run, CURRENT.current.attempt, CURRENT.current.version) == (1, 1, "v1")
    again = begun_again(CURRENT)
    assert again.current == replace(CURRENT.current, attempt=2)
    after = begun(applied(again, "v2", 10), entry("2026-11-01T14", 1), "v2")
    assert after.run == 2


def test_inv9_a_second_batch_is_never_begun_beside_the_current_one() -> None:
    for found in (CURRENT, TableDocument(state="halting"), TableDocument(state="halted")):
        with pytest.raises(Corrupt, match="invariant 9"):
            begun(found, entry("2026-11-01T14", 1), "v1")


def test_inv8_nothing_is_begun_or_passed_behind_what_is_applied() -> None:
    found = applied(CURRENT, "v2", 10)
    with pytest.raises(Corrupt, match="invariant 8"):
        begun(found, entry("2026-11-01T12", 1), "v2")
    with pytest.raises(Corrupt, match="invariant 8"):
        passed_by(found, entry("2026-11-01T12", 1), Passed("x", "skipped", "r", "ann", 1))


def test_b2_what_is_applied_is_the_current_batch_and_no_other() -> None:
    found = applied(CURRENT, "v2", 10)
    assert (found.applied_up_to, found.version, found.current) == ("2026-11-01T13", "v2", None)
    assert (found.batches, found.rows) == (1, 10)
    assert is_done(found, 0)
    assert not is_done(found, 1)
    with pytest.raises(Corrupt, match="no current batch"):
        applied(found, "v3", 10)


def test_bf8_a_batch_that_failed_three_times_is_halting_and_not_yet_halted() -> None:
    found = CURRENT
    for tries in range(1, TRIES_MAX + 1):
        assert found.state == "running"
        found = failed(found, f"try {tries}", TRIES_MAX, 5)
    assert (found.state, found.tries, found.trouble) == ("halting", 3, "try 3")
    assert found.halt == Halt("2026-11-01T13", "try 3", SYSTEM, 5)
    assert halted(found).state == "halted"
    with pytest.raises(Corrupt, match="was not halting"):
        halted(CURRENT)


def test_rows_that_turn_out_to_be_there_set_a_failed_table_going_and_not_a_persons() -> None:
    by_failure = halting(CURRENT, Halt("2026-11-01T13", "it failed", SYSTEM, 5))
    assert applied(by_failure, "v2", 10).state == "running"
    assert applied(by_failure, "v2", 10).halt is None
    by_person = applied(halting(CURRENT, BY_ANN), "v2", 10)
    assert (by_person.state, by_person.halt) == ("halted", BY_ANN)


def test_the_first_reason_to_halt_stays() -> None:
    found = halting(TableDocument(), BY_ANN)
    assert halting(found, Halt("", "other", "bob", 6)) == found


def test_going_on_is_by_a_new_run() -> None:
    found = set_going(halted(halting(CURRENT, BY_ANN)))
    assert (found.state, found.current, found.version) == ("running", None, "v1")
    next_run = begun(found, entry(), "v1").current
    assert next_run is not None
    assert next_run.run == 2
    assert set_going(CURRENT, forgets_version=True).version == ""


def test_passed_batches_are_on_record_and_their_number_is_bounded() -> None:
    found = TableDocument()
    for number in range(PASSED_MAX + 5):
        batch = f"{number:05}"
        found = passed_by(
            found, entry(batch, number), Passed(batch, "skipped", "bad", "ann", number)
        )
    assert found.applied_up_to == f"{PASSED_MAX + 4:05}"
    assert len(found.passed) == PASSED_MAX
    assert found.passed[-1].batch == found.applied_up_to
    assert found.done == ((0, PASSED_MAX + 5),)


def test_the_backlog_grows_in_order_and_without_holes() -> None:
    found = queued(TableDocument(), entry("2026-11-01T13", 0))
    assert (found.queued, found.queued_up_to) == (1, "2026-11-01T13")
    for wrong in (entry("2026-11-01T14", 0), entry("2026-11-01T13", 1)):
        with pytest.raises(Corrupt, match="out of order"):
            queued(found, wrong)


def test_inv3_an_older_epoch_never_takes_over() -> None:
    found = taken_over("t", TableDocument(), 5, "orders")
    assert (found.epoch, found.turn) == (5, 1)
    with pytest.raises(Fenced):
        taken_over("t", found, 4, "orders")


def test_b10_every_write_of_a_holder_has_a_version() -> None:
    store = manual_store(ManualAmbient())
    first, second = TableTenure(store, "t", 1, "s"), TableTenure(store, "t", 2, "s")
    first.take_over()
    assert first.is_held()
    second.take_over()
    assert not first.is_held()
    with pytest.raises(Conflict):
        first.write(lambda found: replace(found, rows=1))
    with pytest.raises(Conflict, match="not known"):
        first.write(lambda found: replace(found, rows=1))
    with pytest.raises(Fenced):
        first.take_over()
    kept = store.get(table_key("t"))
    assert kept is not None
    assert dict(kept.body) == body_of(second.document)
