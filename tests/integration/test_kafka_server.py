"""The Kafka broker of the tests does what tests of a Kafka source will rest on."""

import random
import shutil
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from tests.kafka.independent import (
    Difference,
    Place,
    Record,
    Row,
    compare,
    difference,
    records_of,
    rows_of,
    topic_records,
)
from tests.kafka.topics import (
    Sent,
    Transaction,
    add_partitions,
    admin,
    allow,
    delete_records,
    delete_topic,
    forbid,
    high_watermark,
    last_stable,
    low_watermark,
    new_topic,
    produce,
    topic_id,
)
from tests.servers.kafka import QUIET, KafkaBroker
from tests.servers.process import ServerFailed, wait_until

pytestmark = pytest.mark.kafka

AT_MS = 1_793_538_000_000  # 2026-11-01T13:00 in UTC
STREAM = "orders"


@pytest.fixture
def broker(kafka: KafkaBroker) -> Iterator[KafkaBroker]:
    yield kafka
    kafka.heal()


def plain(broker: KafkaBroker) -> dict[str, str]:
    return {"bootstrap.servers": broker.address}


def numbered(count: int, partition: int = 0, word: str = "v") -> list[Sent]:
    return [Sent(f"{word}{number}".encode(), partition=partition) for number in range(count)]


def values(found: dict[int, Record]) -> dict[int, bytes | None]:
    return {offset: record.value for offset, record in found.items()}


def test_records_come_out_as_they_went_in(broker: KafkaBroker) -> None:
    topic = new_topic(broker, partitions=2)
    sent = [
        Sent(b"one", b"k", [("a", b"1"), ("a", None)], AT_MS),
        Sent(None, b"tombstone", (), AT_MS + 1),
        Sent(b"", b"", (), AT_MS + 2),
        Sent(b"\xff no text", None, (), 1),  # long before any retention
        Sent(b"ahead", None, (), AT_MS + 10**13),
        Sent(b"no time", None, (), -1),
        Sent(b"x" * 20_000_000, None, (), AT_MS),
    ]

    produce(broker, topic, [*sent, Sent(b"elsewhere", partition=1, timestamp_ms=AT_MS)])

    assert records_of(plain(broker), topic) == {
        offset: Record(one.key, one.value, one.timestamp_ms or 0, tuple(one.headers))
        for offset, one in enumerate(sent)
    }
    assert values(records_of(plain(broker), topic, 1)) == {0: b"elsewhere"}


def test_many_records_fit_in_one_call(broker: KafkaBroker) -> None:
    topic = new_topic(broker)

    produce(broker, topic, (Sent(b"x" * 100) for _ in range(200_000)))

    assert high_watermark(broker, topic) == 200_000
    assert sorted(records_of(plain(broker), topic)) == list(range(200_000))


def test_a_record_that_is_refused_is_told(broker: KafkaBroker) -> None:
    topic = new_topic(broker, config={"max.message.bytes": "1000"})

    with pytest.raises(ServerFailed, match=r"0 not sent, 1 failed.*size"):
        produce(broker, topic, [Sent(random.randbytes(5000))])  # bytes that cannot be compressed


def test_partitions_are_added(broker: KafkaBroker) -> None:
    topic = new_topic(broker, partitions=1)

    add_partitions(broker, topic, 3)

    produce(broker, topic, numbered(2, partition=2))
    assert [high_watermark(broker, topic, number) for number in range(3)] == [0, 0, 2]


def test_a_topic_is_not_made_by_asking_for_it(broker: KafkaBroker) -> None:
    admin(broker).list_topics("nobody", timeout=10)

    with pytest.raises(KafkaException):
        high_watermark(broker, "nobody")


