"""Merge records: names, bytes, and what must be true of them."""

from dataclasses import replace

import pytest

from headgate.commits.merges import (
    MergeInput,
    MergeOutput,
    MergeRecord,
    from_bytes,
    merge_of,
    merge_path,
    output_name,
    read_merge,
    to_bytes,
)
from headgate.engine.codecs import CODECS, suffix_of
from headgate.errors import Corrupt
from headgate.lake.memory import MemoryLake
from headgate.landing.names import commit_of

HOUR = "2026-11-01T13"
INPUTS = (MergeInput("h/a.parquet", 5, "sha256:a", 2), MergeInput("h/b.parquet", 6, "sha256:b", 3))
OUTPUT = MergeOutput("staged", "h/merge00001-0.parquet", 9, "sha256:c", 5, INPUTS)
RECORD = MergeRecord("or/ders", HOUR, 1, 7, "red", 0, (OUTPUT,))


def test_a_record_comes_back_as_it_was() -> None:
    assert from_bytes(to_bytes(RECORD), "x") == RECORD
    assert RECORD.inputs == INPUTS


def test_inv1_a_name_says_the_merge_and_is_no_name_of_a_commit() -> None:
    every = {suffix_of(one, codec) for one, known in CODECS.items() for codec in known}
    assert {"parquet", "json", "json.gz", "txt", "txt.gz"} <= every
    for suffix in every:
        name = output_name(123_456, 7, suffix)
        assert merge_of(name) == 123_456
        assert commit_of(name) is None
    for other in ("merge1-0.parquet", "merge00001-0.csv", "xmerge00001-0.json", "merge00001.json"):
        assert merge_of(other) is None
    assert merge_of("shard0-commit0000000001-0.parquet") is None


def test_a_path_cannot_leave_its_folder() -> None:
    path = merge_path("../x", HOUR, 1)
    assert path == f"_headgate/merges/%2E.%2Fx/{HOUR}/00001.json"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (replace(OUTPUT, rows=4), "has 4 rows, and its inputs 5"),
        (replace(OUTPUT, inputs=(INPUTS[1], INPUTS[1]), rows=6), "names a file twice"),
        (replace(OUTPUT, published="h/a.parquet"), "names a file twice"),
    ],
)
def test_a_record_with_other_rows_or_a_file_twice_is_neither_written_nor_believed(
    changed: MergeOutput, said: str
) -> None:
    with pytest.raises(Corrupt, match=said):
        to_bytes(replace(RECORD, outputs=(changed,)))


def test_a_record_under_a_foreign_name_is_corrupt() -> None:
    lake = MemoryLake()
    assert read_merge(lake, "orders", HOUR, 1) is None
    lake.put(merge_path("orders", HOUR, 1), to_bytes(RECORD))
    with pytest.raises(Corrupt, match="is the record of or/ders"):
        read_merge(lake, "orders", HOUR, 1)
    lake.put(merge_path("or/ders", HOUR, 1), to_bytes(RECORD))
    assert read_merge(lake, "or/ders", HOUR, 1) == RECORD
