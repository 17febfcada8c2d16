"""Spark: small files become large ones: one write for many groups, a task and a file for each.

    group ── its files, one after the other ──▶ one task ──▶ part-<number of the group>

No row is sent from one task to another. Lines are copied as they are; Parquet rows keep all columns
that any file of the job has.
"""

import os
import re
from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from headgate.engine import SparkSettings
from headgate.engine import rows as staged_rows
from headgate.engine.addresses import path_of, to_read, to_write
from headgate.engine.codecs import for_spark
from headgate.engine.failure import JobFailed
from headgate.engine.footers import codec_in, rows_of
from headgate.engine.gateway.spark import Sessions, data_files
from headgate.engine.merger import Merged, MergeJob
from headgate.errors import Invalid

GROUPS_AT_ONCE: Final = 100  # in one write: Spark plans a read for each
_PART: Final = re.compile(r"part-(\d+)-.*")


class SparkMerger:
    """`headgate.engine.merger.Merger`, on local disks."""

    def __init__(self, settings: SparkSettings, lake_url: str) -> None:
        """Raises Invalid."""
        self._sessions = Sessions(settings)
        if not lake_url.startswith("file:///"):
            raise Invalid(f"{lake_url}: files are merged on local disks only")
        self._root = lake_url.removeprefix("file://")

    def close(self) -> None:
        """Closing twice is fine."""
        self._sessions.close()

    def merge(self, job: MergeJob) -> tuple[Merged, ...]:
        found: list[Merged] = []
        unchanged = "nothing was merged"
        with self._sessions.opened(job.what, unchanged, self._root) as session:
            for first in range(0, len(job.groups), GROUPS_AT_ONCE):
                groups = job.groups[first : first + GROUPS_AT_ONCE]
                folder = f"{job.folder}/{first}"
                found += self._merged(session, job.format, groups, folder)
        return tuple(found)

    def _merged(
        self, session: SparkSession, form: str, groups: Sequence[Sequence[str]], folder: str
    ) -> list[Merged]:
        places = [[to_read(f"{self._root}/{path}") for path in group] for group in groups]
        target = f"{self._root}/{folder}"
        if form == "parquet":
            _write_rows(session, places, target)
        else:
            _write_lines(session, places, target, "gzip" if form == "packed" else "none")
        files = _by_group(target, len(groups))
        if form == "parquet":
            counts = {file: rows_of(file) for file in files}
        else:
            counts = _lines_in(session, target)
        return [Merged(os.path.relpath(file, self._root), counts.get(file, 0)) for file in files]


def _write_rows(session: SparkSession, places: Sequence[Sequence[str]], target: str) -> None:
    reader = session.read.option("recursiveFileLookup", "true")
    every = [place for group in places for place in group]
    # Of all files: else a column that only some have could be dropped.
    schema = reader.option("mergeSchema", "true").parquet(*every).schema
    typed = session.read.option("recursiveFileLookup", "true").schema(schema)
    writer = _joined([typed.parquet(*group) for group in places]).write.mode("errorifexists")
    writer = writer.options(**staged_rows.parquet_options(schema.names))  # as they were landed
    codec = for_spark("parquet", codec_in(path_of(every[0])))
    writer.option("maxRecordsPerFile", "0").option("compression", codec).parquet(to_write(target))


def _write_lines(
    session: SparkSession, places: Sequence[Sequence[str]], target: str, codec: str
) -> None:
    reader = session.read.option("recursiveFileLookup", "true").option("lineSep", "\n")
    writer = _joined([reader.text([*group]) for group in places]).write.mode("errorifexists")
    writer = writer.option("maxRecordsPerFile", "0").option("lineSep", "\n")
    writer.option("compression", codec).text(to_write(target))


def _joined(frames: Sequence[DataFrame]) -> DataFrame:
    """A task for each, in this order."""
    return reduce(DataFrame.union, [frame.coalesce(1) for frame in frames])


def _by_group(folder: str, groups: int) -> list[str]:
    """The file of each group: a task's number is in its name. Raises JobFailed."""
    found: dict[int, str] = {}
    names = data_files(folder)
    for name in names:
        part = _PART.fullmatch(name)
        if part is not None:
            found[int(part[1])] = os.path.join(folder, name)
    if len(names) != groups or sorted(found) != list(range(groups)):
        raise JobFailed(f"{len(names):,} files were written of {groups:,} groups of small files")
    return [found[number] for number in range(groups)]


def _lines_in(session: SparkSession, folder: str) -> dict[str, int]:
    reader = session.read.option("recursiveFileLookup", "true").option("lineSep", "\n")
    lines = reader.text(to_read(folder)).select(fn.col("_metadata.file_path").alias("path"))
    return {path_of(row["path"]): row["count"] for row in lines.groupBy("path").count().collect()}
