"""Spark: a session by settings, started once; stopped, or buried if its Java process is gone.

master   a driver in this process: local[…], or a cluster's like spark://host:7077
remote   a session on a Spark Connect server; the driver, its jars and its memory are the server's
"""

import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary, WeakSet

import pyspark
from py4j.protocol import (  # type: ignore[import-untyped] # it has no types
    Py4JError,
    Py4JJavaError,
)
from pyspark.core.context import SparkContext
from pyspark.errors import PySparkException, PySparkImportError, RetriesExceeded
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from headgate.engine import SparkSettings
from headgate.engine.causes import has_no_room, short_cause
from headgate.engine.failure import JobFailed
from headgate.engine.java import require_java
from headgate.engine.packages import coordinates, jars, left_out
from headgate.errors import HeadgateError, Invalid, Unavailable

if TYPE_CHECKING:  # they need packages that only Connect does
    from pyspark.sql.connect.client import SparkConnectClient
    from pyspark.sql.connect.client.retries import RetryPolicy

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
    # Newer lines would make one task of parts that are to become one file each.
    "spark.sql.unionOutputPartitioning": "false",
}
REFUSED: Final = frozenset({"spark.sql.files.maxPartitionNum"})
_DEFAULTS: Final = {
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": str(TARGET_BYTES),
    "spark.sql.maxConcurrentOutputFileWriters": "8",
    # Counts are few rows; what is large is parted further as it goes.
    "spark.sql.shuffle.partitions": "16",
    # Without kafka: by the older way each of its records becomes an object of Java twice.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
}
_DEFAULTS_AT_START: Final = {
    "spark.app.name": "headgate",
    # The one that keeps checksums beside files cannot read a name with a colon; ours are our own.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # No other job comes back to a Kafka consumer, nor to the records that it fetched last: for five
    # minutes both would be kept, of every partition.
    **{
        f"spark.kafka.consumer.{cache}.{setting}": "15s"
        for cache in ("cache", "fetchedData.cache")
        for setting in ("timeout", "evictorThreadRunInterval")
    },
}
_LEVEL: Final = "spark.log.level"
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_TALKERS: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")  # of pyspark itself
_ONE_AT_A_TIME: Final = threading.Lock()
_DRIVER_MEMORY: Final = "2g"  # a line of 50 MB is held several times on its way
_REMOTE: Final = "sc://"
_KNOCKS_MAX: Final = 5  # at a Connect server that does not answer: about ten seconds in all
_KNOCK_MS_MAX: Final = 5_000
_SESSION_LOST: Final = (
    "INVALID_HANDLE.SESSION",  # a Connect server that was restarted
    "SESSION_CHANGED",
    "stopped SparkContext",  # a driver that lost its cluster, and gave up
    "SparkContext was shut down",
    "Master removed our application",
)

_GIVEN_UP: Final = WeakKeyDictionary[SparkContext, str]()  # why
_OWN: Final = WeakSet[SparkContext]()  # started here
_OVER: Final = WeakSet[SparkContext]()  # stopped here

log = logging.getLogger(__name__)


def check(settings: SparkSettings) -> None:
    """Raises Invalid."""
    if settings.remote and not settings.remote.startswith(_REMOTE):
        raise Invalid(
            "spark remote: is no Spark Connect server, which is written sc://HOST:PORT; next: "
            "correct it, or leave it out and set master"
        )
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


def start(settings: SparkSettings) -> tuple[SparkSession, bool]:
    """A session, and whether it was started here. Raises Unavailable."""
    sql = {**_DEFAULTS, **settings.conf, **FIXED}
    if not settings.remote:
        there = SparkSession._instantiatedSession  # noqa: SLF001 - the public one is by thread
        if there is not None and not is_over(there):
            # Of whoever uses us as a library, or of another part of us: theirs to stop.
            session = there.newSession()
            _set(session, sql)
            return session, False
        _require_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable  # else workers start with another Python
    where = "the Connect server" if settings.remote else settings.master  # its URL may have a token
    try:
        session = _connected(settings, sql) if settings.remote else _driven(settings, sql)
    except PySparkImportError as error:
        raise Unavailable(
            f"Spark Connect needs Python packages that are missing: {short_cause(str(error))}; "
            "nothing was read. Next: pip install 'headgate[connect]'"
        ) from error
    except (PySparkException, Py4JError, OSError) as error:
        talk = talk_of(error)
        log.debug("spark.not_started", extra={"where": where, "trace": talk})
        raise Unavailable(
            f"Spark at {where} does not start: {short_cause(talk)}; nothing was read. Next: try "
            "again, or correct spark: in the settings"
        ) from error
    log.info("spark.started", extra={"where": where, "version": session.version})
    return session, True


