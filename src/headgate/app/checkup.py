"""Checkup: whether the source of a stream can be read, and what comes from it. Changes nothing.

A finding is `ok`, `warn` (it can be read, and somebody should know) or `bad`. Expressions in SQL
are judged by Spark. What a record becomes is, too, with the expressions that land it: only if asked
for.
"""

import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BufferedReader
from itertools import islice
from shlex import quote

from headgate.app.preview import Ahead
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.streams import StreamDocument, stream_key
from headgate.engine.footers import values_of
from headgate.errors import Corrupt, Halted, HeadgateError, Unavailable
from headgate.landing import StreamSettings
from headgate.sources import FilesSettings, KafkaSettings
from headgate.sources.kafka import Bounds, Keeping, ShowingCluster, Shown, Topic, TopicPartition
from headgate.sources.kafka.document import KafkaDocument, document_key, parsed_name
from headgate.status import shown_ms
from headgate.status.streams import shards_of
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.store.probe import Finding, Verdict

TEXT_MAX = 200  # characters of a sample
NEWEST = 20  # so many offsets from the end are looked at for a record
CLOCK_WARN_MS = 1_000
AHEAD_WARN_MS = 60_000
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class SampleRecord:
    """A record of the source, and what it would become."""

    partition: str  # of files: the path
    position: str  # the offset, or the line
    stamp_ms: int | None  # the time that a log keeps
    text: str  # its beginning
    event_ms: int | None = None  # as it stands in the record; None: nobody asked Spark, or none
    becomes: str = ""  # on time, or why it is a dead letter; "": nobody asked Spark


@dataclass(frozen=True, slots=True)
class TopicCheck:
    name: str
    id: str
    partitions: int
    first_offsets: tuple[int | None, ...]  # by partition; None: it does not answer
    end_offsets: tuple[int | None, ...]
    stable_offsets: tuple[int | None, ...]
    retention_ms: int | None
    retention_bytes: int | None
    is_compacted: bool
    timestamp_type: str  # "": not known


@dataclass(frozen=True, slots=True)
class Checkup:
    stream: str
    source: str
    findings: tuple[Finding, ...]
    topics: tuple[TopicCheck, ...] = ()
    samples: tuple[SampleRecord, ...] = ()
    columns: tuple[str, ...] = ()  # of files, where a record alone does not say them

    @property
    def is_readable(self) -> bool:
        return all(one.verdict is not Verdict.BAD for one in self.findings)


Judge = Callable[[Sequence[SampleRecord]], Sequence[SampleRecord]]
"""What Spark makes of samples. Raises HeadgateError."""


def _ok(name: str, words: str) -> Finding:
    return Finding(name, Verdict.OK, words)


def _warn(name: str, words: str) -> Finding:
    return Finding(name, Verdict.WARN, words)


def _bad(name: str, words: str) -> Finding:
    return Finding(name, Verdict.BAD, words)


def clock_finding(off_ms: int | None) -> Finding:
    """`off_ms`: this machine's clock is so far ahead of the store's."""
    if off_ms is None:
        return _ok("clock", "not compared with the store's: no node is running")
    if abs(off_ms) <= CLOCK_WARN_MS:
        return _ok("clock", f"{off_ms:+,} ms against the store's")
    side = "ahead of" if off_ms > 0 else "behind"
    return _warn(
        "clock",
        f"this machine's clock is {shown_ms(abs(off_ms))} {side} the store's: records may look "
        "late, or ahead of their time; next: set it by NTP",
    )


# Topics


@dataclass(frozen=True, slots=True)
class _Asked:
    topics: Mapping[str, Topic]
    bounds: Mapping[TopicPartition, Bounds]
    keeping: Mapping[str, Keeping]
    document: KafkaDocument
    positions: Mapping[str, str]


