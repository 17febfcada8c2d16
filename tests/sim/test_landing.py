"""Nodes that land, in the simulation: a poison shard, a thousand journals."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from headgate.cluster.duties import NodeSettings
from headgate.cluster.session import TERM_MS
from headgate.cluster.tasks import FAILED_TRIES_MAX, Task, task_key
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.engine import StagedFile, Tally
from headgate.lake.paths import STAGING
from headgate.landing.committing import Occasion, prepare
from headgate.landing.kind import feed_name
from headgate.landing.names import attempt_folder, named, shard_folder
from headgate.landing.shard import SWEEP_MS
from headgate.landing.stream_document import shard_of
from headgate.periods import HOUR_MS, Period, aligned
from headgate.sources import Plan, Range
from headgate.store.changes import read
from headgate.store.codec import body_of
from headgate.testing.brook import Speck
from headgate.testing.estuary import STREAM, settings_of
from headgate.testing.fleet import Move
from headgate.testing.simulation import Simulation
from headgate.testing.tide import START_MS, Tide, tide_of

JOURNALS = 1_000
TIDES = 10


def tide_in(simulation: Simulation, shards: int, shift_ms: int = 10_000) -> Tide:
    settings = replace(settings_of(shards), future_skew_ms=HOUR_MS, shift_ms=shift_ms)
    return Tide(simulation, settings, TERM_MS)


def boot(tide: Tide, nodes: int) -> None:
    for number in range(1, nodes + 1):
        tide.boot(f"node-{number}", NodeSettings(f"node-{number}", workers=2))


def task_of(tide: Tide, shard: int) -> Task:
    found = read(tide.store, task_key(feed_name(STREAM), shard), Task)
    return Task("none", "") if found is None else found.value


def checkpoint_of(tide: Tide, shard: int) -> Checkpoint:
    found = read(tide.store, checkpoint_key(STREAM, shard), Checkpoint)
    return Checkpoint() if found is None else found.value


def once_a_second(tide: Tide, is_so: Callable[[], bool]) -> Callable[[], bool]:
    """Looking takes time."""
    looked_ms = -1_000

    def look() -> bool:
        nonlocal looked_ms
        if tide.simulation.now_ms < looked_ms + 1_000:
            return False
        looked_ms = tide.simulation.now_ms
        return is_so()

    return look


@pytest.mark.parametrize("nodes", [1, 3])
def test_g7_a_poison_shard_is_set_aside_after_five_tries_and_the_others_land(nodes: int) -> None:
    with Simulation(1, []) as simulation:
        tide = tide_in(simulation, 2)
        brook = tide.estuary.brook
        for id_, lane in enumerate(("lane-0", "lane-1")):
            brook.drop(lane, [Speck(id_, START_MS)], START_MS)
        bad, good = shard_of("lane-0", 2), shard_of("lane-1", 2)
        assert bad != good
        brook.poison = frozenset({"lane-0"})
        boot(tide, nodes)

        assert simulation.run(
            HOUR_MS, once_a_second(tide, lambda: task_of(tide, bad).set_aside is not None)
        )

        task = task_of(tide, bad)
        assert task.tries == FAILED_TRIES_MAX
        assert task.set_aside is not None
        assert "one of its files is poison" in task.set_aside.words
        assert checkpoint_of(tide, bad).number == 0
        assert checkpoint_of(tide, good).positions == {"lane-1": "1"}
        assert tide.estuary.landed() == Counter([1])

        brook.drop("lane-1", [Speck(2, START_MS)], START_MS)
        assert simulation.run(
            2 * HOUR_MS, once_a_second(tide, lambda: tide.estuary.landed()[2] == 1)
        )
        brook.poison = frozenset()
        assert tide.release_what_is_set_aside() == 1
        assert simulation.run(3 * HOUR_MS, tide.is_done)
        assert tide.faults() == []


def lanes_of(shards: int) -> dict[int, str]:
    """A source partition for each shard."""
    found: dict[int, str] = {}
    for number in range(100 * shards):
        found.setdefault(shard_of(f"lane-{number}", shards), f"lane-{number}")
    assert len(found) == shards
    return found


def journaled(tide: Tide, shard: int, lane: str) -> None:
    """As a node leaves it that died right after its intent."""
    settings = tide.estuary.settings
    label = f"{shard}-1"
    folder = shard_folder(attempt_folder(settings.name, lambda: f"{shard:032x}", [label]), label)
    tide.estuary.brook.drop(lane, [Speck(shard, START_MS)], START_MS)
    raw = json.dumps({"id": shard, "at": f"{lane}/0:1"}).encode() + b"\n"
    facts = tide.estuary.lake.stage(f"{folder}/part-0.json", raw)
    hour_ms = aligned(START_MS, HOUR_MS)
    files = named(
        settings,
        shard,
        1,
        Period.day_of(START_MS),
        [StagedFile(f"{folder}/part-0.json", label, "data", hour_ms, 1)],
        None,
    )
    plan = Plan("brook", "json", (), {lane: Range("", "1")}, (), (), {}, has_more=False)
    prepared = prepare(
        settings,
        Occasion(shard, 1, 1, "node-0", START_MS, 0),
        plan,
        folder,
        [(files[0], facts)],
        [Tally(label, lane, 0, "data", 1, 1, 1, START_MS)],
        {},
        {},
    )
    tide.estuary.lake.stage(prepared.journal.record, prepared.raw)
    checkpoint = Checkpoint(
        epoch=0,
        number=1,
        positions={lane: ""},
        watermarks={lane: None},
        journal=prepared.journal,
    )
    tide.store.create(checkpoint_key(settings.name, shard), body_of(checkpoint))


@pytest.mark.timeout(600)
def test_g8_a_thousand_journals_are_shared_by_four_nodes_and_each_is_finished_once() -> None:
    with Simulation(1, []) as simulation:
        tide = tide_in(simulation, JOURNALS, shift_ms=HOUR_MS)
        for shard, lane in lanes_of(JOURNALS).items():
            journaled(tide, shard, lane)
        boot(tide, 4)

        def is_over() -> bool:
            is_published = len(tide.estuary.published()) == JOURNALS
            return is_published and tide.estuary.is_landed(tide.store)

        assert simulation.run(HOUR_MS, once_a_second(tide, is_over))

        made = Counter[str]()
        for path, content in tide.estuary.lake.files().items():
            if path.startswith("_headgate/ledger/"):
                lines = [json.loads(line) for line in content.decode().splitlines()]
                node = path.rpartition("/")[2].removesuffix(".jsonl")
                made[node] += len([one for one in lines if one["what"] == "commit.made"])
        assert len(made) == 4
        assert sum(made.values()) == JOURNALS
        assert max(made.values()) <= JOURNALS // 2
        assert tide.estuary.landed() == Counter(range(JOURNALS))
        assert tide.faults() == []


@pytest.mark.parametrize("seed", range(TIDES))
def test_g12_after_a_tide_nothing_stays_staged(seed: int) -> None:
    """Whatever attempts came to nothing: of holders that died, and of those that still hold."""
    scenario = tide_of(seed)
    with Simulation(seed, [one for one in scenario.happenings if not isinstance(one, Move)]) as sim:
        tide = tide_in(sim, scenario.shards)
        for drop in scenario.drops:
            tide.estuary.brook.drop(drop.partition, drop.specks, START_MS)
        for node in scenario.nodes:
            tide.boot(node.name, node)
        sim.run(scenario.turmoil_ms)
        for node in scenario.nodes:
            tide.boot(node.name, node)
        assert sim.run(HOUR_MS, tide.is_done)
        rubbish = f"{STAGING}/{STREAM}/{0:032x}.0-{checkpoint_of(tide, 0).epoch}/shard=0-"
        tide.estuary.lake.put(f"{rubbish}{checkpoint_of(tide, 0).epoch}/part-0.json", b"rubbish")

        def is_clean() -> bool:
            return not any(path.startswith(STAGING) for path in tide.estuary.lake.files())

        assert sim.run(sim.now_ms + 3 * SWEEP_MS, once_a_second(tide, is_clean))
        assert tide.faults() == []
