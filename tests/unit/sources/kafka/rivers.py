"""A stream that is read from a Kafka cluster in memory, and who holds its shard."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from headgate.sources import Gap, KafkaSettings, Plan, Waiting
from headgate.sources.kafka.document import (
    KafkaDocument,
    document_key,
    with_accepted,
    with_next_life,
)
from headgate.sources.kafka.source import KafkaSource
from headgate.store.changes import change, read
from headgate.testing.manual import ManualAmbient, manual_store
from headgate.testing.weir import Weir, WeirCluster

ROOMY = 10**12
STREAM = "orders"
SETTINGS = KafkaSettings("-", ("t",))


class River:
    """One shard of a stream. `positions` are those of its checkpoint."""

    def __init__(self, weir: Weir | None = None, **changed: Any) -> None:
        self.ambient = ManualAmbient()
        self.store = manual_store(self.ambient)
        self.weir = weir or Weir()
        if weir is None:
            self.weir.make("t", 2)
        self.settings = replace(SETTINGS, **changed)
        self.positions: dict[str, str] = {}
        self.cluster: WeirCluster = self.weir.cluster(self.settings.isolation)
        self.source = self.opened()
        self.gaps: list[Gap] = []
        self.ends_ms: dict[str, int] = {}

    def opened(self, is_mine: Callable[[str], bool] = lambda _name: True) -> KafkaSource:
        """As another holder would have it."""
        return KafkaSource(self.settings, STREAM, is_mine, self.store, self.cluster, self.ambient)

    def reopen(self, **changed: Any) -> None:
        self.settings = replace(self.settings, **changed)
        self.cluster = self.weir.cluster(self.settings.isolation)
        self.source = self.opened()

    @property
    def now_ms(self) -> int:
        return self.ambient.wall_ns() // 1_000_000

    @property
    def document(self) -> KafkaDocument:
        found = read(self.store, document_key(STREAM), KafkaDocument)
        assert found is not None
        return found.value

    def look(self) -> Waiting:
        """As a shard does: what is new joins, then it is looked at."""
        self.ambient.pass_ms(1_000)
        for name in self.source.partitions():
            self.positions.setdefault(name, "")
        return self.source.look(self.positions)

    def plan(self, size_bytes_max: int = ROOMY, until: Mapping[str, str] = {}) -> Plan:
        return self.source.plan(self.positions, size_bytes_max=size_bytes_max, until=until)

    def looked(self, size_bytes_max: int = ROOMY) -> Plan:
        self.look()
        return self.plan(size_bytes_max)

    def commit(self, plan: Plan) -> None:
        self.source.confirm(plan)
        for name, one in plan.ranges.items():
            assert one.first == self.positions[name]
            self.positions[name] = one.next
        self.gaps += plan.gaps
        self.ends_ms |= plan.ends_ms

    def round(self) -> list[tuple[str, int, int]]:
        """What is read by one round."""
        plan = self.looked()
        self.commit(plan)
        return spans(plan)

    def accept(self, topic: str) -> None:
        """A person goes on with the topic that has this name now."""
        found = self.cluster.topics([topic])[topic]
        change(
            self.store,
            document_key(STREAM),
            KafkaDocument,
            lambda one: with_next_life(one, topic, found),
        )

    def accept_gap(self, partition: str, first: int) -> None:
        change(
            self.store,
            document_key(STREAM),
            KafkaDocument,
            lambda one: with_accepted(one, partition, first),
        )


def spans(plan: Plan) -> list[tuple[str, int, int]]:
    return [(one.partition, one.first, one.next) for one in plan.spans]


def values(count: int, size_bytes: int = 10) -> list[bytes]:
    return [b"x" * size_bytes for _ in range(count)]
