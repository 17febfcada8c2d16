"""The files source over a folder in memory: what the contract does not ask of every source."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import patch

import pytest

from headgate.errors import Conflict, Corrupt, Invalid, Unavailable
from headgate.sources import FilesSettings, Plan
from headgate.sources import away as away_module
from headgate.sources import lanes as lanes_module
from headgate.sources.files import FORGET_MS, LOOK_MS_MIN, FilesSource
from headgate.sources.folder import Entry
from headgate.sources.memory_folder import MemoryFolder
from headgate.store.pages import pages
from headgate.testing.manual import ManualAmbient, manual_store

LANE = "lane-0"
HOUR_MS = 3_600_000
KEEP = FilesSettings("/memory")
MOVE = replace(KEEP, after_read="move", move_to="/done")
DELETE = replace(KEEP, after_read="delete")
LINE = b'{"at": 1}\n'


class CountingFolder(MemoryFolder):
    def __init__(self) -> None:
        super().__init__()
        self.scans = 0

    def scan(self) -> Iterator[Entry]:
        self.scans += 1
        return super().scan()


class World:
    """One holder after the other, of one lane; the positions are those of the last read."""

    def __init__(self, settings: FilesSettings = KEEP) -> None:
        self.settings = settings
        self.ambient = ManualAmbient()
        self.store = manual_store(self.ambient)
        self.folder = CountingFolder()
        self.positions: dict[str, str] = {}
        self.epoch = 0
        self.source = self.next_holder()

    def next_holder(self) -> FilesSource:
        self.epoch += 1
        self.source = self.instance()
        return self.source

    def instance(self) -> FilesSource:
        lanes = [f"{self.settings.prefix}-{n}" for n in range(self.settings.lanes)]
        return FilesSource(
            self.settings, "orders", lanes, self.epoch, self.store, self.folder, self.ambient
        )

    def drop(self, *paths: str, content: bytes = LINE, age_ms: int = HOUR_MS) -> None:
        for path in paths:
            self.folder.files[path] = (content, self.ambient.wall_ns() - age_ms * 1_000_000)

    def plan(self) -> Plan:
        self.ambient.pass_ms(LOOK_MS_MIN)
        self.source.look(self.positions)
        return self.source.plan(self.positions, size_bytes_max=10**9)

    def read(self) -> list[str]:
        """What one plan reads, once it is in the lake."""
        plan = self.plan()
        self.source.confirm(plan)
        self.positions |= {lane: found.next for lane, found in plan.ranges.items()}
        return names(plan)

    def documents(self) -> list[str]:
        return [one.key for page in pages(self.store) for one in page.documents]


def names(plan: Plan) -> list[str]:
    return [file.path.removeprefix("/memory/") for file in plan.files]


def test_one_look_gives_numbers_in_the_order_of_names() -> None:
    world = World()
    world.drop("b/1.json", "a.json", "Z.json", "b.json", "ä.json")
    plan = world.plan()
    assert names(plan) == ["Z.json", "a.json", "b.json", "b/1.json", "ä.json"]
    assert [file.number for file in plan.files] == [0, 1, 2, 3, 4]
    world.drop("0.json")
    assert [file.number for file in world.plan().files] == [0, 1, 2, 3, 4, 5]


def test_only_what_is_included_is_read_and_waited_for() -> None:
    world = World(replace(KEEP, include=("*.json", "x/**/*.log"), exclude=("old/**",)))
    world.drop("a.json", "b.txt", "x/y/c.log", "old/d.json", "x/e.json")
    world.drop("old/_f.json", age_ms=0)
    plan = world.plan()
    assert sorted(names(plan)) == ["a.json", "x/e.json", "x/y/c.log"]
    assert LANE in plan.ends_ms


def test_c5_an_unfinished_name_counts_for_an_hour_after_its_last_change() -> None:
    world = World()
    for name in (".keep", "_SUCCESS", "a.json.tmp", "_x/b.json"):
        world.drop(name, age_ms=HOUR_MS - 10_000)
    plan = world.plan()
    assert plan.is_empty
    assert plan.ends_ms == {}
    assert world.source.look({}).unfinished == 4
    world.ambient.pass_ms(10_000)
    assert LANE in world.plan().ends_ms
    assert world.source.look({}).unfinished == 0


def test_c5_a_file_that_is_too_young_waits() -> None:
    world = World(replace(KEEP, min_age_ms=60_000))
    world.drop("a.json", age_ms=30_000)
    world.drop("b.json", age_ms=60_000)
    plan = world.plan()
    assert names(plan) == ["b.json"]
    assert plan.ends_ms == {}
    world.ambient.pass_ms(30_000)
    plan = world.plan()
    assert names(plan) == ["b.json", "a.json"]
    assert LANE in plan.ends_ms


def test_a_file_from_the_future_waits_until_it_was_seen_unchanged_for_so_long() -> None:
    world = World(replace(KEEP, min_age_ms=60_000))
    world.drop("a.json", age_ms=-1_000 * HOUR_MS)
    assert world.plan().is_empty
    world.ambient.pass_ms(50_000)
    assert world.plan().is_empty
    world.drop("a.json", content=LINE + LINE, age_ms=-1_000 * HOUR_MS)  # still being written
    world.ambient.pass_ms(50_000)
    assert world.plan().is_empty
    world.ambient.pass_ms(59_000)
    assert names(world.plan()) == ["a.json"]


def test_files_with_other_columns_are_read_by_another_plan() -> None:
    world = World(replace(KEEP, format="csv"))
    world.drop("a.csv", "b.csv", content=b"at,id\n1,2\n")
    world.drop("c.csv", content=b"at,id,price\n1,2,3\n")
    world.drop("d.csv", content=b"")
    plan = world.plan()
    assert (names(plan), plan.columns) == (["a.csv", "b.csv"], ("at", "id"))
    assert plan.has_more
    assert plan.ends_ms == {}
    world.read()
    plan = world.plan()
    assert (names(plan), plan.columns) == (["c.csv"], ("at", "id", "price"))
    assert plan.ranges[LANE].next == "4"


def test_dead_letters_are_a_format_of_their_own() -> None:
    world = World(replace(MOVE, format="dead", prefix="redrive", path="/lake/_headgate/dead"))
    world.drop("a.parquet", "b.json", content=b"x")
    plan = world.plan()
    assert (plan.format, plan.columns, names(plan)) == ("dead", (), ["a.parquet"])
    assert list(plan.ranges) == ["redrive-0"]
    world.read()
    assert world.read() == ["b.json"]


def test_dead_letters_have_no_folder_before_the_first_is_driven_in_again() -> None:
    world = World(replace(MOVE, format="dead", prefix="redrive"))
    world.folder.folder = ""
    assert "redrive-0" in world.plan().ends_ms
    world.folder.folder = "1"
    world.drop("a.json")
    assert world.read() == ["a.json"]
    world.source.settle(world.positions)
    world.folder.folder = ""
    assert "redrive-0" in world.plan().ends_ms


def test_csv_without_a_header_is_bare() -> None:
    world = World(replace(KEEP, format="csv", columns=("at", "id")))
    world.drop("a.csv", content=b"1,2\n")
    plan = world.plan()
    assert (plan.format, plan.columns) == ("csv-bare", ("at", "id"))


def test_a_file_of_no_bytes_has_no_records_and_the_range_goes_over_it() -> None:
    world = World()
    world.drop("a.json", content=b"")
    plan = world.plan()
    assert plan.files == ()
    assert plan.gaps == ()
    assert plan.ranges[LANE].next == "1"
    assert LANE in plan.ends_ms
    world.read()
    world.drop("a.json")  # somebody wrote into it
    assert world.read() == ["a.json"]


def test_what_cannot_be_read_holds_its_hour_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.drop("a.json.zst", "b.json", "c.json")
    world.folder.forbidden.add("c.json")
    with caplog.at_level(logging.WARNING):
        plan = world.plan()
        world.plan()
    assert names(plan) == ["b.json"]
    assert plan.ends_ms == {}
    waiting = world.source.look({})
    assert (waiting.unfinished, waiting.unreadable) == (0, 2)
    assert waiting.why == world.source.unreadable[0]
    assert [record.message for record in caplog.records] == ["source.file_cannot_be_read"] * 2
    assert "unpack it" in world.source.unreadable[0]

    world.folder.forbidden.clear()
    del world.folder.files["a.json.zst"]
    plan = world.plan()
    assert names(plan) == ["b.json", "c.json"]
    assert LANE in plan.ends_ms
    assert world.source.unreadable == ()


def test_an_arrival_never_goes_back_with_the_clock() -> None:
    world = World()
    world.drop("a.json")
    first_ms = world.plan().files[0].arrival_ms
    world.ambient.sleep_machine_ms(-HOUR_MS)
    world.drop("b.json")
    assert [file.arrival_ms for file in world.plan().files] == [first_ms, first_ms]
    assert world.source.clock_behind_ms == pytest.approx(HOUR_MS, abs=2_000)
    assert world.next_holder().clock_behind_ms > 0


def test_a_disk_that_is_not_mounted_is_no_empty_folder() -> None:
    world = World()
    world.drop("a.json", "b.json")
    world.read()
    world.drop("c.json")
    world.source.look(world.positions)
    files = dict(world.folder.files)

    world.folder.files.clear()
    world.folder.folder = "mount point"
    for source in (world.source, world.next_holder()):
        world.ambient.pass_ms(LOOK_MS_MIN)
        with pytest.raises(Unavailable, match="mount it"):
            source.look(world.positions)
        assert source.plan(world.positions, size_bytes_max=1).ends_ms == {}

    world.folder.files, world.folder.folder = files, "1"
    assert world.read() == ["c.json"]
    assert world.plan().is_empty


def test_another_folder_with_files_in_it_is_accepted() -> None:
    world = World()
    world.drop("a.json")
    world.read()
    world.folder.folder = "2"
    assert world.plan().is_empty
    world.drop("b.json")
    assert world.read() == ["b.json"]
    world.folder.files.clear()
    assert LANE in world.plan().ends_ms


@pytest.mark.parametrize("is_gone", [True, False], ids=["out of reach", "not there"])
def test_a_folder_that_is_gone_proves_nothing(is_gone: bool) -> None:
    world = World()
    world.plan()
    world.folder.is_gone = is_gone
    world.folder.folder = ""
    world.ambient.pass_ms(LOOK_MS_MIN)
    with pytest.raises(Unavailable, match="mount it"):
        world.source.look({})
    assert world.source.plan({}, size_bytes_max=1).ends_ms == {}


def test_inv2_a_position_beyond_all_numbers_is_corrupt() -> None:
    """New files would get numbers that count as read."""
    world = World()
    world.positions = {LANE: "7"}
    world.drop("a.json")
    with pytest.raises(Corrupt, match="rolled back"):
        world.plan()
    with pytest.raises(Corrupt, match="no position"):
        world.source.look({LANE: "x"})
    with pytest.raises(Corrupt, match="rolled back"):
        world.source.plan({}, size_bytes_max=1, until={LANE: "3"})


def test_a_look_soon_after_another_is_from_memory() -> None:
    world = World()
    world.drop("a.json")
    world.source.look({})
    world.drop("b.json")
    assert world.source.look({}).files == 1
    assert world.folder.scans == 1
    assert world.source.look({LANE: "1"}).files == 0
    assert world.source.look({}, is_fresh=True).files == 2
    world.ambient.pass_ms(LOOK_MS_MIN)
    world.source.look({})
    assert world.folder.scans == 3


def test_what_waits_is_counted_with_its_size_and_age() -> None:
    world = World()
    world.drop("a.json", "b.json")
    world.source.look({})
    first_ms = world.ambient.wall_ns() // 1_000_000
    world.ambient.pass_ms(LOOK_MS_MIN)
    world.drop("c.json")
    waiting = world.source.look({LANE: "1"})
    assert (waiting.files, waiting.size_bytes, waiting.oldest_ms) == (2, 2 * len(LINE), first_ms)


def test_c3_what_vanished_since_the_look_is_left_to_the_next_one() -> None:
    world = World()
    world.drop("a.json", "b.json", "c.json")
    world.source.look({})
    del world.folder.files["b.json"]
    plan = world.source.plan({}, size_bytes_max=10**9)
    assert (names(plan), plan.gaps, plan.has_more) == (["a.json"], (), True)
    world.positions = {LANE: "1"}
    world.source.look(world.positions)  # at once, for it knows that something is wrong
    plan = world.source.plan(world.positions, size_bytes_max=10**9)
    assert names(plan) == ["c.json"]
    (gap,) = plan.gaps
    assert (gap.partition, gap.first, gap.next) == (LANE, "1", "2")
    assert "b.json vanished" in gap.reason


def test_c4_a_lost_file_that_comes_back_is_read() -> None:
    world = World()
    world.drop("a.json")
    world.source.look({})
    lost = world.folder.files.pop("a.json")
    assert world.read() == []
    assert world.positions == {LANE: "1"}
    world.source.settle(world.positions)
    world.folder.files["a.json"] = lost
    assert world.next_holder().partitions() == (LANE,)
    assert world.read() == ["a.json"]
    assert world.plan().is_empty


def test_c4_a_file_that_is_out_of_sight_while_it_is_read_is_not_read_again() -> None:
    world = World()
    world.drop("a.json")
    plan = world.plan()
    hidden = world.folder.files.pop("a.json")
    world.source.look({}, is_fresh=True)
    world.folder.files["a.json"] = hidden
    world.source.confirm(plan)
    world.positions = {LANE: "1"}
    assert world.plan().is_empty


def test_c4_two_instances_of_one_holder_number_nothing_twice() -> None:
    world = World()
    one, other = world.source, world.instance()
    one.look({})
    other.look({})
    world.drop("a.json")
    with pytest.raises(Conflict, match="look again"):
        one.look({}, is_fresh=True)
    other.look({}, is_fresh=True)
    one.look({}, is_fresh=True)
    assert one.look({}).files == other.look({}).files == 1


def test_c7_the_same_file_dropped_again_after_it_was_put_away_is_read_again() -> None:
    for settings in (MOVE, DELETE):
        world = World(settings)
        world.drop("a.json", "b.json", age_ms=0)
        same = world.folder.files["a.json"]
        assert world.read() == ["a.json", "b.json"]
        world.source.settle({LANE: "1"})  # the first of its batch
        assert list(world.folder.files) == ["b.json"]
        world.folder.files["a.json"] = same
        assert world.read() == ["a.json"]
        world.source.settle(world.positions)
        assert world.folder.files == {}


def test_c7_a_move_never_replaces_what_is_in_the_archive() -> None:
    world = World(MOVE)
    for lines in (1, 2, 3):
        world.drop("x/a.json", content=LINE * lines)
        world.read()
        world.source.settle(world.positions)
    assert {path: len(found[0]) // len(LINE) for path, found in world.folder.elsewhere.items()} == {
        "/done/x/a.json": 1,
        "/done/x/a.lane-0-1.json": 2,
        "/done/x/a.lane-0-2.json": 3,
    }


def test_c7_a_file_that_is_replaced_in_the_last_moment_is_put_back() -> None:
    world = World(DELETE)
    world.drop("a.json", "b.json")
    world.read()
    take = world.folder.take

    def replaced_before(path: str, drawer: str, name: str) -> None:
        if path == "a.json":
            world.drop("a.json", content=LINE * 5)
        take(path, drawer, name)
        if path == "a.json":
            world.drop("a.json", content=LINE * 9)  # and its place is taken at once

    with patch.object(world.folder, "take", replaced_before):
        world.source.settle(world.positions)
    assert sorted(world.folder.files) == ["a.json", "a.lane-0-0.json"]
    assert world.folder.drawers == {}
    assert sorted(world.read()) == ["a.json", "a.lane-0-0.json"]


def test_c7_a_file_that_may_not_be_touched_stays_and_is_not_read_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(DELETE)
    world.drop("a.json", "b.json", "c.json")
    world.read()
    world.folder.forbidden.add("b.json")
    with caplog.at_level(logging.WARNING):
        world.source.settle(world.positions)
    assert list(world.folder.files) == ["b.json"]
    assert [record.message for record in caplog.records] == ["source.file_stays"]
    world.folder.forbidden.clear()
    world.next_holder()
    assert world.read() == []


def test_c7_an_archive_that_may_not_be_written_is_tried_again() -> None:
    world = World(MOVE)
    world.drop("a.json", "b.json", "c.json")
    world.read()
    world.folder.forbidden |= {"/done/b.json", "/done/c.json"}
    for _ in range(3):
        world.source.settle(world.positions)
        assert sorted(world.folder.files) == ["b.json", "c.json"]
        assert world.folder.drawers == {}
        assert world.plan().is_empty
    world.folder.forbidden.clear()
    world.next_holder().settle(world.positions)
    assert world.folder.files == {}
    assert sorted(world.folder.elsewhere) == ["/done/a.json", "/done/b.json", "/done/c.json"]


def test_c8_a_folder_in_which_nothing_can_be_changed_costs_no_documents_without_bound() -> None:
    world = World(DELETE)
    world.folder.forbidden.add("")
    with (
        patch.object(away_module, "UNTOUCHED_BATCHES_MAX", 5),
        patch.object(lanes_module, "READ_BATCHES_MAX", 5),
    ):
        for n in range(40):
            world.drop(f"f{n}.json")
            assert world.read() == [f"f{n}.json"]
            world.source.settle(world.positions)
    assert len(world.documents()) <= 9
    world.folder.forbidden.clear()
    world.next_holder()
    assert world.plan().is_empty


def test_c8_kept_files_that_are_gone_are_forgotten() -> None:
    with patch.object(lanes_module, "BATCH_FILES_MAX", 10):
        world = World()
        world.drop(*(f"f{n:03}.json" for n in range(300)))
        same = world.folder.files["f001.json"]
        assert len(world.read()) == 300
        world.source.settle(world.positions)
        for n in range(300):
            if n % 10:
                del world.folder.files[f"f{n:03}.json"]
        for _ in range(3):
            world.ambient.pass_ms(FORGET_MS)
            assert world.plan().is_empty
        lane = world.store.get(f"sources/orders/{LANE}")
        assert lane is not None
        known = lane.body["known"]
        assert isinstance(known, list)
        assert sum(one["count"] for one in known) == 30
        world.folder.files["f001.json"] = same
        world.next_holder()
        assert world.read() == ["f001.json"]


def test_what_was_dealt_with_is_a_gap_for_whoever_asks_for_it_again() -> None:
    world = World(DELETE)
    world.drop("a.json", "b.json", "c.json")
    world.read()
    world.source.settle({LANE: "2"})
    plan = world.source.plan({}, size_bytes_max=1, until={LANE: "3"})
    assert names(plan) == ["c.json"]
    (gap,) = plan.gaps
    assert (gap.first, gap.next) == ("0", "2")
    assert plan.ranges[LANE].next == "3"


@pytest.mark.parametrize("move_to", ["", "done", "/memory", "/memory/done"])
def test_an_archive_inside_the_folder_is_refused(move_to: str) -> None:
    with pytest.raises(Invalid, match="move_to"):
        World(replace(MOVE, move_to=move_to))


def test_c4_another_number_of_lanes_is_refused() -> None:
    """Files would change their lanes, and be read again."""
    world = World()
    world.drop("a.json")
    world.read()
    world.settings = replace(KEEP, lanes=2)
    world.next_holder()
    with pytest.raises(Invalid, match="set lanes to 1"):
        world.source.look({})


def test_a_lane_that_is_none_is_refused() -> None:
    world = World()
    with pytest.raises(Invalid, match="lane-1"):
        FilesSource(KEEP, "orders", ["lane-1"], 1, world.store, world.folder, world.ambient)
