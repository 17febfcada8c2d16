"""A walk through a tree of values: what comes out, in which order, and how much is asked for."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.store import Damaged, Document, Page, Version
from headgate.store.names import Parts, key
from headgate.store.walk import PAGE_BYTES_MAX, Folder, Found, Name, Thing, Walk


class Tree:
    """Documents by place; a look at a name finds the document and the folder of that name."""

    def __init__(self, documents: Mapping[Parts, Found], batch: int = 100) -> None:
        self.documents = documents
        self.batch = batch
        self.vanished: set[Parts] = set()  # between the look at their name and the one into them
        self.looks: list[Sequence[Name | Folder]] = []

    def page(self, limit: int, after: Parts = ()) -> Page:
        """From behind that place on, as a store does it: what is ahead on each level of the way."""
        walk = Walk(self.look, self.batch)
        for depth in range(len(after) + 1):
            done = after[depth] if depth < len(after) else ""
            walk.enter(self.below(after[:depth], done))
        return walk.page(limit)

    def below(self, folder: Parts, done: str = "") -> Iterator[Thing]:
        return (Name((*folder, name)) for name in self.names(folder) if name > done)

    def names(self, folder: Parts) -> list[str]:
        depth = len(folder)
        return sorted({place[depth] for place in self.documents if inside(place, folder)})

    def look(self, things: Sequence[Name | Folder]) -> Iterator[Iterator[Thing]]:
        self.looks.append(things)
        for thing in things:
            if thing.place in self.vanished:
                yield iter(())
            elif isinstance(thing, Folder):
                yield self.below(thing.place)
            else:
                yield self.unfold(thing.place)

    def unfold(self, place: Parts) -> Iterator[Thing]:
        if place in self.documents:
            yield self.documents[place]
        if names := self.names(place):
            yield Folder(place, len(names), place in self.documents)


def inside(place: Parts, folder: Parts) -> bool:
    return len(place) > len(folder) and place[: len(folder)] == folder


def document(*place: str, size_bytes: int = 10) -> tuple[Parts, Found]:
    return place, Found(Document(key(*place), {"format": 1}, Version("1")), size_bytes)


def broken(*place: str) -> tuple[Parts, Found]:
    return place, Found(Damaged(key(*place), "/somewhere", "it is cut off"), 0)


def tree(*documents: tuple[Parts, Found], batch: int = 100) -> Tree:
    return Tree(dict(documents), batch)


def keys(page: Page) -> list[str]:
    return [document.key for document in page.documents]


MIXED = (
    *(document("z"), document("a-b"), document("a", "b", "c"), document("a"), document("B")),
    *(document("a", "b"), document("é"), document("a", "a"), document("m", "deep", "er")),
)
IN_ORDER = ["B", "a", "a/a", "a/b", "a/b/c", "a-b", "m/deep/er", "z", "é"]


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_s6_documents_come_in_the_order_of_their_parts(batch: int) -> None:
    page = tree(*MIXED, batch=batch).page(100)

    assert keys(page) == IN_ORDER
    assert (page.damaged, page.next_after) == ((), None)


def test_an_empty_tree_is_one_last_page() -> None:
    assert tree().page(10) == Page((), (), None)


@pytest.mark.parametrize("limit", [1, 2, 3, 8, 9, 10])
def test_a_page_ends_at_its_limit_and_says_whether_more_is_there(limit: int) -> None:
    page = tree(*MIXED).page(limit)

    assert keys(page) == IN_ORDER[:limit]
    assert page.next_after == (IN_ORDER[limit - 1] if limit < len(IN_ORDER) else None)


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_s6_the_next_page_goes_on_behind_the_last_key(limit: int) -> None:
    mixed, found, after = tree(*MIXED), [], ""
    for _ in MIXED:
        page = mixed.page(limit, tuple(after.split("/")) if after else ())
        found += keys(page)
        if page.next_after is None:
            break
        after = page.next_after

    assert found == IN_ORDER


def test_a_walk_may_begin_behind_a_place_where_nothing_is() -> None:
    assert keys(tree(*MIXED).page(2, ("a", "aa", "x"))) == ["a/b", "a/b/c"]
    assert tree(*MIXED).page(2, ("日本",)) == Page((), (), None)


def test_a_page_of_large_documents_ends_early() -> None:
    half = PAGE_BYTES_MAX // 2
    large = tree(*(document(name, size_bytes=half) for name in "abc"))

    first, second = large.page(100), large.page(100, ("b",))

    assert (keys(first), first.next_after) == (["a", "b"], "b")
    assert (keys(second), second.next_after) == (["c"], None)


def test_a_document_larger_than_a_page_is_a_page_of_its_own() -> None:
    large = tree(document("a", size_bytes=PAGE_BYTES_MAX + 1), document("b"))

    assert keys(large.page(100)) == ["a"]
    assert keys(large.page(100, ("a",))) == ["b"]


def test_a_page_that_the_bytes_end_at_the_last_document_is_followed_by_an_empty_one() -> None:
    large = tree(document("a", size_bytes=PAGE_BYTES_MAX))

    assert large.page(100).next_after == "a"
    assert large.page(100, ("a",)) == Page((), (), None)


def test_s9_damaged_documents_are_told_apart_and_count_as_others_do() -> None:
    mixed = tree(document("a"), broken("b"), document("c"), broken("d"))

    first, second = mixed.page(2), mixed.page(2, ("b",))

    assert (keys(first), [one.key for one in first.damaged]) == (["a"], ["b"])
    assert first.next_after == "b"  # a damaged one may be where the next page begins
    assert (keys(second), [one.key for one in second.damaged]) == (["c"], ["d"])
    assert second.next_after is None


def test_what_vanished_before_the_look_is_passed_over() -> None:
    mixed = tree(*MIXED)
    mixed.vanished = {("m", "deep"), ("z",)}

    assert keys(mixed.page(100)) == [name for name in IN_ORDER if name not in ("m/deep/er", "z")]


def test_a_folder_that_vanished_leaves_its_own_document() -> None:
    class FolderVanishes(Tree):
        def look(self, things: Sequence[Name | Folder]) -> Iterator[Iterator[Thing]]:
            for thing, found in zip(things, super().look(things), strict=True):
                yield iter(()) if isinstance(thing, Folder) else found

    assert keys(FolderVanishes(dict(MIXED)).page(100)) == ["B", "a", "a-b", "z", "é"]


def test_only_vanished_names_are_one_last_page() -> None:
    mixed = tree(*MIXED)
    mixed.vanished = {(place[0],) for place, _ in MIXED}

    assert mixed.page(1) == Page((), (), None)


@pytest.mark.parametrize("batch", [1, 3])
def test_no_more_is_asked_at_once_than_a_batch(batch: int) -> None:
    mixed = tree(*MIXED, batch=batch)

    mixed.page(100)

    assert max(map(len, mixed.looks)) == batch


def test_no_more_is_asked_than_the_page_needs() -> None:
    wide = tree(*(document(f"{number:04}") for number in range(1_000)))

    wide.page(5)

    assert [len(look) for look in wide.looks] == [6]  # one more: is this the last page?


def test_folders_are_looked_into_only_as_far_as_the_page_reaches() -> None:
    wide = tree(*(document(f"{one:02}", f"{two:02}") for one in range(20) for two in range(20)))

    wide.page(5)

    assert [thing.place for look in wide.looks for thing in look if isinstance(thing, Folder)] == [
        ("00",)
    ]


def test_what_the_look_raises_goes_up() -> None:
    def unreachable(_things: Sequence[Name | Folder]) -> Iterator[Iterator[Thing]]:
        raise ConnectionError

    walk = Walk(unreachable, 10)
    walk.enter(iter([Name(("a",))]))
    with pytest.raises(ConnectionError):
        walk.page(1)


places = st.lists(st.sampled_from(["a", "b", "-", "é"]), min_size=1, max_size=4).map(tuple)


@given(st.sets(places), st.integers(1, 5), st.integers(1, 5))
def test_s6_every_tree_in_pages_of_every_size_comes_whole_and_in_order(
    chosen: set[Parts], limit: int, batch: int
) -> None:
    whole, found = tree(*(document(*place) for place in chosen), batch=batch), []
    after: Parts = ()
    for number in count():
        assert number <= len(chosen)
        page = whole.page(limit, after)
        found += keys(page)
        if page.next_after is None:
            break
        after = tuple(page.next_after.split("/"))

    assert found == [key(*place) for place in sorted(chosen)]
