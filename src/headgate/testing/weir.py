"""Weir: a Kafka cluster in memory, with all that can become of records there.

Offsets are given out as Kafka does: a marker at the end of a transaction takes one and is no
record; what was aborted, compacted or expired leaves a hole. Up to the first record of an open
transaction everything is stable. A topic that is made again has another id, and begins at 0.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from headgate.errors import Unavailable
from headgate.sources.kafka import Bounds, Keeping, Sample, Shown, Topic, TopicPartition

OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"


@dataclass(slots=True)
class Transaction:
    state: str = OPEN
    partitions: dict[TopicPartition, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """What has an offset: a record, or the marker at the end of a transaction."""

    value: bytes | None
    at_ms: int  # negative: it has no time
    transaction: Transaction | None = None
    is_marker: bool = False

    @property
    def is_open(self) -> bool:
        return self.transaction is not None and self.transaction.state == OPEN

    def is_seen_by(self, isolation: str) -> bool:
        if self.is_marker:
            return False
        is_nobodys = self.transaction is not None and self.transaction.state == ABORTED
        return not (is_nobodys and isolation == "read_committed")


@dataclass(slots=True)
class Log:
    """Of one partition, by offset."""

    entries: dict[int, Entry] = field(default_factory=dict)
    low: int = 0
    high: int = 0

    @property
    def stable(self) -> int:
        return min((at for at, one in self.entries.items() if one.is_open), default=self.high)

    def append(self, entry: Entry) -> int:
        offset, self.high = self.high, self.high + 1
        self.entries[offset] = entry
        return offset

    def keep(self, low: int, high: int) -> None:
        self.low, self.high = low, high
        self.entries = {at: one for at, one in self.entries.items() if low <= at < high}


@dataclass(slots=True)
class Reach:
    """A topic."""

    id: str
    logs: list[Log]
    retention_ms: int | None = None
    is_compacted: bool = False


class Weir:
    """What others do to the cluster; `cluster` is what a reader sees of it."""

    def __init__(self) -> None:
        self.reaches: dict[str, Reach] = {}
        self.is_silent = False  # no broker answers
        self.leaderless: set[TopicPartition] = set()
        self.forbidden: set[str] = set()
        self.unreadable: set[TopicPartition] = set()  # described, and yet no record of it comes
        self.has_secret_settings = False
        self.now_ms = 1_800_000_000_000  # of records that are sent without a time
        self._ids = 0

    def cluster(self, isolation: str = "read_committed") -> "WeirCluster":
        return WeirCluster(self, isolation)

    def make(self, topic: str, partitions: int = 1, retention_ms: int | None = None) -> None:
        """A topic; one that is there is deleted before, with all its records."""
        self._ids += 1
        logs = [Log() for _ in range(partitions)]
        self.reaches[topic] = Reach(f"id-{self._ids}", logs, retention_ms)

    def delete(self, topic: str) -> None:
        del self.reaches[topic]

    def widen(self, topic: str, partitions: int) -> None:
        logs = self.reaches[topic].logs
        logs += [Log() for _ in range(partitions - len(logs))]

    def log(self, topic: str, partition: int = 0) -> Log:
        return self.reaches[topic].logs[partition]

    def send(
        self,
        topic: str,
        partition: int,
        values: Iterable[bytes | None],
        at_ms: int | None = None,
    ) -> int:
        """The offset of the first."""
        return self._append(topic, partition, values, at_ms, None)

    def begin(self, topic: str, partition: int, values: Iterable[bytes | None]) -> Transaction:
        """In a transaction that stays open."""
        transaction = Transaction()
        self.join(transaction, topic, partition, values)
        return transaction

    def join(
        self,
        transaction: Transaction,
        topic: str,
        partition: int,
        values: Iterable[bytes | None],
        at_ms: int | None = None,
    ) -> int:
        transaction.partitions[topic, partition] = None
        return self._append(topic, partition, values, at_ms, transaction)

    def end(self, transaction: Transaction, state: str = COMMITTED) -> None:
        transaction.state = state
        for topic, partition in transaction.partitions:
            marker = Entry(None, self.now_ms, transaction, is_marker=True)
            self.log(topic, partition).append(marker)

    def expire(self, topic: str, partition: int, before: int) -> None:
        """What lies before this offset is gone."""
        log = self.log(topic, partition)
        log.keep(before, max(before, log.high))

    def compact(self, topic: str, partition: int, offsets: Iterable[int]) -> None:
        """Later records of the same keys are there instead."""
        for offset in offsets:
            del self.log(topic, partition).entries[offset]

    def cut(self, topic: str, partition: int, end: int) -> None:
        """A broker that lacked the last records became the leader."""
        log = self.log(topic, partition)
        log.keep(min(log.low, end), end)

    def records(self, topic: str, partition: int, isolation: str) -> dict[int, Entry]:
        """As readers of this isolation see them."""
        log = self.log(topic, partition)
        end = log.stable if isolation == "read_committed" else log.high
        return {
            at: one
            for at, one in sorted(log.entries.items())
            if at < end and one.is_seen_by(isolation)
        }

    def _append(
        self,
        topic: str,
        partition: int,
        values: Iterable[bytes | None],
        at_ms: int | None,
        transaction: Transaction | None,
    ) -> int:
        log = self.log(topic, partition)
        first = log.high
        for value in values:
            log.append(Entry(value, self.now_ms if at_ms is None else at_ms, transaction))
        return first


class WeirCluster:
    """`headgate.sources.kafka.ShowingCluster`, for readers of one isolation."""

    def __init__(self, weir: Weir, isolation: str) -> None:
        self._weir = weir
        self._isolation = isolation
        self.counted = 0  # how often records were counted

    def names(self) -> list[str]:
        self._check()
        return [name for name in self._weir.reaches if name not in self._weir.forbidden]

    def topics(self, names: Collection[str]) -> Mapping[str, Topic]:
        self._check()
        return {name: self._topic(name) for name in names}

    def bounds(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, Bounds]:
        self._check()
        return {
            one: Bounds(log.low, log.high, log.stable)
            for one, log in self._logs(partitions).items()
        }

    def offsets_at(
        self, partitions: Collection[TopicPartition], at_ms: int
    ) -> Mapping[TopicPartition, int]:
        self._check()
        found = {}
        for one, log in self._logs(partitions).items():
            end = log.stable if self._isolation == "read_committed" else log.high
            after = (at for at, entry in log.entries.items() if entry.at_ms >= at_ms)
            found[one] = min(after, default=end)
        return found

    def keeping(self, names: Collection[str]) -> Mapping[str, Keeping]:
        self._check()
        if self._weir.has_secret_settings:
            return {}
        return {
            name: Keeping(reach.retention_ms, reach.is_compacted)
            for name, reach in self._weir.reaches.items()
            if name in names
        }

    def sample(self, partition: TopicPartition, offset: int, records_max: int) -> Sample:
        found = self._read(partition, offset)[:records_max]
        sizes = [0 if one.value is None else len(one.value) for one in found]
        oldest_ms = found[0].at_ms if found and found[0].at_ms >= 0 else None
        return Sample(len(found), sum(sizes), oldest_ms)

    def shown(self, partition: TopicPartition, offset: int, records_max: int) -> tuple[Shown, ...]:
        self._read(partition, offset)
        seen = self._weir.records(*partition, self._isolation)
        found = [
            Shown(at, one.value, one.at_ms if one.at_ms >= 0 else None)
            for at, one in seen.items()
            if at >= offset
        ]
        return tuple(found[:records_max])

    def count(self, partition: TopicPartition, first: int, following: int) -> int:
        self.counted += 1
        return len(self._read(partition, first, following))

    def _read(
        self, partition: TopicPartition, first: int, following: int | None = None
    ) -> list[Entry]:
        self._check()
        log = self._logs([partition]).get(partition)
        if log is None or partition in self._weir.unreadable or not log.low <= first <= log.high:
            raise Unavailable(f"{partition}: records from offset {first:,} on cannot be read")
        seen = self._weir.records(*partition, self._isolation)
        last = log.high if following is None else following
        return [one for at, one in seen.items() if first <= at < last]

    def _topic(self, name: str) -> Topic:
        if name in self._weir.forbidden:
            return Topic("", 0, f"topic {name} may not be read; next: give this user the right")
        reach = self._weir.reaches.get(name)
        if reach is None:
            return Topic("", 0, f"topic {name} is not there; next: create it", is_missing=True)
        return Topic(reach.id, len(reach.logs))

    def _logs(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Log]:
        """Of those that answer."""
        return {
            (topic, number): self._weir.reaches[topic].logs[number]
            for topic, number in partitions
            if topic in self._weir.reaches
            and topic not in self._weir.forbidden
            and number < len(self._weir.reaches[topic].logs)
            and (topic, number) not in self._weir.leaderless
        }

    def _check(self) -> None:
        if self._weir.is_silent:
            raise Unavailable("no broker answers; nothing was read; next: start the brokers")
