"""Hauls: many files of a commit moved to their names at once, each looked at before and afterwards.

Each is moved as one alone would be (`moves`); only what is the same for many is done once: opening
their folders, and seeing that nothing is left where they were staged. What does not go smoothly is
left as it is, for somebody who has time to look at that one.
"""

import os
from collections.abc import Sequence
from itertools import islice

from headgate.ambient import Ambient
from headgate.errors import Corrupt, OutcomeUnknown, Unavailable
from headgate.lake import FileFacts, Move
from headgate.lake.digests import Digests
from headgate.lake.folders import Folders, Opened
from headgate.lake.moves import move_new
from headgate.lake.syscalls import rename_new

LISTED_MAX = 5_000  # names that a folder may have to be worth listing
_IN_THE_WAY = (OSError, Corrupt, OutcomeUnknown, Unavailable)


def haul(
    moves: Sequence[Move], folders: Folders, digests: Digests, ambient: Ambient
) -> tuple[bool, ...]:
    """Of each, whether it is certainly done."""
    moved: list[tuple[int, str, str, str, str, int | None]] = []
    with Opened(folders) as sources, Opened(folders, is_made=True) as targets:
        for index, move in enumerate(moves):
            from_folder, _, name = move.staged.rpartition("/")
            to_folder, _, new_name = move.published.rpartition("/")
            try:
                source = sources.handle(from_folder)
                before = os.stat(name, dir_fd=source, follow_symlinks=False)
                known = digests.known(before)
                facts = known or _read(move.staged, sources, digests)
                if facts.checksum != move.checksum or facts.size_bytes != move.size_bytes:
                    continue
                target = targets.handle(to_folder)
                if not rename_new(source, name, target, new_name):
                    move_new(source, name, target, new_name, move.published, ambient)
            except _IN_THE_WAY:
                continue
            inode = before.st_ino if known else None  # None: must be read again
            moved.append((index, from_folder, name, to_folder, new_name, inode))
    # Opened anew: what counts is where a path leads now.
    done = [False] * len(moves)
    left, there = _Listed(folders), _Listed(folders)
    for index, from_folder, name, to_folder, new_name, inode in moved:
        try:
            if left.inode(from_folder, name) is not None:
                continue
            if inode is not None:
                done[index] = there.inode(to_folder, new_name) == inode
            else:
                done[index] = _is_as_it_should(moves[index], folders, digests)
        except _IN_THE_WAY:
            continue
    return tuple(done)


def _is_as_it_should(move: Move, folders: Folders, digests: Digests) -> bool:
    """Raises OSError, Corrupt, Unavailable."""
    with Opened(folders) as targets:
        facts = _read(move.published, targets, digests)
    return facts == FileFacts(move.size_bytes, move.checksum)


def _read(path: str, opened: Opened, digests: Digests) -> FileFacts:
    """Raises OSError, Corrupt, Unavailable."""
    handle = opened.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return digests.facts(handle, path)
    finally:
        os.close(handle)


class _Listed:
    """What has which name, asked of whole folders where that takes less time."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._inodes: dict[str, dict[str, int] | None] = {}  # None: too many names

    def inode(self, folder: str, name: str) -> int | None:
        """None: there is nothing. Raises OSError."""
        if folder not in self._inodes:
            self._inodes[folder] = self._list(folder)
        listed = self._inodes[folder]
        if listed is not None:
            return listed.get(name)
        try:
            with self._folders.holding(f"{folder}/{name}") as (handle, _):
                return os.stat(name, dir_fd=handle, follow_symlinks=False).st_ino
        except FileNotFoundError:
            return None

    def _list(self, folder: str) -> dict[str, int] | None:
        """Raises OSError."""
        try:
            handle = self._folders.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            return {}
        try:
            with os.scandir(handle) as found:
                listed = {entry.name: entry.inode() for entry in islice(found, LISTED_MAX + 1)}
        finally:
            os.close(handle)
        return listed if len(listed) <= LISTED_MAX else None
