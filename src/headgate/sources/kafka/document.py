"""Document: what all shards of a stream must agree on about its topics. `kafka/<stream>`.

lives      a topic that was deleted and made again has another id, and offsets that begin again:
           reading goes on in its next life only when a person says so
starts     by source partition: where reading begins, fixed at first sight: what expires after that,
           and before the first read, is a gap as any other
accepted   by source partition: records that begin there are gone, and a person accepted it

Written by compare-and-set; who comes second reads what the first one wrote.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from headgate.errors import Halted
from headgate.sources.kafka import Topic
from headgate.store import DocumentStore
from headgate.store.changes import Kept, change, create_if_absent, read
from headgate.store.codec import Whole, body_of, parse_text
from headgate.store.names import key

KAFKA = "kafka"

_NAME = re.compile(r"([^/~]+)(?:~([0-9]+))?/([0-9]+)")


@dataclass(frozen=True, slots=True)
class Life:
    """One life of a topic."""

    id: str
    number: Whole  # from 1 on
    began_with: Whole  # partitions: one that is added later is read from its beginning


@dataclass(frozen=True, slots=True)
class KafkaDocument:
    lives: Mapping[str, Life] = field(default_factory=dict)  # by topic
    starts: Mapping[str, Whole] = field(default_factory=dict)
    accepted: Mapping[str, Whole] = field(default_factory=dict)
    format: Literal[1] = 1


def document_key(stream: str) -> str:
    return f"{KAFKA}/{key(stream)}"


def partition_name(topic: str, life: int, number: int) -> str:
    return f"{topic}/{number}" if life == 1 else f"{topic}~{life}/{number}"


def parsed_name(name: str) -> tuple[str, int, int]:
    """Topic, life and number of a source partition. Raises Halted: it is none of a topic."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise Halted(
            f"{name}: is no partition of a topic: this stream was read from a source of another "
            "kind before; nothing is read until a person decides; next: read the topics as a "
            "stream of another name"
        )
    topic, life, number = found.groups()
    return topic, int(life or 1), int(number)


def with_topics(found: KafkaDocument, topics: Mapping[str, Topic]) -> KafkaDocument:
    """With those that are seen for the first time. A life that is known stays."""
    new = {
        name: Life(topic.id, 1, topic.partitions)
        for name, topic in topics.items()
        if topic.id and name not in found.lives
    }
    return replace(found, lives={**found.lives, **new}) if new else found


def with_next_life(found: KafkaDocument, name: str, topic: Topic) -> KafkaDocument:
    """A person decided to go on with the topic that has this name now. None of its partitions was
    there before: all are read from their beginning."""
    known = found.lives.get(name)
    if known is None or known.id == topic.id:
        return found
    return replace(found, lives={**found.lives, name: Life(topic.id, known.number + 1, 0)})


def with_starts(found: KafkaDocument, starts: Mapping[str, int]) -> KafkaDocument:
    """Whoever is first decides."""
    new = {name: offset for name, offset in starts.items() if name not in found.starts}
    return replace(found, starts={**found.starts, **new}) if new else found


def with_accepted(found: KafkaDocument, partition: str, first: int) -> KafkaDocument:
    return replace(found, accepted={**found.accepted, partition: first})


def kafka_origin(found: KafkaDocument, unread: Collection[str]) -> dict[str, object]:
    """What a commit record keeps of it, for whoever makes a lost store anew. Where reading begins
    is told of partitions of which nothing was read: of the others their position tells more."""
    starts = {name: at for name, at in found.starts.items() if name in unread}
    kept = replace(found, starts=starts, accepted={})
    return {"kafka": cast("dict[str, object]", body_of(kept))}


def from_origins(origins: Iterable[Mapping[str, object]]) -> KafkaDocument | None:
    """What the records of a stream keep, the oldest first; None: none of them keeps anything. A
    later life of a topic stands for an earlier one. Raises Corrupt."""
    document: KafkaDocument | None = None
    for origin in origins:
        if "kafka" not in origin:
            continue
        raw = json.dumps(origin["kafka"]).encode()
        found = parse_text(raw, "a commit record's origin", KafkaDocument)
        known = document or KafkaDocument()
        lives = {
            topic: max(known.lives.get(topic, life), life, key=lambda one: one.number)
            for topic, life in found.lives.items()
        }
        document = KafkaDocument({**known.lives, **lives}, {**known.starts, **found.starts})
    return document


def fix_starts(store: DocumentStore, stream: str, starts: Mapping[str, int]) -> KafkaDocument:
    """Raises Unavailable, OutcomeUnknown."""
    name = document_key(stream)
    return change(store, name, KafkaDocument, lambda one: with_starts(one, starts)).value


def open_document(
    store: DocumentStore, stream: str, topics: Mapping[str, Topic]
) -> Kept[KafkaDocument]:
    """With every topic that is there. Raises Unavailable, OutcomeUnknown, Conflict, Corrupt."""
    name = document_key(stream)
    found = read(store, name, KafkaDocument)
    if found is None:
        create_if_absent(store, name, with_topics(KafkaDocument(), topics))
    elif with_topics(found.value, topics) == found.value:
        return found
    return change(store, name, KafkaDocument, lambda one: with_topics(one, topics))
