"""Small files of an hour that Spark merges, before its flag, as any reader finds them."""

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate import App
from headgate.ambient import SystemAmbient
from headgate.audit.verifying import Verified, verify
from headgate.commits.certificate import FLAG, HOLD, Certificate, from_bytes
from headgate.commits.merges import MergeRecord
from headgate.commits.merges import from_bytes as merge_from_bytes
from headgate.commits.roots import RootDocument, root_key, root_name
from headgate.engine.failure import JobFailed
from headgate.engine.footers import codec_in
from headgate.engine.merger import MergeJob
from headgate.engine.merger.spark import SparkMerger
from headgate.lake import LakeSettings
from headgate.lake.opening import open_lake
from headgate.periods import FolderTemplate, Period
from headgate.ready import work
from headgate.store.changes import read
from headgate.store.registry import open_store
from tests.integration.landings import (
    SPARK,
    Yard,
    lines_of,
    orders,
    sockets_to_java,
    whole_hour,
)
from tests.spark import USES_SPARK, spark_engine

__all__ = ["sockets_to_java", "spark_engine"]

pytestmark = [*USES_SPARK, pytest.mark.timeout(900)]

EXAMPLE = Path(__file__).parents[2] / "examples/check_certificate.py"
FILES, ROWS = 6, 5


class Hour:
    """An hour of orders in several small files, from several commits of two shards."""

    def __init__(self, yard: Yard, **options: Any) -> None:
        self.yard = yard
        self.of = Period.hour_of(whole_hour(3))
        for number in range(FILES):
            first = number * ROWS
            records = orders(range(first, first + ROWS), self.of.start_ms, 1_000)
            yard.drop("orders", f"{number}.json", records)
        source = {"lanes": 2}
        self.app: App = yard.app(
            yard.stream("orders", source=source, shards=2, round_size="400B", merge=True, **options)
        )

    @property
    def template(self) -> FolderTemplate:
        return self.app.settings.streams["orders"].folder

    @property
    def folder(self) -> Path:
        return self.yard.lake / self.template.folder(self.of, stream="orders")

    def files(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir() if path.name != FLAG)

    def ids(self) -> list[int]:
        return sorted(self.yard.rows("orders").ids("data").elements())

    def certificate(self) -> Certificate:
        flag = self.folder / FLAG
        return from_bytes(flag.read_bytes(), str(flag))

    def record(self) -> MergeRecord:
        (path,) = (self.yard.lake / "_headgate/merges/orders" / str(self.of)).iterdir()
        return merge_from_bytes(path.read_bytes(), str(path))

    def verified(self) -> Verified:
        lake = open_lake(LakeSettings(str(self.yard.lake)), SystemAmbient())
        return verify(lake, {"orders": self.template})

    def root(self) -> RootDocument:
        settings = self.app.settings
        store = open_store(settings.store, settings.namespace, ambient=SystemAmbient())
        try:
            found = read(store, root_key(root_name(self.template)), RootDocument)
        finally:
            store.close()
        assert found is not None
        return found.value


@pytest.fixture
def yard(spark_engine: object, tmp_path: Path) -> Yard:
    del spark_engine  # the session of this process
    return Yard(tmp_path)


