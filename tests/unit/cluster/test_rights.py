"""Rights: who may have one, and how its document changes in spite of others and of lost answers."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.cluster.rights import Right, check_held, claimed, released
from headgate.errors import Conflict, Corrupt, Fenced, OutcomeUnknown, Unavailable
from headgate.store import DocumentStore, Version
from headgate.store.changes import TRIES_MAX, Kept, change, create_if_absent, read
from headgate.store.codec import body_of
from headgate.testing.faults import Calm, Harm, Point, Scripted, wrap
from headgate.testing.manual import ManualAmbient, manual_store

KEY = "cluster/leader"
SESSIONS = ("", "a", "b", "c")

rights = st.builds(
    Right,
    holder=st.sampled_from(SESSIONS),
    epoch=st.integers(0, 9),
    since_ms=st.integers(0, 9),
)


def nobody_is_over(_session: str) -> bool:
    return False


def everybody_is_over(_session: str) -> bool:
    return True


def store_with(right: Right) -> DocumentStore:
    store = manual_store(ManualAmbient())
    store.create(KEY, body_of(right))
    return store


def harmed(store: DocumentStore, *points: Point) -> tuple[DocumentStore, Scripted]:
    stage = Scripted(points)
    return wrap(DocumentStore, store, stage), stage


def known(store: DocumentStore) -> Kept[Right]:
    found = read(store, KEY, Right)
    assert found is not None
    return found


def claim(session: str) -> Callable[[Right], Right]:
    return lambda right: claimed(right, session, nobody_is_over, at_ms=7)


def test_a_free_right_is_claimed_under_a_new_epoch() -> None:
    free = Right(epoch=4)
    assert claimed(free, "a", nobody_is_over, 7) == Right(holder="a", epoch=5, since_ms=7)


def test_q2_a_right_of_a_live_holder_is_refused_and_of_one_that_is_over_is_not() -> None:
    held = Right(holder="a", epoch=4, since_ms=1)
    with pytest.raises(Conflict, match="session a holds it"):
        claimed(held, "b", nobody_is_over, 7)
    assert claimed(held, "b", everybody_is_over, 7) == Right(holder="b", epoch=5, since_ms=7)


def test_a_claim_whose_answer_was_lost_is_found_and_not_made_again() -> None:
    mine = Right(holder="a", epoch=4, since_ms=1)
    assert claimed(mine, "a", everybody_is_over, 7) is mine


def test_l3_only_its_holder_releases_a_right_and_the_epoch_stays() -> None:
    held = Right(holder="a", epoch=4, since_ms=1)
    assert released(held, "a", 4) == Right(holder="", epoch=4, since_ms=1)
    assert released(held, "b", 4) is held
    assert released(held, "a", 3) is held


def test_who_does_not_hold_it_any_more_is_fenced_and_told_who_does() -> None:
    right = Right(holder="b" * 32, epoch=5)
    check_held(KEY, right, "b" * 32, 5)
    for session, epoch in [("a", 5), ("b" * 32, 4)]:
        with pytest.raises(Fenced, match=f"epoch {epoch} is over, session bbbbbbbb has epoch 5"):
            check_held(KEY, right, session, epoch)
    with pytest.raises(Fenced, match="nobody has epoch 5"):
        check_held(KEY, replace(right, holder=""), "a", 5)


@given(rights, st.sampled_from(SESSIONS[1:]), st.integers(0, 9))
def test_inv3_asked_twice_nothing_more_changes_and_no_epoch_falls(
    right: Right, session: str, epoch: int
) -> None:
    decisions: list[Callable[[Right], Right]] = [
        lambda one: claimed(one, session, everybody_is_over, 7),
        lambda one: released(one, session, epoch),
    ]
    for decide in decisions:
        once = decide(right)
        assert decide(once) == once
        assert once.epoch >= right.epoch
        if once.holder not in ("", right.holder):
            assert once.epoch > right.epoch


def test_change_writes_what_is_wanted_and_nothing_if_it_is_so_already() -> None:
    store, stage = harmed(store_with(Right()))
    kept = change(store, KEY, Right, claim("a"))
    assert kept == known(store)
    assert kept.value.holder == "a"

    before = len(stage.calls)
    assert change(store, KEY, Right, claim("a"), kept) == kept
    assert len(stage.calls) == before  # what is known and right costs no call


def test_change_reads_again_after_a_conflict() -> None:
    """The version that was known is stale: somebody else was first, and let go again."""
    plain = store_with(Right())
    stale = known(plain)
    change(plain, KEY, Right, claim("b"))
    change(plain, KEY, Right, lambda right: released(right, "b", 1))
    calm = Calm()

    kept = change(wrap(DocumentStore, plain, calm), KEY, Right, claim("a"), stale)

    assert kept.value == Right(holder="a", epoch=2, since_ms=7)
    assert [call.method for call in calm.calls] == ["replace", "get", "replace"]


def test_q2_of_two_who_claim_at_once_one_gets_it() -> None:
    store = store_with(Right())
    seen_by_both = known(store)

    first = change(store, KEY, Right, claim("a"), seen_by_both)
    with pytest.raises(Conflict, match="session a holds it"):
        change(store, KEY, Right, claim("b"), seen_by_both)

    assert known(store) == first


@pytest.mark.parametrize("harm", [Harm.LOSE_REPLY, Harm.LOSE_REQUEST, Harm.DUPLICATE])
def test_change_looks_after_a_lost_answer_and_does_it_once(harm: Harm) -> None:
    store, stage = harmed(store_with(Right()), Point(2, harm))
    kept = change(store, KEY, Right, claim("a"))
    assert stage.is_spent
    assert kept.value == Right(holder="a", epoch=1, since_ms=7)
    assert kept == known(store)


def test_change_gives_up_and_says_whether_something_may_have_happened() -> None:
    every = [Point(effect, Harm.LOSE_REQUEST) for effect in range(2, 99, 2)]
    store, _ = harmed(store_with(Right()), *every)
    with pytest.raises(OutcomeUnknown, match="an answer was lost"):
        change(store, KEY, Right, claim("a"))

    behind = store_with(Right())

    def interfere(right: Right) -> Right:
        """Somebody writes between our read and our write, each time."""
        now = known(behind)
        behind.replace(
            KEY, body_of(replace(now.value, since_ms=now.value.since_ms + 1)), now.version
        )
        return replace(right, holder="a")

    with pytest.raises(Unavailable, match=f"gave up after {TRIES_MAX} conflicts"):
        change(behind, KEY, Right, interfere)
    assert known(behind).value == Right(since_ms=TRIES_MAX)


def test_a_read_that_fails_is_no_answer() -> None:
    store, _ = harmed(store_with(Right()), Point(1, Harm.REFUSE))
    with pytest.raises(Unavailable):
        change(store, KEY, Right, claim("a"))


def test_change_of_what_is_gone_is_fenced() -> None:
    store = manual_store(ManualAmbient())
    with pytest.raises(Fenced, match="is not there any more"):
        change(store, KEY, Right, claim("a"))
    gone = Kept(KEY, Right(), Version("1"))
    with pytest.raises(Fenced, match="is not there any more"):
        change(store, KEY, Right, claim("a"), gone)


def test_what_decides_may_refuse_and_then_nothing_is_written() -> None:
    store = store_with(Right(holder="b", epoch=3))
    with pytest.raises(Conflict):
        change(store, KEY, Right, claim("a"))
    assert known(store).value == Right(holder="b", epoch=3)


def test_a_document_that_is_no_right_is_corrupt() -> None:
    store = manual_store(ManualAmbient())
    store.create(KEY, {"format": 1, "holder": 7})
    with pytest.raises(Corrupt, match=KEY):
        read(store, KEY, Right)


def test_creating_what_is_there_changes_nothing() -> None:
    store = store_with(Right(epoch=3))
    create_if_absent(store, KEY, Right())
    assert known(store).value.epoch == 3
