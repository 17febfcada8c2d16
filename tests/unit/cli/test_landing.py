"""What a run that landed something says to whoever started it."""

from headgate.cli.landing import late_words
from headgate.periods import Period

FIRST_MS = Period.parse("2026-11-18T09").start_ms


def test_late_records_are_explained_by_closed_hours_and_by_the_first_hour() -> None:
    assert late_words("orders", 1_000, FIRST_MS, is_set=False) == (
        "late: 1,000 records of orders: of hours that were closed, or before its first hour, "
        "2026-11-18T09 (the first commit decided that; for older records, first_hour in the "
        "settings sets it, before the first run)"
    )


def test_a_first_hour_that_was_set_needs_no_hint() -> None:
    assert late_words("orders", 1, FIRST_MS, is_set=True) == (
        "late: 1 record of orders: of hours that were closed, or before its first hour, "
        "2026-11-18T09"
    )


def test_without_a_first_hour_only_closed_hours_are_named() -> None:
    assert late_words("orders", 1, None, is_set=True) == (
        "late: 1 record of orders: of hours that were closed"
    )
