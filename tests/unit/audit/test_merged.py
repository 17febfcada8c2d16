"""Invariant 1 after a merge: what may be gone, what must be gone, and whose the new files are."""

from dataclasses import replace

import pytest

from headgate.commits.merges import (
    MergeInput,
    MergeOutput,
    MergeRecord,
    merge_path,
    to_bytes,
)
from headgate.commits.record import facts_of
from headgate.commits.roots import FlagMove, RootDocument, RootJournal, root_key, root_name
from headgate.store.codec import body_of
from tests.unit.audit.worlds import DATA, World, content_of, landed

HOUR = "2026-11-01T01"
OUTPUT = f"{DATA}/merge00001-0.parquet"
PATH = merge_path("orders", HOUR, 1)


def record_of(world: World) -> MergeRecord:
    """Of the two commits that have files in this hour."""
    files = [file for n in (1, 2) for file in world.record(n).files if file.period == HOUR]
    inputs = tuple(MergeInput(f.published, f.size_bytes, f.checksum, f.rows) for f in files)
    assert len(inputs) == 2
    facts = facts_of(content_of(OUTPUT))
    rows = sum(one.rows for one in inputs)
    output = MergeOutput("staged", OUTPUT, facts.size_bytes, facts.checksum, rows, inputs)
    return MergeRecord("orders", HOUR, 1, 7, "node-1", 0, (output,))


def merged() -> World:
    world = landed(3)
    record = record_of(world)
    world.lake.put(PATH, to_bytes(record))
    world.lake.put(OUTPUT, content_of(OUTPUT))
    for one in record.inputs:
        world.remove(one.path)
    return world


def journal(world: World, record: MergeRecord) -> None:
    facts = facts_of(to_bytes(record))
    pointer = FlagMove("staged", PATH, facts.size_bytes, facts.checksum)
    document = RootDocument(journal=RootJournal("merge", "x", (pointer,), merges=("orders",)))
    world.put(root_key(root_name(world.settings.folder)), body_of(document))


def test_inv1_a_merged_hour_is_clean() -> None:
    world = merged()
    found = world.audit(is_deep=True)
    assert found.findings == ()
    assert found.checked.rows == landed(3).audit().checked.rows


def test_inv1_an_input_that_is_still_there_is_a_finding_once_the_merge_is_finished() -> None:
    world = merged()
    record = record_of(world)
    path = record.inputs[0].path
    world.lake.put(path, content_of(path))
    finding = world.only_finding()
    assert (finding.invariant, finding.subject) == (1, path)
    assert "was merged into merge00001-0.parquet, and is still there" in finding.words
    journal(world, record)
    assert world.audit().findings == ()


def test_inv1_a_merge_under_way_is_no_finding_at_any_moment() -> None:
    world = landed(3)
    record = record_of(world)
    journal(world, record)
    assert world.audit().findings == ()
    world.lake.put(PATH, to_bytes(record))
    assert world.audit().findings == ()
    world.lake.put(OUTPUT, content_of(OUTPUT))
    assert world.audit().findings == ()
    for one in record.inputs:
        world.remove(one.path)
        assert world.audit().findings == ()


def test_inv2_an_output_that_is_gone_is_a_finding() -> None:
    world = merged()
    world.remove(OUTPUT)
    finding = world.only_finding()
    assert (finding.invariant, finding.subject) == (2, OUTPUT)


def test_inv1_an_output_that_was_changed_is_a_finding() -> None:
    world = merged()
    world.lake.put(OUTPUT, b"x")
    assert "has 1 bytes" in world.only_finding().words
    world.lake.put(OUTPUT, b"x" * len(content_of(OUTPUT)))
    assert world.audit().findings == ()
    finding = world.only_finding(is_deep=True)
    assert (finding.invariant, finding.subject) == (1, OUTPUT)


def test_inv1_a_merged_file_that_no_merge_record_names_is_a_finding() -> None:
    world = merged()
    other = f"{DATA}/merge00001-1.parquet"
    world.lake.put(other, b"x")
    finding = world.only_finding()
    assert (finding.invariant, finding.subject) == (1, other)


def test_inv2_without_the_merge_record_its_inputs_are_missing_and_its_output_is_nobodys() -> None:
    world = merged()
    world.remove(PATH)
    found = world.audit().findings
    assert {one.subject for one in found} == {
        OUTPUT,
        *(f"{DATA}/shard0-commit000000000{n}-0.parquet" for n in (1, 2)),
    }


def test_a_merge_record_that_cannot_be_read_is_a_finding() -> None:
    world = merged()
    world.lake.put(PATH, b"{}")
    assert PATH in {one.subject for one in world.audit().findings}


def test_inv1_a_merge_of_a_file_that_no_commit_names_is_a_finding() -> None:
    world = merged()
    record = record_of(world)
    made_up = MergeInput(f"{DATA}/shard0-commit0000000003-0.parquet", 1, "sha256:0", 0)
    output = replace(record.outputs[0], inputs=(*record.inputs, made_up))
    world.lake.put(PATH, to_bytes(replace(record, outputs=(output,))))
    finding = world.only_finding()
    assert (finding.invariant, finding.subject) == (1, made_up.path)


@pytest.mark.parametrize(
    "published", [f"{DATA}/merge00002-0.parquet", "elsewhere/merge00001-0.json"]
)
def test_inv1_an_output_whose_name_or_place_is_another_merges_is_a_finding(published: str) -> None:
    world = merged()
    record = record_of(world)
    output = replace(record.outputs[0], published=published)
    world.lake.put(PATH, to_bytes(replace(record, outputs=(output,))))
    world.move(OUTPUT, published)
    assert PATH in {one.subject for one in world.audit().findings}
