"""Account: what a commit record says of its own files and counts. Pure.

A file's name says its commit, and its folder says stream and hour: so two records that both pass
cannot name one path.
"""

from collections import Counter
from collections.abc import Iterator

from headgate.audit import Finding
from headgate.audit.advice import look_again
from headgate.commits.record import Record, RecordFile, record_path
from headgate.landing import StreamSettings
from headgate.landing.names import DEAD, LATE, commit_of
from headgate.periods import escape_name


def check_account(record: Record, settings: StreamSettings) -> Iterator[Finding]:
    yield from names_say_the_commit(record)
    yield from folders_say_the_place(record, settings)
    yield from no_name_comes_twice(record)
    yield from counts_are_those_of_files(record)
    yield from gaps_lie_in_ranges(record)
    yield from only_the_last_is_replaced(record)


def names_say_the_commit(record: Record) -> Iterator[Finding]:
    for file in record.files:
        said = commit_of(file.published.rpartition("/")[2])
        if said != (record.shard, record.number):
            yield _wrong(
                1,
                record,
                f"it names {file.published}, whose name does not say this commit",
                "the file may belong to two commits, or to none",
            )


def folders_say_the_place(record: Record, settings: StreamSettings) -> Iterator[Finding]:
    for file in record.files:
        if not _is_in_place(record, file, settings):
            yield _wrong(
                1,
                record,
                f"it names {file.published}, which is no place of {file.kind} records of "
                f"{record.stream} and hour {file.period or 'none'}",
                "readers of that hour miss the file, or readers of another one get it",
            )


def _is_in_place(record: Record, file: RecordFile, settings: StreamSettings) -> bool:
    folder = file.published.rpartition("/")[0]
    if folder.startswith(f"{DEAD}/"):
        own = f"{DEAD}/{escape_name(record.stream)}/"
        return file.kind in ("late", "dead") and folder.startswith(own)
    is_late = folder.startswith(f"{LATE}/")
    if is_late != (file.kind == "late") or file.kind not in ("data", "late"):
        return False
    place = settings.folder.match(folder.removeprefix(f"{LATE}/") if is_late else folder)
    if place is None:
        return True  # from the time of another template
    is_own_shard = place.shard in (None, record.shard)
    name = file.output or record.stream
    return place.stream == name and is_own_shard and str(place.period) == file.period


def no_name_comes_twice(record: Record) -> Iterator[Finding]:
    for path, times in Counter(file.published for file in record.files).items():
        if times > 1:
            yield _wrong(
                1, record, f"it names {path} {times} times", "its rows are counted more than once"
            )


def counts_are_those_of_files(record: Record) -> Iterator[Finding]:
    in_files: Counter[str] = Counter()
    for file in record.files:
        in_files[file.kind] += file.rows
    for kind in sorted({*in_files, *record.counts} - {"skip"}):
        counted = record.counts.get(kind, 0)
        if counted != in_files[kind]:
            yield _wrong(
                2,
                record,
                f"it counts {counted:,} {kind} rows, and its files hold {in_files[kind]:,}",
                "records of its range are missing from its files, or are there twice",
            )


def gaps_lie_in_ranges(record: Record) -> Iterator[Finding]:
    for gap in record.gaps:
        if gap.partition not in record.ranges or not gap.reason:
            yield _wrong(
                2,
                record,
                f"its gap of {gap.partition} from {gap.first!r} to {gap.next!r} lies in no range "
                "of it, or has no reason",
                "records were passed over, and nobody wrote down why",
            )


def only_the_last_is_replaced(record: Record) -> Iterator[Finding]:
    if record.replaces not in (None, record.number - 1):
        yield _wrong(
            4,
            record,
            f"it replaces commit {record.replaces}, and only the one before it can be unfinished",
            "two commits were unfinished at once, or a finished one was taken back",
        )


def _wrong(invariant: int, record: Record, words: str, meaning: str) -> Finding:
    path = record_path(record.stream, record.shard, record.number)
    advice = look_again(record.stream)
    return Finding(invariant, record.stream, record.shard, path, words, meaning, advice)
