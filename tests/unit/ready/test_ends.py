"""Streams that end: by their last hour, or because a person retires them. What nobody says is over
is waited for."""

from dataclasses import replace

import pytest

from headgate.app.acts import Acts, Person
from headgate.commits.certificate import FLAG
from headgate.commits.roots import RootDocument, Seat
from headgate.commits.streams import StreamDocument, stream_key
from headgate.errors import Invalid
from headgate.lake.ledger import Ledger, read_ledger
from headgate.landing import StreamSettings
from headgate.periods import HOUR_MS, Period
from headgate.ready.propagation import passed_ms
from headgate.store.changes import read
from headgate.testing.estuary import settings_of as landing_of
from headgate.testing.faults import Call
from tests.crash.landing_world import Watching
from tests.crash.ready_flows import retire
from tests.crash.ready_world import TEMPLATE, Process, World, hour, run, settings_of

ANN = Person("ann", "the shop is closed")


def hours_over_all(world: World) -> list[str]:
    return [path.removesuffix(f"/{FLAG}") for path in world.flags() if path.count("/") == 2]


def days(world: World) -> list[str]:
    return [path for path in world.flags() if path.count("/") == 1]


def world_of(*streams: str, first: int = 13) -> World:
    world = World(settings_of(*streams))
    for stream in streams:
        world.open(stream, hour(first))
        world.land(stream, hour(first))
    return world


def with_last(world: World, stream: str, last: Period | None) -> None:
    """The settings say so from now on."""
    last_ms = None if last is None else last.start_ms
    streams = tuple(
        replace(one, last_hour_ms=last_ms) if one.name == stream else one
        for one in world.settings.streams
    )
    world.settings = replace(world.settings, streams=streams)


def without(world: World, stream: str) -> None:
    kept = tuple(one for one in world.settings.streams if one.name != stream)
    world.settings = replace(world.settings, streams=kept)


def reach(world: World, until: Period, *streams: str) -> None:
    for stream in streams:
        world.reach(stream, until)


# ── by the settings ───────────────────────────────────────────────────────────────────────────────


def test_a_stream_is_expected_up_to_its_last_hour_and_no_longer() -> None:
    world = world_of("orders", "old")
    with_last(world, "old", hour(14))
    reach(world, hour(17), "orders")
    reach(world, hour(14), "old")
    run(world)
    assert hours_over_all(world) == ["2027-01-15/13"]  # its last hour is waited for

    reach(world, hour(15), "old")
    run(world)
    assert hours_over_all(world)[-1] == "2027-01-15/16"
    assert f"2027-01-15/15/old/{FLAG}" not in world.flags()
    assert world.faults() == []


def test_a_last_hour_before_flags_that_are_there_takes_none_of_them_back() -> None:
    world = world_of("orders", "old")
    reach(world, hour(16), "orders", "old")
    run(world)
    with_last(world, "old", hour(13))
    reach(world, hour(18), "orders")
    run(world)
    assert world.root().streams["old"].last_ms == hour(16).start_ms
    assert hours_over_all(world)[-1] == "2027-01-15/17"
    assert world.faults() == []


def test_inv7_an_end_can_be_moved_only_until_flags_over_all_streams_went_past_it() -> None:
    world = world_of("orders", "old")
    with_last(world, "old", hour(14))
    reach(world, hour(15), "orders", "old")
    run(world)
    with_last(world, "old", None)  # nothing was flagged behind it
    run(world)
    assert world.root().streams["old"].last_ms is None

    with_last(world, "old", hour(14))
    reach(world, hour(17), "orders")
    run(world)
    assert hours_over_all(world)[-1] == "2027-01-15/16"
    with_last(world, "old", None)
    reach(world, hour(18), "orders", "old")
    run(world)
    assert world.root().streams["old"].last_ms == hour(15).start_ms
    assert f"2027-01-15/15/old/{FLAG}" not in world.flags()
    assert "next: write last_hour: 2027-01-15T14 as before" in world.root().troubles["old"]
    assert hours_over_all(world)[-1] == "2027-01-15/17"  # the others go on
    assert world.faults() == []


