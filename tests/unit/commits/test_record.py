"""A commit record, as bytes and back."""

import pytest

from headgate.commits.record import (
    Mark,
    OwnStep,
    Record,
    RecordFile,
    RecordGap,
    RecordRange,
    facts_of,
    from_bytes,
    record_path,
    to_bytes,
)
from headgate.errors import Corrupt

FULL = Record(
    "заказы/注文",
    3,
    17,
    4,
    "node-1",
    1_800_000_000_000,
    2,
    {"lane-0": RecordRange("", "5"), "ligne é": RecordRange("7", "9")},
    {"data": 3, "late": 1, "dead": 0, "skip": 0},
    (RecordFile("data", "2026-11-01T00", "staged/f", "2026-11-01/00/f", 10, "sha256:0", 3),),
    (RecordGap("lane-0", "3", "4", "vanished"),),
    {"lane-0": Mark(None, 5, "first hour")},
    (OwnStep("announce", {"to": ["a", {"b": 1}]}),),
    (1, 2),
    16,
)


def test_g6_a_record_in_any_script_is_the_same_after_a_round_trip() -> None:
    assert from_bytes(to_bytes(FULL), "p") == FULL


def test_the_same_record_is_always_the_same_bytes() -> None:
    assert facts_of(to_bytes(FULL)) == facts_of(to_bytes(from_bytes(to_bytes(FULL), "p")))


@pytest.mark.parametrize(
    "raw",
    [b"", b"\xff", b"[]", b"{}", to_bytes(FULL)[:-2], to_bytes(FULL).replace(b'"epoch"', b'"ep"')],
)
def test_g5_half_a_record_is_corrupt_and_names_its_path(raw: bytes) -> None:
    with pytest.raises(Corrupt, match="_headgate/commits/x"):
        from_bytes(raw, "_headgate/commits/x")


def test_g10_two_names_that_look_alike_have_records_apart() -> None:
    names = ["a:b", "a b", "a/b", "a%20b", "a_b", "A B"]
    assert len({record_path(name, 0, 1) for name in names}) == len(names)


def test_records_of_a_shard_sort_by_their_number() -> None:
    paths = [record_path("s", 0, number) for number in (1, 9, 10, 99, 1_000_000)]
    assert paths == sorted(paths)
