from headgate.cluster import Advert, Member
from headgate.cluster.roster import Roster, entries
from headgate.cluster.settling import SETTLE_MS, SETTLE_MS_MAX, Settling
from headgate.store import Version


def members(*sessions: str) -> list[Member]:
    return [
        Member(number, session, Advert(session, 1), 0, Version("1"))
        for number, session in enumerate(sessions)
    ]


def test_each_newcomer_makes_the_others_wait_again_but_not_for_ever() -> None:
    settling = Settling()
    now_ms = 5_000
    for count in range(1, 100):
        assert settling.see(members(*map(str, range(count))), None, now_ms)
        if now_ms >= settling.settled_ms:
            break
        now_ms += SETTLE_MS - 1
    assert SETTLE_MS_MAX <= now_ms - 5_000 <= SETTLE_MS_MAX + SETTLE_MS


def test_nobody_waits_because_somebody_left() -> None:
    settling = Settling()
    settling.see(members("a", "b"), None, 0)
    assert settling.see(members("a"), None, 10_000)
    assert settling.settled_ms <= 10_000


def test_after_an_outage_of_all_they_wait_for_as_many_as_there_were() -> None:
    roster = Roster(1, entries(members("old-1", "old-2", "old-3")))
    settling = Settling()

    settling.see(members("a", "b"), roster, 0)
    assert settling.settled_ms == SETTLE_MS_MAX
    settling.see(members("a", "b", "c"), roster, 6_000)
    assert settling.settled_ms == 6_000 + SETTLE_MS


def test_a_roster_of_the_living_makes_nobody_wait_longer() -> None:
    roster = Roster(1, entries(members("a", "gone")))
    settling = Settling()
    settling.see(members("a", "b"), roster, 0)
    assert settling.settled_ms == SETTLE_MS
