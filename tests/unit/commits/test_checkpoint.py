"""What a checkpoint may become, and what one holder's time with it promises."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import pytest

from headgate.commits.checkpoint import (
    Base,
    Checkpoint,
    Gapped,
    Journal,
    LastGap,
    Spans,
    Tenure,
    Wish,
    add_wish,
    base_after,
    base_of,
    check_fits,
    checkpoint_key,
    concluded,
    intended,
    taken_over,
    with_gaps,
    with_number,
)
from headgate.errors import Conflict, Corrupt, Fenced, Halted, OutcomeUnknown, Unavailable
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.store.codec import BODY_BYTES_MAX
from headgate.testing.crashes import HARMS
from headgate.testing.faults import Crashed, Harm, Point, Scripted, wrap
from headgate.testing.manual import ManualAmbient, manual_store

HELD = Checkpoint(
    epoch=3,
    turn=5,
    number=7,
    shift=2,
    positions={"a": "10", "b": ""},
    watermarks={"a": 1_000, "b": None},
)


def journal_of(number: int = 8, replaces: int | None = None) -> Journal:
    return Journal(
        number,
        3,
        "_headgate/staging/s/x.0-3/shard=0-3",
        "_headgate/staging/s/x.0-3/shard=0-3/record.json",
        10,
        "sha256:0",
        {"a": "12"},
        {"a": 2_000},
        {"a": 5_000},
        ("2026-11-01T00",),
        3,
        counts={"data": 4},
        replaces=replaces,
    )


JOURNALED = replace(HELD, number=8, journal=journal_of())


# Taking over


def test_a_new_holder_writes_its_epoch_and_every_source_partition() -> None:
    after = taken_over("s/0", HELD, 4, ["a", "b", "c"])

    assert (after.epoch, after.turn) == (4, 6)
    assert after.positions == {"a": "10", "b": "", "c": ""}
    assert after.watermarks == {"a": 1_000, "b": None, "c": None}


def test_a_source_partition_that_is_not_seen_now_stays() -> None:
    after = taken_over("s/0", HELD, 4, [])
    assert (after.positions, after.watermarks) == (HELD.positions, HELD.watermarks)


def test_inv3_a_holder_with_an_older_epoch_is_fenced() -> None:
    with pytest.raises(Fenced):
        taken_over("s/0", HELD, 2, ["a"])


# The intent


def test_an_intent_changes_only_journal_and_number() -> None:
    assert intended("s/0", HELD, base_of(HELD), journal_of()) == JOURNALED


@pytest.mark.parametrize(
    "base",
    [
        Base(2, {"a": "10"}, {"a": 1_000}),
        Base(4, {"a": "10"}, {"a": 1_000}),
        Base(3, {"a": "9"}, {"a": 1_000}),
        Base(3, {"a": "10", "z": "1"}, {"a": 1_000}),
        Base(3, {"a": "10"}, {"a": 999}),
        Base(3, {"a": "10"}, {"a": None}),
    ],
    ids=["older epoch", "newer epoch", "position", "unknown partition", "watermark", "no mark"],
)
def test_inv2_an_intent_staged_from_another_state_is_refused(base: Base) -> None:
    with pytest.raises(Conflict):
        intended("s/0", HELD, base, journal_of())


def test_a_partition_that_joined_since_the_round_began_refuses_nothing() -> None:
    base = Base(3, {"a": "10"}, {"a": 1_000})
    assert intended("s/0", HELD, base, journal_of()).journal == journal_of()


@pytest.mark.parametrize("number", [1, 7, 9])
def test_an_intent_has_the_next_number(number: int) -> None:
    with pytest.raises(Conflict):
        intended("s/0", HELD, base_of(HELD), journal_of(number))


@pytest.mark.parametrize("replaces", [None, 7, 9])
def test_k17_inv4_nothing_is_intended_while_a_journal_stands(replaces: int | None) -> None:
    with pytest.raises(Corrupt):
        intended("s/0", JOURNALED, base_of(JOURNALED), journal_of(9, replaces))


def test_only_the_commit_that_replaces_a_journal_may_follow_it() -> None:
    wished = add_wish(JOURNALED, Wish("files are gone", "ann", 1))
    after = intended("s/0", wished, base_of(wished), journal_of(9, replaces=8))
    assert (after.number, after.journal, after.restage) == (9, journal_of(9, 8), None)


def test_what_would_not_fit_the_store_is_refused_before_it_is_journaled() -> None:
    crowded = {f"lane-{n:06}": "x" * 100 for n in range(BODY_BYTES_MAX // 100)}
    full = replace(HELD, positions=crowded)
    with pytest.raises(Halted, match="headgate status"):
        intended("s/0", full, base_of(full), journal_of())


def test_a_fact_that_would_not_fit_is_refused_with_its_intent() -> None:
    fits = {f"lane-{n:06}": "x" * 100 for n in range(7_000)}
    held = replace(HELD, positions=fits)
    grows = replace(journal_of(), periods=tuple(f"{n:07}" for n in range(9_000)))
    check_fits("s/0", replace(held, journal=grows))
    with pytest.raises(Halted):
        intended("s/0", held, base_of(held), grows)


# The fact


def test_g11_a_fact_moves_everything_at_once() -> None:
    after = concluded("s/0", JOURNALED, journal_of(), 99)

    assert after == replace(
        JOURNALED,
        journal=None,
        shift=3,
        positions={"a": "12", "b": ""},
        watermarks={"a": 2_000, "b": None},
        ends_ms={"a": 5_000},
        periods={"2026-11-01T00": ((8, 9),)},
        counts={"data": 4},
        committed_ms=99,
    )


def test_a_fact_leaves_alone_what_joined_since() -> None:
    joined = taken_over("s/0", JOURNALED, 4, ["c"])
    after = concluded("s/0", joined, journal_of(), 99)
    assert "c" in after.watermarks
    assert after.watermarks["c"] is None
    assert after.positions["c"] == ""


def test_a_watermark_never_moves_back() -> None:
    back = replace(journal_of(), watermarks={"a": 999})
    with pytest.raises(Corrupt, match="would move back"):
        concluded("s/0", replace(HELD, number=8, journal=back), back, 99)


def test_a_fact_of_another_journal_is_refused() -> None:
    with pytest.raises(Corrupt):
        concluded("s/0", JOURNALED, replace(journal_of(), counts={"data": 5}), 99)
    with pytest.raises(Corrupt):
        concluded("s/0", HELD, journal_of(), 99)


def test_the_next_round_starts_from_what_the_fact_will_say() -> None:
    base = base_after(HELD, journal_of())
    assert base == base_of(concluded("s/0", JOURNALED, journal_of(), 99))


def test_a_clock_that_was_set_back_does_not_take_the_last_commit_back() -> None:
    later = replace(JOURNALED, committed_ms=500)
    assert concluded("s/0", later, journal_of(), 99).committed_ms == 500


@pytest.mark.parametrize(
    ("before", "number", "after"),
    [
        ((), 1, ((1, 2),)),
        (((1, 2),), 2, ((1, 3),)),
        (((1, 3),), 5, ((1, 3), (5, 6))),
        (((1, 3), (5, 6)), 6, ((1, 3), (5, 7))),
    ],
)
def test_numbers_of_a_period_are_kept_as_spans(before: Spans, number: int, after: Spans) -> None:
    periods: Mapping[str, Spans] = {"h": before} if before else {}
    assert with_number(periods, ["h"], number) == {"h": after}


def test_a_wish_without_a_journal_is_none() -> None:
    assert add_wish(HELD, Wish("why", "ann", 1)) == HELD


# One holder's time with it


def fresh_store() -> DocumentStore:
    return manual_store(ManualAmbient())


def found_in(store: DocumentStore) -> Checkpoint:
    found = read(store, checkpoint_key("s", 0), Checkpoint)
    assert found is not None
    return found.value


def test_a_tenure_knows_nothing_before_its_first_write() -> None:
    tenure = Tenure(fresh_store(), "s", 0, 1)
    assert not tenure.is_held
    with pytest.raises(Conflict):
        tenure.intend(base_of(Checkpoint()), journal_of(1))


def test_taking_over_is_a_write_even_if_nothing_changes() -> None:
    store = fresh_store()
    tenure = Tenure(store, "s", 0, 1)
    turns = [tenure.take_over(["a"]).turn for _ in range(3)]
    assert turns == [1, 2, 3]
    assert found_in(store) == tenure.checkpoint


def test_joining_writes_only_if_there_is_something_new() -> None:
    store = fresh_store()
    tenure = Tenure(store, "s", 0, 1)
    tenure.take_over(["a"])
    assert tenure.join(["a"]).turn == 1
    assert tenure.join(["a", "b"]).watermarks == {"a": None, "b": None}
    assert found_in(store).turn == 2


@pytest.mark.parametrize("harm", [Harm.REFUSE, Harm.LOSE_REQUEST, Harm.LOSE_REPLY])
def test_a_take_over_that_was_not_acknowledged_is_nothing_to_act_on(harm: Harm) -> None:
    """What was read is not what a write contained: an older holder's intent may still land."""
    store = fresh_store()
    Tenure(store, "s", 0, 1).take_over(["a"])
    script = Scripted([Point(2, harm)])  # after the read
    tenure = Tenure(wrap(DocumentStore, store, script), "s", 0, 2)

    with pytest.raises((Unavailable, OutcomeUnknown)):
        tenure.take_over(["a"])

    assert not tenure.is_held
    assert tenure.take_over(["a"]).epoch == 2


