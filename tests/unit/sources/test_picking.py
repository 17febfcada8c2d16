"""Picking: what is read next. Values in, values out."""

from hypothesis import given
from hypothesis import strategies as st

from headgate.sources.folder import Entry
from headgate.sources.picking import PLAN_FILES_MAX, Candidate, pick


def waiting(*sizes: int, arrival_ms: int = 0, columns: tuple[str, ...] = ()) -> list[Candidate]:
    return [
        Candidate(n, n, Entry(f"f{n}", size, 0), arrival_ms, columns, is_lost=False)
        for n, size in enumerate(sizes)
    ]


def counts(picked: dict[str, list[Candidate]]) -> dict[str, int]:
    return {lane: len(files) for lane, files in picked.items()}


def test_from_the_front_until_it_is_enough() -> None:
    assert counts(pick({"a": waiting(4, 4, 4)}, 8)) == {"a": 2}


def test_one_that_is_too_large_is_read_alone() -> None:
    assert counts(pick({"a": waiting(100, 1)}, 8)) == {"a": 1}
    assert counts(pick({"a": waiting(1, 100)}, 8)) == {"a": 1}


def test_lanes_are_read_evenly() -> None:
    found = pick({"a": waiting(*[1] * 50), "b": waiting(*[2] * 50), "c": waiting(1)}, 41)
    assert counts(found) == {"a": 20, "b": 10, "c": 1}


def test_the_lane_that_waits_longest_comes_first() -> None:
    old, new = waiting(100, arrival_ms=1), waiting(100, arrival_ms=2)
    assert counts(pick({"a": new, "b": old}, 8)) == {"b": 1}


def test_another_shape_waits_for_another_plan() -> None:
    csv = [*waiting(1, columns=("x",)), *waiting(1, 1, columns=("y",))[1:]]
    assert counts(pick({"a": csv}, 100)) == {"a": 1}
    assert counts(pick({"a": csv[1:]}, 100)) == {"a": 1}


def test_what_has_no_records_fits_every_shape() -> None:
    files = waiting(1, 0, 1, columns=("x",))
    files[1] = files[1]._replace(columns=())
    lost = files[2]._replace(columns=("z",), is_lost=True)
    assert counts(pick({"a": [*files, lost]}, 100)) == {"a": 4}


def test_no_plan_has_more_files_than_a_job_can_take() -> None:
    assert counts(pick({"a": waiting(*[0] * 5_000)}, 100)) == {"a": PLAN_FILES_MAX}


@given(
    st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(0, 50), max_size=30)),
    st.integers(1, 100),
)
def test_it_is_always_a_front_and_never_nothing(sizes: dict[str, list[int]], limit: int) -> None:
    lanes = {lane: waiting(*found) for lane, found in sizes.items()}
    picked = pick(lanes, limit)
    for lane, files in picked.items():
        assert files
        assert files == lanes[lane][: len(files)]
    assert bool(picked) == any(lanes.values())
    taken = [one.entry.size_bytes for files in picked.values() for one in files]
    assert sum(taken) <= limit or sum(1 for size in taken if size) == 1