def test_once_every_stream_has_ended_the_day_is_flagged() -> None:
    world = world_of("orders", first=20)
    with_last(world, "orders", hour(21))
    reach(world, hour(22), "orders")
    run(world)
    assert hours_over_all(world) == ["2027-01-15/20", "2027-01-15/21"]
    assert days(world) == [f"2027-01-15/{FLAG}"]
    assert world.faults() == []

    world.settings = settings_of("orders", "new")
    with_last(world, "orders", hour(21))
    world.open("new", hour(23))
    assert world.stream("new").first_hour_ms == hour(24).start_ms  # that day has its flag


@pytest.mark.parametrize(
    ("hours", "ends", "now", "expected"),
    [
        (22, [22], 25, 24),
        (22, [22, 9], 99, 24),
        (22, [22], 24, None),  # who joins now may still be in time for that day
        (22, [22, 23], 99, None),  # one is still to come
        (22, [22, None], 99, None),  # one has no end
        (24, [24], 99, None),  # there is nothing to pass
        (None, [22], 99, None),
        (22, [], 99, None),
    ],
)
def test_k6_only_after_the_last_stream_ended_the_frontier_goes_on_to_the_end_of_the_day(
    hours: int | None, ends: list[int | None], now: int, expected: int | None
) -> None:
    seats = {
        str(n): Seat(None, 0, 0, None if end is None else hour(end).start_ms)
        for n, end in enumerate(ends)
    }
    document = RootDocument(streams=seats, hours_ms=None if hours is None else hour(hours).start_ms)
    wanted = None if expected is None else hour(expected).start_ms
    assert passed_ms(document, hour(now).start_ms) == wanted


def test_a_stream_with_an_end_of_which_nothing_landed_holds_no_later_hour() -> None:
    world = World(settings_of("orders", "silent"))
    world.open("orders", hour(13))
    world.land("orders", hour(13))
    world.open("silent")
    with_last(world, "silent", hour(12))
    reach(world, hour(15), "orders")
    run(world)
    assert hours_over_all(world) == ["2027-01-15/13", "2027-01-15/14"]


def test_a_first_record_after_the_last_hour_stops_no_stream_that_begins_later() -> None:
    world = World(settings_of("orders", "silent"))
    world.open("silent", hour(13))
    world.land("silent", hour(13))
    reach(world, hour(13), "silent")
    with_last(world, "silent", hour(12))
    world.open("orders", hour(15))
    world.land("orders", hour(15))
    reach(world, hour(17), "orders")
    run(world)
    assert hours_over_all(world) == ["2027-01-15/15", "2027-01-15/16"]


# ── by a person ───────────────────────────────────────────────────────────────────────────────────


def test_k7_a_stream_that_left_the_settings_holds_every_later_hour_until_it_is_retired() -> None:
    world = world_of("orders", "old")
    reach(world, hour(15), "orders", "old")
    run(world)
    without(world, "old")
    reach(world, hour(18), "orders")
    for _ in range(3):
        run(world)
    assert hours_over_all(world) == ["2027-01-15/13", "2027-01-15/14"]

    retire(world, "old")
    run(world)
    assert hours_over_all(world)[-1] == "2027-01-15/17"
    assert f"2027-01-15/14/old/{FLAG}" in world.flags()
    assert world.root().streams["old"].last_ms == hour(15).start_ms
    assert world.faults() == []


def test_a_stream_that_is_retired_before_its_first_flag_stops_no_later_hour() -> None:
    world = world_of("old")
    world.settings = settings_of("orders", "old")
    world.open("orders", hour(15))
    world.land("orders", hour(15))
    reach(world, hour(17), "orders")
    run(world)
    without(world, "old")
    assert hours_over_all(world) == []
    retire(world, "old")
    run(world)
    assert hours_over_all(world) == ["2027-01-15/15", "2027-01-15/16"]


def test_a_stream_of_which_nothing_landed_can_be_retired() -> None:
    world = World(settings_of("orders", "silent"))
    world.open("orders", hour(13))
    world.land("orders", hour(13))
    reach(world, hour(15), "orders")
    run(world)
    without(world, "silent")
    assert hours_over_all(world) == []
    retire(world, "silent")  # it has a seat, and no document of its own
    run(world)
    assert hours_over_all(world) == ["2027-01-15/13", "2027-01-15/14"]