def test_a_fenced_take_over_leaves_nothing_in_hand() -> None:
    store = fresh_store()
    Tenure(store, "s", 0, 5).take_over(["a"])
    late = Tenure(store, "s", 0, 4)
    with pytest.raises(Fenced):
        late.take_over(["a"])
    assert not late.is_held


def test_k19_whoever_wakes_up_after_another_took_over_is_refused_and_knows_nothing() -> None:
    store = fresh_store()
    early, late = Tenure(store, "s", 0, 1), Tenure(store, "s", 0, 2)
    base = base_of(early.take_over(["a"]))
    late.take_over(["a"])

    with pytest.raises(Conflict):
        early.intend(base, journal_of(1))

    assert not early.is_held
    assert found_in(store).journal is None
    with pytest.raises(Fenced):
        early.take_over(["a"])


@pytest.mark.parametrize("harm", HARMS)
def test_g5_a_crash_in_the_journals_write_leaves_the_old_document_or_the_new_one(
    harm: Harm,
) -> None:
    store = fresh_store()
    Tenure(store, "s", 0, 3).take_over(["a"])
    before = found_in(store)
    script = Scripted([Point(3, harm)])  # read, take-over, intent
    tenure = Tenure(wrap(DocumentStore, store, script), "s", 0, 3)
    held = tenure.take_over(["a"])
    with suppress(Crashed, OutcomeUnknown):
        tenure.intend(base_of(held), journal_of(1))

    found = found_in(store)
    assert script.is_spent
    assert found in (
        replace(before, turn=2),
        replace(before, turn=2, number=1, journal=journal_of(1)),
    )
    assert Tenure(store, "s", 0, 4).take_over(["a"]).journal == found.journal


