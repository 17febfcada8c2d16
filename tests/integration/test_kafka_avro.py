"""Avro records of a real broker, by schemas of a registry that comes and goes."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.app.equipment import schemas_of
from headgate.cluster import worker
from headgate.landing import report
from headgate.landing import shard as shard_work
from tests.integration.kafka_landings import KafkaYard, first_time
from tests.integration.landings import sockets_to_java, whole_hour
from tests.kafka.avro import frame, framed
from tests.kafka.topics import Sent, new_topic, produce
from tests.servers.kafka import KafkaBroker
from tests.servers.registry import RegistryServer
from tests.spark import USES_SPARK

__all__ = ["sockets_to_java"]

pytestmark = [*USES_SPARK, pytest.mark.kafka]

FIRST = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "int"}, {"name": "at", "type": "long"}],
}
SECOND: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "id", "type": "long"},
    ],
}


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with RegistryServer() as server:
        server.register(1, FIRST)
        server.register(2, SECOND)
        server.password = "weir"
        yield server


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "REPORT_MS", 100)
    monkeypatch.setattr(shard_work, "STUMBLE_MS", 100)
    monkeypatch.setattr(worker, "AGAIN_MS", 100)
    monkeypatch.setenv("REGISTRY_PASSWORD", "weir")


def test_each_record_lands_once_by_its_own_schema_though_the_registry_was_away(
    tmp_path: Path, kafka: KafkaBroker, registry: RegistryServer
) -> None:
    yard, topic = KafkaYard(tmp_path, kafka), new_topic(kafka, partitions=2)
    records = [framed(1, FIRST, {"id": n, "at": whole_hour(2) + n}) for n in range(40)]
    records += [framed(2, SECOND, {"id": n, "at": whole_hour(1) + n}) for n in range(40)]
    bad = [frame(3) + b"??", b"\x00\x00", records[0][:-1], b"plain"]
    produce(
        kafka, topic, [Sent(one, partition=n % 2) for n, one in enumerate([*records, *bad, None])]
    )
    access = {"url": registry.url, "user": "reader", "password": "${env:REGISTRY_PASSWORD}"}
    source = {"format": "avro", "registry": access}
    app = yard.app(yard.reading("orders", topic, event_time={"avro": "at"}, source=source))
    yard.engine._schemas = schemas_of(app.settings)
    registry.stop()
    yard.engine.after = first_time(lambda: pytest.fail("nothing may be landed yet"))

    held = app.run(until="idle", max_seconds=12)

    assert not held.is_idle
    assert yard.of("orders") == []
    registry.start()
    yard.engine.after = lambda _: None
    result = app.run(until="idle")

    assert result.is_idle
    assert yard.counts("orders") == (81, 0, 4)
    assert Counter(yard.reasons("orders").values()) == {"bad avro": 3, "unknown schema": 1}
    ids = Counter(one["_headgate"]["schema_id"] for one in yard.full("orders"))
    assert ids == {1: 41, 2: 40, 3: 1, None: 3}
    assert yard.flagged("orders") >= {whole_hour(2), whole_hour(1)}
    assert {*registry.asked} == {1, 2, 3}
    assert [registry.asked.count(number) for number in (1, 2)] == [1, 1]  # known for good
    yard.check(app, "orders", yard.inside(topic, 2))
