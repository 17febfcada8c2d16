"""What the contract of a source needs of the files source: dropped files, two kinds of folder."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from headgate.engine import InputFile, Tally
from headgate.sources import FilesSettings, Plan
from headgate.sources.files import FilesSource
from headgate.sources.folder import Folder
from headgate.sources.local_folder import LocalFolder
from headgate.sources.memory_folder import MemoryFolder
from headgate.store import DocumentStore
from headgate.store.pages import pages
from headgate.testing.faults import Calm, Stage, wrap
from headgate.testing.manual import ManualAmbient

AfterRead = Literal["keep", "move", "delete"]
NAMESPACE = "contract"
LANES = 2


class FilesHarness:
    """Over any store and folder. A file that was begun has an unfinished name."""

    def __init__(
        self,
        store: DocumentStore,
        ambient: ManualAmbient,
        folder: "MemoryDrops | LocalDrops",
        after_read: AfterRead = "keep",
    ) -> None:
        self._store = store
        self._ambient = ambient
        self._drops = folder
        self._lines: dict[str, int] = {}
        self._settings = FilesSettings(
            path=folder.root, lanes=LANES, after_read=after_read, move_to=f"{folder.root}-done"
        )

    def open(self, epoch: int, stage: Stage | None = None) -> FilesSource:
        stage = stage or Calm()
        lanes = [f"lane-{n}" for n in range(LANES)]
        store = wrap(DocumentStore, self._store, stage)
        folder = wrap(Folder, self._drops.folder, stage)
        return FilesSource(self._settings, "orders", lanes, epoch, store, folder, self._ambient)

    def add(self, name: str, lines: int = 1) -> None:
        self._lines[name] = lines
        content = b'{"at": 1}\n' * lines
        self._drops.write(f"{name}.json", content, self._ambient.wall_ns())

    def change(self, name: str, lines: int) -> None:
        self.add(name, lines)

    def begin(self, name: str) -> None:
        self._drops.write(f"{name}.json.tmp", b'{"at"', self._ambient.wall_ns())

    def finish(self, name: str) -> None:
        self._drops.remove(f"{name}.json.tmp")
        self.add(name)

    def lose(self, name: str) -> None:
        self._drops.remove(f"{name}.json")

    def left(self) -> set[str]:
        return {path.removesuffix(".json") for path in self._drops.paths()}

    def names_in(self, plan: Plan) -> list[str]:
        return [self._name_of(file) for file in plan.files]

    def place_of(self, name: str) -> str:
        return f"{name}.json"

    def may_hold(self, name: str) -> set[str]:
        del name
        return {f"lane-{n}" for n in range(LANES)}

    def tallies(self, plan: Plan) -> list[Tally]:
        lines = {file: self._lines[self._name_of(file)] for file in plan.files}
        return [
            Tally("0-1", file.partition, file.number, "data", rows, 1, rows, None)
            for file, rows in lines.items()
        ]

    def _name_of(self, file: InputFile) -> str:
        return file.path.removeprefix(f"{self._drops.root}/").removesuffix(".json")

    def pass_ms(self, duration_ms: int) -> None:
        self._ambient.pass_ms(duration_ms)

    def wall_ms(self) -> int:
        return self._ambient.wall_ns() // 1_000_000

    def documents(self) -> dict[str, object]:
        return {one.key: one.version for page in pages(self._store) for one in page.documents}


class MemoryDrops:
    root = "/memory"

    def __init__(self) -> None:
        self.folder = MemoryFolder()

    def write(self, path: str, content: bytes, mtime_ns: int) -> None:
        self.folder.files[path] = (content, mtime_ns)

    def remove(self, path: str) -> None:
        del self.folder.files[path]

    def paths(self) -> Iterable[str]:
        return list(self.folder.files)


class LocalDrops:
    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True)
        self.root = str(path)
        self.folder = LocalFolder(self.root)

    def write(self, path: str, content: bytes, mtime_ns: int) -> None:
        place = Path(self.root, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        os.utime(place, ns=(mtime_ns, mtime_ns))

    def remove(self, path: str) -> None:
        Path(self.root, path).unlink()

    def paths(self) -> Iterable[str]:
        return [entry.path for entry in self.folder.scan()]
