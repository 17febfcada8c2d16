"""Paths have one spelling, and none leads out of the root."""

import os.path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import Invalid
from headgate.lake import LIST_MAX
from headgate.lake.paths import (
    PATH_BYTES_MAX,
    STAGING,
    check_file,
    check_folder,
    check_page,
    check_private,
    folder_of,
    join,
    name_of,
)


@given(st.text(alphabet="ab./\\\0 \u00e4", max_size=12))
def test_what_is_taken_stays_below_the_root_in_one_spelling(path: str) -> None:
    try:
        check_file(path)
    except Invalid:
        return
    assert os.path.normpath(f"/lake/{path}") == f"/lake/{path}"
    assert join(folder_of(path), name_of(path)) == path


@given(st.lists(st.sampled_from(["a", "..", ".", "", "b c"]), min_size=1, max_size=6))
def test_a_path_is_refused_for_any_name_that_is_not_plain(names: list[str]) -> None:
    path = "/".join(names)
    if all(name in ("a", "b c") for name in names):
        assert check_file(path) == path
    else:
        with pytest.raises(Invalid):
            check_file(path)


def test_names_and_paths_have_their_limits_in_bytes() -> None:
    check_file("x" * 255)
    check_file("/".join(["x" * 127] * 8) + "x")
    assert len("/".join(["x" * 127] * 8) + "x") == PATH_BYTES_MAX
    for path in ("x" * 256, "\u00e4" * 128, "/".join(["x" * 127] * 8) + "xx"):
        with pytest.raises(Invalid, match="bytes"):
            check_file(path)


def test_the_root_is_a_folder_and_no_file() -> None:
    assert check_folder("") == ""
    with pytest.raises(Invalid, match="empty"):
        check_file("")


def test_only_what_is_below_staging_is_private() -> None:
    assert check_private(f"{STAGING}/a") == f"{STAGING}/a"
    for folder in (STAGING, f"{STAGING}x", "a", f"a/{STAGING}/b", f"{STAGING}/../a"):
        with pytest.raises(Invalid):
            check_private(folder)


def test_a_page_has_a_limit() -> None:
    assert check_page(LIST_MAX) == LIST_MAX
    for limit in (0, LIST_MAX + 1):
        with pytest.raises(Invalid, match=str(limit)):
            check_page(limit)


def test_joining_leaves_no_trace_of_the_root() -> None:
    assert join("", "a", "b/c") == "a/b/c"
    assert (folder_of("a"), name_of("a")) == ("", "a")
