"""Spark: the engine in earnest. One session, started when the first job comes.

    stage(): reader ── lines ──▶ verdict ──▶ <folder>/shard=…/… ──▶ counted again

A job is one write into a folder of its own, and one look at what was written. There is no Python
per record, and nothing that Spark Connect does not have.
"""

import logging
import math
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import attrgetter
from shlex import quote
from typing import Final, Protocol
from urllib.parse import unquote

from py4j.protocol import Py4JError  # type: ignore[import-untyped] # it has no types
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import StringType, StructField, StructType

from headgate.engine import (
    OFFSETS_TALLIED,
    EventTime,
    Job,
    Kind,
    Schemas,
    Shape,
    SparkSettings,
    Staged,
    StagedFile,
    Tally,
    codecs,
    verdict,
)
from headgate.engine import rows as staged_rows
from headgate.engine.addresses import path_below, read_below, write_below
from headgate.engine.avro import Decoder, decoders_of
from headgate.engine.causes import has_no_room, is_about_settings, short_cause
from headgate.engine.failure import JobFailed
from headgate.engine.gateway.spark import (
    TARGET_BYTES,
    bury,
    check,
    described,
    is_gone,
    is_over,
    start,
    stop,
    talk_of,
    why_given_up,
)
from headgate.engine.quick.spark import is_installed
from headgate.engine.shelf import LOCAL, LocalShelf, Shelf, rows_in
from headgate.engine.sql import name, text
from headgate.engine.weights import Weights
from headgate.errors import HeadgateError, Invalid, Unavailable
from headgate.periods import HOUR_MS

log = logging.getLogger(__name__)

TASKS_UNSHUFFLED_MAX: Final = 4  # each writes a file of its own for an hour
RECORDS_LOOKED_AT: Final = 1_000  # for the first schemas
IDS_MAX: Final = 1_000  # of schemas that are asked for in one round

_KINDS: Final[Mapping[str, Kind]] = {"data": "data", "late": "late", "dead": "dead", "skip": "skip"}
_FOLDERS: Final = ("shard", "headgate_kind", "headgate_hour")  # no column of a source
_OUTPUT: Final = "headgate_output"  # one more of them, if the job has filters


_NO_RECORDS: Final = (  # what a reader gives of each
    *("'' AS raw", "'' AS label", "'' AS partition", "0L AS number", "0L AS line"),
    *("0L AS arrival_ms", "0L AS mark_ms", "0L AS stamp_ms", "named_struct('none', 0) AS row"),
)
_NO_TIMES: Final = ("boolean", "array", "map", "struct")
_ANY_TIME: Final = EventTime("sql", "0")


class Reader(Protocol):
    """Makes rows of the inputs of a job; each kind of source has one."""

    def frame(self, session: SparkSession, job: Job) -> DataFrame:
        """Each record with `raw` (of Parquet: `row`), `label`, `partition`, `number`, `line`,
        `arrival_ms` and `mark_ms`. Raises Invalid, JobFailed."""