def _driven(settings: SparkSettings, sql: Mapping[str, str]) -> SparkSession:
    """By a driver of our own."""
    at_start = quieted({**_DEFAULTS_AT_START, **sql})
    if _LEVEL not in at_start:
        for talker in _TALKERS:  # an error is raised, and told by who asked
            PySparkLogger.getLogger(talker).setLevel(logging.CRITICAL + 1)
    if settings.master.startswith("local"):
        at_start.setdefault("spark.driver.memory", _DRIVER_MEMORY)
    fetched = coordinates(pyspark.__version__, settings.needs, settings.packages)
    if fetched:
        at_start["spark.jars.packages"] = ",".join(fetched)
    if own := jars(settings.packages):
        named = at_start.get("spark.jars", "").split(",")
        at_start["spark.jars"] = ",".join(filter(None, (*named, *own)))
    unneeded = left_out(settings.needs, settings.packages)
    if unneeded:
        at_start.setdefault("spark.jars.excludes", ",".join(unneeded))
    builder = SparkSession.builder.master(settings.master)
    for key, value in at_start.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    _OWN.add(session.sparkContext)
    if _LEVEL in at_start:
        session.sparkContext.setLogLevel(at_start[_LEVEL])
    return session


def _connected(settings: SparkSettings, sql: Mapping[str, str]) -> SparkSession:
    """On a server, and nobody else's: `getOrCreate` would share one, which somebody would stop."""
    session: SparkSession = SparkSession.builder.remote(settings.remote).create()
    from pyspark.sql.connect.client.retries import DefaultPolicy

    # Its own default knocks for ten minutes, while a node that stops would wait for it.
    _knock(session, [DefaultPolicy(max_retries=_KNOCKS_MAX, max_backoff=_KNOCK_MS_MAX)])
    _set(session, sql)
    return session


def _knock(session: SparkSession, policies: "list[RetryPolicy]") -> None:
    """How often at a Connect server that does not answer. Raises PySparkException: it is none."""
    client: SparkConnectClient = cast(Any, session).client  # typed in a way that nobody can call
    client.set_retry_policies(policies)


def _set(session: SparkSession, conf: Mapping[str, str]) -> None:
    """What a session may set for itself; the rest was decided when its driver started."""
    for key, value in conf.items():
        if key.startswith("spark.sql.") and session.conf.isModifiable(key):
            session.conf.set(key, value)


def _require_java() -> None:
    """Another node may have one. Raises Unavailable."""
    try:
        require_java()
    except Invalid as error:
        raise Unavailable(str(error)) from error


def quieted(conf: Mapping[str, str]) -> dict[str, str]:
    """With our own log settings for the Java process, unless a level or a file of somebody's own is
    given: who failed is told by who asked, and not by every task in pages of Java. Pure."""
    options = conf.get(_JAVA_OPTIONS, "")
    if _LEVEL in conf or "log4j" in options:
        return dict(conf)
    place = Path(__file__).with_name("log4j2.properties").as_uri()
    return {**conf, _JAVA_OPTIONS: f"-Dlog4j2.configurationFile={place} {options}".strip()}


def stop(session: SparkSession) -> None:
    context = _context_of(session)
    if context is not None:
        _OVER.add(context)
    with warnings.catch_warnings(), suppress(Py4JError, PySparkException, OSError):
        warnings.simplefilter("ignore")  # of a Java process that is gone already
        session.stop()


def own_context() -> SparkContext | None:
    """Of the driver that was started here and is not stopped."""
    active = SparkContext._active_spark_context  # noqa: SLF001 - the public one would start one
    return active if active is not None and active in _OWN else None