def test_an_open_transaction_holds_the_last_stable_offset(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, numbered(3, word="before"))
    transaction = Transaction(broker)

    transaction.send(topic, numbered(2, word="within"))
    produce(broker, topic, numbered(1, word="after"))

    assert (last_stable(broker, topic), high_watermark(broker, topic)) == (3, 6)
    assert list(records_of(plain(broker), topic)) == [0, 1, 2]
    assert list(records_of(plain(broker), topic, isolation="read_uncommitted")) == [*range(6)]

    transaction.commit()

    assert last_stable(broker, topic) == high_watermark(broker, topic) == 7  # and its marker
    assert list(records_of(plain(broker), topic)) == [*range(6)]


def test_aborted_records_are_not_seen(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    transaction = Transaction(broker)

    transaction.send(topic, numbered(2, word="kept"))
    transaction.commit()
    transaction.send(topic, numbered(2, word="aborted"))
    transaction.abort()

    assert last_stable(broker, topic) == high_watermark(broker, topic) == 6
    assert values(records_of(plain(broker), topic)) == {0: b"kept0", 1: b"kept1"}
    everything = values(records_of(plain(broker), topic, isolation="read_uncommitted"))
    assert everything == {0: b"kept0", 1: b"kept1", 3: b"aborted0", 4: b"aborted1"}


def test_a_transaction_that_nobody_ends_is_given_up(broker: KafkaBroker) -> None:
    topic = new_topic(broker)

    Transaction(broker, open_at_most_s=1).send(topic, numbered(2))

    wait_until(lambda: last_stable(broker, topic) == 3, "the abort", 20, [broker.process])
    assert records_of(plain(broker), topic) == {}


def test_deleted_records_move_the_low_watermark(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, numbered(10))

    assert delete_records(broker, topic, before=4) == 4

    assert (low_watermark(broker, topic), high_watermark(broker, topic)) == (4, 10)
    assert list(records_of(plain(broker), topic)) == [*range(4, 10)]


def test_retention_takes_away_what_is_too_old(broker: KafkaBroker) -> None:
    topic = new_topic(broker, config={"retention.ms": "1000", "segment.ms": "100"})
    produce(broker, topic, [Sent(b"of 1970", timestamp_ms=5)])

    wait_until(lambda: low_watermark(broker, topic) == 1, "retention", 20, [broker.process])

    assert high_watermark(broker, topic) == 1


def test_compaction_leaves_the_last_of_each_key(broker: KafkaBroker) -> None:
    quick = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.ms": "100",
        "max.compaction.lag.ms": "100",
    }
    topic = new_topic(broker, config=quick)
    produce(broker, topic, [Sent(b"old", b"k"), Sent(b"new", b"k"), Sent(b"other", b"j")])

    def is_compacted() -> bool:
        produce(broker, topic, [Sent(b"last", b"l")])  # the newest segment is never compacted
        return 0 not in records_of(plain(broker), topic)

    wait_until(is_compacted, "compaction", 20, [broker.process])
    assert records_of(plain(broker), topic)[1].value == b"new"


def test_kill_9_and_a_start_keep_everything(broker: KafkaBroker) -> None:
    topic = new_topic(broker, partitions=2)
    produce(broker, topic, [*numbered(50), *numbered(7, partition=1)])
    before = [records_of(plain(broker), topic, number) for number in range(2)]
    address, identity, pid = broker.address, topic_id(broker, topic), broker.process.pid

    broker.kill()
    assert not broker.process.is_running
    broker.start()

    assert broker.address == address
    assert broker.process.pid != pid
    assert topic_id(broker, topic) == identity
    assert [records_of(plain(broker), topic, number) for number in range(2)] == before
    produce(broker, topic, numbered(1))
    assert high_watermark(broker, topic) == 51


def test_a_paused_broker_gives_no_answer_and_goes_on(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    client = admin(broker)
    client.list_topics(timeout=10)

    broker.pause()
    with pytest.raises(KafkaException) as caught:
        client.list_topics(timeout=0.5)
    # The second while its connection to the broker by that one's own name is not yet open.
    assert caught.value.args[0].code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)
    broker.resume()

    produce(broker, topic, numbered(1))
    assert high_watermark(broker, topic) == 1


