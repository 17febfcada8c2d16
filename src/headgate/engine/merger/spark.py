"""Spark: small files become large ones: one write for many groups, a task and a file for each.

    group ── its files, one after the other ──▶ one task ──▶ part-<number of the group>

No row is sent from one task to another. Lines are copied as they are; Parquet rows keep all columns
that any file of the job has.
"""

import re
from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from headgate.engine import SparkSettings
from headgate.engine import rows as staged_rows
from headgate.engine.addresses import path_below, read_below, write_below
from headgate.engine.codecs import for_spark
from headgate.engine.failure import JobFailed
from headgate.engine.gateway.spark import Sessions
from headgate.engine.merger import Merged, MergeJob
from headgate.engine.shelf import LOCAL, LocalShelf, Shelf, codec_in, rows_in

GROUPS_AT_ONCE: Final = 100  # in one write: Spark plans a read for each
_PART: Final = re.compile(r"part-(\d+)-.*")


class SparkMerger:
    """`headgate.engine.merger.Merger`."""

    def __init__(self, settings: SparkSettings, lake_url: str, shelf: Shelf | None = None) -> None:
        """`shelf`: of a lake that is elsewhere than on a disk of this machine. Raises Invalid."""
        self._sessions = Sessions(settings)
        self._shelf = shelf or LocalShelf(lake_url)

    def close(self) -> None:
        """Closing twice is fine."""
        self._sessions.close()

    def merge(self, job: MergeJob) -> tuple[Merged, ...]:
        found: list[Merged] = []
        unchanged = "nothing was merged"
        place = self._shelf.url.removeprefix(LOCAL)
        with self._sessions.opened(job.what, unchanged, place) as session:
            for first in range(0, len(job.groups), GROUPS_AT_ONCE):
                groups = job.groups[first : first + GROUPS_AT_ONCE]
                folder = f"{job.folder}/{first}"
                found += self._merged(session, job.format, groups, folder)
        return tuple(found)

    def _merged(
        self, session: SparkSession, form: str, groups: Sequence[Sequence[str]], folder: str
    ) -> list[Merged]:
        root = self._shelf.url
        places = [[read_below(root, path) for path in group] for group in groups]
        target = write_below(root, folder)
        if form == "parquet":
            packed = codec_in(self._shelf, groups[0][0])  # as they were landed
            _write_rows(session, places, target, for_spark("parquet", packed))
        else:
            _write_lines(session, places, target, "gzip" if form == "packed" else "none")
        files = _by_group([*self._shelf.files(folder)], len(groups))
        if form == "parquet":
            counts = {path: rows_in(self._shelf, path) for path in files}
        else:
            counts = _lines_in(session, root, folder)
        return [Merged(path, counts.get(path, 0)) for path in files]


def _write_rows(
    session: SparkSession, places: Sequence[Sequence[str]], target: str, codec: str
) -> None:
    reader = session.read.option("recursiveFileLookup", "true")
    every = [place for group in places for place in group]
    # Of all files: else a column that only some have could be dropped.
    schema = reader.option("mergeSchema", "true").parquet(*every).schema
    typed = session.read.option("recursiveFileLookup", "true").schema(schema)
    writer = _joined([typed.parquet(*group) for group in places]).write.mode("errorifexists")
    writer = writer.options(**staged_rows.parquet_options(schema.names))  # as they were landed
    writer.option("maxRecordsPerFile", "0").option("compression", codec).parquet(target)


def _write_lines(
    session: SparkSession, places: Sequence[Sequence[str]], target: str, codec: str
) -> None:
    reader = session.read.option("recursiveFileLookup", "true").option("lineSep", "\n")
    writer = _joined([reader.text([*group]) for group in places]).write.mode("errorifexists")
    writer = writer.option("maxRecordsPerFile", "0").option("lineSep", "\n")
    writer.option("compression", codec).text(target)


def _joined(frames: Sequence[DataFrame]) -> DataFrame:
    """A task for each, in this order."""
    return reduce(DataFrame.union, [frame.coalesce(1) for frame in frames])


def _by_group(paths: Sequence[str], groups: int) -> list[str]:
    """The file of each group: a task's number is in its name. Raises JobFailed."""
    found: dict[int, str] = {}
    for path in paths:
        part = _PART.fullmatch(path.rpartition("/")[2])
        if part is not None:
            found[int(part[1])] = path
    if len(paths) != groups or sorted(found) != list(range(groups)):
        raise JobFailed(f"{len(paths):,} files were written of {groups:,} groups of small files")
    return [found[number] for number in range(groups)]


def _lines_in(session: SparkSession, root: str, folder: str) -> dict[str, int]:
    reader = session.read.option("recursiveFileLookup", "true").option("lineSep", "\n")
    lines = reader.text(read_below(root, folder)).select(
        fn.col("_metadata.file_path").alias("path")
    )
    counted = lines.groupBy("path").count().collect()
    return {path_below(root, row["path"]): row["count"] for row in counted}