def test_no_take_over_undoes_it_and_whoever_brings_the_stream_back_is_told() -> None:
    world = world_of("orders", "old")
    reach(world, hour(15), "orders", "old")
    run(world)
    retire(world, "old")
    before = world.root().streams["old"]
    reach(world, hour(18), "orders", "old")
    for _ in range(2):  # holders that still have it in their settings
        run(world)
    assert world.root().streams["old"] == before
    assert "was retired by ann: the shop is closed" in world.root().troubles["old"]
    assert hours_over_all(world)[-1] == "2027-01-15/17"
    assert f"2027-01-15/15/old/{FLAG}" not in world.flags()


def test_retiring_is_refused_while_the_settings_say_that_it_goes_on() -> None:
    world = world_of("orders", "old")
    reach(world, hour(15), "orders", "old")
    run(world)
    acts = Acts(world.store, world.lake, Ledger(world.lake, "here", world.ambient), world.ambient)
    own = replace(landing_of(), name="old", folder=TEMPLATE)
    with pytest.raises(Invalid, match="is in the settings, without an end"):
        acts.retire("old", ANN, {"old": own})
    with pytest.raises(Invalid, match="no node has ever read it"):
        acts.retire("odd", ANN, {})
    assert [x for x in read_ledger(world.lake, 0, 2**45) if x.what == "stream.retired"] == []

    ends = acts.retire("old", ANN, {"old": replace(own, last_hour_ms=hour(20).start_ms)})
    assert list((ends or {}).values()) == [hour(15).start_ms]
    assert acts.retire("old", ANN, {}) is None
    (line,) = [x for x in read_ledger(world.lake, 0, 2**45) if x.what == "stream.retired"]
    assert (line.subject, line.who, line.words) == ("old", "ann", "the shop is closed")


def test_a_stream_whose_folder_was_changed_is_retired_where_it_was_and_goes_on_where_it_is() -> (
    None
):
    world = world_of("orders", "old")
    reach(world, hour(15), "orders", "old")
    run(world)
    without(world, "old")
    reach(world, hour(17), "orders")
    moved: StreamSettings = replace(
        landing_of(), name="old", folder=replace(TEMPLATE, text="elsewhere/" + TEMPLATE.text)
    )
    acts = Acts(world.store, world.lake, Ledger(world.lake, "here", world.ambient), world.ambient)
    assert acts.retire("old", ANN, {"old": moved}) is not None
    run(world)
    assert hours_over_all(world)[-1] == "2027-01-15/16"
    found = read(world.store, stream_key("old"), StreamDocument)
    assert found is not None
    assert found.value.retired is None  # it is read on


def retired_before(effect: int) -> World | None:
    """What a pass leaves, and the next one; None: the pass has no such effect."""
    world = world_of("orders", "old")
    reach(world, hour(15), "orders", "old")
    run(world)
    reach(world, hour(18), "orders", "old")
    seen = [0]

    def look(_call: Call) -> None:
        seen[0] += 1
        if seen[0] == effect:
            retire(world, "old")

    Process(world, Watching(look)).run()
    run(world)
    return world if seen[0] >= effect else None


def test_k11_inv7_retired_at_any_moment_of_a_pass_no_flag_is_lost_or_lacks_a_child() -> None:
    """The holder still has the stream in its settings, and is about to flag hours of it."""
    effect, ends = 0, set[int | None]()
    while (world := retired_before(effect + 1)) is not None:
        effect += 1
        seat = world.root().streams["old"]
        assert seat.frontier_ms == seat.last_ms, effect
        ends.add(seat.last_ms)
        own = [path for path in world.flags() if path.endswith(f"/old/{FLAG}")]
        assert len(own) == ((seat.last_ms or 0) - hour(13).start_ms) // HOUR_MS, effect
        assert hours_over_all(world)[-1] == "2027-01-15/17", effect
        assert world.faults() == [], effect
    assert effect > 20
    assert ends == {hour(15).start_ms, hour(18).start_ms}  # before its journal, and after
