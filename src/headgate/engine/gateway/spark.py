"""Spark: a session by settings, started once; stopped, or buried if its Java process is gone."""

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import pyspark
from py4j.protocol import (  # type: ignore[import-untyped] # it has no types
    Py4JError,
    Py4JJavaError,
)
from pyspark.core.context import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.engine import SparkSettings
from headgate.engine.causes import short_cause
from headgate.engine.java import require_java
from headgate.engine.packages import coordinates
from headgate.errors import Invalid, Unavailable

TARGET_BYTES: Final = 128_000_000  # of input for one task, and of a staged file

_NEVER_SPLIT = str(1 << 40)
FIXED: Final = {
    # A file is a task of its own and never split: else a line would have no number.
    "spark.sql.files.maxPartitionBytes": _NEVER_SPLIT,
    "spark.sql.files.openCostInBytes": _NEVER_SPLIT,
    # A file that is missing or damaged fails the job; skipped, its records would be lost.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # Longer lines would be dropped before anybody could count them.
    "spark.hadoop.mapreduce.input.linerecordreader.line.maxlength": str(2**31 - 1),
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    # Whoever reads the lake reads these; the older kind ends in the year 2262 for many.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
REFUSED: Final = frozenset({"spark.sql.files.maxPartitionNum"})
_DEFAULTS: Final = {
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": str(TARGET_BYTES),
    "spark.sql.maxConcurrentOutputFileWriters": "8",
}
_DEFAULTS_AT_START: Final = {
    "spark.app.name": "headgate",
    # The one that keeps checksums beside files cannot read a name with a colon; ours are our own.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
_DRIVER_MEMORY: Final = "2g"  # a line of 50 MB is held several times on its way

log = logging.getLogger(__name__)


def check(settings: SparkSettings) -> None:
    """Raises Invalid."""
    for key in REFUSED.intersection(settings.conf):
        raise Invalid(
            f"spark conf {key}: would put several files into one task, and lines would have no "
            "numbers; next: take it out of the settings"
        )
    for key, needed in FIXED.items():
        if settings.conf.get(key, needed) != needed:
            raise Invalid(
                f"spark conf {key}: Headgate needs it to be {needed}; next: take it out of the "
                "settings"
            )


def start(settings: SparkSettings, needs: tuple[str, ...] = ()) -> tuple[SparkSession, bool]:
    """A session, and whether it was started here. Raises Invalid (Java), Unavailable."""
    sql = {**_DEFAULTS, **settings.conf, **FIXED}
    if not settings.remote:
        there = SparkSession._instantiatedSession  # noqa: SLF001 - the public one is by thread
        if there is not None:  # of whoever uses us as a library: theirs to stop
            session = there.newSession()
            for key, value in sql.items():
                if key.startswith("spark.sql.") and session.conf.isModifiable(key):
                    session.conf.set(key, value)
            return session, False
        require_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable  # else workers start with another Python
    at_start = {**_DEFAULTS_AT_START, **sql}
    if settings.master.startswith("local"):
        at_start.setdefault("spark.driver.memory", _DRIVER_MEMORY)
    jars = coordinates(pyspark.__version__, needs, settings.packages)
    if jars:
        at_start["spark.jars.packages"] = ",".join(jars)
    builder = SparkSession.builder
    builder = (
        builder.remote(settings.remote) if settings.remote else builder.master(settings.master)
    )
    for key, value in at_start.items():
        builder = builder.config(key, value)
    where = settings.remote or settings.master
    try:
        session = builder.getOrCreate()
        if not settings.remote:
            session.sparkContext.setLogLevel(at_start["spark.log.level"])
    except (PySparkException, Py4JError, OSError) as error:
        talk = talk_of(error)
        log.debug("spark.not_started", extra={"where": where, "trace": talk})
        raise Unavailable(
            f"Spark at {where} does not start: {short_cause(talk)}; nothing was read. Next: try "
            "again, or correct spark: in the settings"
        ) from error
    log.info("spark.started", extra={"where": where, "version": session.version})
    return session, True


def stop(session: SparkSession) -> None:
    with warnings.catch_warnings(), suppress(Py4JError, PySparkException, OSError):
        warnings.simplefilter("ignore")  # of a Java process that is gone already
        session.stop()


def bury(session: SparkSession) -> None:
    """Its Java process is gone. pyspark would hold on to it for ever, and has no public way to let
    go; `_jvm` is only emptied here, never asked."""
    stop(session)
    if SparkContext._gateway is not None:  # noqa: SLF001
        with suppress(Py4JError, OSError):
            SparkContext._gateway.shutdown()  # noqa: SLF001
    for holder, names in (
        (SparkContext, ("_gateway", "_jvm", "_active_spark_context")),
        (SparkSession, ("_instantiatedSession", "_activeSession")),
    ):
        for name in names:
            setattr(holder, name, None)


def is_gone(error: BaseException) -> bool:
    """Whether this says that the Java process, or the way to it, is gone."""
    return isinstance(error, OSError | Py4JError) and not isinstance(error, Py4JJavaError)


def talk_of(error: BaseException) -> str:
    """All that it says, its Java stack trace as well."""
    try:
        return str(error)
    except (Py4JError, OSError, AssertionError):  # asks the Java process, which may be gone
        return type(error).__name__


@contextmanager
def described(session: SparkSession, settings: SparkSettings, what: str) -> Iterator[None]:
    """Jobs of this thread are shown to people under this name."""
    if settings.remote:
        session.addTag(what)
        try:
            yield
        finally:
            session.removeTag(what)
        return
    session.sparkContext.setJobGroup(what, what)
    yield
