"""Removal: files of a ready hour that are gone on purpose, on record as long as the lake lives.

    _headgate/removals/<stream>/<period>/00001.json     the statement: what went, who wanted it, why
    …/<stream>/data/_EXPIRED, …/<stream>/_EXPIRED       the same bytes, beside each flag; or _ERASED

The certificate and its flag stay: they prove what was there. A statement is published before any
file goes, and the marks beside the flags come last: so a file may be gone once a statement names
it, and must be gone once the mark is there. Another statement of the same hour has the next number:
it takes what came late since.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from headgate.commits.certificate import CertifiedFile
from headgate.errors import Corrupt
from headgate.lake import Lake
from headgate.lake.pages import entries_of
from headgate.lake.paths import OURS, folder_of, join, name_of
from headgate.periods import Period, escape_name
from headgate.store.codec import Whole, parse_text, text_of

REMOVALS: Final = f"{OURS}/removals"

How = Literal["expired", "erased"]
MARKS: Final[dict[How, str]] = {"expired": "_EXPIRED", "erased": "_ERASED"}


@dataclass(frozen=True, slots=True)
class Statement:
    """What went of one hour of a stream."""

    stream: str
    period: str
    number: Whole
    how: How
    certificate: str  # hash of the one whose files these are
    files: tuple[CertifiedFile, ...]
    late: tuple[CertifiedFile, ...]  # that were diverted
    reason: str
    who: str
    asked_ms: Whole  # wall time
    made_ms: Whole  # by the store's clock
    node: str
    format: Literal[1] = 1

    @property
    def every(self) -> tuple[CertifiedFile, ...]:
        return (*self.files, *self.late)

    @property
    def words(self) -> str:
        """For people."""
        gone = f"{self.how} on purpose by {self.who}: {self.reason}"
        return f"{gone}; {_counted(len(self.every), 'file')} went"


def _counted(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number:,} {what}s"


def removals_folder(stream: str, period: str = "") -> str:
    """Of all its hours, each in a folder of the period's name; or of one."""
    folder = f"{REMOVALS}/{escape_name(stream)}"
    return f"{folder}/{period}" if period else folder


def statement_path(stream: str, period: str, number: int) -> str:
    return f"{removals_folder(stream, period)}/{number:05}.json"


def mark_path(flag: str, how: How) -> str:
    """Beside a flag."""
    return join(folder_of(flag), MARKS[how])


def to_bytes(statement: Statement) -> bytes:
    return text_of(statement)


def from_bytes(raw: bytes, path: str) -> Statement:
    """Raises Corrupt, naming the path."""
    found = parse_text(raw, path, Statement)
    if text_of(found) != raw:
        raise Corrupt(f"{path}: this statement was changed; next: put it back from a backup")
    return found


def statements_of(lake: Lake, stream: str, period: str) -> list[Statement]:
    """Of one hour, in order; none: everything that it certifies is to be there. Raises Corrupt,
    Unavailable."""
    found: list[Statement] = []
    for entry in entries_of(lake, removals_folder(stream, period)):
        raw = lake.read(entry.path)
        if raw is None:
            continue
        statement = from_bytes(raw, entry.path)
        said = (statement.stream, statement.period, statement.number)
        if statement_path(*said) != entry.path:
            raise Corrupt(
                f"{entry.path}: is the statement of {statement.stream} {statement.period}, number "
                f"{statement.number}; next: put it back from a backup"
            )
        found.append(statement)
    return found


def removed_hours(lake: Lake, stream: str) -> Iterator[str]:
    """Periods that have statements. Raises Unavailable."""
    for entry in entries_of(lake, removals_folder(stream)):
        yield name_of(entry.path)


@dataclass(frozen=True, slots=True)
class Removed:
    """Hours without a hole whose files are gone on purpose. Half-open."""

    how: How
    from_ms: Whole
    until_ms: Whole


def how_of(removed: tuple[Removed, ...], hour: Period) -> How | None:
    """None: its files are there."""
    for span in removed:
        if span.from_ms <= hour.start_ms and hour.end_ms <= span.until_ms:
            return span.how
    return None


def with_removed(removed: tuple[Removed, ...], hour: Period, how: How) -> tuple[Removed, ...]:
    """One hour more, in order, joined with its neighbours. What was erased stays erased."""
    known = how_of(removed, hour)
    if known is not None and (known == how or known == "erased"):
        return removed
    spans: list[Removed] = []
    for span in removed:  # an hour that expired, and is erased now, cuts its span
        if span.until_ms <= hour.start_ms or hour.end_ms <= span.from_ms:
            spans.append(span)
            continue
        if span.from_ms < hour.start_ms:
            spans.append(Removed(span.how, span.from_ms, hour.start_ms))
        if hour.end_ms < span.until_ms:
            spans.append(Removed(span.how, hour.end_ms, span.until_ms))
    spans.append(Removed(how, hour.start_ms, hour.end_ms))
    spans.sort(key=lambda span: span.from_ms)
    joined: list[Removed] = []
    for span in spans:
        last = joined[-1] if joined else None
        if last is not None and last.how == span.how and last.until_ms == span.from_ms:
            joined[-1] = Removed(span.how, last.from_ms, span.until_ms)
        else:
            joined.append(span)
    return tuple(joined)