class SparkEngine:
    """Jobs may come from several threads."""

    def __init__(
        self,
        settings: SparkSettings,
        lake_url: str,
        readers: Mapping[str, Reader],
        schemas: Schemas | None = None,
        shelf: Shelf | None = None,
    ) -> None:
        """The secrets in `settings.conf` are resolved; without `schemas` no Avro is read. `shelf`:
        of a lake that is elsewhere than on a disk of this machine. Raises Invalid."""
        check(settings)
        self._settings = settings
        self._shelf = shelf or LocalShelf(lake_url)
        self._readers = readers
        self._schemas = schemas
        self._alone = threading.Lock()
        self._session: SparkSession | None = None
        self._is_started_here = False
        self._has_quick = False  # the session has our function
        self._weights = Weights()
        self._ids: dict[tuple[str, str], set[int]] = {}  # of schemas, by stream and their place

    def check(self, shape: Shape) -> None:
        session = self._opened()
        with self._explained(shape, session):
            frame = session.range(0).selectExpr(*_NO_RECORDS)
            for one in _judgeable(shape):
                try:
                    _ = _judged(one, frame, has_quick=False).schema  # is only looked at
                except AnalysisException as error:
                    if not _may_stand_in_files(shape, error):
                        raise

    def stage(self, job: Job) -> Staged:
        shape = job.shape
        reader = self._readers.get(shape.reader)
        if reader is None:
            raise Invalid(f"stream {shape.stream}: nothing reads a source of kind {shape.reader!r}")
        size_bytes = sum(shard.size_bytes for shard in job.inputs)
        if size_bytes == 0:  # no lines
            return Staged((), ())
        session = self._opened()
        with (
            self._explained(shape, session),
            described(session, self._settings, f"headgate: land {shape.stream}"),
        ):
            return self._written(session, job, reader, size_bytes)

    def _written(self, session: SparkSession, job: Job, reader: Reader, size_bytes: int) -> Staged:
        """Once; of Avro once more, if that showed a schema that is new to us."""
        asked = set[int]()
        while True:
            frame = reader.frame(session, job)
            decoders = self._decoders(job.shape, frame, asked)
            judged = _judged(job.shape, frame, self._has_quick, decoders)
            rows = _laid_out(job, judged, size_bytes, self._cores(session))
            _write(job, rows, self._shelf.url, self._weights.records_max(job))
            sizes_bytes = self._shelf.files(job.folder)
            staged = _counted(session, job, rows.schema, self._shelf, sizes_bytes, self._has_quick)
            if not self._is_more_known(session, job, rows.schema, staged, asked):
                self._learn(job.shape, staged, sizes_bytes)
                return _parted(job, staged, self._shelf)
            self._shelf.remove(job.folder)  # nobody was told of it

    def _decoders(self, shape: Shape, frame: DataFrame, asked: set[int]) -> tuple[Decoder, ...]:
        """With the schemas that are known; of the first records they are asked for."""
        coding = shape.avro
        if coding is None:
            return ()
        schemas, wanted = self._schemas_of(shape), verdict.wanted_of_avro(shape)
        if not coding.is_by_id:
            return decoders_of(schemas.known(coding.place), wanted, is_by_id=False)
        seen = self._ids.setdefault((shape.stream, coding.place), set())
        if not seen and not asked:
            first = frame.limit(RECORDS_LOOKED_AT).select(fn.expr(verdict.schema_id(shape)))
            asked |= {row[0] for row in first.distinct().collect() if row[0] is not None}
            seen |= {*schemas.learn(coding.place, asked)}
        known = schemas.known(coding.place)
        return decoders_of({one: known[one] for one in {*seen}}, wanted, is_by_id=True)

    def _is_more_known(
        self, session: SparkSession, job: Job, schema: StructType, staged: Staged, asked: set[int]
    ) -> bool:
        """Whether records were taken for those of an unknown schema, and it is known now."""
        coding = job.shape.avro
        if coding is None or not coding.is_by_id or all(one.kind != "dead" for one in staged.files):
            return False
        rows = _staged_rows(session, job, schema, self._shelf.url)
        is_unknown = fn.expr(f"{staged_rows.HEADGATE}.reason = {text(verdict.UNKNOWN_SCHEMA)}")
        ids = rows.where(is_unknown).select(f"{staged_rows.HEADGATE}.schema_id").distinct()
        found = {row[0] for row in ids.limit(IDS_MAX + len(asked) + 1).collect()} - asked
        if len(found) > IDS_MAX:
            raise Invalid(
                f"stream {job.shape.stream}: one round has more than {IDS_MAX:,} ids of schemas "
                "that nobody knows, so its records are hardly Avro with such a frame; nothing was "
                "landed; next: correct source.format and source.framing in the settings"
            )
        asked |= found
        new = self._schemas_of(job.shape).learn(coding.place, found) if found else {}
        self._ids[job.shape.stream, coding.place] |= {*new}
        return bool(new)

    def _schemas_of(self, shape: Shape) -> Schemas:
        if self._schemas is None:
            raise Invalid(f"stream {shape.stream}: nobody here knows schemas of Avro")
        return self._schemas

    def _learn(self, shape: Shape, staged: Staged, sizes_bytes: Mapping[str, int]) -> None:
        landed = [file for file in staged.files if file.kind in ("data", "late")]
        rows = sum(file.rows for file in landed)
        self._weights.learn(shape, [sizes_bytes[file.path] for file in landed], rows)

    def close(self) -> None:
        with self._alone:
            session, self._session = self._session, None
            if session is not None and self._is_started_here:
                stop(session)

    def _opened(self) -> SparkSession:
        """Raises Invalid (Java, settings), Unavailable."""
        with self._alone:
            if self._session is None or is_over(self._session):
                session, self._is_started_here = start(self._settings)
                self._has_quick = is_installed(session, is_remote=bool(self._settings.remote))
                self._session = session
            return self._session

    def _forget(self, session: SparkSession) -> None:
        """The next job starts another."""
        with self._alone:
            if self._session is session:
                self._session = None
                bury(session)

    def _cores(self, session: SparkSession) -> int:
        if self._settings.remote:
            return TASKS_UNSHUFFLED_MAX  # Connect does not tell
        return int(session.sparkContext.defaultParallelism)

    @contextmanager
    def _explained(self, shape: Shape, session: SparkSession) -> Iterator[None]:
        what = f"stream {shape.stream}: the Spark job failed"
        try:
            yield
        except (HeadgateError, JobFailed):
            raise
        except (PySparkException, Py4JError, OSError, AttributeError) as error:
            if isinstance(error, AttributeError) and not is_over(session):
                raise  # pyspark empties what is stopped; this is another
            talk = talk_of(error)
            given_up = why_given_up(session)
            cause = given_up or short_cause(talk)
            log.debug("spark.failed", extra={"stream": shape.stream, "trace": talk})
            if is_over(session) or is_gone(error):
                self._forget(session)
                raise Unavailable(
                    f"{what}: its session is gone ({cause}), nothing was landed; next: try "
                    "again, another one is started"
                ) from error
            if has_no_room(talk):
                raise Unavailable(
                    f"{what}: {cause}, nothing was landed; next: "
                    f"df -h {quote(self._shelf.url.removeprefix(LOCAL))}"
                ) from error
            if is_about_settings(talk, is_analysis=isinstance(error, AnalysisException)):
                how = shape.event_time
                raise Invalid(
                    f"stream {shape.stream}: Spark refuses event_time {how.by} {how.text!r} "
                    f"({cause}); next: correct it in the settings"
                ) from error
            raise JobFailed(f"{what}: {cause}") from error


