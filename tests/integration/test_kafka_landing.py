"""Records of a real broker land once, by real Spark, whatever happens to the broker, its topics and
the way there.

After each test the topic is read by a plain consumer and compared with the lake, offset by offset,
and the audit has nothing to say.
"""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate import RunResult
from headgate.app.acts import Person
from headgate.app.letters import letters_of
from headgate.cluster import worker
from headgate.engine import containers
from headgate.engine.footers import values_of
from headgate.landing import report
from headgate.landing import shard as shard_work
from headgate.periods import HOUR_MS, Period
from headgate.sources.kafka import client
from headgate.sources.kafka import spark as kafka_spark
from tests.integration.kafka_landings import (
    KafkaYard,
    afterwards,
    first_time,
    kind_of,
    order,
    orders,
    shards,
)
from tests.integration.landings import MINUTE_MS, now_ms, sockets_to_java, whole_hour
from tests.kafka.topics import (
    Sent,
    Transaction,
    add_partitions,
    allow,
    delete_records,
    delete_topic,
    high_watermark,
    new_topic,
    produce,
)
from tests.servers.kafka import PASSWORDS, KafkaBroker
from tests.servers.process import wait_until
from tests.spark import USES_SPARK

__all__ = ["sockets_to_java"]

pytestmark = [*USES_SPARK, pytest.mark.kafka, pytest.mark.usefixtures("reports_at_once")]

LATER = "3h"  # allowed lateness: hours that are over stay open
ACCEPT = "headgate gap accept"


@pytest.fixture
def broker(kafka: KafkaBroker) -> Iterator[KafkaBroker]:
    yield kafka
    kafka.heal()


@pytest.fixture
def yard(tmp_path: Path, broker: KafkaBroker) -> KafkaYard:
    return KafkaYard(tmp_path, broker)