def check_topics(
    stream: StreamSettings,
    source: KafkaSettings,
    cluster: ShowingCluster,
    store: DocumentStore,
    now_ms: int,
) -> Checkup:
    """Raises Unavailable (the store), Corrupt."""
    document = read(store, document_key(stream.name), KafkaDocument)
    known = KafkaDocument() if document is None else document.value
    try:
        topics = cluster.topics(source.topics)
        there = [(name, n) for name, one in topics.items() for n in range(one.partitions)]
        bounds = cluster.bounds(there) if there else {}
        keeping = cluster.keeping([name for name, one in topics.items() if one.id])
    except Unavailable as error:
        return Checkup(stream.name, source.words, (_bad("reachable", str(error)),))
    asked = _Asked(topics, bounds, keeping, known, _positions(stream, store))
    found = [_ok("reachable", source.brokers)]
    samples: list[SampleRecord] = []
    for name in source.topics:
        found += _topic_findings(stream.name, source, name, asked)
        if topics[name].id:
            sample, finding = _sampled(name, asked, source, cluster)
            found.append(finding)
            samples += [] if sample is None else [sample]
            found += _ahead(name, sample, now_ms)
    checks = tuple(_check(name, asked) for name in source.topics)
    return Checkup(stream.name, source.words, tuple(found), checks, tuple(samples))


def _positions(stream: StreamSettings, store: DocumentStore) -> dict[str, str]:
    found = read(store, stream_key(stream.name), StreamDocument)
    shards = shards_of(stream, None if found is None else found.value)
    kept = (read(store, checkpoint_key(stream.name, n), Checkpoint) for n in range(shards))
    return {name: at for one in kept if one is not None for name, at in one.value.positions.items()}


def _topic_findings(
    stream: str, source: KafkaSettings, name: str, asked: _Asked
) -> Iterator[Finding]:
    topic, title = asked.topics[name], f"topic {name}"
    life = asked.document.lives.get(name)
    accept = f"headgate gap accept {quote(stream)}"
    if not topic.id:
        yield _bad(title, topic.why)
        return
    if life is not None and life.id != topic.id:
        yield _bad(
            title,
            "was deleted and made again, and its shards stand still until a person decides; next: "
            f'{accept} {quote(name)} --reason "…"',
        )
        return
    bounds = {n: asked.bounds.get((name, n)) for n in range(topic.partitions)}
    silent = [str(n) for n, one in bounds.items() if one is None]
    records = sum(one.high - one.low for one in bounds.values() if one is not None)
    many = "1 partition" if topic.partitions == 1 else f"{topic.partitions:,} partitions"
    yield _ok(title, f"id {topic.id}, {many}, {records:,} offsets")
    if silent:
        yield _bad(f"{title}: leaders", f"partitions {', '.join(silent)} do not answer now")
    yield _open_transactions(title, source, bounds)
    yield from _expired(name, bounds, asked, source, accept)
    yield from _kept(title, asked.keeping.get(name))


def _open_transactions(
    title: str, source: KafkaSettings, bounds: Mapping[int, Bounds | None]
) -> Finding:
    name = f"{title}: transactions"
    behind = {
        n: one.high - one.stable for n, one in bounds.items() if one and one.stable < one.high
    }
    if not behind:
        return _ok(name, "none is open")
    told = ", ".join(f"{count:,} offsets of partition {n}" for n, count in behind.items())
    if source.isolation == "read_uncommitted":
        return _ok(name, f"open: {told}; they are read all the same (read_uncommitted)")
    return _warn(name, f"open: {told} wait for its end, and no hour is complete before")


def _expired(
    name: str,
    bounds: Mapping[int, Bounds | None],
    asked: _Asked,
    source: KafkaSettings,
    accept: str,
) -> Iterator[Finding]:
    for partition, position in asked.positions.items():
        if "/" not in partition or not position.isdecimal():
            continue
        topic, life, number = parsed_name(partition)
        found = bounds.get(number)
        current = asked.document.lives.get(topic)
        if topic != name or found is None or current is None or current.number != life:
            continue
        if int(position) < found.low and asked.document.accepted.get(partition) != int(position):
            gone = f"offsets {int(position):,} to {found.low - 1:,} expired before they were read"
            if source.out_of_range == "fail":
                following = f'next: {accept} {quote(partition)} --reason "…"'
                yield _bad(f"topic {name}: position", f"{partition}: {gone}; {following}")
            else:
                words = f"{partition}: {gone}; out_of_range: {source.out_of_range}"
                yield _warn(f"topic {name}: position", words)


