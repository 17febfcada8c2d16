"""Spark: the rows of a batch, read from the lake and written into few large files."""

import math
import os
from collections.abc import Mapping, Sequence
from typing import Final

from headgate.engine import SparkSettings
from headgate.engine.addresses import read_below, to_write
from headgate.engine.footers import rows_of
from headgate.engine.gateway.spark import TARGET_BYTES, Sessions, data_files
from headgate.errors import Invalid
from headgate.tables import BatchFile

OURS: Final = ("headgate_batch", "headgate_run")  # columns that the folders of a table make


class SparkMover:
    """`headgate.tables.Mover`, from any lake to a table on local disk."""

    def __init__(self, settings: SparkSettings, lake_url: str) -> None:
        """Raises Invalid."""
        self._sessions = Sessions(settings)
        self._root = lake_url

    def close(self) -> None:
        """Closing twice is fine."""
        self._sessions.close()

    def move(self, files: Sequence[BatchFile], folder: str, what: str) -> Mapping[str, int]:
        if not folder.startswith("file:///"):
            raise Invalid(f"{folder}: rows are moved on local disks only")
        target = folder.removeprefix("file://")
        unchanged = "nothing entered the table"
        with self._sessions.opened(what, unchanged, os.path.dirname(target)) as session:
            paths = [read_below(self._root, file.path) for file in files]
            reader = session.read.option("mergeSchema", "true")  # else a column could be dropped
            rows = reader.option("recursiveFileLookup", "true").parquet(*paths)
            taken = [column for column in rows.columns if column.lower() in OURS]
            if taken:
                raise Invalid(
                    f"{what}: its rows have a column {taken[0]}, which the folders of the table "
                    "make; next: rename it in the source"
                )
            size_bytes = sum(file.size_bytes for file in files)
            writer = rows.coalesce(max(1, math.ceil(size_bytes / TARGET_BYTES))).write
            writer = writer.mode("error").option("compression", "zstd")
            option = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
            writer.option(option, "false").parquet(to_write(target))
            return {name: rows_of(os.path.join(target, name)) for name in data_files(target)}
