"""Client: a Kafka cluster through confluent-kafka; the only file that imports it.

Only what the brokers themselves answer counts. A client that lost its connection says of a topic
that it has no leader, as it does of one that is not there: so whether a topic is there is asked of
`describe_topics` alone, and an offset below zero is no answer.
"""

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from contextlib import closing
from typing import Any, Final, TypeVar

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
)
from confluent_kafka import TopicPartition as At
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec

from headgate.ambient import Ambient, Deadline
from headgate.errors import Invalid, Unavailable
from headgate.sources.kafka import Bounds, Keeping, Sample, Shown, Topic, TopicPartition

CALL_MS: Final = 10_000  # how long one question may take
READ_MS: Final = 20_000  # how long a few records may take
POLL_S: Final = 0.05
END_MS: Final = 20  # a broker waits so long for more before it tells the end of a partition
BATCH: Final = 1_000
TROUBLES_MAX: Final = 5

_MISSING = KafkaError.UNKNOWN_TOPIC_OR_PART
_FORBIDDEN = KafkaError.TOPIC_AUTHORIZATION_FAILED
_OURS: Final = {  # whatever the options say
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",  # else an offset that is gone is passed over in silence
    "allow.auto.create.topics": False,
    "log_level": 0,
}
_ISOLATION: Final = {
    "read_committed": IsolationLevel.READ_COMMITTED,
    "read_uncommitted": IsolationLevel.READ_UNCOMMITTED,
}

log = logging.getLogger(__name__)

Key = TypeVar("Key")
_EARLIEST: OffsetSpec = OffsetSpec.earliest()
_LATEST: OffsetSpec = OffsetSpec.latest()


