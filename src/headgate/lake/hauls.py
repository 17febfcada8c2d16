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
from headgate.lake.memo import is_same_content
from headgate.lake.moves import move_new

LEFT_MAX = 5_000  # names that a folder may still have to be worth listing
_IN_THE_WAY = (OSError, Corrupt, OutcomeUnknown, Unavailable)


def haul(
    moves: Sequence[Move], folders: Folders, digests: Digests, ambient: Ambient
) -> tuple[bool, ...]:
    """Of each, whether it is certainly done."""
    moved: list[tuple[int, os.stat_result | None]] = []  # None: must be read again
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
                move_new(source, name, target, new_name, move.published, ambient)
            except _IN_THE_WAY:
                continue
            moved.append((index, before if known else None))
    # Opened anew: what counts is where a path leads now.
    done = [False] * len(moves)
    with Opened(folders) as sources, Opened(folders) as targets:
        left: dict[str, frozenset[str] | None] = {}
        for index, seen in moved:
            move = moves[index]
            try:
                if not _is_gone(move.staged, sources, left, folders):
                    continue
                if seen is not None:
                    done[index] = is_same_content(targets.look(move.published), seen)
                else:
                    facts = _read(move.published, targets, digests)
                    done[index] = facts == FileFacts(move.size_bytes, move.checksum)
            except _IN_THE_WAY:
                continue
    return tuple(done)


def _read(path: str, opened: Opened, digests: Digests) -> FileFacts:
    """Raises OSError, Corrupt, Unavailable."""
    handle = opened.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return digests.facts(handle, path)
    finally:
        os.close(handle)


def _is_gone(
    path: str, sources: Opened, left: dict[str, frozenset[str] | None], folders: Folders
) -> bool:
    """Raises OSError."""
    folder, _, name = path.rpartition("/")
    if folder not in left:
        left[folder] = _names_in(folder, folders)
    names = left[folder]
    if names is not None:
        return name not in names
    try:
        sources.look(path)
    except FileNotFoundError:
        return True
    return False


def _names_in(folder: str, folders: Folders) -> frozenset[str] | None:
    """None: they are too many. Raises OSError."""
    try:
        handle = folders.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return frozenset()
    try:
        with os.scandir(handle) as found:
            names = frozenset(entry.name for entry in islice(found, LEFT_MAX + 1))
    finally:
        os.close(handle)
    return names if len(names) <= LEFT_MAX else None
