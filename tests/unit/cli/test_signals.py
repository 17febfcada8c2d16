"""What a node says of others to whoever started it."""

from headgate.app.silence import Silent
from headgate.cli.signals import NAMES_MAX, silence_of


def test_a_node_that_seems_to_be_gone_is_named_with_the_time_when_its_work_is_free() -> None:
    others = [Silent("old", 1, 13_000, 17_000, True), Silent("alive", 2, 3_000, 27_000, False)]

    assert silence_of(others) == [
        "node old, number 1, seems to be gone: nothing was heard of it for 13.0 s; its work is "
        "free in about 17.0 s"
    ]


def test_who_may_hold_the_work_is_named_to_a_node_without_any() -> None:
    assert silence_of([Silent("old", 1, 4_000, 26_000, False)]) == [
        "nothing to do so far: node old (number 1, heard of 4.0 s ago) may hold what there is; if "
        "it was killed, its work is free in about 26.0 s"
    ]


def test_of_many_only_some_are_named() -> None:
    (words,) = silence_of([Silent("old", n, 1_000, 29_000, False) for n in range(NAMES_MAX + 3)])

    assert words.count("heard of") == NAMES_MAX
    assert "and 3 more may hold what there is; if one was killed, its work" in words
