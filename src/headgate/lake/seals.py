"""Seals: what many small files are, each read once and in one go.

A commit of ten thousand files spends most of its time here. What does not go smoothly, or is not
small, is left as it is, for somebody who has time to look at that one.
"""

import os
import stat
from collections.abc import Sequence

from headgate.lake import FileFacts
from headgate.lake.digests import Digests, checksum_of
from headgate.lake.folders import Opened
from headgate.lake.memo import DiskClock, is_settled

SMALL_BYTES_MAX = 256_000  # several threads at once take longer for such files than one

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


def seal_small(
    paths: Sequence[str], opened: Opened, digests: Digests, clock: DiskClock, device: int
) -> list[FileFacts | None]:
    """None: look at that one."""
    now_ns = None  # by the disk's clock
    found: list[FileFacts | None] = []
    read: list[tuple[os.stat_result, FileFacts]] = []
    for path in paths:
        facts = None
        folder, _, name = path.rpartition("/")
        try:
            handle = os.open(name, _READ, dir_fd=opened.handle(folder))
        except OSError:
            found.append(None)
            continue
        try:
            if now_ns is None:
                now_ns = clock.ask(handle)
            before = os.fstat(handle)
            is_plain = stat.S_ISREG(before.st_mode) and before.st_dev == device
            if is_plain and before.st_size <= SMALL_BYTES_MAX and is_settled(before, now_ns):
                content = os.pread(handle, before.st_size + 1, 0)  # one more, to see its end
                after = os.fstat(handle)
                if (
                    len(content) == after.st_size
                    and after.st_mtime_ns == before.st_mtime_ns
                    and after.st_ctime_ns == before.st_ctime_ns
                ):
                    facts = FileFacts(len(content), checksum_of(content))
                    read.append((after, facts))
        except OSError:
            facts = None
        finally:
            os.close(handle)
        found.append(facts)
    digests.keep(read)
    return found
