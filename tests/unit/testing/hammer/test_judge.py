"""The proof must turn red for every lost, doubled or invented write."""

from dataclasses import replace
from typing import Any

import pytest

from headgate.testing.hammer.judge import (
    COUNTER,
    LIST,
    Counter,
    Diary,
    Entry,
    Share,
    judge,
    read_diary,
)

# Process 1.1 wrote three times and was killed during the fourth; 2.1 ended calmly.
KILLED = Diary(
    "1.1",
    was_killed=True,
    intents={"1.1-1": COUNTER, "1.1-2": LIST, "1.1-3": COUNTER, "1.1-4": LIST},
    acks={"1.1-1": 1, "1.1-2": 1, "1.1-3": 3},
)
CALM = Diary(
    "2.1",
    was_killed=False,
    intents={"2.1-1": COUNTER, "2.1-2": LIST, "2.1-3": COUNTER},
    acks={"2.1-1": 2, "2.1-2": 2},
    refused=frozenset({"2.1-3"}),
)
BY = {"1.1": Share(2, "1.1-3"), "2.1": Share(1, "2.1-1")}
COUNTED = Counter(3, BY)
LISTED = (Entry(1, "1.1-2"), Entry(2, "2.1-2"))
# The same, but 1.1 was killed during its third write: an increment, which may have happened.
CUT_OFF = replace(
    KILLED,
    intents={"1.1-1": COUNTER, "1.1-2": LIST, "1.1-3": COUNTER},
    acks={"1.1-1": 1, "1.1-2": 1},
)


def problems(
    *diaries: Diary, counter: Counter = COUNTED, entries: tuple[Entry, ...] = LISTED
) -> str:
    verdict = judge(diaries or (KILLED, CALM), counter, entries)
    assert verdict.is_proved == (not verdict.problems)
    return "\n".join(verdict.problems)


def test_all_acknowledged_writes_once_is_proved() -> None:
    verdict = judge([KILLED, CALM], COUNTED, LISTED)

    assert verdict.is_proved
    assert (verdict.increments, verdict.entries) == (3, 2)
    assert (verdict.unheard_increments, verdict.unheard_entries, verdict.vanished) == (0, 0, 1)


def test_a_write_of_a_killed_process_may_have_happened_before_its_answer() -> None:
    verdict = judge([KILLED, CALM], COUNTED, (*LISTED, Entry(3, "1.1-4")))

    assert verdict.is_proved
    assert (verdict.unheard_entries, verdict.vanished) == (1, 0)


def test_an_increment_of_a_killed_process_may_have_happened_before_its_answer() -> None:
    verdict = judge([CUT_OFF, CALM], COUNTED, LISTED)

    assert verdict.is_proved
    assert (verdict.unheard_increments, verdict.vanished) == (1, 0)


def test_an_increment_of_a_killed_process_may_have_vanished() -> None:
    without = Counter(2, {**BY, "1.1": Share(1, "1.1-1")})

    verdict = judge([CUT_OFF, CALM], without, LISTED)

    assert verdict.is_proved
    assert (verdict.unheard_increments, verdict.vanished) == (0, 1)


def test_an_unknown_outcome_may_have_happened_or_not() -> None:
    in_doubt = replace(CALM, refused=frozenset(), unknown=frozenset({"2.1-3"}))

    assert problems(KILLED, in_doubt) == ""
    assert problems(KILLED, in_doubt, counter=Counter(4, {**BY, "2.1": Share(2, "2.1-3")})) == ""


def test_planted_a_lost_increment_is_found() -> None:
    found = problems(counter=Counter(2, {**BY, "1.1": Share(1, "1.1-1")}))

    assert "lost: 1 of 2 increments of process 1.1" in found
    assert "lost: an increment was told 3, and the counter is at 2" in found


def test_planted_two_increments_that_were_told_the_same_number_are_found() -> None:
    overwritten = replace(CALM, acks={"2.1-1": 3, "2.1-2": 2})

    assert "lost: 2 increments were each told that they made the counter 3" in problems(
        KILLED, overwritten
    )


def test_planted_a_doubled_increment_is_found() -> None:
    found = problems(counter=Counter(4, {**BY, "2.1": Share(2, "2.1-1")}))

    assert found == "twice: process 2.1 made 1 increments, and the counter has 2 of it"


def test_planted_a_doubled_increment_does_not_pass_for_one_that_was_cut_off() -> None:
    doubled = Counter(3, {**BY, "1.1": Share(2, "1.1-1")})

    assert problems(CUT_OFF, CALM, counter=doubled) == (
        "twice: process 1.1 made 1 increments, and the counter has 2 of it"
    )


def test_planted_one_that_was_cut_off_does_not_pass_for_a_lost_increment() -> None:
    lost = Counter(2, {**BY, "1.1": Share(1, "1.1-3")})

    assert "lost: 1 of 2 increments of process 1.1" in problems(CUT_OFF, CALM, counter=lost)


def test_planted_a_refused_increment_that_happened_instead_of_an_acknowledged_one_is_found() -> (
    None
):
    happened = Counter(3, {**BY, "2.1": Share(1, "2.1-3")})

    assert problems(counter=happened) == (
        "lost or twice: the last increment of process 2.1 is 2.1-1, and the counter says 2.1-3"
    )


def test_planted_counts_that_were_told_in_falling_order_are_found() -> None:
    falling = replace(KILLED, acks={"1.1-1": 3, "1.1-2": 1, "1.1-3": 1})

    assert problems(falling, CALM) == "lost or twice: write 1.1-3 was told 1 after 3"


