"""Where a stream ends, landing stops: after its last hour, and when a person retires it."""

from dataclasses import replace

import pytest

from headgate.app.progress import progress_of
from headgate.commits.checkpoint import Wish
from headgate.commits.roots import RootDocument, Seat, root_key, root_name
from headgate.commits.streams import Pause, StreamDocument, stream_key
from headgate.errors import Invalid, Unavailable
from headgate.landing import StreamSettings
from headgate.landing.report import Report, report_key
from headgate.landing.shard import LOOK_MS
from headgate.periods import HOUR_MS, Period, aligned
from headgate.sources import Waiting
from headgate.store.changes import change, read
from headgate.testing.brook import BrookSource
from headgate.testing.estuary import settings_of
from headgate.testing.faults import Calm
from tests.crash.landing_world import Process, World, land, world_of


def ending(hours_from_now: int) -> World:
    """Its last hour is so many hours after the current one."""
    world = world_of()
    last_ms = aligned(world.now_ms, HOUR_MS) + hours_from_now * HOUR_MS
    world.settings = replace(world.settings, last_hour_ms=last_ms)
    return world


def turn(world: World, count: int = 20) -> Process:
    process = Process(world, Calm())
    for _ in range(count):
        process.turn()
    return process


def doing(world: World) -> str:
    found = read(world.store, report_key(world.settings.name, 0), Report)
    assert found is not None
    return found.value.doing


def is_idle(world: World, settings: StreamSettings | None = None) -> bool:
    streams = {world.settings.name: settings or world.settings}
    now_ms = world.now_ms
    return all(one.is_idle for one in progress_of(world.store, streams, now_ms, now_ms))


def test_a_stream_is_read_until_its_last_hour_has_passed_and_then_no_more() -> None:
    world = ending(0)
    world.drop("lane-0", world.now_ms - 5)
    land(world)
    world.drop("lane-0", world.now_ms - 3)
    land(world)  # its last hour is not over
    assert not is_idle(world)

    world.ambient.pass_ms(HOUR_MS + world.settings.allowed_lateness_ms)
    turn(world)  # proves that nothing more comes
    before = world.checkpoint()
    assert (before.watermarks["lane-0"] or 0) >= (world.settings.end_ms or 0)
    assert is_idle(world)  # whoever waits for it waits no more

    world.drop("lane-0", world.now_ms)
    process = turn(world)
    assert process.mill.jobs == 0
    assert world.checkpoint().number == before.number
    last = Period(world.settings.last_hour_ms or 0, "hour")
    assert doing(world) == f"ended: its last hour was {last}"


def test_the_source_of_a_stream_that_ended_may_be_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = ending(-1)
    world.drop("lane-0", (world.settings.end_ms or 0) - 5)
    world.ambient.pass_ms(HOUR_MS)
    land(world)
    turn(world)

    def look(_self: BrookSource, _positions: object) -> Waiting:
        raise Unavailable("the source is out of reach")

    monkeypatch.setattr(BrookSource, "look", look)
    turn(world)
    assert doing(world).startswith("ended: its last hour was ")
    assert is_idle(world)


def test_inv6_records_after_the_last_hour_are_late_and_never_in_its_folders() -> None:
    world = ending(-1)
    inside_ms = (world.settings.end_ms or 0) - 5
    world.drop("lane-0", inside_ms, inside_ms + 5, inside_ms + 10)
    land(world)
    published = world.estuary.published()
    late = [path for path in published if path.startswith("_late/")]
    own = [path for path in published if not path.startswith("_")]
    assert (len(own), len(late)) == (1, 1)
    after = str(Period.hour_of(inside_ms + 5)).replace("T", "/")
    assert late[0].startswith(f"_late/{after}/")
    assert world.checkpoint().counts["late"] == 2


def test_without_a_watermark_past_it_nothing_has_ended() -> None:
    world = ending(-3)
    turn(world)
    assert not doing(world).startswith("ended")


def test_a_retired_stream_finishes_its_journal_and_reads_nothing_more() -> None:
    world = world_of()
    world.drop("lane-0", world.now_ms - 5)
    land(world)
    process = Process(world, Calm())
    for _ in range(5):  # what is under way, which is finished
        process.turn()
    pause = Pause("the shop is closed", "ann", 0)
    key = stream_key(world.settings.name)
    change(world.store, key, StreamDocument, lambda found: replace(found, retired=pause))
    world.drop("lane-0", world.now_ms)
    before = world.checkpoint().number
    world.ambient.pass_ms(LOOK_MS)
    for _ in range(20):
        process.turn()
    assert (world.checkpoint().number, process.mill.jobs) == (before, 0)
    assert doing(world) == "retired by ann: the shop is closed"


@pytest.mark.parametrize(
    ("seat", "last", "refused"),
    [
        (
            Seat(None, 0, 5 * HOUR_MS, 5 * HOUR_MS, Wish("over", "ann", 0)),
            None,
            "was retired by ann",
        ),
        (Seat(None, 0, 5 * HOUR_MS, 5 * HOUR_MS, Wish("over", "ann", 0)), 4, ""),
        (Seat(None, 0, 5 * HOUR_MS, 5 * HOUR_MS), None, "ended with hour 1970-01-01T04"),
        (Seat(None, 0, 5 * HOUR_MS, 5 * HOUR_MS), 7, "write last_hour: 1970-01-01T04"),
        (Seat(None, 0, 5 * HOUR_MS, 5 * HOUR_MS), 4, ""),
        (Seat(None, 0, 5 * HOUR_MS, 9 * HOUR_MS), None, ""),  # flags have not passed it
        (Seat(None, 0, 5 * HOUR_MS), None, ""),
    ],
)
def test_a_stream_that_is_over_for_good_is_not_read_again(
    seat: Seat, last: int | None, refused: str
) -> None:
    last_ms = None if last is None else last * HOUR_MS
    world = World(replace(settings_of(), last_hour_ms=last_ms))
    name = world.settings.name
    Process(world, Calm()).works[0].tick()
    root = root_key(root_name(world.settings.folder))
    change(
        world.store,
        root,
        RootDocument,
        lambda found: replace(found, streams={name: seat}, hours_ms=8 * HOUR_MS),
    )
    work = Process(world, Calm()).works[0]
    if not refused:
        work.tick()
        return
    with pytest.raises(Invalid, match=refused):
        work.tick()


def test_inv6_a_node_that_does_not_know_of_the_end_lands_nothing_behind_flags_that_passed_it() -> (
    None
):
    """The settings of another one say that the stream is over, and it holds the root."""
    world = world_of()
    world.drop("lane-0", world.now_ms - 5)
    process = Process(world, Calm())
    process.until(world.is_landed)
    before = world.checkpoint()
    end_ms = aligned(world.now_ms, HOUR_MS)
    seat = Seat(None, 0, end_ms, end_ms)
    change(
        world.store,
        root_key(root_name(world.settings.folder)),
        RootDocument,
        lambda found: replace(
            found, streams={world.settings.name: seat}, hours_ms=end_ms + HOUR_MS
        ),
    )
    world.drop("lane-0", world.now_ms - 3)
    with pytest.raises(Invalid, match="next: write last_hour"):
        process.until(world.is_landed)
    assert world.checkpoint().number == before.number
