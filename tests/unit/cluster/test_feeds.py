"""Feed state: spans of numbers against sets of numbers, and what an older leader may not write."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.cluster.feeds import (
    FeedState,
    Spans,
    feed_key,
    is_removed,
    joined,
    led,
    with_next,
    with_removed,
)
from headgate.errors import Fenced

small = st.integers(0, 30)


def numbers_in(spans: Spans) -> set[int]:
    return {number for first, end in spans for number in range(first, end)}


@given(st.lists(st.lists(small, max_size=12), max_size=6))
def test_spans_hold_the_same_numbers_as_a_set(rounds: list[list[int]]) -> None:
    spans: Spans = ()
    model: set[int] = set()
    for numbers in rounds:
        spans, model = joined(spans, numbers), model | set(numbers)
        assert numbers_in(spans) == model
        assert all(is_removed(FeedState(removed=spans), n) == (n in model) for n in range(-1, 33))
        assert joined(spans, numbers) == spans


@given(st.sets(small))
def test_spans_are_few_in_order_and_do_not_touch(numbers: set[int]) -> None:
    spans = joined((), numbers)
    assert all(first < end for first, end in spans)
    assert all(a[1] < b[0] for a, b in pairwise(spans))


def test_l8_what_was_removed_in_order_is_one_span_however_many() -> None:
    spans: Spans = ()
    for first in range(0, 10_000, 100):
        spans = joined(spans, range(first, first + 100))
    assert spans == ((0, 10_000),)


@given(
    st.builds(FeedState, epoch=st.integers(0, 5), next=small, removed=st.just(((2, 4),))),
    st.integers(0, 5),
    small,
)
def test_inv3_an_older_leader_is_fenced_and_asked_twice_nothing_more_changes(
    state: FeedState, epoch: int, number: int
) -> None:
    decisions: list[Callable[[FeedState], FeedState]] = [
        lambda found: led("demo", epoch, found),
        lambda found: with_next("demo", found, epoch, number),
        lambda found: with_removed("demo", found, epoch, [number]),
    ]
    for decide in decisions:
        if state.epoch > epoch:
            with pytest.raises(Fenced, match=f"leader {epoch} was followed by {state.epoch}"):
                decide(state)
            continue
        once = decide(state)
        assert decide(once) == once
        assert once.epoch == epoch
        assert once.next >= state.next  # what was created is not created again
        assert numbers_in(once.removed) >= numbers_in(state.removed)


def test_each_feed_has_its_document() -> None:
    assert feed_key("demo") == "cluster/feeds/demo"
    assert feed_key("a/b") == "cluster/feeds/a%2Fb"
