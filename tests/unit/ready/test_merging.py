"""Small files of an hour, merged by the root's holder before its flag: in one thread, in memory."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from headgate.commits.certificate import FLAG
from headgate.commits.merges import MERGES, merge_path, read_merge
from headgate.commits.roots import Merging, RootDocument, RootJournal
from headgate.engine.merger import Merged, MergeJob
from headgate.errors import Corrupt, Halted
from headgate.lake.ledger import LEDGER, Ledger, Line, decoded
from headgate.lake.memory import MemoryLake
from headgate.ready import MERGE_TRIES_MAX
from headgate.ready.grouping import groups_of
from headgate.ready.merging import Attempt, Wanted, carry_out_merge, prepare
from headgate.ready.work import MERGE_AGAIN_MS, RootTools, RootWork
from headgate.store.codec import body_of
from headgate.testing.blend import Blend
from headgate.testing.faults import Call, Crashed
from tests.crash.ready_flows import Merge, hold, let_go, wish_withdrawn
from tests.crash.ready_world import Process, World, hour, run, settings_of
from tests.unit.ready.test_grouping import file

OF = hour(23)
FLAGS = [f"2027-01-15/23/{name}/{at}{FLAG}" for name in ("bids", "orders") for at in ("", "data/")]


def lines(world: World, what: str) -> list[Line]:
    files = [raw for path, raw in world.lake.files().items() if path.startswith(LEDGER)]
    found = [decoded(raw) for file in files for raw in file.splitlines()]
    return list({line.id: line for line in found if line and line.what == what}.values())


def names(world: World) -> list[str]:
    return [path.rpartition("/")[2] for path in world.data() if "/orders/" in path]


def of_streams(world: World) -> list[str]:
    return [path for path in world.flags() if path in FLAGS]


def test_inv1_each_merged_file_is_named_by_a_record_with_its_inputs_and_their_rows() -> None:
    world = Merge().fresh()
    before = world.data()
    run(world)
    record = read_merge(world.lake, "orders", str(OF), 1)
    assert record is not None
    assert [[one.rows for one in output.inputs] for output in record.outputs] == [[3, 2], [3, 2]]
    for output in record.outputs:
        assert world.lake.facts(output.published) == output.facts
        joined = b"".join(before[one.path] for one in output.inputs)
        assert world.data()[output.published] == joined
    assert [line.subject for line in lines(world, "files.merged")] == [f"{OF}/orders"]


def test_a_stream_that_is_not_to_be_merged_stays_as_it_landed() -> None:
    world = Merge().fresh()
    world.settings = settings_of("orders", "bids")
    before = world.data()
    run(world)
    assert world.data() == before
    assert of_streams(world) == sorted(FLAGS)
    assert world.merger.jobs == 0


def test_the_journal_of_a_merge_is_small_however_many_files_there_are() -> None:
    lake = MemoryLake()
    files = []
    for number in range(3_000):
        path = file(number, 1, suffix="json").published
        lake.put(path, b"\n")
        facts = lake.facts(path)
        assert facts is not None
        files.append(replace(file(number, 1, suffix="json"), checksum=facts.checksum))
    wanted = Wanted("orders", OF, groups_of(files, 100))
    attempt = Attempt("_headgate/staging/_ready/x/1-a", 1, "node", 0)

    journal = prepare(lake, Blend(lake), wanted, attempt)

    assert len(json.dumps(body_of(RootDocument(journal=journal)))) < 2_000
    carry_out_merge(lake, journal)
    data = [path for path in lake.files() if not path.startswith("_headgate")]
    assert len(data) == len(wanted.groups) == 30


def test_a_merge_that_fails_is_tried_three_times_and_then_the_hour_is_flagged_as_it_is() -> None:
    world = Merge().fresh()
    before = world.data()
    world.merger.fails = "out of memory"
    process = Process(world)
    process.run()
    assert of_streams(world) == [one for one in sorted(FLAGS) if "bids" in one]
    assert world.root().merging == {"orders": Merging(str(OF), 1, "out of memory")}
    process.run()
    assert world.merger.jobs == 1  # not before its time
    for _ in range(MERGE_TRIES_MAX - 1):
        world.ambient.pass_ms(MERGE_AGAIN_MS)
        process.run()

    assert world.merger.jobs == MERGE_TRIES_MAX
    assert of_streams(world) == sorted(FLAGS)
    assert world.data() == before
    assert [one.path for one in world.certificate("orders", OF).files] == [
        path for path in before if "/orders/" in path
    ]
    assert world.root().merging == {"orders": Merging(str(OF), 3, "out of memory")}
    (line,) = lines(world, "merge.given_up")
    assert "out of memory" in line.words
    assert world.state()["staged"] == []


class MergeKills:
    """Whoever merges is dead."""

    def around(self, call: Call, act: Callable[[], object]) -> object:
        if call.method == "merge":
            raise Crashed(str(call))
        return act()


def test_a_merge_that_takes_its_node_down_each_time_comes_to_an_end() -> None:
    world = Merge().fresh()
    for _ in range(MERGE_TRIES_MAX):
        with pytest.raises(Crashed):
            Process(world, MergeKills()).run()
    run(world)
    assert of_streams(world) == sorted(FLAGS)
    (line,) = lines(world, "merge.given_up")
    assert "ended in the middle" in line.words


def test_a_node_without_a_merger_says_so() -> None:
    world = Merge().fresh()
    process = Process(world)
    tools = RootTools(
        world.store,
        world.lake,
        Ledger(world.lake, "node", world.ambient),
        world.ambient,
        lambda: world.ambient.wall_ns() // 1_000_000,
    )
    process.work = RootWork(process.held, world.settings, tools)
    process.run()
    assert "no engine that merges" in world.root().merging["orders"].why


def test_a_node_that_drains_begins_no_merge() -> None:
    world = Merge().fresh()
    process = Process(world)
    process.held.is_draining = True
    process.run()
    assert (world.merger.jobs, world.root().merging) == (0, {})
    run(world)
    assert names(world)[0] == "merge00001-0.json"


def test_the_next_hour_that_is_merged_takes_the_trouble_away() -> None:
    world = Merge().fresh()
    world.merger.fails = "out of memory"
    for _ in range(MERGE_TRIES_MAX + 1):
        run(world)
    world.merger.fails = ""
    for rows in (1, 2):
        world.land("orders", hour(24), rows)
    for stream in ("orders", "bids"):
        world.reach(stream, hour(25))
    run(world)
    assert world.root().merging == {}
    assert [file.rows for file in world.certificate("orders", hour(24)).files] == [3]


def test_an_hour_that_is_held_back_is_not_merged() -> None:
    world = Merge().fresh()
    hold(world, "orders", 23)
    run(world)
    assert world.merger.jobs == 0
    let_go(world, "orders", 23)
    run(world)
    assert world.merger.jobs == 1


def test_settings_that_change_after_the_merge_change_no_certificate() -> None:
    world = Merge().fresh()
    flag = f"2027-01-15/23/orders/{FLAG}"
    with pytest.raises(Crashed):
        Process(world, CrashBefore(flag)).run()
    assert names(world)[0] == "merge00001-0.json"
    world.settings = settings_of("orders", "bids")
    run(world)
    found = world.certificate("orders", OF)
    assert {file.path for file in found.files} == {
        path for path in world.data() if "orders" in path
    }


class CrashBefore:
    """Before what is staged for that path is journaled."""

    def __init__(self, path: str) -> None:
        self._path = path

    def around(self, call: Call, act: Callable[[], object]) -> object:
        if call.method == "replace" and self._path in str(call.args):
            raise Crashed(str(call))
        return act()


def test_the_next_generation_has_the_merged_files() -> None:
    world = Merge().fresh()
    run(world)
    first = world.certificate("orders", OF)
    wish_withdrawn(world, "orders", 23)
    run(world)
    second = world.certificate("orders", OF)
    assert (second.generation, second.files) == (2, first.files)
    assert world.merger.jobs == 1


@pytest.mark.parametrize("harm", ["gone", "changed"])
def test_a_small_file_that_is_damaged_is_not_merged_and_not_vouched_for(harm: str) -> None:
    world = Merge().fresh()
    path = next(path for path in world.data() if "/orders/" in path)
    facts = world.lake.facts(path)
    assert facts is not None
    world.lake.remove(path, facts)
    if harm == "changed":
        world.lake.put(path, b"x" * facts.size_bytes)
    for _ in range(MERGE_TRIES_MAX + 1):
        run(world)
    found = world.certificate("orders", OF)
    assert path in {file.path for file in found.files}
    assert not [name for name in names(world) if name.startswith("merge")]
    assert path in world.root().merging["orders"].why


def test_a_file_of_somebody_else_with_the_name_of_an_output_stays_and_nothing_is_merged() -> None:
    world = Merge().fresh()
    theirs = "2027-01-15/23/orders/data/merge00001-1.json"
    world.lake.put(theirs, b"theirs")
    for _ in range(MERGE_TRIES_MAX + 1):
        run(world)
    assert world.data()[theirs] == b"theirs"
    assert world.merger.jobs == 0
    assert of_streams(world) == sorted(FLAGS)


def test_outputs_lie_in_the_folders_of_their_inputs_and_formats_are_kept_apart() -> None:
    lake = MemoryLake()
    files = []
    for number, (folder, suffix) in enumerate(
        [("h/0", "txt"), ("h/1", "parquet"), ("h/0", "txt"), ("h/1", "parquet")]
    ):
        one = file(number, 2, folder, suffix)
        lake.put(one.published, b"%d\n" % number)
        facts = lake.facts(one.published)
        assert facts is not None
        files.append(replace(one, checksum=facts.checksum))
    merger = Blend(lake)
    wanted = Wanted("orders", OF, groups_of(files, 100))
    attempt = Attempt("_headgate/staging/_ready/x/1-a", 1, "node", 0)
    carry_out_merge(lake, prepare(lake, merger, wanted, attempt))
    data = {path: raw for path, raw in lake.files().items() if path.startswith("h/")}
    assert data == {"h/0/merge00001-0.txt": b"0\n2\n", "h/1/merge00001-1.parquet": b"1\n3\n"}
    assert merger.jobs == 2


def prepared() -> tuple[World, RootJournal]:
    """A merge that is journaled, by hand, and not carried out."""
    world = Merge().fresh()
    with pytest.raises(Crashed):
        Process(world, StopAtRecord()).run()
    journal = world.root().journal
    assert journal is not None
    assert journal.kind == "merge"
    return world, journal


class StopAtRecord:
    def around(self, call: Call, act: Callable[[], object]) -> object:
        if call.method == "publish" and MERGES in str(call.args):
            raise Crashed(str(call))
        return act()


def test_nothing_is_removed_while_a_merged_file_is_missing() -> None:
    world, journal = prepared()
    before = world.data()
    staged = next(path for path in world.lake.files() if path.endswith("part-00001"))
    facts = world.lake.facts(staged)
    assert facts is not None
    world.lake.remove(staged, facts)
    with pytest.raises(Halted, match=r"merge00001-1\.json: is not published"):
        carry_out_merge(world.lake, journal)
    assert before.items() <= world.data().items()


def test_whoever_wakes_up_after_the_merged_files_were_rightly_removed_does_nothing() -> None:
    world, journal = prepared()
    run(world)
    for path in [path for path in world.data() if "merge0" in path]:
        facts = world.lake.facts(path)
        assert facts is not None
        world.lake.remove(path, facts)
    left = world.data()
    carry_out_merge(world.lake, journal)
    assert world.data() == left


def test_another_file_under_the_name_of_a_small_one_is_left_alone() -> None:
    world, journal = prepared()
    path = next(path for path in world.data() if "/orders/" in path)
    facts = world.lake.facts(path)
    assert facts is not None
    world.lake.remove(path, facts)
    world.lake.put(path, b"another")
    carry_out_merge(world.lake, journal)
    assert world.data()[path] == b"another"


@pytest.mark.parametrize("when", ["before it is read", "while it is read"])
def test_inv6_a_small_file_that_somebody_changed_gets_no_new_checksum(when: str) -> None:
    """Else the merged file would vouch for what nobody landed."""
    lake = MemoryLake()
    files = []
    for number in range(2):
        path = file(number, 2, suffix="json").published
        lake.put(path, b"%d\n" % number)
        facts = lake.facts(path)
        assert facts is not None
        files.append(replace(file(number, 2, suffix="json"), checksum=facts.checksum))

    class Meddled(Blend):
        def merge(self, job: MergeJob) -> tuple[Merged, ...]:
            found = super().merge(job)
            put(files[1].published, b"x\n")
            return found

    def put(path: str, content: bytes) -> None:
        facts = lake.facts(path)
        assert facts is not None
        lake.remove(path, facts)
        lake.put(path, content)

    if when == "before it is read":
        put(files[1].published, b"x\n")
    merger = Blend(lake) if when == "before it is read" else Meddled(lake)
    wanted = Wanted("orders", OF, groups_of(files, 100))
    attempt = Attempt("_headgate/staging/_ready/x/1-a", 1, "node", 0)
    with pytest.raises(Corrupt, match="is not what its commit record says"):
        prepare(lake, merger, wanted, attempt)


def test_a_merge_record_that_was_changed_removes_nothing() -> None:
    world, journal = prepared()
    before = world.data()
    world.lake.stage(journal.moves[0].staged, b"{}")
    with pytest.raises(Corrupt, match="is not the merge record"):
        carry_out_merge(world.lake, journal)
    world.lake.remove_folder(journal.folder)
    with pytest.raises(Halted, match="what was staged for it is gone"):
        carry_out_merge(world.lake, journal)
    assert world.data() == before


def test_an_hour_gets_no_flag_while_a_merged_file_of_it_is_gone() -> None:
    world = Merge().fresh()
    with pytest.raises(Crashed):
        Process(world, CrashBefore(f"2027-01-15/23/orders/{FLAG}")).run()
    path = next(path for path in world.data() if "merge0" in path)
    facts = world.lake.facts(path)
    assert facts is not None
    world.lake.remove(path, facts)
    run(world)
    assert of_streams(world) == [one for one in sorted(FLAGS) if "bids" in one]
    assert merge_path("orders", str(OF), 1) in world.root().troubles["orders"]
