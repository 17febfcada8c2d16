"""Which small files of an hour become one."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from headgate.commits.record import RecordFile
from headgate.lake.paths import folder_of
from headgate.ready.grouping import Group, groups_of, suffix_of

TARGET = 100


def file(number: int, size_bytes: int, folder: str = "h", suffix: str = "parquet") -> RecordFile:
    path = f"{folder}/shard0-commit{number:010}-0.{suffix}"
    return RecordFile("data", "2026-11-01T13", "staged", path, size_bytes, "sha256:0", 1)


def kind_of(group: Group) -> tuple[str, str]:
    return folder_of(group[0].published), suffix_of(group[0].published)


def sizes(groups: tuple[Group, ...]) -> list[list[int]]:
    return [[one.size_bytes for one in group] for group in groups]


def test_small_files_are_joined_up_to_the_target_in_the_order_of_their_names() -> None:
    files = [file(number, size) for number, size in enumerate((40, 40, 30, 60, 200, 10))]
    assert sizes(groups_of(reversed(files), TARGET)) == [[40, 40, 10], [30, 60]]


def test_one_alone_and_those_that_are_large_enough_stay() -> None:
    assert groups_of([file(1, 40), file(2, 100), file(3, 5_000)], TARGET) == ()
    assert groups_of([file(1, 60), file(2, 60)], TARGET) == ()
    assert groups_of([], TARGET) == ()


def test_folders_and_formats_are_kept_apart() -> None:
    files = [
        *(file(number, 10, "a") for number in range(2)),
        *(file(number, 10, "b") for number in range(2)),
        *(file(number, 10, "b", "json") for number in range(2)),
        file(9, 10, "c"),
    ]
    assert sizes(groups_of(files, TARGET)) == [[10, 10], [10, 10], [10, 10]]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 150), st.sampled_from(["a", "b"]), st.sampled_from(["parquet", "txt"])
        ),
        max_size=40,
    )
)
def test_no_file_is_taken_twice_and_no_two_groups_could_be_one(
    drawn: list[tuple[int, str, str]],
) -> None:
    files = [file(number, *one) for number, one in enumerate(drawn)]
    groups = groups_of(files, TARGET)
    taken = [one for group in groups for one in group]
    assert len({one.published for one in taken}) == len(taken)
    assert set(taken) <= set(files)
    for group in groups:
        assert len(group) > 1
        assert sum(one.size_bytes for one in group) <= TARGET
        assert len({kind_of((one,)) for one in group}) == 1
    for one, other in combinations(groups, 2):
        if kind_of(one) == kind_of(other):
            assert sum(file.size_bytes for file in (*one, *other)) > TARGET
    assert groups_of(reversed(files), TARGET) == groups
