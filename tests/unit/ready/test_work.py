"""The work of a root: from checkpoints to flags, in one thread and in memory."""

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from headgate.app.acts import Acts, Person
from headgate.audit.verifying import verify
from headgate.commits.certificate import FLAG
from headgate.commits.record import record_path
from headgate.commits.roots import RootDocument, Seat, root_key
from headgate.errors import Fenced, Unavailable
from headgate.lake.ledger import Ledger, read_ledger
from headgate.lake.paths import STAGING
from headgate.periods import HOUR_MS, FolderTemplate
from headgate.ready.archive import archive_path
from headgate.ready.kind import RootFeed, RootKind, kind_name
from headgate.ready.work import RootWork
from headgate.store.changes import change, create_if_absent
from headgate.testing.faults import Call, Calm
from tests.crash.ready_flows import delete, hold, let_go, wish_repaired, wish_withdrawn
from tests.crash.ready_world import TEMPLATE, Process, World, hour, landing_of, run, settings_of


def world_of(*streams: str, first: int = 13) -> World:
    """Each has landed a record in its first hour."""
    world = World(settings_of(*(streams or ("orders",))))
    for stream in streams or ("orders",):
        world.open(stream, hour(first))
        world.land(stream, hour(first))
    return world


def hours_of(world: World, stream: str = "orders") -> list[str]:
    """Those with the flag of a stream, in the order of time."""
    end = f"/{stream}/{FLAG}"
    return [path.removesuffix(end) for path in world.flags() if path.endswith(end)]


def test_k1_a_reader_in_the_middle_of_an_hour_leaves_it_open_however_often_it_is_looked_at() -> (
    None
):
    world = world_of()
    world.reach("orders", hour(13).start_ms + 20 * 60_000)
    for _ in range(5):
        run(world)
    assert world.flags() == []
    assert world.stream("orders").closing_ms is None


def test_kf15_an_hour_has_its_certificate_in_both_places() -> None:
    world = world_of()
    world.land("orders", hour(13), rows=4)
    world.reach("orders", hour(14))
    run(world)
    files = world.lake.files()
    both = [files[f"2027-01-15/13/orders/{at}{FLAG}"] for at in ("", "data/")]
    assert both[0] == both[1]
    found = world.certificate("orders", hour(13))
    assert found.counts == {"landed": 5, "late": 0, "dead": 0}
    assert found.commits == {"0": ((1, 3),)}
    assert [file.rows for file in found.files] == [1, 4]
    assert found.partitions["lane-0"].next == "2"
    assert all(files[file.path] for file in found.files)


def test_an_empty_hour_gets_its_folder_and_its_flag() -> None:
    world = world_of()
    world.reach("orders", hour(15))
    run(world)
    assert hours_of(world) == ["2027-01-15/13", "2027-01-15/14"]
    assert world.certificate("orders", hour(14)).files == ()
    assert world.certificate("orders", hour(14)).event_ms is None


def test_a_gap_is_in_the_certificates_of_the_hours_that_it_may_concern() -> None:
    world = world_of()
    world.lose("orders", hour(14), hour(15))
    world.land("orders", hour(15))
    world.reach("orders", hour(17))
    run(world)
    found = {at: world.certificate("orders", hour(at)) for at in range(13, 17)}
    told = {at: [(gap.first, gap.next) for gap in one.gaps] for at, one in found.items()}
    assert told == {13: [], 14: [("1", "2")], 15: [("1", "2")], 16: []}
    assert found[15].commits == {"0": ((3, 4),)}, "those with files"
    assert all(one.counts["dead"] == 0 for one in found.values()), "of those with files"


def test_k8_thirty_hours_down_then_thirty_flags_in_order() -> None:
    world = world_of()
    world.reach("orders", hour(13 + 30))
    calm = Calm()
    Process(world, calm).run()
    raised = [str(call.args[1]) for call in calm.calls if call.method == "publish"]
    of_stream = [path for path in raised if path.endswith(f"/orders/{FLAG}")]
    assert len(of_stream) == 30
    assert of_stream == sorted(of_stream)
    assert [path for path in world.flags() if path.count("/") == 1] == ["2027-01-15/_READY"]


def test_k12_kf18_the_last_hours_flag_raises_the_day_in_that_pass() -> None:
    world = world_of(first=23)
    world.reach("orders", hour(24))
    Process(world).work.tick()
    assert "2027-01-15/_READY" in world.flags()


