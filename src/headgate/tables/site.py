"""Site: a folder in which a table's batches lie; a lake of its own whose folders can be published.

    staged folder ── publish_folder: one rename, never onto something ──▶ a batch that readers see

A folder goes as a whole or not at all. Whoever removes a staged folder publishes it first to where
nobody publishes from: a folder that is emptied file by file could be published half empty by its
owner, who wakes up late.
"""

import errno
import os
import stat
from typing import Protocol

from headgate.ambient import Ambient
from headgate.errors import Conflict, Unavailable
from headgate.lake import Lake, LakeSettings
from headgate.lake.folders import SEARCH
from headgate.lake.local import LocalLake
from headgate.lake.opening import local_root, open_lake
from headgate.lake.paths import folder_of, name_of
from headgate.lake.refusals import explained, missing, no_folder
from headgate.lake.syscalls import rename_new

_TAKEN = frozenset({errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR})


class Site(Lake, Protocol):
    """As the lake; and folders that hold something move as a whole."""

    def publish_folder(self, staged: str, published: str) -> None:
        """Raises Conflict (something is at `published`; nothing was done), Unavailable (nothing was
        done; also: nothing is at `staged`), OutcomeUnknown."""


class LocalSite(LocalLake):
    """On a local file system."""

    def publish_folder(self, staged: str, published: str) -> None:
        origin, place = self._place(staged), self._place(published)
        with explained(origin):
            try:
                source = self._folders.open(folder_of(staged), SEARCH)
            except (FileNotFoundError, NotADirectoryError):
                raise missing(origin) from None
        try:
            with explained(place):
                target = self._folders.opened_or_made(folder_of(published))
            try:
                _move(source, name_of(staged), target, name_of(published), origin, place)
            finally:
                os.close(target)
        finally:
            os.close(source)


def open_site(path: str, ambient: Ambient) -> LocalSite:
    """The folder is made if it is missing. Raises Invalid, Unavailable."""
    open_lake(LakeSettings(path), ambient)
    return LocalSite(LakeSettings(local_root(path)), ambient)


def opened_site(path: str, ambient: Ambient) -> LocalSite | None:
    """As it is, for whoever only looks; None: there is no such folder. Raises Invalid,
    Unavailable."""
    root = local_root(path)
    return LocalSite(LakeSettings(root), ambient) if os.path.isdir(root) else None


def _move(source: int, name: str, target: int, new_name: str, origin: str, place: str) -> None:
    with explained(place):
        try:
            found = os.stat(name, dir_fd=source, follow_symlinks=False)
        except FileNotFoundError:
            raise missing(origin) from None
        if not stat.S_ISDIR(found.st_mode):
            raise no_folder(origin)
        try:
            if not rename_new(source, name, target, new_name):
                # Refused onto a folder that holds something, and every published one does.
                os.rename(name, new_name, src_dir_fd=source, dst_dir_fd=target)
        except FileNotFoundError:
            raise Unavailable(
                f"{origin}: was taken away, and nothing was done; next: stage it again"
            ) from None
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            raise Conflict(f"{place}: something has this name, and nothing was done") from error
