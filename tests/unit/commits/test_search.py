"""Which commit read a position: found by few records, however many there are."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.commits.record import Record, RecordRange
from headgate.commits.search import END, Reading, commit_that_read
from headgate.errors import Corrupt

EMPTY = Record("s", 0, 0, 1, "n", 0, 0, {}, {})


class Shelf:
    """Records of one shard: each commit moves some partitions by so much."""

    def __init__(self, moves: Sequence[Mapping[str, int]], *, is_old: bool = False) -> None:
        self.records: dict[int, Record] = {}
        self.reads = 0
        self.at: dict[str, int] = {}
        for number, move in enumerate(moves, start=1):
            before = dict(self.at)
            self.at |= {name: before.get(name, 0) + by for name, by in move.items()}
            ranges = {
                name: RecordRange(str(before[name]) if name in before else "", str(self.at[name]))
                for name in move
            }
            positions = {} if is_old else {name: str(at) for name, at in self.at.items()}
            self.records[number] = replace(EMPTY, number=number, ranges=ranges, positions=positions)

    def read(self, number: int) -> Record | None:
        self.reads += 1
        return self.records.get(number)

    def find(self, partition: str, number: int) -> Reading | None:
        last = max(self.records, default=0)
        return commit_that_read(self.read, last, partition, number, lambda one: one == "closed")


MOVES = st.lists(
    st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(1, 5)), min_size=0, max_size=30
)


@given(MOVES, st.booleans())
def test_every_position_is_found_in_the_commit_that_read_it(
    moves: list[dict[str, int]], is_old: bool
) -> None:
    shelf = Shelf(moves, is_old=is_old)
    for partition in ("a", "b", "c"):
        end = shelf.at.get(partition, 0)
        for number in range(end + 2):
            found = shelf.find(partition, number)
            if number >= end:
                assert found is None
                continue
            assert found is not None
            assert found.first <= number < found.next
            assert found.record.ranges[partition].next == str(found.next)


def test_what_it_costs_grows_with_the_logarithm_also_for_a_quiet_partition() -> None:
    commits = 20_000
    moves: list[dict[str, int]] = [{"busy": 10} for _ in range(commits)]
    moves[7_000]["quiet"] = 3
    shelf = Shelf(moves)

    for partition, number in (("busy", 5), ("busy", 133_337), ("quiet", 2), ("quiet", 0)):
        shelf.reads = 0
        assert shelf.find(partition, number) is not None
        assert shelf.reads <= ceil(log2(commits)) + 4


def test_a_commit_that_was_never_finished_is_followed_to_the_one_that_replaced_it() -> None:
    shelf = Shelf([{"a": 3}, {"a": 3}, {"a": 3}])
    again = replace(shelf.records[3], number=4, replaces=3)
    shelf.records[4] = again
    shelf.records[5] = replace(again, number=5, replaces=4)

    found = shelf.find("a", 7)

    assert found is not None
    assert found.record.number == 5
    before = shelf.find("a", 5)
    assert before is not None
    assert before.record.number == 2


def test_a_commit_without_a_record_was_replaced_or_is_lost() -> None:
    shelf = Shelf([{"a": 3}, {"a": 3}, {"a": 3}])
    shelf.records[4] = replace(shelf.records[3], number=4, replaces=3)
    del shelf.records[3]

    found = shelf.find("a", 8)

    assert found is not None
    assert found.record.number == 4
    del shelf.records[2]
    with pytest.raises(Corrupt, match="headgate audit"):
        shelf.find("a", 4)


def test_a_source_partition_that_is_over_was_read_to_its_end() -> None:
    shelf = Shelf([{"a": 3}])
    shelf.records[2] = replace(EMPTY, number=2, ranges={"a": RecordRange("3", "closed")})

    found = shelf.find("a", 1_000)

    assert found is not None
    assert (found.record.number, found.first, found.next) == (2, 3, END)
