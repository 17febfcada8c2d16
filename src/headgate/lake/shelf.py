"""Shelf: a lake that is elsewhere than on this machine, as the engine looks at it."""

from collections.abc import Iterator, Mapping

from headgate.engine.failure import JobFailed
from headgate.engine.shelf import is_data
from headgate.errors import Conflict, Unavailable
from headgate.lake import Lake
from headgate.lake.local import Each, in_turn
from headgate.lake.pages import entries_of
from headgate.lake.paths import name_of

DEPTH_MAX = 16  # folders in each other: Spark makes three


class LakeShelf:
    """`headgate.engine.shelf.Shelf`."""

    def __init__(self, lake: Lake, each: Each = in_turn) -> None:
        self._lake = lake
        self._each = each
        self.url = lake.url
        self.open = lake.open

    def files(self, folder: str) -> Mapping[str, int]:
        return dict(sorted(self._below(folder, DEPTH_MAX)))

    def remove(self, folder: str) -> None:
        self._lake.remove_folder(folder)

    def _below(self, folder: str, depth: int) -> Iterator[tuple[str, int]]:
        for entry in entries_of(self._lake, folder):
            if not is_data(name_of(entry.path)):
                continue
            if not entry.is_folder:
                yield entry.path, entry.size_bytes
            elif depth:
                yield from self._below(entry.path, depth - 1)
            else:
                raise JobFailed(f"{entry.path}: is too deep; nothing here writes such folders")

    def move(self, folder: str, to: str) -> None:
        """File by file: not every lake can rename a folder."""

        def move(path: str) -> None:
            try:
                self._lake.publish(path, f"{to}{path.removeprefix(folder)}")
            except (Conflict, Unavailable) as error:
                raise JobFailed(f"{to}: what was staged did not get there: {error}") from error

        self._each(move, [*self.files(folder)])


def shelf_of(lake: Lake, each: Each = in_turn) -> LakeShelf | None:
    """None: it is on this machine, where the engine looks by itself."""
    return None if lake.url.startswith("file:") else LakeShelf(lake, each)