def describe(settings: dict[str, str], topic: str, within_s: float = 10) -> object:
    client = AdminClient({**settings, **QUIET})
    return client.describe_topics(TopicCollection([topic]), request_timeout=within_s)[
        topic
    ].result()


def test_a_user_reads_only_what_a_rule_allows(broker: KafkaBroker) -> None:
    allowed, forbidden = new_topic(broker), new_topic(broker)
    produce(broker, allowed, numbered(1))
    produce(broker, forbidden, numbered(1))
    reader = broker.as_user("reader")

    allow(broker, "reader", allowed)

    assert values(records_of(reader, allowed)) == {0: b"v0"}
    with pytest.raises(KafkaException) as caught:
        describe(reader, forbidden)
    assert caught.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert values(records_of(broker.as_user("admin"), forbidden)) == {0: b"v0"}

    forbid(broker, "reader", allowed)

    with pytest.raises(KafkaException) as caught:
        describe(reader, allowed)
    assert caught.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_wrong_password_is_refused(broker: KafkaBroker) -> None:
    said: list[int] = []
    wrong = {**broker.as_user("reader", password="guessed"), **QUIET}
    client = AdminClient({**wrong, "error_cb": lambda error: said.append(error.code())})

    with pytest.raises(KafkaException):
        client.list_topics(timeout=1)

    client.poll(0)
    assert KafkaError._AUTHENTICATION in said


def test_the_wire_is_cut_and_slowed(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, numbered(3))
    wired = {"bootstrap.servers": broker.wire.address}
    assert list(records_of(wired, topic)) == [0, 1, 2]  # records come this way, too

    with broker.wire.slow(800), pytest.raises(KafkaException):
        describe(wired, topic, within_s=0.5)
    with broker.wire.slow(200):
        describe(wired, topic)
    with broker.wire.cut(), pytest.raises(KafkaException):
        describe(wired, topic, within_s=0.5)

    assert list(records_of(wired, topic)) == [0, 1, 2]


def test_the_wire_has_no_way_around(broker: KafkaBroker) -> None:
    client = AdminClient({"bootstrap.servers": broker.wire.address, **QUIET})
    named = client.list_topics(timeout=10).brokers.values()

    assert [f"{one.host}:{one.port}" for one in named] == [broker.wire.address]
    assert broker.wire.address != broker.address


def test_a_topic_that_is_made_again_has_another_id(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, numbered(3))
    first = topic_id(broker, topic)

    delete_topic(broker, topic)
    new_topic(broker, name=topic)

    assert topic_id(broker, topic) != first
    assert high_watermark(broker, topic) == 0


def test_a_broker_that_cannot_start_says_why(broker: KafkaBroker, tmp_path: Path) -> None:
    other = KafkaBroker(broker.network, settings={"log.cleaner.threads": "many"}, folder=tmp_path)

    with pytest.raises(ServerFailed, match=r"log\.cleaner\.threads"):
        other.__enter__()

    host, port = other.address.split(":")
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect((host, int(port)))


# The independent check


Landed = tuple[str, int, str | None, bytes | None]
"""Partition, offset, value, raw bytes."""


def write(lake: Path, folder: str, rows: Sequence[Landed]) -> None:
    file = lake / folder / f"shard0-commit0000000001-{len(rows)}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    ours = pa.struct(
        [
            ("event_time", pa.timestamp("us", "UTC")),
            ("partition", pa.string()),
            ("number", pa.int64()),
            ("line", pa.int64()),
            ("reason", pa.string()),
            ("raw", pa.binary()),
        ]
    )
    heads = [
        {"event_time": AT_MS * 1000, "partition": partition, "number": number, "raw": raw}
        for partition, number, _, raw in rows
    ]
    columns = {
        "value": pa.array([value for _, _, value, _ in rows], pa.string()),
        "_headgate": pa.array(heads, ours),
    }
    pq.write_table(pa.table(columns), file)


