from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import Invalid
from headgate.store.names import parts
from headgate.store.trie import trie_key, trie_name

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


@given(names)
def test_a_tries_key_gives_back_its_name(name: str) -> None:
    key = trie_key("queues", name)
    assert trie_name("queues", key) == name
    collection, first, second, last = parts(key)
    assert (collection, len(first), len(second), last) == ("queues", 2, 2, name)


def test_names_that_look_alike_spread_evenly() -> None:
    count = 200_000
    folders = Counter(trie_key("q", f"queue-{n:08}").rsplit("/", 1)[0] for n in range(count))
    assert len(folders) > 0.9 * 65_536
    assert max(folders.values()) < 8 * count / 65_536


@pytest.mark.parametrize(
    ("collection", "name"),
    [
        *[("", "x"), ("/q", "x"), ("q/", "x"), ("a//", "x"), ("a//b", "x"), ("50%", "x")],
        *[("q", ""), ("q", "x" * 256), ("q" * 200, "x" * 200), ("\ud800", "x"), ("q", "\ud800")],
    ],
)
def test_what_can_be_no_key_is_refused(collection: str, name: str) -> None:
    with pytest.raises(Invalid):
        trie_key(collection, name)


def test_a_collection_may_have_several_parts() -> None:
    assert parts(trie_key("a/b%2F", "x")) == ("a", "b/", "2d", "71", "x")


def test_what_is_not_from_the_trie_is_refused() -> None:
    with pytest.raises(Invalid, match="no key of the trie"):
        trie_name("queues", "queues/00/00/somebody")
