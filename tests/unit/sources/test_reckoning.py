"""Reckoning: rows against the plan."""

import pytest

from headgate.engine import InputFile, Kind, Tally
from headgate.errors import Corrupt
from headgate.sources import Plan, Range
from headgate.sources.reckoning import reconcile


def plan(*paths: str, format: str = "json") -> Plan:
    files = tuple(InputFile("lane-0", n, f"/in/{path}", 10, 0) for n, path in enumerate(paths))
    ranges = {"lane-0": Range("", str(len(paths)))}
    return Plan("files", format, (), ranges, files, (), {}, has_more=False)


def tally(number: int, rows: int, first: int, last: int, kind: Kind = "data") -> Tally:
    return Tally("0-1", "lane-0", number, kind, rows, first, last, None)


def test_k21_lines_of_all_kinds_together_are_all_lines() -> None:
    reconcile(
        plan("a.json", "b.json"),
        [
            tally(0, 1, 1, 1, "skip"),
            tally(0, 5, 2, 9),
            tally(0, 2, 4, 6, "dead"),
            tally(0, 1, 5, 5, "late"),
            tally(1, 1, 1, 1),
        ],
    )


@pytest.mark.parametrize(
    ("tallies", "said"),
    [
        ([], "none of its 10 bytes"),
        ([tally(0, 0, 0, 0)], "none of its 10 bytes"),
        ([tally(0, 2, 2, 3)], "first row is line 2"),
        ([tally(0, 2, 1, 3)], "2 rows of 3 lines: some were lost"),
        ([tally(0, 3, 1, 3), tally(0, 1, 2, 2, "late")], "4 rows of 3 lines: some were doubled"),
        ([tally(0, 1, 1, 1), tally(7, 1, 1, 1)], "number 7.*not planned"),
    ],
)
def test_k21_rows_lost_or_doubled_are_corrupt(tallies: list[Tally], said: str) -> None:
    with pytest.raises(Corrupt, match=said):
        reconcile(plan("a.json"), tallies)


def test_a_compressed_or_columnar_nothing_has_bytes_and_no_rows() -> None:
    reconcile(plan("a.json.gz"), [])
    reconcile(plan("a.parquet", format="parquet"), [])
    reconcile(plan("a.json", format="dead"), [])
