"""The history checker catches stores that lie: each planted bug turns it red."""

from collections.abc import Callable

import pytest

from headgate.ambient import SystemAmbient
from headgate.store import DocumentStore, Version
from headgate.store.memory import MemoryStore, Shelf
from headgate.testing.history import NEVER, Call, Recorder, find_violations, run_in_turns
from headgate.testing.planted import (
    AnswersConflictAsSuccess,
    AnswersLostReplyAsFailure,
    ForwardingStore,
    IgnoresTheVersion,
    LosesReplies,
    ReadsFromAStaleReplica,
)

Plant = Callable[[DocumentStore, int], DocumentStore]


def violations(plant: Plant, seed: int) -> list[str]:
    shelf, recorder = Shelf(), Recorder()
    clients = {
        f"c{n}": plant(MemoryStore(shelf, "test", SystemAmbient()), 100 * seed + n)
        for n in range(4)
    }
    run_in_turns(clients, recorder, ["x", "y"], seed=seed, calls=800)
    return [str(found) for found in find_violations(recorder.calls)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("healthy", [ForwardingStore, LosesReplies])
def test_a_healthy_store_passes(healthy: Plant, seed: int) -> None:
    assert violations(healthy, seed) == []


@pytest.mark.parametrize("seed", range(3))
def test_planted_a_replace_that_ignores_the_version(seed: int) -> None:
    assert violations(IgnoresTheVersion, seed)


@pytest.mark.parametrize("seed", range(3))
def test_planted_a_conflict_answered_as_success(seed: int) -> None:
    assert violations(AnswersConflictAsSuccess, seed)


@pytest.mark.parametrize("seed", range(3))
def test_planted_a_lost_reply_answered_as_failure(seed: int) -> None:
    assert violations(AnswersLostReplyAsFailure, seed)


@pytest.mark.parametrize("seed", range(3))
def test_planted_a_read_from_a_stale_replica(seed: int) -> None:
    assert violations(ReadsFromAStaleReplica, seed)


# Small histories, written by hand: moments, verb, what it wrote, on which version, what was told.


def call(
    began: int, ended: int, verb: str, told: str, *, on: str = "", got: str = "", value: str = ""
) -> Call:
    return Call(
        client=f"c{began}",
        verb=verb,
        key="doc",
        wrote=f"w{began}",
        based_on=Version(on) if on else None,
        began_ns=began,
        ended_ns=ended,
        told=told,
        version=Version(got) if got else None,
        value=value,
    )


CREATED = call(1, 2, "create", "done", got="v1")


def test_overlapping_calls_may_be_told_in_either_order() -> None:
    write = call(3, 8, "replace", "done", on="v1", got="v2")
    old = call(4, 5, "get", "found", got="v1", value="w1")
    new = call(6, 7, "get", "found", got="v2", value="w3")
    assert find_violations([CREATED, write, old, new]) == []


def test_a_read_may_not_go_back_behind_another_read() -> None:
    write = call(3, 8, "replace", "done", on="v1", got="v2")
    new = call(4, 5, "get", "found", got="v2", value="w3")
    old = call(6, 7, "get", "found", got="v1", value="w1")
    assert find_violations([CREATED, write, new, old])


def test_an_unknown_write_may_have_happened_late_or_never() -> None:
    unknown = call(3, NEVER, "replace", "unknown", on="v1")
    before = call(4, 5, "get", "found", got="v1", value="w1")
    after = call(6, 7, "get", "found", got="v2", value="w3")
    assert find_violations([CREATED, unknown, before]) == []
    assert find_violations([CREATED, unknown, before, after]) == []
    assert find_violations(
        [CREATED, unknown, after, call(8, 9, "get", "found", got="v1", value="w1")]
    )


def test_an_unknown_write_does_not_happen_twice() -> None:
    unknown = call(3, NEVER, "create", "unknown")
    history = [
        unknown,
        call(4, 5, "get", "found", got="v1", value="w3"),
        call(6, 7, "delete", "done", on="v1"),
        call(8, 9, "get", "found", got="v2", value="w3"),
    ]
    assert find_violations(history[:3]) == []
    assert find_violations(history)


def test_a_conflict_needs_a_version_that_moved() -> None:
    refused = call(3, 4, "replace", "conflict", on="v1")
    assert find_violations([CREATED, refused])
    rival = call(3, 5, "delete", "done", on="v1")
    assert find_violations([CREATED, refused, rival]) == []


def test_s4_a_version_that_stands_for_two_writes_is_a_violation() -> None:
    history = [
        CREATED,
        call(3, 4, "delete", "done", on="v1"),
        call(5, 6, "create", "done", got="v1"),
        call(7, 8, "get", "found", got="v1", value="w5"),
    ]
    (found,) = find_violations(history)
    assert "stands for w1 and for w5" in str(found)


def test_many_calls_at_once_are_judged_in_no_time() -> None:
    """A red history must not hang the run: what changes nothing is placed without trying orders."""
    reads = [call(3 + n, 100 + n, "get", "found", got="v1", value="w1") for n in range(40)]
    refused = [call(50 + n, 150 + n, "create", "conflict") for n in range(40)]
    impossible = call(300, 301, "get", "absent")
    assert find_violations([CREATED, *reads, *refused]) == []
    assert find_violations([CREATED, *reads, *refused, impossible])


def test_two_winners_are_one_too_many() -> None:
    assert find_violations([CREATED, call(1, 3, "create", "done", got="v9")])


def test_a_violation_is_told_as_a_story() -> None:
    stale = call(5, 6, "get", "absent")
    (found,) = find_violations([CREATED, stale])
    assert "up to here an order exists" in str(found)
    assert "get -> absent" in str(found)