def _kept(title: str, keeping: Keeping | None) -> Iterator[Finding]:
    name = f"{title}: retention"
    if keeping is None:
        yield _warn(
            name,
            "its settings may not be read, so nobody can tell when records expire; next: give this "
            "user the right DESCRIBE_CONFIGS on it",
        )
        return
    ms, size = keeping.retention_ms, keeping.retention_bytes
    words = "for ever" if ms is None else f"for {shown_ms(ms)}"
    if size is not None:
        yield _warn(
            name,
            f"{words}, and no more than {size:,} bytes of a partition: when those are full, "
            "records that were not read go without a warning",
        )
    elif ms is not None and ms < DAY_MS:
        yield _warn(name, f"{words}: a source that stands still so long loses records")
    else:
        yield _ok(name, words)
    if keeping.is_compacted:
        yield _warn(
            f"{title}: compaction",
            "earlier records of a key are taken away: what was not read by then never lands",
        )
    clock = {
        "CreateTime": "the producers' clocks",
        "LogAppendTime": "the brokers' clocks, when a record was appended",
    }.get(keeping.stamps)
    if clock is not None:
        yield _ok(f"{title}: timestamps", f"{keeping.stamps}: {clock}")


def _sampled(
    name: str, asked: _Asked, source: KafkaSettings, cluster: ShowingCluster
) -> tuple[SampleRecord | None, Finding]:
    """The newest record of the partition that has the most."""
    title = f"topic {name}: read"
    ends = {
        n: (one.low, one.stable if source.isolation == "read_committed" else one.high)
        for n in range(asked.topics[name].partitions)
        if (one := asked.bounds.get((name, n))) is not None
    }
    number = max(ends, key=lambda n: ends[n][1] - ends[n][0], default=None)
    if number is None or ends[number][0] >= ends[number][1]:
        return None, _ok(title, "nothing is in it now, so nobody can tell whether it may be read")
    low, end = ends[number]
    shown: tuple[Shown, ...] = ()
    try:
        for first in dict.fromkeys((max(low, end - NEWEST), low)):
            shown = shown or cluster.shown((name, number), first, NEWEST)
    except Unavailable as error:
        return None, _bad(title, str(error))
    if not shown:
        return None, _ok(title, "it may be read, and has no records but the ends of transactions")
    last = shown[-1]
    sample = SampleRecord(f"{name}/{number}", str(last.offset), last.stamp_ms, _text(last.value))
    return sample, _ok(title, f"it may be read: offset {last.offset:,} of partition {number}")


def _ahead(name: str, sample: SampleRecord | None, now_ms: int) -> Iterator[Finding]:
    stamp_ms = None if sample is None else sample.stamp_ms
    if stamp_ms is not None and stamp_ms > now_ms + AHEAD_WARN_MS:
        yield _warn(
            f"topic {name}: clock",
            f"its newest record is {shown_ms(stamp_ms - now_ms)} ahead of this machine's clock",
        )


def _check(name: str, asked: _Asked) -> TopicCheck:
    topic, kept = asked.topics[name], asked.keeping.get(name)
    bounds = [asked.bounds.get((name, n)) for n in range(topic.partitions)]
    return TopicCheck(
        name,
        topic.id,
        topic.partitions,
        tuple(None if one is None else one.low for one in bounds),
        tuple(None if one is None else one.high for one in bounds),
        tuple(None if one is None else one.stable for one in bounds),
        None if kept is None else kept.retention_ms,
        None if kept is None else kept.retention_bytes,
        kept is not None and kept.is_compacted,
        "" if kept is None else kept.stamps,
    )


def _text(value: bytes | None) -> str:
    return "" if value is None else value.decode("utf-8", "backslashreplace")[:TEXT_MAX]