def aged(days: int) -> World:
    """So many days of flagged hours lie behind it; in the lake there are the flags of the last."""
    world = world_of(first=0)
    world.ambient.pass_ms(days * 24 * HOUR_MS)
    world.reach("orders", hour(24 * days - 24))
    begin, until = hour(0).start_ms, hour(24 * days - 24).start_ms
    if days > 1:
        seat = Seat(None, begin, until)
        old = RootDocument(streams={"orders": seat}, hours_ms=until, days_ms=until)
        create_if_absent(world.store, root_key(world.settings.name), RootDocument())
        change(world.store, root_key(world.settings.name), RootDocument, lambda _: old)
    world.reach("orders", hour(24 * days))
    run(world)
    assert world.root().days_ms == hour(24 * days).start_ms
    return world


def test_k12_a_pass_makes_as_many_calls_after_1_day_as_after_1000() -> None:
    counts = []
    for days in (1, 1_000):
        world = aged(days)
        process = Process(world)
        process.work.tick()
        world.reach("orders", hour(24 * days + 1))
        calm = process.stage
        assert isinstance(calm, Calm)
        calm.calls.clear()
        process.work.tick()
        counts.append(sorted(call.method for call in calm.calls))
        assert len(hours_of(world)) == 25
    assert counts[0] == counts[1]


