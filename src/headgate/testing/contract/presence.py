"""The contract of presence: who is there, and who is over, on every backend and in real time.

    class TestMine(PresenceContract):
        @pytest.fixture
        def harness(self):
            return MyHarness()

A test's name starts with the guarantee it guards (`headgate.cluster.Presence` lists them), or with
the id of a fault of an earlier system (`docs/why/faults.md`).
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import ClassVar, TypeVar

import pytest

from headgate.ambient import Ambient, SystemAmbient
from headgate.cluster import Advert, Member, Presence
from headgate.errors import Fenced, Invalid, OutcomeUnknown
from headgate.testing.harness import PresenceHarness, WrongClock
from headgate.testing.racing import PATIENCE_S, at_once, in_background, until

YEARS_OFF_NS = (-20 * 365 * 86_400 * 10**9, 20 * 365 * 86_400 * 10**9)
GRAIN_MS = 50  # of the clocks of stores
LOOKS_MAX = 4  # that a watcher needs, if it looks when it is told to

T = TypeVar("T")
Open = Callable[..., Presence]


class PresenceContract:
    term_ms: ClassVar[int] = 1_500

    @pytest.fixture
    def harness(self) -> PresenceHarness:
        pytest.fail("bind the contract: give your class a fixture named harness")

    @pytest.fixture
    def namespace(self) -> str:
        return f"t{SystemAmbient().new_id()[:12]}"

    @pytest.fixture
    def opened(self, harness: PresenceHarness, namespace: str) -> Iterator[Open]:
        """Opens clients. With many terms for one, time plays no part in a test, however slow."""
        presences: list[Presence] = []

        def open(ambient: Ambient | None = None, *, terms: int = 100) -> Presence:
            term_ms = terms * self.term_ms
            presences.append(harness.open(namespace, ambient or SystemAmbient(), term_ms))
            return presences[-1]

        yield open
        for presence in presences:
            presence.close()
            presence.close()  # twice is fine

    @pytest.fixture
    def brief(self, opened: Open) -> Open:
        """Clients with a short term, for what has to be waited for."""
        return partial(opened, terms=1)

    def test_p1_no_number_comes_again_even_after_everybody_left(self, opened: Open) -> None:
        numbers = []
        for _ in range(5):
            presence = opened()
            member = joined(presence)
            numbers.append(member.number)
            presence.leave(member)
            presence.forget(member.session)
        assert numbers == sorted(set(numbers))

    def test_p1_twenty_joins_at_once_get_twenty_numbers(self, opened: Open) -> None:
        presences = [opened() for _ in range(4)]
        found = at_once([partial(joined, presences[n % 4]) for n in range(20)])
        numbers = [one.number for one in found if isinstance(one, Member)]
        assert len(set(numbers)) == 20
        assert joined(presences[0]).number > max(numbers)

    def test_p2_a_look_shows_every_member_by_number(self, opened: Open) -> None:
        one, two = opened(), opened()
        members = [joined(one, "a"), joined(two, "b"), joined(one, "c")]
        for watcher in (one, two, opened()):
            look = watcher.look()
            assert [m.session for m in look.members] == [m.session for m in members]
            assert [m.number for m in look.members] == [m.number for m in members]
            assert [m.advert for m in look.members] == [m.advert for m in members]
            assert look.over == ()

    def test_p3_whoever_may_still_renew_is_not_over(self, opened: Open) -> None:
        presence, watcher = opened(), opened()
        member = joined(presence)
        for _ in range(3):
            assert not watcher.is_over(member.session)
            with pytest.raises(Invalid, match="still live"):
                watcher.forget(member.session)
            member = presence.renew(member, member.advert)

    def test_p3_over_is_for_ever(self, brief: Open) -> None:
        presence, watcher = brief(), brief()
        member = joined(presence)
        self._wait_until_over(watcher, [member])

        def is_over_for_ever() -> None:
            with pytest.raises(Fenced):
                presence.renew(member, member.advert)
            for client in (presence, watcher, brief()):
                assert client.is_over(member.session)
                assert client.look().members == ()
            presence.leave(member)

        is_over_for_ever()
        watcher.forget(member.session)
        watcher.forget(member.session)
        is_over_for_ever()
        assert watcher.look().over == ()

    def test_p4_who_left_is_over_at_once(self, opened: Open) -> None:
        presence, watcher = opened(), opened()
        member, other = joined(presence), joined(presence)
        presence.leave(member)
        assert watcher.is_over(member.session)
        look = watcher.look()
        assert [m.session for m in look.members] == [other.session]
        assert look.over == (member.session,)
        presence.leave(member)
        with pytest.raises(Fenced):
            presence.renew(member, member.advert)

    def test_p5_who_looks_when_told_finds_whoever_is_no_longer_renewed(self, brief: Open) -> None:
        presence = brief()
        member = presence.renew(joined(presence), advert("dead"))

        def looks(watcher: Presence) -> int:
            here = SystemAmbient()
            for count in range(1, LOOKS_MAX + 1):
                look = watcher.look()
                if member.session in look.over:
                    return count
                here.sleep_ms(look.next_ms - here.monotonic_ms())
            return LOOKS_MAX + 1

        counts = at_once([partial(looks, brief()) for _ in range(3)])
        assert max(int(str(count)) for count in counts) <= LOOKS_MAX

    def test_l12_a_clock_years_off_holds_nothing_for_ever(self, brief: Open) -> None:
        wrong = [brief(WrongClock(off_ns)) for off_ns in YEARS_OFF_NS]
        right = brief()
        dead = [joined(presence) for presence in wrong]
        self._wait_until_over(right, dead)
        for presence in (*wrong, right):
            assert all(presence.is_over(member.session) for member in dead)

    def test_l12_a_clock_years_off_is_not_closed_while_it_renews(self, brief: Open) -> None:
        self._stay([brief(WrongClock(off_ns)) for off_ns in YEARS_OFF_NS], [brief()])

    def test_p6_watchers_whose_clocks_are_wrong_close_nobody_who_renews(self, brief: Open) -> None:
        self._stay([brief()], [brief(WrongClock(off_ns)) for off_ns in YEARS_OFF_NS])

    def test_p7_a_look_shows_the_advert_of_the_last_renewal(self, opened: Open) -> None:
        presence, watcher = opened(), opened()
        member = joined(presence)
        held = tuple(f"tasks/{n}" for n in range(50))
        said = Advert("n\u00e4me", 7, ("gpu", "big"), ("steps",), held, 1_000, is_draining=True)
        member = presence.renew(member, said)
        assert watcher.look().members == (member,)
        assert member.advert == said
        member = presence.renew(member, advert("again"))
        assert [m.advert.node for m in watcher.look().members] == ["again"]

    def test_p8_lost_replies_end_in_one_member_each(
        self, harness: PresenceHarness, namespace: str, opened: Open
    ) -> None:
        watcher = opened()
        lossy = [
            harness.open_lossy(namespace, SystemAmbient(), 100 * self.term_ms, seed)
            for seed in range(12)
        ]
        members = []
        for presence in lossy:
            session = SystemAmbient().new_id()
            member = insisted(partial(presence.join, session, advert()))
            for n in range(4):
                member = insisted(partial(presence.renew, member, advert(workers=n)))
            members.append(member)
        shown = watcher.look().members
        assert [m.session for m in shown] == [m.session for m in sorted(members, key=number)]
        assert len({m.number for m in shown}) == len(members)
        assert {m.advert.workers for m in shown} == {3}
        for presence, member in zip(lossy, members, strict=True):
            insisted(partial(presence.leave, member))
        assert watcher.look().members == ()

    def test_p9_nobody_is_over_before_the_hold_of_its_last_renewal(self, brief: Open) -> None:
        here = SystemAmbient()
        presence = brief()
        watchers = [brief(), *(brief(WrongClock(off_ns)) for off_ns in YEARS_OFF_NS)]
        started_ms, member = self._renewed_while_watched(presence, watchers)

        def over_after_ms(watcher: Presence) -> int:
            assert until(lambda: member.session in watcher.look().over, within_s=PATIENCE_S)
            return here.boot_ms() - started_ms

        found = at_once([partial(over_after_ms, watcher) for watcher in watchers])
        assert min(int(str(one)) for one in found) >= presence.hold_ms - GRAIN_MS

    def test_p9_a_hold_is_at_most_the_term(self, brief: Open) -> None:
        presence = brief()
        joined(presence)
        assert 0 < presence.hold_ms <= self.term_ms

    def test_l7_fifty_restarts_leave_only_the_living(self, opened: Open) -> None:
        here, watcher = opened(terms=3), opened(terms=3)
        living = joined(here, "living")
        with self._renewing(here, living):
            gone = [joined(watcher, f"restart-{n}") for n in range(50)]
            for member in gone[::2]:
                watcher.leave(member)  # the others were killed
            self._wait_until_over(watcher, gone)
            look = watcher.look()
            assert [m.session for m in look.members] == [living.session]
            for session in look.over:
                watcher.forget(session)
            assert watcher.look().over == ()

    def test_l15_a_hundred_members_renew_at_once(self, opened: Open) -> None:
        nodes = [opened() for _ in range(10)]
        members = [joined(nodes[n % 10], f"n{n}") for n in range(100)]

        def renew(n: int) -> Member:
            return nodes[n % 10].renew(members[n], advert(f"n{n}", workers=n))

        renewed = at_once([partial(renew, n) for n in range(100)])
        assert list(nodes[0].look().members) == renewed

    def _wait_until_over(self, watcher: Presence, members: Sequence[Member]) -> None:
        wanted = {member.session for member in members}
        assert until(lambda: wanted <= {*watcher.look().over}, within_s=PATIENCE_S)

    def _stay(self, presences: Sequence[Presence], watchers: Sequence[Presence]) -> None:
        """For two terms, renewed at a third of each. Whoever was held up longer than a renewal
        holds may be over, and proves nothing."""
        here = SystemAmbient()
        first_ms = here.boot_ms()
        started = [(here.boot_ms(), joined(presence)) for presence in presences]
        while here.boot_ms() < first_ms + 2 * self.term_ms:
            here.sleep_ms(self.term_ms / 3)
            for watcher in watchers:
                there = {member.session for member in watcher.look().members}
                for started_ms, member in started:
                    is_late = here.boot_ms() - started_ms >= presences[0].hold_ms
                    assert member.session in there or is_late
            for n, presence in enumerate(presences):
                started_ms, member = started[n]
                again_ms = here.boot_ms()
                try:
                    started[n] = (again_ms, presence.renew(member, member.advert))
                except Fenced:
                    assert again_ms - started_ms >= presence.hold_ms
                    started[n] = (again_ms, joined(presence))

    def _renewed_while_watched(
        self, presence: Presence, watchers: Sequence[Presence]
    ) -> tuple[int, Member]:
        """A member, seen by all watchers before its last renewal; and when that was started."""
        for _ in range(10):
            member = joined(presence)
            for watcher in watchers:
                watcher.look()
            started_ms = SystemAmbient().boot_ms()
            try:
                return started_ms, presence.renew(member, member.advert)
            except Fenced:
                continue  # this machine is too slow just now
        pytest.fail("ten members were over before they could be renewed")

    @contextmanager
    def _renewing(self, presence: Presence, member: Member) -> Iterator[None]:
        is_done = threading.Event()

        def renew() -> None:
            current = member
            while not is_done.wait(self.term_ms / 2_000):
                current = presence.renew(current, current.advert)

        renewing = in_background(renew)
        try:
            yield
        finally:
            is_done.set()
            renewing.result(PATIENCE_S)


def advert(node: str = "n", workers: int = 2) -> Advert:
    return Advert(node=node, workers=workers)


def number(member: Member) -> int:
    return member.number


def joined(presence: Presence, node: str = "n") -> Member:
    return presence.join(SystemAmbient().new_id(), advert(node))


def insisted(call: Callable[[], T]) -> T:
    for _ in range(50):
        try:
            return call()
        except OutcomeUnknown:
            continue
    pytest.fail("fifty lost replies")