# Files


def check_files(
    stream: StreamSettings, source: FilesSettings, ahead: Callable[[int], Ahead], shards: int
) -> Checkup:
    """`ahead`: what a holder of a shard would see."""
    path = source.path
    words = _folder_trouble(path)
    if words:
        return Checkup(stream.name, source.words, (_bad("folder", words),))
    found, files, size, unfinished = [_ok("folder", f"{path} is there")], 0, 0, 0
    samples: list[SampleRecord] = []
    columns: tuple[str, ...] = ()
    for shard in range(shards):
        try:
            seen = ahead(shard)
        except (Unavailable, Halted, Corrupt) as error:
            found.append(_bad("read", str(error)))
            continue
        files += seen.waiting.files
        size += seen.waiting.size_bytes
        unfinished += seen.waiting.unfinished
        if seen.waiting.unreadable:
            first = f"{seen.waiting.unreadable:,}, the first of them: {seen.waiting.why}"
            found.append(_bad("unreadable files", first))
        own = [one for one in seen.plan.files if one.partition.startswith(f"{source.prefix}-")]
        if own and not samples:
            sample, finding = _line(source, own[0].path)
            columns = seen.plan.columns
            samples += [] if sample is None else [sample]
            found.append(finding)
    found.append(_ok("waiting", f"{files:,} files, {size:,} bytes"))
    if unfinished:
        words = f"{unfinished:,} files are still being written, or younger than min_age"
        found.append(_warn("unfinished files", words))
    return Checkup(stream.name, source.words, tuple(found), (), tuple(samples), columns)


def _folder_trouble(path: str) -> str:
    if not os.path.isdir(path):
        return f"{path} is not there; next: mount it, or mkdir -p {quote(path)}"
    if not os.access(path, os.R_OK | os.X_OK):
        return f"{path} may not be read by this user; next: ls -ld {quote(path)}"
    return ""


def _line(source: FilesSettings, path: str) -> tuple[SampleRecord | None, Finding]:
    """The first record of a file."""
    try:
        if source.format == "parquet":
            row = next(values_of(path), None)
            text, line = "" if row is None else str(row), 1
        else:
            line = 2 if source.format == "csv" and not source.columns else 1
            with opened(path) as content:
                lines = list(islice(content, line))
            text = _text(lines[-1].rstrip(b"\r\n")) if len(lines) == line else ""
    except (OSError, EOFError, zlib.error, HeadgateError) as error:
        return None, _bad("read", f"{path}: cannot be read ({error}); next: ls -l {quote(path)}")
    sample = SampleRecord(path, str(line), None, text[:TEXT_MAX])
    return sample, _ok("read", f"{path}, line {line}")


def opened(path: str) -> gzip.GzipFile | BufferedReader:
    """Unpacked, if its name says so. Raises OSError."""
    return gzip.open(path) if path.endswith(".gz") else open(path, "rb")


def judged(
    found: Checkup, judge: Judge, *, has_sql: bool = False, is_sampled: bool = True
) -> Checkup:
    """With what Spark makes of its expressions in SQL, if it has some, and of its samples."""
    try:
        samples = tuple(judge(found.samples if is_sampled else ()))
    except HeadgateError as error:
        # Where nobody asked for Spark, there may be none.
        is_harmless = isinstance(error, Unavailable) and not is_sampled
        told_of = "sql" if has_sql else "event time"
        finding = (_warn if is_harmless else _bad)(told_of, str(error))
        return replace(found, findings=(*found.findings, finding))
    if has_sql:
        taken = _ok("sql", "Spark takes its expressions")
        found = replace(found, findings=(*found.findings, taken))
    if not is_sampled:
        return found
    bad = [one for one in samples if one.becomes.startswith("dead")]
    told = [
        _warn("event time", f"{one.partition} {one.position}: it would be {one.becomes}")
        for one in bad
    ]
    if samples and not bad:
        told = [_ok("event time", "it is found in every sample")]
    return replace(found, findings=(*found.findings, *told), samples=samples)
