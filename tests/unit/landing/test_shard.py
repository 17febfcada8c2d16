"""The work of one shard, with everything behind it in memory: what must hold at each moment."""

from dataclasses import replace
from itertools import pairwise

import pytest

from headgate.commits.record import record_path
from headgate.engine import Job, Staged
from headgate.errors import Corrupt, Unavailable
from headgate.lake.memory import MemoryLake
from headgate.landing.names import LATE, commit_of
from headgate.landing.report import words_of
from headgate.landing.watermarks import COMMIT_HOURS_MIN, OPEN_HOURS_MAX
from headgate.periods import HOUR_MS, Period, aligned
from headgate.testing.brook import Brook
from headgate.testing.estuary import settings_of
from headgate.testing.faults import Call, Calm, Crashed
from headgate.testing.mill import Mill
from tests.crash.landing_flows import Land, LandInRounds, Recover
from tests.crash.landing_world import Process, Watching, land, record_of, world_of

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


@pytest.mark.parametrize("is_staging", [False, True], ids=["before", "while it stages"])
def test_inv1_a_record_that_nobody_here_journaled_stops_the_shard_before_its_intent(
    is_staging: bool,
) -> None:
    """The store was rolled back, or another one writes to this lake."""
    world = world_of()
    world.drop("lane-0", world.now_ms)
    land(world)
    before = world.checkpoint()
    strange = record_path("orders", 0, before.number + 1)
    world.drop("lane-0", world.now_ms)

    def look(call: Call) -> None:
        is_due = call.protocol == "Engine" if is_staging else True
        if is_due and strange not in world.lake.files():
            world.lake.put(strange, b"{}")

    with pytest.raises(Corrupt, match="was never journaled here"):
        Process(world, Watching(look)).until(world.is_landed)

    after = world.checkpoint()
    assert (after.journal, after.number, after.positions) == (None, before.number, before.positions)
    assert world.lake.files()[strange] == b"{}"


# Staged in part, lost on the way


def test_c6_what_vanished_while_it_was_read_is_not_committed() -> None:
    world = world_of()
    world.drop("lane-0", world.now_ms)
    world.drop("lane-0", world.now_ms)

    def look(call: Call) -> None:
        if call.method == "confirm":
            world.estuary.brook.drops["lane-0"][0].is_gone = True

    Process(world, Watching(look)).until(world.is_landed)

    (gap,) = record_of(world, 1).gaps
    assert (gap.first, gap.next) == ("0", "1")
    assert record_of(world, 1).counts["data"] == 1
    assert world.estuary.faults() == []


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


def test_event_times_all_over_the_place_do_not_fill_the_checkpoint_and_stop_the_shard() -> None:
    """Three years of hours in one file, all of them allowed: more than a document holds."""
    world = world_of(replace(settings_of(), first_hour_ms=0, allowed_lateness_ms=2**40))
    for _ in range(2):
        first = world.now_ms - 30_000 * HOUR_MS
        world.drop("lane-0", *range(first, world.now_ms, HOUR_MS))
        Process(world, Calm()).until(world.is_landed)
        world.ambient.pass_ms(HOUR_MS)

    checkpoint = world.checkpoint()
    assert world.estuary.faults() == []
    assert world.cries == []
    assert checkpoint.number >= 2
    assert len(checkpoint.periods) == OPEN_HOURS_MAX + COMMIT_HOURS_MIN
    assert max(checkpoint.periods) == str(Period.hour_of(world.now_ms - 2 * HOUR_MS))
    # The second file has mostly the same hours: those that are open take no room.
    assert checkpoint.counts["data"] == 2 * OPEN_HOURS_MAX + COMMIT_HOURS_MIN
    assert checkpoint.counts["late"] == 60_000 - checkpoint.counts["data"]


def test_what_became_of_lines_is_told_in_words_of_one_and_of_many() -> None:
    assert words_of({"data": 1_000, "late": 0, "dead": 1, "skip": 2}) == (
        "1,000 on time, 1 dead letter, 2 blank lines or headers"
    )
    assert words_of({"data": 1, "dead": 2, "skip": 1}) == (
        "1 on time, 2 dead letters, 1 blank line or header"
    )
    assert words_of({"data": 0}) == "no records"
