"""Derived: what documents must say, from what lies in the lake, for who makes a lost store anew.

    commit records, in order ──▶ checkpoint; the last one's journal stands if a file of it is not
                                 in its place: whoever holds the shard then finishes it
    certificates, statements ──▶ seats and frontiers; flags that are missing
    the table's own proofs, the ledger ──▶ how far a table is, what it was let pass

Nothing here writes a document. The same lake gives the same documents, whoever asks.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from headgate.apply import TableSettings
from headgate.apply.table_document import PASSED_MAX, Halt, Passed, TableDocument
from headgate.audit.numbers import number_of
from headgate.commits.certificate import (
    CERTIFICATES,
    Certificate,
    ParentCertificate,
    flag_paths,
    parent_flag_path,
    parents_folder,
    withdrawn_path,
)
from headgate.commits.checkpoint import (
    ROWS,
    Checkpoint,
    Journal,
    Wish,
    concluded,
    since,
    with_gaps,
)
from headgate.commits.merges import MergeRecord, merge_path, merges_folder, read_merge
from headgate.commits.record import Record, from_bytes, record_folder, record_path
from headgate.commits.removals import Removed, removed_hours, statements_of, with_removed
from headgate.commits.roots import (
    FlagMove,
    RootDocument,
    RootJournal,
    Seat,
    place_of,
)
from headgate.errors import Corrupt, Halted, Invalid
from headgate.lake import FileFacts, Lake
from headgate.lake.ledger import Line
from headgate.lake.local import Each, in_turn
from headgate.lake.pages import entries_of
from headgate.lake.paths import folder_of, join, name_of
from headgate.landing.committing import gapped_by
from headgate.landing.names import DEAD
from headgate.periods import HOUR_MS, FolderTemplate, Period, escape_name, hours_between
from headgate.ready.archive import Filed, latest, latest_parent
from headgate.ready.merging import GENERATION, RECORD
from headgate.tables import Taken
from headgate.tables.parquet import version_of

AT_ONCE = 500  # records that are read together
NO_FACTS = FileFacts(0, "")
GOES_ON = ("table.resume", "table.retry", "table.skip", "table.mark_applied")

_SHARD_FOLDER = re.compile(r"(.*/shard=\d+-\d+)(?:/.*)?")


@dataclass(frozen=True, slots=True)
class Shard:
    """What the records of one shard lead to."""

    checkpoint: Checkpoint
    origins: tuple[Mapping[str, object], ...] = ()  # of every commit, in order
    shards: int = 0  # of the stream, as records say; 0: none says
    first_hour_ms: int | None = None
    is_whole: bool = True  # every record that read something says of what
    records: int = 0
    earliest: str = ""  # period with files; "": none
    outputs: frozenset[str] = frozenset()  # that its files are of; "" is the stream itself


@dataclass(slots=True)
class _Fold:
    name: str
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    origins: list[Mapping[str, object]] = field(default_factory=list)
    shards: int = 0
    first_hour_ms: int | None = None
    is_whole: bool = True
    records: int = 0
    earliest: str = ""
    outputs: set[str] = field(default_factory=set)

    def add(self, record: Record) -> None:
        before = replace(known_to(self.checkpoint, record), number=record.number)
        journal = journal_of(record, NO_FACTS)  # it is concluded at once: nobody looks for it
        self.checkpoint = concluded(
            self.name, replace(before, journal=journal), journal, record.made_ms
        )
        self.origins += [record.origin] if record.origin else []
        self.shards = record.shards or self.shards
        self.first_hour_ms = record.first_hour_ms or self.first_hour_ms
        self.is_whole &= record.shards > 0 or not record.ranges
        self.records += 1
        landed = [file for file in record.files if file.kind in ("data", "late")]
        self.outputs.update(file.output for file in landed)
        periods = [file.period for file in landed if file.kind == "data"]
        self.earliest = min([*periods, *([self.earliest] if self.earliest else [])], default="")


def known_to(checkpoint: Checkpoint, record: Record) -> Checkpoint:
    """With every source partition that the shard had then. One without a watermark blocks."""
    named = {*record.positions, *record.ranges}
    new = sorted(one for one in named if one not in checkpoint.positions)
    return replace(
        checkpoint,
        positions={**checkpoint.positions, **dict.fromkeys(new, "")},
        watermarks={**checkpoint.watermarks, **dict.fromkeys(new)},
        epoch=0,
    )


def journal_of(record: Record, facts: FileFacts) -> Journal:
    """The journal of which this record is the lasting part. Pure."""
    folder = staging_of(record)
    return Journal(
        record.number,
        record.epoch,
        folder,
        f"{folder}/record.json",
        facts.size_bytes,
        facts.checksum,
        {one: span.next for one, span in record.ranges.items()},
        {one: mark.after_ms for one, mark in record.watermarks.items()},
        {},
        tuple(sorted({file.period for file in record.files if file.kind == "data"})),
        record.shift,
        {**{kind: record.counts.get(kind, 0) for kind in ROWS}, "gaps": len(record.gaps)},
        record.replaces,
        0,
        {one: mark.by for one, mark in record.watermarks.items() if mark.by != "kept"},
        gapped=gapped_by(record),
    )


def staging_of(record: Record) -> str:
    """Where its files were staged; of one without files nobody needs to know."""
    for file in record.files:
        found = _SHARD_FOLDER.fullmatch(folder_of(file.staged))
        return found[1] if found else folder_of(file.staged)
    return f"_headgate/staging/{escape_name(record.stream)}/none"


def read_shard(lake: Lake, stream: str, shard: int, each: Each = in_turn) -> Shard:
    """Raises Halted (a record is gone), Corrupt, Unavailable."""
    fold = _Fold(f"{stream}/{shard}")
    pending: Record | None = None
    last = 0

    def read(path: str) -> Record:
        raw = lake.read(path)
        if raw is None:
            raise _gone(path)
        return from_bytes(raw, path)

    paths = [
        entry.path
        for entry in entries_of(lake, record_folder(stream, shard))
        if number_of(entry) is not None
    ]
    for first in range(0, len(paths), AT_ONCE):
        for record in each(read, paths[first : first + AT_ONCE]):
            _check_next(stream, shard, last, record)
            if pending is not None and record.replaces != pending.number:
                fold.add(pending)
            pending, last = record, record.number
    if pending is not None:
        before, record = fold.checkpoint, pending
        fold.add(record)
        if not is_in_place(lake, record):
            standing = replace(known_to(before, record), number=record.number)
            facts = _facts(lake, record_path(stream, shard, record.number))
            fold.checkpoint = replace(standing, journal=journal_of(record, facts))
    return Shard(
        fold.checkpoint,
        tuple(fold.origins),
        fold.shards,
        fold.first_hour_ms,
        fold.is_whole,
        fold.records,
        fold.earliest,
        frozenset(fold.outputs),
    )


def _facts(lake: Lake, path: str) -> FileFacts:
    """As the lake tells them: each has its own kind of checksum. Raises Halted, Unavailable."""
    found = lake.facts(path)
    if found is None:
        raise _gone(path)
    return found


def _gone(path: str) -> Halted:
    return Halted(f"{path}: was there, and is gone; next: headgate store rebuild again")


def _check_next(stream: str, shard: int, last: int, record: Record) -> None:
    if (record.stream, record.shard) != (stream, shard):
        raise Corrupt(
            f"{record_folder(stream, shard)}: has the record of {record.stream}/{record.shard}/"
            f"{record.number}; next: put the right one back from a backup"
        )
    is_next = record.number == last + 1
    # One that was replaced before its record was published has none.
    if not is_next and not (record.number == last + 2 and record.replaces == last + 1):
        raise Halted(
            f"{record_folder(stream, shard)}: the record of commit {last + 1} is not there, and "
            f"that of {record.number} is: nobody knows what was read in between; next: put it back "
            "from a backup, then headgate store rebuild again"
        )


def is_in_place(lake: Lake, record: Record) -> bool:
    """Its fact may be taken as written: nothing is staged, and each file is published or rightly
    gone. Else its journal stands, and whoever holds the shard finishes it, or says what is lost."""
    gone: set[str] | None = None
    for file in record.files:
        if lake.facts(file.staged) is not None:
            return False
        if lake.facts(file.published) is not None or file.published.startswith(f"{DEAD}/"):
            continue  # dead letters may have been driven in again
        if gone is None:
            gone = rightly_gone(lake, record)
        if file.published not in gone:
            return False
    return True


def rightly_gone(lake: Lake, record: Record) -> set[str]:
    """Of its files: merged, or removed on purpose, under the name that they landed under."""
    found: set[str] = set()
    hours = {(file.output or record.stream, file.period) for file in record.files if file.period}
    for name, period in sorted(hours):
        merge = read_merge(lake, name, period, GENERATION)
        found |= set() if merge is None else {one.path for one in merge.inputs}
        for statement in statements_of(lake, name, period):
            found |= {file.path for file in statement.every}
    return found


# Roots


@dataclass(frozen=True, slots=True)
class Certified:
    """The hours of a stream that have certificates, without a hole."""

    first_ms: int
    frontier_ms: int
    reopened: Mapping[str, int]  # by place
    unflagged: tuple[tuple[str, bytes], ...]  # flags that are missing, and were not withdrawn


def certified_hours(lake: Lake, folder: str) -> list[Period]:
    found = []
    for entry in entries_of(lake, folder):
        try:
            found.append(Period.parse(name_of(entry.path)))
        except Invalid:
            continue  # somebody else's
    return sorted(found)


def read_certified(
    lake: Lake, stream: str, template: FolderTemplate | None, each: Each = in_turn
) -> Certified | None:
    """None: it has no certificate. Raises Halted (one is gone), Corrupt, Unavailable."""
    hours = certified_hours(lake, f"{CERTIFICATES}/{escape_name(stream)}")
    if not hours:
        return None
    whole = list(hours_between(hours[0].start_ms, hours[-1].end_ms))
    if len(whole) != len(hours):
        lost = next(hour for hour in whole if hour not in set(hours))
        raise Halted(
            f"{CERTIFICATES}/{escape_name(stream)}/{lost}: the certificate is gone, and those "
            "before and after it are there; next: put it back from a backup, then headgate store "
            "rebuild again"
        )

    def look(hour: Period) -> tuple[int | None, list[tuple[str, bytes]]]:
        """The next generation, if it was withdrawn; flags of it that are missing."""
        filed = latest(lake, hour, stream)
        if filed is None or not isinstance(filed.certificate, Certificate):
            raise Halted(f"{stream} {hour}: its certificate is gone; next: restore it")
        if template is None:
            return None, []
        _check_folder(stream, template, filed.certificate)
        return flags_state(lake, flag_paths(template, hour, stream), filed)

    states = dict(zip(hours, each(look, hours), strict=True))
    return Certified(
        hours[0].start_ms,
        hours[-1].end_ms,
        {place_of(one, stream): next_ for one, (next_, _) in states.items() if next_ is not None},
        tuple(one for _, gone in states.values() for one in gone),
    )


def _check_folder(stream: str, template: FolderTemplate, certificate: Certificate) -> None:
    """Raises Halted: flags would be raised where nothing of that hour lies."""
    for file in certificate.files:
        if template.match_file(file.path) is None:
            raise Halted(
                f"stream {stream}: {file.path} lies in another folder than {template}, which the "
                "settings say; nothing was changed; next: write the folder as it was; a stream "
                "whose folder was changed cannot be made anew from the lake so far: restore the "
                "store from a backup"
            )


def flags_state(
    lake: Lake, flags: Sequence[str], filed: Filed
) -> tuple[int | None, list[tuple[str, bytes]]]:
    """The next generation, if it was withdrawn; else those that are missing. A withdrawal that was
    cut in half did not happen: the flags that went are raised again."""
    generation = filed.certificate.generation
    gone = [flag for flag in flags if lake.facts(flag) is None]
    away = [flag for flag in gone if lake.facts(withdrawn_path(flag, generation)) is not None]
    if away and len(gone) == len(flags):
        return generation + 1, []
    return None, [(flag, filed.raw) for flag in gone]


@dataclass(frozen=True, slots=True)
class Parents:
    hours_ms: int | None = None
    days_ms: int | None = None
    reopened: Mapping[str, int] = field(default_factory=dict)
    unflagged: tuple[tuple[str, bytes], ...] = ()
    children: frozenset[str] = frozenset()  # streams that were ever expected


def read_parents(lake: Lake, root: str, template: FolderTemplate, each: Each = in_turn) -> Parents:
    """Raises Halted, Corrupt, Unavailable."""
    every = certified_hours(lake, parents_folder(root))
    periods = sorted(every, key=lambda one: (one.kind != "hour", one.start_ms))

    def look(period: Period) -> tuple[int | None, list[tuple[str, bytes]], frozenset[str]]:
        filed = latest_parent(lake, root, period)
        if filed is None or not isinstance(filed.certificate, ParentCertificate):
            raise Halted(f"{period}: its certificate is gone; next: put it back from a backup")
        flag = parent_flag_path(template, period)
        names = frozenset(filed.certificate.children if period.kind == "hour" else ())
        if flag is None:
            return None, [], names
        return *flags_state(lake, (flag,), filed), names

    states = dict(zip(periods, each(look, periods), strict=True))
    return Parents(
        max((one.end_ms for one in periods if one.kind == "hour"), default=None),
        max((one.end_ms for one in periods if one.kind == "day"), default=None),
        {place_of(one): next_ for one, (next_, _, _) in states.items() if next_ is not None},
        tuple(one for _, gone, _ in states.values() for one in gone),
        frozenset(name for _, _, names in states.values() for name in names),
    )


def root_document(
    lake: Lake,
    root: str,
    templates: Mapping[str, FolderTemplate],
    retired: Mapping[str, Wish],
    each: Each = in_turn,
) -> tuple[RootDocument, Mapping[str, Certified], Sequence[tuple[str, bytes]]]:
    """With its certified streams, and the flags that are missing: paths and bytes, children first.
    `templates`: of its streams in the settings; `retired`: by the ledger. Raises Halted, Corrupt,
    Unavailable."""
    template = next(iter(templates.values()))
    parents = read_parents(lake, root, template, each)
    found: dict[str, Certified] = {}
    seats: dict[str, Seat] = {}
    for name in sorted({*templates, *parents.children}):
        certified = read_certified(lake, name, templates.get(name), each)
        if certified is None:
            continue
        found[name] = certified
        removed: tuple[Removed, ...] = ()
        for period in removed_hours(lake, name):
            for one in statements_of(lake, name, period):
                removed = with_removed(removed, Period.parse(period), one.how)
        is_over = name not in templates and certified.frontier_ms < (parents.hours_ms or 0)
        seats[name] = Seat(
            certified.first_ms,
            certified.first_ms,
            certified.frontier_ms,
            certified.frontier_ms if is_over or name in retired else None,
            retired.get(name),
            removed,
        )
    document = RootDocument(
        streams=seats,
        hours_ms=parents.hours_ms,
        days_ms=parents.days_ms,
        reopened={
            **parents.reopened,
            **{place: n for seat in found.values() for place, n in seat.reopened.items()},
        },
        journal=_merge_journal(lake, templates, found),
    )
    flags = [one for seat in found.values() for one in seat.unflagged]
    return document, found, [*flags, *parents.unflagged]


def _merge_journal(
    lake: Lake, templates: Mapping[str, FolderTemplate], certified: Mapping[str, Certified]
) -> RootJournal | None:
    """Of a merge that is not finished: its hour has no certificate yet."""
    for stream in sorted(templates):
        frontier_ms = certified[stream].frontier_ms if stream in certified else 0
        for hour in certified_hours(lake, merges_folder(stream)):
            if hour.start_ms < frontier_ms:
                continue
            merge = read_merge(lake, stream, str(hour), GENERATION)
            if merge is not None and not _is_merged(lake, merge):
                folder = folder_of(merge.outputs[0].staged)
                published = merge_path(stream, str(hour), GENERATION)
                facts = _facts(lake, published)
                move = FlagMove(join(folder, RECORD), published, facts.size_bytes, facts.checksum)
                return RootJournal("merge", folder, (move,), merges=(stream,))
    return None


def _is_merged(lake: Lake, merge: MergeRecord) -> bool:
    return all(lake.facts(one.published) is not None for one in merge.outputs) and all(
        lake.facts(one.path) is None for one in merge.inputs
    )


def closed_by(
    faces: Sequence[Certified | None], first_ms: int | None, over_all_ms: int | None
) -> tuple[int | None, int | None]:
    """Of a stream or its outputs: hours that end by the first are closed for some of them, those
    that end by the second for all. None: an output without a certificate, which begins with the
    first hour, or where the flags over all streams end. Pure."""
    known = [one.frontier_ms for one in faces if one is not None]
    if not known:
        return None, None
    if len(known) == len(faces):
        return max(known), min(known)
    if first_ms is None:
        return max(known), None
    return max(known), min([*known, max(first_ms, over_all_ms or first_ms)])


def open_periods(checkpoint: Checkpoint, frontier_ms: int | None) -> Checkpoint:
    """Without the hours that have their certificate."""
    if frontier_ms is None:
        return checkpoint
    first = str(Period(frontier_ms, "hour"))
    journal = checkpoint.journal
    return replace(
        checkpoint,
        periods=since(checkpoint.periods, first),
        gapped=with_gaps(checkpoint.gapped, (), first),
        journal=None if journal is None else replace(journal, open_from=first),
    )


# Tables


def table_document(
    settings: TableSettings,
    mark_id: str,
    taken: Iterable[Taken],
    first_ms: int | None,
    acts: Sequence[Line],
) -> TableDocument | None:
    """From its own proofs, and what people decided about it; None: it has taken nothing. Raises
    Halted: nobody knows its first hour, or a proof is damaged."""
    every = list(taken)
    for one in every:
        if one.found.kind == "damaged":
            raise Halted(
                f"table {settings.name}: the proof of run {one.identity.run} of batch "
                f"{one.identity.batch} is damaged, so nobody knows what is in it; next: put it "
                "back from a backup, then headgate store rebuild again"
            )
    rows = [one for one in every if one.found.kind == "rows"]
    passed = tuple(_passed(settings.name, acts))
    batches = [one.identity.batch for one in rows] + [one.batch for one in passed]
    run = max((one.identity.run for one in every), default=0)
    halt = _halt(settings.name, acts)
    if not batches:
        if not every and halt is None:
            return None
        return TableDocument(
            run=run,
            version=mark_id,
            stream=settings.stream,
            state="running" if halt is None else "halting",
            halt=halt,
        )
    if first_ms is None:
        raise Halted(
            f"table {settings.name}: has batches, and its stream has no certificate; next: put "
            "_headgate/certificates back from a backup, then headgate store rebuild again"
        )
    last = max(batches)
    count = (Period.parse(last).end_ms - first_ms) // HOUR_MS
    let_pass = {one.batch for one in passed}
    counted = [one for one in rows if one.identity.batch not in let_pass]
    entered = max(rows, key=lambda one: one.identity.batch, default=None)
    return TableDocument(
        queued=count,
        queued_up_to=last,
        run=run,
        applied_up_to=last,
        version=mark_id if entered is None else version_of(mark_id, entered.identity),
        done=((0, count),),
        batches=len(counted),
        rows=sum(one.found.rows for one in counted),
        passed=passed[-PASSED_MAX:],
        stream=settings.stream,
        state="running" if halt is None else "halting",
        halt=halt,
    )


def _passed(table: str, acts: Iterable[Line]) -> Iterator[Passed]:
    prefix = f"{table} "
    for line in acts:
        if line.what in ("table.skip", "table.mark_applied") and line.subject.startswith(prefix):
            batch = line.subject.removeprefix(prefix)
            is_skip = line.what == "table.skip"
            how: Literal["skipped", "marked applied"] = "skipped" if is_skip else "marked applied"
            yield Passed(batch, how, line.words, line.who, line.at_ms)


def _halt(table: str, acts: Iterable[Line]) -> Halt | None:
    """What a person halted, and nobody set going since."""
    found: Halt | None = None
    for line in acts:
        if line.what == "table.halt" and line.subject == table:
            found = Halt("", line.words, line.who, line.at_ms)
        elif line.what in GOES_ON and line.subject.partition(" ")[0] == table:
            found = None
    return found
