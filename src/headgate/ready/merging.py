"""Merging: small files of a closed hour become few large ones, before its certificate is frozen.

    prepare      inputs ── one job ──▶ staged outputs ── counted, sealed ──▶ the staged record
    carry out    record ── publish ──▶ outputs ── publish, settle ──▶ looked at, each
                        ──▶ inputs ── remove ──▶ settle ──▶ the fact

Preparing changes nothing that anybody looks at: whatever goes wrong there is a failed try. The root
document's journal is only a pointer to the staged record, however many files there are. Carrying
out may be done again, late, or by several at once: publishing consumes what was staged, an input is
removed only if it is exactly the file that the record says, and none is while an output is missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal

from headgate.commits.merges import (
    MergeInput,
    MergeOutput,
    MergeRecord,
    from_bytes,
    merge_path,
    output_name,
    to_bytes,
)
from headgate.commits.roots import FlagMove, RootJournal
from headgate.engine.codecs import GZIPPED
from headgate.engine.failure import JobFailed
from headgate.engine.merger import Merged, MergeJob, Merger
from headgate.errors import Conflict, Corrupt, Halted, OutcomeUnknown, Unavailable
from headgate.lake import Lake
from headgate.lake.paths import folder_of, join
from headgate.periods import Period
from headgate.ready.flagging import raise_flag
from headgate.ready.grouping import Group, suffix_of

GENERATION: Final = 1  # hours are merged before their first certificate
TRIES_MAX: Final = 3
RECORD: Final = "merge.json"


@dataclass(frozen=True, slots=True)
class Wanted:
    """An hour whose small files are to be merged before its certificate is frozen."""

    stream: str
    hour: Period
    groups: tuple[Group, ...]

    @property
    def words(self) -> str:
        files = [file for group in self.groups for file in group]
        rows = sum(file.rows for file in files)
        return f"{len(files):,} small files with {rows:,} rows become {len(self.groups):,}"


@dataclass(frozen=True, slots=True)
class Attempt:
    folder: str  # of staging
    epoch: int
    node: str
    made_ms: int


def prepare(lake: Lake, merger: Merger, wanted: Wanted, attempt: Attempt) -> RootJournal:
    """The journal of it; until somebody writes that, nothing has happened. Raises JobFailed,
    Corrupt, Invalid, Unavailable, OutcomeUnknown."""
    stream, period = wanted.stream, str(wanted.hour)
    published = merge_path(stream, period, GENERATION)
    names = [
        join(folder_of(group[0].published), output_name(GENERATION, index, _suffix(group)))
        for index, group in enumerate(wanted.groups)
    ]
    _check_free(lake, [published, *names])
    merged = run_jobs(merger, wanted, attempt.folder)
    for group, one in zip(wanted.groups, merged, strict=True):
        check_rows(group, one)
    _check_unchanged(lake, wanted.groups)  # after they were read: what is sealed now is what landed
    facts = lake.seal([one.path for one in merged])
    outputs = tuple(
        MergeOutput(
            one.path,
            name,
            seal.size_bytes,
            seal.checksum,
            one.rows,
            tuple(
                MergeInput(file.published, file.size_bytes, file.checksum, file.rows)
                for file in group
            ),
        )
        for one, name, seal, group in zip(merged, names, facts, wanted.groups, strict=True)
    )
    record = MergeRecord(
        stream, period, GENERATION, attempt.epoch, attempt.node, attempt.made_ms, outputs
    )
    staged = join(attempt.folder, RECORD)
    seal = lake.stage(staged, to_bytes(record))
    pointer = FlagMove(staged, published, seal.size_bytes, seal.checksum)
    return RootJournal("merge", attempt.folder, (pointer,), merges=(stream,))


def carry_out_merge(lake: Lake, journal: RootJournal) -> None:
    """Afterwards the outputs are in their places and the inputs are gone, and that lasts. Raises
    Halted (a person decides), Corrupt, Unavailable."""
    for pointer in journal.moves:
        record = _pointed(lake, pointer)
        raise_flag(lake, pointer)
        for one in record.outputs:
            raise_flag(lake, FlagMove(one.staged, one.published, one.size_bytes, one.checksum))
        paths = (pointer.published, *(one.published for one in record.outputs))
        lake.settle(sorted({folder_of(path) for path in paths}))
        if _are_in_place(lake, record):
            for small in record.inputs:
                _remove(lake, small)
            lake.settle(sorted({folder_of(small.path) for small in record.inputs}))


def check_rows(group: Group, merged: Merged) -> None:
    """Raises JobFailed: a row was lost or doubled on the way."""
    rows = sum(file.rows for file in group)
    if merged.rows != rows:
        raise JobFailed(
            f"{merged.rows:,} rows were written of {len(group):,} files that hold {rows:,}, the "
            f"first of them {group[0].published}; they stay as they are"
        )


def run_jobs(merger: Merger, wanted: Wanted, folder: str) -> list[Merged]:
    """One job; two, where a stream landed in two formats within the hour."""
    found: dict[str, Merged] = {}
    for form, alike in groupby(sorted(wanted.groups, key=_format), key=_format):
        groups = tuple(alike)
        paths = tuple(tuple(file.published for file in group) for group in groups)
        what = f"headgate: merge {wanted.stream} {wanted.hour}"
        merged = merger.merge(MergeJob(join(folder, form), form, paths, what))
        if len(merged) != len(groups):
            raise JobFailed(f"{len(merged):,} files were written of {len(groups):,} groups")
        for group, one in zip(groups, merged, strict=True):
            found[group[0].published] = one
    return [found[group[0].published] for group in wanted.groups]


def _suffix(group: Group) -> str:
    return suffix_of(group[0].published)


def _format(group: Group) -> Literal["lines", "packed", "parquet"]:
    suffix = _suffix(group)
    if suffix == "parquet":
        return "parquet"
    return "packed" if suffix.endswith(GZIPPED) else "lines"


def _check_free(lake: Lake, paths: Sequence[str]) -> None:
    """Before the journal: afterwards it would stop the whole root. Raises Corrupt."""
    for path in paths:
        if lake.facts(path) is not None:
            raise Corrupt(
                f"{path}: there is such a file already, and no merge of this hour is on record; "
                "nothing is overwritten; next: move it away, then headgate audit"
            )


def _check_unchanged(lake: Lake, groups: Sequence[Group]) -> None:
    """Else a new checksum would vouch for what somebody changed. Raises Corrupt."""
    for file in (file for group in groups for file in group):
        if lake.facts(file.published) != file.facts:
            raise Corrupt(
                f"{file.published}: is gone, or is not what its commit record says; the files of "
                "its hour stay as they are; next: headgate audit"
            )


def _pointed(lake: Lake, pointer: FlagMove) -> MergeRecord:
    """Raises Halted, Corrupt, Unavailable."""
    # Staged first: the other way round, a neighbour's move in between would look like a loss.
    path, raw = pointer.staged, lake.read(pointer.staged)
    if raw is None:
        path, raw = pointer.published, lake.read(pointer.published)
    if raw is None:
        raise Halted(
            f"{pointer.published}: not published, and what was staged for it is gone; no flag of "
            "this root is raised until then; next: restore it from a backup, then headgate audit"
        )
    found = lake.facts(path)
    if found is None:  # a neighbour moved it just now
        found = lake.facts(pointer.published)
    if found != pointer.facts:
        raise Corrupt(
            f"{path}: is not the merge record that the root's journal names; nothing is removed, "
            "and no flag of this root is raised; next: restore it from a backup, then headgate "
            "audit"
        )
    return from_bytes(raw, path)


def _are_in_place(lake: Lake, record: MergeRecord) -> bool:
    """False: everything was done, and the outputs were rightly removed since. Raises Halted."""
    lost = [one for one in record.outputs if lake.facts(one.published) != one.facts]
    if not lost:
        return True
    if all(lake.facts(one.path) is None for one in record.inputs):
        return False
    raise Halted(
        f"{lost[0].published}: is not published as the merge record says, and what was staged for "
        "it is gone; the small files that are still there stay, and no flag of this root is "
        "raised; next: restore it from a backup, then headgate audit"
    )


def _remove(lake: Lake, one: MergeInput) -> None:
    for _ in range(TRIES_MAX):
        try:
            lake.remove(one.path, one.facts)
        except Conflict:
            return  # another file has its name: it stays, and verify and audit name it
        except OutcomeUnknown:
            continue
        return
    raise Unavailable(f"{one.path}: removed {TRIES_MAX} times, and nobody knows whether it is gone")