def _are_in_files(shape: Shape) -> bool:
    """Its columns stand in files, and none was read yet."""
    return shape.format in ("csv", "parquet") and not shape.columns


def _may_stand_in_files(shape: Shape, error: AnalysisException) -> bool:
    """Whether Spark only misses a name, and no file was read that could have it."""
    return _are_in_files(shape) and "[UNRESOLVED_COLUMN" in talk_of(error)


def _judgeable(shape: Shape) -> list[Shape]:
    """What can be judged by itself: a name that only files know must not hide the rest."""
    if not _are_in_files(shape):
        return [shape]
    by_column = shape.event_time.by == "column"
    times = [] if by_column else [replace(shape, filters=())]
    return [*times, replace(shape, event_time=_ANY_TIME)]


def _judged(
    shape: Shape, lines: DataFrame, has_quick: bool, decoders: Sequence[Decoder] = ()
) -> DataFrame:
    """Each line with its kind and hour. One step a select: then each is evaluated only once."""
    frame = lines
    for column, expression in verdict.before_event_time(
        shape, by_function=has_quick, decoders=decoders
    ):
        frame = frame.withColumn(column, fn.expr(expression))
    frame = _with_found(shape, frame, decoders)
    spark_type = frame.schema["found"].dataType.simpleString()
    if shape.filters:
        frame = _with_output(shape, frame)
    for column, expression in verdict.after_event_time(shape, spark_type):
        frame = frame.withColumn(column, fn.expr(expression))
    return frame


def _with_found(shape: Shape, frame: DataFrame, decoders: Sequence[Decoder]) -> DataFrame:
    if shape.event_time.by != "sql":
        return frame.withColumn("found", fn.expr(verdict.found(shape, decoders)))
    found = f"CASE WHEN {verdict.HEADGATE}.flaw IS NULL THEN ({shape.event_time.text}) END"
    told = _as_they_see_it(shape, frame).select(
        f"{verdict.HEADGATE}.*", fn.expr(found).alias("found")
    )
    given = told.schema["found"].dataType.simpleString()
    if given.startswith(_NO_TIMES):
        raise Invalid(
            f"stream {shape.stream}: event_time sql {shape.event_time.text!r} gives a {given}, and "
            "must give a time, a number or a text; next: correct it in the settings"
        )
    return told