@pytest.fixture
def landed(broker: KafkaBroker, tmp_path: Path) -> tuple[str, Path]:
    """A topic and its lake, as it should be: on time, late and dead."""
    topic = new_topic(broker, partitions=2)
    produce(broker, topic, [*numbered(3), Sent(b"\xff\xfe"), *numbered(2, partition=1)])
    lake = tmp_path / "lake"
    on_time, late = f"2026-11-01/13/{STREAM}/data", f"_late/2026-11-01/12/{STREAM}/data"
    write(lake, on_time, [(f"{topic}/0", 0, "v0", None), (f"{topic}/0", 1, "v1", None)])
    write(lake, on_time, [(f"{topic}/1", 0, "v0", None)])
    write(lake, late, [(f"{topic}/1", 1, "v1", None), (f"{topic}/0", 2, "v2", None)])
    write(lake, f"_dead/{STREAM}/2026-11-01", [(f"{topic}/0", 3, None, b"\xff\xfe")])
    # Not landed, another stream's, or not rows at all.
    write(lake, f"_headgate/staging/{STREAM}/a", [(f"{topic}/0", 0, "v0", None)])
    write(lake, "2026-11-01/13/clicks/data", [(f"{topic}/0", 0, "v0", None)])
    return topic, lake


def test_the_check_finds_nothing_wrong_in_a_right_lake(
    broker: KafkaBroker, landed: tuple[str, Path]
) -> None:
    topic, lake = landed

    assert not difference(plain(broker), topic, range(2), lake, STREAM)
    assert len(list(rows_of(lake, STREAM))) == 6


def test_planted_a_lost_row_is_found(broker: KafkaBroker, landed: tuple[str, Path]) -> None:
    topic, lake = landed

    shutil.rmtree(lake / "_dead")

    found = difference(plain(broker), topic, range(2), lake, STREAM)
    assert found == Difference(lost=[(f"{topic}/0", 3)])


def test_planted_a_doubled_row_is_found(broker: KafkaBroker, landed: tuple[str, Path]) -> None:
    topic, lake = landed

    write(lake, f"2026-11-01/14/{STREAM}/data", [(f"{topic}/1", 1, "v1", None)])

    found = difference(plain(broker), topic, range(2), lake, STREAM)
    assert found == Difference(doubled=[(f"{topic}/1", 1)])


def test_planted_foreign_rows_are_found(broker: KafkaBroker, landed: tuple[str, Path]) -> None:
    topic, lake = landed

    rows: list[Landed] = [("other/0", 0, "v0", None), (f"{topic}/1", 2, "v2", None)]
    write(lake, f"2026-11-01/14/{STREAM}/data", rows)

    found = difference(plain(broker), topic, range(2), lake, STREAM)
    assert found == Difference(foreign=[("other/0", 0), (f"{topic}/1", 2)])


def test_planted_a_changed_row_is_found(broker: KafkaBroker, landed: tuple[str, Path]) -> None:
    topic, lake = landed

    rows: list[Landed] = [(f"{topic}/1", 1, "v1", None), (f"{topic}/0", 2, "v2 ", None)]
    write(lake, f"_late/2026-11-01/12/{STREAM}/data", rows)

    found = difference(plain(broker), topic, range(2), lake, STREAM)
    assert found == Difference(changed=[(f"{topic}/0", 2)])


def test_planted_a_row_of_an_aborted_record_is_foreign(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    transaction = Transaction(broker)
    transaction.send(topic, numbered(1))
    transaction.abort()
    row = Row(f"{topic}/0", 0, b"v0", None, None, "somewhere")
    place: Place = (f"{topic}/0", 0)

    committed = topic_records(plain(broker), topic, [0])
    everything = topic_records(plain(broker), topic, [0], "read_uncommitted")

    assert compare(committed, [row]) == Difference(foreign=[place])
    assert not compare(everything, [row])
    assert compare(everything, [], left_out=frozenset({place})) == Difference()
