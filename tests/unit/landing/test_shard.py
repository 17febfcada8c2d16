"""The work of one shard, with everything behind it in memory: what must hold at each moment."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from headgate.app.progress import progress_of
from headgate.audit.inspection import audit
from headgate.commits import Announced
from headgate.commits.record import Record, from_bytes, record_path
from headgate.engine import Job, Staged
from headgate.errors import Corrupt, Unavailable
from headgate.lake.memory import MemoryLake
from headgate.landing import StepSettings, StreamSettings
from headgate.landing.names import DEAD, LATE, commit_of
from headgate.landing.shard import DRAIN_MS, LOOK_MS
from headgate.landing.stream_document import Pause, StreamDocument, stream_key
from headgate.periods import HOUR_MS, Period, aligned
from headgate.store import JsonObject
from headgate.store.changes import change
from headgate.testing.brook import Brook
from headgate.testing.estuary import settings_of
from headgate.testing.faults import Call, Calm, Crashed
from headgate.testing.mill import Mill
from tests.crash.landing_flows import Land, LandInRounds, Process, Recover, World


def world_of(settings: StreamSettings | None = None) -> World:
    world = World(settings or settings_of())
    world.ambient.pass_ms(10 * HOUR_MS)
    return world


def land(world: World) -> None:
    Process(world, Calm()).until(world.is_landed)
    assert world.estuary.faults() == []
    assert world.audit() == ()


def record_of(world: World, number: int) -> Record:
    path = record_path(world.settings.name, 0, number)
    raw = world.lake.read(path)
    assert raw is not None, path
    return from_bytes(raw, path)


class Watching:
    """Looks at the world before each effect."""

    def __init__(self, look: Callable[[Call], None]) -> None:
        self._look = look

    def around(self, call: Call, act: Callable[[], object]) -> object:
        self._look(call)
        return act()


# Nothing early


def test_k16_nothing_starts_in_the_grace_and_an_abort_there_leaves_nothing_visible() -> None:
    world = world_of()
    process = Process(world, Calm(), is_eager=False)
    process.turn()
    world.drop("lane-0", world.now_ms)
    settings = world.settings
    end_ms = aligned(world.now_ms, settings.shift_ms) + settings.shift_ms
    while world.now_ms < end_ms + settings.grace_ms - 500:
        process.turn()
    assert (process.mill.jobs, world.estuary.published(), world.staged()) == (0, {}, [])

    land(world)  # another process: the first is never heard of again


def test_k16_an_abort_with_fifty_periods_staged_leaves_nothing_visible() -> None:
    world = world_of()
    world.drop("lane-0", *(world.now_ms - n * HOUR_MS for n in range(40)))
    world.drop("lane-1", *(world.now_ms - n * HOUR_MS for n in range(50)))
    process = Process(world, Calm())
    while not process.mill.jobs:
        process.turn()
    assert len([path for path in world.staged() if "kind=data" in path]) == 50
    assert world.estuary.published() == {}
    assert set(world.checkpoint().positions.values()) == {""}

    land(world)


@pytest.mark.parametrize("flow", [Land(), LandInRounds(), Recover()], ids=str)
def test_g14_no_file_is_seen_before_its_commit_is_journaled(flow: Land) -> None:
    world = flow.fresh()

    def look(_call: Call) -> None:
        files = [path.rpartition("/")[2] for path in world.estuary.published()]
        numbers = [found[1] for name in files if (found := commit_of(name)) is not None]
        assert len(numbers) == len(files)
        assert max(numbers, default=0) <= world.checkpoint().number
        records = set(world.lake.files())
        assert all(record_path(world.settings.name, 0, one) in records for one in numbers)

    flow.act(world, Watching(look))
    assert world.estuary.published()


# Journal first


def test_k17_after_a_pause_of_three_shifts_in_mid_commit_the_journal_is_finished_first() -> None:
    world = Land().fresh()
    seen: list[tuple[int, bool]] = []  # number, and whether a journal stands
    paused: list[str] = []

    def look(call: Call) -> None:
        checkpoint = world.checkpoint()
        seen.append((checkpoint.number, checkpoint.journal is not None))
        if call.method == "publish" and len(paused) < 2:
            paused.append(call.subject)
            if len(paused) == 2:  # the record is published, and no file yet
                world.drop("lane-0", world.now_ms)
                world.ambient.pass_ms(3 * world.settings.shift_ms)

    process = Process(world, Watching(look), is_eager=False)
    process.until(world.is_landed)

    assert len(paused) == 2
    for (before, was_journaled), (after, _) in pairwise(seen):
        assert after == before or not was_journaled, "another commit over an unfinished one"
    assert world.estuary.faults() == []
    assert world.checkpoint().number >= 2


def test_k17_shifts_are_numbered_without_a_hole_whoever_holds_the_shard() -> None:
    world = world_of()
    world.estuary.brook.add("lane-0")
    for _ in range(3):
        process = Process(world, Calm(), is_eager=False)
        before = world.checkpoint().shift
        process.until(lambda before=before: world.checkpoint().shift > before)  # type: ignore[misc]
    shifts = [record_of(world, n).shift for n in range(1, world.checkpoint().number + 1)]
    assert shifts == list(range(1, len(shifts) + 1))


# Staged in part, lost on the way


class DiesHalfway(Mill):
    """Stages the first of its files, and then the process is dead."""

    def __init__(self, brook: Brook, lake: MemoryLake) -> None:
        super().__init__(brook, lake)
        self.real_lake = lake

    def stage(self, job: Job) -> Staged:
        beside = MemoryLake()
        self._lake = beside
        super().stage(job)
        first, content = next(iter(beside.files().items()))
        self.real_lake.put(first, content)
        raise Crashed("dead")


def with_mill(process: Process, mill: Mill) -> Process:
    process.mill = mill
    process.jobs._engine = mill
    return process


def test_k20_with_one_of_two_periods_staged_the_position_does_not_move() -> None:
    world = world_of()
    world.drop("lane-0", world.now_ms, world.now_ms - 2 * HOUR_MS)
    process = Process(world, Calm())
    with_mill(process, DiesHalfway(world.estuary.brook, world.lake))
    with pytest.raises(Crashed):
        process.until(world.is_landed)

    assert len(world.staged()) == 1
    assert world.checkpoint().positions == {"lane-0": ""}
    assert world.checkpoint().journal is None

    land(world)
    assert world.staged() == []


def test_k21_a_row_that_is_lost_on_the_way_makes_no_intent() -> None:
    world = world_of()
    world.drop("lane-0", world.now_ms, world.now_ms - 1, world.now_ms - 2)
    process = Process(world, Calm())
    process.mill.loses = 1
    with pytest.raises(Corrupt, match="are not all lines of it"):
        process.until(world.is_landed)

    checkpoint = world.checkpoint()
    assert (checkpoint.number, checkpoint.journal, checkpoint.positions) == (
        0,
        None,
        {"lane-0": ""},
    )
    assert (world.staged(), world.estuary.published()) == ([], {})

    process.mill.loses = None
    process.until(world.is_landed)
    assert world.estuary.faults() == []


@pytest.mark.parametrize("method", ["seal", "stage"])
def test_k21_a_write_that_fails_makes_no_intent(method: str) -> None:
    world = world_of()
    world.drop("lane-0", world.now_ms)
    refused: list[Call] = []

    def look(call: Call) -> None:
        if (call.protocol, call.method) == ("Lake", method) and len(refused) < 3:
            refused.append(call)
            raise Unavailable("no space left on device")
        if len(refused) < 3:
            assert world.checkpoint().number == 0

    Process(world, Watching(look)).until(world.is_landed)
    assert len(refused) == 3
    assert world.checkpoint().number == 1
    assert world.estuary.faults() == []


# Lateness


def mark_cases() -> list[tuple[int, int]]:
    """Watermarks at both sides of every bound, and on it, against the hours around them."""
    offsets = [hours * HOUR_MS + step for hours in range(-2, 3) for step in (-1, 0, 1)]
    return [(offset, hour) for offset in offsets for hour in range(-3, 3)]


def test_k22_a_record_is_late_if_its_hour_ended_at_or_before_the_watermark() -> None:
    settings = replace(settings_of(), allowed_lateness_ms=0, first_hour_ms=0)
    for offset, hour in mark_cases():
        world = world_of(settings)
        bound_ms = aligned(world.now_ms, HOUR_MS) - 5 * HOUR_MS
        mark_ms, hour_ms = bound_ms + offset, bound_ms + hour * HOUR_MS
        world.drop("lane-0", mark_ms)
        world.drop("lane-0", hour_ms)
        world.drop("lane-0", hour_ms)
        world.settings = replace(settings, round_bytes=100)  # one file a round
        Process(world, Calm()).until(world.is_landed)

        first, second = record_of(world, 1), record_of(world, 2)
        assert first.watermarks["lane-0"].after_ms == mark_ms
        is_late = hour_ms + HOUR_MS <= mark_ms
        (file,) = second.files
        assert (file.kind, file.period) == (
            "late" if is_late else "data",
            str(Period(hour_ms, "hour")),
        ), f"watermark {offset} ms from the bound, hour {hour}"
        assert file.published.startswith(f"{LATE}/") == is_late


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
    lake = world.estuary.lake = NoDeadLetters()
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
