"""What the memory lake shows to tests beside the protocol."""

from headgate.lake.memory import MemoryLake
from headgate.lake.pages import entries_of
from headgate.lake.paths import STAGING


def test_an_engines_file_is_there_and_not_sealed() -> None:
    lake = MemoryLake()
    lake.put("b/f", b"f")
    lake.put("a/f", b"g")
    assert lake.files() == {"a/f": b"g", "b/f": b"f"}
    assert list(lake.files()) == ["a/f", "b/f"]
    lake.power_cut()
    assert lake.files() == {}


def test_a_move_that_a_power_cut_undid_by_half_can_be_finished() -> None:
    lake = MemoryLake()
    lake.stage(f"{STAGING}/f", b"f")
    lake.publish(f"{STAGING}/f", "day/f")
    lake.settle(["day"])
    lake.power_cut()
    assert list(lake.files()) == [f"{STAGING}/f", "day/f"]
    lake.publish(f"{STAGING}/f", "day/f")
    assert list(lake.files()) == ["day/f"]


def test_pages_are_followed_to_the_end() -> None:
    lake = MemoryLake()
    for n in range(10):
        lake.put(f"x/{n}", b"")
    found = [entry.path for entry in entries_of(lake, "x", after="3", limit=2)]
    assert found == [f"x/{n}" for n in range(4, 10)]
