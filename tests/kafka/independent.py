"""Independent check: what Kafka has against what lies in the lake, with nothing of Headgate.

A plain consumer reads the topic, pyarrow reads the lake's Parquet files: those of the hours, below
`_late` and below `_dead`. Every record that the consumer may see must be there exactly once, with
the same bytes.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.servers.process import ServerFailed

Isolation = Literal["read_committed", "read_uncommitted"]
Place = tuple[str, int]
"""Source partition (`<topic>/<number>`) and offset."""

READ_AT_ONCE = 10_000
GATHERED_FOR_S = 0.1  # unless that many are there: it waits the whole time for one less
ANSWER_WITHIN_S = 10
READ_WITHIN_S = 120
NOT_DATA = frozenset({"_headgate", "_redrive", "_redriven"})
"""Staging and records, and letters on their way: the same rows are, or will be, elsewhere."""


@dataclass(frozen=True, slots=True)
class Record:
    key: bytes | None
    value: bytes | None
    timestamp_ms: int  # -1: none
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Row:
    partition: str
    number: int
    value: bytes | None  # as Kafka had it
    event_time: datetime | None
    reason: str | None  # of a dead letter
    path: str  # below the lake's root


@dataclass(frozen=True, slots=True)
class Difference:
    """In the order of partitions and offsets; all empty: the lake is right."""

    lost: list[Place] = field(default_factory=list)
    doubled: list[Place] = field(default_factory=list)
    foreign: list[Place] = field(
        default_factory=list
    )  # no such record: another topic's, aborted, or made up
    changed: list[Place] = field(default_factory=list)  # another value

    def __bool__(self) -> bool:
        return any(getattr(self, one.name) for one in fields(self))


def records_of(
    settings: Mapping[str, str | int | bool],
    topic: str,
    partition: int = 0,
    isolation: Isolation = "read_committed",
) -> dict[int, Record]:
    """By offset, from the first that is still there to the last that may be read now.

    The settings say at least `bootstrap.servers`. Raises ServerFailed.
    """
    consumer = Consumer(
        {
            "log_level": 0,
            "group.id": "independent-check",
            **settings,
            "isolation.level": isolation,
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,  # the end is told after that
        }
    )
    at = TopicPartition(topic, partition)
    found: dict[int, Record] = {}
    until_s = time.monotonic() + READ_WITHIN_S
    try:
        low, _ = consumer.get_watermark_offsets(at, timeout=ANSWER_WITHIN_S)
        consumer.assign([TopicPartition(topic, partition, low)])
        while time.monotonic() < until_s:
            for message in consumer.consume(READ_AT_ONCE, GATHERED_FOR_S):
                error, offset = message.error(), message.offset()
                if error is not None:
                    if error.code() == KafkaError._PARTITION_EOF:
                        return found
                    if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                        continue  # we are in no group
                    raise ServerFailed(f"{topic}/{partition}: {error}")
                if offset is None or offset in found:
                    raise ServerFailed(f"{topic}/{partition}: offset {offset} came twice")
                found[offset] = Record(
                    message.key(),
                    message.value(),
                    message.timestamp()[1],
                    tuple(message.headers() or ()),
                )
    except KafkaException as error:
        raise ServerFailed(f"{topic}/{partition}: {error}") from error
    finally:
        consumer.close()
    raise ServerFailed(f"{topic}/{partition}: no end in {READ_WITHIN_S} s, {len(found)} were read")


def topic_records(
    settings: Mapping[str, str | int | bool],
    topic: str,
    partitions: Iterable[int],
    isolation: Isolation = "read_committed",
) -> dict[Place, Record]:
    return {
        (f"{topic}/{number}", offset): record
        for number in partitions
        for offset, record in records_of(settings, topic, number, isolation).items()
    }


def rows_of(lake: Path, stream: str) -> Iterator[Row]:
    """Every row of the stream: on time, late and dead.

    The stream's name is a folder of its own, as in the usual template and below `_dead`; as it is
    spelled there.
    """
    for file in sorted(lake.rglob("*.parquet")):
        below = file.relative_to(lake)
        if below.parts[0] not in NOT_DATA and stream in below.parts[:-1]:
            yield from _rows_in(file, str(below))


def compare(
    records: Mapping[Place, Record],
    rows: Iterable[Row],
    left_out: frozenset[Place] = frozenset(),
) -> Difference:
    """`left_out` are records that rightly have no row, such as those that expired unread."""
    times: Counter[Place] = Counter()
    changed: set[Place] = set()
    for row in rows:
        place = (row.partition, row.number)
        times[place] += 1
        if place in records and records[place].value != row.value:
            changed.add(place)
    wanted = records.keys() - left_out
    return Difference(
        lost=sorted(wanted - times.keys()),
        doubled=sorted(place for place, count in times.items() if count > 1),
        foreign=sorted(times.keys() - wanted),
        changed=sorted(changed),
    )


def difference(
    settings: Mapping[str, str | int | bool],
    topic: str,
    partitions: Iterable[int],
    lake: Path,
    stream: str,
    isolation: Isolation = "read_committed",
) -> Difference:
    """All of it. Nobody must be writing meanwhile, neither to the topic nor to the lake."""
    return compare(topic_records(settings, topic, partitions, isolation), rows_of(lake, stream))


def _rows_in(file: Path, below: str) -> Iterator[Row]:
    # Of this file alone: a reader of whole trees would make columns of the folders' names.
    table = pq.ParquetFile(file).read(columns=["value", "_headgate"])
    ours = table.column("_headgate").combine_chunks()
    columns = [
        ours.field("partition").to_pylist(),
        ours.field("number").to_pylist(),
        table.column("value").cast(pa.binary()).to_pylist(),
        ours.field("raw").to_pylist() if _has(ours, "raw") else [None] * len(ours),
        ours.field("event_time").to_pylist(),
        ours.field("reason").to_pylist(),
    ]
    for partition, number, value, raw, event_time, reason in zip(*columns, strict=True):
        # Bytes that are no text cannot be a value.
        yield Row(partition, number, value if raw is None else raw, event_time, reason, below)


def _has(struct: pa.StructArray, field: str) -> bool:
    return bool(struct.type.get_field_index(field) >= 0)
