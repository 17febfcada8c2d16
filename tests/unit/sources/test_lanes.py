"""Lanes: what a lane's document becomes. Values in, values out."""

from dataclasses import replace

import pytest

from headgate.errors import Conflict, Fenced
from headgate.sources.folder import Entry, digest_of, lane_of
from headgate.sources.lanes import (
    BATCH_FILES_MAX,
    KNOWN_FILES_MAX,
    READ_BATCHES_MAX,
    Batch,
    BatchBody,
    Known,
    KnownBody,
    Lane,
    Shaped,
    bodies,
    check_held,
    dealt_with,
    folded,
    marked_lost,
    numbered,
    opened,
    packed,
    remembered,
    to_fold,
    unpacked,
)
from headgate.store import Document, Version
from headgate.store.codec import BODY_BYTES_MAX, body_of, encode, parse

EMPTY = Lane(1, "me")
THREE = numbered(numbered(EMPTY, "x", 3, 10), "y", 2, 11)


def shaped(path: str, columns: tuple[str, ...] = ()) -> Shaped:
    return Shaped(Entry(path, 1, 1_700_000_000_000_000_000), columns)


def test_numbers_go_on_and_a_batch_is_named_once() -> None:
    assert THREE.batches == (Batch("x", 0, 3), Batch("y", 3, 2))
    assert (THREE.next, THREE.seen_ms) == (5, 11)
    assert numbered(THREE, "y", 2, 99) == THREE


def test_inv3_an_older_epoch_is_fenced() -> None:
    with pytest.raises(Fenced):
        opened(replace(EMPTY, epoch=3), 2, "me")
    with pytest.raises(Fenced):
        check_held(replace(EMPTY, epoch=3), 2, "me")
    with pytest.raises(Conflict):
        check_held(replace(EMPTY, writer="other"), 1, "me")
    assert opened(THREE, 4, "new") == replace(THREE, epoch=4, writer="new")


def test_a_batch_is_dealt_with_from_its_front() -> None:
    lane = dealt_with(THREE, "x", 2)
    assert lane.batches[0].start == 2
    assert dealt_with(lane, "x", 1) == lane
    assert dealt_with(lane, "x", 3).batches == (Batch("y", 3, 2),)


def test_lost_numbers_are_kept_as_long_as_their_batch() -> None:
    lane = marked_lost(marked_lost(THREE, [4, 1]), [1])
    assert lane.lost == (1, 4)
    assert dealt_with(lane, "x", 2).lost == (4,)
    assert folded(lane, ["x"]).lost == (4,)
    assert folded(lane, ["x", "y"]).lost == ()


def test_known_documents_replace_each_other_once() -> None:
    lane = remembered(EMPTY, [], Known("a", 2))
    assert lane.known == (Known("a", 2),)
    both = remembered(lane, ["a"], Known("b", 3))
    assert both.known == (Known("b", 3),)
    assert remembered(both, ["a"], Known("b", 3)) == both
    assert remembered(both, ["b"], None).known == ()


def test_few_batches_are_not_folded_and_many_fit_one_document() -> None:
    def lane(count: int, size: int) -> Lane:
        return replace(EMPTY, batches=tuple(Batch(str(n), n * size, size) for n in range(count)))

    assert to_fold(lane(READ_BATCHES_MAX - 1, 1), 10**6) == ()
    assert len(to_fold(lane(READ_BATCHES_MAX, 1), 10**6)) == READ_BATCHES_MAX
    assert to_fold(lane(READ_BATCHES_MAX, 1), 10) == ()
    assert len(to_fold(lane(1, BATCH_FILES_MAX), BATCH_FILES_MAX)) == 1
    assert to_fold(lane(1, BATCH_FILES_MAX), BATCH_FILES_MAX - 1) == ()
    many = to_fold(lane(100, BATCH_FILES_MAX), 10**6)
    assert sum(batch.count for batch in many) == KNOWN_FILES_MAX


def test_c8_batches_are_cut_so_that_each_fits_a_document() -> None:
    files = [shaped("ж" * 2_000 + str(n), (f"column {n}", "x" * 300)) for n in range(1_500)]
    files += [shaped(str(n)) for n in range(2_500)]
    cut = list(bodies(files, 1, 5))
    found = [body.entry(place) for body in cut for place in range(len(body.files))]
    assert found == [one.entry for one in files]
    columns = [body.columns(place) for body in cut for place in range(len(body.files))]
    assert columns == [one.columns for one in files]
    for body in cut:
        assert len(body.files) <= BATCH_FILES_MAX
        assert len(encode("k", body_of(body))) <= BODY_BYTES_MAX
    assert [len(body.files) for body in cut[-2:]] == [BATCH_FILES_MAX, len(cut[-1].files)]


def test_the_longest_known_document_fits() -> None:
    body = KnownBody(1, packed(digest_of(Entry(str(n), n, n)) for n in range(KNOWN_FILES_MAX)))
    assert len(encode("k", body_of(body))) <= BODY_BYTES_MAX
    assert len(list(unpacked(body.digests))) == KNOWN_FILES_MAX


def test_documents_come_back_as_they_were() -> None:
    (body,) = bodies([shaped("a b%'\"日本.json", ("x", "y"))], 3, 5)
    lane = remembered(marked_lost(THREE, [1]), [], Known("k", 9))
    assert parse(Document("k", body_of(body), Version("1")), BatchBody) == body
    assert parse(Document("k", body_of(lane), Version("1")), Lane) == lane


def test_a_file_belongs_to_one_lane_for_ever() -> None:
    assert [lane_of(f"f{n}.json", 4) for n in range(8)] == [1, 2, 3, 3, 3, 0, 1, 0]
    assert {lane_of(f"f{n}.json", 1) for n in range(8)} == {0}
    spread = [lane_of(f"{n}", 4) for n in range(4_000)]
    assert all(800 < spread.count(lane) < 1_200 for lane in range(4))