def _with_output(shape: Shape, frame: DataFrame) -> DataFrame:
    """Raises Invalid: a filter that Spark refuses, or that is no condition."""
    seen = _as_they_see_it(shape, frame)
    for output, condition in shape.filters:
        what = f"stream {shape.stream}: the filter of output {output}, {condition!r},"
        try:
            (given,) = seen.select(fn.expr(f"({condition})").alias("holds")).schema.fields
        except (AnalysisException, ParseException) as error:
            if _may_stand_in_files(shape, error):
                continue
            cause = short_cause(talk_of(error))
            raise Invalid(f"{what} is refused by Spark ({cause}); next: correct it") from error
        if given.dataType.simpleString() not in ("boolean", "void"):
            words = f"gives a {given.dataType.simpleString()}, and must be true or false"
            raise Invalid(f"{what} {words}; next: correct it in the settings")
    return seen.select(f"{verdict.HEADGATE}.*", fn.expr(verdict.output(shape)).alias("output"))


def _as_they_see_it(shape: Shape, frame: DataFrame) -> DataFrame:
    """Expressions of the settings see the columns of the source, and ours only as one beside."""
    if shape.format.endswith("parquet"):
        theirs = [fn.col(f"row.{name(field)}") for field in _columns_of(frame)]
    elif verdict.is_csv(shape):
        theirs = [fn.col(f"fields.c{n}").alias(c) for n, c in enumerate(shape.columns)]
    else:
        theirs = [fn.col("raw").alias("value")]
    if verdict.is_log(shape):
        stamp = fn.expr("timestamp_millis(stamp_ms)").alias("timestamp")
        theirs += [stamp, fn.col("partition"), fn.col("number").alias("offset")]
    elif verdict.is_of_log(shape):  # driven in again: some know their time, none its offset
        stamp = fn.expr("timestamp_millis(stamp_ms)").alias("timestamp")
        types = {"partition": "string", "offset": "bigint"}
        theirs += [stamp, *(fn.lit(None).cast(one).alias(column) for column, one in types.items())]
    ours = fn.struct(*[fn.col(column) for column in frame.columns]).alias(verdict.HEADGATE)
    return frame.select(ours, *theirs)


def _laid_out(job: Job, judged: DataFrame, size_bytes: int, cores: int) -> DataFrame:
    """The rows as they are written: in few large files, however many files were read."""
    own = _columns_of(judged) if job.shape.format.endswith("parquet") else ()
    told = {"shard": "label", "headgate_kind": "kind", "headgate_hour": "CAST(hour AS INT)"}
    told[_OUTPUT] = "CASE WHEN reason IS NULL THEN output END"
    folders = [f"{told[folder]} AS {folder}" for folder in _made_of_rows(job)]
    rows = judged.selectExpr(*staged_rows.columns(job.shape, own), *folders)
    # Smaller files are made by each task of its own rows: more tasks would make more of every hour.
    a_task_bytes = max(TARGET_BYTES, job.shape.target_bytes)
    tasks = min(math.ceil(size_bytes / a_task_bytes), cores)
    if tasks <= TASKS_UNSHUFFLED_MAX:
        return rows.coalesce(tasks)  # cheaper than to send every row to the task of its hour
    return rows.hint("rebalance", *[fn.col(folder) for folder in _made_of_rows(job)])


def _made_of_rows(job: Job) -> tuple[str, ...]:
    """Of one shard, one folder less is to be found out for every row."""
    return _folders(job)[1:] if len(job.inputs) == 1 else _folders(job)


def _folders(job: Job) -> tuple[str, ...]:
    return (*_FOLDERS, _OUTPUT) if job.shape.filters else _FOLDERS


