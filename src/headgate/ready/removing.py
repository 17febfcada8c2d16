"""Removing: the files of ready hours go, because a person said so: they expired, or are erased.

    decide      the next hours of what was asked for ── ready, not withdrawn, no table behind?
    prepare     a statement for each: what its certificate names, and what was diverted as late
    carry out   statements ── publish, settle ──▶ asked again: no table behind? ──▶ files ── remove,
                settle ──▶ marks beside the flags ── publish, settle ──▶ the fact

Certificates and flags stay as they are, so no flag above them says anything that is not true. What
is removed is exactly the file that the statement names: whoever does it again, or wakes up late,
finds it gone, and no name is used twice. Records that come later go where late ones go.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Final

from headgate.backlog.needs import Needing
from headgate.commits.certificate import Certificate, CertifiedFile, flag_paths
from headgate.commits.record import commit_of
from headgate.commits.removals import (
    REMOVALS,
    Statement,
    from_bytes,
    how_of,
    mark_path,
    statement_path,
    statements_of,
    to_bytes,
)
from headgate.commits.replay import read_record
from headgate.commits.roots import FlagMove, Removal, RootDocument, RootJournal, place_of
from headgate.errors import Conflict, Corrupt, Halted, OutcomeUnknown, Unavailable
from headgate.lake import FileFacts, Lake
from headgate.lake.pages import entries_of
from headgate.lake.paths import LATE, folder_of, name_of
from headgate.periods import FolderTemplate, Period, hours_between
from headgate.ready import ReadyStream
from headgate.ready.archive import required
from headgate.ready.evidence import Evidence
from headgate.ready.flagging import raise_flag

HOURS_MAX: Final = 24  # that one journal removes
TRIES_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Going:
    """An hour whose files are to go, and what says so."""

    hour: Period
    statement: Statement
    marks: tuple[str, ...]  # beside its flags


def removal_subject(removal: Removal) -> str:
    """Whose trouble it is, in the root's document."""
    return f"{removal.how} {removal.stream}"


def is_flagged(document: RootDocument, stream: str, hour: Period) -> bool:
    """It is ready: nothing more comes to it, and its flags are up."""
    seat = document.streams.get(stream)
    if seat is None or seat.first_ms is None or seat.frontier_ms is None:
        return False
    is_past = seat.first_ms <= hour.start_ms and hour.end_ms <= seat.frontier_ms
    return is_past and place_of(hour, stream) not in document.reopened


def hours_of(document: RootDocument, removal: Removal) -> Iterator[Period]:
    """Those that are left of it. What expired once does not expire again."""
    seat = document.streams.get(removal.stream)
    removed = () if seat is None else seat.removed
    for hour in hours_between(removal.from_ms, removal.until_ms):
        if removal.how == "erased" or how_of(removed, hour) is None:
            yield hour


def obstacle(
    document: RootDocument, removal: Removal, behind: Iterable[Needing], hour: Period
) -> str:
    """Why its files must stay for now, and what a person can do; "": nothing is in the way. Pure.
    `behind`: tables that have not taken this hour, or a later one."""
    stream = removal.stream
    if not is_flagged(document, stream, hour):
        return (
            f"{stream} {hour}: is not ready now, so what belongs to it may change; its files stay "
            f"until its flag is up; next: headgate why {quote(stream)} {hour}"
        )
    return needed(stream, behind, str(hour))


def needed(stream: str, behind: Iterable[Needing], batch: str) -> str:
    """By a table that has not taken it; "": by none. Pure."""
    for one in behind:
        if one.applied_up_to >= batch:
            continue
        name, upto = quote(one.table), one.applied_up_to
        skip = f'headgate table skip {name} --batch {batch} --reason "…"'
        return (
            f"{stream} {batch}: table {one.table} has {f'batches up to {upto}' if upto else 'none'}"
            ", and still needs its files; they stay until it has taken them; next: "
            f"{skip if one.is_halted else 'headgate status'}; or, if that table is not used any "
            f"more, the same command with --without-table {name}"
        )
    return ""


def unfinished(lands: str, going: Going, evidence: Evidence) -> str:
    """By a commit that put one of its files there and is not finished: whoever finishes it would
    find that file lost; "": by none. `evidence`: read after its files were listed. Pure."""
    for file in going.statement.late:
        shard, number = commit_of(name_of(file.path)) or (0, 0)
        found = evidence.checkpoints[shard] if shard < len(evidence.checkpoints) else None
        if found is not None and found.journal is not None and found.journal.number == number:
            return (
                f"{going.statement.stream} {going.hour}: {file.path} is of commit {lands}/{shard}/"
                f"{number}, which is not finished; the files of this hour stay until it is; next: "
                f"headgate status {quote(lands)}"
            )
    return ""


