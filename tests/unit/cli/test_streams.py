from headgate.cli.streams import due, waiting
from headgate.status.streams import Lag


def lag(files: int, *, is_now: bool) -> Lag:
    return Lag(files, 1_200 * files, None, 0, 0, 61_000, is_now)


def test_what_waits_is_told_as_of_now_only_if_somebody_looks() -> None:
    assert waiting(lag(3, is_now=True)) == "3 files, 3.6 kB"
    assert waiting(lag(0, is_now=True)) == "nothing"


def test_without_a_node_nobody_knows_and_it_is_said_when_somebody_did() -> None:
    assert waiting(lag(1, is_now=False)) == "not known; 1 min 1 s ago: 1 file, 1.2 kB"
    assert waiting(lag(0, is_now=False)) == "not known; 1 min 1 s ago: nothing"
    assert waiting(None) == "not known"


def test_the_next_commit_comes_within_what_is_left_of_the_shift() -> None:
    assert due(90_000, 0) == "within 1 min 30 s"
    assert due(90_000, 90_000) == "now"
    assert due(None, 0) == "-"