@pytest.mark.parametrize("land_as", ["parquet", "json", "text"])
def test_inv1_small_files_of_an_hour_become_one_with_the_same_rows(
    yard: Yard, land_as: Any
) -> None:
    hour = Hour(yard, land_as=land_as)
    result = hour.app.run(until="idle", max_seconds=400)

    assert result.is_idle
    suffix = {"parquet": "parquet", "json": "json", "text": "txt"}[land_as]
    assert hour.files() == [f"merge00001-0.{suffix}"]
    assert hour.ids() == list(range(FILES * ROWS))
    record = hour.record()
    assert len(record.inputs) >= 2
    assert [one.rows for one in record.outputs] == [FILES * ROWS]
    found = hour.certificate()
    assert [(file.path.rpartition("/")[2], file.rows) for file in found.files] == [
        (f"merge00001-0.{suffix}", FILES * ROWS)
    ]
    assert found.counts["landed"] == FILES * ROWS
    assert hour.app.audit(is_deep=True).findings == ()
    assert hour.verified().findings == []
    told = subprocess.run(
        [sys.executable, str(EXAMPLE), str(yard.lake), str(hour.folder / FLAG)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, told.stdout.strip()) == (0, "as certified"), told.stderr
    assert [line.subject for line in yard.ledger("files.merged")] == [f"{hour.of}/orders"]
    assert yard.staging() == []


def test_a_merge_that_fails_leaves_the_hour_flagged_as_it_landed(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "MERGE_AGAIN_MS", 100)
    hour = Hour(yard)
    hold = hour.folder.parent / HOLD
    hold.parent.mkdir(parents=True)
    hold.touch()
    hour.app.run(until="idle", max_seconds=400)
    landed = hour.files()
    assert len(landed) >= 2
    damaged = hour.folder / landed[0]
    os.truncate(damaged, damaged.stat().st_size - 8)
    hold.unlink()

    hour.app.run(until="idle", max_seconds=400)

    assert hour.files() == landed
    assert [file.path.rpartition("/")[2] for file in hour.certificate().files] == landed
    merging = hour.root().merging["orders"]
    assert (merging.period, merging.tries) == (str(hour.of), 3)
    assert landed[0] in merging.why
    (line,) = yard.ledger("merge.given_up")
    assert landed[0] in line.words
    assert [finding.subject for finding in hour.verified().findings] == [
        str(damaged.relative_to(yard.lake))
    ]


def test_each_group_becomes_one_file_and_columns_that_only_some_have_are_kept(
    spark_engine: object, tmp_path: Path
) -> None:
    del spark_engine
    root = tmp_path / "a lake %41 [x]"
    names = [f"h=0/{number} [x].parquet" for number in range(5)]
    (root / "h=0").mkdir(parents=True)
    for number, name in enumerate(names):
        more = {"price": 7} if number == 3 else {}
        pq.write_table(pa.Table.from_pylist([{"id": number, **more}]), root / name)
    merger = SparkMerger(SPARK, f"file://{root}")
    groups = (tuple(names[:3]), tuple(names[3:]))

    found = merger.merge(MergeJob("_headgate/staging/x", "parquet", groups, "test"))

    assert [one.rows for one in found] == [3, 2]
    ids = [pq.ParquetFile(root / one.path).read().to_pylist() for one in found]
    assert [sorted(row["id"] for row in rows) for rows in ids] == [[0, 1, 2], [3, 4]]
    assert sorted(str(row["price"]) for row in ids[1]) == ["7", "None"]


def test_lines_are_copied_byte_by_byte(spark_engine: object, tmp_path: Path) -> None:
    del spark_engine
    odd = [b'{"a":"\xe2\x98\x83 \\u2028"}\r\n', b"\xff\xfe no text\n", b" \tblank ends \n"]
    root = tmp_path / "a lake %41 [x]"
    root.mkdir()
    for number, line in enumerate(odd):
        (root / f"{number}.json").write_bytes(line + lines_of([number]))
    merger = SparkMerger(SPARK, f"file://{root}")
    group = tuple(f"{number}.json" for number in range(len(odd)))

    (found,) = merger.merge(MergeJob("_headgate/staging/x", "lines", (group,), "test"))

    assert found.rows == 6
    merged = (root / found.path).read_bytes()
    assert sorted(merged.split(b"\n")) == sorted(
        b"".join(line + lines_of([number]) for number, line in enumerate(odd)).split(b"\n")
    )


def test_packed_lines_stay_packed_and_parquet_keeps_its_codec(
    spark_engine: object, tmp_path: Path
) -> None:
    del spark_engine
    for number in range(3):
        (tmp_path / f"{number}.json.gz").write_bytes(gzip.compress(lines_of([number])))
        table = pa.Table.from_pylist([{"id": number}])
        pq.write_table(table, tmp_path / f"{number}.parquet", compression="snappy")
    merger = SparkMerger(SPARK, f"file://{tmp_path}")

    packed = tuple(f"{number}.json.gz" for number in range(3))
    (lines,) = merger.merge(MergeJob("_headgate/staging/x", "packed", (packed,), "test"))
    of_rows = tuple(f"{number}.parquet" for number in range(3))
    (rows,) = merger.merge(MergeJob("_headgate/staging/y", "parquet", (of_rows,), "test"))

    assert gzip.decompress((tmp_path / lines.path).read_bytes()) == lines_of([0, 1, 2])
    assert (lines.rows, rows.rows) == (3, 3)
    assert codec_in(str(tmp_path / rows.path)) == "snappy"


def test_b12_a_file_that_is_gone_fails_the_job(spark_engine: object, tmp_path: Path) -> None:
    del spark_engine
    (tmp_path / "0.json").write_bytes(b"{}\n")
    merger = SparkMerger(SPARK, f"file://{tmp_path}")
    with pytest.raises(JobFailed):
        merger.merge(MergeJob("_headgate/staging/x", "lines", (("0.json", "gone.json"),), "test"))
