"""From what a round staged to the record and the journal of its commit."""

from dataclasses import replace
from typing import cast

import pytest

from headgate.commits import Announced
from headgate.commits.checkpoint import Checkpoint, Gapped
from headgate.commits.record import Mark, OwnStep, facts_of, from_bytes
from headgate.engine import Kind, StagedFile, Tally
from headgate.errors import Corrupt, Invalid
from headgate.lake import FileFacts
from headgate.landing import StepSettings
from headgate.landing.committing import Occasion, Prepared, check_counts, prepare
from headgate.landing.names import Named
from headgate.periods import HOUR_MS, Period
from headgate.sources import Gap, Plan, Range
from headgate.store import JsonObject
from headgate.store.codec import body_of, encode
from headgate.testing.estuary import settings_of

HOUR = Period.parse("2026-11-01T13").start_ms
OCCASION = Occasion(0, 17, 4, "node-1", 99, 6)
FOLDER = "_headgate/staging/orders/x.0-4/shard=0-4"
SETTINGS = settings_of()


def staged(number: int = 0, kind: Kind = "data", rows: int = 1) -> Named:
    hour_ms = None if kind == "dead" else HOUR
    return Named(
        StagedFile(f"{FOLDER}/part-{number}", "0-4", kind, hour_ms, rows), kind, f"to/{number}"
    )


def tally(kind: Kind, rows: int, event_ms: int | None = None) -> Tally:
    return Tally("0-4", "a", 0, kind, rows, 1, rows, event_ms)


PLAN = Plan(
    "files",
    "json",
    (),
    {"a": Range("3", "5")},
    (),
    (Gap("a", "4", "5", "vanished"),),
    {"a": 70},
    has_more=False,
)


def prepared(files: list[Named], tallies: list[Tally], occasion: Occasion = OCCASION) -> Prepared:
    facts = [FileFacts(10, "sha256:0") for _ in files]
    marks = {"a": Mark(None, 50, "records")}
    return prepare(
        SETTINGS,
        occasion,
        PLAN,
        FOLDER,
        list(zip(files, facts, strict=True)),
        tallies,
        marks,
        {},
    )


def test_a_record_says_everything_and_its_journal_only_what_the_fact_needs() -> None:
    found = prepared(
        [staged(0, rows=2), staged(1, "late"), staged(2, "dead")],
        [tally("data", 2, 7), tally("late", 1, 3), tally("dead", 1), tally("skip", 1)],
    )
    record, journal = found.record, found.journal

    assert from_bytes(found.raw, "p") == record
    assert record.counts == {"data": 2, "late": 1, "dead": 1, "skip": 1}
    assert (record.event_ms, record.ranges["a"].next, len(record.gaps)) == ((3, 7), "5", 1)
    assert (journal.positions, journal.watermarks, journal.ends_ms) == (
        {"a": "5"},
        {"a": 50},
        {"a": 70},
    )
    assert (journal.size_bytes, journal.checksum) == (
        facts_of(found.raw).size_bytes,
        facts_of(found.raw).checksum,
    )
    assert (journal.periods, journal.rows, journal.shift) == (("2026-11-01T13",), 4, 6)
    assert journal.record == f"{FOLDER}/record.json"


@pytest.mark.parametrize(
    ("before_ms", "closed_ms", "first_ms", "since"),
    [
        (None, None, None, "1970-01-01T00"),  # nothing is known: it may be in any
        (None, None, HOUR - 3 * HOUR_MS, "2026-11-01T10"),  # it is in none before the first
        (None, HOUR - 2 * HOUR_MS, HOUR - 3 * HOUR_MS, "2026-11-01T11"),  # nor in what is closed
        (HOUR - 5 * HOUR_MS + 1, HOUR - 9 * HOUR_MS, None, "2026-11-01T08"),  # after the watermark
        (HOUR + 3 * HOUR_MS, None, None, "2026-11-01T13"),  # a clock that was wrong
    ],
)
def test_a_gap_concerns_the_hours_from_its_watermark_to_now(
    before_ms: int | None, closed_ms: int | None, first_ms: int | None, since: str
) -> None:
    occasion = replace(OCCASION, made_ms=HOUR + 7, closed_ms=closed_ms, first_hour_ms=first_ms)
    marks = {"a": Mark(before_ms, HOUR + 4 * HOUR_MS, "idle")}
    found = prepare(SETTINGS, occasion, PLAN, FOLDER, [], [], marks, {})
    (gap,) = found.record.gaps
    assert (gap.since, gap.until) == (since, "2026-11-01T13")
    assert found.journal.gapped == (Gapped(17, 18, since, "2026-11-01T13"),)
    assert gap.concerns(since)
    assert not gap.concerns("2026-11-01T14")


