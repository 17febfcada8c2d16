"""Topics of a test: made, filled, trimmed and guarded, with nothing of Headgate.

Every call has a client of its own: one that lived through a restart of the broker may keep the old
leader's epoch and be refused for ever. What a call did can be seen by everybody when it returns.
"""

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.servers.kafka import QUIET, RECORD_BYTES_MAX, KafkaBroker
from tests.servers.process import ServerFailed, wait_until

ANSWER_WITHIN_S = 10
SEEN_WITHIN_S = 20
SENT_WITHIN_S = 60


@dataclass(frozen=True, slots=True)
class Sent:
    """One record to produce. No time: the client's own; 0 is no time, either."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int | None = None
    partition: int = 0


def new_topic(
    broker: KafkaBroker,
    partitions: int = 1,
    config: Mapping[str, str] | None = None,
    name: str | None = None,
) -> str:
    """A topic that no other test has. Its records stay for ever unless `config` says otherwise."""
    topic = name or f"topic-{uuid.uuid4().hex[:12]}"
    client = admin(broker)
    wanted = NewTopic(topic, partitions, 1, config=dict(config or {}))
    client.create_topics([wanted], request_timeout=ANSWER_WITHIN_S)[topic].result()
    _wait_for_partitions(broker, topic, partitions)
    return topic


def add_partitions(broker: KafkaBroker, topic: str, total: int) -> None:
    client = admin(broker)
    wanted = [NewPartitions(topic, total)]
    client.create_partitions(wanted, request_timeout=ANSWER_WITHIN_S)[topic].result()
    _wait_for_partitions(broker, topic, total)


def delete_topic(broker: KafkaBroker, topic: str) -> None:
    client = admin(broker)
    client.delete_topics([topic], request_timeout=ANSWER_WITHIN_S)[topic].result()

    def is_gone() -> bool:
        return topic not in client.list_topics(timeout=ANSWER_WITHIN_S).topics

    wait_until(is_gone, f"{topic} to be gone", SEEN_WITHIN_S, [broker.process])


def topic_id(broker: KafkaBroker, topic: str) -> str:
    """Another one when the topic was deleted and made again."""
    client = admin(broker)
    wanted = TopicCollection([topic])
    asked = client.describe_topics(wanted, request_timeout=ANSWER_WITHIN_S)
    return str(asked[topic].result().topic_id)


def produce(broker: KafkaBroker, topic: str, records: Iterable[Sent]) -> None:
    """All of them are acknowledged when it returns. Raises ServerFailed."""
    _send(Producer(_sending(broker)), topic, records)


def producer(broker: KafkaBroker) -> Producer:
    """For many sends to a broker that is not restarted meanwhile."""
    return Producer({**_sending(broker), "linger.ms": 0, "delivery.report.only.error": False})


def send_in_order(producer: Producer, topic: str, records: Iterable[Sent]) -> int:
    """The offset of the first, once all are acknowledged. Raises ServerFailed."""
    return min(_send(producer, topic, records))


class Transaction:
    """Open from its first send() on, until commit() or abort(), or until the broker gives it up.

    Records of the same producer's next transaction may follow at once.
    """

    def __init__(self, broker: KafkaBroker, *, open_at_most_s: int = 300) -> None:
        self._broker = broker
        self._touched: set[tuple[str, int]] = set()
        self._producer = Producer(
            {
                **_sending(broker),
                "transactional.id": f"tx-{uuid.uuid4().hex[:12]}",
                "transaction.timeout.ms": open_at_most_s * 1000,
            }
        )
        self._producer.init_transactions(SENT_WITHIN_S)

    def send(self, topic: str, records: Iterable[Sent]) -> None:
        """They have their offsets when it returns, and nobody may read them yet."""
        sent = list(records)
        if not self._touched:
            self._producer.begin_transaction()
        self._touched.update((topic, record.partition) for record in sent)
        _send(self._producer, topic, sent)

    def commit(self) -> None:
        before = self._ends()
        self._producer.commit_transaction(SENT_WITHIN_S)
        self._wait_for_markers(before)

    def abort(self) -> None:
        before = self._ends()
        self._producer.abort_transaction(SENT_WITHIN_S)
        self._wait_for_markers(before)

    def _ends(self) -> dict[tuple[str, int], int]:
        ends = {at: high_watermark(self._broker, *at) for at in self._touched}
        self._touched.clear()
        return ends

    def _wait_for_markers(self, before: Mapping[tuple[str, int], int]) -> None:
        """The client is told of the end before each partition has its marker, a record of its own.

        Somebody else's record would be taken for it: a test that has those looks for itself.
        """

        def are_there() -> bool:
            return all(high_watermark(self._broker, *at) > end for at, end in before.items())

        wait_until(are_there, "the end of a transaction", SEEN_WITHIN_S, [self._broker.process])


def delete_records(broker: KafkaBroker, topic: str, before: int, partition: int = 0) -> int:
    """The new low watermark: all records before that offset are gone, as by retention."""
    client = admin(broker)
    at = TopicPartition(topic, partition, before)
    asked = client.delete_records([at], request_timeout=ANSWER_WITHIN_S)
    return int(asked[at].result().low_watermark)


def low_watermark(broker: KafkaBroker, topic: str, partition: int = 0) -> int:
    """Offset of the first record that is still there."""
    return _watermarks(broker, topic, partition, "read_uncommitted")[0]


def high_watermark(broker: KafkaBroker, topic: str, partition: int = 0) -> int:
    """Offset of the next record."""
    return _watermarks(broker, topic, partition, "read_uncommitted")[1]


def last_stable(broker: KafkaBroker, topic: str, partition: int = 0) -> int:
    """Offset of the first record of an open transaction; the high watermark without one."""
    return _watermarks(broker, topic, partition, "read_committed")[1]


def allow(
    broker: KafkaBroker,
    user: str,
    topic: str,
    operations: Sequence[AclOperation] = (AclOperation.READ,),
) -> None:
    """READ brings DESCRIBE with it, which is enough for offsets; settings need DESCRIBE_CONFIGS."""
    client = admin(broker)
    wanted = [
        AclBinding(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for operation in operations
    ]
    for asked in client.create_acls(wanted, request_timeout=ANSWER_WITHIN_S).values():
        asked.result()
    _wait_for_rules(broker, user, topic, len(operations))


def forbid(broker: KafkaBroker, user: str, topic: str) -> None:
    """Takes back all that was allowed: nothing is, without a rule."""
    client = admin(broker)
    rules = [_rules(user, topic)]
    for asked in client.delete_acls(rules, request_timeout=ANSWER_WITHIN_S).values():
        asked.result()
    _wait_for_rules(broker, user, topic, 0)


def admin(broker: KafkaBroker) -> AdminClient:
    """To be kept until the answers are there: those of a client that is gone never come."""
    return AdminClient({"bootstrap.servers": broker.address, **QUIET})


def _sending(broker: KafkaBroker) -> dict[str, str | int | float | bool]:
    return {
        "bootstrap.servers": broker.address,
        **QUIET,
        "compression.type": "lz4",
        "linger.ms": 5,
        "message.max.bytes": RECORD_BYTES_MAX - 1_000_000,  # room for what comes around a record
        "queue.buffering.max.kbytes": 500_000,
        "delivery.report.only.error": True,  # one call for each record costs more than sending it
    }


def _send(producer: Producer, topic: str, records: Iterable[Sent]) -> list[int]:
    """The offsets of those that were reported."""
    failed: list[str] = []
    offsets: list[int] = []

    def note(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failed.append(str(error))
        else:
            offsets.append(int(message.offset() or 0))

    until_s = time.monotonic() + SENT_WITHIN_S
    for record in records:
        while True:
            try:
                producer.produce(
                    topic,
                    record.value,
                    record.key,
                    record.partition,
                    on_delivery=note,
                    timestamp=record.timestamp_ms or 0,
                    headers=list(record.headers),
                )
                break
            except BufferError as error:  # the queue is full
                if time.monotonic() > until_s:
                    raise ServerFailed(f"{topic}: the queue stayed full") from error
                producer.poll(0.1)
    left = producer.flush(SENT_WITHIN_S)
    if left or failed:
        raise ServerFailed(f"{topic}: {left} not sent, {len(failed)} failed: {failed[:1]}")
    return offsets


def _watermarks(broker: KafkaBroker, topic: str, partition: int, isolation: str) -> tuple[int, int]:
    """By a consumer: an admin client's request just after a change may wait for three seconds."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            **QUIET,
            "group.id": "watermarks",
            "isolation.level": isolation,
        }
    )
    try:
        found = consumer.get_watermark_offsets(
            TopicPartition(topic, partition), timeout=ANSWER_WITHIN_S
        )
    finally:
        consumer.close()
    if found is None:
        raise ServerFailed(f"{topic}/{partition}: no answer in {ANSWER_WITHIN_S} s")
    low, high = found
    return low, high


def _wait_for_partitions(broker: KafkaBroker, topic: str, total: int) -> None:
    client = admin(broker)

    def are_led() -> bool:
        with suppress(KafkaException):
            found = client.list_topics(topic, timeout=ANSWER_WITHIN_S).topics[topic]
            led = [one for one in found.partitions.values() if one.leader >= 0]
            if found.error is None and len(led) == total:
                for number in range(total):  # the leader knows that it leads
                    high_watermark(broker, topic, number)
                return True
        return False

    wait_until(are_led, f"{total} partitions of {topic}", SEEN_WITHIN_S, [broker.process])


def _wait_for_rules(broker: KafkaBroker, user: str, topic: str, total: int) -> None:
    client = admin(broker)

    def are_known() -> bool:
        asked = client.describe_acls(_rules(user, topic), request_timeout=ANSWER_WITHIN_S)
        return len(asked.result()) == total

    wait_until(are_known, f"{total} rules for {user}", SEEN_WITHIN_S, [broker.process])


def _rules(user: str, topic: str) -> AclBindingFilter:
    return AclBindingFilter(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
