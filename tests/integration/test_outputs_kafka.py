"""Several event types in one topic of a real broker, and a topic that is made again: by real Spark.

The topic is read by a plain consumer and compared with the lake, offset by offset.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate import Halted, Invalid, Table
from headgate.landing import report
from headgate.periods import DEFAULT_FOLDER, Period
from tests.integration.kafka_landings import KafkaYard, kind_of, orders
from tests.integration.landings import sockets_to_java, whole_hour
from tests.kafka.independent import Difference, Row, compare
from tests.kafka.topics import Sent, delete_topic, new_topic, produce
from tests.servers.kafka import KafkaBroker
from tests.spark import USES_SPARK

__all__ = ["sockets_to_java"]

pytestmark = [*USES_SPARK, pytest.mark.kafka]

OUTPUTS = {
    "orders": {"json": "$.type", "equals": "order"},
    "clicks": {"filter": "get_json_object(value, '$.type') IN ('click', 'tap')"},
    "removals": {"filter": "value IS NULL AND partition LIKE '%/2'"},
}
TYPES = ("order", "click", "tap", "sneeze")
AGAIN = f"again/{DEFAULT_FOLDER}"


@pytest.fixture
def yard(
    tmp_path: Path, kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KafkaYard]:
    monkeypatch.setattr(report, "REPORT_MS", 100)
    yield KafkaYard(tmp_path, kafka)
    kafka.heal()


def event(number: int, type_: str, at_ms: int, partition: int) -> Sent:
    body = {"id": number, "type": type_, "at": at_ms}
    return Sent(json.dumps(body).encode(), partition=partition)


def test_each_offset_lands_once_in_the_output_that_takes_it(yard: KafkaYard) -> None:
    topic = new_topic(yard.broker, partitions=3)
    at_ms = whole_hour(3)
    sent = [event(n, TYPES[n % 4], at_ms, n % 3) for n in range(120)]
    sent += [event(n, "order", whole_hour(2), 0) for n in range(120, 130)]
    sent += [Sent(None, b"k", partition=2, timestamp_ms=at_ms)]  # taken
    sent += [Sent(None, b"k", partition=1, timestamp_ms=at_ms), Sent(b"{broken", partition=1)]
    produce(yard.broker, topic, sent)
    app = yard.app(yard.reading("events", topic, shards=2, outputs=OUTPUTS))
    app.add(Table("taps", stream="clicks", path=yard.root / "tables/taps"))

    result = app.run(until="idle")

    kinds = {name: Counter(kind_of(row) for row in yard.of(name)) for name in ("events", *OUTPUTS)}
    assert kinds == {
        "orders": {"data": 40},
        "clicks": {"data": 60},
        "removals": {"data": 1},
        "events": {"dead": 32},
    }
    reasons = Counter(yard.reasons("events").values())
    assert reasons == {"no output": 31, "bad json": 1}
    rows = [row for name in ("events", *OUTPUTS) for row in yard.of(name)]
    assert compare(yard.inside(topic, 3), rows) == Difference()
    hours = [str(Period(one, "hour")) for one in (at_ms, whole_hour(2))]
    for name, landed in (("orders", [30, 10]), ("clicks", [60, 0]), ("removals", [1, 0])):
        found = [app.certificate(name, hour) for hour in hours]
        assert [one and one.counts["landed"] for one in found] == landed
        assert all(app.wait(name, hour, timeout="1s") for hour in hours)
    assert result.tables["taps"].rows == 60
    yard.audited(app)

    produce(yard.broker, topic, [event(200, "click", at_ms, 0), event(201, "order", at_ms, 2)])
    app.run(until="idle")

    assert Counter(kind_of(row) for row in yard.of("clicks")) == {"data": 60, "late": 1}
    rows = [row for name in ("events", *OUTPUTS) for row in yard.of(name)]
    assert compare(yard.inside(topic, 3), rows) == Difference()
    yard.audited(app)


def test_a_topic_that_was_made_again_lands_in_a_new_root(yard: KafkaYard) -> None:
    topic = new_topic(yard.broker)
    produce(yard.broker, topic, orders(range(10), whole_hour(3)))
    app = yard.app(yard.reading("sales", topic))
    app.run(until="idle")
    old = sorted(path for path in yard.lake.rglob("*") if path.is_file() and path.parts)
    kept = {path: path.read_bytes() for path in old if "ledger" not in path.parts}
    delete_topic(yard.broker, topic)
    new_topic(yard.broker, name=topic)
    produce(yard.broker, topic, orders(range(100, 105), whole_hour(3)))
    (words,) = app.run(until="idle").streams["sales"].stands_still
    assert "was deleted and made again" in words
    assert "headgate stream reset sales --into FOLDER" in words
    with pytest.raises(Invalid, match=r"add .* to its former_folders"):
        app.reset("sales", AGAIN, "it was made again")

    anew = yard.app(yard.reading("sales", topic, folder=AGAIN, former_folders=[DEFAULT_FOLDER]))
    done = anew.reset("sales", AGAIN, "it was made again", "ada")
    assert done is not None
    assert (done.stream, done.before, done.rows) == ("sales~2", "sales", 10)
    assert anew.reset("sales", AGAIN, "once more") is None
    result = anew.run(until="idle")

    assert result.streams["sales~2"].landed == 5
    new = [row for row in yard.of("sales") if row.path.startswith("again/")]
    assert compare(yard.inside(topic), new) == Difference()
    assert {path: path.read_bytes() for path in kept} == kept
    hour = str(Period(whole_hour(3), "hour"))
    certificates = [anew.certificate(name, hour) for name in ("sales",)]
    assert [one and (one.stream, one.counts["landed"]) for one in certificates] == [("sales~2", 5)]
    assert anew.verify().is_clean
    yard.audited(anew)
    assert [(line.subject, line.who) for line in yard.ledger("stream.reset")] == [("sales", "ada")]

    # A node that still has the old settings lands nothing.
    produce(yard.broker, topic, orders(range(200, 203), whole_hour(2)))
    before = len(_old(yard))
    stale = yard.app(yard.reading("sales", topic))
    with pytest.raises((Halted, AssertionError)):
        assert stale.run(until="idle", max_seconds=20).streams["sales"].landed
    assert len(_old(yard)) == before


def _old(yard: KafkaYard) -> list[Row]:
    return [row for row in yard.of("sales") if not row.path.startswith("again/")]
