"""Replaying a journal's commit, from whatever a crash left, in any order, by several at once."""

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import pytest

from headgate import lake as lakes
from headgate.commits import Announced
from headgate.commits.checkpoint import Journal
from headgate.commits.record import (
    OwnStep,
    Record,
    RecordFile,
    RecordRange,
    facts_of,
    record_path,
    to_bytes,
)
from headgate.commits.replay import carry_out_journal, read_record
from headgate.errors import Corrupt, Halted, Invalid, Unavailable
from headgate.lake.memory import MemoryLake
from headgate.lake.paths import STAGING
from headgate.store import JsonObject

FOLDER = f"{STAGING}/заказы/x.0-1/shard=0-1"
STREAM = "заказы"
PLACES = [f"2026-11-01/0{hour}/{STREAM}/data/shard0-commit0000000001-0.json" for hour in range(3)]


class Lake(MemoryLake):
    def __init__(self) -> None:
        super().__init__()
        self.published: list[str] = []
        self.closes_after: int | None = None

    def publish(self, staged: str, published: str) -> None:
        if len(self.published) == self.closes_after:
            raise Unavailable("closed")
        super().publish(staged, published)
        self.published.append(published)


def staged_commit(lake: lakes.Lake, steps: Sequence[OwnStep] = (), stream: str = STREAM) -> Journal:
    files = []
    for number, place in enumerate(PLACES):
        path = f"{FOLDER}/part-{number}"
        facts = lake.stage(path, f"records of {place}".encode())
        files.append(RecordFile("data", "", path, place, facts.size_bytes, facts.checksum, 1))
    ranges = {"a": RecordRange("", "3")}
    record = Record(
        stream, 0, 1, 1, "n", 0, 0, ranges, {"data": 3}, tuple(files), steps=tuple(steps)
    )
    raw = to_bytes(record)
    facts = facts_of(raw)
    lake.stage(f"{FOLDER}/record.json", raw)
    return Journal(
        1,
        1,
        FOLDER,
        f"{FOLDER}/record.json",
        facts.size_bytes,
        facts.checksum,
        {"a": "3"},
        {},
        {},
        (),
        0,
    )


def in_order(order: Sequence[int]) -> Any:
    def each(act: Callable[[Any], Any], things: Sequence[Any]) -> list[Any]:
        return [act(things[n]) for n in order]

    return each


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_inv5_files_may_be_published_in_any_order_and_the_record_is_first(
    order: tuple[int, ...],
) -> None:
    lake = Lake()
    journal = staged_commit(lake)

    record = carry_out_journal(lake, STREAM, 0, journal, {}, in_order(order))

    assert sorted(file.published for file in record.files) == PLACES
    assert lake.published[0] == record_path(STREAM, 0, 1)
    assert sorted(lake.files()) == sorted([record_path(STREAM, 0, 1), *PLACES])


@pytest.mark.parametrize("done", range(5))
def test_g6_inv5_replay_goes_on_from_wherever_it_stopped_also_in_another_script(
    done: int,
) -> None:
    """After so many moves the first try finds the lake closed."""
    lake = Lake()
    journal = staged_commit(lake)
    lake.closes_after = done
    if done < 4:
        with pytest.raises(Unavailable):
            carry_out_journal(lake, STREAM, 0, journal, {})
    lake.closes_after = None

    for _ in range(2):
        carry_out_journal(lake, STREAM, 0, journal, {})

    assert len(lake.published) == 4
    assert sorted(lake.files()) == sorted([record_path(STREAM, 0, 1), *PLACES])


def test_what_was_published_survives_a_power_cut() -> None:
    lake = Lake()
    carry_out_journal(lake, STREAM, 0, staged_commit(lake), {})
    lake.power_cut()
    assert {record_path(STREAM, 0, 1), *PLACES} <= set(lake.files())


def test_g5_a_staged_record_that_was_cut_is_not_published() -> None:
    lake = Lake()
    journal = staged_commit(lake)
    raw = lake.read(journal.record)
    assert raw is not None
    lake.put(journal.record, raw[:-5])
    with pytest.raises(Halted, match="headgate journal restage"):
        carry_out_journal(lake, STREAM, 0, journal, {})
    assert lake.published == []


def test_another_record_under_its_number_is_corrupt() -> None:
    lake = Lake()
    journal = staged_commit(lake)
    lake.stage(record_path(STREAM, 0, 1), b"{}")
    with pytest.raises(Corrupt):
        carry_out_journal(lake, STREAM, 0, journal, {})
    assert lake.published == []


def test_a_record_that_says_another_commit_is_corrupt() -> None:
    lake = Lake()
    staged_commit(lake, stream="another")
    lake.publish(f"{FOLDER}/record.json", record_path(STREAM, 0, 1))
    with pytest.raises(Corrupt, match="is the record of another/0/1"):
        read_record(lake, STREAM, 0, 1)


class Bell:
    name = "bell"

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.heard: list[list[str]] = []

    def body(self, announced: Announced) -> JsonObject:
        return {"number": announced.number}

    def verify(self, body: JsonObject) -> bool:
        del body
        return bool(self.heard)

    def execute(self, body: JsonObject) -> None:
        del body
        self.heard.append(list(self.lake.published))


def test_own_steps_come_after_every_file() -> None:
    lake = Lake()
    bell = Bell(lake)
    journal = staged_commit(lake, [OwnStep("bell", {"number": 1})])

    for _ in range(2):
        carry_out_journal(lake, STREAM, 0, journal, {"bell": bell})

    assert [len(seen) for seen in bell.heard] == [4]


def test_a_step_kind_that_this_node_does_not_know_is_named() -> None:
    lake = Lake()
    journal = staged_commit(lake, [OwnStep("bell", {"number": 1})])
    with pytest.raises(Invalid, match="a step of kind 'bell', which this node does not know"):
        carry_out_journal(lake, STREAM, 0, journal, {})
