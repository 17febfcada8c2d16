"""Presence with nodes that end with their client: the order of things, and lost replies."""

from collections.abc import Callable, Collection
from itertools import count

import pytest

from headgate.ambient import SystemAmbient
from headgate.cluster import Advert, Presence
from headgate.cluster.ephemeral import NODE_ENDED, EphemeralPresence, open_presence
from headgate.cluster.presence import DocumentPresence
from headgate.cluster.session import session_key
from headgate.errors import Fenced, OutcomeUnknown
from headgate.store import TIMEOUT_MS, DocumentStore
from headgate.store.memory import MemoryStore, Shelf

TERM_MS = 600_000
ADVERT = Advert(node="n", workers=2)


class Tree:
    """What the ensemble has."""

    def __init__(self) -> None:
        self.nodes: dict[int, tuple[object, str]] = {}  # number -> client, session
        self.counter = count(101)
        self.agreed_ms = 10_000
        self.rings: list[Callable[[], None]] = []


class Client:
    """One client's view; a new one takes over when its ZooKeeper session is lost."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.session = object()
        self.loses_next_make: str | None = None
        self.after_numbers: Callable[[], object] = lambda: None

    def expire(self) -> None:
        self.tree.nodes = {n: one for n, one in self.tree.nodes.items() if one[0] != self.session}
        self.session = object()

    def session_ms(self, *, timeout_ms: int = TIMEOUT_MS) -> int:
        return self.tree.agreed_ms

    def make(self, session: str, node: str, *, timeout_ms: int = TIMEOUT_MS) -> int:
        lost, self.loses_next_make = self.loses_next_make, None
        if lost == "before":
            raise OutcomeUnknown("no answer")
        number = next(self.tree.counter)
        self.tree.nodes[number] = (self.session, session)
        if lost == "after":
            raise OutcomeUnknown("no answer")
        return number

    def find(self, session: str, *, timeout_ms: int = TIMEOUT_MS) -> int | None:
        mine = (self.session, session)
        return next((n for n, one in self.tree.nodes.items() if one == mine), None)

    def is_mine(self, number: int, *, timeout_ms: int = TIMEOUT_MS) -> bool:
        return number in self.tree.nodes and self.tree.nodes[number][0] is self.session

    def numbers(self, *, timeout_ms: int = TIMEOUT_MS) -> Collection[int]:
        found = set(self.tree.nodes)
        self.after_numbers()
        return found

    def remove(self, number: int, *, timeout_ms: int = TIMEOUT_MS) -> None:
        self.tree.nodes.pop(number, None)

    def watch(self, ring: Callable[[], None]) -> None:
        self.tree.rings.append(ring)


@pytest.fixture
def store() -> DocumentStore:
    return MemoryStore(Shelf(), "test", SystemAmbient())


@pytest.fixture
def tree() -> Tree:
    return Tree()


def present(store: DocumentStore, client: Client) -> EphemeralPresence:
    here = SystemAmbient()
    return EphemeralPresence(DocumentPresence(store, here, term_ms=TERM_MS), client, here)


def why(store: DocumentStore, session: str) -> object:
    found = store.get(session_key(session))
    assert found is not None
    return found.body["why"]


def test_every_other_store_has_presence_by_documents(store: DocumentStore) -> None:
    presence: Presence = open_presence(store, SystemAmbient(), term_ms=TERM_MS)
    assert isinstance(presence, DocumentPresence)
    assert presence.hold_ms == TERM_MS


def test_qf3_the_number_is_the_nodes(store: DocumentStore, tree: Tree) -> None:
    presence: Presence = present(store, Client(tree))
    assert [presence.join(one, ADVERT).number for one in ("a", "b")] == [101, 102]


@pytest.mark.parametrize("lost", ["before", "after"])
def test_p8_a_node_whose_reply_was_lost_is_found_again(
    store: DocumentStore, tree: Tree, lost: str
) -> None:
    client = Client(tree)
    presence = present(store, client)
    client.loses_next_make = lost
    with pytest.raises(OutcomeUnknown):
        presence.join("a", ADVERT)
    member = presence.join("a", ADVERT)
    assert list(tree.nodes) == [member.number] == [101]
    assert presence.look().members == (member,)


def test_a_live_session_whose_node_ended_is_closed(store: DocumentStore, tree: Tree) -> None:
    client = Client(tree)
    watcher = present(store, Client(tree))
    member = present(store, client).join("a", ADVERT)
    assert watcher.look().members == (member,)
    client.expire()
    look = watcher.look()
    assert (look.members, look.over, why(store, "a")) == ((), ("a",), NODE_ENDED)


def test_p2_whoever_joins_during_a_look_is_not_taken_for_ended(
    store: DocumentStore, tree: Tree
) -> None:
    client = Client(tree)
    rival = present(store, Client(tree))
    client.after_numbers = lambda: rival.join(SystemAmbient().new_id(), ADVERT)
    presence = present(store, client)
    for count_before in range(3):
        look = presence.look()
        assert (len(look.members), look.over) == (count_before, ())


def test_p9_a_renewal_with_a_lost_node_closes_the_session_itself(
    store: DocumentStore, tree: Tree
) -> None:
    client = Client(tree)
    presence = present(store, client)
    member = presence.join("a", ADVERT)
    client.expire()
    with pytest.raises(Fenced, match=NODE_ENDED):
        presence.renew(member, ADVERT)
    assert presence.is_over("a")
    assert presence.join("b", ADVERT).number > member.number


def test_p9_a_hold_is_no_longer_than_zookeepers_patience(store: DocumentStore, tree: Tree) -> None:
    presence = present(store, Client(tree))
    member = presence.join("a", ADVERT)
    assert presence.hold_ms == 10_000
    tree.agreed_ms = 4_000
    presence.renew(member, ADVERT)
    assert presence.hold_ms == 4_000
    tree.agreed_ms = 10 * TERM_MS
    presence.renew(member, ADVERT)
    assert presence.hold_ms == TERM_MS


def test_whoever_was_closed_by_others_leaves_no_node_behind(
    store: DocumentStore, tree: Tree
) -> None:
    presence = present(store, Client(tree))
    member = presence.join("a", ADVERT)
    DocumentPresence(store, SystemAmbient()).end("a", "a person said so")
    with pytest.raises(Fenced, match="a person said so"):
        presence.renew(member, ADVERT)
    assert tree.nodes == {}


def test_p4_leaving_closes_the_session_and_removes_the_node(
    store: DocumentStore, tree: Tree
) -> None:
    presence = present(store, Client(tree))
    member = presence.join("a", ADVERT)
    for _ in range(2):
        presence.leave(member)
    assert (tree.nodes, presence.look().over) == ({}, ("a",))


def test_a_watch_goes_to_the_nodes(store: DocumentStore, tree: Tree) -> None:
    rings: list[int] = []
    present(store, Client(tree)).watch(lambda: rings.append(1))
    tree.rings[0]()
    assert rings == [1]
