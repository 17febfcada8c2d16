"""A shard that goes on, stands still or comes to its end: nothing is lost, and people see it."""

from dataclasses import replace

import pytest

from headgate.app.progress import progress_of
from headgate.audit.inspection import audit
from headgate.commits import Announced
from headgate.errors import Unavailable
from headgate.lake.memory import MemoryLake
from headgate.landing import StepSettings
from headgate.landing.lake_mark import PATH
from headgate.landing.names import DEAD
from headgate.landing.shard import DRAIN_MS, LOOK_MS
from headgate.landing.stream_document import Pause, StreamDocument, stream_key
from headgate.periods import HOUR_MS
from headgate.store import JsonObject
from headgate.store.changes import change
from headgate.testing.estuary import settings_of
from headgate.testing.faults import Call, Calm
from tests.crash.landing_flows import Land, Recover
from tests.crash.landing_world import Process, Watching, World, land, record_of, world_of

# Every source partition


def test_q3_after_a_restart_all_of_twenty_source_partitions_go_on() -> None:
    world = world_of()
    lanes = [f"lane-{number}" for number in range(20)]
    for lane in lanes:
        world.drop(lane, world.now_ms)
    land(world)
    reads = world.estuary.brook.reads
    assert reads == 20
    for lane in lanes:
        world.drop(lane, world.now_ms)

    land(world)

    assert world.checkpoint().positions == dict.fromkeys(lanes, "2")
    assert world.estuary.brook.reads == reads + 20  # nothing is read again


def test_g10_two_streams_whose_names_look_alike_land_apart() -> None:
    first, second = (World(replace(settings_of(), name=name)) for name in ("a:b", "a b"))
    second.store, second.ambient = first.store, first.ambient
    second.estuary.lake = first.estuary.lake
    first.ambient.pass_ms(10 * HOUR_MS)
    for world in (first, second):
        world.drop("lane-0", world.now_ms)
        Process(world, Calm()).until(world.is_landed)

    streams = {world.settings.name: world.settings for world in (first, second)}
    found = audit(first.store, first.lake, streams)
    assert found.findings == ()
    assert (found.checked.streams, found.checked.files) == (2, 2)
    assert (first.checkpoint().rows, second.checkpoint().rows) == (1, 1)


# Dead letters


def test_q10_a_record_that_is_unusable_is_a_dead_letter_before_the_position_passes_it() -> None:
    world = world_of()
    world.drop("lane-0", None)

    def look(_call: Call) -> None:
        if world.checkpoint().positions.get("lane-0"):
            assert [path for path in world.estuary.published() if path.startswith(f"{DEAD}/")]

    Process(world, Watching(look)).until(world.is_landed)
    (path,) = world.estuary.published()
    assert path.startswith(f"{DEAD}/orders/")
    assert record_of(world, 1).counts["dead"] == 1


class NoDeadLetters(MemoryLake):
    """A lake whose folder of dead letters cannot be written."""

    is_closed = True

    def publish(self, staged: str, published: str) -> None:
        if self.is_closed and published.startswith(f"{DEAD}/"):
            raise Unavailable(f"{published}: permission denied, and nothing was done")
        super().publish(staged, published)


def test_q16_if_a_dead_letter_cannot_be_written_the_position_stays() -> None:
    world = world_of()
    lake = NoDeadLetters()
    lake.put(PATH, world.lake.files()[PATH])
    world.estuary.lake = lake
    world.drop("lane-0", world.now_ms, None)
    process = Process(world, Calm())
    for _ in range(20):
        process.turn()

    assert world.checkpoint().positions == {"lane-0": ""}
    assert world.checkpoint().journal is not None

    lake.is_closed = False
    process.until(world.is_landed)
    assert world.estuary.faults() == []


# The last step


class Broken:
    """A step of the user's own that fails."""

    name = "broken"
    is_broken = True

    def body(self, announced: Announced) -> JsonObject:
        return {"number": announced.number}

    def verify(self, body: JsonObject) -> bool:
        del body
        return not self.is_broken

    def execute(self, body: JsonObject) -> None:
        raise RuntimeError(f"nobody answers: {body}")


def test_g13_if_the_last_step_fails_the_journal_stands_and_progress_says_so() -> None:
    broken = Broken()
    world = world_of(replace(settings_of(), steps=(StepSettings("broken"),)))
    world.drop("lane-0", world.now_ms)
    process = Process(world, Calm(), lambda _: {"broken": broken})
    with pytest.raises(RuntimeError):
        process.until(world.is_landed)

    (shard,) = progress_of(world.store, {"orders": world.settings}, 0, world.now_ms)
    assert world.estuary.faults() == []  # its files are there, and yet
    assert shard.checkpoint.journal is not None
    assert (shard.is_idle, shard.is_waited_for) == (False, True)
    assert shard.checkpoint.positions == {"lane-0": ""}

    broken.is_broken = False
    process.until(world.is_landed)
    (shard,) = progress_of(world.store, {"orders": world.settings}, 0, world.now_ms)
    assert (shard.checkpoint.journal, shard.is_idle) == (None, True)


# What a person sees


def test_g1_a_commit_record_without_its_files_is_found_by_the_audit() -> None:
    world = Land().fresh()
    land(world)
    for path in world.estuary.published():
        facts = world.lake.facts(path)
        assert facts is not None
        world.lake.remove(path, facts)
    findings = world.audit()
    assert len(findings) == 3
    assert {finding.invariant for finding in findings} <= {1, 2}


def test_a_paused_stream_finishes_its_journal_and_starts_nothing() -> None:
    world = Recover().fresh()
    pause = Pause("maintenance", "ann", 0)
    key = stream_key(world.settings.name)
    change(world.store, key, StreamDocument, lambda found: replace(found, paused=pause))
    world.drop("lane-0", world.now_ms)
    process = Process(world, Calm())
    for _ in range(20):
        process.turn()
    assert world.checkpoint().journal is None
    assert world.checkpoint().number == 1
    assert process.mill.jobs == 0

    change(world.store, key, StreamDocument, lambda found: replace(found, paused=None))
    world.ambient.pass_ms(LOOK_MS)
    process.until(world.is_landed)
    assert world.estuary.faults() == []


def test_who_is_draining_finishes_what_waits_in_one_more_round_and_starts_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = world_of()
    world.drop("lane-0", world.now_ms)
    process = Process(world, Calm(), is_eager=False)
    process.turn()

    def sleep_ms(duration_ms: float) -> None:
        """Meanwhile the engine's loop goes on, and something arrives."""
        world.ambient.pass_ms(int(duration_ms))
        process.jobs.tick()
        if process.mill.jobs == 1 and len(world.estuary.brook.ids()) == 1:
            world.drop("lane-0", world.now_ms)

    monkeypatch.setattr(world.ambient, "sleep_ms", sleep_ms)
    process.held.is_draining = True
    for work in process.works:
        work.tick()

    assert world.checkpoint().positions == {"lane-0": "1"}
    assert (world.checkpoint().number, world.checkpoint().journal) == (1, None)
    land(world)


def test_who_is_draining_waits_for_a_round_only_so_long() -> None:
    world = world_of()
    world.drop("lane-0", world.now_ms)
    process = Process(world, Calm(), is_eager=False)
    process.turn()
    process.held.is_draining = True
    before_ms = world.now_ms
    process.works[0].tick()  # nobody runs the engine's loop
    assert DRAIN_MS <= world.now_ms - before_ms <= DRAIN_MS + 1_000
    assert world.checkpoint().number == 0
    process.jobs.tick()
    assert process.mill.jobs == 0  # it was given up
    land(world)
