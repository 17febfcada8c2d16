"""What a stream's document says of first, closing and closed hours."""

from headgate.commits.streams import StreamDocument, with_closing, with_first_hour
from headgate.periods import HOUR_MS


def test_a_first_hour_is_never_before_the_roots_frontier_when_it_joined() -> None:
    assert with_first_hour(StreamDocument(1), HOUR_MS).first_hour_ms == HOUR_MS
    late = StreamDocument(1, floor_ms=5 * HOUR_MS)
    assert with_first_hour(late, HOUR_MS).first_hour_ms == 5 * HOUR_MS
    assert with_first_hour(late, 7 * HOUR_MS).first_hour_ms == 7 * HOUR_MS


def test_closing_and_closed_never_move_back() -> None:
    document = with_closing(StreamDocument(1), 5, 3)
    assert (document.closing_ms, document.closed_ms) == (5, 3)
    assert with_closing(document, 4, 2) == document
    assert with_closing(document, None, None) == document
    assert with_closing(document, 6, None).closing_ms == 6
