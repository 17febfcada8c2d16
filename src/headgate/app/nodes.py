"""Nodes: a node put together from its parts, and what a person asks of a cluster.

What a node does is in `node` and `cluster`; its equipment is passed in.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field

from headgate.ambient import Ambient
from headgate.cluster import Feed, Kind, Member
from headgate.cluster import session as sessions
from headgate.cluster.duties import Duties, Loop, NodeSettings
from headgate.cluster.ephemeral import open_presence
from headgate.cluster.picture import Drain, drain_key
from headgate.cluster.session import TERM_MS, Session, session_key
from headgate.cluster.tasks import WORDS_MAX, Task, Trouble, key_of_shown, released_by_person
from headgate.errors import Corrupt, Fenced, HeadgateError, Unavailable
from headgate.node import Node
from headgate.store import DocumentStore
from headgate.store.changes import change, create_if_absent, read
from headgate.store.codec import parse
from headgate.store.pages import pages
from headgate.store.registry import open_store

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Equipment:
    """What a node brings: the kinds of task it can do, the feeds it knows, the loops they need."""

    kinds: Sequence[Kind]
    feeds: Sequence[Feed] = ()
    loops: Mapping[str, Loop] = field(default_factory=dict)


Equip = Callable[[DocumentStore, Ambient], Equipment]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cluster's documents are."""

    url: str
    namespace: str = "default"


@dataclass(frozen=True, slots=True)
class Joined:
    """A node that is a member, and not running yet."""

    node: Node
    duties: Duties
    member: Member
    store: DocumentStore


@contextmanager
def joined_node(
    place: Place,
    settings: NodeSettings,
    ambient: Ambient,
    *,
    equip: Equip,
    term_ms: int = TERM_MS,
) -> Iterator[Joined]:
    """Joins before anything runs: a store that cannot be reached is an error now, and a reason to
    wait later. Raises Invalid, Unavailable, OutcomeUnknown."""
    with (
        closing(open_store(place.url, place.namespace, ambient=ambient)) as store,
        closing(open_presence(store, ambient, term_ms=term_ms)) as presence,
    ):
        own = equip(store, ambient)
        duties = Duties(settings, store, presence, ambient, own.kinds, own.feeds, own.loops)
        try:
            duties.membership.tick()
        except HeadgateError:
            with suppress(HeadgateError):  # else its session ends by itself
                duties.membership.leave()
            raise
        member = duties.membership.member
        if member is None:
            raise Unavailable(f"{place.url}: joined, and was closed at once; next: start it again")
        yield Joined(Node(duties, ambient), duties, member, store)


def release_task(store: DocumentStore, name: str, reason: str, ambient: Ambient) -> Task | None:
    """Back into the automatic flow. What it was before; None: there is no such task.

    Raises Invalid (the name), Unavailable, OutcomeUnknown, Corrupt.
    """
    key = key_of_shown(name)
    before = read(store, key, Task)
    if before is None or before.value.set_aside is None:
        return None if before is None else before.value
    words = f"released by a person: {reason}; before: {before.value.set_aside.words}"
    said = Trouble(words[:WORDS_MAX], "command line", ambient.wall_ns() // 1_000_000)
    try:
        change(store, key, Task, lambda task: released_by_person(task, said), before)
    except Fenced:
        return None  # removed meanwhile
    log.info("task.released", extra={"task": key, "reason": reason})
    return before.value


def find_sessions(store: DocumentStore, node: str) -> list[tuple[str, Session]]:
    """Of a node, by its name or number; also those that are over and not yet forgotten. Raises
    Unavailable."""
    found: list[tuple[str, Session]] = []
    for page in pages(store, sessions.FOLDER):
        for document in page.documents:
            with suppress(Corrupt):  # it concerns only itself, and status names it
                seen = sessions.read(document)
                if node in (seen.session.node, str(seen.session.number)):
                    found.append((seen.id, seen.session))
    return sorted(found, key=lambda one: one[1].number)


def ask_to_drain(store: DocumentStore, session: str, reason: str, ambient: Ambient) -> None:
    """Asking twice is fine. Raises Unavailable, OutcomeUnknown."""
    drain = Drain(reason, ambient.wall_ns() // 1_000_000)
    create_if_absent(store, drain_key(session), drain)


def find_session(store: DocumentStore, session: str) -> Session | None:
    """None: it is over and forgotten. Raises Unavailable, Corrupt."""
    document = store.get(session_key(session))
    return None if document is None else parse(document, Session)