def test_a_gap_concerns_an_hour_that_records_may_be_ahead_in() -> None:
    occasion = replace(OCCASION, made_ms=HOUR + HOUR_MS - SETTINGS.future_skew_ms)
    found = prepare(SETTINGS, occasion, PLAN, FOLDER, [], [], {}, {})
    assert found.record.gaps[0].until == "2026-11-01T14"


def test_a_commit_without_records_is_one_too() -> None:
    found = prepared([], [])
    assert (found.record.files, found.record.event_ms, found.journal.rows) == ((), None, 0)


def test_what_was_on_time_and_is_before_the_first_hour_counts_as_late() -> None:
    moved = replace(staged(0, rows=3), kind="late")
    found = prepared([moved], [tally("data", 3, 7)])
    assert found.record.counts["late"] == 3
    assert found.record.counts["data"] == 0
    assert found.journal.periods == ()


def test_a_commit_that_replaces_another_says_so_in_both() -> None:
    found = prepared([], [], replace(OCCASION, replaces=16))
    assert (found.record.replaces, found.journal.replaces) == (16, 16)


def test_g8_a_hundred_thousand_steps_leave_the_checkpoint_small() -> None:
    found = prepared([staged(number) for number in range(100_000)], [tally("data", 100_000, 7)])
    checkpoint = Checkpoint(number=17, positions={"a": "3"}, journal=found.journal)
    assert len(found.raw) > 10_000_000
    assert len(encode("checkpoint", body_of(checkpoint))) < 2_000


@pytest.mark.parametrize(
    ("rows", "skipped", "counted", "is_right"),
    [(3, 0, 3, True), (2, 1, 3, True), (2, 0, 3, False), (4, 0, 3, False), (3, 1, 3, False)],
)
def test_k21_rows_in_the_files_are_the_rows_that_were_counted(
    rows: int, skipped: int, counted: int, is_right: bool
) -> None:
    files, tallies = [staged(rows=rows)], [tally("data", counted)]
    if is_right:
        check_counts(files, skipped, tallies)
    else:
        with pytest.raises(Corrupt, match="nothing was journaled"):
            check_counts(files, skipped, tallies)


class Bell:
    name = "bell"

    def body(self, announced: Announced) -> JsonObject:
        """Nothing to do for a commit without files on time."""
        if not announced.published:
            return {}
        # A tuple, as it comes: a replay reads a list, and so does who carries it out at first.
        return cast(JsonObject, {"files": announced.published, "to": announced.options["to"]})

    def verify(self, body: JsonObject) -> bool:
        raise AssertionError(f"nothing is done yet: {body}")

    def execute(self, body: JsonObject) -> None:
        raise AssertionError(f"nothing is done yet: {body}")


def steps_of(files: list[Named], kinds: dict[str, Bell]) -> tuple[OwnStep, ...]:
    settings = replace(SETTINGS, steps=(StepSettings("bell", {"to": "x"}),))
    pairs = [(one, FileFacts(1, "sha256:0")) for one in files]
    return prepare(settings, OCCASION, PLAN, FOLDER, pairs, [], {}, kinds).record.steps


def test_own_steps_are_told_of_the_files_on_time_before_the_intent() -> None:
    found = steps_of([staged(0), staged(1, "late")], {"bell": Bell()})
    assert found == (OwnStep("bell", {"files": ["to/0"], "to": "x"}),)
    assert steps_of([], {"bell": Bell()}) == ()


def test_a_step_kind_that_nobody_registered_stops_the_commit_before_its_intent() -> None:
    with pytest.raises(Invalid, match="nobody registered a step kind 'bell'"):
        steps_of([staged()], {})


def test_a_record_says_where_every_source_partition_of_its_shard_is_afterwards() -> None:
    occasion = replace(OCCASION, positions={"a": "3", "b": "9"})
    assert prepared([], [], occasion).record.positions == {"a": "5", "b": "9"}
