"""From a position of the source to file and row in a real folder, and back."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.ambient import SystemAmbient
from headgate.app.locating import Holding, Locating
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.merges import MergeInput, MergeOutput, MergeRecord, merge_path
from headgate.commits.merges import to_bytes as merge_to_bytes
from headgate.commits.record import (
    Record,
    RecordFile,
    RecordGap,
    RecordRange,
    record_path,
    to_bytes,
)
from headgate.commits.streams import StreamDocument, stream_key
from headgate.engine import EventTime
from headgate.engine.footers import places_of
from headgate.errors import Invalid
from headgate.lake import LakeSettings
from headgate.lake.opening import open_lake
from headgate.landing import StreamSettings
from headgate.periods import DEFAULT_FOLDER, FolderTemplate, Period
from headgate.sources import FilesSettings, KafkaSettings
from headgate.sources.book import Book
from headgate.sources.folder import Entry
from headgate.sources.kafka.document import KafkaDocument, document_key
from headgate.sources.lanes import Shaped
from headgate.store.codec import body_of
from headgate.testing.manual import ManualAmbient, manual_store

FOLDER = FolderTemplate.parse(DEFAULT_FOLDER)
HOURS = ("2026-11-01T13", "2026-11-01T14")
Rows = Sequence[tuple[str, int, int | None]]


class World:
    """Commits of one shard, as nodes leave them."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "lake"
        self.lake = open_lake(LakeSettings(str(self.root)), SystemAmbient())
        self.store = manual_store(ManualAmbient())
        source = KafkaSettings("127.0.0.1:9", ("orders",))
        own = StreamSettings("sales", source, EventTime("json", "$.at"), FOLDER)
        self.streams = {"sales": own}
        self.positions: dict[str, str] = {}
        self.number = 0
        self.put(stream_key("sales"), StreamDocument(1))

    def put(self, key: str, value: object) -> None:
        self.store.create(key, body_of(value))

    def path(self, hour: str, index: int, kind: str = "data", suffix: str = "parquet") -> str:
        name = f"shard0-commit{self.number + 1:010}-{index}.{suffix}"
        if kind == "dead":
            return f"_dead/sales/2026-11-02/{name}"
        below = FOLDER.folder(Period.parse(hour), stream="sales")
        return f"_late/{below}/{name}" if kind == "late" else f"{below}/{name}"

    def write(self, path: str, rows: Rows) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        told = [{"partition": p, "number": n, "line": at} for p, n, at in rows]
        kind = pa.struct([("partition", pa.string()), ("number", pa.int64()), ("line", pa.int64())])
        table = pa.table({"value": ["x"] * len(rows), "_headgate": pa.array(told, kind)})
        pq.write_table(table, file, row_group_size=2)

    def commit(
        self,
        ranges: dict[str, tuple[str, str]],
        *files: tuple[str, str, str, int],
        gaps: tuple[RecordGap, ...] = (),
    ) -> None:
        """`files`: kind, hour, path, rows."""
        self.number += 1
        self.positions |= {name: span[1] for name, span in ranges.items()}
        record = Record(
            "sales", 0, self.number, 1, "n", 1_800_000_000_000, 0,
            {name: RecordRange(*span) for name, span in ranges.items()}, {"data": 1},
            tuple(RecordFile(k, h, "s", path, 1, "sha256:0", rows) for k, h, path, rows in files),
            gaps, positions=dict(self.positions),
        )  # fmt: skip
        self.file(record_path("sales", 0, self.number), to_bytes(record))

    def file(self, path: str, content: bytes) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(content)

    def locating(self) -> Locating:
        checkpoint = Checkpoint(1, 1, self.number, positions=self.positions)
        if self.store.get(checkpoint_key("sales", 0)) is None:
            self.put(checkpoint_key("sales", 0), checkpoint)
        return Locating(self.store, self.lake, self.streams, SystemAmbient())


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = World(tmp_path)
    first, second = (found.path(hour, 0) for hour in HOURS)
    late, dead = found.path(HOURS[0], 0, "late"), found.path("", 0, "dead")
    found.write(first, [("orders/0", n, None) for n in (5, 6, 7)] + [("orders/1", 6, None)])
    found.write(second, [("orders/0", n, None) for n in (8, 9)])
    found.write(late, [("orders/0", 10, None)])
    found.write(dead, [("orders/0", 11, None)])
    found.commit(
        {"orders/0": ("", "13"), "orders/1": ("", "9")},
        ("data", HOURS[0], first, 4),
        ("data", HOURS[1], second, 2),
        ("late", HOURS[0], late, 1),
        ("dead", "", dead, 1),
    )
    found.commit({})
    found.commit(
        {"orders/0": ("13", "20")}, gaps=(RecordGap("orders/0", "13", "20", "they expired"),)
    )
    found.put(document_key("sales"), KafkaDocument(starts={"orders/0": 5}))
    return found


def test_an_offset_is_found_in_one_file_with_its_row(world: World) -> None:
    first = world.path(HOURS[0], 0).replace("commit0000000004", "commit0000000001")

    found = world.locating().locate("sales", "orders/0/7")

    assert (found.state, found.commit, found.hours) == ("landed", "sales/0/1", (HOURS[0],))
    assert found.files == (Holding(first, "data", HOURS[0], 1, 2, ""),)
    other = world.locating().locate("sales", "orders/1/6")
    assert (other.files[0].path, other.files[0].row) == (first, 3)