def test_commits_with_gaps_are_known_while_an_hour_is_open_that_they_concern() -> None:
    first = Gapped(3, 4, "2026-11-01T00", "2026-11-01T02")
    second = Gapped(4, 5, "2026-11-01T00", "2026-11-01T02")
    third = Gapped(5, 6, "2026-11-01T02", "2026-11-01T05")
    both = Gapped(3, 5, "2026-11-01T00", "2026-11-01T02")
    assert with_gaps((), (first,), "") == (first,)
    assert with_gaps((first,), (second,), "") == (both,), "one after the other, the same hours"
    assert with_gaps((both,), (third,), "2026-11-01T02") == (both, third)
    assert with_gaps((both,), (third,), "2026-11-01T03") == (third,)
    skipped = replace(second, first=7, next=8)
    assert with_gaps((first,), (skipped,), "") == (first, skipped), "commits between have none"

    journal = replace(journal_of(), gapped=(first,), open_from="2026-11-01T01")
    after = concluded("x", replace(HELD, number=8, journal=journal), journal, 0)
    assert after.gapped == (first,)


def test_the_last_commit_with_gaps_is_known_for_good() -> None:
    gapped = (Gapped(8, 9, "2026-11-01T00", "2026-11-01T02"),)
    journal = replace(journal_of(), gapped=gapped, open_from="2026-11-01T05")
    after = concluded("x", replace(HELD, number=8, journal=journal), journal, 77)
    assert after.gapped == (), "every hour that it concerns has its certificate"
    assert after.last_gap == LastGap(journal.number, 77)

    calm = replace(journal_of(9), watermarks={})
    later = concluded("x", replace(after, number=9, journal=calm), calm, 99)
    assert later.last_gap == LastGap(journal.number, 77)
