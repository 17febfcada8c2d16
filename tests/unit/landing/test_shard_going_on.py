"""A shard that goes on, stands still or comes to its end: nothing is lost, and people see it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from headgate.app.progress import progress_of
from headgate.audit.inspection import audit
from headgate.commits import Announced
from headgate.commits.streams import Pause, StreamDocument, stream_key
from headgate.engine import EventTime
from headgate.errors import Halted, Invalid, Unavailable
from headgate.lake.memory import MemoryLake
from headgate.landing import Output, StepSettings, StreamSettings
from headgate.landing.kind import LandKind
from headgate.landing.lake_mark import PATH
from headgate.landing.names import DEAD
from headgate.landing.report import REPORT_MS, Report, report_key
from headgate.landing.shard import DRAIN_MS, LOOK_MS, ShardWork
from headgate.landing.stream_document import shard_of
from headgate.periods import HOUR_MS, aligned
from headgate.store import JsonObject
from headgate.store.changes import change, read
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


class Mount:
    """The disk of the lake: taken away, its mount point is an empty folder."""

    def __init__(self, lake: MemoryLake) -> None:
        self._lake = lake
        self._content = dict[str, bytes]()

    def unmount(self) -> None:
        self._content = self._lake.files()
        for path in self._content:
            facts = self._lake.facts(path)
            assert facts is not None
            self._lake.remove(path, facts)

    def mount(self) -> None:
        for path, content in self._content.items():
            self._lake.put(path, content)


@pytest.mark.parametrize("nth", [1, 2], ids=["no step is done", "the record is published"])
def test_inv2_a_lake_that_is_unmounted_in_mid_publish_is_waited_for_and_nothing_is_given_up(
    nth: int,
) -> None:
    world = Land().fresh()
    mount, published = Mount(world.lake), list[str]()

    def look(call: Call) -> None:
        if call.method == "publish" and call.subject not in published:
            published.append(call.subject)
            if len(published) == nth:
                mount.unmount()

    process = Process(world, Watching(look))
    for _ in range(120):  # half a minute
        process.turn()
    assert world.cries == []  # nobody is called: the shard says that it waits
    assert world.checkpoint().journal is not None
    told = read(world.store, report_key("orders", 0), Report)
    assert told is not None
    assert "is a disk not mounted?" in told.value.remark

    mount.mount()
    land(world)
    assert world.checkpoint().journal is None


# Telling


def test_a_paused_stream_tells_what_waits_now() -> None:
    world = world_of()
    world.estuary.brook.add("lane-0")
    process = Process(world, Calm(), is_eager=False)
    process.turn()
    key = stream_key(world.settings.name)
    pause = Pause("maintenance", "ann", 0)
    change(world.store, key, StreamDocument, lambda found: replace(found, paused=pause))
    for files in (1, 2):
        world.drop("lane-0", world.now_ms)
        world.ambient.pass_ms(LOOK_MS + REPORT_MS)
        process.turn()
        told = read(world.store, report_key("orders", 0), Report)
        assert told is not None
        assert (told.value.waiting_files, told.value.doing) == (files, "paused by ann: maintenance")


def test_whoever_waits_for_the_end_of_a_shift_tells_when_the_next_commit_is_due() -> None:
    world = world_of()
    world.estuary.brook.add("lane-0")
    process = Process(world, Calm(), is_eager=False)

    process.turn()

    shift_ms, grace_ms = world.settings.shift_ms, world.settings.grace_ms
    due_ms = aligned(world.now_ms, shift_ms) + shift_ms + grace_ms
    told = read(world.store, report_key("orders", 0), Report)
    assert told is not None
    assert (told.value.doing, told.value.due_ms) == ("idle", due_ms)

    world.ambient.pass_ms(REPORT_MS)
    process.held.is_draining = True
    process.turn()

    told = read(world.store, report_key("orders", 0), Report)
    assert told is not None
    assert told.value.due_ms is None  # nobody makes it any more


def test_who_leaves_tells_what_waits_now_and_not_what_waited_before() -> None:
    world = world_of()
    world.drop("lane-0", world.now_ms)
    process = Process(world, Calm())
    process.until(world.is_landed)
    told = read(world.store, report_key("orders", 0), Report)
    assert told is not None
    assert told.value.waiting_files == 1  # of the round that has landed since

    process.held.is_draining = True
    process.turn()

    told = read(world.store, report_key("orders", 0), Report)
    assert told is not None
    assert (told.value.waiting_files, told.value.doing) == (0, "idle")


# Settings that cannot work


class Refusing(Calm):
    """An engine that refuses what the settings say."""

    def around(self, call: Call, act: Callable[[], object]) -> object:
        if call.method == "stage" and call.protocol == "Engine":
            raise Invalid("Spark refuses event_time; next: correct it in the settings")
        return super().around(call, act)


def test_what_the_engine_refuses_for_the_settings_is_not_tried_again() -> None:
    world = world_of()
    world.drop("lane-0", world.now_ms)

    with pytest.raises(Halted):
        Process(world, Refusing()).until(world.is_landed)

    assert world.cries == [
        "Spark refuses event_time; next: correct it in the settings; next: "
        'headgate shard release orders/0 --reason "…"'
    ]


class RefusingExpressions(Calm):
    """An engine that refuses them, asked without a record."""

    asked = 0

    def around(self, call: Call, act: Callable[[], object]) -> object:
        if call.method == "check" and call.protocol == "Engine":
            self.asked += 1
            raise Invalid("the filter of output a is refused; next: correct it in the settings")
        return super().around(call, act)


SPLIT = replace(settings_of(2), outputs=(Output("a", "id % 2 = 0"),))
BY_SQL = replace(settings_of(2), event_time=EventTime("sql", "value"))


@pytest.mark.parametrize("settings", [SPLIT, BY_SQL])
def test_expressions_are_refused_before_there_is_a_record(settings: StreamSettings) -> None:
    world, refusing = world_of(settings), RefusingExpressions()

    with pytest.raises(Halted):
        Process(world, refusing, is_eager=False).until(lambda: False)

    assert refusing.asked == 1
    assert world.cries == [
        "the filter of output a is refused; next: correct it in the settings; next: "
        'headgate shard release orders/0 --reason "…"'
    ]


@pytest.mark.parametrize(("settings", "is_eager"), [(settings_of(), False), (SPLIT, True)])
def test_who_has_no_expression_or_only_lands_what_is_there_asks_nobody(
    settings: StreamSettings, is_eager: bool
) -> None:
    """Without a record it needs no engine, which takes a while to start."""
    world, refusing = world_of(settings), RefusingExpressions()
    process = Process(world, refusing, is_eager=is_eager)
    for _ in range(20):
        process.turn()
    assert (refusing.asked, world.cries) == (0, [])


def test_a_shard_goes_on_by_its_own_command() -> None:
    world = world_of()
    kind = LandKind(replace(world.settings, name="a b"), Process(world, Calm()).tools)

    assert kind.release_command("land:a b/7") == "headgate shard release 'a b/7' --reason \"…\""


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


def test_a_stream_that_is_paused_while_a_round_is_under_way_finishes_that_and_starts_no_other() -> (
    None
):
    world = world_of(replace(settings_of(), round_bytes=100))  # one file a round
    for _ in range(3):
        world.drop("lane-0", world.now_ms)
    key, pause = stream_key(world.settings.name), Pause("maintenance", "ann", 0)

    def look(call: Call) -> None:
        if call.protocol == "Engine":
            change(world.store, key, StreamDocument, lambda found: replace(found, paused=pause))

    process = Process(world, Watching(look))
    for _ in range(20):
        process.turn()
    assert world.checkpoint().positions == {"lane-0": "1"}
    assert (world.checkpoint().journal, process.mill.jobs) == (None, 1)


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


# First watermarks


def lane_of(shard: int, shards: int = 2) -> str:
    return next(f"lane-{n}" for n in range(100) if shard_of(f"lane-{n}", shards) == shard)


def idle(world: World, since_ms: int) -> list[bool]:
    streams = {world.settings.name: world.settings}
    return [one.is_idle for one in progress_of(world.store, streams, since_ms, world.now_ms)]


def test_a_shard_that_was_empty_before_the_first_hour_is_waited_for_until_it_has_a_watermark() -> (
    None
):
    world = world_of(settings_of(shards=2))
    empty, full = lane_of(0), lane_of(1)
    world.estuary.brook.add(empty)
    world.drop(full, world.now_ms)
    since_ms = world.now_ms

    process = Process(world, Calm())
    process.until(lambda: world.is_landed() and all(idle(world, since_ms)))

    assert world.checkpoint(0).watermarks[empty] is not None
    assert world.checkpoint(0).number == 2  # one before anything had landed, and one behind it


def test_a_first_watermark_that_cannot_be_given_is_tried_once_and_nobody_waits_for_it() -> None:
    world = world_of(settings_of(shards=2))
    world.estuary.brook.add(lane_of(0))
    world.drop(lane_of(1), world.now_ms)
    since_ms = world.now_ms
    process = Process(world, Calm())

    def unknown() -> int:
        raise Unavailable("nobody knows the store's clock, so no watermark moves")

    clockless = replace(process.tools, clock_off_ms=unknown)
    process.works[0] = ShardWork(process.held, world.settings, 0, clockless)

    process.until(lambda: world.is_landed() and all(idle(world, since_ms)))
    number = world.checkpoint(0).number
    for _ in range(20):
        process.turn()

    assert None in world.checkpoint(0).watermarks.values()
    assert world.checkpoint(0).number <= number + 1  # at the end of its shift, and no other
