"""One Spark session for all tests of a process, and a lake to stage in."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from headgate.engine import (
    EventTime,
    InputFile,
    Job,
    Shape,
    ShardInput,
    SparkSettings,
    Staged,
)
from headgate.engine.spark import SparkEngine
from headgate.sources.spark import FilesReader

HOUR_MS = 3_600_000
AT_MS = 1_793_538_000_000  # 2026-11-01T13:00 in UTC
ARRIVAL_MS = AT_MS + HOUR_MS

AT = EventTime("json", "$.at")

USES_SPARK = [
    pytest.mark.spark,
    # pyspark leaves the socket of each collect() to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
"""`pytestmark` of a module that lets Spark run in this process."""

_numbers = count()


def shape(**changed: Any) -> Shape:
    usual: dict[str, Any] = {
        "stream": "orders", "reader": "files", "format": "json", "columns": (), "event_time": AT,
        "land_as": "parquet", "record_bytes_max": 16_000_000, "future_skew_ms": 300_000,
    }  # fmt: skip
    return Shape(**{**usual, **changed})


@dataclass
class Bench:
    """An engine, a folder for input and a lake."""

    engine: SparkEngine
    lake: Path
    incoming: Path
    staged: Staged = field(default_factory=lambda: Staged((), ()))

    def file(self, name: str, content: bytes | str) -> Path:
        path = self.incoming / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def stage(
        self, *files: Path, marks_ms: Mapping[str, int] | None = None, **changed: Any
    ) -> list[dict[str, Any]]:
        """The staged rows, in the order of file and line."""
        return self.run(self.job(*files, marks_ms=marks_ms, **changed))

    def job(self, *files: Path, marks_ms: Mapping[str, int] | None = None, **changed: Any) -> Job:
        shard = ShardInput("0-1", inputs(*files), marks_ms or {})
        return Job(shape(**changed), self.folder(), (shard,))

    def folder(self) -> str:
        return f"_headgate/staging/attempt-{next(_numbers)}"

    def run(self, job: Job) -> list[dict[str, Any]]:
        self.staged = self.engine.stage(job)
        return self.rows()

    def rows(self) -> list[dict[str, Any]]:
        found = list[dict[str, Any]]()
        for file in self.staged.files:
            rows = _rows_in(self.lake / file.path)
            assert len(rows) == file.rows, file
            found += [{"label": file.label, "kind": file.kind, **row} for row in rows]
        assert len(found) == sum(tally.rows for tally in self.staged.tallies)
        return sorted(found, key=lambda row: (row["label"], row["number"], row["line"]))

    def kinds(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for tally in self.staged.tallies:
            found[tally.kind] = found.get(tally.kind, 0) + tally.rows
        return found


def inputs(*files: Path, partition: str = "lane-0") -> tuple[InputFile, ...]:
    return tuple(
        InputFile(partition, number, str(file), os.path.getsize(file), ARRIVAL_MS)
        for number, file in enumerate(files, start=1)
    )


def _rows_in(file: Path) -> list[dict[str, Any]]:
    if file.suffix == ".parquet":
        rows = pq.ParquetFile(file).read().to_pylist()
        return [{**row.pop("_headgate"), **row} for row in rows]
    return [_of_line(line) for line in file.read_text("utf-8").split("\n")[:-1]]


def _of_line(line: str) -> dict[str, Any]:
    if line.startswith('{"_headgate":{'):
        row = json.loads(line)
        return {**row.pop("_headgate"), "row": row}
    identity, raw = line.split("\t", 1)
    place, number = identity.rsplit(":", 1)
    partition, file = place.rsplit("/", 1)
    return {"partition": partition, "number": int(file), "line": int(number), "row": raw}


@pytest.fixture(scope="session")
def spark_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SparkEngine, Path]]:
    lake = tmp_path_factory.mktemp("lake")
    settings = SparkSettings(master="local[2]", needs=("kafka", "avro"))  # a session serves all
    engine = SparkEngine(settings, f"file://{lake}", {"files": FilesReader()})
    yield engine, lake
    engine.close()


@pytest.fixture
def bench(spark_engine: tuple[SparkEngine, Path], tmp_path: Path) -> Bench:
    engine, lake = spark_engine
    return Bench(engine, lake, tmp_path)
