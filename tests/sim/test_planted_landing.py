"""Planted leaks: each must turn a check of landing red, for its own reason."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from headgate.cluster.duties import NodeSettings
from headgate.commits.record import record_path
from headgate.commits.replay import read_record
from headgate.errors import Corrupt, HeadgateError
from headgate.periods import HOUR_MS
from headgate.testing.brook import Speck
from headgate.testing.crashes import check_every_crash, late_wakers, woken_midway
from headgate.testing.faults import Call, Calm, Harm
from headgate.testing.leaks import LEAKS, planted_leak
from headgate.testing.tide import START_MS, Dropped, TideScenario, play_tide, tide_of
from tests.crash.landing_flows import (
    Land,
    LandTwoShardsInOneJob,
    Recover,
    Restage,
    RestageAfterPublishing,
)
from tests.crash.landing_world import World, land_while_it_is_swept

SEEDS_MAX = 100


def words_of(bug: str, prove: Callable[[], object]) -> str:
    """What the proof says with the bug; and that it is green without it."""
    prove()
    with planted_leak(bug), pytest.raises((AssertionError, HeadgateError)) as caught:
        prove()
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])


def is_green(scenario: TideScenario) -> None:
    outcome = play_tide(scenario)
    assert not outcome.is_red, "\n".join(outcome.violations)


def first_red(bug: str, scenarios: Iterator[TideScenario]) -> TideScenario:
    with planted_leak(bug):
        found = next((one for one in scenarios if play_tide(one).is_red), None)
    if found is None:
        pytest.fail(f"{bug}: nothing turned red", pytrace=False)
    return found


def tides() -> Iterator[TideScenario]:
    return (tide_of(seed) for seed in range(SEEDS_MAX))


def test_every_leak_has_its_test() -> None:
    here = {name.removeprefix("test_planted_") for name in globals()}
    for bug in LEAKS:
        assert any(bug.replace(" ", "_") in name for name in here), bug


def test_planted_k23_position_before_publish_loses_records_in_a_crash() -> None:
    bug = "position before publish"
    words = words_of(bug, lambda: check_every_crash(Land(), (Harm.CRASH_AFTER,), again=()))
    assert "is lost" in words


def test_planted_position_before_publish_breaks_invariant_2_in_a_tide() -> None:
    bug = "position before publish"
    words = words_of(bug, lambda: is_green(tide_of(0)))
    assert "the fact of commit 1 has no record" in words


def a_cut_file_is_never_done() -> None:
    """Half a file lies at the name of a journaled one: Corrupt, and what was staged is kept."""
    flow = Recover()
    world = flow.fresh()
    lake = world.lake
    (staged, *_) = [path for path in world.staged() if "kind=data" in path]
    lake.put(published_of(world, staged), lake.files()[staged][:5])
    with suppress(Corrupt):
        flow.act(world, Calm())
    assert staged in lake.files(), "half a file is taken for done, and what was staged is gone"
    assert world.checkpoint().positions == {"lane-0": "", "lane-1": ""}
    assert len(world.cries) == 1


def published_of(world: World, staged: str) -> str:
    """Found by letting a copy of this world go on."""
    other = Recover().fresh()
    Recover().act(other, Calm())
    record = read_record(other.lake, world.settings.name, 0, 1)
    assert record is not None, record_path(world.settings.name, 0, 1)
    return next(file.published for file in record.files if file.staged == staged)


def test_planted_g3_something_there_is_done_takes_half_a_file_for_a_whole_one() -> None:
    words = words_of("something there is done", a_cut_file_is_never_done)
    assert "half a file is taken for done" in words


def test_planted_g12_swept_while_journaled_takes_away_what_must_be_published() -> None:
    words = words_of("swept while journaled", lambda: check_every_crash(Recover(), again=()))
    assert "what was staged for it is missing" in words


def test_planted_g12_swept_while_needed_takes_away_what_a_round_has_staged() -> None:
    words = words_of("swept while needed", lambda: land_while_it_is_swept(Land().fresh()))
    assert "is not there" in words or "it does not come to an end" in words


def test_planted_staging_deleted_after_conflict_though_the_intent_had_happened() -> None:
    bug = "staging deleted after conflict"
    words = words_of(bug, lambda: check_every_crash(Land(), (Harm.LOSE_REPLY,), again=()))
    assert "what was staged for it is missing" in words
    assert "reply lost of" in words
    assert "DocumentStore.replace('checkpoints/orders/00000')" in words


def overlapping() -> TideScenario:
    """Four files wait, and three fit a round. The last holds a record of an hour that the first
    three have left behind."""
    hours_ms = [START_MS - 5 * HOUR_MS, START_MS, START_MS, START_MS - 5 * HOUR_MS]
    drops = [Dropped(0, "lane-0", (Speck(n, at_ms),)) for n, at_ms in enumerate(hours_ms)]
    return TideScenario(1, 1, (NodeSettings("node-1"),), tuple(drops), turmoil_ms=30_000)


def test_planted_k22_late_by_the_committed_watermark_adds_to_an_hour_that_is_over() -> None:
    words = words_of("late by the committed watermark", lambda: is_green(overlapping()))
    assert "a late record of lane-0 is in" in words


def test_planted_cleanup_of_the_whole_attempt_takes_away_what_another_shard_journaled() -> None:
    bug, flow = "cleanup of the whole attempt", LandTwoShardsInOneJob()
    words = words_of(bug, lambda: check_every_crash(flow, (Harm.LOSE_REPLY,), again=()))
    assert "what was staged for it is missing" in words


def test_planted_name_used_again_lets_a_late_waker_remove_the_new_file() -> None:
    words = words_of("name used again", lambda: late_wakers(RestageAfterPublishing()))
    assert "is lost" in words
    assert "paused before" in words


def test_planted_name_used_again_is_seen_by_the_audit() -> None:
    def audited() -> None:
        flow = RestageAfterPublishing()
        world = flow.fresh()
        flow.act(world, Calm())
        findings = world.audit()
        assert not findings, [one.words for one in findings]

    assert "whose name does not say this commit" in words_of("name used again", audited)


def test_planted_published_looked_at_first_takes_a_neighbours_move_for_a_loss() -> None:
    words = words_of("published looked at first", lambda: late_wakers(Recover()))
    assert "not published, and nothing is staged for it" in words


def test_planted_fact_erases_who_joined_while_the_journal_stood() -> None:
    bug = "fact erases who joined"
    words = words_of(bug, lambda: is_green(first_red(bug, tides())))
    assert "the watermark of" in words
    assert "is gone" in words


def test_planted_restage_under_the_old_number_is_refused_for_ever() -> None:
    words = words_of("restage under the old number", lambda: check_every_crash(Restage(), again=()))
    assert "it does not come to an end" in words  # the record of the old commit has that number


def test_planted_acting_on_a_mere_read_sweeps_what_a_slow_intent_then_names() -> None:
    def is_write_of_the_checkpoint(call: Call) -> bool:
        return call.method == "replace" and call.subject.startswith("checkpoints/")

    bug = "acting on a mere read"
    words = words_of(bug, lambda: woken_midway(Land(), is_write_of_the_checkpoint))
    assert "what was staged for it is missing" in words
    assert re.search(r"paused before \d+\w\w effect: DocumentStore.replace\('checkpoints", words)
