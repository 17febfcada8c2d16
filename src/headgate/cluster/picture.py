"""Picture: everything under `cluster/` at a glance, from one listing.

What is damaged concerns only itself: it is named, and the rest is there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from headgate.cluster.feeds import FEEDS, FeedState, feed_key, is_removed
from headgate.cluster.rights import Right
from headgate.cluster.roster import ROSTER, Roster
from headgate.cluster.tasks import TASKS, KeptTask, Task, feed_and_number
from headgate.errors import Corrupt, Invalid
from headgate.store import Damaged, Document, DocumentStore
from headgate.store.changes import Kept
from headgate.store.codec import Whole, parse
from headgate.store.names import key
from headgate.store.pages import pages

CLUSTER = "cluster"
LEADER = "cluster/leader"
DRAINS = "cluster/drains"


@dataclass(frozen=True, slots=True)
class Drain:
    """A person's wish that a node stops."""

    reason: str
    at_ms: Whole
    format: Literal[1] = 1


@dataclass(slots=True)
class Picture:
    leader: Kept[Right] | None = None
    roster: Kept[Roster] | None = None
    feeds: dict[str, Kept[FeedState]] = field(default_factory=dict)  # by key
    tasks: dict[str, KeptTask] = field(default_factory=dict)  # by key, in order
    zombies: dict[str, KeptTask] = field(default_factory=dict)  # removed, and brought back late
    drains: dict[str, Kept[Drain]] = field(default_factory=dict)  # by key
    damaged: list[Damaged] = field(default_factory=list)


def drain_key(session: str) -> str:
    return f"{DRAINS}/{key(session)}"


def read_picture(store: DocumentStore, before: Picture | None = None) -> Picture:
    """What did not change since the picture before is taken from there. Raises Unavailable."""
    picture = Picture()
    known = {} if before is None else before.tasks
    for page in pages(store, CLUSTER):
        picture.damaged += page.damaged
        for document in page.documents:
            try:
                _add(picture, document, known)
            except (Corrupt, Invalid) as error:
                picture.damaged.append(Damaged(document.key, document.key, str(error)))
    for name in [name for name in picture.tasks if is_zombie(picture, name)]:
        picture.zombies[name] = picture.tasks.pop(name)
    return picture


def is_zombie(picture: Picture, task: str) -> bool:
    """The document of a removed task, brought back by a leader that was late."""
    feed, number = feed_and_number(task)
    state = picture.feeds.get(feed_key(feed))
    return state is not None and is_removed(state.value, number)


def _add(picture: Picture, document: Document, known: Mapping[str, KeptTask]) -> None:
    name, version = document.key, document.version
    if name.startswith(f"{TASKS}/"):
        feed_and_number(name)  # a stranger among the tasks must not stop everybody
        task = known.get(name)
        if task is None or task.version != version:
            task = Kept(name, parse(document, Task), version)
        picture.tasks[name] = task
    elif name == LEADER:
        picture.leader = Kept(name, parse(document, Right), version)
    elif name == ROSTER:
        picture.roster = Kept(name, parse(document, Roster), version)
    elif name.startswith(f"{FEEDS}/"):
        picture.feeds[name] = Kept(name, parse(document, FeedState), version)
    elif name.startswith(f"{DRAINS}/"):
        picture.drains[name] = Kept(name, parse(document, Drain), version)


def counts(tasks: Mapping[str, KeptTask], live: frozenset[str]) -> dict[str, int]:
    """How many tasks are in which condition."""
    found = {"done": 0, "set aside": 0, "in progress": 0, "free": 0}
    for task in tasks.values():
        found[condition(task.value, live)] += 1
    return found


def condition(task: Task, live: frozenset[str]) -> str:
    if task.state == "done":
        return "done"
    if task.set_aside is not None:
        return "set aside"
    return "in progress" if task.holder in live else "free"
