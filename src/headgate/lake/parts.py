"""Parts: any part of a file that lies elsewhere, as a file that is read."""

import io
import os
from collections.abc import Callable
from typing import Any, BinaryIO, cast


def open_parts(size_bytes: int, read: Callable[[int, int], bytes], buffer_bytes: int) -> BinaryIO:
    """`read` gives the bytes from the first number up to the second, or the first of them. Raises
    OSError."""
    raw = _Parts(size_bytes, read)
    return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, raw), buffer_bytes))


class _Parts(io.RawIOBase):
    def __init__(self, size_bytes: int, read: Callable[[int, int], bytes]) -> None:
        super().__init__()
        self._size_bytes = size_bytes
        self._read = read
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size_bytes}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, into: Any) -> int:
        end = min(self._at + len(into), self._size_bytes)
        if end <= self._at:
            return 0
        found = self._read(self._at, end)
        into[: len(found)] = found
        self._at += len(found)
        return len(found)