@pytest.mark.parametrize(
    ("offset", "state"),
    [
        (8, "landed"),
        (10, "late"),
        (11, "dead"),
        (12, "no record"),
        (13, "gap"),
        (19, "gap"),
        (20, "not read yet"),
        (4, "before the start"),
    ],
)
def test_what_became_of_an_offset_is_named(world: World, offset: int, state: str) -> None:
    found = world.locating().locate("sales", f"orders/0/{offset}")

    assert found.state == state
    assert len(found.files) == (1 if state in ("landed", "late", "dead") else 0)
    assert (found.words == "they expired") is (state == "gap")


def test_a_file_that_was_merged_is_found_in_what_it_became(world: World) -> None:
    first = world.locating().locate("sales", "orders/0/7").files[0].path
    folder = first.rpartition("/")[0]
    merged = f"{folder}/merge00001-0.parquet"
    world.write(merged, [("orders/0", 0, None)] * 3 + [("orders/0", n, None) for n in (5, 6, 7)])
    (world.root / first).unlink()
    inputs = (MergeInput(first, 1, "sha256:0", 6),)
    output = MergeOutput("s", merged, 1, "sha256:0", 6, inputs)
    record = MergeRecord("sales", HOURS[0], 1, 1, "n", 0, (output,))
    world.file(merge_path("sales", HOURS[0], 1), merge_to_bytes(record))

    found = world.locating().locate("sales", "orders/0/7")

    (holding,) = found.files
    assert (holding.path, holding.row, holding.merged_from) == (merged, 5, first)
    back = world.locating().origin(str(world.root / merged), ["clicks", "sales"])
    assert [one.commit for one in back.commits] == ["sales/0/1"]
    assert back.merge == merge_path("sales", HOURS[0], 1)


def test_a_file_leads_back_to_its_commit_and_its_ranges(world: World) -> None:
    path = world.locating().locate("sales", "orders/0/11").files[0].path

    found = world.locating().origin(path, ["sales"])

    assert (found.stream, found.kind, found.rows) == ("sales", "dead", 1)
    (commit,) = found.commits
    assert (commit.commit, commit.ranges["orders/0"]) == ("sales/0/1", RecordRange("", "13"))
    for wrong in ("x/y.parquet", f"{path}x", path.replace("commit0000000001", "commit0000000002")):
        with pytest.raises(Invalid, match="no commit and no merge"):
            world.locating().origin(wrong, ["sales"])


def test_letters_that_were_driven_in_again_are_found_where_they_are(world: World) -> None:
    path = world.locating().locate("sales", "orders/0/11").files[0].path
    moved = path.replace("_dead/", "_redriven/", 1)
    (world.root / moved).parent.mkdir(parents=True)
    (world.root / path).rename(world.root / moved)

    assert world.locating().locate("sales", "orders/0/11").files[0].path == moved
    assert world.locating().origin(moved, ["sales"]).commits[0].commit == "sales/0/1"
    (world.root / moved).unlink()
    (gone,) = world.locating().locate("sales", "orders/0/11").files
    assert (gone.path, gone.is_there, gone.rows) == (path, False, None)


def test_an_unknown_position_is_told_with_the_nearest(world: World) -> None:
    for what in ("orders/2/7", "order/0/7", "orders/0/x", "7"):
        with pytest.raises(Invalid, match=r"the nearest source partition is 'orders/"):
            world.locating().locate("sales", what)


def test_of_files_a_line_is_found_by_lane_number_and_line_or_by_path(tmp_path: Path) -> None:
    world = World(tmp_path)
    source = FilesSettings("/in")
    world.streams["sales"] = replace(world.streams["sales"], source=source)
    book = Book(world.store, "sales", "lane-0", 1, SystemAmbient())
    book.open()
    book.number([Shaped(Entry(name, 1, 1), ()) for name in ("a.json", "b.json")])
    one, two = world.path(HOURS[0], 0), world.path(HOURS[1], 0)
    world.write(one, [("lane-0", 0, 1), ("lane-0", 1, 1), ("lane-0", 1, 3)])
    world.write(two, [("lane-0", 1, 2)])
    files = (("data", HOURS[0], one, 3), ("data", HOURS[1], two, 1))
    world.commit({"lane-0": ("", "2")}, *files)

    whole = world.locating().locate("sales", "/in/b.json")
    line = world.locating().locate("sales", "lane-0/1:2")

    assert (whole.partition, whole.position) == ("lane-0", "1")
    assert [(h.path, h.rows, h.row) for h in whole.files] == [(one, 2, 1), (two, 1, 0)]
    assert [(h.path, h.row) for h in line.files] == [(two, 0)]
    with pytest.raises(Invalid):
        world.locating().locate("sales", "/in/c.json")


def test_of_text_and_json_the_files_of_the_commit_are_named_and_not_opened(tmp_path: Path) -> None:
    world = World(tmp_path)
    paths = [world.path(hour, 0, suffix="json") for hour in HOURS]
    for path in paths:
        world.file(path, json.dumps({}).encode())
    files = [("data", hour, path, 1) for hour, path in zip(HOURS, paths, strict=True)]
    world.commit({"orders/0": ("", "2")}, *files)

    found = world.locating().locate("sales", "orders/0/1")

    assert [(one.path, one.rows) for one in found.files] == [(path, None) for path in paths]
    assert found.hours == HOURS
    assert "in one of these files" in found.words


def test_row_groups_that_cannot_have_it_are_not_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "x.parquet"
    world.write(path, [("orders/0", n, None) for n in range(20)])
    groups: list[int] = []
    behind = pq.ParquetFile.read_row_group

    def read(self: pq.ParquetFile, group: int, columns: list[str]) -> pa.Table:
        groups.append(group)
        return behind(self, group, columns)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", read)
    wanted: dict[str, str | int] = {"partition": "orders/0", "number": 13}

    assert places_of(str(world.root / path), "_headgate", wanted) == (1, 13)
    assert groups == [6]
