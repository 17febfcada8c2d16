"""How many flags follow from what has landed."""

import pytest

from headgate.app.progress import FlagProgress, flags_behind
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.roots import RootDocument, Seat, root_key, root_name
from headgate.commits.streams import StreamDocument, stream_key
from headgate.engine import EventTime
from headgate.landing import StreamSettings
from headgate.periods import HOUR_MS, FolderTemplate, Period
from headgate.sources import FilesSettings
from headgate.store import DocumentStore
from headgate.store.codec import body_of
from headgate.testing.manual import ManualAmbient, manual_store

FIRST_MS = Period.parse("2020-01-01T00").start_ms
FOLDER = FolderTemplate.parse("{yyyy}-{MM}-{dd}/{HH}/{stream}/data")
ORDERS = StreamSettings("orders", FilesSettings("/in"), EventTime("json", "$.at"), FOLDER)


def store_of(seat: Seat | None, mark_ms: int | None) -> DocumentStore:
    store = manual_store(ManualAmbient())
    seats = {} if seat is None else {"orders": seat}
    marks = {"lane-0": mark_ms}
    checkpoint = Checkpoint(watermarks=marks, discovered_ms=FIRST_MS + 9_999 * HOUR_MS)
    for key, value in (
        (stream_key("orders"), StreamDocument(1, FIRST_MS)),
        (root_key(root_name(FOLDER)), RootDocument(streams=seats)),
        (checkpoint_key("orders", 0), checkpoint),
    ):
        store.create(key, body_of(value))
    return store


def test_hours_between_the_frontier_and_the_watermark_have_no_flag_yet() -> None:
    at_ms = FIRST_MS + 100 * HOUR_MS
    store = store_of(Seat(None, FIRST_MS, at_ms), at_ms + 800 * HOUR_MS + 5)

    assert flags_behind(store, {"orders": ORDERS}) == [FlagProgress("orders", at_ms, 800)]


def test_no_flag_follows_behind_the_last_hour() -> None:
    seat = Seat(None, FIRST_MS, FIRST_MS, last_ms=FIRST_MS + 7 * HOUR_MS)

    (found,) = flags_behind(store_of(seat, FIRST_MS + 800 * HOUR_MS), {"orders": ORDERS})

    assert found.left == 7


@pytest.mark.parametrize(
    ("seat", "mark_ms"),
    [(None, FIRST_MS), (Seat(None, None, None), FIRST_MS), (Seat(None, FIRST_MS, FIRST_MS), None)],
)
def test_of_a_stream_that_is_not_known_to_be_so_far_nothing_is_told(
    seat: Seat | None, mark_ms: int | None
) -> None:
    assert flags_behind(store_of(seat, mark_ms), {"orders": ORDERS}) == []
