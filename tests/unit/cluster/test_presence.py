"""Presence by documents, with clocks set by hand: what the contract cannot wait for or provoke."""

import logging
from collections.abc import Callable
from typing import TypeVar

import pytest

from headgate.ambient import SystemAmbient
from headgate.cluster import Advert, Look, Member, Presence
from headgate.cluster import presence as room
from headgate.cluster.presence import NUMBERS, DocumentPresence, close_over
from headgate.cluster.session import EXPIRED, LEFT, STOOD_STILL, Seen, session_key
from headgate.cluster.store_clock import StoreClock
from headgate.errors import Conflict, Corrupt, Fenced, Invalid, OutcomeUnknown, Unavailable
from headgate.store import TIMEOUT_MS, Document, DocumentStore, JsonObject, Version
from headgate.store.memory import MemoryStore, Shelf
from headgate.testing.planted import ForwardingStore, LosesReplies

TERM = 30_000
T = TypeVar("T")


class Hands(SystemAmbient):
    """One world's clock, set by hand; a node's wall clock may be off."""

    ms = 10**12

    def __init__(self, off_ms: int = 0) -> None:
        self._off_ms = off_ms

    def wall_ns(self) -> int:
        return (Hands.ms + self._off_ms) * 1_000_000

    def monotonic_ms(self) -> int:
        return Hands.ms

    def boot_ms(self) -> int:
        return Hands.ms

    def random(self) -> float:
        return 0.5

    def sleep_ms(self, duration_ms: float) -> None:
        Hands.ms += int(duration_ms)


@pytest.fixture
def store() -> DocumentStore:
    return MemoryStore(Shelf(Hands()), "test", Hands())


@pytest.fixture(autouse=True)
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watchers that have known the store's clock for long; the others have tests of their own."""
    monkeypatch.setattr(StoreClock, "steady_ms", lambda _: TERM)


def present(store: DocumentStore, off_ms: int = 0) -> DocumentPresence:
    return DocumentPresence(store, Hands(off_ms), term_ms=TERM)


def advert(node: str = "n", workers: int = 2) -> Advert:
    return Advert(node=node, workers=workers)


def names(look: Look) -> list[str]:
    return [member.session for member in look.members]


def why(store: DocumentStore, session: str) -> object:
    found = store.get(session_key(session))
    assert found is not None
    return found.body["why"]


def test_it_is_a_presence(store: DocumentStore) -> None:
    presence: Presence = present(store)
    assert presence.hold_ms == TERM


def test_p1_numbers_go_up_and_leave_holes(store: DocumentStore) -> None:
    presence = present(store)
    one = presence.join("a", advert())
    presence.leave(one)
    presence.forget("a")
    assert [one.number, presence.join("b", advert()).number] == [1, 2]
    assert store.get(NUMBERS) is not None


class RivalIsFirst(ForwardingStore):
    """Between reading the numbers and writing them, once, somebody else takes one."""

    def get(self, key: str, *, timeout_ms: int = TIMEOUT_MS) -> Document | None:
        found = super().get(key, timeout_ms=timeout_ms)
        if key == NUMBERS and self.behind.get(session_key("rival")) is None:
            present(self.behind).join("rival", advert())
        return found


@pytest.mark.parametrize("joined_before", [[], ["a"]])
def test_p1_of_two_that_want_a_number_at_once_each_gets_its_own(
    store: DocumentStore, joined_before: list[str]
) -> None:
    for session in joined_before:
        present(store).join(session, advert())
    present(RivalIsFirst(store)).join("late", advert())
    look = present(store).look()
    assert names(look) == [*joined_before, "rival", "late"]
    assert [m.number for m in look.members] == [n + 1 for n in range(len(look.members))]


def test_p5_one_that_is_not_renewed_is_closed_exactly_at_its_expire(store: DocumentStore) -> None:
    presence, watcher = present(store), present(store)
    presence.join("a", advert())
    Hands.ms += TERM - 1
    look = watcher.look()
    assert names(look) == ["a"]
    assert look.next_ms - Hands.ms in (1, 2)
    Hands.ms = look.next_ms
    look = watcher.look()
    assert (names(look), look.over, why(store, "a")) == ([], ("a",), EXPIRED)
    assert presence.is_over("a")


@pytest.mark.parametrize("years", [-10, 10])
def test_l12_a_nodes_wrong_wall_clock_neither_holds_nor_loses(
    store: DocumentStore, years: int
) -> None:
    off_ms = years * 365 * 86_400_000
    wrong, right = present(store, off_ms), present(store)
    member = wrong.join("a", advert())
    for _ in range(10):
        Hands.ms += TERM // 3
        member = wrong.renew(member, advert())
        assert names(right.look()) == names(wrong.look()) == ["a"]
    Hands.ms += TERM + 1
    assert names(right.look()) == []


