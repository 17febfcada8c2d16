"""What a node that just joined says of the others, in time that is made by hand."""

import pytest

from headgate.app import Joined
from headgate.app.silence import LISTEN_MS, Listening, Silent
from headgate.cluster import Advert
from headgate.cluster.duties import Duties, NodeSettings
from headgate.cluster.presence import DocumentPresence
from headgate.node import Node
from headgate.testing.manual import ManualAmbient, manual_store

TERM_MS = 30_000


class World:
    def __init__(self) -> None:
        self.ambient = ManualAmbient()
        self.store = manual_store(self.ambient)
        self.told: list[list[Silent]] = []

    def other(self, session: str) -> DocumentPresence:
        presence = DocumentPresence(self.store, self.ambient)
        presence.join(session, Advert(f"node-{session}", 2))
        return presence

    def joins(self) -> Listening:
        presence = DocumentPresence(self.store, self.ambient)
        own = NodeSettings("new", 2, ())
        self.duties = Duties(own, self.store, presence, self.ambient, (), (), {})
        self.duties.membership.tick()
        member = self.duties.membership.member
        assert member is not None
        joined = Joined(Node(self.duties, self.ambient), self.duties, member, self.store)
        return Listening(joined, self.ambient, lambda found: self.told.append(list(found)))

    def listens(self, listening: Listening, for_ms: int) -> None:
        """Ten times a second, while this node renews its own session."""
        for _ in range(for_ms // 100):
            self.duties.membership.tick()
            listening.poll()
            self.ambient.pass_ms(100)


@pytest.fixture
def world() -> World:
    return World()


def test_a_node_alone_says_nothing(world: World) -> None:
    world.listens(world.joins(), LISTEN_MS)

    assert world.told == []


def test_a_killed_node_is_named_at_first_as_a_guess_then_as_gone_and_then_it_is_over(
    world: World,
) -> None:
    world.other("a")
    world.ambient.pass_ms(2_000)
    listening = world.joins()

    world.listens(listening, 5_000)
    ((guess,),) = world.told
    world.listens(listening, TERM_MS)

    _, (gone,) = world.told
    assert (guess.node, guess.number, guess.is_gone) == ("node-a", 1, False)
    assert guess.silent_ms == pytest.approx(5_000, abs=200)
    assert guess.free_ms == pytest.approx(25_000, abs=200)
    assert (gone.node, gone.is_gone) == ("node-a", True)
    assert gone.free_ms == pytest.approx(TERM_MS - gone.silent_ms, abs=200)
    members = [one.advert.node for one in world.duties.membership.look.members]
    assert members == ["new"]  # within the time that was told: it looked exactly then


def test_whoever_comes_when_a_session_is_nearly_over_is_told_how_long_it_will_really_take(
    world: World,
) -> None:
    world.other("a")
    world.ambient.pass_ms(TERM_MS - 1_000)

    world.listens(world.joins(), 1_000)

    ((gone,),) = world.told
    assert gone.is_gone
    assert gone.free_ms == pytest.approx(12_000, abs=200)  # it watches it for a while before


def test_a_node_that_lives_is_named_once_and_only_to_one_that_has_no_work(world: World) -> None:
    presence = world.other("a")
    (member,) = presence.look().members
    listening = world.joins()

    for _ in range(LISTEN_MS // 5_000):
        presence.renew(member, member.advert)
        world.listens(listening, 5_000)

    ((only,),) = world.told
    assert (only.node, only.is_gone) == ("node-a", False)