def test_an_idle_pass_asks_for_little() -> None:
    now_ms = World().ambient.wall_ns() // 1_000_000
    world = world_of("a", "b", "c", first=(now_ms - hour(0).start_ms) // HOUR_MS - 2)
    for stream in ("a", "b", "c"):
        world.reach(stream, now_ms)
    run(world)
    assert len(hours_of(world, "a")) == 2
    process = Process(world)
    process.work.tick()
    calm = process.stage
    assert isinstance(calm, Calm)
    calm.calls.clear()
    process.work.tick()
    assert len(calm.calls) == 1


@pytest.fixture(params=["UTC", "America/St_Johns", "Pacific/Kiritimati"])
def zone(request: pytest.FixtureRequest) -> Iterator[str]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = request.param
    time.tzset()
    yield request.param
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.usefixtures("zone")
def test_k9_flags_are_the_same_in_every_time_zone() -> None:
    world = world_of(first=23)
    world.reach("orders", hour(25))
    run(world)
    assert world.flags() == [
        "2027-01-15/23/_READY",
        "2027-01-15/23/orders/_READY",
        "2027-01-15/23/orders/data/_READY",
        "2027-01-15/_READY",
        "2027-01-16/00/_READY",
        "2027-01-16/00/orders/_READY",
        "2027-01-16/00/orders/data/_READY",
    ]


def test_k7_a_configured_stream_without_data_holds_the_hour() -> None:
    world = World(settings_of("orders", "silent"))
    world.open("orders", hour(13))
    world.land("orders", hour(13))
    world.reach("orders", hour(15))
    run(world)
    assert hours_of(world) == ["2027-01-15/13", "2027-01-15/14"]
    assert f"2027-01-15/13/{FLAG}" not in world.flags()

    world.open("silent")
    run(world)
    assert f"2027-01-15/13/{FLAG}" not in world.flags()


def test_one_stream_that_stands_still_does_not_hold_the_others_flags() -> None:
    world = world_of("orders", "paused")
    world.reach("orders", hour(13 + 24))
    world.reach("paused", hour(14))
    run(world)
    assert len(hours_of(world)) == 24
    assert [path for path in world.flags() if path.count("/") == 2] == ["2027-01-15/13/_READY"]
    world.reach("paused", hour(13 + 24))
    run(world)
    assert len([path for path in world.flags() if path.count("/") == 2]) == 24


def test_k11_a_new_stream_is_expected_from_the_roots_frontier_on_at_the_next_tick() -> None:
    world = world_of()
    world.reach("orders", hour(15))
    process = Process(world)
    process.run()

    world.settings = settings_of("orders", "bids")
    world.open("bids", hour(10))  # its records are older than the frontier
    world.reach("orders", hour(17))
    run(world)
    assert world.stream("bids").first_hour_ms == hour(15).start_ms
    assert f"2027-01-15/15/{FLAG}" not in world.flags()

    world.reach("bids", hour(16))
    run(world)
    assert hours_of(world, "bids") == ["2027-01-15/15"]
    assert f"2027-01-15/15/{FLAG}" in world.flags()
    assert world.faults() == []


def test_a_stream_that_a_node_does_not_know_still_holds_the_hour() -> None:
    world = world_of()
    world.open("bids")
    world.reach("orders", hour(15))
    run(world)
    assert f"2027-01-15/13/{FLAG}" not in world.flags()


def test_a_removed_stream_holds_its_hours_until_the_last_one() -> None:
    world = world_of("orders", "old")
    last = replace(world.settings.streams[1], last_hour_ms=hour(14).start_ms)
    world.settings = replace(world.settings, streams=(world.settings.streams[0], last))
    world.reach("orders", hour(17))
    world.reach("old", hour(17))
    run(world)
    assert hours_of(world, "old") == ["2027-01-15/13", "2027-01-15/14"]
    assert [path for path in world.flags() if path.count("/") == 2][-1] == "2027-01-15/16/_READY"


def test_k4_one_record_of_2099_flags_no_hour_early() -> None:
    world = world_of()
    world.land("orders", hour(24 * 365 * 70))
    world.reach("orders", hour(14))
    run(world)
    assert hours_of(world) == ["2027-01-15/13"]


def test_one_record_of_1970_makes_no_empty_hours() -> None:
    world = world_of()
    world.land("orders", hour(-24 * 365 * 50))
    world.reach("orders", hour(14))
    run(world)
    assert hours_of(world) == ["2027-01-15/13"]


def test_kf19_a_hold_file_keeps_its_hour_and_those_after_it_back() -> None:
    world = world_of()
    hold(world, "orders", 14)
    world.reach("orders", hour(16))
    run(world)
    assert hours_of(world) == ["2027-01-15/13"]
    let_go(world, "orders", 14)
    run(world)
    assert hours_of(world) == ["2027-01-15/13", "2027-01-15/14", "2027-01-15/15"]


def test_a_stream_whose_record_is_gone_stops_no_other_and_says_so() -> None:
    world = world_of("bad", "orders")
    delete(world, record_path("bad", 0, 1))
    for stream in ("bad", "orders"):
        world.reach(stream, hour(14))
    run(world)
    assert hours_of(world) == ["2027-01-15/13"]
    assert hours_of(world, "bad") == []
    assert "next: restore it from a backup" in world.root().troubles["bad"]


@pytest.mark.parametrize("place", ["_headgate/commits/bids", "2027-01-15/13/bids"])
def test_a_stream_whose_files_are_out_of_reach_stops_no_other(place: str) -> None:
    """Another disk, or a folder that this node may not read: it is tried again, and not hidden."""
    world = world_of("orders", "bids", "clicks")
    for stream in ("orders", "bids", "clicks"):
        world.reach(stream, hour(15))

    class Denied:
        def around(self, call: Call, act: Callable[[], object]) -> object:
            if call.args and str(call.args[0]).startswith(place):
                raise Unavailable(f"{call.args[0]}: permission denied")
            return act()

    process = Process(world, Denied())
    for _ in range(3):
        with pytest.raises(Unavailable, match="permission denied"):
            process.work.tick()
    assert [len(hours_of(world, one)) for one in ("orders", "bids", "clicks")] == [2, 0, 2]
    run(world)
    assert len(hours_of(world, "bids")) == 2


def test_a_flag_that_somebody_made_by_hand_is_not_overwritten() -> None:
    world = world_of("bad", "orders")
    staged, flag = f"{STAGING}/x/y", f"2027-01-15/13/bad/{FLAG}"
    world.lake.stage(staged, b"")
    world.lake.publish(staged, flag)
    for stream in ("bad", "orders"):
        world.reach(stream, hour(14))
    run(world)
    assert world.lake.files()[flag] == b""
    assert hours_of(world) == ["2027-01-15/13"]
    assert "next: move it away" in world.root().troubles["bad"]

    delete(world, flag)
    run(world)
    assert hours_of(world, "bad") == ["2027-01-15/13"]
    assert world.root().troubles == {}


def test_k15_a_deleted_folder_changes_no_decision_and_is_restored() -> None:
    world = world_of(first=22)
    world.reach("orders", hour(23))
    run(world)
    quiet = [path for path in world.flags() if path.startswith("2027-01-15/22")]
    for path in quiet:
        delete(world, path)
    world.reach("orders", hour(24))
    run(world)
    assert "2027-01-15/_READY" in world.flags()

    wish_repaired(world, -500_000, 500)
    run(world)
    assert set(quiet) <= set(world.flags())
    assert world.faults() == []
    assert world.root().repair is None


def test_hours_that_have_their_flags_are_told_to_landing() -> None:
    world = world_of()
    for until in (14, 15):
        world.reach("orders", hour(until))
        run(world)
    document = world.stream("orders")
    assert document.closing_ms == hour(15).start_ms
    assert document.closed_ms == hour(14).start_ms


def test_a_wish_for_an_hour_without_a_flag_is_dropped() -> None:
    world = world_of()
    world.reach("orders", hour(14))
    run(world)
    wish_withdrawn(world, "orders", 20)
    before = world.flags()
    run(world)
    assert world.root().wishes == {}
    assert world.flags() == before


def test_a_wish_for_a_stream_that_this_node_does_not_know_is_kept_and_told() -> None:
    world = world_of("orders", "bids")
    for stream in ("orders", "bids"):
        world.reach(stream, hour(14))
    run(world)
    before = world.flags()
    wish_withdrawn(world, "bids", 13)
    both, world.settings = world.settings, settings_of("orders")
    run(world)
    (place,) = world.root().wishes
    assert "bids is not in the settings of this node" in world.root().troubles[place]
    assert world.flags() == before

    world.settings = both
    run(world)
    assert (world.root().wishes, world.root().troubles) == ({}, {})
    assert world.certificate("bids", hour(13)).generation == 2


def test_a_withdrawn_hour_of_a_stream_that_this_node_does_not_know_is_told() -> None:
    world = world_of("orders", "bids")
    for stream in ("orders", "bids"):
        world.reach(stream, hour(14))
    run(world)
    hold(world, "bids", 13)
    wish_withdrawn(world, "bids", 13)
    run(world)
    let_go(world, "bids", 13)
    both, world.settings = world.settings, settings_of("orders")
    run(world)
    (place,) = [one for one in world.root().reopened if "/" in one]
    assert "bids is not in the settings of this node" in world.root().troubles[place]

    world.settings = both
    run(world)
    assert (world.root().reopened, world.root().troubles) == ({}, {})


@pytest.mark.parametrize("content", [b"?", None])
def test_inv6_a_withdrawn_hour_whose_file_was_changed_is_not_vouched_for_again(
    content: bytes | None,
) -> None:
    world = world_of()
    world.reach("orders", hour(14))
    run(world)
    (path,) = [file.path for file in world.certificate("orders", hour(13)).files]
    hold(world, "orders", 13)
    wish_withdrawn(world, "orders", 13)
    run(world)
    raw = world.lake.files()[path]
    delete(world, path)
    if content is not None:
        world.lake.put(path, content)
    let_go(world, "orders", 13)
    run(world)
    (place,) = [one for one in world.root().reopened if "/" in one]
    assert path in world.root().troubles[place]
    assert hours_of(world) == []

    world.lake.put(path, raw)
    run(world)
    assert (world.root().reopened, world.root().troubles) == ({}, {})
    assert world.certificate("orders", hour(13)).generation == 2


def test_inv3_an_older_holder_stops() -> None:
    world = world_of()
    old = Process(world)
    old.work.tick()
    run(world)
    with pytest.raises(Fenced):
        old.work.tick()


def test_where_hours_have_no_folder_above_them_flags_are_per_stream() -> None:
    own = FolderTemplate.parse("{stream}/{yyyy}-{MM}-{dd}T{HH}")
    world = World(settings_of("orders", template=own))
    world.open("orders", hour(13))
    world.reach("orders", hour(15))
    run(world)
    assert world.flags() == ["orders/2027-01-15T13/_READY", "orders/2027-01-15T14/_READY"]
    assert world.root().hours_ms is None


def test_inv7_roots_of_one_lake_flag_the_same_hours_apart() -> None:
    """Each keeps its own certificates: who shares a folder shares nothing else."""
    world = world_of()
    world.reach("orders", hour(24))
    run(world)
    template = FolderTemplate.parse("shop/{yyyy}-{MM}-{dd}/{HH}/{stream}/data")
    world.settings = settings_of("bids", template=template)
    world.open("bids", hour(22))
    world.reach("bids", hour(24))
    run(world)
    wish_withdrawn(world, "bids", 22)
    run(world)

    assert world.root().hours_ms == hour(24).start_ms
    generations = {
        path: json.loads(world.lake.files()[path])["generation"] for path in world.flags()
    }
    above = [f"2027-01-15/22/{FLAG}", f"2027-01-15/{FLAG}"]
    assert [generations[path] for path in above] == [1, 1]
    assert [generations[f"shop/{path}"] for path in above] == [2, 2]
    folders = {"orders": TEMPLATE, "bids": template}
    assert verify(world.lake, folders).findings == []
    assert world.findings() == []


def test_a_stream_whose_folder_was_changed_is_flagged_in_one_root_at_a_time() -> None:
    world = world_of()
    world.reach("orders", hour(15))
    run(world)
    before = world.flags()
    template = FolderTemplate.parse("shop/{yyyy}-{MM}-{dd}/{HH}/{stream}/data")
    world.settings = settings_of("orders", template=template)
    world.reach("orders", hour(17))
    run(world)
    assert world.flags() == before
    assert "next: restart every node" in world.root().troubles["orders"]

    acts = Acts(world.store, world.lake, Ledger(world.lake, "cli", world.ambient), world.ambient)
    known = {"orders": replace(landing_of(world.settings.streams[0]), folder=template)}
    acts.retire("orders", Person("ann", "it lies elsewhere now"), known)
    run(world)
    assert world.root().streams["orders"].first_ms == hour(15).start_ms
    after = [path for path in world.flags() if path not in before]
    assert [path for path in after if path.endswith("/data/_READY")] == [
        "shop/2027-01-15/15/orders/data/_READY",
        "shop/2027-01-15/16/orders/data/_READY",
    ]
    assert world.root().troubles == {}


def test_a_certificate_that_nobody_here_froze_stops_only_its_stream() -> None:
    world = world_of("orders", "bids")
    archived = archive_path(hour(13), "orders", 1)
    world.lake.put(archived, b"{}")
    for stream in ("orders", "bids"):
        world.reach(stream, hour(15))
    run(world)
    assert (hours_of(world), len(hours_of(world, "bids"))) == ([], 2)
    assert archived in world.root().troubles["orders"]
    assert world.root().journal is None
    assert world.lake.files()[archived] == b"{}"


def test_kf14_hours_before_one_in_trouble_get_their_flags() -> None:
    """A stream that catches up closes many hours at once: one of them must not hold the rest."""
    world = world_of()
    world.land("orders", hour(16))
    lost = record_path("orders", 0, 2)
    raw = world.lake.files()[lost]
    delete(world, lost)
    world.reach("orders", hour(18))
    run(world)
    assert hours_of(world) == [f"2027-01-15/{one}" for one in (13, 14, 15)]
    assert lost in world.root().troubles["orders"]

    world.lake.put(lost, raw)
    run(world)
    assert hours_of(world) == [f"2027-01-15/{one}" for one in range(13, 18)]
    assert world.root().troubles == {}


def test_inv6_a_withdrawn_hour_over_all_streams_comes_back_beside_one_in_trouble() -> None:
    world = world_of()
    world.reach("orders", hour(15))
    run(world)
    strange = f"2027-01-15/15/{FLAG}"
    world.lake.put(strange, b"?")
    world.reach("orders", hour(17))
    run(world)
    wish_withdrawn(world, "orders", 13)
    run(world)
    assert f"2027-01-15/13/{FLAG}" in world.flags()
    assert world.root().reopened == {}
    assert strange in world.root().troubles["/hour"]
    assert world.root().hours_ms == hour(15).start_ms

    delete(world, strange)
    run(world)
    assert world.root().hours_ms == hour(17).start_ms
    assert (world.root().troubles, world.faults()) == ({}, [])


def test_a_root_is_one_task_that_is_never_done() -> None:
    world = world_of()
    feed = RootFeed(world.settings)
    assert [order.kind for order in feed.wanted(0, 10)] == [kind_name(world.settings.name)]
    assert feed.wanted(1, 10) == ()
    process = Process(world)
    kind = RootKind(world.settings, process.work._tools)
    assert isinstance(kind.start(process.held), RootWork)
    assert kind.name == feed.name
    assert kind.release_command("ready:x/0") == 'headgate task release ready:x/0 --reason "…"'


def test_the_ledger_tells_flags_of_streams_and_those_above_them_apart() -> None:
    world = world_of("orders", "clicks")
    for stream in ("orders", "clicks"):
        world.reach(stream, hour(15))
    run(world)

    found = [x.words for x in read_ledger(world.lake, 0, 2**45) if x.what == "flags.raised"]

    assert found[:2] == [
        "of orders: 2027-01-15T13, 2027-01-15T14; of clicks: 2027-01-15T13, 2027-01-15T14",
        "over all streams: 2027-01-15T13, 2027-01-15T14",
    ]


def test_the_ledger_names_many_hours_by_the_first_and_the_last() -> None:
    world = world_of()
    world.reach("orders", hour(19))
    run(world)

    first, *_ = [x.words for x in read_ledger(world.lake, 0, 2**45) if x.what == "flags.raised"]

    assert first == "of orders: 2027-01-15T13 to 2027-01-15T18, 6 hours"


def test_the_ledger_says_that_a_flag_was_raised_again() -> None:
    world = world_of()
    world.reach("orders", hour(14))
    run(world)
    delete(world, f"2027-01-15/13/orders/{FLAG}")
    wish_repaired(world, 13, 13)
    run(world)

    *_, last = [x.words for x in read_ledger(world.lake, 0, 2**45) if x.what == "flags.raised"]

    assert last == "again, of 2027-01-15T13"
