"""Spark: files as rows, each with its file, its number and its line.

    lines (json, csv, text)      `raw`, the line as it came
    parquet                      `row`, a struct of its own columns
    dead letters (dead-…)        what they hold, as above; `stamp_ms` and what a log kept beside it

and beside it `label`, `partition`, `number`, `line`, `arrival_ms` and `mark_ms`. Lines are counted
in the task that reads the file; therefore a file is never split and a task reads one file.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import BinaryIO

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from headgate.engine import NO_MARK_MS, InputFile, Job, Shape, ShardInput
from headgate.engine.addresses import path_of, spellings_of, to_read
from headgate.engine.containers import schema_of
from headgate.engine.failure import JobFailed
from headgate.engine.footers import columns_of
from headgate.engine.rows import EXTRA_TYPES, OURS, extra_columns
from headgate.engine.shelf import Shelf
from headgate.engine.sql import name
from headgate.errors import Invalid

_ROW_IN_TASK = (1 << 33) - 1  # the bits of monotonically_increasing_id that say it
_FACTS = (
    "path string, label string, partition string, number bigint, arrival_ms bigint, mark_ms bigint"
)


class FilesReader:
    """Makes rows of numbered files. `shelf`: of a lake that is elsewhere than on this machine, and
    whose dead letters are read again."""

    def __init__(self, shelf: Shelf | None = None) -> None:
        self._shelf = shelf

    def frame(self, session: SparkSession, job: Job) -> DataFrame:
        """Raises Invalid, JobFailed."""
        files = [(shard, file) for shard in job.inputs for file in shard.files]
        kind = job.shape.format
        if kind in ("parquet", "dead-parquet"):
            return _of_parquet(session, job, files)
        if kind.startswith("dead-"):
            return _of_dead(session, job, files, self._shelf)
        return _of_lines(session, files)


Planned = Sequence[tuple[ShardInput, InputFile]]


def _of_lines(session: SparkSession, files: Planned) -> DataFrame:
    reader = session.read.option("lineSep", "\n").option("recursiveFileLookup", "true")
    reader = reader.option("mapreduce.input.linerecordreader.line.maxlength", str(2**31 - 1))
    lines = reader.text([to_read(file.path) for _, file in files])
    counted = lines.select(
        # A line feed ends a line; a carriage return before it is part of that end.
        fn.expr(
            r"CASE WHEN endswith(value, '\r') THEN CAST(substring(CAST(value AS BINARY), 1, "
            r"octet_length(value) - 1) AS STRING) ELSE value END"
        ).alias("raw"),
        _row().alias("line"),
        fn.input_file_name().alias("path"),  # `_metadata` would copy each line once more
    )
    return _told(session, counted, _facts(lines, files))


def _row() -> Column:
    """From one on; of a file that one task reads."""
    return fn.expr(f"(monotonically_increasing_id() & {_ROW_IN_TASK}L) + 1")


def _of_parquet(session: SparkSession, job: Job, files: Planned) -> DataFrame:
    files = [one for one in files if one[1].size_bytes > 0]  # an empty file has no footer
    rows = session.read.option("recursiveFileLookup", "true").parquet(
        *[to_read(file.path) for _, file in files]
    )
    is_dead = job.shape.format.startswith("dead-")
    ours = [column for column in rows.columns if column.lower() in OURS]
    if ours and not (is_dead and ours == ["_headgate"]):
        raise Invalid(
            f"stream {job.shape.stream}: the files have a column {ours[0]}, which is ours; next: "
            "rename it in the files, or land another folder"
        )
    kept = [column for column in rows.columns if column not in ours]
    counted = rows.select(
        fn.struct(*[fn.col(name(column)) for column in kept]).alias("row"),
        (fn.col("_metadata.row_index") + 1).alias("line"),
        fn.col("_metadata.file_path").alias("path"),
    )
    return _told(session, counted, _facts(rows, files))


def _of_dead(session: SparkSession, job: Job, files: Planned, shelf: Shelf | None) -> DataFrame:
    """Our own dead letters of lines or of a log: in Parquet or Avro, or as lines of json. Of a log
    with what it kept beside a record, as far as the letter has it: nobody else knows it any
    more."""
    beside = sorted({"timestamp", *extra_columns(job.shape)})
    read = session.read.option("recursiveFileLookup", "true")
    found: DataFrame | None = None
    for suffix, packed in _alike(files, shelf):
        rows = read.format(suffix[1:]).load([to_read(file.path) for _, file in packed])
        is_parquet = suffix == ".parquet"
        raw = ["_headgate.raw", *(["value"] if "value" in rows.columns else [])]
        letters = rows.select(
            fn.expr(f"coalesce({', '.join(f'CAST({one} AS STRING)' for one in raw)})").alias("raw"),
            (fn.col("_metadata.row_index") + 1 if is_parquet else _row()).alias("line"),
            fn.col("_metadata.file_path").alias("path"),
            fn.col("_headgate.event_time").alias("moment"),
            *(_beside(rows, column) for column in beside),
        )
        letters = _told(session, letters, _facts(rows, packed))
        found = letters if found is None else found.unionByName(letters)
    lines = [one for one in files if not one[1].path.endswith((".parquet", ".avro"))]
    if lines:
        of_lines = _of_lines(session, lines)
        value = fn.expr(
            "coalesce(get_json_object(raw, '$.raw'), "
            "CAST(unbase64(get_json_object(raw, '$.raw_base64')) AS STRING))"
        )
        moment = fn.expr("CAST(get_json_object(raw, '$._headgate.event_time') AS TIMESTAMP)")
        none = {column: fn.lit(None).cast(EXTRA_TYPES[column]) for column in beside}
        letters = of_lines.withColumns({"raw": value, "moment": moment, **none})
        found = letters if found is None else found.unionByName(letters)
    assert found is not None  # noqa: S101 - a job without files is never read
    return found.withColumn("stamp_ms", fn.expr(_stamp_ms(job.shape))).drop("moment")


def _beside(rows: DataFrame, column: str) -> Column:
    """What the log kept beside a record; null in letters that do not have it. A column of this name
    may also be one that was declared once, of another type."""
    type_ = EXTRA_TYPES[column]
    is_there = column in rows.columns and rows.schema[column].dataType.simpleString() == type_
    return (fn.col(column) if is_there else fn.lit(None).cast(type_)).alias(column)


def _stamp_ms(shape: Shape) -> str:
    """The time that the log kept. It is the letter's event time, if that was taken from the log, as
    it always is of a record without a value."""
    as_event_time = "unix_millis(moment)"
    if shape.event_time.by != "kafka":
        as_event_time = f"CASE WHEN raw IS NULL THEN {as_event_time} END"
    kept = "unix_millis(timestamp)"
    return f"coalesce(CASE WHEN {kept} > 0 THEN {kept} END, {as_event_time})"


def _alike(files: Planned, shelf: Shelf | None) -> Iterator[tuple[str, Planned]]:
    """Files of rows with the same columns: of others Spark would see those of the first one."""
    schemas: dict[str, Callable[[str, BinaryIO | None], object]]
    schemas = {".parquet": columns_of, ".avro": schema_of}
    for suffix, columns in schemas.items():
        found = dict[object, list[tuple[ShardInput, InputFile]]]()
        for one in files:
            if one[1].path.endswith(suffix):
                with _opened(one[1].path, shelf) as opened:
                    found.setdefault(columns(one[1].path, opened), []).append(one)
        for alike in found.values():
            yield suffix, alike


def _opened(path: str, shelf: Shelf | None) -> AbstractContextManager[BinaryIO | None]:
    """None: a file of this machine, which anybody can open."""
    if shelf is None or not path.startswith(f"{shelf.url}/"):
        return nullcontext()
    return shelf.open(path.removeprefix(f"{shelf.url}/"))


def _facts(frame: DataFrame, files: Planned) -> list[dict[str, object]]:
    """What is known of each file, under the spellings that a row may have of its path."""
    spelled = {path_of(url): url for url in frame.inputFiles()}
    facts = list[dict[str, object]]()
    for shard, file in files:
        url = spelled.pop(file.path, None)
        if url is None:
            raise JobFailed(f"{file.path}: Spark does not see this file; it may be gone")
        fact = {
            "label": shard.label, "partition": file.partition, "number": file.number,
            "arrival_ms": file.arrival_ms,
            "mark_ms": shard.marks_ms.get(file.partition, NO_MARK_MS),
        }  # fmt: skip
        facts += [{"path": path, **fact} for path in spellings_of(url)]
    if spelled:
        raise JobFailed(
            f"{', '.join(spelled)}: Spark would read this, too, and nobody asked for it"
        )
    return facts


def _told(session: SparkSession, rows: DataFrame, facts: list[dict[str, object]]) -> DataFrame:
    """Each row with the facts of its file. A file that is not known fails the job."""
    kept = [column for column in rows.columns if column != "path"]
    files = {(fact["partition"], fact["number"]) for fact in facts}
    if len(files) == 1:  # in all its spellings
        known = {key: value for key, value in facts[0].items() if key != "path"}
        types = dict(part.split(" ") for part in _FACTS.split(", "))
        return rows.select(*kept, *[fn.lit(v).cast(types[k]).alias(k) for k, v in known.items()])
    table = session.range(1).select(
        fn.inline(fn.from_json(fn.lit(json.dumps(facts)), f"array<struct<{_struct(_FACTS)}>>"))
    )
    # A whole number is found faster than a text. The text itself is compared in the first line: a
    # task reads one file, so what holds for that line holds for the others.
    hashed = table.withColumnRenamed("path", "known").withColumn("hash", fn.xxhash64("known"))
    joined = rows.withColumn("hash", fn.xxhash64("path")).join(fn.broadcast(hashed), "hash", "left")
    # In the column that is always landed: one that nobody needs would not be looked at.
    partition = fn.expr(
        "CASE WHEN IF(line = 1, known = path, known IS NOT NULL) THEN partition "
        "ELSE raise_error(concat(path, ': not planned')) END"
    )
    return joined.select(
        *kept, "label", partition.alias("partition"), "number", "arrival_ms", "mark_ms"
    )


def _struct(fields: str) -> str:
    return ", ".join(": ".join(part.split(" ")) for part in fields.split(", "))
