"""Brook: a source in memory, shared by the machines of a simulation, that knows what it gave out.

A drop is a small file of records, each with an id of its own; its number is its place in its source
partition. What is in the brook must be in the lake in the end, each id once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from headgate.engine import InputFile, Tally
from headgate.errors import Conflict, Corrupt
from headgate.landing.stream_document import shard_of
from headgate.sources import Gap, Plan, Range, Waiting

PLAN_DROPS_MAX = 4


@dataclass(frozen=True, slots=True)
class Speck:
    """A record."""

    id: int
    event_ms: int | None  # None: unusable


@dataclass(slots=True)
class Drop:
    specks: tuple[Speck, ...]
    arrival_ms: int
    is_gone: bool = False


@dataclass(slots=True)
class Brook:
    """Everything that was ever dropped, by source partition."""

    drops: dict[str, list[Drop]] = field(default_factory=dict)
    poison: frozenset[str] = frozenset()  # source partitions that no engine can read
    reads: int = 0

    def add(self, partition: str) -> None:
        self.drops.setdefault(partition, [])

    def drop(self, partition: str, specks: Sequence[Speck], arrival_ms: int) -> None:
        self.drops.setdefault(partition, []).append(Drop(tuple(specks), arrival_ms))

    def read(self, file: InputFile) -> Drop:
        self.reads += 1
        return self.drops[file.partition][file.number]

    def ids(self) -> list[int]:
        """Of all that can still be expected in the lake."""
        drops = [drop for one in self.drops.values() for drop in one if not drop.is_gone]
        return [speck.id for drop in drops for speck in drop.specks]


class BrookSource:
    """`headgate.sources.Source` for one shard."""

    def __init__(self, brook: Brook, shard: int, shards: int, now_ms: Callable[[], int]) -> None:
        self._brook = brook
        self._shard = shard
        self._shards = shards
        self._now_ms = now_ms
        self._seen: dict[str, int] = {}
        self._seen_ms = 0

    def partitions(self) -> tuple[str, ...]:
        names = sorted(self._brook.drops)
        return tuple(name for name in names if shard_of(name, self._shards) == self._shard)

    def look(self, positions: Mapping[str, str]) -> Waiting:
        self._seen_ms = self._now_ms()
        self._seen = {name: len(self._brook.drops[name]) for name in positions}
        waiting = [
            drop
            for name, position in positions.items()
            for drop in self._brook.drops[name][int(position or 0) :]
        ]
        oldest_ms = min((drop.arrival_ms for drop in waiting), default=None)
        return Waiting(len(waiting), 100 * len(waiting), oldest_ms)

    def plan(
        self, positions: Mapping[str, str], *, size_bytes_max: int, until: Mapping[str, str] = {}
    ) -> Plan:
        limit = max(1, min(PLAN_DROPS_MAX, size_bytes_max // 100))
        ranges: dict[str, Range] = {}
        files: list[InputFile] = []
        gaps: list[Gap] = []
        ends_ms: dict[str, int] = {}
        has_more = False
        for name in sorted(until or positions):
            first = int(positions[name] or 0)
            seen = int(until[name]) if until else self._seen.get(name, first)
            end = seen if until else min(seen, first + limit)
            for number in range(first, end):
                drop = self._brook.drops[name][number]
                if drop.is_gone:
                    gap = Gap(name, str(number), str(number + 1), f"{name}/{number} vanished")
                    gaps.append(gap)
                else:
                    path = f"/{name}/{number}"
                    files.append(InputFile(name, number, path, 100, drop.arrival_ms))
            if end > first:
                ranges[name] = Range(positions[name], str(end))
            has_more |= end < seen
            if end == seen and not until and name in self._seen:
                ends_ms[name] = self._seen_ms
        return Plan("brook", "json", (), ranges, tuple(files), tuple(gaps), ends_ms, has_more)

    def confirm(self, plan: Plan) -> None:
        for file in plan.files:
            if self._brook.drops[file.partition][file.number].is_gone:
                raise Conflict(f"{file.path} vanished while it was read; it is planned again")

    def reconcile(self, plan: Plan, tallies: Sequence[Tally]) -> None:
        for file in plan.files:
            found = [t for t in tallies if (t.partition, t.number) == (file.partition, file.number)]
            rows = sum(tally.rows for tally in found)
            if rows != max((tally.line_max for tally in found), default=0):
                raise Corrupt(f"{file.path}: {rows} rows are not all lines of it")

    def settle(self, positions: Mapping[str, str]) -> None:
        """Drops are kept."""
