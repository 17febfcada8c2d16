"""A lake belongs to one store, and both say so."""

import json
from collections.abc import Sequence

import pytest

from headgate.errors import Halted, Unavailable
from headgate.lake import READ_BYTES_MAX
from headgate.lake.memory import MemoryLake
from headgate.landing.lake_mark import KEY, PATH, LakeMark, check_lake, check_mark
from headgate.store.changes import read
from headgate.testing.manual import ManualAmbient, manual_store

AMBIENT = ManualAmbient()


def test_they_meet_once_and_know_each_other_afterwards() -> None:
    store, lake = manual_store(AMBIENT), MemoryLake()
    first = check_mark(store, lake, AMBIENT)
    assert json.loads(lake.files()[PATH])["id"] == first
    assert check_mark(store, lake, AMBIENT) == first
    found = read(store, KEY, LakeMark)
    assert found is not None
    assert found.value == LakeMark(first, is_marked=True)


def test_an_empty_folder_in_its_place_takes_nothing() -> None:
    """A disk that is not mounted: what landed there would vanish behind it."""
    store = manual_store(AMBIENT)
    check_mark(store, MemoryLake(), AMBIENT)
    with pytest.raises(Unavailable, match="is a disk not mounted"):
        check_mark(store, MemoryLake(), AMBIENT)


def test_another_store_is_refused() -> None:
    lake = MemoryLake()
    check_mark(manual_store(AMBIENT), lake, AMBIENT)
    with pytest.raises(Halted, match="belongs to another installation"):
        check_mark(manual_store(AMBIENT), lake, AMBIENT)


def test_a_mark_that_somebody_left_unsettled_outlives_a_power_cut() -> None:
    """Who published it heard no answer; whoever goes on makes it last before the store says so."""
    store, lake = manual_store(AMBIENT), MemoryLake()

    class Unheard(MemoryLake):
        def settle(self, folders: Sequence[str]) -> None:
            raise Unavailable(f"{folders}: the answer was lost")

    lake.__class__ = Unheard
    with pytest.raises(Unavailable):
        check_mark(store, lake, AMBIENT)
    lake.__class__ = MemoryLake
    first = check_mark(store, lake, AMBIENT)

    lake.power_cut()

    assert check_mark(store, lake, AMBIENT) == first


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"id": "x"}'])
def test_a_strange_mark_is_refused(raw: bytes) -> None:
    lake = MemoryLake()
    lake.put(PATH, raw)
    with pytest.raises(Halted, match="belongs to another installation"):
        check_lake(lake, "mine")


def test_a_neighbour_who_marks_them_meanwhile_is_no_stranger() -> None:
    store = manual_store(AMBIENT)

    class Raced(MemoryLake):
        is_raced = False

        def read(self, path: str, size_bytes_max: int = READ_BYTES_MAX) -> bytes | None:
            if not self.is_raced:
                self.is_raced = True
                check_mark(store, self, AMBIENT)
            return super().read(path, size_bytes_max)

    lake = Raced()
    assert check_mark(store, lake, AMBIENT) == json.loads(lake.files()[PATH])["id"]