def prepared(
    lake: Lake,
    stream: ReadyStream,
    removal: Removal,
    hour: Period,
    shards: int,
    made_ms: int,
    node: str,
) -> Going | None:
    """None: there is nothing of it that could go. Raises Halted, Corrupt, Unavailable."""
    period = str(hour)
    filed = required(lake, hour, stream.name)
    if not isinstance(filed.certificate, Certificate):
        return None
    before = statements_of(lake, stream.name, period)
    gone = {file.path for one in before for file in one.every}
    files = tuple(one for one in filed.certificate.files if one.path not in gone)
    late = tuple(one for one in late_files(lake, stream, hour, shards) if one.path not in gone)
    if before and not files and not late:
        return None
    statement = Statement(
        stream.name,
        period,
        len(before) + 1,
        removal.how,
        filed.certificate.hash,
        files,
        late,
        removal.wish.reason,
        removal.wish.who,
        removal.wish.at_ms,
        made_ms,
        node,
    )
    flags = flag_paths(stream.folder, hour, stream.name)
    is_marked = any(one.how == removal.how for one in before)
    return Going(
        hour, statement, () if is_marked else tuple(mark_path(one, removal.how) for one in flags)
    )


def late_folders(folder: FolderTemplate, hour: Period, stream: str, shards: int) -> list[str]:
    """Where late records of this hour lie."""
    if not folder.has_shard:
        return [f"{LATE}/{folder.folder(hour, stream=stream)}"]
    every = (folder.folder(hour, stream=stream, shard=shard) for shard in range(shards))
    return [f"{LATE}/{one}" for one in every]


def late_files(
    lake: Lake, stream: ReadyStream, hour: Period, shards: int
) -> Iterator[CertifiedFile]:
    """As their commit records say; what no record names is left alone. Raises Corrupt,
    Unavailable."""
    for folder in late_folders(stream.folder, hour, stream.name, shards):
        for entry in entries_of(lake, folder):
            said = None if entry.is_folder else commit_of(name_of(entry.path))
            record = None if said is None else read_record(lake, stream.lands, *said)
            for file in () if record is None else record.files:
                if file.published == entry.path and file.kind == "late":
                    yield CertifiedFile(entry.path, file.size_bytes, file.checksum, file.rows)


def files_of(going: Sequence[Going]) -> Iterator[tuple[str, bytes]]:
    """What is to be published: every statement before the first mark."""
    raws = [(one, to_bytes(one.statement)) for one in going]
    for one, raw in raws:
        said = one.statement
        yield statement_path(said.stream, said.period, said.number), raw
    for one, raw in raws:
        yield from ((mark, raw) for mark in one.marks)


def is_statement(move: FlagMove) -> bool:
    return move.published.startswith(f"{REMOVALS}/")


def state_removal(lake: Lake, journal: RootJournal) -> list[Statement]:
    """From now on the lake says it. Raises Halted (one is gone), Corrupt, Unavailable."""
    pointers = [move for move in journal.moves if is_statement(move)]
    for move in pointers:
        raise_flag(lake, move)
    lake.settle(sorted({folder_of(move.published) for move in pointers}))
    found = []
    for move in pointers:
        raw = lake.read(move.published)
        if raw is None or FileFacts(len(raw), move.checksum) != move.facts:
            raise Halted(
                f"{move.published}: is gone, or was changed, so nobody knows which files are to "
                "go; no flag of this root is raised until then; next: restore it from a backup, "
                "then headgate audit"
            )
        found.append(from_bytes(raw, move.published))
    return found


def carry_out_removal(lake: Lake, journal: RootJournal, statements: Sequence[Statement]) -> None:
    """After `state_removal`, and after no table was behind: the files go, then the marks are put
    beside the flags; that lasts. Raises Corrupt, Unavailable, OutcomeUnknown."""
    for statement in statements:
        for file in statement.every:
            remove_file(lake, file)
        lake.settle(sorted({folder_of(file.path) for file in statement.every}))
    marks = [move for move in journal.moves if not is_statement(move)]
    for move in marks:
        raise_flag(lake, move)
    lake.settle(sorted({folder_of(move.published) for move in marks}))


def remove_file(lake: Lake, file: CertifiedFile) -> None:
    for _ in range(TRIES_MAX):
        try:
            lake.remove(file.path, FileFacts(file.size_bytes, file.checksum))
        except Conflict as error:
            raise Corrupt(
                f"{file.path}: is not the file that landed, so it is left alone, and no flag of "
                "this root is raised; next: move it away, then headgate audit"
            ) from error
        except OutcomeUnknown:
            continue
        return
    raise Unavailable(f"{file.path}: removed {TRIES_MAX} times, and nobody knows if it is gone")
