"""Stream document: what all shards of a stream must agree on, and what a person wants of it.

The number of shards and the first hour are fixed once: every folder and checkpoint rests on them.
"""

import hashlib
from dataclasses import dataclass, replace
from typing import Literal

from headgate.errors import Invalid, Unavailable
from headgate.landing import StreamSettings
from headgate.store import DocumentStore
from headgate.store.changes import change, create_if_absent, read
from headgate.store.codec import Whole
from headgate.store.names import key

STREAMS = "streams"


@dataclass(frozen=True, slots=True)
class Pause:
    reason: str
    who: str
    at_ms: Whole


@dataclass(frozen=True, slots=True)
class StreamDocument:
    shards: Whole
    first_hour_ms: Whole | None = None  # None: nothing has landed
    closing_ms: Whole | None = None  # hours that end by then are being closed, or are
    paused: Pause | None = None
    hash: Literal["sha256"] = "sha256"  # from the name of a source partition to its shard
    format: Literal[1] = 1


def stream_key(stream: str) -> str:
    return f"{STREAMS}/{key(stream)}"


def shard_of(partition: str, shards: int) -> int:
    """The bucket that a source partition's name hashes to."""
    return int.from_bytes(hashlib.sha256(partition.encode()).digest()[:8], "big") % shards


def open_stream(store: DocumentStore, settings: StreamSettings) -> StreamDocument:
    """Raises Invalid if the settings contradict what is fixed, Unavailable, Corrupt."""
    name = stream_key(settings.name)
    found = read(store, name, StreamDocument)
    if found is None:
        create_if_absent(store, name, StreamDocument(settings.shards, settings.first_hour_ms))
        found = read(store, name, StreamDocument)
    if found is None:
        raise Unavailable(f"{name}: was deleted just now; it is made again at the next try")
    if found.value.shards != settings.shards:
        raise Invalid(
            f"stream {settings.name} has {found.value.shards} shards since it began, and the "
            f"settings say {settings.shards}; the number of shards of a live stream is fixed; "
            f"next: write shards: {found.value.shards}, or give the stream another name"
        )
    return found.value


def fix_first_hour(store: DocumentStore, stream: str, hour_ms: int) -> int:
    """Whoever is first decides. Raises Unavailable, OutcomeUnknown."""

    def decide(found: StreamDocument) -> StreamDocument:
        return found if found.first_hour_ms is not None else replace(found, first_hour_ms=hour_ms)

    fixed = change(store, stream_key(stream), StreamDocument, decide).value.first_hour_ms
    return hour_ms if fixed is None else fixed
