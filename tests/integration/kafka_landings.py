"""Kafka landings: an App that reads from a real broker with real Spark, and what came of it.

Whether all is right is told by the independent check, offset by offset, and by the audit.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headgate import App, Kafka, Stream
from headgate.ambient import Ambient
from headgate.app.equipment import readers_of
from headgate.app.progress import ShardProgress
from headgate.commits.certificate import FLAG
from headgate.engine import Job
from headgate.engine.footers import values_of
from headgate.periods import Period, escape_name
from tests.integration.landings import Yard
from tests.kafka.independent import (
    Difference,
    Isolation,
    Place,
    Record,
    Row,
    compare,
    topic_records,
)
from tests.kafka.independent import rows_of as all_rows_of
from tests.kafka.topics import Sent
from tests.servers.kafka import KafkaBroker

QUICK: Mapping[str, str] = {"shift": "1s", "grace": "0s", "allowed_lateness": "0s"}


class KafkaYard(Yard):
    """A folder with everything of one installation, and a broker that others use as well."""

    def __init__(self, root: Path, broker: KafkaBroker) -> None:
        super().__init__(root)
        self.broker = broker

    def app(self, *streams: Stream, ambient: Ambient | None = None) -> App:
        app = super().app(*streams, ambient=ambient)
        self.engine._readers = readers_of(app.settings)  # the session is older than the app
        return app

    def reading(
        self,
        name: str,
        *topics: str,
        event_time: Any = "$.at",
        source: Mapping[str, Any] | None = None,
        brokers: str = "",
        **options: Any,
    ) -> Stream:
        """A stream of these topics, with short shifts and no allowed lateness unless told."""
        kafka = Kafka(brokers or self.broker.address, topics=topics, **(source or {}))
        return Stream(name, kafka, event_time, **{**QUICK, **options})

    def of(self, stream: str) -> list[Row]:
        """Its rows: on time, late and dead."""
        return list(all_rows_of(self.lake, escape_name(stream)))

    def full(self, stream: str) -> Iterator[dict[str, Any]]:
        """Rows with all their columns."""
        for path in {row.path for row in self.of(stream)}:
            yield from values_of(str(self.lake / path))

    def lines(self, stream: str, *, is_dead: bool = False) -> list[bytes]:
        """Of files that are no Parquet."""
        name, found = escape_name(stream), list[bytes]()
        for path in sorted(self.lake.rglob("shard*")):
            place = path.relative_to(self.lake).parts
            is_its = name in place[:-1] and place[0] != "_headgate"
            if is_its and path.is_file() and (place[0] == "_dead") == is_dead:
                found += path.read_bytes().split(b"\n")[:-1]
        return found

    def ids(self, stream: str, kind: str = "data") -> Counter[int]:
        """Of orders."""
        values = [row.value for row in self.of(stream) if row.value and kind_of(row) == kind]
        return Counter(json.loads(value)["id"] for value in values)

    def counts(self, stream: str) -> tuple[int, int, int]:
        """On time, late and dead."""
        found = Counter(kind_of(row) for row in self.of(stream))
        return found["data"], found["late"], found["dead"]

    def reasons(self, stream: str) -> dict[tuple[str, int], str | None]:
        """Of dead letters."""
        return {
            (row.partition, row.number): row.reason
            for row in self.of(stream)
            if kind_of(row) == "dead"
        }

    def flagged(self, stream: str) -> set[int]:
        """When the hours with a flag begin."""
        found = (
            path.relative_to(self.lake).parts
            for path in self.lake.glob(f"*/*/{stream}/data/{FLAG}")
        )
        return {Period.parse(f"{day}T{hour}").start_ms for day, hour, *_ in found}

    def inside(
        self, topic: str, partitions: int = 1, isolation: Isolation = "read_committed"
    ) -> dict[Place, Record]:
        """What a plain consumer reads of a topic."""
        plain = {"bootstrap.servers": self.broker.address}
        return topic_records(plain, topic, range(partitions), isolation)

    def check(self, app: App, stream: str, records: Mapping[Place, Record]) -> None:
        """Each of them is in the lake once, and nothing else; and the audit finds nothing."""
        assert compare(records, self.of(stream)) == Difference()
        self.audited(app)

    def audited(self, app: App) -> None:
        found = app.audit(is_deep=True)
        assert (found.findings, found.remarks) == ((), ())
        assert self.staging() == []


def kind_of(row: Row) -> str:
    return {"_late": "late", "_dead": "dead"}.get(row.path.split("/")[0], "data")


def order(number: int, at_ms: int, partition: int = 0, **more: Any) -> Sent:
    return Sent(json.dumps({"id": number, "at": at_ms}).encode(), partition=partition, **more)


def orders(numbers: Iterable[int], at_ms: int, partitions: int = 1) -> list[Sent]:
    """In turn over the partitions."""
    return [order(number, at_ms, n % partitions) for n, number in enumerate(numbers)]


def shards(app: App) -> dict[str, ShardProgress]:
    return {one.name: one for one in app.progress()}


def first_time(*acts: Callable[[], object]) -> Callable[[Job], None]:
    """With the first job, one after the other, and not again."""
    left = [*acts]

    def hook(_: Job) -> None:
        while left:
            left.pop(0)()

    return hook


@contextmanager
def afterwards(seconds: float, act: Callable[[], object]) -> Iterator[Callable[[], None]]:
    """To be called when it begins; so much later the act is done, at the end of the block at the
    latest. Raises what it raises."""

    def wait() -> None:
        time.sleep(seconds)
        act()

    begun = list[Future[None]]()
    with ThreadPoolExecutor(1) as pool:
        yield lambda: begun.append(pool.submit(wait))
    for one in begun:
        one.result()
