"""A published file goes to another name, and only that file."""

import pytest

from headgate.errors import Unavailable
from headgate.lake.memory import MemoryLake
from headgate.lake.relocation import Relocation, relocate


@pytest.fixture
def lake() -> MemoryLake:
    lake = MemoryLake()
    lake.put("a/one", b"1")
    return lake


def moved(lake: MemoryLake) -> Relocation:
    facts = lake.facts("a/one")
    assert facts is not None
    return Relocation("a/one", "b/one", facts)


def test_it_is_there_and_not_here_any_more(lake: MemoryLake) -> None:
    relocate(lake, moved(lake))
    assert (lake.read("a/one"), lake.read("b/one")) == (None, b"1")


def test_cut_in_half_it_is_ended(lake: MemoryLake) -> None:
    lake.put("b/one", b"1")
    relocate(lake, moved(lake))
    assert (lake.read("a/one"), lake.read("b/one")) == (None, b"1")


def test_another_file_under_its_name_stays(lake: MemoryLake) -> None:
    move = moved(lake)
    lake.put("a/one", b"2")
    relocate(lake, move)
    assert (lake.read("a/one"), lake.read("b/one")) == (b"2", None)


def test_nothing_is_replaced(lake: MemoryLake) -> None:
    lake.put("b/one", b"3")
    with pytest.raises(Unavailable, match="still there"):
        relocate(lake, moved(lake))
    assert (lake.read("a/one"), lake.read("b/one")) == (b"1", b"3")
