"""Planted bugs: each must turn the simulation red, for its own reason."""

import re
from collections.abc import Iterable, Iterator
from itertools import product

import pytest

from headgate.cluster.duties import NodeSettings
from headgate.cluster.session import TERM_MS
from headgate.testing.faults import Harm
from headgate.testing.fleet import Act, Move, Scenario, play
from headgate.testing.inquest import explain
from headgate.testing.sabotage import BUGS, planted
from headgate.testing.simulation import AtEffect, AtTime, Blow
from headgate.testing.steps import StepsFeed
from headgate.testing.turmoil import scenario_of

SEEDS_MAX = 200


def turmoils() -> Iterator[Scenario]:
    return (scenario_of(seed) for seed in range(SEEDS_MAX))


def pauses() -> Iterator[Scenario]:
    """Two nodes and short tasks; one of them, maybe the leader, is paused before each effect."""
    nodes = {name: NodeSettings(name) for name in ("node-1", "node-2")}
    for effect, node in product(range(1, 80), nodes):
        pause = AtEffect(node, effect, Harm.PAUSE_BEFORE, 3 * TERM_MS)
        yield Scenario(7, StepsFeed("demo", 8, 1), nodes, (pause,), 4 * TERM_MS)


def drains() -> Iterator[Scenario]:
    """One of two nodes is killed; the other is drained about when it has taken over."""
    nodes = {name: NodeSettings(name, workers=1) for name in ("node-1", "node-2")}
    feed = StepsFeed("demo", 24, 4, 10_000)
    for after_ms in range(15_000, 40_000, 500):
        happenings = (
            AtTime("node-1", 20_000, Blow.KILL),
            Move(Act.DRAIN, 20_000 + after_ms, "node-2"),
        )
        yield Scenario(7, feed, nodes, happenings, 4 * TERM_MS)


def words_of(bug: str, scenarios: Iterable[Scenario]) -> str:
    """What the first red scenario says; and that the same is green without the bug."""
    with planted(bug):
        played = ((one, play(one)) for one in scenarios)
        red, outcome = next((found for found in played if found[1].is_red), (None, None))
    if red is None or outcome is None:
        pytest.fail(f"{bug}: nothing turned red", pytrace=False)
    assert not play(red).is_red, "it is red without the bug, too"
    return "\n".join(outcome.violations)


def test_every_switch_has_its_test() -> None:
    here = {name.removeprefix("test_planted_") for name in globals()}
    for bug in BUGS:
        assert any(bug.replace(" ", "_").replace("-", "_") in name for name in here), bug


def test_planted_epoch_not_raised_breaks_invariant_3() -> None:
    assert "invariant 3: " in words_of("epoch not raised", turmoils())


def test_planted_l3_release_without_version_takes_a_right_from_a_live_holder() -> None:
    assert "whose session" in words_of("release without version", turmoils())


def test_planted_trust_counted_from_the_reply_breaks_invariant_10() -> None:
    assert "invariant 10: " in words_of("trust counted from the reply", turmoils())


def test_planted_session_closed_without_compare_and_set_ends_one_that_was_renewed() -> None:
    words = words_of("session closed without compare-and-set", turmoils())
    assert "as it was before its renewal" in words


def test_planted_q1_share_rounded_down_leaves_tasks_undone() -> None:
    words = words_of("share rounded down", turmoils())
    assert "not everything was done" in words or "by 0 tasks" in words


def test_planted_q2_owner_taken_as_mine_lets_two_act() -> None:
    words = words_of("owner taken as mine", turmoils())
    assert "both act" in words or "whose session" in words


def test_planted_l4_deposed_leader_goes_on_breaks_invariant_10() -> None:
    assert "invariant 10: " in words_of("deposed leader goes on", turmoils())


def test_planted_l6_push_and_mark_as_two_writes_doubles_an_input() -> None:
    assert "was worked on by" in words_of("push and mark as two writes", turmoils())


def test_planted_l10_failing_task_taken_by_node_after_node_is_started_too_often() -> None:
    assert "tries: " in words_of("failing task taken by node after node", turmoils())


def test_planted_removed_task_not_recognised_is_done_again() -> None:
    words = words_of("removed task not recognised", pauses())
    assert "which was removed" in words


def test_planted_trust_asked_once_a_tick_breaks_invariant_10() -> None:
    assert "invariant 10: " in words_of("trust asked once a tick", turmoils())


def test_planted_l5_conflict_taken_as_success_lets_two_act() -> None:
    assert words_of("conflict taken as success", turmoils())


def test_planted_l10_start_of_the_dead_erased_hides_who_died_by_a_task() -> None:
    assert "starts: " in words_of("start of the dead erased", drains())


def test_planted_task_in_two_hands_lets_two_workers_act() -> None:
    words = words_of("task in two hands", turmoils())
    assert "two workers" in words


def test_a_red_seed_is_reduced_and_told_so_that_a_person_can_follow() -> None:
    with planted("trust asked once a tick"):
        red = next(one for one in turmoils() if play(one).is_red)
        story = explain(red, "trust asked once a tick")
    matter = re.search(r"what happens \((\d+) of (\d+) matter\)", story)
    assert matter is not None, story
    assert int(matter[1]) < int(matter[2]) or int(matter[2]) <= 2, "it was not reduced"
    assert "invariant 10: " in story
    assert re.search(r"\d s  (node|guest)-\d  ", story), "it does not say who did what"
    assert f'inquest {red.seed} --planted "trust asked once a tick"' in story
