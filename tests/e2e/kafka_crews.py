"""Nodes that land from a real broker into a lake anywhere, and the comparison at the end."""

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from headgate.ambient import SystemAmbient
from headgate.audit.inspection import audit
from headgate.lake.opening import open_lake
from headgate.periods import HOUR_MS, escape_name
from headgate.settings.loading import load
from headgate.store.registry import open_store
from headgate.testing.drama.home import JAVA
from headgate.testing.drama.orders import SPOILED
from tests.e2e.landing_crews import HELD, LandingCrew
from tests.kafka.independent import Difference, difference
from tests.kafka.topics import Sent, Transaction, new_topic, produce
from tests.servers.kafka import KafkaBroker

SHARDS = 2
NODES = ("red", "blue")
STREAM = "заказы 注文"  # a name as people write it, also through journals and crashes


@dataclass(frozen=True, slots=True)
class Size:
    wave: int  # records
    hours: int  # over which they are spread: so many files has a commit
    lanes: int  # partitions of the topic


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a lake is."""

    lake: str | Mapping[str, str]  # as in the settings
    on_disk: Callable[[Path], Path]  # of the folder with the settings: it, or a copy made just now
    conf: Mapping[str, str] = field(default_factory=dict)  # of Spark


@dataclass(slots=True, kw_only=True)
class Brigade(LandingCrew):
    broker: KafkaBroker
    topic: str
    size: Size
    ground: Ground
    produced: int = 0  # of those that everybody may read

    def send(self) -> None:
        """A wave, most of it without and some of it in transactions, of which one is aborted."""
        now_ms, wave = time.time_ns() // 1_000_000, self.size.wave
        first, step_ms = self.produced, self.size.hours * HOUR_MS // wave
        records = [self._order(first + n, now_ms - n * step_ms) for n in range(wave)]
        produce(self.broker, self.topic, records[: wave // 2])
        transaction = Transaction(self.broker)
        transaction.send(self.topic, [self._order(-n, now_ms) for n in range(100)])
        transaction.abort()
        transaction.send(self.topic, records[wave // 2 :])
        transaction.commit()
        produce(self.broker, self.topic, [Sent(one.encode()) for one in SPOILED])
        self.produced += wave + len(SPOILED)

    def _order(self, number: int, at_ms: int) -> Sent:
        value = json.dumps({"id": number, "at": at_ms}).encode()
        return Sent(value, partition=number % self.size.lanes)

    def land_under_kills(self, waves: int, chance: random.Random) -> None:
        """After each wave one is killed and started again; at the end all have stopped."""
        self.hold.touch()
        for name in NODES:
            self.start(name)
        for wave in range(waves):
            self.send()
            self.start(self.kill_one(wave, self.produced, chance))
        self.await_all()
        self.stop()

    def await_all(self) -> None:
        self.until(lambda: self.rows >= self.produced, "everything has landed")

    def check(self) -> None:
        plain, lanes = {"bootstrap.servers": self.broker.address}, range(self.size.lanes)
        lake = self.ground.on_disk(self.folder)
        assert difference(plain, self.topic, lanes, lake, escape_name(STREAM)) == Difference()
        assert self.rows == self.produced
        settings = load(self.folder / "headgate.yaml", {})
        assert audit(self.store, self.lake, settings.streams, is_deep=True).findings == ()


@contextmanager
def brigade_in(folder: Path, broker: KafkaBroker, size: Size, ground: Ground) -> Iterator[Brigade]:
    topic = new_topic(broker, size.lanes)
    (folder / "headgate.yaml").write_text(_settings(broker, topic, size, ground), "utf-8")
    settings = load(folder / "headgate.yaml", {})
    with (
        closing(open_store(settings.store, settings.namespace)) as store,
        closing(
            Brigade(
                folder,
                store,
                [*HELD, str(folder / "hold")],
                lake=open_lake(settings.lake, SystemAmbient()),
                stream=STREAM,
                shards=SHARDS,
                broker=broker,
                topic=topic,
                size=size,
                ground=ground,
            )
        ) as brigade,
    ):
        yield brigade


def _settings(broker: KafkaBroker, topic: str, size: Size, ground: Ground) -> str:
    stream = {
        "source": {"kind": "kafka", "brokers": broker.address, "topic": topic},
        "event_time": {"json": "$.at", "unit": "ms"},
        "shards": SHARDS,
        "shift": "1s",
        "grace": "0s",
        "allowed_lateness": f"{3 * size.hours}h",
    }
    conf = {
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": JAVA,
        **ground.conf,
    }
    return json.dumps(
        {
            "namespace": "kill",
            "store": "file:./state",
            "lake": ground.lake,
            "streams": {STREAM: stream},
            "spark": {"master": "local[1]", "conf": conf},
        }
    )
