"""The whole audit: a clean world is clean, and one with one thing wrong has that finding and no
other."""

import pytest

from headgate.audit import inspection
from headgate.audit.inspection import audit
from headgate.commits.checkpoint import Checkpoint, Wish, checkpoint_key
from headgate.commits.record import record_path
from headgate.commits.streams import StreamDocument, stream_key
from headgate.errors import Invalid
from headgate.lake import LIST_MAX, Listing
from headgate.lake.memory import MemoryLake
from headgate.periods import FolderTemplate
from headgate.store.codec import body_of
from tests.unit.audit.worlds import DATA, EPOCH, World, landed, restaged, settings_of


def test_a_sound_world_is_clean_and_counted() -> None:
    found = landed(3).audit(is_deep=True)

    assert (found.findings, found.remarks, found.left_out) == ((), (), 0)
    checked = found.checked
    assert (checked.streams, checked.shards, checked.records, checked.files) == (1, 1, 3, 12)
    assert checked.folders == 4 + 1 + 1  # hours, one of late records, one of dead letters
    assert checked.rows == {"data": 21, "late": 3, "dead": 3, "skip": 3}


def test_a_stream_that_has_not_begun_is_clean() -> None:
    world = World()
    world.delete(stream_key("orders"))
    assert world.audit().is_clean


def test_streams_and_shards_of_one_lake_are_kept_apart() -> None:
    world = World(settings_of("orders", shards=2))
    world.land({"2026-11-01T00": 5}, shard=0)
    world.land({"2026-11-01T00": 4}, shard=1)
    other = World(settings_of("a b/c"))
    other.store, other.lake = world.store, world.lake
    other.put(stream_key(other.stream), body_of(StreamDocument(1)))
    other.land({"2026-11-01T00": 3}, late={"2026-11-01T00": 1}, dead=2)

    streams = {one.stream: one.settings for one in (world, other)}
    found = audit(world.store, world.lake, streams)

    assert found.is_clean, found.findings
    assert (found.checked.streams, found.checked.shards, found.checked.files) == (2, 3, 5)


def test_a_template_with_the_shard_first_is_walked() -> None:
    template = FolderTemplate.parse("{stream}/s{shard}/{yyyy}/{MM}{dd}-{HH}")
    world = World(settings_of(folder=template))
    record = world.land({"2026-11-01T00": 5, "2026-11-01T01": 5})
    assert record.files[0].published.startswith("orders/s0/2026/1101-00/")
    assert world.audit().checked.files == 2
    assert world.audit().is_clean

    world.lake.put("orders/s0/2026/1101-00/shard0-commit0000000009-0.parquet", b"x")
    assert world.only_finding().invariant == 4


def test_files_from_the_time_of_another_template_are_found_by_their_records() -> None:
    world = landed()
    template = FolderTemplate.parse("{stream}/{yyyy}/{MM}/{dd}/{HH}")
    world.settings = settings_of(folder=template)
    assert world.audit().is_clean

    world.remove(f"{DATA}/shard0-commit0000000001-0.parquet")
    assert world.only_finding().invariant == 2


# Damage


def test_planted_a_damaged_record_is_one_finding() -> None:
    world = landed(4)
    path = record_path("orders", 0, 2)
    world.lake.put(path, b"{")
    finding = world.only_finding()
    assert (finding.invariant, finding.subject) == (None, path)
    assert "is not JSON" in finding.words


@pytest.mark.parametrize(
    "change", [{"stream": "other"}, {"shard": 1}, {"number": 3}], ids=lambda one: next(iter(one))
)
def test_planted_the_record_of_another_commit_in_that_place(change: dict[str, object]) -> None:
    world = landed(4)
    world.change_record(2, **change)
    assert "is the record of" in world.only_finding().words


def test_planted_a_damaged_checkpoint_is_one_finding() -> None:
    world = landed()
    key = checkpoint_key("orders", 0)
    world.put(key, {**body_of(world.checkpoint()), "number": "three"})
    finding = world.only_finding()
    assert (finding.invariant, finding.subject, finding.shard) == (None, key, 0)


def test_planted_a_damaged_stream_document_is_one_finding() -> None:
    world = landed()
    world.put(stream_key("orders"), {"format": 1, "shards": "one"})
    assert world.only_finding().subject == "streams/orders"


