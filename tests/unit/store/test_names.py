import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import Invalid
from headgate.store.names import (
    KEY_BYTES_MAX,
    check_namespace,
    from_plain,
    key,
    ordered,
    parts,
    prefix_parts,
    to_plain,
)

part_texts = st.text(min_size=1, max_size=20).filter(
    lambda text: not any("\ud800" <= letter <= "\udfff" for letter in text)
)
part_lists = st.lists(part_texts, min_size=1, max_size=4)


@given(part_lists)
def test_g10_a_key_gives_back_its_parts(names: list[str]) -> None:
    assert list(parts(key(*names))) == names


@given(part_lists, part_lists)
def test_g10_different_parts_make_different_keys(one: list[str], two: list[str]) -> None:
    assert (key(*one) == key(*two)) == (one == two)


@given(part_texts)
def test_g6_the_plain_spelling_loses_nothing(name: str) -> None:
    assert from_plain(to_plain(name)) == name


@given(part_texts)
def test_the_plain_spelling_is_safe_on_any_file_system(name: str) -> None:
    plain = to_plain(name)
    assert plain.isascii()
    assert plain == plain.lower(), "a file system that folds case keeps names apart"
    assert "/" not in plain
    assert not plain.startswith(".")
    assert not plain.endswith((".json", "+"))


@given(part_texts, part_texts)
def test_g10_different_names_have_different_plain_spellings(one: str, two: str) -> None:
    assert (to_plain(one).lower() == to_plain(two).lower()) == (one == two)


@pytest.mark.parametrize(
    "stranger", ["", "A", "%", "%4", "%zz", "%41", "^", "^1", "%ff", "x.json", ".a", "a b", "^%"]
)
def test_what_was_never_written_so_is_nobodys_name(stranger: str) -> None:
    assert from_plain(stranger) is None


@given(part_lists, part_lists)
def test_ordered_texts_sort_as_their_parts_do(one: list[str], two: list[str]) -> None:
    assert (ordered(one) < ordered(two)) == (tuple(one) < tuple(two))


def test_a_folder_comes_before_its_neighbour_with_a_longer_name() -> None:
    names = ["a-b", "a/b", "a", "a.b"]
    assert sorted(names, key=parts) == ["a", "a/b", "a-b", "a.b"]


@pytest.mark.parametrize("text", ["", "/", "a/", "/a", "a//b", "%", "%41", "%2f", "a%2", "\udc00"])
def test_what_is_no_key_is_invalid(text: str) -> None:
    with pytest.raises(Invalid):
        parts(text)


def test_a_long_name_is_invalid_with_its_length_and_the_limit() -> None:
    with pytest.raises(Invalid, match=rf"500 bytes of UTF-8, at most {KEY_BYTES_MAX}"):
        parts("n" * 500)
    with pytest.raises(Invalid, match="258 bytes of UTF-8, at most 255"):
        parts("日" * 86)


def test_the_empty_prefix_is_everything() -> None:
    assert prefix_parts("") == ()
    assert prefix_parts("a/b") == ("a", "b")


@pytest.mark.parametrize("name", ["", "a/b", "x" * 65, "\ud800"])
def test_what_is_no_namespace_is_invalid(name: str) -> None:
    with pytest.raises(Invalid):
        check_namespace(name)
