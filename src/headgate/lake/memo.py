"""Memo: checksums of files that did not change since they were read.

A commit asks what a file is when it seals it, before it moves it and afterwards; the bytes are read
once. An entry belongs to one inode and holds while size, `mtime` and `ctime` stand: a write moves
`mtime`, and who sets that back moves `ctime`. A move of ours changes `ctime`, too, and says so
(`moved`).

Time stamps have a grain: a second write within it leaves them as they are. So a file is remembered
only if its last write is further back than the grain, by the disk's own clock: `ctime`, which a
touch moves before a file is read, its own or that of another file on this disk. From then on every
write shows in `mtime`. No clock of ours takes part: it may be wrong, and the disk may be another
machine's.
"""

import os
import stat
import threading
from collections.abc import Callable, Iterable
from typing import TypeAlias

from headgate.lake import FileFacts

ENTRIES_MAX = 32_768
GRAIN_NS = 20_000_000  # a tick of the kernel is at most 10 ms
COARSE_GRAIN_NS = 2_000_000_000  # of disks that stamp whole seconds
SECOND_NS = 1_000_000_000


Stamps: TypeAlias = tuple[int, int, int]


class Memo:
    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        self._entries_max = entries_max
        self._alone = threading.Lock()
        self._seen: dict[tuple[int, int], tuple[Stamps, FileFacts]] = {}  # by inode

    def facts(self, found: os.stat_result) -> FileFacts | None:
        seen = self._seen.get((found.st_dev, found.st_ino))
        if seen is None or seen[0] != (found.st_size, found.st_mtime_ns, found.st_ctime_ns):
            return None
        return seen[1]

    def keep(self, found: os.stat_result, facts: FileFacts, now_ns: int = 0) -> None:
        """These bytes were read between two looks that both found this, after `now_ns` by the
        disk's clock, if that is known."""
        if is_settled(found, now_ns):
            self.put([(found, facts)])

    def moved(self, before: os.stat_result, after: Callable[[], os.stat_result]) -> None:
        """The file was moved by us between the two looks; the second is asked for if it matters."""
        facts = self.facts(before)
        if facts is None:
            return
        found = after()
        if is_same_content(found, before):
            self.put([(found, facts)])

    def put(self, read: Iterable[tuple[os.stat_result, FileFacts]]) -> None:
        """Each of them was settled before it was read."""
        with self._alone:
            for found, facts in read:
                inode = (found.st_dev, found.st_ino)
                self._seen.pop(inode, None)
                if len(self._seen) >= self._entries_max:
                    del self._seen[next(iter(self._seen))]  # the oldest
                self._seen[inode] = (stamps(found), facts)


def stamps(found: os.stat_result) -> Stamps:
    """What tells one state of a file from another."""
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def is_settled(found: os.stat_result, now_ns: int = 0) -> bool:
    """Any write after `now_ns` by the disk's clock, or after its `ctime`, will show in its time
    stamps."""
    mtime_ns = found.st_mtime_ns
    grain_ns = GRAIN_NS if mtime_ns % SECOND_NS else COARSE_GRAIN_NS
    return max(found.st_ctime_ns, now_ns) - mtime_ns >= grain_ns


class DiskClock:
    """What time it is at least, by the clock of the disk itself: that of its last touch."""

    def __init__(self) -> None:
        self._touched: dict[int, int] = {}  # by device

    def ask(self, handle: int) -> int:
        """Moves the `ctime` of this file, and nothing else, if this user may; 0: not known."""
        try:
            os.fchmod(handle, stat.S_IMODE(os.fstat(handle).st_mode))
        except OSError:  # not this user's file, or a disk without modes
            return 0
        touched = os.fstat(handle)
        self._touched[touched.st_dev] = touched.st_ctime_ns
        return touched.st_ctime_ns

    def settled(self, handle: int, found: os.stat_result) -> tuple[os.stat_result, int]:
        """Before it is read: how it is found then, and a time before that; 0: not known. Asks if
        the file is not settled."""
        now_ns = self._touched.get(found.st_dev, 0)
        if is_settled(found, now_ns) or not self.ask(handle):
            return found, now_ns
        return os.fstat(handle), self._touched[found.st_dev]


def is_same_content(one: os.stat_result, other: os.stat_result) -> bool:
    """The same file, and not written between the two looks: `ctime` moves with its name, too."""
    return (
        one.st_ino == other.st_ino
        and one.st_dev == other.st_dev
        and one.st_size == other.st_size
        and one.st_mtime_ns == other.st_mtime_ns
    )
