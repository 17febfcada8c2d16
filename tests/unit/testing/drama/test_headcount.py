from array import array
from collections import Counter
from dataclasses import replace

import pytest

from headgate.periods import HOUR_MS, Period
from headgate.tables.parquet import Proof
from headgate.testing.drama.headcount import (
    FIRST_HOUR,
    IS_LATE,
    NOWHERE,
    Dropped,
    LakeCount,
    TableCount,
    hours_of,
    lake_faults,
    table_faults,
)

FIRST, SECOND = Period.parse("2026-11-01T13"), Period.parse("2026-11-01T14")
DROPPED = Dropped(range(10, 14), {FIRST.start_ms: 2, SECOND.start_ms: 1}, late=1, dead=2)


def lake(*places: int) -> LakeCount:
    """Of the ids 10 to 13: two in the first hour, one in the second, one late."""
    found = LakeCount(DROPPED.ids, Counter(dict(DROPPED.hours)), late=1, dead=2)
    found.seen = [FIRST.start_ms, SECOND.start_ms]
    found.places = array("H", places or (FIRST_HOUR, FIRST_HOUR, FIRST_HOUR + 1, IS_LATE))
    return found


def proof(batch: Period, run: int) -> Proof:
    return Proof("orders", str(batch), run, "rows", "before")


def table(*proofs: Proof) -> TableCount:
    batches = Counter({str(FIRST): 2, str(SECOND): 1})
    return TableCount(list(proofs or (proof(FIRST, 1), proof(SECOND, 2))), batches)


def test_what_is_there_once_and_in_its_hour_is_no_fault() -> None:
    assert list(lake_faults("orders", DROPPED, lake())) == []
    assert list(table_faults(lake(), table(), hours_of(DROPPED))) == []


def test_it_is_known_where_an_id_lies() -> None:
    assert [lake().hour_of(one) for one in (9, 10, 12, 13, 14)] == [
        *(None, FIRST.start_ms, SECOND.start_ms, None, None)
    ]


def test_hours_without_records_between_others_are_expected() -> None:
    sparse = replace(DROPPED, hours={FIRST.start_ms: 1, FIRST.start_ms + 3 * HOUR_MS: 1})

    assert [str(hour)[-2:] for hour in hours_of(sparse)] == ["13", "14", "15", "16"]


def test_planted_a_record_that_is_missing_doubled_or_astray_is_named() -> None:
    found = lake(FIRST_HOUR, NOWHERE, FIRST_HOUR + 1, IS_LATE)
    found.doubled, found.astray = [12], [10, 11, 10, 11, 10, 11]

    assert list(lake_faults("orders", DROPPED, found)) == [
        "orders: 1 records are missing in the lake: 11",
        "orders: 1 records are in the lake more than once: 12",
        "orders: 6 records are in the folder of another hour: 10, 11, 10, 11, 10, …",
    ]


def test_planted_other_counts_than_were_dropped_are_named() -> None:
    found = lake()
    found.late, found.dead, found.strangers = 0, 3, 1
    found.hours[FIRST.start_ms] += 1

    assert list(lake_faults("orders", DROPPED, found)) == [
        "orders: 1 records in the lake were never dropped",
        "orders: 0 late records, and 1 were dropped",
        "orders: 3 dead letters, and 2 were dropped",
        f"orders: 3 records of {FIRST}, and 2 were dropped",
    ]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (table(proof(SECOND, 1), proof(FIRST, 2)), "entered in this order"),
        (table(proof(FIRST, 1), proof(SECOND, 2), proof(SECOND, 3)), "entered in this order"),
        (table(proof(FIRST, 1)), f"does not have: {SECOND}"),
        (TableCount(table().proofs, Counter({str(FIRST): 2})), f"0 rows of {SECOND}"),
        (TableCount(table().proofs, table().batches, doubled=1), "more than once"),
        (TableCount(table().proofs, table().batches, strangers=2), "not in that hour"),
    ],
)
def test_planted_inv8_a_table_out_of_order_or_unlike_the_lake_is_named(
    found: TableCount, words: str
) -> None:
    (fault,) = table_faults(lake(), found, hours_of(DROPPED))

    assert words in fault


def test_planted_a_batch_that_no_hour_explains_is_named_and_an_empty_one_is_not() -> None:
    later = SECOND.next()
    empty = table(proof(FIRST, 1), proof(SECOND, 2), proof(later, 3))

    assert list(table_faults(lake(), empty, hours_of(DROPPED))) == []
    empty.batches[str(later)] = 1
    (fault,) = table_faults(lake(), empty, hours_of(DROPPED))
    assert fault == f"batches of the table that no hour explains: {later}"


def test_a_run_that_was_closed_without_rows_is_no_batch() -> None:
    closed = Proof("orders", str(SECOND), 2, "empty", "before")

    found = table(proof(FIRST, 1), closed, proof(SECOND, 3))

    assert list(table_faults(lake(), found, hours_of(DROPPED))) == []
