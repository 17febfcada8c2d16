"""Membership: a node's own place among the members, and what it does when it loses it."""

import pytest

from headgate.cluster import Advert, Member
from headgate.cluster.membership import Membership
from headgate.cluster.nudge import Nudge
from headgate.cluster.presence import DocumentPresence
from headgate.cluster.trust import Trust
from headgate.errors import Fenced, OutcomeUnknown, Unavailable
from headgate.store import TIMEOUT_MS, DocumentStore
from headgate.testing.faults import Harm, Point, Scripted, wrap
from headgate.testing.manual import ManualAmbient, manual_store

TERM = 30_000


class Place:
    """One membership and what it works with."""

    def __init__(self, store: DocumentStore, ambient: ManualAmbient) -> None:
        self.presence = DocumentPresence(store, ambient, term_ms=TERM)
        self.trust = Trust(ambient)
        self.changed = Nudge()
        self.workers = 1
        self.membership = Membership(
            self.presence, self.trust, ambient, lambda: Advert("node", self.workers), self.changed
        )

    @property
    def session(self) -> str:
        member = self.membership.member
        assert member is not None
        return member.session


@pytest.fixture
def ambient() -> ManualAmbient:
    return ManualAmbient()


@pytest.fixture
def store(ambient: ManualAmbient) -> DocumentStore:
    return manual_store(ambient)


