"""Each invariant that can be seen in state: a world with one thing wrong has that finding and no
other, and what only looks wrong is none."""

from dataclasses import replace

import pytest

from headgate.audit import inspection
from headgate.commits.checkpoint import checkpoint_key
from headgate.commits.record import Mark, RecordRange, record_path, to_bytes
from tests.unit.audit.worlds import DATA, DEAD, LANE, content_of, gap, landed, restaged

# Invariant 1


def test_planted_inv1_a_file_that_its_record_does_not_name() -> None:
    world = landed()
    world.lake.put(f"{DATA}/shard0-commit0000000002-7.parquet", b"twice")

    finding = world.only_finding()

    assert (finding.invariant, finding.shard) == (1, 0)
    assert finding.subject == f"{DATA}/shard0-commit0000000002-7.parquet"
    assert "whose record does not name it" in finding.words
    assert finding.next.endswith("headgate audit --stream orders")


def test_planted_inv1_a_file_of_a_shard_that_is_not_there() -> None:
    world = landed()
    world.lake.put(f"{DATA}/shard4-commit0000000001-0.parquet", b"x")
    finding = world.only_finding()
    assert (finding.invariant, finding.shard) == (1, 4)
    assert "which has no checkpoint" in finding.words


@pytest.mark.parametrize(
    "folder", [DATA, "_late/2026-10-31/23/orders/data", DEAD, f"{DEAD}/late"], ids=str
)
def test_planted_inv1_a_file_of_nobody_is_seen_in_each_kind_of_folder(folder: str) -> None:
    world = landed()
    world.lake.put(f"{folder}/part-0000.parquet", b"x")
    finding = world.only_finding()
    assert (finding.invariant, finding.subject) == (1, f"{folder}/part-0000.parquet")
    assert "no commit has such a name" in finding.words


def test_planted_inv1_a_folder_of_nobody_in_a_data_folder() -> None:
    world = landed()
    world.lake.put(f"{DATA}/copy/shard0-commit0000000001-0.parquet", b"x")
    assert world.only_finding().subject == f"{DATA}/copy"


@pytest.mark.parametrize("name", ["_READY", ".hidden", "_tmp/part.parquet"])
def test_what_readers_skip_is_no_finding(name: str) -> None:
    world = landed()
    world.lake.put(f"{DATA}/{name}", b"x")
    assert world.audit().is_clean


def test_planted_inv1_a_file_that_was_cut_off() -> None:
    world = landed()
    path = f"{DATA}/shard0-commit0000000002-0.parquet"
    world.lake.put(path, content_of(path)[:-1])
    finding = world.only_finding(is_deep=True)
    assert (finding.invariant, finding.subject) == (1, path)
    assert "bytes" in finding.words


def test_planted_inv1_content_that_changed_is_seen_by_a_deep_audit() -> None:
    world = landed()
    path = f"{DATA}/shard0-commit0000000002-0.parquet"
    world.lake.put(path, content_of(path)[::-1])

    assert world.audit().is_clean
    finding = world.only_finding(is_deep=True)

    assert (finding.invariant, finding.subject) == (1, path)
    assert "checksum" in finding.words


def test_planted_inv1_two_records_name_one_file() -> None:
    world = landed()
    first, second = world.record(2), world.record(3)
    world.change_record(3, files=(*second.files, replace(first.files[0], rows=0)))
    findings = world.audit().findings
    assert {finding.subject for finding in findings} == {record_path("orders", 0, 3)}
    assert "whose name does not say this commit" in findings[0].words


def test_planted_inv1_a_file_of_a_commit_that_was_replaced() -> None:
    world = restaged()
    path = "2026-11-01/09/orders/data/shard0-commit0000000004-0.parquet"
    world.lake.put(path, content_of(path))
    finding = world.only_finding()
    assert (finding.invariant, finding.subject) == (1, path)
    assert "which was replaced by 5" in finding.words


def test_planted_inv1_a_file_of_a_commit_that_is_being_replaced() -> None:
    world = landed(3)
    _, lost = world.intend({"2026-11-01T09": 1})
    world.lake.put(world.path(lost), to_bytes(lost))
    world.intend({"2026-11-01T09": 1}, replaces=4)
    world.lake.put("2026-11-01/09/orders/data/shard0-commit0000000004-7.parquet", b"x")
    assert "which was replaced by 5" in world.only_finding().words


