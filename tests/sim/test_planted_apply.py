"""Planted spills: each must turn a check of apply red, for its own reason."""

from collections.abc import Callable

import pytest

from headgate.errors import HeadgateError
from headgate.testing.crashes import check_every_crash
from headgate.testing.faults import Calm, Harm
from headgate.testing.spills import SPILLS, planted_spill
from tests.crash.apply_flows import REMEDIES, ApplyOne
from tests.crash.test_apply import earlier_arrivals, halted_while_paused
from tests.unit.apply.histories import a_history_that_is_gone_halts


def words_of(bug: str, prove: Callable[[], object]) -> str:
    """What the proof says with the bug; and that it is green without it."""
    prove()
    with planted_spill(bug), pytest.raises((AssertionError, HeadgateError)) as caught:
        prove()
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])


def test_every_spill_has_its_test() -> None:
    here = {name.removeprefix("test_planted_") for name in globals()}
    for bug in SPILLS:
        assert any(bug.replace(" ", "_") in name for name in here), bug


def test_planted_b1_first_entry_removed_loses_a_newcomer() -> None:
    words = words_of("first entry removed", lambda: earlier_arrivals(dies=False))
    assert "it is lost" in words


def test_planted_b4_not_found_counts_as_failed_halts_after_a_crash() -> None:
    bug = "not found counts as failed"
    words = words_of(bug, lambda: check_every_crash(ApplyOne(), (Harm.CRASH_AFTER,), again=()))
    assert "'state': 'halted'" in words


def test_planted_b4_not_found_is_always_believed_doubles_a_batch() -> None:
    words = words_of("not found is always believed", a_history_that_is_gone_halts)
    assert "applied again" in words


def retried() -> None:
    """A batch that failed is repaired, and retried."""
    flow = REMEDIES[0]
    world = flow.fresh()
    flow.act(world, Calm())
    faults = world.faults()
    assert not faults, "\n".join(faults)


def test_planted_b2_entry_removed_before_the_commit_leaves_a_hole() -> None:
    words = words_of("entry removed before the commit", retried)
    assert "no prefix" in words


def test_planted_earlier_arrival_overtakes_the_current_batch() -> None:
    words = words_of("earlier arrival overtakes", lambda: earlier_arrivals(dies=True))
    assert "it overtook the current batch" in words


def test_planted_halted_before_the_run_is_closed_lets_a_late_waker_in() -> None:
    words = words_of("halted before the run is closed", halted_while_paused)
    assert "a halted table changed" in words