def test_l12_an_expire_years_ahead_holds_nothing_for_ever(store: DocumentStore) -> None:
    presence, watcher = present(store), present(store)
    presence.join("a", advert())
    found = store.get(session_key("a"))
    assert found is not None
    store.replace(found.key, {**found.body, "expire": Hands.ms + 10**12}, found.version)
    look = watcher.look()
    assert (names(look), look.next_ms) == (["a"], Hands.ms + TERM)
    Hands.ms = look.next_ms
    assert watcher.look().over == ("a",)
    assert why(store, "a") == STOOD_STILL


@pytest.mark.parametrize("step_ms", [-100 * TERM, 100 * TERM])
def test_l12_a_store_whose_clock_was_set_loses_nobody_twice(step_ms: int) -> None:
    clock = Hands()
    store = MemoryStore(Shelf(clock), "test", Hands())
    node, watcher = present(store), present(store)
    member = node.join("a", advert())
    assert names(watcher.look()) == ["a"]
    clock._off_ms = step_ms
    Hands.ms += (
        3 * TERM
    )  # both have an old idea of the store's time, and will not ask by themselves
    watcher.look()
    with pytest.raises(Fenced):
        node.renew(member, advert())
    member = node.join("b", advert())
    for _ in range(10):
        Hands.ms += TERM // 3
        member = node.renew(member, advert())
        assert names(watcher.look()) == ["b"]


