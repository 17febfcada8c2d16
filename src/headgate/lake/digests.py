"""Digests: what a file is, read from a handle; the bytes of one that stands still only once."""

import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from shlex import quote

from headgate.errors import Unavailable
from headgate.lake import FileFacts
from headgate.lake.memo import Memo, stamps
from headgate.lake.refusals import no_file

SMALL_BYTES_MAX = 1_000_000  # read in one piece
READ_TRIES = 3


class Digests:
    def __init__(self) -> None:
        self._memo = Memo()
        self.known = self._memo.facts  # without reading it
        self.keep = self._memo.put

    def moved(self, before: os.stat_result, look: Callable[[], os.stat_result]) -> None:
        """By us, and maybe by somebody else since: then it is read again."""
        with suppress(OSError):
            self._memo.moved(before, look)

    def facts(
        self, handle: int, place: str, found: os.stat_result | None = None, now_ns: int = 0
    ) -> FileFacts:
        """`found`: by a look at this handle, at the earliest `now_ns` by the disk's clock. Raises
        OSError, Corrupt (no file), Unavailable (somebody is writing it)."""
        before = found or os.fstat(handle)
        if not stat.S_ISREG(before.st_mode):
            raise no_file(place)
        for _ in range(READ_TRIES):
            known = self._memo.facts(before)
            if known is not None:
                return known
            read = _read(handle, before.st_size)
            after = os.fstat(handle)
            if stamps(after) == stamps(before) and read.size_bytes == after.st_size:
                self._memo.keep(after, read, now_ns)
                return read
            before = after
        raise Unavailable(
            f"{place}: changes while it is read; next: see who is writing it: fuser {quote(place)}"
        )


def checksum_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _read(handle: int, size_bytes: int) -> FileFacts:
    """Two ways: the one for large files takes three times as long for small ones."""
    if size_bytes < SMALL_BYTES_MAX:
        content = os.pread(handle, size_bytes + 1, 0)  # one more, to see its end
        return FileFacts(len(content), checksum_of(content))
    with open(handle, "rb", buffering=0, closefd=False) as file:
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256")
        return FileFacts(file.tell(), f"sha256:{digest.hexdigest()}")
