"""What commit records keep for their source leads to the same documents, whoever makes them."""

import pytest

from headgate.errors import Corrupt, Halted
from headgate.sources import FilesSettings
from headgate.sources.folder import Entry, digest_of
from headgate.sources.kafka.document import (
    KafkaDocument,
    Life,
    from_origins,
    kafka_origin,
)
from headgate.sources.lanes import KNOWN_FILES_MAX, KnownBody, Lane, LaneCount, unpacked
from headgate.sources.memory_folder import MemoryFolder
from headgate.sources.origins import Read, digests_in, files_origin, lane_documents

SETTINGS = FilesSettings("/incoming", lanes=2)


def digest(number: int) -> bytes:
    return number.to_bytes(16, "big")


def test_a_record_keeps_the_identity_of_each_file_by_lane() -> None:
    origin = files_origin({"lane-0": [digest(1), digest(2)], "lane-1": []})
    assert list(digests_in(origin)) == [("lane-0", digest(1)), ("lane-0", digest(2))]
    assert files_origin({"lane-0": []}) == {}


def test_what_is_no_object_or_was_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="no object"):
        list(digests_in({"files": 3}))
    with pytest.raises(ValueError, match=r"."):
        list(digests_in({"files": {"lane-0": "!"}}))


def test_lanes_go_on_at_their_position_and_know_what_was_read() -> None:
    read = Read({"lane-0": "3", "lane-1": "", "orders/7": "9"}, {"lane-0": [digest(1)]}, 500)
    found = dict(lane_documents("orders", SETTINGS, read, MemoryFolder()))
    assert found["sources/orders/lane"] == LaneCount(2)
    lane = found["sources/orders/lane-0"]
    assert isinstance(lane, Lane)
    assert (lane.next, lane.seen_ms, lane.epoch) == (3, 500, 0)
    body = found[f"sources/orders/lane-0/known/{lane.known[0].id}"]
    assert isinstance(body, KnownBody)
    assert list(unpacked(body.digests)) == [digest(1)]
    empty = found["sources/orders/lane-1"]
    assert isinstance(empty, Lane)
    assert (empty.next, empty.known) == (0, ())
    assert dict(lane_documents("orders", SETTINGS, read, MemoryFolder())) == found


def test_more_files_than_one_document_holds_are_several() -> None:
    many = [digest(n) for n in range(KNOWN_FILES_MAX + 5)]
    read = Read({"lane-0": "1"}, {"lane-0": many}, 1)
    found = dict(lane_documents("orders", SETTINGS, read, MemoryFolder()))
    lane = found["sources/orders/lane-0"]
    assert isinstance(lane, Lane)
    assert [one.count for one in lane.known] == [KNOWN_FILES_MAX, 5]


def test_of_files_that_are_taken_away_only_those_that_are_there_are_known() -> None:
    folder = MemoryFolder()
    folder.files["a.json"] = (b"{}\n", 7)
    (entry,) = folder.scan()
    gone = digest_of(Entry("b.json", 3, 8))
    read = Read({"lane-0": "2"}, {"lane-0": [digest_of(entry), gone]}, 1)
    settings = FilesSettings("/incoming", lanes=2, after_read="delete")
    lane = dict(lane_documents("orders", settings, read, folder))["sources/orders/lane-0"]
    assert isinstance(lane, Lane)
    assert [one.count for one in lane.known] == [1]


def test_another_number_of_lanes_is_refused() -> None:
    read = Read({"lane-5": "1"}, {}, 1)
    with pytest.raises(Halted, match="would get into other lanes"):
        list(lane_documents("orders", SETTINGS, read, MemoryFolder()))


def test_topics_keep_their_latest_life_and_unread_partitions_their_start() -> None:
    first = KafkaDocument({"orders": Life("a", 1, 4)}, {"orders/0": 7, "orders/1": 8})
    second = KafkaDocument({"orders": Life("b", 2, 0)}, accepted={"orders/0": 3})
    origins = [kafka_origin(second, ()), {}, kafka_origin(first, ["orders/1"])]
    found = from_origins(origins)
    assert found == KafkaDocument({"orders": Life("b", 2, 0)}, {"orders/1": 8})
    assert from_origins([{}, {"files": {}}]) is None
    with pytest.raises(Corrupt):
        from_origins([{"kafka": {"format": 9}}])