# Invariant 2


def test_planted_g1_a_commit_record_without_its_files() -> None:
    world = landed()
    for file in world.record(2).files:
        world.remove(file.published)

    findings = world.audit().findings

    assert [finding.invariant for finding in findings] == [2, 2, 2, 2]  # one for each folder
    assert {finding.subject for finding in findings} == {
        file.published for file in world.record(2).files
    }
    assert all("commit 2 is concluded" in finding.meaning for finding in findings)


def test_planted_g1_all_files_of_a_lake_are_gone_and_the_list_has_an_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inspection, "FINDINGS_MAX", 5)
    world = landed()
    for path in [path for path in world.lake.files() if not path.startswith("_headgate")]:
        world.remove(path)
    found = world.audit()
    assert (len(found.findings), found.left_out) == (5, 7)


@pytest.mark.parametrize("place", ["_redrive/orders", "_redriven/orders/2026-11-02", "_redriven"])
def test_a_dead_letter_that_is_driven_in_again_is_there(place: str) -> None:
    world = landed()
    name = "shard0-commit0000000002-0.parquet"
    world.move(f"{DEAD}/{name}", f"{place}/{name}")
    assert world.audit().is_clean == (place != "_redriven")  # that one is nowhere


def test_planted_inv2_a_hole_between_two_commits() -> None:
    world = landed()
    world.change_record(2, ranges={LANE: RecordRange("11", "20")})
    finding = world.only_finding()
    assert (finding.invariant, finding.subject) == (2, "orders/0/2")
    assert "from '11' on" in finding.words
    assert finding.next == "headgate journal show orders/0"


def test_planted_inv2_the_first_commit_does_not_begin_at_the_start() -> None:
    world = landed()
    world.change_record(1, ranges={LANE: RecordRange("3", "10")})
    assert world.only_finding().subject == "orders/0/1"


def test_planted_inv2_a_record_tells_other_positions_than_the_ranges_lead_to() -> None:
    world = landed()
    world.change_record(2, positions={LANE: "20", "quiet": ""})
    assert world.audit().is_clean
    world.change_record(2, positions={LANE: "19", "quiet": ""})
    finding = world.only_finding()
    assert (finding.invariant, finding.subject) == (2, "orders/0/2")
    assert "is at '19' after it" in finding.words


def test_planted_inv2_the_position_is_ahead_of_the_records() -> None:
    world = landed()
    world.change_checkpoint(positions={LANE: "40"})
    finding = world.only_finding()
    assert (finding.invariant, finding.subject) == (2, "orders/0")
    assert "'40'" in finding.words


def test_planted_inv2_the_position_is_gone() -> None:
    world = landed()
    world.change_checkpoint(positions={})
    assert "lead to '30'" in world.only_finding().words


def test_planted_inv2_the_counts_are_not_those_of_the_files() -> None:
    world = landed()
    world.change_record(2, counts={"data": 8, "late": 1, "dead": 1, "skip": 0})
    finding = world.only_finding()
    assert (finding.invariant, finding.subject) == (2, record_path("orders", 0, 2))
    assert "counts 8 data rows, and its files hold 7" in finding.words


def test_planted_inv2_the_checkpoint_counts_other_rows() -> None:
    world = landed()
    world.change_checkpoint(counts={"data": 28})
    assert "counts 28 rows" in world.only_finding().words


def test_planted_inv2_a_watermark_moves_back() -> None:
    world = landed()
    known = world.record(2).watermarks[LANE].after_ms
    world.change_record(3, watermarks={LANE: Mark(known, known - 1, "records")})
    world.change_checkpoint(watermarks={LANE: known - 1})
    finding = world.only_finding()
    assert (finding.invariant, finding.subject) == (2, "orders/0/3")


def test_planted_inv2_the_watermark_is_not_that_of_the_records() -> None:
    world = landed()
    world.change_checkpoint(watermarks={LANE: None})
    assert "watermark of lane-0 is None" in world.only_finding().words


