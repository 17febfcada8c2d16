"""A checksum is remembered only if every later write would show."""

import os
import stat
from dataclasses import dataclass, replace

import pytest

from headgate.lake import FileFacts
from headgate.lake.memo import COARSE_GRAIN_NS, GRAIN_NS, Memo

A = FileFacts(3, "sha256:a")
NOW_NS = 1_800_000_000_123_456_789


@dataclass(frozen=True)
class File:
    inode: int = 1
    size_bytes: int = 3
    mtime_ns: int = NOW_NS - GRAIN_NS
    ctime_ns: int = NOW_NS

    def look(self) -> os.stat_result:
        seconds = (0, self.mtime_ns // 10**9, self.ctime_ns // 10**9)
        nanoseconds = {"st_mtime_ns": self.mtime_ns, "st_ctime_ns": self.ctime_ns}
        plain = (stat.S_IFREG, self.inode, 1, 1, 0, 0, self.size_bytes, *seconds)
        return os.stat_result(plain, nanoseconds)


@pytest.fixture
def memo() -> Memo:
    return Memo(entries_max=3)


def test_a_file_that_stands_still_is_not_read_again(memo: Memo) -> None:
    memo.keep(File().look(), A)
    assert memo.facts(File().look()) == A


@pytest.mark.parametrize(
    "changed",
    [
        File(inode=2),
        File(size_bytes=4),
        File(mtime_ns=NOW_NS),
        File(ctime_ns=NOW_NS + 1),
    ],
    ids=["another", "longer", "written", "written, and its time set back"],
)
def test_a_changed_file_is_read_again(memo: Memo, changed: File) -> None:
    memo.keep(File().look(), A)
    assert memo.facts(changed.look()) is None


@pytest.mark.parametrize(
    ("mtime_ns", "ctime_ns", "is_kept"),
    [
        (NOW_NS - GRAIN_NS, NOW_NS, True),
        (NOW_NS - GRAIN_NS + 1, NOW_NS, False),
        (NOW_NS, NOW_NS, False),
        (NOW_NS + 3_600 * 10**9, NOW_NS, False),
        (1_800_000_000 * 10**9, 1_800_000_000 * 10**9 + COARSE_GRAIN_NS - 1, False),
        (1_800_000_000 * 10**9, 1_800_000_000 * 10**9 + COARSE_GRAIN_NS, True),
    ],
    ids=["old", "young", "fresh", "clock set back", "whole seconds, young", "whole seconds, old"],
)
def test_a_second_write_within_the_grain_would_not_show(
    memo: Memo, mtime_ns: int, ctime_ns: int, is_kept: bool
) -> None:
    found = File(mtime_ns=mtime_ns, ctime_ns=ctime_ns).look()
    memo.keep(found, A)
    assert (memo.facts(found) is not None) == is_kept


def test_a_move_of_ours_is_no_change(memo: Memo) -> None:
    memo.keep(File().look(), A)
    moved = replace(File(), ctime_ns=NOW_NS + 5)
    memo.moved(File().look(), moved.look)
    assert memo.facts(moved.look()) == A
    assert memo.facts(File().look()) is None


def test_a_write_beside_a_move_is_a_change(memo: Memo) -> None:
    memo.keep(File().look(), A)
    written = File(mtime_ns=NOW_NS + 4, ctime_ns=NOW_NS + 5)
    memo.moved(File().look(), written.look)
    assert memo.facts(written.look()) is None


def test_the_oldest_is_forgotten_first(memo: Memo) -> None:
    for inode in (1, 2, 3, 1, 4):
        memo.keep(File(inode=inode).look(), FileFacts(3, f"sha256:{inode}"))
    known = [memo.facts(File(inode=inode).look()) for inode in (1, 2, 3, 4)]
    assert known == [
        FileFacts(3, "sha256:1"),
        None,
        FileFacts(3, "sha256:3"),
        FileFacts(3, "sha256:4"),
    ]
