"""Slips: known bugs of ready, one switch each: ways in which a flag says what is not so.

Each takes the place of one small decision in `headgate.ready`.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import takewhile
from typing import Any

from headgate.commits import roots
from headgate.commits.certificate import CertifiedFile
from headgate.commits.checkpoint import Checkpoint
from headgate.commits.merges import MergeRecord, from_bytes
from headgate.commits.record import RecordFile
from headgate.commits.roots import FlagMove, RootDocument, RootJournal, Seat
from headgate.engine.merger import Merged, Merger
from headgate.lake import Lake
from headgate.lake.guarded import GuardedLake
from headgate.periods import Period, hours_between
from headgate.ready import certifying, closing, flagging, merging, root, work
from headgate.ready.evidence import Evidence, read_evidence
from headgate.ready.propagation import Parent
from headgate.store import DocumentStore
from headgate.testing.switches import Bug, Patch, switched_on


def planted_slip(bug: str) -> AbstractContextManager[None]:
    """While open, the code has that bug."""
    return switched_on(SLIPS[bug])


def _flag_at_the_start() -> Sequence[Patch]:
    def closable(seat: Seat, evidence: Evidence, lateness_ms: int, *_: Any) -> tuple[Period, ...]:
        reach_ms = closing.reached_ms(evidence, lateness_ms)
        if seat.frontier_ms is None or reach_ms is None:
            return ()
        hours = hours_between(seat.frontier_ms, reach_ms)
        return tuple(takewhile(lambda hour: hour.start_ms <= reach_ms, hours))

    return [(work, "closable", closable)]


def _what_is_there_is_all() -> Sequence[Patch]:
    """A day has the hours that have a flag; none of them missing, it is ready."""

    def next_days(document: RootDocument) -> tuple[Parent, ...]:
        if document.hours_ms is None or document.days_ms is not None:
            return ()
        day = Period.day_of(document.hours_ms - 1)
        hours = [hour for hour in day.hours() if hour.end_ms <= (document.hours_ms or 0)]
        firsts = [seat.first_ms or 0 for seat in document.streams.values()]
        return (Parent(day, tuple(str(one) for one in hours if one.start_ms >= min(firsts))),)

    return [(work, "next_days", next_days)]


def _stripped(evidence: Evidence) -> Evidence:
    def strip(checkpoint: Checkpoint | None) -> Checkpoint | None:
        if checkpoint is None:
            return None
        marks = {one: mark for one, mark in checkpoint.watermarks.items() if mark is not None}
        return replace(checkpoint, watermarks=marks)

    return replace(evidence, checkpoints=tuple(strip(one) for one in evidence.checkpoints))


def _no_watermark_no_matter() -> Sequence[Patch]:
    honest = closing.reached_ms

    def reached_ms(evidence: Evidence, lateness_ms: int) -> int | None:
        return honest(_stripped(evidence), lateness_ms)

    return [(closing, "reached_ms", reached_ms)]


def _closing_before_all_have_watermarks() -> Sequence[Patch]:
    def first_read(store: DocumentStore, stream: str) -> Evidence:
        return _stripped(read_evidence(store, stream))

    def read_again(self: Any, stream: str, _before: Evidence) -> Evidence:
        return read_evidence(self._store, stream)

    return [(work, "read_evidence", first_read), (work.RootWork, "_read_again", read_again)]


def _not_read_again() -> Sequence[Patch]:
    def read_again(_self: Any, _stream: str, before: Evidence) -> Evidence:
        return before

    return [(work.RootWork, "_read_again", read_again)]


def _staged_is_kept() -> Sequence[Patch]:
    """What was staged for a flag is not consumed: whoever wakes up late has it still."""

    def raise_flag(lake: Lake, move: FlagMove) -> None:
        raw = lake.read(move.staged)
        if raw is not None and lake.facts(move.published) is None:
            lake.publish(move.staged, move.published)
            lake.stage(move.staged, raw)

    def remove_nothing(_self: Any, _folder: str) -> None:
        return None

    return [
        (flagging, "raise_flag", raise_flag),
        (GuardedLake, "remove_folder", remove_nothing),
    ]


def _whatever_flag_is_there() -> Sequence[Patch]:
    def withdraw_flag(lake: Lake, move: FlagMove) -> None:
        found = lake.facts(move.staged)
        if found is None:
            return
        if lake.facts(move.published) is None:
            lake.publish(move.staged, move.published)
        else:
            lake.remove(move.staged, found)

    return [(flagging, "withdraw_flag", withdraw_flag)]


def _inputs_first() -> Sequence[Patch]:
    honest = merging.carry_out_merge

    def carry_out_merge(lake: Lake, journal: RootJournal) -> None:
        for pointer in journal.moves:
            raw = lake.read(pointer.staged)
            inputs = () if raw is None else from_bytes(raw, pointer.staged).inputs
            for one in inputs:
                lake.remove(one.path, one.facts)
        honest(lake, journal)

    return [(work, "carry_out_merge", carry_out_merge)]


def _merged_rows_are_believed() -> Sequence[Patch]:
    """What was written has as many rows as what was read, surely."""
    honest = merging.run_jobs

    def run_jobs(merger: Merger, wanted: merging.Wanted, folder: str) -> list[Merged]:
        merged = zip(honest(merger, wanted, folder), wanted.groups, strict=True)
        return [replace(one, rows=sum(file.rows for file in group)) for one, group in merged]

    return [(merging, "run_jobs", run_jobs)]


def _certified_as_landed() -> Sequence[Patch]:
    honest = certifying.in_place

    def in_place(
        data: Sequence[RecordFile], _merge: MergeRecord | None
    ) -> tuple[CertifiedFile, ...]:
        return honest(data, None)

    return [(certifying, "in_place", in_place)]


def _joined_below_a_journal() -> Sequence[Patch]:
    """A stream takes its seat at the frontier, whatever is about to be flagged."""
    honest = roots.joined

    def joined(found: RootDocument, stream: str) -> RootDocument:
        after = honest(replace(found, journal=None), stream)
        return replace(after, journal=found.journal)

    return [(roots, "joined", joined), (root, "joined", joined)]


SLIPS: Mapping[str, Bug] = {
    "flag at the hour's start": _flag_at_the_start,
    "an empty set of children counts as ready": _what_is_there_is_all,
    "a partition without watermark does not block": _no_watermark_no_matter,
    "parent flag published after the child's withdrawal": _staged_is_kept,
    "closing written while a found partition has no watermark": _closing_before_all_have_watermarks,
    "checkpoints not read again after closing": _not_read_again,
    "a late withdrawal takes the next generation's flag": _whatever_flag_is_there,
    "small files removed before the merged ones are published": _inputs_first,
    "rows of a merge are not counted": _merged_rows_are_believed,
    "the certificate names small files that were merged": _certified_as_landed,
    "a stream joins below what a journal flags": _joined_below_a_journal,
}