def give_up(why: str) -> None:
    """Ends the driver that was started here, from any thread: whoever waits for one of its jobs is
    told that the session is gone."""
    context = own_context()
    if context is not None:
        _GIVEN_UP[context] = why
        _OVER.add(context)
        with suppress(Py4JError, OSError):
            context.stop()


def why_given_up(session: SparkSession) -> str:
    """Empty: it was not."""
    context = _context_of(session)
    return "" if context is None else _GIVEN_UP.get(context, "")


def is_over(session: SparkSession) -> bool:
    """Whether its driver was stopped here, maybe by somebody else who has a session of it."""
    context = _context_of(session)
    return context is not None and context in _OVER


def _context_of(session: SparkSession) -> SparkContext | None:
    """None: of Connect."""
    with suppress(PySparkException):
        return session.sparkContext
    return None


def bury(session: SparkSession) -> None:
    """Its Java process is gone. pyspark would hold on to it for ever, and has no public way to let
    go; `_jvm` is only emptied here, never asked."""
    with suppress(PySparkException):  # a driver of our own has nobody to knock at
        _knock(session, [])
    context = _context_of(session)
    stop(session)
    if SparkContext._active_spark_context not in (None, context):  # noqa: SLF001
        return  # somebody has started another driver meanwhile
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
    """Whether this says that the Java process, the session, or the way to it, is gone."""
    if isinstance(error, PySparkException | Py4JJavaError):
        told = talk_of(error)
        return isinstance(error, RetriesExceeded) or any(one in told for one in _SESSION_LOST)
    return isinstance(error, OSError | Py4JError)


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
        tag = what.replace(",", " ")  # which would part two tags
        session.addTag(tag)
        try:
            yield
        finally:
            session.removeTag(tag)
        return
    session.sparkContext.setJobGroup(what, what)
    yield


class Sessions:
    """For whoever moves rows now and then: each move has a session of its own, so that nothing that
    one sets is seen by another."""

    def __init__(self, settings: SparkSettings) -> None:
        """Raises Invalid."""
        check(settings)
        self._settings = settings
        self._alone = threading.Lock()
        self._started: SparkSession | None = None  # here, and so to be stopped here

    def close(self) -> None:
        """Closing twice is fine."""
        with self._alone:
            session, self._started = self._started, None
            if session is not None:
                stop(session)

    @contextmanager
    def opened(self, what: str, unchanged: str, place: str) -> Iterator[SparkSession]:
        """`unchanged`: what a failure means; `place`: where there may be no room. Raises
        Unavailable, JobFailed, and what of ours is raised inside."""
        with self._alone:
            session, is_started_here = start(self._settings)
            if is_started_here and not self._settings.remote:
                self._started = session
        try:
            with self._let_go(session), described(session, self._settings, what):
                yield session
        except (HeadgateError, JobFailed):
            raise
        except (PySparkException, Py4JError, OSError, AttributeError) as error:
            if isinstance(error, AttributeError) and not is_over(session):
                raise  # pyspark empties what is stopped; this is another
            talk = talk_of(error)
            given_up = why_given_up(session)
            cause = given_up or short_cause(talk)
            log.debug("spark.failed", extra={"what": what, "trace": talk})
            if is_over(session) or is_gone(error):
                with self._alone:
                    self._started = None
                    bury(session)
                raise Unavailable(
                    f"{what}: its session is gone ({cause}), {unchanged}; next: try again, "
                    "another one is started"
                ) from error
            if has_no_room(talk):
                raise Unavailable(
                    f"{what}: {cause}, {unchanged}; next: df -h {quote(place)}"
                ) from error
            raise JobFailed(cause) from error

    @contextmanager
    def _let_go(self, session: SparkSession) -> Iterator[None]:
        """Of a Connect server each move has a session, which the server keeps until it is told."""
        try:
            yield
        finally:
            if self._settings.remote:
                stop(session)


def data_files(folder: str) -> list[str]:
    """Names of what Spark wrote there, without what is hidden. Raises JobFailed: somebody took the
    folder away."""
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise JobFailed(f"{folder}: cannot be listed ({error.strerror})") from error
    return sorted(name for name in names if not name.startswith(("_", ".")))
