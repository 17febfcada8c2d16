"""What the table contract needs beside each kind of table: a lake, rows, careless hands."""

import hashlib
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

from headgate.ambient import SystemAmbient
from headgate.lake.paths import OURS, STAGING
from headgate.tables import Batch, BatchFile, Table, site
from headgate.tables.parquet import ParquetTable
from headgate.tables.site import open_site
from headgate.testing.basin import Basin, Ladle
from tests.contract.lakes import PowerSupply


class Shelf:
    """Files of a lake, one row each."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def batch(self, name: str, *rows: str) -> Batch:
        found = []
        for number, row in enumerate(rows):
            path, content = f"{name}/{number}.parquet", f"{row}\n".encode()
            self.files[path] = content
            checksum = f"sha256:{hashlib.sha256(content).hexdigest()}"
            found.append(BatchFile(path, len(content), checksum, 1))
        return Batch(name, f"sha256:{name} {'-'.join(rows)}", tuple(found))


def is_data(path: str) -> bool:
    """As a reader of datasets decides."""
    return not any(name.startswith(("_", ".")) for name in path.split("/"))


class MemoryTableHarness:
    def __init__(self) -> None:
        self._shelf = Shelf()
        self._basin = Basin()
        self._ladle = Ladle(self._shelf.files.get, self._basin.put_at)

    def open(self, epoch: int = 1, check: Callable[[], None] = lambda: None) -> Table:
        return ParquetTable("orders", self._basin, self._ladle, SystemAmbient(), epoch, check)

    def batch(self, name: str, *rows: str) -> Batch:
        return self._shelf.batch(name, *rows)

    def rows(self) -> list[str]:
        files = self._basin.files().items()
        lines = [content.decode().split() for path, content in files if is_data(path)]
        return sorted(line for some in lines for line in some)

    def prepared(self) -> list[str]:
        return [path for path in self._basin.files() if path.startswith(STAGING)]

    def lose_history(self) -> None:
        for path in self._basin.files():
            if path.startswith("headgate_batch="):
                facts = self._basin.facts(path)
                assert facts is not None
                self._basin.remove(path, facts)

    def lose_rows(self, is_so: bool) -> None:
        self._ladle.loses_a_row = is_so

    def power_cut(self) -> None:
        self._basin.power_cut()


class LocalTableHarness:
    """`without`: on a file system that has no rename that never replaces."""

    def __init__(self, folder: Path, *, is_without: bool = False) -> None:
        self._root = folder / "table"
        self._root.mkdir()
        self._shelf = Shelf()
        self._ladle = Ladle(self._shelf.files.get, self._put_at)
        self._stack = ExitStack()
        self._power = self._stack.enter_context(PowerSupply(self._root))
        if is_without:
            self._stack.enter_context(patch.object(site, "rename_new", lambda *_: False))

    def close(self) -> None:
        self._stack.close()

    def open(self, epoch: int = 1, check: Callable[[], None] = lambda: None) -> Table:
        ambient = SystemAmbient()
        place = open_site(str(self._root), ambient)
        return ParquetTable("orders", place, self._ladle, ambient, epoch, check)

    def batch(self, name: str, *rows: str) -> Batch:
        return self._shelf.batch(name, *rows)

    def rows(self) -> list[str]:
        lines = [path.read_text().split() for path in self._files() if is_data(self._inner(path))]
        return sorted(line for some in lines for line in some)

    def prepared(self) -> list[str]:
        staging = self._root / STAGING
        return sorted(one.name for one in staging.iterdir()) if staging.exists() else []

    def lose_history(self) -> None:
        for folder in self._root.iterdir():
            if folder.name != OURS:
                shutil.rmtree(folder)

    def lose_rows(self, is_so: bool) -> None:
        self._ladle.loses_a_row = is_so

    def power_cut(self) -> None:
        self._power.cut()

    def _files(self) -> Sequence[Path]:
        return [path for path in self._root.rglob("*") if path.is_file()]

    def _inner(self, path: Path) -> str:
        return str(path.relative_to(self._root))

    def _put_at(self, url: str, content: bytes) -> None:
        path = Path(url.removeprefix("file://"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
