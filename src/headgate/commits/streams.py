"""Streams: the document that all shards of a stream, and whoever closes its hours, agree on.

first_hour_ms   fixed once, never before the root's frontier when the stream joined (`floor_ms`)
closing_ms      hours that end by then are being closed, or are: a source partition that joins
                now is late for them. Only ready moves it, forward
closed_ms       hours that end by then have their certificate: a checkpoint forgets them
retired         by a person, for good: nothing more of it is read
"""

from dataclasses import dataclass, replace
from typing import Literal

from headgate.store.codec import Truth, Whole
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
    closing_ms: Whole | None = None
    paused: Pause | None = None
    hash: Literal["sha256"] = "sha256"  # from the name of a source partition to its shard
    floor_ms: Whole | None = None
    closed_ms: Whole | None = None
    retired: Pause | None = None
    has_outputs: Truth = False  # since it began: it lands under their names and not its own
    format: Literal[1] = 1


def stream_key(stream: str) -> str:
    return f"{STREAMS}/{key(stream)}"


def with_first_hour(found: StreamDocument, hour_ms: int) -> StreamDocument:
    """Whoever is first decides."""
    if found.first_hour_ms is not None:
        return found
    floor_ms = hour_ms if found.floor_ms is None else found.floor_ms
    return replace(found, first_hour_ms=max(hour_ms, floor_ms))


def with_closing(
    found: StreamDocument, closing_ms: int | None, closed_ms: int | None
) -> StreamDocument:
    """None says nothing; neither ever moves back."""
    return replace(
        found,
        closing_ms=_later(found.closing_ms, closing_ms),
        closed_ms=_later(found.closed_ms, closed_ms),
    )


def _later(one_ms: int | None, other_ms: int | None) -> int | None:
    return max((ms for ms in (one_ms, other_ms) if ms is not None), default=None)
