"""A file elsewhere is read as one that is here, in any order."""

import os

import pytest

from headgate.lake.parts import open_parts

CONTENT = bytes(range(100))


def some(start: int, end: int) -> bytes:
    return CONTENT[start : min(end, start + 7)]  # not always all of it


def test_any_part_in_any_order() -> None:
    with open_parts(len(CONTENT), some, buffer_bytes=10) as file:
        assert file.seekable()
        assert file.read() == CONTENT
        assert file.seek(-3, os.SEEK_END) == 97
        assert file.read(50) == CONTENT[97:]
        file.seek(40)
        file.seek(2, os.SEEK_CUR)
        assert (file.read(20), file.tell()) == (CONTENT[42:62], 62)


def test_behind_the_end_there_is_nothing_and_nobody_is_asked() -> None:
    asked: list[int] = []

    def read(start: int, end: int) -> bytes:
        asked.append(start)
        return some(start, end)

    with open_parts(len(CONTENT), read, buffer_bytes=10) as file:
        file.seek(100)
        assert file.read(1) == b""
    with open_parts(0, read, buffer_bytes=10) as file:
        assert file.read() == b""
    assert asked == []


def test_what_fails_there_fails_here() -> None:
    def read(_start: int, _end: int) -> bytes:
        raise OSError("the wire is cut")

    with open_parts(1, read, buffer_bytes=10) as file, pytest.raises(OSError, match="cut"):
        file.read()