class KafkaCluster:
    """`headgate.sources.kafka.ShowingCluster`."""

    def __init__(
        self, brokers: str, options: Mapping[str, str], isolation: str, ambient: Ambient
    ) -> None:
        """The secrets in `options` are resolved. Raises Invalid."""
        self._brokers = brokers
        self._ambient = ambient
        self._isolation = isolation
        self._troubles: list[str] = []  # what the client says of its own accord
        self._lock = threading.Lock()
        shared = {"client.id": "headgate", **options, "bootstrap.servers": brokers}
        self._conf: dict[str, Any] = {**shared, "log_level": 0, "error_cb": self._hear}
        self._consumer_conf: dict[str, Any] = {
            "group.id": "headgate",  # never joined, and yet it must have a name
            "fetch.wait.max.ms": END_MS,  # what is read here is a few records up to the end
            **self._conf,
            **_OURS,
            "isolation.level": isolation,
        }
        try:
            self._admin = AdminClient(self._conf)
        except (KafkaException, ValueError, TypeError) as error:
            raise Invalid(
                f"the Kafka client refuses its options: {_words(error)}; next: correct "
                "source.options in the settings"
            ) from error

    def names(self) -> list[str]:
        try:
            return list(self._admin.list_topics(timeout=_s(CALL_MS)).topics)
        except KafkaException as error:
            raise self._unavailable("topics cannot be asked for", error) from error

    def topics(self, names: Collection[str]) -> Mapping[str, Topic]:
        asked = self._admin.describe_topics(TopicCollection([*names]), request_timeout=_s(CALL_MS))
        return {name: self._topic(name, future) for name, future in asked.items()}

    def _topic(self, name: str, future: "Future[Any]") -> Topic:
        try:
            found = future.result()
        except KafkaException as error:
            code = error.args[0].code()
            if code == _MISSING:
                return Topic(
                    "",
                    0,
                    f"topic {name} is not there; next: create it, or take it out of the settings",
                    is_missing=True,
                )
            if code == _FORBIDDEN:
                return Topic(
                    "",
                    0,
                    _may_not_read(name),
                )
            raise self._unavailable("topics cannot be asked for", error) from error
        return Topic(str(found.topic_id), len(found.partitions))

    def bounds(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, Bounds]:
        asked = [*partitions]
        if not asked:
            return {}
        uncommitted = IsolationLevel.READ_UNCOMMITTED
        low = self._offsets(asked, _EARLIEST, uncommitted)
        high = self._offsets(low, _LATEST, uncommitted)
        # After `high`: who reaches this one has read all that was there when that was asked.
        stable = self._offsets(high, _LATEST, IsolationLevel.READ_COMMITTED)
        return {one: Bounds(low[one], high[one], stable[one]) for one in stable}

    def offsets_at(
        self, partitions: Collection[TopicPartition], at_ms: int
    ) -> Mapping[TopicPartition, int]:
        asked = {At(*one): OffsetSpec.for_timestamp(at_ms) for one in partitions}
        found = self._answers(
            self._admin.list_offsets(asked, request_timeout=_s(CALL_MS)), _address
        )
        after = {one: info.offset for one, info in found.items() if info.offset >= 0}
        none = [one for one in found if one not in after]  # nothing is so young: at the end
        ends = self._offsets(none, _LATEST, _ISOLATION[self._isolation])
        return {**after, **ends}

    def keeping(self, names: Collection[str]) -> Mapping[str, Keeping]:
        asked = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
        if not asked:  # which the client refuses
            return {}
        futures = self._admin.describe_configs(asked, request_timeout=_s(CALL_MS))
        found = dict[str, Keeping]()
        for resource, future in futures.items():
            try:
                settings = future.result()
            except KafkaException as error:  # not every reader has the right, and it is no harm
                log.debug("kafka.no_settings", extra={"topic": resource.name, "why": str(error)})
                continue
            policy = settings["cleanup.policy"].value
            kept_ms = int(settings["retention.ms"].value)
            is_kept = kept_ms < 0 or "delete" not in policy
            kept_bytes = int(settings["retention.bytes"].value)
            found[resource.name] = Keeping(
                None if is_kept else kept_ms,
                "compact" in policy,
                None if kept_bytes < 0 or "delete" not in policy else kept_bytes,
                settings["message.timestamp.type"].value,
            )
        return found

    def sample(self, partition: TopicPartition, offset: int, records_max: int) -> Sample:
        records = size_bytes = 0
        oldest_ms: int | None = None
        for message in self._read(partition, offset, 1 << 62, records_max):
            if not records:
                oldest_ms = _stamp_ms(message)
            records += 1
            size_bytes += len(message)
        return Sample(records, size_bytes, oldest_ms)

    def count(self, partition: TopicPartition, first: int, following: int) -> int:
        return sum(1 for _ in self._read(partition, first, following, following - first))

    def shown(self, partition: TopicPartition, offset: int, records_max: int) -> tuple[Shown, ...]:
        return tuple(
            Shown(int(message.offset() or 0), message.value(), _stamp_ms(message))
            for message in self._read(partition, offset, 1 << 62, records_max)
        )

    def _read(
        self, partition: TopicPartition, first: int, following: int, records_max: int
    ) -> Iterable[Message]:
        """From one offset to before another, or to the end. Raises Unavailable."""
        what = f"{partition[0]}/{partition[1]}: records from offset {first:,} on"
        deadline = Deadline(self._ambient, READ_MS)
        given = 0
        with closing(self._consumer()) as consumer:
            consumer.assign([At(*partition, first)])
            while given < records_max:
                if deadline.is_over():
                    raise self._unavailable(f"{what} did not come in time")
                batch = consumer.consume(min(BATCH, records_max - given), timeout=POLL_S)
                for message in batch:
                    error = message.error()
                    if error is not None and error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                        return
                    if error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                        continue  # no group is used
                    if error is not None and error.code() == _FORBIDDEN:
                        raise Unavailable(_may_not_read(partition[0]))
                    if error is not None:
                        raise self._unavailable(f"{what} cannot be read", KafkaException(error))
                    offset = message.offset()
                    if offset is None or offset >= following:
                        return
                    given += 1
                    yield message
                where = consumer.position([At(*partition)])[0].offset
                if where is not None and where >= following:  # what is left are no records
                    return

    def _consumer(self) -> Consumer:
        try:
            return Consumer(self._consumer_conf)
        except (KafkaException, ValueError, TypeError) as error:
            raise Invalid(
                f"the Kafka client refuses its options: {_words(error)}; next: correct "
                "source.options in the settings"
            ) from error

    def _offsets(
        self, partitions: Iterable[TopicPartition], spec: OffsetSpec, isolation: IsolationLevel
    ) -> dict[TopicPartition, int]:
        """Of those that answer."""
        asked = {At(*one): spec for one in partitions}
        if not asked:
            return {}
        futures = self._admin.list_offsets(
            asked, isolation_level=isolation, request_timeout=_s(CALL_MS)
        )
        found = self._answers(futures, _address)
        return {one: info.offset for one, info in found.items() if info.offset >= 0}

    def _answers(
        self, futures: Mapping[Any, "Future[Any]"], key_of: Callable[[Any], Key]
    ) -> dict[Key, Any]:
        """Of those that answer: one without a leader is no harm to the others. Raises Unavailable:
        nobody does."""
        found, last = dict[Key, Any](), None
        for asked, future in futures.items():
            try:
                found[key_of(asked)] = future.result()
            except KafkaException as error:
                last = error
        if futures and not found:
            raise self._unavailable("ends of partitions cannot be asked for", last)
        return found

    def _unavailable(self, what: str, error: Exception | None = None) -> Unavailable:
        self._admin.poll(0)  # what it has to say
        with self._lock:
            told, self._troubles = self._troubles, []
        said = told[-1:] if error is None else [*told[-1:], _words(error)]
        cause = "; ".join(dict.fromkeys(said)) or "no answer"
        return Unavailable(
            f"Kafka at {self._brokers}: {what} ({cause}); nothing was read, and no hour is "
            "complete; next: start the brokers, or correct source in the settings"
        )

    def _hear(self, error: KafkaError) -> None:
        """A wrong password is told here, and nowhere else."""
        with self._lock:
            kept = [one for one in self._troubles if one.startswith(_REFUSED)]
            is_refused = error.code() == KafkaError._AUTHENTICATION  # noqa: SLF001
            words = f"{_REFUSED}: {error.str()}" if is_refused else str(error.str())
            self._troubles = [words, *kept][:TROUBLES_MAX] if kept else [words]


_REFUSED: Final = "user or password is refused"


def _may_not_read(topic: str) -> str:
    return f"topic {topic} may not be read; next: give this user the right READ on it"


def _stamp_ms(message: Message) -> int | None:
    kind, stamp_ms = message.timestamp()
    return stamp_ms if kind and stamp_ms >= 0 else None


def _address(at: Any) -> TopicPartition:
    return at.topic, at.partition


def _s(ms: int) -> float:
    return ms / 1000


def _words(error: BaseException) -> str:
    first = error.args[0] if error.args else error
    return first.str() if isinstance(first, KafkaError) else str(error)