def test_it_joins_and_is_trusted_and_renews_at_a_third_of_the_hold(
    store: DocumentStore, ambient: ManualAmbient
) -> None:
    place = Place(store, ambient)
    start_ms = ambient.monotonic_ms()

    due_ms = place.membership.tick()

    assert due_ms == start_ms + TERM // 3
    assert place.trust.session == place.session
    assert place.trust.left_ms(place.session) == TERM * 9 // 10
    assert place.changed.take()
    ambient.pass_ms(TERM // 3)
    place.membership.tick()
    assert place.trust.left_ms(place.session) == TERM * 9 // 10
    assert not place.changed.take()  # the same members as before


def test_l1_a_node_that_ticks_when_due_keeps_its_session_for_ten_terms(
    store: DocumentStore, ambient: ManualAmbient
) -> None:
    place, watcher = Place(store, ambient), Place(store, ambient)
    place.membership.tick()
    session = place.session
    for _ in range(30):
        watcher.membership.tick()
        due_ms = place.membership.tick()
        ambient.pass_ms(due_ms - ambient.monotonic_ms())
    assert place.session == session
    assert place.membership.lost == 0


def test_inv10_trust_counts_from_before_a_slow_renewal(ambient: ManualAmbient) -> None:
    class Slow(DocumentPresence):
        def renew(self, member: Member, advert: Advert, *, timeout_ms: int = TIMEOUT_MS) -> Member:
            renewed = super().renew(member, advert, timeout_ms=timeout_ms)
            ambient.pass_ms(5_000)
            return renewed

    place = Place(manual_store(ambient), ambient)
    place.membership._presence = Slow(place.presence._store, ambient, term_ms=TERM)
    place.membership.tick()
    ambient.pass_ms(TERM // 3)
    place.membership.tick()
    assert place.trust.left_ms(place.session) == TERM * 9 // 10 - 5_000


def test_l2_a_renewal_that_finds_it_over_drops_trust_and_joins_anew(
    store: DocumentStore, ambient: ManualAmbient
) -> None:
    place = Place(store, ambient)
    place.membership.tick()
    before = place.session
    place.changed.take()
    place.presence.end(before, "by a test")
    ambient.pass_ms(TERM // 3)

    due_ms = place.membership.tick()

    assert place.trust.session is None
    assert place.membership.member is None
    assert place.membership.lost == 1
    assert place.changed.take()
    assert due_ms <= ambient.monotonic_ms()  # at once
    place.membership.tick()
    assert place.session != before
    assert place.trust.session == place.session


def test_a_join_whose_answer_was_lost_is_one_member(ambient: ManualAmbient) -> None:
    creates = 5  # find, number: get and create, the store's clock, then the session
    for harm in (Harm.LOSE_REPLY, Harm.LOSE_REQUEST):
        fresh = manual_store(ambient)
        stage = Scripted([Point(creates, harm)])
        place = Place(wrap(DocumentStore, fresh, stage), ambient)
        with pytest.raises(OutcomeUnknown):
            place.membership.tick()
        assert stage.calls[-1].subject.startswith("sessions/")
        place.membership.tick()
        assert [one.session for one in place.presence.look().members] == [place.session]


def test_a_join_that_got_through_and_was_closed_meanwhile_starts_with_a_new_id(
    store: DocumentStore, ambient: ManualAmbient
) -> None:
    place = Place(wrap(DocumentStore, store, Scripted([Point(5, Harm.LOSE_REPLY)])), ambient)
    with pytest.raises(OutcomeUnknown):
        place.membership.tick()
    watcher = DocumentPresence(store, ambient, term_ms=TERM)
    watcher.look()
    ambient.pass_ms(TERM + 1)
    (closed,) = watcher.look().over
    with pytest.raises(Fenced):
        place.membership.tick()
    place.membership.tick()
    assert place.session != closed


def test_l11_after_a_failed_renewal_the_next_tick_tries_again(ambient: ManualAmbient) -> None:
    stage = Scripted([])
    place = Place(wrap(DocumentStore, manual_store(ambient), stage), ambient)
    place.membership.tick()
    ambient.pass_ms(TERM // 3)
    for harm, error in [(Harm.REFUSE, Unavailable), (Harm.LOSE_REPLY, OutcomeUnknown)]:
        stage._points[len(stage.calls) + 1] = Point(0, harm)
        with pytest.raises(error):
            place.membership.tick()
    place.membership.tick()
    assert place.trust.left_ms(place.session) == TERM * 9 // 10


def test_l11_a_look_that_failed_is_made_again_at_the_next_tick(ambient: ManualAmbient) -> None:
    """A hint that somebody came or went must not be lost with the answer."""
    store, stage = manual_store(ambient), Scripted([])
    place = Place(wrap(DocumentStore, store, stage), ambient)
    place.membership.tick()
    other = Place(store, ambient)
    other.membership.tick()
    place.membership.look_again()
    stage._points[len(stage.calls) + 1] = Point(0, Harm.REFUSE)
    with pytest.raises(Unavailable):
        place.membership.tick()

    place.membership.tick()

    seen = {member.session for member in place.membership.look.members}
    assert seen == {place.session, other.session}


def test_others_are_told_soon_of_an_advert_that_matters(
    store: DocumentStore, ambient: ManualAmbient
) -> None:
    place, other = Place(store, ambient), Place(store, ambient)
    place.membership.tick()
    other.membership.tick()
    other.changed.take()
    place.workers = 3
    place.membership.renew_now()
    assert place.membership.nudge.take()
    place.membership.tick()
    other.membership.look_again()
    other.membership.tick()
    assert other.changed.take()
    assert [member.advert.workers for member in other.membership.look.members] == [3, 1]


def test_who_left_is_gone_for_good_and_may_leave_again(
    store: DocumentStore, ambient: ManualAmbient
) -> None:
    place = Place(store, ambient)
    place.membership.leave()  # never joined: fine
    place = Place(store, ambient)
    place.membership.tick()
    session = place.session
    place.membership.leave()
    place.membership.leave()
    ambient.pass_ms(TERM)
    place.membership.tick()
    assert place.membership.member is None
    assert place.trust.session is None
    assert place.presence.is_over(session)


def test_a_leave_that_failed_may_be_made_again_and_is_not_trusted_meanwhile(
    ambient: ManualAmbient,
) -> None:
    stage = Scripted([])
    place = Place(wrap(DocumentStore, manual_store(ambient), stage), ambient)
    place.membership.tick()
    session = place.session
    stage._points[len(stage.calls) + 1] = Point(0, Harm.REFUSE)
    with pytest.raises(Unavailable):
        place.membership.leave()
    assert place.trust.session is None
    place.membership.leave()
    assert place.presence.is_over(session)
