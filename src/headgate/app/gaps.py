"""Gaps: a person accepts that records are gone at a Kafka cluster, and reading goes on behind them.

    noted in the ledger ──▶ the stream's Kafka document says so ──▶ its shards are released

A crash in between leaves a line about something that was begun, or a shard that is still set aside
though its gap is accepted: the same act again does what is left of it, and nothing twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from shlex import quote

from headgate.ambient import Ambient
from headgate.app.acts import Acts, Person
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.streams import StreamDocument, stream_key
from headgate.errors import Halted, Invalid, Unavailable
from headgate.lake import Lake
from headgate.lake.ledger import Ledger
from headgate.landing import StreamSettings
from headgate.landing.stream_document import shard_of
from headgate.settings.problems import nearest
from headgate.sources import KafkaSettings
from headgate.sources.kafka import Bounds, Cluster, Topic
from headgate.sources.kafka.document import (
    KafkaDocument,
    document_key,
    parsed_name,
    with_accepted,
    with_next_life,
)
from headgate.sources.kafka.source import CLOSED
from headgate.status.streams import shards_of
from headgate.store import DocumentStore
from headgate.store.changes import Kept, change, read


@dataclass(frozen=True, slots=True)
class Accepted:
    stream: str
    what: str  # a source partition, or a topic
    words: str  # what is gone
    is_new: bool  # False: it was accepted before
    released: tuple[int, ...]  # shards that were set aside, and go on now

    @property
    def is_anything_done(self) -> bool:
        return self.is_new or bool(self.released)


def kafka_of(stream: StreamSettings) -> KafkaSettings:
    """Raises Invalid: it is read from files."""
    if not isinstance(stream.source, KafkaSettings):
        raise Invalid(
            f"stream {stream.name} is read from files: what vanishes there is a gap on record by "
            f"itself, and nobody needs to accept it; next: headgate status {quote(stream.name)}"
        )
    return stream.source


class GapActs:
    """For whoever has the store and the lake of an installation."""

    def __init__(self, store: DocumentStore, lake: Lake, ledger: Ledger, ambient: Ambient) -> None:
        self._store = store
        self._ledger = ledger
        self._acts = Acts(store, lake, ledger, ambient)

    def accept(
        self, stream: StreamSettings, what: str, cluster: Cluster, person: Person
    ) -> Accepted:
        """`what`: a source partition whose next records expired, or a topic that was deleted and
        made again. Raises Invalid (there is no such one), Halted (nothing of it is gone),
        Unavailable, OutcomeUnknown."""
        kafka_of(stream)
        found = read(self._store, document_key(stream.name), KafkaDocument)
        if found is None:
            raise Invalid(
                f"stream {stream.name}: no node has ever read it here; next: headgate status "
                "shows those that there are"
            )
        if "/" in what:
            return self._accept_partition(stream, found, what, cluster, person)
        return self._accept_topic(stream, found, what, cluster, person)

    def _accept_partition(
        self,
        stream: StreamSettings,
        found: Kept[KafkaDocument],
        partition: str,
        cluster: Cluster,
        person: Person,
    ) -> Accepted:
        shard, checkpoint = self._checkpoint(stream, partition)
        position = _position(stream.name, partition, checkpoint, found.value)
        low = _bounds(stream.name, partition, found.value, cluster).low
        if low <= position:
            raise Halted(
                f"{partition}: nothing of it is gone: offset {position:,} is read next, and the "
                f"topic has all from {low:,} on; nothing was changed; next: headgate status "
                f"{quote(stream.name)}"
            )
        words = f"offsets {position:,} to {low - 1:,} expired before they were read"
        is_new = found.value.accepted.get(partition) != position
        if is_new:
            self._note(stream.name, partition, f"{position}", words, person)
            change(
                self._store,
                found.key,
                KafkaDocument,
                lambda value: with_accepted(value, partition, position),
                found,
            )
        return Accepted(
            stream.name, partition, words, is_new, self._released(stream, (shard,), person)
        )

    def _accept_topic(
        self,
        stream: StreamSettings,
        found: Kept[KafkaDocument],
        name: str,
        cluster: Cluster,
        person: Person,
    ) -> Accepted:
        life = found.value.lives.get(name)
        if life is None:
            raise _unknown(stream.name, name, found.value.lives)
        topic = _topic(name, cluster)
        is_new = topic.id != life.id
        if not is_new and life.number == 1:
            raise Halted(
                f"topic {name}: is the one that was read from the start, and nothing was changed; "
                "next: if records of it expired, name the source partition as headgate status "
                f"{quote(stream.name)} does"
            )
        words = "the topic was deleted and made again: what was not read of the old one is gone"
        if is_new:
            self._note(stream.name, name, topic.id, words, person)
            change(
                self._store,
                found.key,
                KafkaDocument,
                lambda value: with_next_life(value, name, topic),
                found,
            )
        shards = tuple(range(self._shards(stream)))
        return Accepted(stream.name, name, words, is_new, self._released(stream, shards, person))

    def _checkpoint(self, stream: StreamSettings, partition: str) -> tuple[int, Checkpoint]:
        """Of the shard that this source partition belongs to. Raises Invalid: of none."""
        shards = self._shards(stream)
        every = {
            shard: found.value
            for shard in range(shards)
            if (found := read(self._store, checkpoint_key(stream.name, shard), Checkpoint))
        }
        shard = shard_of(partition, shards)
        if shard not in every or partition not in every[shard].positions:
            known = [name for one in every.values() for name in one.positions if "/" in name]
            raise _unknown(stream.name, partition, known)
        return shard, every[shard]

    def _shards(self, stream: StreamSettings) -> int:
        found = read(self._store, stream_key(stream.name), StreamDocument)
        return shards_of(stream, None if found is None else found.value)

    def _released(
        self, stream: StreamSettings, shards: tuple[int, ...], person: Person
    ) -> tuple[int, ...]:
        before = {shard: self._acts.release(stream.name, shard, person) for shard in shards}
        return tuple(shard for shard, task in before.items() if task is not None and task.set_aside)

    def _note(self, stream: str, what: str, which: str, words: str, person: Person) -> None:
        """Under one id for each gap: whoever has to begin again notes it again."""
        subject = f"{stream}/{what}"
        self._ledger.note(
            "gap.accepted",
            subject,
            f"{words}; {person.reason}",
            id=f"gap accepted {subject} {which}",
            who=person.who,
        )


def _position(stream: str, partition: str, checkpoint: Checkpoint, document: KafkaDocument) -> int:
    """Where a look will find it: a journal that stands is finished before, and the first read
    begins where that was fixed. Raises Halted: nothing of it can be gone."""
    journal = checkpoint.journal
    ahead = {} if journal is None or checkpoint.restage is not None else journal.positions
    position = ahead.get(partition, checkpoint.positions[partition])
    if not position and partition in document.starts:
        return document.starts[partition]
    if position in ("", CLOSED):
        why = "it is over" if position else "nobody has looked at it yet"
        raise Halted(
            f"{partition}: {why}, so nothing is missing, and nothing was changed; next: headgate "
            f"status {quote(stream)}"
        )
    return int(position)


def _bounds(stream: str, partition: str, document: KafkaDocument, cluster: Cluster) -> Bounds:
    """Of the topic that was read so far. Raises Halted: another one has its name; Unavailable."""
    name, _, number = parsed_name(partition)
    topic, life = _topic(name, cluster), document.lives.get(name)
    if life is None or topic.id != life.id:
        raise Halted(
            f"{partition}: topic {name} was deleted and made again, and nothing was changed; next: "
            f'headgate gap accept {quote(stream)} {quote(name)} --reason "…"'
        )
    found = cluster.bounds([(name, number)]).get((name, number))
    if found is None:
        raise Unavailable(
            f"{partition}: cannot be asked for its first offset now, and nothing was changed; "
            "next: the same command again"
        )
    return found


def _topic(name: str, cluster: Cluster) -> Topic:
    """Raises Halted: it is not there, or not to be read."""
    topic = cluster.topics([name])[name]
    if not topic.id:
        raise Halted(topic.why)
    return topic


def _unknown(stream: str, what: str, known: Iterable[str]) -> Invalid:
    near = nearest(what, known)
    hint = f"the nearest is {near!r}" if near else "there is none at all"
    return Invalid(
        f"stream {stream} reads no {what!r}: {hint}; next: headgate status {quote(stream)}"
    )