@pytest.fixture
def reports_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits until nothing is left to do is told by them."""
    monkeypatch.setattr(report, "REPORT_MS", 100)


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """For answers that never come, and between two tries."""
    monkeypatch.setattr(client, "CALL_MS", 1_000)
    monkeypatch.setattr(shard_work, "STUMBLE_MS", 100)
    monkeypatch.setattr(worker, "AGAIN_MS", 100)


def told(result: RunResult, stream: str) -> tuple[int, int, int]:
    """What this run landed: on time, late, dead."""
    one = result.streams[stream]
    return one.landed, one.late, one.dead


def hours(*ago: int) -> set[int]:
    return {whole_hour(one) for one in ago}


# Records


def test_records_land_once_in_their_hours_with_key_headers_and_timestamp(yard: KafkaYard) -> None:
    topic = new_topic(yard.broker, partitions=3)
    headers = [("trace", b"\x00\xff"), ("trace", None)]
    sent_ms = now_ms() - MINUTE_MS
    produce(
        yard.broker,
        topic,
        [
            *(one for ago in (3, 2, 1) for one in orders(range(30), whole_hour(ago) + 1, 3)),
            order(30, whole_hour(3), key=b"k", headers=headers, timestamp_ms=sent_ms),
            Sent(b"{broken", partition=1),
            Sent(b"\xff\xfe", partition=1),
            Sent(None, b"tombstone", partition=2, timestamp_ms=whole_hour(1)),
            Sent(b"", partition=2),
        ],
    )
    app = yard.app(yard.reading("orders", topic, source={"land": ["key", "headers", "timestamp"]}))

    first = app.run(until="idle")

    assert first.is_idle
    assert told(first, "orders") == (92, 0, 3)
    assert sorted(map(str, yard.reasons("orders").values())) == ["bad json"] * 2 + ["not utf-8"]
    assert {row.path.split("/")[1] for row in yard.of("orders") if kind_of(row) == "data"} == {
        f"{Period.hour_of(one)}"[-2:] for one in hours(3, 2, 1)
    }
    assert yard.flagged("orders") >= hours(3, 2, 1)
    (keyed,) = [one for one in yard.full("orders") if one["key"] == b"k"]
    assert keyed["headers"] == [
        {"key": "trace", "value": b"\x00\xff"},
        {"key": "trace", "value": None},
    ]
    assert keyed["timestamp"].timestamp() * 1000 == sent_ms
    assert keyed["timestamp_type"] == "create"
    (tomb,) = [one for one in yard.full("orders") if one["key"] == b"tombstone"]
    assert tomb["value"] is None
    yard.check(app, "orders", yard.inside(topic, 3))

    produce(yard.broker, topic, [order(100, whole_hour(3), 1), order(101, now_ms(), 2)])
    second = app.run(until="idle")

    assert told(second, "orders") == (1, 1, 0)
    assert (yard.ids("orders", "late"), yard.ids("orders")[101]) == (Counter([100]), 1)
    assert told(app.run(until="idle"), "orders") == (0, 0, 0)
    yard.check(app, "orders", yard.inside(topic, 3))


@pytest.mark.parametrize("land_as", ["parquet", "avro"])
def test_a_letter_that_is_driven_in_again_lands_with_key_headers_and_timestamp(
    yard: KafkaYard, land_as: str
) -> None:
    topic = new_topic(yard.broker)
    sent_ms = now_ms() - MINUTE_MS
    beside: dict[str, Any] = {"key": b"\x00k", "headers": [("trace", b"\xff"), ("trace", None)]}
    body = json.dumps({"id": 7, "when": now_ms()}).encode()
    produce(yard.broker, topic, [Sent(body, timestamp_ms=sent_ms, **beside)])
    how: dict[str, Any] = {"source": {"land": ["key", "headers", "timestamp"]}, "land_as": land_as}
    app = yard.app(yard.reading("orders", topic, **how))
    app.run(until="idle")
    with app.acts() as acts:
        (entry,) = acts.dead_letters("orders")
        (letter,) = letters_of(acts._lake, entry.path)
        assert acts.redrive("orders", entry.path, Person("ada", "it is called when"))
    assert (letter.raw, letter.beside["key"]) == (body, b"\x00k")

    app = yard.app(yard.reading("orders", topic, event_time="$.when", **how))
    assert told(app.run(until="idle"), "orders") == (1, 0, 0)

    (path,) = [one for one in yard.lake.rglob("shard*") if "data" in one.parts]
    (row,) = (values_of if land_as == "parquet" else containers.values_of)(str(path))
    assert row["value"] == body.decode()
    assert {name: row[name] for name in letter.beside} == letter.beside
    assert row["headers"] == [{"key": "trace", "value": b"\xff"}, {"key": "trace", "value": None}]
    assert (row["timestamp"].timestamp() * 1000, row["timestamp_type"]) == (sent_ms, "create")
    yard.audited(app)


def test_records_land_as_json_text_and_bytes_by_every_kind_of_event_time(yard: KafkaYard) -> None:
    at_ms = whole_hour(1)
    at = datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    as_json = new_topic(yard.broker)
    spread = b'{\n  "id": 1,\r\n  "at": %d}' % at_ms
    produce(yard.broker, as_json, [order(0, at_ms), Sent(spread), Sent(b"{}"), Sent(None, b"k")])
    as_text = new_topic(yard.broker)
    lines = [f"zero <{at}>".encode(), b"two\n<lines>", f"\u6ce8\u6587\t<{at}>".encode(), b"none"]
    produce(yard.broker, as_text, [Sent(one) for one in lines])
    as_bytes = new_topic(yard.broker)
    produce(
        yard.broker,
        as_bytes,
        [Sent(b"\x00\xff\xfe", timestamp_ms=at_ms), Sent(b"", timestamp_ms=-1)],
    )
    regex = {"regex": "<([^>]*)>", "parse": "iso"}
    sql = {"sql": "timestamp + make_interval(0, 0, 0, 0, 0, 0, offset)"}
    app = yard.app(
        yard.reading("as json", as_json, land_as="json"),
        yard.reading("json in parquet", as_json),
        yard.reading(
            "as text", as_text, event_time=regex, source={"format": "text"}, land_as="text"
        ),
        yard.reading("text in parquet", as_text, event_time=regex, source={"format": "text"}),
        yard.reading(
            "bytes", as_bytes, event_time={"kafka": "timestamp"}, source={"format": "binary"}
        ),
        yard.reading("sql", as_json, event_time=sql),
    )

    result = app.run(until="idle")

    assert {name: told(result, name) for name in result.streams} == {
        "as json": (3, 0, 1),
        "json in parquet": (3, 0, 1),
        "as text": (2, 0, 2),
        "text in parquet": (2, 0, 2),
        "bytes": (1, 0, 1),
        "sql": (4, 0, 0),
    }
    yard.check(app, "json in parquet", yard.inside(as_json))
    yard.check(app, "text in parquet", yard.inside(as_text))
    yard.check(app, "bytes", yard.inside(as_bytes))
    yard.check(app, "sql", yard.inside(as_json))
    assert yard.reasons("bytes") == {(f"{as_bytes}/0", 1): "no event time"}
    objects = {one["_headgate"]["number"]: one for one in map(json.loads, yard.lines("as json"))}
    assert [objects[n].get("id") for n in (0, 1)] == [0, 1]
    assert objects[3]["value"] is None
    (dead,) = map(json.loads, yard.lines("as json", is_dead=True))
    assert (dead["_headgate"]["number"], dead["_headgate"]["reason"]) == (2, "no event time")
    assert sorted(yard.lines("as text")) == sorted(
        f"{as_text}/0/{number}@{at_ms}\t".encode() + lines[number] for number in (0, 2)
    )
    letters = {
        one["_headgate"]["number"]: one
        for one in map(json.loads, yard.lines("as text", is_dead=True))
    }
    assert {n: (one["_headgate"]["reason"], one["raw"]) for n, one in letters.items()} == {
        1: ("not one line", "two\n<lines>"),
        3: ("no event time", "none"),
    }


def test_a_record_of_20_mb_is_a_dead_letter_with_its_bytes_or_lands_if_it_may(
    yard: KafkaYard,
) -> None:
    topic = new_topic(yard.broker)
    huge = json.dumps({"id": 1, "at": whole_hour(1), "pad": "x" * 20_000_000}).encode()
    produce(yard.broker, topic, [order(0, whole_hour(1)), Sent(huge), order(2, whole_hour(1))])
    app = yard.app(
        yard.reading("usual", topic), yard.reading("large", topic, record_size_max="32MB")
    )

    app.run(until="idle")

    assert yard.reasons("usual") == {(f"{topic}/0", 1): "too long"}
    assert yard.counts("large") == (3, 0, 0)
    yard.check(app, "usual", yard.inside(topic))
    yard.check(app, "large", yard.inside(topic))


def test_k4_producers_with_a_wrong_clock_harm_no_watermark(yard: KafkaYard) -> None:
    theirs, brokers = new_topic(yard.broker), new_topic(yard.broker, config=APPEND_TIME)
    wrong = [now_ms() + HOUR_MS, now_ms() + 365 * 24 * HOUR_MS]
    sent = [order(n + 1, at_ms, timestamp_ms=at_ms) for n, at_ms in enumerate(wrong)]
    for topic in (theirs, brokers):
        produce(yard.broker, topic, [order(0, whole_hour(1)), *sent, order(3, now_ms())])
    app = yard.app(
        yard.reading("create", theirs),
        yard.reading("append", brokers),
        yard.reading("stamps", theirs, event_time={"kafka": "timestamp"}),
        yard.reading("log", brokers, event_time={"kafka": "timestamp"}),
    )

    result = app.run(until="idle")

    for name, topic in (("create", theirs), ("append", brokers), ("stamps", theirs)):
        assert yard.reasons(name) == {(f"{topic}/0", n): "ahead" for n in (1, 2)}
    assert told(result, "log") == (4, 0, 0)
    for name in ("create", "append", "stamps", "log"):
        assert (result.streams[name].watermark_ms or 0) <= now_ms()
        yard.check(app, name, yard.inside(theirs if name in ("create", "stamps") else brokers))

    for topic in (theirs, brokers):
        produce(yard.broker, topic, [order(4, now_ms())])
    again = app.run(until="idle")

    assert {told(again, name) for name in again.streams} == {(1, 0, 0)}


APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}


def test_500_hours_land_in_one_round(yard: KafkaYard) -> None:
    topic = new_topic(yard.broker, partitions=2)
    produce(yard.broker, topic, [order(n, whole_hour(n + 1), n % 2) for n in range(500)])
    first = str(Period.hour_of(whole_hour(500)))
    app = yard.app(yard.reading("orders", topic, first_hour=first))

    result = app.run(until="idle")

    assert told(result, "orders") == (500, 0, 0)
    assert [len(one.files) for one in yard.records("orders") if one.files] == [500]
    assert yard.flagged("orders") >= hours(*range(1, 501))
    yard.check(app, "orders", yard.inside(topic, 2))


def test_a_hot_partition_is_read_by_several_tasks(
    yard: KafkaYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_spark, "OFFSETS_A_TASK", 50_000)
    topic = new_topic(yard.broker, partitions=2)
    at_ms = whole_hour(1)
    produce(yard.broker, topic, (order(n, at_ms) for n in range(200_000)))
    produce(yard.broker, topic, [order(n, at_ms, 1) for n in range(200_000, 200_010)])
    app = yard.app(yard.reading("orders", topic))

    result = app.run(until="idle")

    assert told(result, "orders") == (200_010, 0, 0)
    yard.check(app, "orders", yard.inside(topic, 2))


def test_no_more_records_a_second_are_read_than_the_settings_say(yard: KafkaYard) -> None:
    topic = new_topic(yard.broker)
    produce(yard.broker, topic, orders(range(1_000), whole_hour(1)))
    app = yard.app(yard.reading("orders", topic, source={"records_per_second": 100}))

    result = app.run(until="idle")

    assert result.is_idle
    rows = [one.counts.get("data", 0) for one in yard.records("orders")]
    assert 500 <= rows[0] < 1_000, "those of the first five seconds"
    assert sum(rows) == 1_000
    yard.check(app, "orders", yard.inside(topic))


def test_a_stream_begins_at_the_end_or_at_a_time(yard: KafkaYard) -> None:
    topic = new_topic(yard.broker, partitions=2)
    for ago in (3, 2, 1):
        at_ms = whole_hour(ago)
        produce(yard.broker, topic, [order(ago, at_ms, one, timestamp_ms=at_ms) for one in (0, 1)])
    since = datetime.fromtimestamp(whole_hour(2) / 1000, UTC).strftime("%Y-%m-%dT%H:%MZ")
    app = yard.app(
        yard.reading("end", topic, source={"start": "end"}),
        yard.reading("time", topic, source={"start": since}),
    )

    first = app.run(until="idle")

    assert (told(first, "end"), told(first, "time")) == ((0, 0, 0), (4, 0, 0))
    assert yard.ids("time") == Counter([2, 2, 1, 1])

    add_partitions(yard.broker, topic, 3)
    produce(yard.broker, topic, [order(4, now_ms(), one) for one in range(3)])
    second = app.run(until="idle")

    assert (told(second, "end"), told(second, "time")) == ((3, 0, 0), (3, 0, 0))
    records = yard.inside(topic, 3)
    since_the_end = {
        at: one for at, one in records.items() if json.loads(one.value or b"")["id"] == 4
    }
    yard.check(app, "end", since_the_end)
    yard.check(
        app, "time", {at: one for at, one in records.items() if at[1] != 0 or at in since_the_end}
    )


# Transactions, compaction, retention


def test_k3_an_open_transaction_holds_its_hour_and_an_aborted_one_is_no_loss(
    yard: KafkaYard,
) -> None:
    topic = new_topic(yard.broker, partitions=2)
    produce(yard.broker, topic, [order(0, whole_hour(2)), order(1, whole_hour(2), 1)])
    transaction = Transaction(yard.broker)
    transaction.send(topic, [order(2, whole_hour(2)), order(3, whole_hour(1))])
    produce(yard.broker, topic, [order(4, whole_hour(1))])
    app = yard.app(yard.reading("committed", topic))

    first = app.run(until="idle")

    assert told(first, "committed") == (2, 0, 0)
    assert yard.flagged("committed") == set()
    why = app.why("committed")
    assert why.state == "waiting"
    assert [one.partition for one in why.reasons] == [f"{topic}/0"]
    yard.check(app, "committed", yard.inside(topic, 2))

    transaction.commit()
    second = app.run(until="idle")

    assert told(second, "committed") == (3, 0, 0)
    assert yard.flagged("committed") >= hours(2, 1)
    yard.check(app, "committed", yard.inside(topic, 2))

    transaction.send(topic, [order(5, now_ms()), order(6, now_ms(), 1)])
    transaction.abort()
    transaction.send(topic, [order(7, now_ms(), 1)])
    both = yard.app(
        yard.reading("committed", topic),
        yard.reading("all", topic, source={"isolation": "read_uncommitted"}),
    )
    third = both.run(until="idle")

    assert told(third, "committed") == (0, 0, 0)
    assert sum(told(third, "all")) == 8  # some are late: the hours of all streams had their flag
    yard.check(both, "committed", yard.inside(topic, 2))
    yard.check(both, "all", yard.inside(topic, 2, "read_uncommitted"))
    transaction.abort()


def test_holes_of_a_compacted_topic_are_no_loss(yard: KafkaYard) -> None:
    quick = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.ms": "100",
        "max.compaction.lag.ms": "100",
    }
    topic = new_topic(yard.broker, config=quick)
    at_ms = whole_hour(1)
    produce(yard.broker, topic, [order(n, at_ms, key=b"%d" % (n % 5)) for n in range(50)])

    def is_compacted() -> bool:
        before = yard.inside(topic)
        if (f"{topic}/0", 0) in before:
            produce(yard.broker, topic, [order(99, at_ms, key=b"last")])
            return False
        return before == yard.inside(topic)

    wait_until(is_compacted, "compaction", 30, [yard.broker.process])
    assert len(yard.inside(topic)) < high_watermark(yard.broker, topic)
    app = yard.app(yard.reading("orders", topic))

    result = app.run(until="idle")

    assert result.streams["orders"].gaps == 0
    yard.check(app, "orders", yard.inside(topic))

    produce(yard.broker, topic, [order(100, at_ms, key=b"fresh")])
    app.run(until="idle")

    landed = yard.ids("orders") + yard.ids("orders", "late")
    assert landed[100] == 1
    assert max(landed[n] for n in range(45, 50)) == 1
    yard.audited(app)


def test_records_that_expired_unread_are_a_gap_on_record_or_wait_for_a_person(
    yard: KafkaYard,
) -> None:
    topic = new_topic(yard.broker)
    produce(yard.broker, topic, orders(range(10), whole_hour(2)))
    policies: tuple[Any, ...] = ("fail", "earliest", "latest")

    def streams(**options: Any) -> list[Any]:
        return [
            yard.reading(one, topic, source={"out_of_range": one}, **options) for one in policies
        ]

    yard.app(*streams(allowed_lateness=LATER)).run(until="idle")
    known = yard.inside(topic)
    produce(yard.broker, topic, orders(range(10, 20), whole_hour(1)))
    delete_records(yard.broker, topic, before=15)
    app = yard.app(*streams())

    result = app.run(until="idle")

    assert not result.is_idle
    aside = shards(app)["fail/0"].set_aside
    assert "offsets 10 to 14 expired before they were read" in aside
    assert f'{ACCEPT} fail {topic}/0 --reason "…"' in aside
    assert shards(app)["fail/0"].checkpoint.positions[f"{topic}/0"] == "10"
    assert [told(result, one) for one in policies] == [(0, 0, 0), (5, 0, 0), (0, 0, 0)]
    assert [result.streams[one].gaps for one in policies] == [0, 1, 1]
    wanted = {"earliest": ("10", "15"), "latest": ("10", "20")}
    for name, span in wanted.items():
        (gap,) = [gap for record in yard.records(name) for gap in record.gaps]
        assert (gap.partition, gap.first, gap.next) == (f"{topic}/0", *span)
        assert f"out_of_range: {name}" in gap.reason
        assert shards(app)[f"{name}/0"].checkpoint.counts["gaps"] == 1  # as status shows it
    assert {line.subject.split("/")[0] for line in yard.ledger("gap.found")} == {*wanted}
    for name, span in wanted.items():  # also of a commit that had nothing else to tell
        certificate = app.certificate(name, str(Period.hour_of(whole_hour(1))))
        assert certificate is not None
        assert [(one.first, one.next) for one in certificate.gaps] == [span]
    assert yard.flagged("fail") == set()
    left = yard.inside(topic)
    yard.check(app, "fail", known)
    yard.check(app, "earliest", known | left)
    yard.check(app, "latest", known)

    produce(yard.broker, topic, orders(range(20, 22), now_ms()))
    app.run(until="idle")

    yard.check(app, "fail", known)
    yard.check(app, "earliest", known | yard.inside(topic))
    yard.check(
        app,
        "latest",
        {at: one for at, one in (known | yard.inside(topic)).items() if not 10 <= at[1] < 20},
    )


# Topics that change


def test_partitions_that_are_added_land_and_hours_wait_for_them(yard: KafkaYard) -> None:
    topic, at_ms = new_topic(yard.broker), whole_hour(1)
    produce(yard.broker, topic, orders(range(10), at_ms))
    app = yard.app(yard.reading("orders", topic, allowed_lateness=LATER))
    transaction = Transaction(yard.broker)

    def grow() -> None:
        add_partitions(yard.broker, topic, 3)
        produce(yard.broker, topic, [order(10, at_ms, 1)])
        transaction.send(topic, [order(11, at_ms, 2)])

    yard.engine.before = first_time(grow)
    app.run(until="idle")
    prompt = yard.app(yard.reading("orders", topic))
    result = prompt.run(until="idle")

    assert yard.ids("orders") == Counter(range(11))
    assert yard.flagged("orders") == set()
    assert [one.partition for one in prompt.why("orders").reasons] == [f"{topic}/2"]
    yard.check(prompt, "orders", yard.inside(topic, 3))

    transaction.commit()
    result = prompt.run(until="idle")

    assert told(result, "orders") == (1, 0, 0)
    certificate = prompt.certificate("orders", str(Period.hour_of(at_ms)))
    assert certificate is not None
    assert {*certificate.partitions} >= {f"{topic}/{one}" for one in range(3)}
    yard.check(prompt, "orders", yard.inside(topic, 3))


def test_a_topic_that_was_made_again_is_not_read_and_the_others_go_on(yard: KafkaYard) -> None:
    topic, other = new_topic(yard.broker), new_topic(yard.broker)
    for one in (topic, other):
        produce(yard.broker, one, orders(range(10), whole_hour(2)))
    app = yard.app(yard.reading("orders", topic), yard.reading("other", other))
    app.run(until="idle")
    known, positions = yard.inside(topic), shards(app)["orders/0"].checkpoint.positions

    delete_topic(yard.broker, topic)
    new_topic(yard.broker, name=topic)
    for one in (topic, other):
        produce(yard.broker, one, orders(range(10, 30), now_ms()))
    result = app.run(until="idle")

    assert (told(result, "orders"), told(result, "other")) == ((0, 0, 0), (20, 0, 0))
    aside = shards(app)["orders/0"].set_aside
    assert f"topic {topic} was deleted and made again" in aside
    assert f"{ACCEPT} orders {topic}" in aside
    assert shards(app)["orders/0"].checkpoint.positions == positions
    yard.check(app, "orders", known)
    yard.check(app, "other", yard.inside(other))


# Users


def guarded(user: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": "${env:KAFKA_PASSWORD}",
    }


@pytest.mark.usefixtures("short_waits")
def test_a_wrong_password_is_told_and_the_right_one_goes_on(
    yard: KafkaYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic(yard.broker)
    produce(yard.broker, topic, orders(range(5), whole_hour(1)))
    allow(yard.broker, "reader", topic)
    source = {"options": guarded("reader")}
    streams = [
        yard.reading("guarded", topic, source=source, brokers=yard.broker.guarded),
        yard.reading("open", topic),
    ]
    monkeypatch.setenv("KAFKA_PASSWORD", "guessed")

    wrong = yard.app(*streams).run(until="idle")

    (words,) = wrong.streams["guarded"].stands_still
    assert "user or password is refused" in words
    assert "guessed" not in words
    assert (told(wrong, "guarded"), told(wrong, "open")) == ((0, 0, 0), (5, 0, 0))

    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORDS["reader"])
    app = yard.app(*streams)
    right = app.run(until="idle")

    assert right.is_idle
    for name in ("guarded", "open"):
        yard.check(app, name, yard.inside(topic))


def test_a_topic_that_may_not_be_read_holds_its_own_stream_only(
    yard: KafkaYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORDS["reader"])
    allowed, forbidden = new_topic(yard.broker), new_topic(yard.broker)
    for one in (allowed, forbidden):
        produce(yard.broker, one, orders(range(5), whole_hour(1)))
    allow(yard.broker, "reader", allowed)
    more: dict[str, Any] = {
        "source": {"options": guarded("reader")},
        "brokers": yard.broker.guarded,
    }
    app = yard.app(
        yard.reading("fine", allowed, **more),
        yard.reading("mixed", allowed, forbidden, **more),
        yard.reading("shut", forbidden, **more),
    )

    result = app.run(until="idle")

    assert not result.is_idle
    assert [told(result, one) for one in ("fine", "mixed", "shut")] == [
        (5, 0, 0),
        (5, 0, 0),
        (0, 0, 0),
    ]
    assert yard.flagged("fine") >= hours(1)
    for name in ("mixed", "shut"):
        assert yard.flagged(name) == set()
        (words,) = result.streams[name].stands_still
        assert f"topic {forbidden} may not be read; next: give this user the right READ" in words
    why = app.why("mixed")
    assert [one.partition for one in why.reasons] == [f"{forbidden}/0"]
    assert f"topic {forbidden} may not be read" in f"{why.words} {why.advice}"
    yard.check(app, "fine", yard.inside(allowed))
    yard.check(app, "mixed", yard.inside(allowed))

    allow(yard.broker, "reader", forbidden)
    app.run(until="idle")

    yard.check(app, "mixed", yard.inside(allowed) | yard.inside(forbidden))
    yard.check(app, "shut", yard.inside(forbidden))
    assert yard.flagged("mixed") >= hours(1)


# Brokers and the way there


def test_a_broker_that_is_killed_with_9_or_paused_in_a_shift_costs_nothing_but_time(
    yard: KafkaYard,
) -> None:
    topic = new_topic(yard.broker, partitions=3)
    produce(yard.broker, topic, orders(range(300), whole_hour(2), 3))
    app = yard.app(yard.reading("orders", topic))

    with afterwards(1.0, yard.broker.start) as begin:
        yard.engine.before = first_time(yard.broker.kill, begin)
        result = app.run(until="idle")

    assert result.is_idle
    yard.check(app, "orders", yard.inside(topic, 3))

    produce(yard.broker, topic, orders(range(300, 600), now_ms(), 3))
    with afterwards(3.0, yard.broker.resume) as begin:
        yard.engine.before = first_time(yard.broker.pause, begin)
        app.run(until="idle")
    with afterwards(3.0, yard.broker.resume) as begin:
        yard.engine.after = first_time(yard.broker.pause, begin)
        produce(yard.broker, topic, orders(range(600, 900), now_ms(), 3))
        result = app.run(until="idle")

    assert result.is_idle
    assert yard.counts("orders") == (900, 0, 0)
    assert shards(app)["orders/0"].set_aside == ""
    yard.check(app, "orders", yard.inside(topic, 3))


@pytest.mark.usefixtures("short_waits")
def test_k3_a_broker_that_is_not_there_holds_every_hour(yard: KafkaYard) -> None:
    topic = new_topic(yard.broker)
    produce(yard.broker, topic, orders(range(5), whole_hour(2)))
    first = str(Period.hour_of(whole_hour(2)))
    app = yard.app(yard.reading("orders", topic, first_hour=first))
    yard.broker.kill()

    without = app.run(until="idle")

    assert not without.is_idle
    (words,) = without.streams["orders"].stands_still
    assert f"Kafka at {yard.broker.address}" in words
    assert "next: start the brokers" in words
    assert yard.flagged("orders") == set()
    assert shards(app)["orders/0"].set_aside == ""

    yard.broker.start()
    result = app.run(until="idle")

    assert result.is_idle
    assert yard.flagged("orders") >= hours(2, 1)
    yard.check(app, "orders", yard.inside(topic))


def test_slow_and_cut_connections_cost_nothing_but_time(yard: KafkaYard) -> None:
    topic = new_topic(yard.broker, partitions=2)
    produce(yard.broker, topic, orders(range(2_000), whole_hour(1), 2))
    wire = yard.broker.wire
    app = yard.app(yard.reading("orders", topic, brokers=wire.address))
    wire.slow(100)

    with afterwards(3.0, wire.heal) as begin:
        yard.engine.before = first_time(wire.cut, begin)
        first = app.run(until="idle")

    assert first.is_idle
    yard.check(app, "orders", yard.inside(topic, 2))

    produce(yard.broker, topic, orders(range(2_000, 2_500), now_ms(), 2))
    with afterwards(3.0, wire.heal) as begin:
        yard.engine.before = first_time(wire.lose_replies, begin)
        second = app.run(until="idle")

    assert second.is_idle
    assert yard.counts("orders") == (2_500, 0, 0)
    yard.check(app, "orders", yard.inside(topic, 2))
