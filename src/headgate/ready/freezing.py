"""Freezing: from certificates to the journal that will raise their flags, and from flags to the one
that will withdraw them.

Each flag file is staged for itself, with the bytes of its certificate: publishing consumes it. The
archive's copy comes first, so that a flag never says what nobody kept.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from headgate.commits.certificate import (
    Certificate,
    ParentCertificate,
    flag_paths,
    parent_flag_path,
    to_bytes,
    withdrawn_path,
)
from headgate.commits.roots import FlagMove, RootDocument, RootJournal, place_of, root_name
from headgate.errors import Corrupt, Unavailable
from headgate.lake import Lake
from headgate.lake.local import Each, in_turn
from headgate.lake.paths import STAGING, join
from headgate.periods import FolderTemplate, Period, escape_name
from headgate.ready.archive import (
    Filed,
    archive_path,
    parent_archive_path,
    required,
    required_parent,
)
from headgate.ready.propagation import raised_above

PERIODS_TOLD_MAX = 3  # one by one, of a row without a hole
READY_STAGING = f"{STAGING}/_ready"  # no stream has such a folder: names are escaped


@dataclass(frozen=True, slots=True)
class Flags:
    """A certificate, and where its flags will lie."""

    period: Period
    stream: str | None  # None: a parent's
    certificate: Certificate | ParentCertificate
    paths: tuple[str, ...]

    @property
    def place(self) -> str:
        return place_of(self.period, self.stream)


def words_of(flags: Iterable[Flags]) -> str:
    """For people: whose flags, and of which periods. A parent's is not its streams'."""
    periods: dict[str, list[Period]] = {}
    for one in flags:
        over = "over all streams" if one.period.kind == "hour" else "over all hours of the day"
        whose = over if one.stream is None else f"of {one.stream}"
        periods.setdefault(whose, []).append(one.period)
    return "; ".join(f"{whose}: {_told(found)}" for whose, found in periods.items())


def _told(periods: Sequence[Period]) -> str:
    """One after the other, or from the first to the last of many without a hole."""
    is_row = all(before.next() == after for before, after in pairwise(periods))
    if len(periods) > PERIODS_TOLD_MAX and is_row:
        return f"{periods[0]} to {periods[-1]}, {len(periods)} {periods[0].kind}s"
    return ", ".join(map(str, periods))


def staging_of(root: str) -> str:
    return f"{READY_STAGING}/{escape_name(root)}"


def attempt_folder(root: str, epoch: int, new_id: str) -> str:
    """Its name says whose it is, so that the next holder may sweep it."""
    return f"{staging_of(root)}/{epoch}-{new_id}"


def files_of(root: str, flags: Sequence[Flags]) -> Iterator[tuple[str, bytes]]:
    """What is to be published, the archive's copy of each certificate first."""
    for one in flags:
        raw = to_bytes(one.certificate)
        for path in (_archived(root, one), *one.paths):
            yield path, raw


def _archived(root: str, flags: Flags) -> str:
    generation = flags.certificate.generation
    if flags.stream is None:
        return parent_archive_path(root, flags.period, generation)
    return archive_path(flags.period, flags.stream, generation)


def stage_files(
    lake: Lake, folder: str, files: Iterable[tuple[str, bytes]], each: Each = in_turn
) -> tuple[FlagMove, ...]:
    """Raises Unavailable, OutcomeUnknown."""

    def stage(numbered: tuple[int, tuple[str, bytes]]) -> FlagMove:
        number, (path, raw) = numbered
        staged = join(folder, f"{number:05}.json")
        facts = lake.stage(staged, raw)
        return FlagMove(staged, path, facts.size_bytes, facts.checksum)

    return tuple(each(stage, list(enumerate(files))))


def check_free(lake: Lake, root: str, flags: Flags) -> None:
    """Before the journal: afterwards it would stop the whole root. Raises Corrupt."""
    archived = _archived(root, flags)
    if lake.facts(archived) is not None:
        raise Corrupt(
            f"{archived}: this certificate is there already, and nobody here froze it: the store "
            "was rolled back, or another one writes to this lake; it stays, and no flag is raised "
            "beside it; next: headgate audit"
        )
    for path in flags.paths:
        if lake.facts(path) is not None:
            raise Corrupt(
                f"{path}: there is a flag already, and nobody here raised it; this hour is not "
                "flagged, and nothing is overwritten; next: move it away, then headgate audit"
            )


def withdrawal(
    lake: Lake, document: RootDocument, folder: FolderTemplate, hour: Period, stream: str
) -> RootJournal:
    """Parents before children. Raises Halted, Corrupt, Unavailable."""
    moves: list[FlagMove] = []
    reopens: dict[str, int] = {}
    for period in raised_above(document, hour):
        flag = parent_flag_path(folder, period)
        if flag is not None:
            above = required_parent(lake, root_name(folder), period)
            moves += _away(lake, above, (flag,))
            reopens[place_of(period)] = above.certificate.generation + 1
    own = required(lake, hour, stream)
    moves += _away(lake, own, tuple(reversed(flag_paths(folder, hour, stream))))
    reopens[place_of(hour, stream)] = own.certificate.generation + 1
    return RootJournal("withdraw", "", tuple(moves), reopens=reopens)


def _away(lake: Lake, filed: Filed, paths: Sequence[str]) -> Iterator[FlagMove]:
    """A flag is the copy of a filed certificate. Raises Unavailable, Corrupt."""
    facts, generation = lake.facts(filed.path), filed.certificate.generation
    if facts is None:
        raise Unavailable(f"{filed.path}: was taken away while it was read; next: try again")
    for path in paths:
        away = withdrawn_path(path, generation)
        yield FlagMove(path, away, facts.size_bytes, facts.checksum)


def epochs_in(names: Iterator[str]) -> Iterator[tuple[str, int]]:
    """The attempts in a root's staging, and of which holder each is."""
    for name in names:
        epoch = name.rpartition("/")[2].partition("-")[0]
        if epoch.isdecimal():
            yield name, int(epoch)
