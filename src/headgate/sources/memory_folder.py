"""A folder inside one process, for tests and the simulation. Several sources may share it."""

import gzip
from collections.abc import Iterator

from headgate.errors import Conflict, Invalid, Unavailable
from headgate.sources.folder import HEAD_BYTES_MAX, Entry


class MemoryFolder:
    def __init__(self) -> None:
        self.files: dict[str, tuple[bytes, int]] = {}  # content and mtime_ns, by path
        self.drawers: dict[str, dict[str, tuple[bytes, int]]] = {}
        self.elsewhere: dict[str, tuple[bytes, int]] = {}  # by absolute path
        self.folder = "1"  # another number: another folder is there
        self.forbidden: set[str] = set()  # paths that cannot be read or taken; "": no drawer
        self.is_gone = False

    def ident(self) -> str:
        self._check()
        return self.folder

    def absolute(self, path: str) -> str:
        return f"/memory/{path}"

    def scan(self) -> Iterator[Entry]:
        self._check()
        for path in sorted(self.files, reverse=True):  # in no order that anybody may count on
            found = self.stat(path)
            if found is not None:
                yield found

    def stat(self, path: str) -> Entry | None:
        self._check()
        drawer, _, name = path.partition("/")
        found = self.drawers.get(drawer, {}).get(name) or self.files.get(path)
        return None if found is None else Entry(path, len(found[0]), found[1])

    def head(self, path: str, size_bytes_max: int = HEAD_BYTES_MAX) -> bytes:
        self._check()
        if path in self.forbidden or path not in self.files:
            raise Invalid(f"{path}: cannot be read; next: ls -l {path}")
        content = self.files[path][0]
        if path.endswith(".gz"):
            try:
                content = gzip.decompress(content)
            except (OSError, EOFError) as error:
                raise Invalid(f"{path}: is not gzip") from error
        return content[:size_bytes_max].split(b"\n")[0].removesuffix(b"\r")

    def open_drawer(self, drawer: str) -> None:
        self._check()
        if "" in self.forbidden:
            raise Invalid(f"{drawer}: not allowed")
        self.drawers.setdefault(drawer, {})

    def take(self, path: str, drawer: str, name: str) -> None:
        self._check()
        if path in self.forbidden:
            raise Invalid(f"{path}: not allowed")
        if path not in self.files:
            return
        if drawer not in self.drawers:
            raise Unavailable(f"{drawer}: was closed by somebody else")
        self.drawers[drawer][name] = self.files.pop(path)

    def put(self, drawer: str, name: str, target: str) -> None:
        self._check()
        found = self.drawers.get(drawer, {}).get(name)
        if found is None:
            return
        if target in self.forbidden:
            raise Invalid(f"{target}: not allowed")
        place = self.elsewhere if target.startswith("/") else self.files
        if place.setdefault(target, found) != found:
            raise Conflict(f"{target}: something else is there")
        del self.drawers[drawer][name]

    def remove(self, drawer: str, name: str) -> None:
        self._check()
        self.drawers.get(drawer, {}).pop(name, None)

    def names(self, drawer: str) -> tuple[str, ...]:
        self._check()
        return tuple(sorted(self.drawers.get(drawer, {})))

    def close_drawer(self, drawer: str) -> None:
        self._check()
        if self.drawers.get(drawer):
            raise Conflict(f"{drawer}: something is in it")
        self.drawers.pop(drawer, None)

    def _check(self) -> None:
        if self.is_gone:
            raise Unavailable("the folder is not there; next: mount it")
