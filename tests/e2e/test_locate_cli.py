"""From a position to a file and back, and what the next round would do: as processes, on a world
that is made by hand."""

import json
from pathlib import Path

import pytest

from headgate.ambient import SystemAmbient
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.record import (
    Record,
    RecordFile,
    RecordGap,
    RecordRange,
    record_path,
    to_bytes,
)
from headgate.sources.book import Book
from headgate.sources.folder import Entry
from headgate.sources.lanes import Shaped
from tests.e2e.test_landing_cli import World, documented

FILE = "2026-11-01/13/orders/data/shard0-commit0000000001-0.json"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """One commit of two files of the source; the second of these had vanished."""
    found = World(tmp_path)
    found.starts()
    record = Record(
        "orders", 0, 1, 3, "node-1", 1_800_000_000_000, 1,
        {"lane-0": RecordRange("", "2")}, {"data": 6},
        (RecordFile("data", "2026-11-01T13", "s", FILE, 3, "sha256:0", 6),),
        (RecordGap("lane-0", "1", "2", "b.json vanished before it was read"),),
        positions={"lane-0": "2"},
    )  # fmt: skip
    for path, content in ((FILE, b"{}\n"), (record_path("orders", 0, 1), to_bytes(record))):
        (tmp_path / "lake" / path).parent.mkdir(parents=True)
        (tmp_path / "lake" / path).write_bytes(content)
    checkpoint = Checkpoint(3, 2, 1, positions={"lane-0": "2"})
    found.put(checkpoint_key("orders", 0), checkpoint)
    return found


def test_a_record_is_found_in_its_file_and_the_file_leads_back(world: World) -> None:
    told = world.run("locate", "orders", "lane-0/0:1")
    body = json.loads(world.run("locate", "orders", "lane-0/0:1", "--json").stdout)
    back = json.loads(world.run("locate", FILE, "--json").stdout)

    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines() == [
        "lane-0 0:1 of orders: landed",
        "  commit   orders/0/1, made 2027-01-15T08:00:00Z",
        f"  file     {FILE}",
        "  hour     2026-11-01T13",
    ]
    assert set(body) == documented("#### `locate --json`") - {
        *("path", "kind", "hour", "rows", "row", "merged_from", "is_there", "landed", "late"),
        *("dead", "gap"),
    }
    assert body["files"][0]["path"] == FILE
    assert set(back) == documented("#### `locate FILE --json`") - {
        *("commit", "made_ms", "ranges", "first", "next", "sources"),
    }
    assert back["commits"][0]["ranges"] == {"lane-0": {"first": "", "next": "2"}}
    for path in (str(world.folder / "lake" / FILE), f"lake/{FILE}"):
        assert "orders/0/1" in world.run("locate", path).stdout, path


def test_a_file_of_the_lake_leads_back_to_the_files_of_the_source(world: World) -> None:
    with world.store() as store:
        book = Book(store, "orders", "lane-0", 3, SystemAmbient())
        book.open()
        book.number([Shaped(Entry(name, 1, 1), ()) for name in ("a.json", "b.json", "c.json")])
    source = str(world.folder / "incoming/a.json")

    back = json.loads(world.run("locate", FILE, "--json").stdout)

    assert back["commits"][0]["sources"] == [source], "b.json was a gap, and c.json came later"
    assert f"\n  source   {source}\n" in world.run("locate", FILE).stdout
    assert f"\n  source   {source}\n" in world.run("locate", "orders", "lane-0/0").stdout
    assert "lane-0 0 of orders: landed" in world.run("locate", "orders", "incoming/a.json").stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("orders", "lane-0/1"), 1, "b.json vanished before it was read"),
        (("orders", "lane-0/2"), 1, "the next one to read is 2"),
        (("orders", "lane-1/0"), 2, "the nearest source partition is 'lane-0'"),
        (("ordres", "lane-0/0"), 2, "the nearest is 'orders'"),
        (("nothing.json",), 2, "no commit and no merge of a known stream has published it"),
    ],
)
def test_what_is_not_in_the_lake_is_told_with_its_reason(
    world: World, words: tuple[str, ...], code: int, said: str
) -> None:
    done = world.run("locate", *words)

    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done.stdout


def test_a_plan_of_files_numbers_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.starts()
    before = sorted(str(one) for one in world.folder.rglob("*"))
    (world.folder / "incoming" / "c.json").write_text('{"at": 1}\n', "utf-8")
    (world.folder / "incoming" / "d.json").write_text('{"at": 1}\n', "utf-8")

    told = world.run("plan", "orders")
    done = world.run("plan", "--json")

    assert (told.returncode, done.returncode) == (0, 0), done.stderr
    (round_,) = json.loads(done.stdout)["rounds"]
    assert round_["waiting_files"] == 2
    added = {str(world.folder / "incoming" / name) for name in ("c.json", "d.json")}
    assert sorted({*map(str, world.folder.rglob("*"))} - added) == before


def test_a_folder_is_looked_at_with_a_line_of_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    (world.folder / "incoming" / "c.json").write_text('{"at": 1, "x": "\x1b[2J"}\n', "utf-8")

    done = world.run("doctor", "source", "orders")
    (world.folder / "incoming" / "c.json").unlink()
    (world.folder / "incoming").rmdir()
    gone = world.run("doctor", "source", "orders")

    assert r"\u001b[2J" in done.stdout
    assert "\x1b" not in done.stdout
    assert (gone.returncode, "mkdir -p" in gone.stdout) == (1, True)
