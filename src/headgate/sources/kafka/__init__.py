"""Kafka: topics as a source. What a cluster tells of them, and what this source keeps in the store.

    client     the door to the client library
    document   which life of a topic is read, and which gaps a person accepted
    planning   how much of each source partition is read next: pure
    templates  streams that come into being with their topics
    holes      offsets without a record: of transactions and of compaction
    source     the source itself
    spark      ranges of offsets as rows

A source partition is named `<topic>/<number>`, in the second life of a topic `<topic>~2/<number>`:
no name of a topic has a tilde. A position is the next offset.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

TopicPartition = tuple[str, int]
"""As Kafka has it: topic and number."""


@dataclass(frozen=True, slots=True)
class Topic:
    """What a cluster says of one topic. Without an id it could not be asked for, and `why` says
    what to do; `is_missing`: the cluster does not know it."""

    id: str
    partitions: int
    why: str = ""
    is_missing: bool = False


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one partition. `high` was asked before `stable`: whoever has read to a stable end that is
    not below it has read all that was there when it was asked."""

    low: int  # the first offset that is still there
    high: int  # behind the last record
    stable: int  # behind the last record that no open transaction can still take back


@dataclass(frozen=True, slots=True)
class Keeping:
    """How long a topic keeps its records."""

    retention_ms: int | None  # None: for ever, or by size only
    is_compacted: bool
    retention_bytes: int | None = None  # of each partition; None: however many
    stamps: str = ""  # whose clock a record's time is: CreateTime, LogAppendTime


@dataclass(frozen=True, slots=True)
class Sample:
    """A few records from one offset on, as readers of this isolation see them."""

    records: int
    size_bytes: int
    oldest_ms: int | None  # time of the first, by its log; None: it has none


@dataclass(frozen=True, slots=True)
class Shown:
    """A record, for people."""

    offset: int
    value: bytes | None  # None: a tombstone
    stamp_ms: int | None  # by its log; None: it has none


class Cluster(Protocol):
    """What is asked of a Kafka cluster; nothing is ever changed there. From any thread."""

    def names(self) -> list[str]:
        """Of all topics that may be seen. Raises Unavailable."""

    def topics(self, names: Collection[str]) -> Mapping[str, Topic]:
        """Raises Unavailable: nobody answers."""

    def bounds(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, Bounds]:
        """Without those that cannot be told now. Raises Unavailable."""

    def offsets_at(
        self, partitions: Collection[TopicPartition], at_ms: int
    ) -> Mapping[TopicPartition, int]:
        """The first offset whose time is not before that; the end if there is none. Raises
        Unavailable."""

    def keeping(self, names: Collection[str]) -> Mapping[str, Keeping]:
        """Without those whose settings may not be read. Raises Unavailable."""

    def sample(self, partition: TopicPartition, offset: int, records_max: int) -> Sample:
        """Raises Unavailable."""

    def count(self, partition: TopicPartition, first: int, following: int) -> int:
        """Records from one offset to before another, as readers of this isolation see them. Raises
        Unavailable."""


class ShowingCluster(Cluster, Protocol):
    """A cluster that also shows records: to people, never to what lands them."""

    def shown(self, partition: TopicPartition, offset: int, records_max: int) -> tuple[Shown, ...]:
        """From one offset on, to the end. Raises Unavailable."""
