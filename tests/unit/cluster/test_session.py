"""A session's states, who is over, and when to look again: values in, values out."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.cluster import Advert
from headgate.cluster.session import (
    EXPIRED,
    STOOD_STILL,
    Seen,
    Session,
    Verdict,
    Watch,
    closed,
    opened,
    read,
    renewed,
    session_key,
    verdict,
)
from headgate.errors import Corrupt
from headgate.store import Document, Version
from headgate.store.codec import body_of

TERM = 30_000
STORE = 1_000_000_000_000  # the store's time, far from any monotonic clock
ADVERT = Advert(node="n1", workers=4, labels=("gpu",), held=("tasks/1",), held_count=1)
OPENED = opened(7, ADVERT, STORE + TERM)


def judged(session: Session, *, since: int, now: int, store: int, chance: float = 0.0) -> Verdict:
    return verdict(session, since_ms=since, now_ms=now, store_ms=store, term_ms=TERM, chance=chance)


def test_a_body_comes_back_as_it_was() -> None:
    document = Document(session_key("abc"), body_of(OPENED), Version("1"))
    assert read(document) == Seen("abc", OPENED, Version("1"))
    assert OPENED.advert == ADVERT


@pytest.mark.parametrize("spoilt", [{"expire": "7"}, {"state": "dead"}, {"x": 1}, {"format": 2}])
def test_a_body_that_breaks_the_rules_is_corrupt_and_named(spoilt: dict[str, object]) -> None:
    body = {**body_of(OPENED), **spoilt}
    with pytest.raises(Corrupt, match="sessions/abc"):
        read(Document(session_key("abc"), body, Version("1")))  # type: ignore[arg-type]  # spoilt


def test_a_renewal_changes_the_body_even_if_nothing_else_did() -> None:
    again = renewed(OPENED, ADVERT, OPENED.expire)
    assert again == replace(OPENED, renewals=1)


def test_a_closed_one_keeps_what_it_said_and_says_why() -> None:
    assert closed(OPENED, "left") == replace(OPENED, state="closed", why="left")


def test_p9_it_is_not_over_before_its_expire_and_is_then() -> None:
    assert judged(OPENED, since=0, now=100, store=STORE + TERM - 1).why is None
    assert judged(OPENED, since=0, now=100, store=STORE + TERM).why == EXPIRED


def test_l12_an_expire_years_ahead_is_over_once_it_stood_still_for_a_term() -> None:
    ahead = replace(OPENED, expire=STORE + 10**12)
    assert judged(ahead, since=5, now=10, store=STORE) == Verdict(None, 5 + TERM)
    assert judged(ahead, since=5, now=5 + TERM - 1, store=STORE).why is None
    assert judged(ahead, since=5, now=5 + TERM, store=STORE).why == STOOD_STILL


def test_a_healthy_one_is_looked_at_once_a_term() -> None:
    healthy = replace(OPENED, expire=STORE + int(0.7 * TERM))
    assert judged(healthy, since=50, now=50, store=STORE, chance=0.0).next_ms == 50 + 27_000
    assert judged(healthy, since=50, now=50, store=STORE, chance=0.99).next_ms == 50 + 29_970


def test_one_that_missed_a_renewal_is_looked_at_exactly_at_its_expire() -> None:
    late = replace(OPENED, expire=STORE + 10_000)
    assert judged(late, since=50, now=50, store=STORE).next_ms == 50 + 10_000


@given(
    left=st.integers(-2 * TERM, 4 * TERM),
    stood=st.integers(0, 2 * TERM),
    chance=st.floats(0, 1, exclude_max=True),
)
def test_p5_the_next_look_is_within_a_term_and_never_after_it_stood_still(
    left: int, stood: int, chance: float
) -> None:
    session = replace(OPENED, expire=STORE + left)
    now = 10 * TERM
    told = judged(session, since=now - stood, now=now, store=STORE, chance=chance)
    assert (told.why is not None) == (left <= 0 or stood >= TERM)
    if told.why is None:
        assert now < told.next_ms <= now - stood + TERM


@given(phase=st.integers(1, TERM), renewal=st.integers(0, TERM - 1), chance=st.floats(0, 0.99))
def test_p5_whoever_looks_when_told_finds_a_dead_one_within_a_term_of_watching(
    phase: int, renewal: int, chance: float
) -> None:
    """It was renewed for the last time `renewal` before the first look, and never again."""
    session = replace(OPENED, expire=STORE + TERM - renewal)
    watch, seen = Watch(), Seen("a", session, Version("1"))
    now = first = phase
    for _ in range(4):
        store = STORE + now - first
        told = judged(session, since=watch.see(seen, now), now=now, store=store, chance=chance)
        if told.why is not None:
            break
        now = told.next_ms
    assert told.why is not None
    assert now - first <= TERM
    assert now - first >= TERM - renewal


def test_a_watch_counts_from_when_it_first_saw_the_version() -> None:
    watch = Watch()
    one = Seen("a", OPENED, Version("1"))
    two = Seen("a", OPENED, Version("2"))
    assert [watch.see(one, 10), watch.see(one, 20), watch.see(two, 30), watch.see(two, 40)] == [
        *(10, 10, 30, 30)
    ]


def test_a_watch_forgets_who_is_no_longer_there() -> None:
    watch = Watch()
    watch.see(Seen("a", OPENED, Version("1")), 10)
    watch.keep({"b"})
    assert watch.see(Seen("a", OPENED, Version("1")), 20) == 20
