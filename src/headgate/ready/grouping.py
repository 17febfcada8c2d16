"""Grouping: which small files of an hour become one. Pure.

Only files of one folder and one format, in the order of their names: so neighbouring commits stay
together. Each goes into the first group that it fits into, up to the target size: so no two groups
could be one. A file that is as large stays as it is, and so does one that would be alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from headgate.commits.record import RecordFile
from headgate.lake.paths import folder_of

Group = tuple[RecordFile, ...]

UNMERGED: Final = "avro"  # files of this format stay as they are


def groups_of(files: Iterable[RecordFile], target_bytes: int) -> tuple[Group, ...]:
    """None: there is nothing to gain."""
    small = [
        file
        for file in files
        if file.size_bytes < target_bytes and suffix_of(file.published) != UNMERGED
    ]
    return tuple(
        group
        for _, alike in groupby(sorted(small, key=_order), key=_kind)
        for group in _filled(tuple(alike), target_bytes)
        if len(group) > 1
    )


def suffix_of(path: str) -> str:
    """All that is behind the first dot of its name: lines may be packed."""
    return path.rpartition("/")[2].partition(".")[2]


def _kind(file: RecordFile) -> tuple[str, str]:
    return folder_of(file.published), suffix_of(file.published)


def _order(file: RecordFile) -> tuple[str, str, str]:
    return *_kind(file), file.published


@dataclass(slots=True)
class _Filling:
    files: list[RecordFile] = field(default_factory=list)
    size_bytes: int = 0


def _filled(files: Group, target_bytes: int) -> list[Group]:
    least_bytes = min(file.size_bytes for file in files)
    every: list[_Filling] = []
    with_room: list[_Filling] = []
    for file in files:
        room_bytes = target_bytes - file.size_bytes
        group = next((one for one in with_room if one.size_bytes <= room_bytes), None)
        if group is None:
            group = _Filling()
            every.append(group)
            with_room.append(group)
        group.files.append(file)
        group.size_bytes += file.size_bytes
        if group.size_bytes + least_bytes > target_bytes:
            with_room.remove(group)
    return [tuple(one.files) for one in every]