def test_p6_a_renewal_that_comes_before_the_close_wins(
    store: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    presence, watcher = present(store), present(store)
    member = presence.join("a", advert())
    Hands.ms += TERM + 10

    def renewed_just_before(
        store: DocumentStore, seen: Seen, why: str, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version | None:
        presence.renew(member, advert())
        return close_over(store, seen, why, timeout_ms=timeout_ms)

    monkeypatch.setattr(room, "close_over", renewed_just_before)
    look = watcher.look()
    assert (names(look), look.over) == (["a"], ())
    assert Hands.ms < look.next_ms <= Hands.ms + TERM
    assert not watcher.is_over("a")


def test_p3_over_is_for_ever(store: DocumentStore) -> None:
    presence, watcher = present(store), present(store)
    member = presence.join("a", advert())
    Hands.ms += TERM + 10
    watcher.look()
    with pytest.raises(Fenced, match=r"not renewed in time.*joins again by itself"):
        presence.renew(member, advert())
    watcher.forget("a")
    with pytest.raises(Fenced, match="is gone"):
        presence.renew(member, advert())
    presence.leave(member)  # of one that is over is fine
    assert watcher.is_over("a")


def test_p4_who_left_says_so(store: DocumentStore) -> None:
    presence = present(store)
    member = presence.join("a", advert())
    presence.leave(member)
    presence.leave(member)
    assert (why(store, "a"), presence.look().over) == (LEFT, ("a",))


def test_an_idle_look_is_worth_it_once_a_term(store: DocumentStore) -> None:
    presence = present(store)
    assert presence.look().next_ms == Hands.ms + TERM
    presence.join("a", advert())
    assert presence.look().next_ms == Hands.ms + int(0.95 * TERM)


class FailsOnce(ForwardingStore):
    """One write, chosen by the key, is lost: before it happened or after."""

    def __init__(self, behind: DocumentStore, key: str, *, after: bool) -> None:
        super().__init__(behind)
        self._key: str | None = key
        self._after = after

    def create(self, key: str, body: JsonObject, *, timeout_ms: int = TIMEOUT_MS) -> Version:
        return self._once(key, lambda: self.behind.create(key, body, timeout_ms=timeout_ms))

    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        return self._once(
            key, lambda: self.behind.replace(key, body, version, timeout_ms=timeout_ms)
        )

    def _once(self, key: str, write: Callable[[], T]) -> T:
        if key != self._key:
            return write()
        self._key = None
        if self._after:
            write()
        raise OutcomeUnknown(f"{key}: no answer")


@pytest.mark.parametrize("after", [False, True])
def test_p8_a_join_whose_reply_was_lost_is_one_member(store: DocumentStore, after: bool) -> None:
    presence = present(FailsOnce(store, session_key("a"), after=after))
    with pytest.raises(OutcomeUnknown):
        presence.join("a", advert())
    Hands.ms += TERM // 2
    member = presence.join("a", advert("again"))
    assert presence.look().members == (member,)
    assert member.advert.node == "again"
    assert member.expires_at_ms >= Hands.ms + TERM, "P9 counts from the try that was acknowledged"
    assert member.number == (1 if after else 2)


def test_p8_a_join_that_got_through_and_was_closed_meanwhile_is_fenced(
    store: DocumentStore,
) -> None:
    presence = present(FailsOnce(store, session_key("a"), after=True))
    with pytest.raises(OutcomeUnknown):
        presence.join("a", advert())
    Hands.ms += TERM + 10
    present(store).look()
    with pytest.raises(Fenced, match="joins again by itself"):
        presence.join("a", advert())


@pytest.mark.parametrize("after", [False, True])
def test_p8_a_number_whose_reply_was_lost_is_at_most_a_hole(
    store: DocumentStore, after: bool
) -> None:
    present(store).join("a", advert())
    presence = present(FailsOnce(store, NUMBERS, after=after))
    assert presence.join("b", advert()).number == (3 if after else 2)


@pytest.mark.parametrize("after", [False, True])
def test_p8_a_renewal_whose_reply_was_lost_is_made_again(store: DocumentStore, after: bool) -> None:
    member = present(store).join("a", advert())
    presence = present(FailsOnce(store, session_key("a"), after=after))
    with pytest.raises(OutcomeUnknown):
        presence.renew(member, advert("lost"))
    again = presence.renew(member, advert("again"))
    assert presence.look().members == (again,)
    assert again.advert.node == "again"


@pytest.mark.parametrize("after", [False, True])
def test_a_close_whose_reply_was_lost_is_looked_at_again(store: DocumentStore, after: bool) -> None:
    present(store).join("a", advert())
    watcher = present(FailsOnce(store, session_key("a"), after=after))
    Hands.ms += TERM + 10
    look = watcher.look()
    assert look.over == (("a",) if after else ())
    if not after:
        assert names(look) == ["a"]
        assert Hands.ms < look.next_ms <= Hands.ms + TERM // 10
    assert watcher.look().over == ("a",)


def test_p8_many_lost_replies_end_in_one_member_each(store: DocumentStore) -> None:
    for n in range(40):
        presence = present(LosesReplies(store, seed=n))
        member = insisted(lambda: presence.join(f"s{n}", advert(workers=n)))  # noqa: B023 - now
        for _ in range(5):
            member = insisted(lambda: presence.renew(member, advert(workers=n)))  # noqa: B023 - now
    look = present(store).look()
    assert sorted(names(look)) == sorted(f"s{n}" for n in range(40))
    assert [m.number for m in look.members] == sorted({m.number for m in look.members})


def insisted(call: Callable[[], Member]) -> Member:
    for _ in range(20):
        try:
            return call()
        except OutcomeUnknown:
            continue
    pytest.fail("twenty lost replies")


def test_a_damaged_session_concerns_only_itself_and_is_told_once(
    store: DocumentStore, caplog: pytest.LogCaptureFixture
) -> None:
    presence = present(store)
    presence.join("a", advert())
    store.create(session_key("odd"), {"format": 1, "node": 7})
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            look = presence.look()
    assert (names(look), look.over) == (["a"], ())
    assert [record.__dict__["key"] for record in caplog.records] == ["sessions/odd"]
    with pytest.raises(Corrupt, match="sessions/odd"):
        presence.is_over("odd")


def test_only_who_is_over_can_be_forgotten(store: DocumentStore) -> None:
    presence = present(store)
    member = presence.join("a", advert())
    with pytest.raises(Invalid, match="still live"):
        presence.forget("a")
    presence.leave(member)
    for _ in range(2):
        presence.forget("a")
    assert (presence.is_over("a"), presence.look().over) == (True, ())


class AlwaysConflicts(ForwardingStore):
    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        raise Conflict(f"{key}: somebody was first")


def test_endless_conflicts_end_in_unavailable(store: DocumentStore) -> None:
    member = present(store).join("a", advert())
    unlucky = present(AlwaysConflicts(store))
    calls: list[Callable[[], object]] = [
        lambda: unlucky.join("b", advert()),
        lambda: unlucky.renew(member, advert()),
        lambda: unlucky.leave(member),
    ]
    for call in calls:
        with pytest.raises(Unavailable, match="gave up"):
            call()


def test_p6_a_watcher_who_does_not_know_the_clock_yet_closes_nobody_by_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    clock = Hands()
    store = MemoryStore(Shelf(clock), "test", Hands())
    node = present(store)
    member = node.join("a", advert())
    clock._off_ms = 2 * TERM  # the store's clock is set

    watcher = present(store)
    assert names(watcher.look()) == ["a"]
    Hands.ms += TERM // 3
    node.renew(member, advert())
    assert names(watcher.look()) == ["a"]
    Hands.ms += TERM // 3
    assert names(watcher.look()) == ["a"]
    Hands.ms += TERM // 2  # and now it does not renew any more
    assert names(watcher.look()) == []


def test_p6_each_session_is_judged_by_its_own_term(store: DocumentStore) -> None:
    slow = DocumentPresence(store, Hands(), term_ms=TERM)
    member = slow.join("slow", advert())
    hasty = DocumentPresence(store, Hands(), term_ms=TERM // 10)
    for _ in range(5):
        hasty.look()
        Hands.ms += TERM // 6
    assert names(hasty.look()) == ["slow"]
    slow.renew(member, advert())
    Hands.ms += TERM + 1
    assert names(hasty.look()) == []
