"""Shelf: the lake as the engine needs it: where Spark writes, and a look at what it wrote.

Spark writes by itself, below the URL; nothing of that passes through this process. Afterwards the
names and the footers of what lies there are read.
"""

import os
import shutil
from collections.abc import Mapping
from typing import BinaryIO, Protocol

from headgate.engine import containers, footers
from headgate.engine.failure import JobFailed
from headgate.errors import Invalid, Unavailable

LOCAL = "file://"


class Shelf(Protocol):
    """A path is text below the root. What is raised besides is Unavailable."""

    @property
    def url(self) -> str:
        """The root, as Spark takes it: with scheme, without a slash at the end."""

    def files(self, folder: str) -> Mapping[str, int]:
        """Paths and sizes of all data files below this folder, in order: nothing with a name, or
        below one, that begins with `_` or `.`. None, if there is no such folder."""

    def open(self, path: str) -> BinaryIO:
        """For any part of it. Raises OSError, too."""

    def move(self, folder: str, to: str) -> None:
        """All that is in the folder, to one that is not there yet. Raises JobFailed: it was taken
        away, or did not get there."""

    def remove(self, folder: str) -> None:
        """With all that is in it. Raises OutcomeUnknown, too."""


class LocalShelf:
    """On a disk of this machine."""

    def __init__(self, url: str) -> None:
        """Raises Invalid."""
        if not url.startswith(f"{LOCAL}/"):
            raise Invalid(f"{url}: is no folder of this machine, and nobody said how to look there")
        self.url = url
        self._root = url.removeprefix(LOCAL)

    def files(self, folder: str) -> Mapping[str, int]:
        top = f"{self._root}/{folder}"
        found = dict[str, int]()
        for place, folders, names in os.walk(top):
            folders[:] = [name for name in folders if is_data(name)]
            below = os.path.relpath(place, self._root)
            for name in filter(is_data, names):
                found[f"{below}/{name}"] = os.path.getsize(f"{place}/{name}")
        return dict(sorted(found.items()))

    def open(self, path: str) -> BinaryIO:
        return open(f"{self._root}/{path}", "rb")

    def move(self, folder: str, to: str) -> None:
        home = f"{self._root}/{to}"
        try:
            os.makedirs(os.path.dirname(home), exist_ok=True)
            os.rename(f"{self._root}/{folder}", home)
        except OSError as error:
            raise JobFailed(f"{home}: what was staged did not get there: {error}") from error

    def remove(self, folder: str) -> None:
        try:
            shutil.rmtree(f"{self._root}/{folder}")
        except OSError as error:
            raise Unavailable(f"{folder}: cannot be removed ({error})") from error


def rows_in(shelf: Shelf, path: str) -> int:
    """Of a Parquet or Avro file. Raises Unavailable, Corrupt."""
    told_by = containers.rows_of if path.endswith(containers.SUFFIX) else footers.rows_of
    with _opened(shelf, path) as opened:
        return told_by(path, opened)


def codec_in(shelf: Shelf, path: str) -> str:
    """How the values of a Parquet file are packed. Raises Unavailable, Corrupt."""
    with _opened(shelf, path) as opened:
        return footers.codec_in(path, opened)


def _opened(shelf: Shelf, path: str) -> BinaryIO:
    try:
        return shelf.open(path)
    except OSError as error:
        raise Unavailable(f"{path}: cannot be read ({error})") from error


def is_data(name: str) -> bool:
    """Else it is what a task left behind that came to nothing, or a sign of Spark's."""
    return not name.startswith(("_", "."))
