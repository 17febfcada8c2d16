"""How far tables are, from their documents."""

from headgate.apply.table_document import Halt, TableDocument, table_key
from headgate.backlog import Entry
from headgate.backlog.queue import entry_key, queue
from headgate.status.tables import read_tables
from headgate.store.codec import body_of
from headgate.testing.manual import ManualAmbient, manual_store


def entry(number: int) -> Entry:
    return Entry(f"2026-11-01T{number:02}", number, "orders", 1, "m", "h", 1, 10)


def test_a_table_that_nobody_has_worked_on_runs_and_has_nothing() -> None:
    (found,) = read_tables(manual_store(ManualAmbient()), ["orders"])

    assert (found.state, found.applied_up_to, found.batches, found.rows) == ("running", "", 0, 0)
    assert (found.waiting, found.notice, found.is_healthy) == (0, "", True)


def test_a_table_says_how_far_it_is_and_what_waits() -> None:
    store = manual_store(ManualAmbient())
    document = TableDocument(applied_up_to="2026-11-01T03", batches=4, rows=40)
    store.create(table_key("orders"), body_of(document))
    for number in (4, 5, 6):
        queue(store, "orders", entry(number))
    queue(store, "other", entry(1))

    (found,) = read_tables(store, ["orders"])

    assert (found.applied_up_to, found.batches, found.rows, found.waiting) == (
        *("2026-11-01T03", 4, 40),
        3,
    )


def test_a_halted_table_is_not_healthy_and_its_notice_has_the_commands() -> None:
    store = manual_store(ManualAmbient())
    halt = Halt("", "the disk is replaced", "ada", 1)
    store.create(table_key("orders"), body_of(TableDocument(state="halted", halt=halt)))
    queue(store, "orders", entry(1))

    orders, other = read_tables(store, ["orders", "other"])

    assert (orders.state, orders.is_healthy) == ("halted", False)
    assert "the disk is replaced" in orders.notice
    assert "1 batch waits" in orders.notice
    assert "headgate table resume orders --reason" in orders.notice
    assert other.is_healthy


def test_g5_a_damaged_document_or_backlog_is_told_and_the_other_tables_are_shown() -> None:
    store = manual_store(ManualAmbient())
    store.create(table_key("a"), {"format": 9})
    store.create(entry_key("b", "2026-11-01T00"), {"format": 9})

    found = read_tables(store, ["a", "b", "c"])

    assert [one.state for one in found] == ["damaged", "damaged", "running"]
    assert all(one.notice.startswith("damaged: ") for one in found[:2])