def test_planted_inv2_a_gap_without_a_reason() -> None:
    world = landed()
    world.change_record(2, gaps=(gap(reason=""),))
    assert world.only_finding().subject == record_path("orders", 0, 2)

    world.change_record(2, gaps=(gap(),))
    assert world.audit().is_clean


def test_planted_inv2_a_record_is_missing() -> None:
    world = landed(4)
    for number in (2, 3):
        world.remove(record_path("orders", 0, number))
    finding = world.only_finding()
    assert (finding.invariant, finding.subject) == (2, record_path("orders", 0, 2))
    assert "commit 2 to 3" in finding.words


def test_planted_inv2_the_last_record_is_missing() -> None:
    world = landed(2)
    world.remove(record_path("orders", 0, 2))
    assert "commit 2 is not there" in world.only_finding().words


# Invariant 4


def test_planted_inv4_a_record_that_was_never_journaled() -> None:
    world = landed(2)
    before = world.checkpoint()
    for hour in (5, 6):
        world.land({f"2026-11-01T{hour:02}": 5})
    world.write(before)  # the store was rolled back
    finding = world.only_finding()
    assert (finding.invariant, finding.subject) == (4, record_path("orders", 0, 3))
    assert "commit 3 to 4" in finding.words


def test_planted_inv4_the_store_is_gone() -> None:
    world = landed(2)
    world.delete(checkpoint_key("orders", 0))
    assert "there is no checkpoint" in world.only_finding().words


def test_planted_inv4_a_file_of_a_commit_that_was_never_journaled() -> None:
    world = landed()
    world.lake.put(f"{DATA}/shard0-commit9999999999-0.parquet", b"x")
    finding = world.only_finding()
    assert finding.invariant == 4
    assert "the last journaled is 3" in finding.words


def test_planted_inv4_a_journal_of_another_number() -> None:
    world = landed(2)
    journal, _ = world.intend({"2026-11-01T09": 1})
    world.change_checkpoint(number=4, journal=journal)
    findings = [one for one in world.audit().findings if one.subject == "orders/0"]
    assert [finding.invariant for finding in findings] == [4]


def test_planted_inv4_another_record_lies_under_the_journals_number() -> None:
    world = landed(2)
    _, record = world.intend({"2026-11-01T09": 1})
    world.publish(replace(record, node="another installation"))
    finding = world.only_finding()
    assert (finding.invariant, finding.subject) == (4, record_path("orders", 0, 3))


def test_planted_inv4_a_commit_replaces_one_that_was_finished() -> None:
    world = landed(3)
    world.change_record(3, replaces=1)
    finding = world.only_finding()
    assert (finding.invariant, finding.subject) == (4, record_path("orders", 0, 3))


@pytest.mark.parametrize("published", [0, 1, 2, 3])
def test_inv4_what_a_standing_journal_explains_is_no_finding(published: int) -> None:
    world = landed(2)
    _, record = world.intend({"2026-11-01T09": 1, "2026-11-01T10": 1})
    if published:
        world.publish(replace(record, files=record.files[: published - 1]))
        world.publish(replace(record, files=()))
        world.lake.put(world.path(record), to_bytes(record))
    assert world.audit().is_clean


def test_planted_inv1_a_file_comes_before_the_record_of_its_journal() -> None:
    world = landed(2)
    _, record = world.intend({"2026-11-01T09": 1})
    world.publish(record)
    world.remove(world.path(record))
    finding = world.only_finding()
    assert (finding.invariant, finding.subject) == (1, record.files[0].published)


# A commit that was journaled again


def test_a_commit_that_was_replaced_is_left_out() -> None:
    world = restaged()
    assert world.audit().is_clean
    world.land({"2026-11-01T09": 1})
    assert world.audit().is_clean


def test_a_commit_that_was_replaced_because_its_record_was_lost_is_left_out() -> None:
    world = restaged()
    world.remove(record_path("orders", 0, 4))
    assert world.audit().is_clean


def test_a_commit_that_is_being_replaced_is_left_out() -> None:
    world = landed(3)
    _, lost = world.intend({"2026-11-01T09": 1})
    world.lake.put(world.path(lost), to_bytes(lost))
    world.intend({"2026-11-01T09": 1}, replaces=4)
    assert world.audit().is_clean
