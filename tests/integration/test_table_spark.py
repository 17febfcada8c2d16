"""A Parquet table that Spark fills, as any reader finds it."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from headgate.ambient import SystemAmbient
from headgate.engine import SparkSettings
from headgate.engine.addresses import to_read
from headgate.engine.failure import JobFailed
from headgate.engine.gateway.spark import start
from headgate.engine.spark import SparkEngine
from headgate.errors import Invalid
from headgate.tables import Batch, BatchFile, Identity
from headgate.tables.parquet import ParquetTable
from headgate.tables.site import open_site
from headgate.tables.spark import SparkMover
from tests.spark import USES_SPARK, spark_engine

__all__ = ["spark_engine"]

pytestmark = USES_SPARK
SETTINGS = SparkSettings(master="local[2]", needs=("kafka", "avro"))  # a session serves all tests
FIRST, SECOND = Identity("2026-11-01T00", 1), Identity("2026-11-01T01", 2)


class Place:
    """A lake with Parquet files, and a table beside it."""

    def __init__(self, folder: Path) -> None:
        self.lake, self.table_path = folder / "lake", folder / "a table"
        self.lake.mkdir()
        self.mover = SparkMover(SETTINGS, f"file://{self.lake}")
        ambient = SystemAmbient()
        site = open_site(str(self.table_path), ambient)
        self.table = ParquetTable("orders", site, self.mover, ambient, 1)

    def file(self, name: str, rows: Sequence[Mapping[str, Any]]) -> BatchFile:
        path = self.lake / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return BatchFile(name, path.stat().st_size, f"sha256:{digest}", len(rows))

    def apply(self, identity: Identity, *files: BatchFile) -> None:
        base = self.table.look("", identity.batch).base
        self.table.apply(Batch(identity.batch, "sha256:m", files), identity, base)

    def read(self) -> list[dict[str, Any]]:
        found = ds.dataset(self.table_path, format="parquet", partitioning="hive").to_table()
        return sorted(found.to_pylist(), key=lambda row: (row["headgate_batch"], row["id"]))


@pytest.fixture
def place(spark_engine: tuple[SparkEngine, Path], tmp_path: Path) -> Iterator[Place]:
    del spark_engine  # the session of this process
    one = Place(tmp_path)
    yield one
    one.mover.close()


def test_inv8_any_reader_opens_the_table_as_one_dataset(place: Place) -> None:
    place.apply(
        FIRST,
        place.file("h=0/1.parquet", [{"id": 1}, {"id": 2}]),
        place.file("h=0/2 [x].parquet", [{"id": 3}]),
    )
    place.table.commit_empty(Identity(SECOND.batch, 5), "")
    place.apply(SECOND, place.file("h=1/1.parquet", [{"id": 4}]))
    place.apply(Identity("2026-11-01T02", 3))

    assert [(row["headgate_batch"], row["headgate_run"], row["id"]) for row in place.read()] == [
        (FIRST.batch, 1, 1),
        (FIRST.batch, 1, 2),
        (FIRST.batch, 1, 3),
        (SECOND.batch, 2, 4),
    ]
    session, _ = start(SETTINGS)
    frame = session.read.parquet(to_read(str(place.table_path)))
    assert sorted(row["id"] for row in frame.collect()) == [1, 2, 3, 4]
    files = [one for one in place.table_path.rglob("*.parquet") if "run=1" in str(one)]
    assert len(files) == 1


def test_columns_that_only_some_files_have_are_kept(place: Place) -> None:
    place.apply(
        FIRST,
        place.file("1.parquet", [{"id": 1}]),
        place.file("2.parquet", [{"id": 2, "price": 5}]),
    )
    assert [(row["id"], row["price"]) for row in place.read()] == [(1, None), (2, 5)]


def test_b12_a_file_that_is_cut_off_fails_and_nothing_enters(place: Place) -> None:
    good, bad = (place.file(f"{n}.parquet", [{"id": n}]) for n in (1, 2))
    (place.lake / "2.parquet").write_bytes((place.lake / "2.parquet").read_bytes()[:20])
    with pytest.raises(JobFailed):
        place.apply(FIRST, good, bad)
    assert not list(place.table_path.glob("headgate_batch=*"))
    assert not list((place.table_path / "_headgate/staging").iterdir())


def test_a_column_that_the_folders_make_is_refused(place: Place) -> None:
    with pytest.raises(Invalid, match="Headgate_Run"):
        place.apply(FIRST, place.file("1.parquet", [{"id": 1, "Headgate_Run": 7}]))
