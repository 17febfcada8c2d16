"""Offsets without a record, told from rows that were lost, doubled or never planned."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.engine import OFFSETS_TALLIED, InputSpan, Kind, Tally
from headgate.errors import Corrupt
from headgate.sources.kafka.holes import Bucket, buckets_with_holes, check_bucket

T = OFFSETS_TALLIED


def span(first: int, following: int, partition: str = "t/0") -> InputSpan:
    topic, _, lane = partition.rpartition("/")
    return InputSpan(partition, topic, int(lane), first, following, 0, 100)


def tallied(offsets: Iterable[int], partition: str = "t/0", kind: Kind = "data") -> list[Tally]:
    """As an engine tells what it staged."""
    buckets: dict[int, list[int]] = {}
    for offset in offsets:
        buckets.setdefault(offset - offset % T, []).append(offset)
    return [
        Tally("0-1", partition, first, kind, len(found), min(found), max(found), None)
        for first, found in buckets.items()
    ]


@given(st.integers(0, 3 * T), st.integers(1, 3 * T))
def test_what_has_a_row_for_each_offset_has_no_holes(first: int, count: int) -> None:
    whole = range(first, first + count)
    assert buckets_with_holes([span(first, first + count)], tallied(whole)) == []


@given(st.sets(st.integers(5, 2 * T + 5), max_size=6))
def test_each_bucket_knows_what_it_lacks(lacking: set[int]) -> None:
    one = span(5, 2 * T + 6)

    found = buckets_with_holes([one], tallied(n for n in range(5, 2 * T + 6) if n not in lacking))

    assert sum(bucket.missing for bucket in found) == len(lacking)
    for bucket in found:
        inside = {n for n in lacking if bucket.first <= n < bucket.next}
        assert bucket.missing == len(inside) > 0


def test_buckets_end_where_their_span_does() -> None:
    found = buckets_with_holes([span(T - 2, 2 * T + 3)], [])
    assert [(one.first, one.next, one.rows) for one in found] == [
        (T - 2, T, 0), (T, 2 * T, 0), (2 * T, 2 * T + 3, 0),
    ]  # fmt: skip


def test_rows_of_all_kinds_count() -> None:
    tallies = [*tallied([0, 3]), *tallied([1], kind="late"), *tallied([2], kind="dead")]
    assert buckets_with_holes([span(0, 4)], tallies) == []


@pytest.mark.parametrize(
    "tallies",
    [
        tallied([4]),
        tallied([9, 10]),
        tallied([7], partition="t/1"),
        tallied([7], partition="u/0"),
        tallied([7, 20_000_000]),
    ],
    ids=["before", "behind", "another partition", "another topic", "far behind"],
)
def test_rows_that_were_not_planned_are_found(tallies: list[Tally]) -> None:
    with pytest.raises(Corrupt, match="rows that were not planned"):
        buckets_with_holes([span(5, 10)], tallies)


def test_doubled_rows_are_found_even_if_others_lack() -> None:
    whole = tallied([*range(5, 10), 6])
    with pytest.raises(Corrupt, match=r"t/0, offsets 5 to 9: 6 rows of 5 offsets"):
        buckets_with_holes([span(5, 10)], whole)


def test_each_span_is_reckoned_by_itself() -> None:
    spans = [span(0, 4), span(0, 4, "t/1")]
    (found,) = buckets_with_holes(spans, [*tallied(range(4)), *tallied([0, 2], partition="t/1")])
    assert (found.span.partition, found.missing) == ("t/1", 2)


@pytest.mark.parametrize(("seen", "is_right"), [(2, True), (3, False), (1, False), (4, False)])
def test_a_hole_is_a_loss_if_another_reader_sees_more(seen: int, is_right: bool) -> None:
    bucket = Bucket(span(0, 4), 0, 4, 2)
    if is_right:
        check_bucket(bucket, seen)
        return
    with pytest.raises(Corrupt, match=f"2 rows were staged, and {seen} records are there"):
        check_bucket(bucket, seen)


def test_what_is_wrong_says_where() -> None:
    bucket = Bucket(span(0, 30_000), 20_000, 20_005, 1)
    with pytest.raises(Corrupt, match="t/0, offsets 20,000 to 20,004"):
        check_bucket(bucket, 2)