def _write(job: Job, rows: DataFrame, root: str, records_max: int) -> None:
    """`records_max`: of one file; 0: however many."""
    only = f"/shard={job.inputs[0].label}" if len(job.inputs) == 1 else ""
    url = write_below(root, f"{job.folder}{only}")
    shape = job.shape
    writer = rows.write.mode("error").partitionBy(*_made_of_rows(job))
    writer = writer.option("maxRecordsPerFile", str(records_max))
    writer = writer.option("compression", codecs.for_spark(shape.land_as, shape.codec))
    if shape.land_as == "parquet":
        columns = [column for column in rows.columns if column not in _folders(job)]
        writer = writer.options(
            **staged_rows.parquet_options(columns, is_of_log=verdict.is_log(shape))
        )
        writer.parquet(url)
    elif shape.land_as == "avro":
        writer.format("avro").save(url)
    else:
        writer.option("lineSep", "\n").text(url)


def _counted(
    session: SparkSession,
    job: Job,
    schema: StructType,
    shelf: Shelf,
    files: Collection[str],
    has_quick: bool,
) -> Staged:
    """What is there now, from the files themselves."""
    if not files:
        return Staged((), ())
    tallies, rows_by_file = _tallied(session, job, schema, shelf.url, [*files], has_quick)
    is_told = job.shape.land_as in ("parquet", "avro")
    staged = tuple(
        _staged(job, file, rows_in(shelf, file) if is_told else rows_by_file.get(file, 0))
        for file in files
    )
    if sum(file.rows for file in staged) != sum(tally.rows for tally in tallies):
        raise JobFailed(
            f"stream {job.shape.stream}: what was staged in {job.folder} changed while it was "
            "counted; next: try again"
        )
    return Staged(staged, tallies)


def _parted(job: Job, staged: Staged, shelf: Shelf) -> Staged:
    """What was written together, each shard's in its own folder if it has one. Raises JobFailed."""
    homes = {one.label: one.folder for one in job.inputs if one.folder}
    for label in {file.label for file in staged.files}.intersection(homes):
        # Not there any more: swept, by who holds the first of these shards by now.
        shelf.move(f"{job.folder}/shard={label}", homes[label])
    files = tuple(
        replace(file, path=f"{homes[file.label]}{file.path.removeprefix(_together(job, file))}")
        if file.label in homes
        else file
        for file in staged.files
    )
    return replace(staged, files=files)


def _together(job: Job, file: StagedFile) -> str:
    return f"{job.folder}/shard={file.label}"


def _tallied(
    session: SparkSession,
    job: Job,
    schema: StructType,
    root: str,
    files: Sequence[str],
    has_quick: bool,
) -> tuple[tuple[Tally, ...], dict[str, int]]:
    """By input file; and the rows of each staged file, if its format does not tell them."""
    has_columns = staged_rows.has_columns(job.shape)
    staged = _staged_rows(session, job, schema, root)
    path = fn.lit("") if has_columns else fn.col("_metadata.file_path")
    whole = staged_rows.HEADGATE if has_columns else "value"
    of_shard, of_kind = (_told_by(one, files) for one in ("shard", "headgate_kind"))
    staged = staged.select(
        whole, of_shard.alias("shard"), of_kind.alias("kind"), path.alias("path")
    )
    rows = _identified(job.shape, staged, has_quick)
    if verdict.is_log(job.shape):  # by buckets of offsets
        rows = rows.withColumn("line", fn.col("number")).withColumn(
            "number", fn.expr(f"number - pmod(number, {OFFSETS_TALLIED})")
        )
    counted = rows.groupBy("path", "shard", "kind", "partition", "number").agg(
        fn.count("*").alias("rows"),
        fn.min("line").alias("line_min"),
        fn.max("line").alias("line_max"),
        fn.max("ms").alias("ms"),
        fn.min("ms").alias("ms_min"),
    )
    tallies, by_file = dict[tuple[str, str, str, int], Tally](), dict[str, int]()
    for row in counted.collect():
        kind = _KINDS[row["kind"]]
        file = path_below(root, row["path"])
        by_file[file] = by_file.get(file, 0) + row["rows"]
        has_time = kind in ("data", "late")
        one = Tally(
            row["shard"], row["partition"], row["number"], kind, row["rows"], row["line_min"],
            row["line_max"], row["ms"] if has_time else None, row["ms_min"] if has_time else None,
        )  # fmt: skip
        key = (one.label, one.kind, one.partition, one.number)
        tallies[key] = _joined(tallies[key], one) if key in tallies else one
    arrivals = _arrivals(job)
    clamped = (
        one if one.event_ms_max is None else replace(one, event_ms_max=min(
            one.event_ms_max, arrivals(one)))
        for one in tallies.values()
    )  # fmt: skip
    order = attrgetter("label", "partition", "number", "kind")
    return tuple(sorted(clamped, key=order)), by_file