def test_planted_a_checkpoint_without_its_stream() -> None:
    world = landed()
    world.delete(stream_key("orders"))
    finding = world.only_finding()
    assert finding.subject == "checkpoints/orders/00000"
    assert "no stream document" in finding.words


def test_planted_a_checkpoint_of_a_shard_too_many() -> None:
    world = landed()
    world.write(Checkpoint(epoch=1, turn=1), shard=1)
    assert "the stream has 1 shards" in world.only_finding().words


def test_planted_a_checkpoint_under_a_key_that_nobody_reads() -> None:
    world = landed()
    world.put("checkpoints/orders/0", body_of(Checkpoint()))
    assert "no key of a checkpoint" in world.only_finding().words


# Remarks


def test_staging_of_an_older_epoch_is_a_remark() -> None:
    world = landed()
    old = world.attempt(0, EPOCH - 1)
    world.lake.put(f"{old}/part.parquet", b"x")
    world.lake.put(f"{world.attempt(0, EPOCH)}/part.parquet", b"x")  # may still be journaled
    found = world.audit()
    assert found.is_clean
    assert [remark.subject for remark in found.remarks] == [old]
    assert found.remarks[0].words.startswith("1 folder of staging")


def test_staging_that_a_journal_names_is_no_remark() -> None:
    world = landed(3)
    journal, record = world.intend({"2026-11-01T09": 1})
    world.stage(journal, record)
    world.change_checkpoint(epoch=EPOCH + 1)
    assert world.audit().remarks == ()


@pytest.mark.parametrize("lost", ["record", "file"])
def test_g1_a_journal_whose_files_are_gone_is_a_remark_with_the_next_command(lost: str) -> None:
    world = landed(3)
    journal, record = world.intend({"2026-11-01T09": 1})
    world.stage(journal, record)
    world.remove(journal.record if lost == "record" else record.files[0].staged)

    found = world.audit()

    assert found.is_clean
    (remark,) = found.remarks
    assert remark.subject == (world.path(record) if lost == "record" else record.files[0].published)
    assert "commit 4 of orders/0 is journaled and not finished" in remark.words
    assert remark.next == ("headgate journal restage orders/0 --reason 'what was staged is gone'")


def test_a_journal_that_a_person_has_decided_about_is_no_remark() -> None:
    world = landed(3)
    world.intend({"2026-11-01T09": 1})
    world.change_checkpoint(restage=Wish("gone", "ada", 1))

    assert world.audit().remarks == ()


def test_a_stream_that_the_settings_do_not_have_is_a_remark() -> None:
    world = landed()
    world.put(stream_key("gone"), body_of(StreamDocument(1)))
    found = world.audit()
    assert found.is_clean
    assert [remark.stream for remark in found.remarks] == ["gone"]
    assert world.audit(only=["orders"]).remarks == ()


# How it works


def test_a_stream_that_nobody_knows_is_refused() -> None:
    with pytest.raises(Invalid, match="no stream 'ordres'"):
        landed().audit(only=["ordres"])


def test_an_audit_changes_nothing() -> None:
    world = restaged()
    world.lake.put(f"{DATA}/part.parquet", b"x")
    files, documents = world.lake.files(), world.store.list().documents
    world.audit(is_deep=True)
    assert (world.lake.files(), world.store.list().documents) == (files, documents)


def test_it_tells_how_far_it_is() -> None:
    world, told = landed(2), []
    world.audit(on_progress=lambda *now: told.append(now))
    assert (0, None, "documents") in told
    assert (2, 2, "orders/0: commit records") in told
    assert any(words == "orders: folders" for _, _, words in told)


def test_many_pages_are_the_same_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class SmallPages(MemoryLake):
        def list(self, folder: str, *, after: str = "", limit: int = LIST_MAX) -> Listing:
            return super().list(folder, after=after, limit=min(limit, 2))

    monkeypatch.setattr(inspection, "FOLDERS_AT_ONCE", 2)
    world = landed(9)
    pages = SmallPages()
    for path, content in world.lake.files().items():
        pages.put(path, content)
    world.lake = pages
    assert world.audit().checked.records == 9
    assert world.audit().is_clean

    for number in (1, 5, 9):
        world.remove(world.record(number).files[0].published)
    assert len(world.audit().findings) == 3
