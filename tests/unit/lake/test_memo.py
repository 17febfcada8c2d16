"""A checksum is remembered only if every later write would show."""

import os
import stat
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from headgate.lake import FileFacts
from headgate.lake.memo import COARSE_GRAIN_NS, GRAIN_NS, DiskClock, Memo, is_settled

A = FileFacts(3, "sha256:a")
NOW_NS = 1_800_000_000_123_456_789


@dataclass(frozen=True)
class File:
    inode: int = 1
    size_bytes: int = 3
    mtime_ns: int = NOW_NS - GRAIN_NS
    ctime_ns: int = NOW_NS
    device: int = 1

    def look(self) -> os.stat_result:
        seconds = (0, self.mtime_ns // 10**9, self.ctime_ns // 10**9)
        nanoseconds = {"st_mtime_ns": self.mtime_ns, "st_ctime_ns": self.ctime_ns}
        plain = (stat.S_IFREG | 0o640, self.inode, self.device, 1, 0, 0, self.size_bytes, *seconds)
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


class Disk:
    """Open files of a disk with a clock of its own; a touch moves their `ctime`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files: list[File] = []
        self.now_ns = NOW_NS
        self.touched: list[int] = []
        self.is_ours = True
        calls = SimpleNamespace(fchmod=self._touch, fstat=lambda handle: self.files[handle].look())
        monkeypatch.setattr("headgate.lake.memo.os", calls)

    def open(self, file: File) -> tuple[int, os.stat_result]:
        self.files.append(file)
        return len(self.files) - 1, file.look()

    def _touch(self, handle: int, mode: int) -> None:
        assert mode == 0o640, "nothing but its time changes"
        if not self.is_ours:
            raise PermissionError
        self.touched.append(handle)
        self.files[handle] = replace(self.files[handle], ctime_ns=self.now_ns)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


YOUNG = File(mtime_ns=NOW_NS - GRAIN_NS, ctime_ns=NOW_NS - GRAIN_NS)


def test_a_young_file_is_touched_so_that_the_disk_says_what_time_it_is(disk: Disk) -> None:
    found, now_ns = DiskClock().settled(*disk.open(YOUNG))
    assert disk.touched == [0]
    assert (found.st_ctime_ns, found.st_mtime_ns, now_ns) == (NOW_NS, YOUNG.mtime_ns, NOW_NS)
    assert is_settled(found, now_ns)


def test_a_settled_file_is_not_touched(disk: Disk) -> None:
    old = File()
    assert DiskClock().settled(*disk.open(old)) == (old.look(), 0)
    assert disk.touched == []


def test_one_touch_tells_the_time_for_all_older_files_of_that_disk(disk: Disk) -> None:
    clock = DiskClock()
    clock.settled(*disk.open(YOUNG))
    older = replace(YOUNG, inode=2, mtime_ns=YOUNG.mtime_ns - 1, ctime_ns=YOUNG.mtime_ns - 1)
    found, now_ns = clock.settled(*disk.open(older))
    assert disk.touched == [0]
    assert (found, now_ns) == (older.look(), NOW_NS)
    assert is_settled(found, now_ns)


def test_another_disk_has_a_clock_of_its_own(disk: Disk) -> None:
    clock = DiskClock()
    clock.settled(*disk.open(YOUNG))
    clock.settled(*disk.open(replace(YOUNG, device=2)))
    assert disk.touched == [0, 1]


def test_a_file_just_written_stays_unsettled_and_is_not_remembered(disk: Disk, memo: Memo) -> None:
    """Also after the touch its last write is too near: another one would not show."""
    fresh = File(mtime_ns=NOW_NS - 1, ctime_ns=NOW_NS - 1)
    found, now_ns = DiskClock().settled(*disk.open(fresh))
    assert not is_settled(found, now_ns)
    memo.keep(found, A, now_ns)
    assert memo.facts(found) is None


def test_a_file_that_may_not_be_touched_is_left_alone(disk: Disk) -> None:
    disk.is_ours = False
    assert DiskClock().settled(*disk.open(YOUNG)) == (YOUNG.look(), 0)
