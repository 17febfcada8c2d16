"""Nodes land from a real broker, and are killed with -9 or stopped at moments that chance decides;
then the lake is compared with the topic, offset by offset.

    a wave of orders ──▶ a node is killed: in the middle of a commit, or at any moment ──▶ started
    again ──▶ … ──▶ everything has landed ──▶ all stop ──▶ compared, audited

The first one is held in the middle of a commit until it is killed there. The seed is printed. It
decides which moments are aimed at afterwards; the rest is up to the machine.
"""

import json
import os
import random
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from headgate.ambient import SystemAmbient
from headgate.audit.inspection import audit
from headgate.lake.opening import open_lake
from headgate.periods import HOUR_MS, escape_name
from headgate.settings.loading import load
from headgate.store.registry import open_store
from headgate.testing.drama.home import JAVA
from headgate.testing.drama.orders import SPOILED
from headgate.testing.drama.script import is_nobody_held_up
from tests.e2e.landing_crews import HELD, LandingCrew
from tests.kafka.independent import Difference, difference
from tests.kafka.topics import Sent, Transaction, new_topic, produce
from tests.servers.kafka import KafkaBroker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]

WAVES = 3
WAVE = 5_000  # records
HOURS = 20  # over which they are spread: so many files has a commit
SHARDS = 2
LANES = 4  # partitions of the topic
NODES = ("red", "blue")
STREAM = "заказы 注文"  # a name as people write it, also through journals and crashes
SETTINGS = """\
namespace: kill
store: file:./state
lake: ./lake
streams:
  {stream}:
    source: {{kind: kafka, brokers: "{brokers}", topic: {topic}}}
    event_time: {{json: $.at, unit: ms}}
    shards: {shards}
    shift: 1s
    grace: 0s
    allowed_lateness: {lateness}h
spark:
  master: "local[1]"
  conf: {{spark.driver.memory: 512m, spark.driver.extraJavaOptions: "{java}"}}
"""


@dataclass(slots=True)
class Brigade(LandingCrew):
    topic: str = ""
    produced: int = 0  # of those that everybody may read

    def send(self, broker: KafkaBroker) -> None:
        """A wave, most of it without and some of it in transactions, of which one is aborted."""
        now_ms = time.time_ns() // 1_000_000
        first, step_ms = self.produced, HOURS * HOUR_MS // WAVE
        records = [_order(first + n, now_ms - n * step_ms) for n in range(WAVE)]
        produce(broker, self.topic, records[: WAVE // 2])
        transaction = Transaction(broker)
        transaction.send(self.topic, [_order(-n, now_ms) for n in range(100)])
        transaction.abort()
        transaction.send(self.topic, records[WAVE // 2 :])
        transaction.commit()
        produce(broker, self.topic, [Sent(one.encode()) for one in SPOILED])
        self.produced += WAVE + len(SPOILED)

    def await_all(self) -> None:
        self.until(lambda: self.rows >= self.produced, "everything has landed")

    def check(self, broker: KafkaBroker) -> None:
        plain, lake = {"bootstrap.servers": broker.address}, self.folder / "lake"
        found = difference(plain, self.topic, range(LANES), lake, escape_name(STREAM))
        assert found == Difference()
        assert self.rows == self.produced
        settings = load(self.folder / "headgate.yaml", {})
        opened = open_lake(settings.lake, SystemAmbient())
        assert audit(self.store, opened, settings.streams, is_deep=True).findings == ()


def _order(number: int, at_ms: int) -> Sent:
    return Sent(json.dumps({"id": number, "at": at_ms}).encode(), partition=number % LANES)


@pytest.fixture
def brigade(tmp_path: Path, kafka: KafkaBroker) -> Iterator[Brigade]:
    topic = new_topic(kafka, LANES)
    written = SETTINGS.format(
        stream=STREAM,
        brokers=kafka.address,
        topic=topic,
        shards=SHARDS,
        lateness=3 * HOURS,
        java=JAVA,
    )
    (tmp_path / "headgate.yaml").write_text(written)
    settings = load(tmp_path / "headgate.yaml", {})
    command = [*HELD, str(tmp_path / "hold")]
    with (
        closing(open_store(settings.store, settings.namespace)) as store,
        closing(
            Brigade(tmp_path, store, command, stream=STREAM, shards=SHARDS, topic=topic)
        ) as brigade,
    ):
        yield brigade


def test_k17_nodes_killed_with_minus_nine_while_they_land_from_kafka_lose_and_double_nothing(
    brigade: Brigade, kafka: KafkaBroker
) -> None:
    seed = int(os.environ.get("HEADGATE_SEED", random.randrange(10**6)))
    print(f"HEADGATE_SEED={seed}")
    chance = random.Random(seed)
    brigade.hold.touch()
    for name in NODES:
        brigade.start(name)

    for wave in range(WAVES):
        brigade.send(kafka)
        if wave == 0:
            killed = brigade.kill_the_held()
        elif chance.random() < 0.5:
            killed = brigade.kill_in_mid_commit(brigade.produced, NODES[0])
        else:
            time.sleep(chance.uniform(0, 4))
            killed = brigade.kill(chance.choice(NODES))
        brigade.start(killed)
    brigade.await_all()
    brigade.stop()

    brigade.check(kafka)


def test_k19_a_node_that_is_stopped_in_a_commit_and_wakes_after_another_made_it_doubles_nothing(
    brigade: Brigade, kafka: KafkaBroker
) -> None:
    brigade.hold.touch()
    for name in NODES:
        brigade.start(name)
    brigade.send(kafka)
    paused, shards = brigade.held()
    assert paused.pause(lambda: is_nobody_held_up(brigade.store))
    assert any(0 < done < files for done, files in map(brigade.published, shards))
    brigade.hold.unlink()

    brigade.await_all()  # by the other one
    assert not any(brigade.holder_of(shard) == paused.name for shard in range(SHARDS))
    paused.wake()

    def is_back() -> bool:
        paused.read()
        return paused.state == "running"  # in a new session

    brigade.until(is_back, "it has joined again")
    brigade.send(kafka)
    brigade.await_all()
    brigade.stop()

    brigade.check(kafka)