def test_planted_entries_that_were_told_in_falling_order_are_found() -> None:
    falling = replace(KILLED, acks={"1.1-1": 1, "1.1-2": 3, "1.1-3": 3, "1.1-4": 1})
    entries = (Entry(1, "1.1-4"), Entry(2, "2.1-2"), Entry(3, "1.1-2"))

    assert problems(falling, CALM, entries=entries) == (
        "lost or twice: write 1.1-4 was told 1 after 3"
    )


@pytest.mark.parametrize(
    "answered", [{"acks": {**KILLED.acks, "1.1-9": 4}}, {"refused": {"1.1-9"}}]
)
def test_planted_an_answer_without_an_intent_is_found(answered: dict[str, Any]) -> None:
    assert problems(replace(KILLED, **answered), CALM) == (
        "invented: process 1.1 was answered 1.1-9, which it never tried"
    )


def test_planted_a_lost_and_a_doubled_increment_do_not_cancel_out() -> None:
    found = problems(counter=Counter(3, {"1.1": Share(1, "1.1-3"), "2.1": Share(2, "2.1-1")}))

    assert "lost: 1 of 2 increments of process 1.1" in found
    assert "twice: process 2.1" in found


def test_planted_a_count_that_is_not_the_sum_of_its_shares_is_found() -> None:
    assert "shares add up to 3" in problems(counter=Counter(4, BY))


def test_planted_an_invented_process_is_found() -> None:
    assert "invented: nobody started process 9.9" in problems(
        counter=Counter(4, {**BY, "9.9": Share(1, "9.9-1")})
    )


def test_planted_a_lost_entry_is_found() -> None:
    assert "lost: write 2.1-2 was told that it is entry 2" in problems(entries=LISTED[:1])


def test_planted_an_overwritten_entry_is_found() -> None:
    found = problems(entries=(Entry(1, "1.1-4"), Entry(2, "2.1-2")))

    assert "lost: write 1.1-2 was told that it is entry 1" in found


def test_planted_an_entry_missing_in_the_middle_is_found() -> None:
    assert "lost: the list has no entry 1, and later ones are there" in problems(entries=LISTED[1:])


def test_planted_a_doubled_entry_is_found() -> None:
    assert "twice: write 1.1-2 is 2 times in the list" in problems(
        entries=(*LISTED, Entry(3, "1.1-2"))
    )


def test_planted_an_invented_entry_is_found() -> None:
    assert "invented: write 9.9-1 is in the list" in problems(entries=(*LISTED, Entry(3, "9.9-1")))


def test_planted_a_refused_write_that_happened_is_found() -> None:
    refused = replace(
        CALM,
        intents={"2.1-1": COUNTER, "2.1-2": LIST, "2.1-4": LIST},
        refused=frozenset({"2.1-4"}),
    )

    assert "invented: write 2.1-4" in problems(
        KILLED, refused, entries=(*LISTED, Entry(3, "2.1-4"))
    )


def test_planted_a_calm_process_with_an_unanswered_write_is_found() -> None:
    silent = replace(CALM, refused=frozenset())

    assert "process 2.1 left 1 writes without an answer" in problems(KILLED, silent)


def test_planted_a_killed_process_leaves_at_most_one_write_unanswered() -> None:
    silent = replace(KILLED, acks={"1.1-1": 1, "1.1-2": 1})

    assert "process 1.1 left 2 writes without an answer" in problems(silent, CALM)


def test_planted_a_process_that_went_on_after_a_write_without_an_answer_is_found() -> None:
    went_on = replace(KILLED, acks={"1.1-1": 1, "1.1-3": 3, "1.1-4": 3})
    entries = (Entry(1, "1.1-2"), Entry(2, "2.1-2"), Entry(3, "1.1-4"))

    assert problems(went_on, CALM, entries=entries) == (
        "process 1.1 went on after a write without an answer"
    )


def test_planted_an_unknown_outcome_is_the_one_write_without_an_answer() -> None:
    in_doubt = replace(KILLED, acks={"1.1-1": 1, "1.1-2": 1}, unknown=frozenset({"1.1-3"}))

    assert "process 1.1 left 2 writes without an answer" in problems(in_doubt, CALM)


def test_planted_what_a_process_complains_about_is_a_problem() -> None:
    assert problems(KILLED, replace(CALM, complaints=("it broke down",))) == "it broke down"


def test_planted_nothing_acknowledged_proves_nothing() -> None:
    idle = Diary("1.1", was_killed=False, intents={}, acks={})

    assert "too little" in problems(idle, counter=Counter(0, {}), entries=())


def test_a_diary_is_read_from_its_lines() -> None:
    lines: list[dict[str, str | int]] = [
        {"intent": "1.1-1", "on": COUNTER},
        {"ack": "1.1-1", "on": COUNTER, "at": 7, "conflicts": 2, "doubts": 0},
        {"intent": "1.1-2", "on": LIST},
        {"unknown": "1.1-2", "conflicts": 0, "doubts": 1},
        {"intent": "1.1-3", "on": COUNTER},
        {"refused": "1.1-3", "conflicts": 0, "doubts": 0},
        {"complaint": "no more"},
    ]

    assert read_diary("1.1", True, lines) == Diary(
        "1.1",
        was_killed=True,
        intents={"1.1-1": COUNTER, "1.1-2": LIST, "1.1-3": COUNTER},
        acks={"1.1-1": 7},
        refused=frozenset({"1.1-3"}),
        unknown=frozenset({"1.1-2"}),
        complaints=("no more",),
    )
