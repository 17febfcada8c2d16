"""Basin: a site in memory, and a ladle that moves the rows of a batch into it.

A row is a line. The ladle can be told to fail, or to lose a row on the way.
"""

from collections.abc import Callable, Mapping, Sequence

from headgate.engine.failure import JobFailed
from headgate.errors import Conflict, Unavailable
from headgate.lake.memory import MemoryLake
from headgate.lake.paths import check_file, name_of
from headgate.tables import BatchFile


class Basin(MemoryLake):
    """`headgate.tables.site.Site`."""

    def publish_folder(self, staged: str, published: str) -> None:
        check_file(staged)
        self._check_write(published)
        with self._alone:
            if published in self._files or self._is_folder(published):
                raise Conflict(f"{published}: something has this name, and nothing was done")
            moved = [path for path in self._files if path.startswith(f"{staged}/")]
            if not moved:
                raise Unavailable(f"{staged}: is not there, and nothing was done")
            for path in moved:
                target = published + path.removeprefix(staged)
                self._make_room(target)
                self._files[target] = self._files[path]
                del self._files[path]

    def put_at(self, url: str, content: bytes) -> None:
        """As an engine, which is told a URL, and refuses to write where something is: a job that
        runs twice must not write over what was sealed since."""
        path = url.removeprefix(f"{self.url}/")
        if self.facts(path) is not None:
            raise JobFailed(f"{path}: is there already")
        self.put(path, content)


class Ladle:
    """`headgate.tables.Mover`."""

    def __init__(
        self, read: Callable[[str], bytes | None], put_at: Callable[[str, bytes], None]
    ) -> None:
        self._read = read
        self._put_at = put_at
        self.moves = 0
        self.poison: set[str] = set()  # words in the paths of files that fail every time
        self.loses_a_row = False

    def move(self, files: Sequence[BatchFile], folder: str, what: str) -> Mapping[str, int]:
        del what
        self.moves += 1
        moved: dict[str, int] = {}
        for file in files:
            if any(word in file.path for word in self.poison):
                raise JobFailed(f"{file.path}: is poison")
            lines = (self._read(file.path) or b"").splitlines(keepends=True)
            if self.loses_a_row:
                lines = lines[1:]
            name = f"part-{name_of(file.path)}"
            self._put_at(f"{folder}/{name}", b"".join(lines))
            moved[name] = len(lines)
        return moved
