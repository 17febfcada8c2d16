"""Dead letters below a lake that is no disk, read like files that somebody dropped."""

import gzip

import pytest

from headgate.app.lake_folder import LakeFolder
from headgate.app.redriving import redriven_letters
from headgate.errors import Conflict, Invalid
from headgate.lake import LakeSettings
from headgate.lake.memory import MemoryLake
from headgate.sources import Plan
from headgate.sources.files import FilesSource
from headgate.testing.manual import ManualAmbient, manual_store

STREAM, LANE = "a b", "redrive-0"
BELOW = "_redrive/a%20b"
LETTER = "2026-11-02/shard0-commit0000000001-0.json"
DRAWER = ".headgate-1-0"


@pytest.fixture
def lake() -> MemoryLake:
    return MemoryLake()


@pytest.fixture
def folder(lake: MemoryLake) -> LakeFolder:
    return LakeFolder(lake, BELOW)


def source_of(lake: MemoryLake) -> FilesSource:
    settings, folder = redriven_letters(LakeSettings("s3://b/lake"), lake, STREAM)
    ambient = ManualAmbient()
    return FilesSource(settings, STREAM, [LANE], 1, manual_store(ambient), folder, ambient)


def planned(source: FilesSource, position: str = "") -> Plan:
    positions = {LANE: position} if position else {}
    source.look(positions, is_fresh=True)
    return source.plan(positions, size_bytes_max=1_000_000)


def test_a_letter_is_read_once_and_then_lies_among_those_that_were(lake: MemoryLake) -> None:
    source = source_of(lake)
    assert planned(source).is_empty
    lake.put(f"{BELOW}/{LETTER}", b"{}")

    plan = planned(source)
    source.confirm(plan)
    source.settle({LANE: "1"})

    assert [file.path for file in plan.files] == [f"{lake.url}/{BELOW}/{LETTER}"]
    assert lake.read(f"{BELOW}/{LETTER}") is None
    assert lake.read(f"_redriven/a%20b/{LETTER}") == b"{}"
    after = planned(source, "1")
    assert after.is_empty
    assert LANE in after.ends_ms


def test_a_move_that_was_cut_in_half_is_ended_by_the_next_holder(lake: MemoryLake) -> None:
    source = source_of(lake)
    lake.put(f"{BELOW}/{LETTER}", b"{}")
    planned(source)
    lake.put(f"_redriven/a%20b/{LETTER}", b"{}")  # copied, and not deleted yet

    source.settle({LANE: "1"})

    assert lake.read(f"{BELOW}/{LETTER}") is None
    assert lake.read(f"_redriven/a%20b/{LETTER}") == b"{}"
    assert planned(source, "1").is_empty


def test_a_letter_that_changed_while_it_was_read_is_not_committed(lake: MemoryLake) -> None:
    source = source_of(lake)
    lake.put(f"{BELOW}/{LETTER}", b"{1}")
    plan = planned(source)
    lake.put(f"{BELOW}/{LETTER}", b"{2}")

    with pytest.raises(Conflict, match="changed or vanished"):
        source.confirm(plan)


def test_a_file_of_another_checksum_is_another_file(lake: MemoryLake, folder: LakeFolder) -> None:
    lake.put(f"{BELOW}/{LETTER}", b"{1}")
    before = folder.stat(LETTER)
    lake.put(f"{BELOW}/{LETTER}", b"{2}")
    assert before is not None
    assert folder.stat(LETTER) not in (None, before)
    assert list(folder.scan()) == [folder.stat(LETTER)]


def test_without_a_file_there_is_no_folder_and_notes_beside_them_are_no_letters(
    lake: MemoryLake, folder: LakeFolder
) -> None:
    assert folder.ident() == ""
    lake.put(f"{BELOW}/2026-11-02/.to-1", b"")
    assert (folder.ident(), list(folder.scan())) == ("", [])
    lake.put(f"{BELOW}/{LETTER}", b"{}")
    assert folder.ident() != ""


def test_what_was_taken_goes_only_as_it_was_taken(lake: MemoryLake, folder: LakeFolder) -> None:
    lake.put(f"{BELOW}/{LETTER}", b"{1}")
    folder.open_drawer(DRAWER)
    folder.take(LETTER, DRAWER, "0")
    lake.put(f"{BELOW}/{LETTER}", b"{2}")  # somebody dropped another one

    folder.put(DRAWER, "0", f"{lake.url}/_redriven/a%20b/{LETTER}")

    assert lake.read(f"{BELOW}/{LETTER}") == b"{2}"
    assert folder.names(DRAWER) == ()


def test_nothing_is_put_onto_another_file_and_what_is_put_back_never_left(
    lake: MemoryLake, folder: LakeFolder
) -> None:
    lake.put(f"{BELOW}/{LETTER}", b"{1}")
    lake.put(f"_redriven/{LETTER}", b"{2}")
    folder.open_drawer(DRAWER)
    folder.take(LETTER, DRAWER, "0")
    with pytest.raises(Conflict):
        folder.put(DRAWER, "0", f"{lake.url}/_redriven/{LETTER}")
    with pytest.raises(Conflict):
        folder.close_drawer(DRAWER)

    folder.put(DRAWER, "0", LETTER)

    folder.close_drawer(DRAWER)
    assert lake.read(f"{BELOW}/{LETTER}") == b"{1}"


def test_what_is_to_be_deleted_is_deleted(lake: MemoryLake, folder: LakeFolder) -> None:
    lake.put(f"{BELOW}/{LETTER}", b"{1}")
    folder.open_drawer(DRAWER)
    folder.take(LETTER, DRAWER, "0")
    folder.remove(DRAWER, "0")
    assert lake.read(f"{BELOW}/{LETTER}") is None


def test_the_first_line_also_of_gzip(lake: MemoryLake, folder: LakeFolder) -> None:
    lake.put(f"{BELOW}/a.json", b"one\r\ntwo\n")
    lake.put(f"{BELOW}/b.json.gz", gzip.compress(b"one\ntwo\n"))
    lake.put(f"{BELOW}/c.json.gz", b"one\n")
    assert folder.head("a.json") == folder.head("b.json.gz") == b"one"
    with pytest.raises(Invalid, match="cannot be read"):
        folder.head("c.json.gz")
