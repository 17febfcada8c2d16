"""What the contract of a source needs of a Kafka source: any cluster, and who writes there.

A name is a few records, one after the other, in one partition; the first names go to partitions of
their own, so that one can expire without the others. What was begun is in an open transaction.
"""

from collections.abc import Sequence
from typing import Protocol

from headgate.engine import OFFSETS_TALLIED, InputSpan, Tally
from headgate.sources import KafkaSettings, Plan
from headgate.sources.kafka import Cluster
from headgate.sources.kafka.source import KafkaSource
from headgate.store import DocumentStore
from headgate.store.pages import pages
from headgate.testing.faults import Calm, Stage, wrap
from headgate.testing.manual import ManualAmbient
from headgate.testing.weir import Transaction, Weir
from tests.kafka import topics
from tests.servers.kafka import KafkaBroker

PARTITIONS = 4


class Producer(Protocol):
    """Writes to the cluster that the source reads."""

    def make(self, topic: str, partitions: int) -> None:
        """A topic that is not there."""

    def send(self, topic: str, partition: int, values: Sequence[bytes]) -> int:
        """The offset of the first, once all are there."""

    def begin(self, topic: str, partition: int, values: Sequence[bytes]) -> int:
        """In a transaction that stays open; the offset of the first."""

    def finish(self, topic: str, partition: int) -> None:
        """The transaction that was begun there is committed, and everybody can see that."""

    def expire(self, topic: str, partition: int, before: int) -> None:
        """Records before this offset are gone."""


class LogHarness:
    """Over any store and cluster; time is the manual one, whatever the records say."""

    def __init__(
        self,
        store: DocumentStore,
        ambient: ManualAmbient,
        cluster: Cluster,
        producer: Producer,
        topic: str = "orders",
    ) -> None:
        self._store = store
        self._ambient = ambient
        self._cluster = cluster
        self._producer = producer
        self._topic = topic
        self._settings = KafkaSettings("-", (topic,), out_of_range="earliest")
        self._homes: dict[str, int] = {}  # by name: its partition
        self._names: dict[tuple[int, int], str] = {}  # by partition and offset; complete ones only
        self._begun: dict[str, int] = {}  # by name: its offset
        producer.make(topic, PARTITIONS)

    def open(self, epoch: int, stage: Stage | None = None) -> KafkaSource:
        del epoch  # a log has its numbers by itself, and nothing is kept that a holder could spoil
        stage = stage or Calm()
        store = wrap(DocumentStore, self._store, stage)
        cluster = wrap(Cluster, self._cluster, stage)
        return KafkaSource(
            self._settings, "orders", lambda _name: True, store, cluster, self._ambient
        )

    def add(self, name: str, lines: int = 1) -> None:
        partition = self._home(name)
        values = [name.encode()] * lines
        first = self._producer.send(self._topic, partition, values)
        self._names |= {(partition, first + n): name for n in range(lines)}

    def change(self, name: str, lines: int) -> None:
        self.lose(name)
        self.add(name, lines)

    def begin(self, name: str) -> None:
        partition = self._home(name)
        self._begun[name] = self._producer.begin(self._topic, partition, [name.encode()])

    def finish(self, name: str) -> None:
        partition = self._home(name)
        self._producer.finish(self._topic, partition)
        self._names[partition, self._begun.pop(name)] = name

    def lose(self, name: str) -> None:
        places = [place for place, one in self._names.items() if one == name]
        partition, last = max(places)
        assert {one for (home, _), one in self._names.items() if home == partition} == {name}
        self._producer.expire(self._topic, partition, last + 1)
        for place in places:
            del self._names[place]

    def left(self) -> set[str]:
        found = self._cluster.bounds([(self._topic, n) for n in range(PARTITIONS)])
        return {
            name
            for (home, offset), name in self._names.items()
            if found[self._topic, home].low <= offset < found[self._topic, home].stable
        }

    def names_in(self, plan: Plan) -> list[str]:
        """A name with several records once, as a file with several lines."""
        found: list[str] = []
        for span in plan.spans:
            before = ""
            for offset in range(span.first, span.next):
                name = self._names.get((span.lane, offset), "")
                found += [name] if name and name != before else []
                before = name
        return found

    def place_of(self, name: str) -> str:
        return f"{self._topic}/{self._home(name)}"

    def may_hold(self, name: str) -> set[str]:
        return {self.place_of(name)}

    def tallies(self, plan: Plan) -> list[Tally]:
        return [tally for span in plan.spans for tally in self._tallies(span)]

    def pass_ms(self, duration_ms: int) -> None:
        self._ambient.pass_ms(duration_ms)

    def wall_ms(self) -> int:
        return self._ambient.wall_ns() // 1_000_000

    def documents(self) -> dict[str, object]:
        return {one.key: one.version for page in pages(self._store) for one in page.documents}

    def _home(self, name: str) -> int:
        return self._homes.setdefault(name, len(self._homes) % PARTITIONS)

    def _tallies(self, span: InputSpan) -> list[Tally]:
        buckets: dict[int, list[int]] = {}
        for offset in range(span.first, span.next):
            if (span.lane, offset) in self._names:
                buckets.setdefault(offset - offset % OFFSETS_TALLIED, []).append(offset)
        return [
            Tally("0-1", span.partition, first, "data", len(all_), all_[0], all_[-1], None)
            for first, all_ in buckets.items()
        ]


class WeirProducer:
    """Writes to a cluster in memory."""

    def __init__(self, weir: Weir) -> None:
        self._weir = weir
        self._open: dict[tuple[str, int], Transaction] = {}

    def make(self, topic: str, partitions: int) -> None:
        self._weir.make(topic, partitions)

    def send(self, topic: str, partition: int, values: Sequence[bytes]) -> int:
        return self._weir.send(topic, partition, values)

    def begin(self, topic: str, partition: int, values: Sequence[bytes]) -> int:
        first = self._weir.log(topic, partition).high
        self._open[topic, partition] = self._weir.begin(topic, partition, values)
        return first

    def finish(self, topic: str, partition: int) -> None:
        self._weir.end(self._open.pop((topic, partition)))

    def expire(self, topic: str, partition: int, before: int) -> None:
        self._weir.expire(topic, partition, before)


class BrokerProducer:
    """Writes to a real broker."""

    def __init__(self, broker: KafkaBroker) -> None:
        self._broker = broker
        self._producer = topics.producer(broker)  # no test of this contract restarts the broker
        self._open: dict[tuple[str, int], topics.Transaction] = {}

    def make(self, topic: str, partitions: int) -> None:
        topics.new_topic(self._broker, partitions, name=topic)

    def send(self, topic: str, partition: int, values: Sequence[bytes]) -> int:
        return topics.send_in_order(self._producer, topic, _sent(partition, values))

    def begin(self, topic: str, partition: int, values: Sequence[bytes]) -> int:
        first = topics.high_watermark(self._broker, topic, partition)
        transaction = topics.Transaction(self._broker)
        transaction.send(topic, _sent(partition, values))
        self._open[topic, partition] = transaction
        return first

    def finish(self, topic: str, partition: int) -> None:
        self._open.pop((topic, partition)).commit()

    def expire(self, topic: str, partition: int, before: int) -> None:
        topics.delete_records(self._broker, topic, before, partition)


def _sent(partition: int, values: Sequence[bytes]) -> list[topics.Sent]:
    return [topics.Sent(value, partition=partition) for value in values]