def _staged_rows(session: SparkSession, job: Job, schema: StructType, root: str) -> DataFrame:
    """What was written, read again."""
    folder = read_below(root, job.folder)
    plain = [field for field in schema if field.name not in _folders(job)]
    typed = StructType([*plain, *(StructField(one, StringType()) for one in _folders(job))])
    reader = session.read.schema(typed)
    if job.shape.land_as == "parquet":
        return reader.parquet(folder)
    if job.shape.land_as == "avro":
        return reader.format("avro").load(folder)
    return reader.option("lineSep", "\n").text(folder)


def _arrivals(job: Job) -> Callable[[Tally], int]:
    """When the records of a tally were there, at the latest."""
    if verdict.is_log(job.shape):
        seen = {
            (shard.label, one.partition): one.seen_ms for shard in job.inputs for one in shard.spans
        }
        return lambda tally: seen[tally.label, tally.partition]
    files = {
        (shard.label, file.partition, file.number): file.arrival_ms
        for shard in job.inputs
        for file in shard.files
    }
    return lambda tally: files[tally.label, tally.partition, tally.number]


def _told_by(folder: str, files: Sequence[str]) -> Column:
    """What the folder says of a row. If it says the same of all, as mostly, rows need not be told
    apart by it."""
    values = {_place(file)[folder] for file in files}
    return fn.lit(*values) if len(values) == 1 else fn.col(folder)


def _identified(shape: Shape, staged: DataFrame, has_quick: bool) -> DataFrame:
    """Each staged row with `partition`, `number`, `line` and `ms`, its event time."""
    # At once: none of them needs another, and each select takes Spark a while to look at.
    told = {column: fn.expr(expression) for column, expression in staged_rows.identity(shape)}
    found = staged.withColumns(told)
    if shape.land_as != "text" or verdict.tells_time(shape):
        return found
    # A line of a file's text does not say its event time: it is taken again from what was staged.
    kept = found.withColumnRenamed("kind", "staged_kind")
    unsorted = replace(shape, filters=())  # where it went is known
    return _judged(unsorted, kept, has_quick).drop("kind").withColumnRenamed("staged_kind", "kind")


def _joined(one: Tally, other: Tally) -> Tally:
    latest = [t.event_ms_max for t in (one, other) if t.event_ms_max is not None]
    earliest = [t.event_ms_min for t in (one, other) if t.event_ms_min is not None]
    return replace(
        one,
        rows=one.rows + other.rows,
        line_min=min(one.line_min, other.line_min),
        line_max=max(one.line_max, other.line_max),
        event_ms_max=max(latest, default=None),
        event_ms_min=min(earliest, default=None),
    )


def _staged(job: Job, path: str, rows: int) -> StagedFile:
    place = _place(path)
    hour, number = place["headgate_hour"], place.get(_OUTPUT, verdict.NO_HOUR)
    hour_ms = None if hour == verdict.NO_HOUR else int(hour) * HOUR_MS
    output = "" if number == verdict.NO_HOUR else job.shape.filters[int(number)][0]
    return StagedFile(path, place["shard"], _KINDS[place["headgate_kind"]], hour_ms, rows, output)


def _place(file: str) -> dict[str, str]:
    """What the folders of a staged file say."""
    folders = file.split("/")[:-1]
    count = len(_FOLDERS) + folders[-1].startswith(f"{_OUTPUT}=")
    told = (folder.split("=", 1) for folder in folders[-count:])
    return {name: unquote(value) for name, value in told}


def _columns_of(frame: DataFrame) -> tuple[str, ...]:
    """Of a Parquet source."""
    row = frame.schema["row"].dataType
    return tuple(row.names) if isinstance(row, StructType) else ()
