"""Two nodes land, and one is struck at each effect of landing in turn.

Two shards are served by one job of the node that holds them, and more waits than a round reads, so
that the next is staged while a commit publishes. Struck in the middle of publishing, past its
session, a node leaves two owners: one that goes on, and one that wakes up late. Struck at the
intent of one shard, the other's share of the same job must stay.
"""

from collections.abc import Sequence
from functools import cache

import pytest

from headgate.cluster.duties import NodeSettings
from headgate.cluster.session import TERM_MS
from headgate.commits.checkpoint import CHECKPOINTS
from headgate.lake.paths import STAGING
from headgate.landing.names import labels_of
from headgate.landing.stream_document import shard_of
from headgate.testing.brook import Speck
from headgate.testing.estuary import STREAM
from headgate.testing.faults import Call, Harm, Sort
from headgate.testing.simulation import AtEffect, Fault
from headgate.testing.simulation.events import Happening
from headgate.testing.tide import START_MS, Dropped, TideScenario, play_tide

LONG_MS = 2 * TERM_MS  # its session is over by then, and another has taken over
SHARDS = 4  # two for each node, served by one job
FILES = 4  # of one lane: three fit a round
COMMIT_EFFECTS = 24  # from the sealing of files of both nodes to the removal of what was staged
PAST_SESSION = (Harm.PAUSE_BEFORE, Harm.SLOW_REQUEST)
AT_ONCE = (Harm.LOSE_REPLY, Harm.DUPLICATE, Harm.CRASH_AFTER)


def struck(*faults: Fault) -> TideScenario:
    lanes = dict[int, str]()  # one for each shard
    for number in range(100):
        lanes.setdefault(shard_of(f"lane-{number}", SHARDS), f"lane-{number}")
    first, *others = lanes.values()
    dropped = [*(first for _ in range(FILES)), *others]
    drops = tuple(Dropped(0, lane, (Speck(n, START_MS),)) for n, lane in enumerate(dropped))
    members = tuple(NodeSettings(name, workers=2) for name in ("node-1", "node-2"))
    return TideScenario(1, SHARDS, members, drops, faults, turmoil_ms=2 * LONG_MS)


@cache
def effects() -> Sequence[tuple[str, int, Call]]:
    """Writes to the lake and to checkpoints in a calm run, each with its machine and number, until
    the last commit with records is over: those that follow are all alike."""
    outcome = play_tide(struck(), with_events=True)
    assert not outcome.is_red, outcome.violations
    found = [
        (event.machine, event.number, event.call)
        for event in outcome.events
        if event.happening is Happening.STARTED
        and event.call is not None
        and event.call.sort is not Sort.READ
        and (event.call.protocol == "Lake" or event.call.subject.startswith(f"{CHECKPOINTS}/"))
    ]
    sealed = [index for index, (_, _, call) in enumerate(found) if call.method == "seal"]
    return found[: sealed[-1] + COMMIT_EFFECTS]


def test_a_calm_run_has_every_effect_that_is_to_be_struck() -> None:
    """Else nothing would be proved of it."""
    methods = {call.method for _, _, call in effects()}
    assert {"replace", "stage", "seal", "publish", "settle", "remove_folder"} <= methods
    staged = [call.subject for _, _, call in effects() if call.method == "stage"]
    attempts = {path.split("/")[3] for path in staged if path.startswith(f"{STAGING}/{STREAM}/")}
    assert any(len(labels_of(one) or ()) > 1 for one in attempts)  # one job for several shards
    published = [call for _, _, call in effects() if call.method == "publish"]
    assert len(published) > FILES  # records and files of several commits


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("harm", [*PAST_SESSION, *AT_ONCE], ids=lambda harm: harm.name.lower())
def test_inv1_inv2_inv4_k19_a_node_struck_at_any_effect_of_landing_loses_and_doubles_nothing(
    harm: Harm,
) -> None:
    duration_ms = LONG_MS if harm in PAST_SESSION else 0
    for machine, number, call in effects():
        fault = AtEffect(machine, number, harm, duration_ms)
        outcome = play_tide(struck(fault))
        assert not outcome.is_red, (str(fault), call.method, call.subject, outcome.violations)
