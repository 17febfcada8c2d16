"""Feed state: how far the leader has created the tasks of a feed, and which it has removed.

    create task n (its name is its number: whoever creates it, it is the same) ──▶ next = n + 1
    task n is done ──▶ n is among the removed ──▶ its document is deleted

The order of these writes is the proof. A leader that dies in between leaves a task that is created
again under the same name, or a removed one whose document is still there: both are seen by the next
leader. A leader that was paused before a create, and wakes after the task was done and removed,
brings its document back; but its number is among the removed, and whoever claims it looks there
*after* its claim, before it starts. Without that, a task could be done twice.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from headgate.errors import Fenced
from headgate.store.codec import Whole
from headgate.store.names import key

FEEDS = "cluster/feeds"

Spans = tuple[tuple[Whole, Whole], ...]
"""Numbers as half-open spans in order: few, however many numbers."""


@dataclass(frozen=True, slots=True)
class FeedState:
    epoch: Whole = 0  # of the leader that wrote it: an older one's write is refused
    next: Whole = 0
    removed: Spans = ()
    format: Literal[1] = 1


def feed_key(feed: str) -> str:
    return f"{FEEDS}/{key(feed)}"


def is_removed(state: FeedState, number: int) -> bool:
    place = bisect_right(state.removed, number, key=lambda span: span[0])
    return place > 0 and number < state.removed[place - 1][1]


def led(name: str, epoch: int, state: FeedState) -> FeedState:
    """In this leader's hand. Raises Fenced if a later leader has it."""
    if state.epoch > epoch:
        raise Fenced(f"feed {name}: leader {epoch} was followed by {state.epoch}; it stops")
    return replace(state, epoch=epoch)


def with_next(name: str, state: FeedState, epoch: int, number: int) -> FeedState:
    """Raises Fenced."""
    return replace(led(name, epoch, state), next=max(state.next, number))


def with_removed(name: str, state: FeedState, epoch: int, numbers: Iterable[int]) -> FeedState:
    """Raises Fenced."""
    return replace(led(name, epoch, state), removed=joined(state.removed, numbers))


def joined(spans: Spans, numbers: Iterable[int]) -> Spans:
    """Spans and numbers as one, in order, without gaps that are none."""
    found: list[tuple[int, int]] = []
    for first, end in sorted([*spans, *((number, number + 1) for number in numbers)]):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((first, end))
    return tuple(found)
