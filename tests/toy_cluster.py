"""A Kafka cluster in memory, for whoever asks one: `headgate.sources.kafka.Cluster`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from headgate.errors import Unavailable
from headgate.sources.kafka import Bounds, Keeping, Sample, Topic, TopicPartition

RECORD_BYTES = 10


@dataclass
class ToyCluster:
    """Without an answer for what is not told to it; `is_down`: nobody answers at all."""

    known: dict[str, Topic] = field(default_factory=dict)
    ends: dict[TopicPartition, Bounds] = field(default_factory=dict)
    kept: dict[str, Keeping] = field(default_factory=dict)
    stamp_ms: int | None = 1_800_000_000_000  # of every record
    is_down: bool = False

    def has(self, topic: str, *ends: tuple[int, int], id: str = "first") -> None:
        """With low and high of each of its partitions."""
        self.known[topic] = Topic(id, len(ends))
        self.ends = {one: found for one, found in self.ends.items() if one[0] != topic}
        for number, (low, high) in enumerate(ends):
            self.ends[topic, number] = Bounds(low, high, high)

    def names(self) -> list[str]:
        self._check()
        return [*self.known]

    def topics(self, names: Collection[str]) -> Mapping[str, Topic]:
        self._check()
        return {
            name: self.known.get(name, Topic("", 0, f"topic {name} is not there", is_missing=True))
            for name in names
        }

    def bounds(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, Bounds]:
        self._check()
        return {one: self.ends[one] for one in partitions if one in self.ends}

    def offsets_at(
        self, partitions: Collection[TopicPartition], at_ms: int
    ) -> Mapping[TopicPartition, int]:
        self._check()
        is_before = self.stamp_ms is not None and at_ms <= self.stamp_ms
        found = self.bounds(partitions)
        return {one: ends.low if is_before else ends.stable for one, ends in found.items()}

    def keeping(self, names: Collection[str]) -> Mapping[str, Keeping]:
        self._check()
        return {name: self.kept[name] for name in names if name in self.kept}

    def sample(self, partition: TopicPartition, offset: int, records_max: int) -> Sample:
        records = min(records_max, self.count(partition, offset, 1 << 62))
        return Sample(records, records * RECORD_BYTES, self.stamp_ms if records else None)

    def count(self, partition: TopicPartition, first: int, following: int) -> int:
        self._check()
        ends = self.ends[partition]
        return max(0, min(following, ends.stable) - max(first, ends.low))

    def _check(self) -> None:
        if self.is_down:
            raise Unavailable("nobody answers")
