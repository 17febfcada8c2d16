"""What a person reads of a table that stands still."""

from dataclasses import replace

from headgate.apply.notice import notice
from headgate.apply.table_document import (
    SYSTEM,
    Halt,
    TableDocument,
    begun,
    failed,
    halted,
    halting,
)
from headgate.backlog import Entry

ENTRY = Entry("2026-11-01T13", 0, "orders", 1, "m", "sha256:m", 1, 10)


def test_bf8_a_halted_table_says_what_happened_what_it_means_and_the_commands() -> None:
    document = begun(TableDocument(run=41), ENTRY, "v1")
    for _ in range(3):
        document = failed(document, 'column "price" is not a decimal', 3, 5)
    assert notice("orders_daily", halted(document), 5) == "\n".join(
        [
            "halted: orders_daily stopped at batch 2026-11-01T13, which failed 3 times",
            "  run      orders_daily-000042, attempt 3",
            '  cause    column "price" is not a decimal',
            "  meaning  nothing of this batch is in the table; 4 later batches wait behind it",
            '  next     headgate table retry orders_daily --reason "…"'
            "                                after the cause is removed",
            '           headgate table skip orders_daily --batch 2026-11-01T13 --reason "…"'
            "           leaves it out for good, on record",
            '           headgate table mark-applied orders_daily --batch 2026-11-01T13 --reason "…"'
            "   its rows are in the table already",
        ]
    )


def test_a_table_that_is_halting_says_that_somebody_may_still_change_it() -> None:
    document = halting(begun(TableDocument(), ENTRY, "v1"), Halt("", "repair", "ann", 5))
    words = notice("orders_daily", document, 1)
    assert words.startswith("halting: orders_daily was stopped by ann")
    assert "may still be changing the table" in words
    assert "retry" not in words


def test_a_table_that_a_person_halted_is_resumed() -> None:
    document = TableDocument(state="halted", applied_up_to="2026-11-01T12")
    words = notice("o d", replace(document, halt=Halt("", "repair", "ann", 5)), 1)
    assert words.splitlines() == [
        "halted: o d was stopped by ann behind batch 2026-11-01T12",
        "  cause    repair",
        "  meaning  the table does not change; 1 batch waits in its backlog",
        "  next     headgate table resume 'o d' --reason \"…\"   goes on where it stopped",
    ]


def test_a_table_that_stopped_before_a_run_does_not_claim_what_is_in_it() -> None:
    document = TableDocument(state="halted", halt=Halt("2026-11-01T13", "is there", SYSTEM, 5))
    words = notice("t", document, 1)
    assert "stopped at batch 2026-11-01T13\n" in words
    assert "the table does not change; 0 later batches wait behind it" in words
    assert 'headgate table resume t --reason "…"' in words


def test_a_running_table_has_no_notice() -> None:
    assert notice("t", TableDocument(), 3) == ""
