"""Committing: from what a round staged to the record and the journal of its commit. Pure.

A record says everything that anybody may want to know of a commit later; the journal only what the
fact needs.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from headgate.commits import Announced, StepKind
from headgate.commits.checkpoint import ROWS, Gapped, Journal
from headgate.commits.record import (
    Mark,
    OwnStep,
    Record,
    RecordFile,
    RecordGap,
    RecordRange,
    facts_of,
    to_bytes,
)
from headgate.engine import Tally
from headgate.errors import Corrupt, Invalid
from headgate.lake import FileFacts
from headgate.landing import StreamSettings
from headgate.landing.names import Named
from headgate.periods import Period
from headgate.sources import Gap, Plan

RECORD_NAME = "record.json"


@dataclass(frozen=True, slots=True)
class Occasion:
    """Who commits, and when."""

    shard: int
    number: int
    epoch: int
    node: str
    made_ms: int
    shift: int  # that ends with it; 0: none does
    replaces: int | None = None
    discovered_ms: int = 0  # by the store's clock, before the source named its partitions
    closed_ms: int | None = None  # hours that end by then have their certificate
    positions: Mapping[str, str] = field(default_factory=dict)  # of the shard, before it
    first_hour_ms: int | None = None  # of the stream


@dataclass(frozen=True, slots=True)
class Prepared:
    record: Record
    raw: bytes
    journal: Journal

    def staged_as(self, facts: FileFacts) -> "Prepared":
        """With what the lake says of the record: each lake has its own kind of checksum."""
        named = replace(self.journal, size_bytes=facts.size_bytes, checksum=facts.checksum)
        return replace(self, journal=named)


def prepare(
    settings: StreamSettings,
    occasion: Occasion,
    plan: Plan,
    folder: str,
    files: Sequence[tuple[Named, FileFacts]],
    tallies: Sequence[Tally],
    marks: Mapping[str, Mark],
    kinds: Mapping[str, StepKind],
) -> Prepared:
    """Raises Invalid: a step kind that nobody registered."""
    latest = [tally.event_ms_max for tally in tallies if tally.event_ms_max is not None]
    earliest = [tally.event_ms_min for tally in tallies if tally.event_ms_min is not None]
    counts = Counter({kind: 0 for kind in ("data", "late", "dead", "skip")})
    for tally in tallies:
        counts[tally.kind] += tally.rows
    moved = sum(one.staged.rows for one, _ in files if one.kind != one.staged.kind)
    counts["data"] -= moved  # on time for their source partition, and before the first hour
    counts["late"] += moved
    record = Record(
        settings.name,
        occasion.shard,
        occasion.number,
        occasion.epoch,
        occasion.node,
        occasion.made_ms,
        occasion.shift,
        {one: RecordRange(span.first, span.next) for one, span in plan.ranges.items()},
        dict(counts),
        _record_files(files),
        tuple(_gap(gap, settings, occasion, marks) for gap in plan.gaps),
        dict(marks),
        tuple(_own_steps(settings, occasion, [one for one, _ in files], kinds)),
        (min(earliest + latest), max(latest)) if latest else None,
        occasion.replaces,
        plan.columns if settings.source.format == "csv" else (),
        {**occasion.positions, **{one: span.next for one, span in plan.ranges.items()}},
        plan.origin,
        settings.shards,
        occasion.first_hour_ms,
    )
    raw = to_bytes(record)
    facts = facts_of(raw)
    journal = Journal(
        occasion.number,
        occasion.epoch,
        folder,
        f"{folder}/{RECORD_NAME}",
        facts.size_bytes,
        facts.checksum,
        {one: span.next for one, span in plan.ranges.items()},
        {one: mark.after_ms for one, mark in marks.items()},
        dict(plan.ends_ms),
        tuple(sorted({file.period for file in record.files if file.kind == "data"})),
        occasion.shift,
        {**{kind: counts[kind] for kind in ROWS}, "gaps": len(plan.gaps)},
        occasion.replaces,
        occasion.discovered_ms,
        {one: mark.by for one, mark in marks.items() if mark.by != "kept"},
        "" if occasion.closed_ms is None else str(Period(occasion.closed_ms, "hour")),
        gapped_by(record),
    )
    return Prepared(record, raw, journal)


def _gap(
    gap: Gap, settings: StreamSettings, occasion: Occasion, marks: Mapping[str, Mark]
) -> RecordGap:
    """What is missing was later than its source partition's watermark; or, if that had none, in any
    hour that is not closed. It had arrived by now, and may have been ahead of that."""
    mark, made_ms = marks.get(gap.partition), occasion.made_ms
    known = (None if mark is None else mark.before_ms, occasion.closed_ms, occasion.first_hour_ms)
    earliest_ms = next((one for one in known if one is not None), 0)
    since = Period.hour_of(min(earliest_ms, made_ms))
    until = Period.hour_of(made_ms + settings.future_skew_ms)
    return RecordGap(gap.partition, gap.first, gap.next, gap.reason, str(since), str(until))


def gapped_by(record: Record) -> tuple[Gapped, ...]:
    """The commit itself, if it has gaps, with the hours that they concern."""
    if not record.gaps:
        return ()
    since = min(gap.since for gap in record.gaps)
    until = max(gap.until for gap in record.gaps)
    return (Gapped(record.number, record.number + 1, since, until),)


def _record_files(files: Sequence[tuple[Named, FileFacts]]) -> tuple[RecordFile, ...]:
    hours_ms = {one.staged.hour_ms for one, _ in files}
    periods = {ms: "" if ms is None else str(Period(ms, "hour")) for ms in hours_ms}
    return tuple(
        RecordFile(
            one.kind,
            periods[one.staged.hour_ms],
            one.staged.path,
            one.published,
            facts.size_bytes,
            facts.checksum,
            one.staged.rows,
            one.staged.output,
        )
        for one, facts in files
    )


def _own_steps(
    settings: StreamSettings,
    occasion: Occasion,
    files: Sequence[Named],
    kinds: Mapping[str, StepKind],
) -> list[OwnStep]:
    data = tuple(one.published for one in files if one.kind == "data")
    found = []
    for step in settings.steps:
        if step.kind not in kinds:
            raise Invalid(
                f"stream {settings.name}: nobody registered a step kind {step.kind!r}; "
                "next: App.add_step_kind(…), or take it out of the settings"
            )
        announced = Announced(settings.name, occasion.shard, occasion.number, data, step.options)
        # As a replay will read it from the record: the same body, whoever carries it out.
        body = json.loads(json.dumps(kinds[step.kind].body(announced)))
        if body:
            found.append(OwnStep(step.kind, body))
    return found


def check_counts(files: Sequence[Named], skipped: int, tallies: Sequence[Tally]) -> None:
    """What lies in the staged files is what was counted. Raises Corrupt."""
    in_files = sum(one.staged.rows for one in files) + skipped
    counted = sum(tally.rows for tally in tallies)
    if in_files != counted:
        raise Corrupt(
            f"the staged files hold {in_files:,} rows, and {counted:,} were counted in them; "
            "nothing was journaled, the round is staged again"
        )
