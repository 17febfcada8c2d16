"""Moves: from one name to another, never onto something.

Where a file system has no such rename, the file gets the second name and then loses the first, by
one process at a time. Killed in between it has both; the next one who moves it takes the first
away.
"""

import os

from headgate.ambient import Ambient
from headgate.lake.refusals import unsure
from headgate.lake.syscalls import rename_new
from headgate.lake.turns import one_at_a_time


def move_new(
    from_folder: int, name: str, to_folder: int, new_name: str, place: str, ambient: Ambient
) -> None:
    """Raises OutcomeUnknown, Unavailable, OSError (nothing was done): FileExistsError if something
    has the new name, FileNotFoundError if there is nothing to move."""
    try:
        if rename_new(from_folder, name, to_folder, new_name):
            return
    except FileExistsError:
        if not _has_both(from_folder, name, to_folder, new_name):
            raise
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=from_folder)
    try:
        with one_at_a_time(folder, place, ambient):
            _name_twice(folder, name, to_folder, new_name)
            with unsure(place, "it has two names. Next: do it again; that takes the first away"):
                os.unlink(name, dir_fd=folder)
    finally:
        os.close(folder)


def _name_twice(from_folder: int, name: str, to_folder: int, new_name: str) -> None:
    try:
        os.link(name, new_name, src_dir_fd=from_folder, dst_dir_fd=to_folder, follow_symlinks=False)
    except FileExistsError:
        if not _has_both(from_folder, name, to_folder, new_name):
            raise


def _has_both(from_folder: int, name: str, to_folder: int, new_name: str) -> bool:
    first = os.stat(name, dir_fd=from_folder, follow_symlinks=False)
    second = os.stat(new_name, dir_fd=to_folder, follow_symlinks=False)
    # One name in two spellings, as some disks allow, is not two: to take it away would be the end.
    return os.path.samestat(first, second) and first.st_nlink > 1
