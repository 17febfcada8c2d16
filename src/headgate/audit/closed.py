"""Closed: invariant 6, hour by hour: nothing came to a closed hour after its certificate.

For such an hour the certificate is the truth: what lies in its folder is what it names, whoever
wrote those files; the commits that have rows there are the ones it names, and their rows are as
many. An hour that was withdrawn is open again: its flags are down, and nothing of it is judged.
Of one whose files are gone on purpose the certificate says what was there (`removed`).

A first look compares sums. Where they differ, the hour is looked at file by file, while the root's
document stands still.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from headgate.audit import Finding
from headgate.audit.advice import look_again, repair_flags, restore
from headgate.audit.belonging import foreign, is_foreign
from headgate.audit.hours import Landed, total_of, unnamed
from headgate.audit.removed import judged_removal
from headgate.audit.steady import moving
from headgate.audit.sums import Sum
from headgate.commits.certificate import Certificate, flag_paths
from headgate.commits.merges import merge_of
from headgate.commits.record import Record, record_path
from headgate.commits.removals import how_of
from headgate.commits.replay import read_record
from headgate.commits.roots import RootDocument, Seat, place_of, root_key
from headgate.commits.streams import stream_key
from headgate.errors import Corrupt, Invalid
from headgate.lake import Lake
from headgate.lake.pages import entries_of
from headgate.lake.paths import folder_of, name_of
from headgate.landing import StreamSettings
from headgate.landing.names import commit_of
from headgate.periods import Period, hours_between
from headgate.ready.archive import Filed, archive_path, latest
from headgate.ready.evidence import Evidence
from headgate.ready.propagation import raised_above
from headgate.store.names import parts

COMMITS_MAX = 100_000  # of one hour that are read again
TOLD_MAX = 20  # files of one hour, each kind of finding


def is_closed(document: RootDocument, stream: str, hour: Period) -> bool:
    """The frontier has passed it, and nobody has opened it again."""
    seat = document.streams.get(stream, Seat())
    if seat.first_ms is None or seat.frontier_ms is None:
        return False
    is_past = seat.first_ms <= hour.start_ms and hour.end_ms <= seat.frontier_ms
    return is_past and place_of(hour, stream) not in document.reopened


def closed_hours(document: RootDocument, stream: str) -> Iterator[Period]:
    seat = document.streams.get(stream, Seat())
    if seat.first_ms is not None and seat.frontier_ms is not None:
        for hour in hours_between(seat.first_ms, seat.frontier_ms):
            if is_closed(document, stream, hour):
                yield hour


def is_being_changed(document: RootDocument, settings: StreamSettings, hour: Period) -> bool:
    """A standing journal moves data files of this hour: its holder is not finished with it."""
    folder = settings.folder.stream_folder(hour, settings.name)
    return folder is not None and any(
        path.startswith(f"{folder}/") and not name_of(path).startswith(("_", "."))
        for path in moving(document.journal)
    )


def open_again(document: RootDocument, stream: str) -> Iterator[Period]:
    for place in document.reopened:
        if "/" in place and parts(place)[1] == stream:
            yield Period.parse(parts(place)[0])


def is_removed(document: RootDocument, stream: str, hour: Period) -> bool:
    """Its files are gone on purpose."""
    return how_of(document.streams.get(stream, Seat()).removed, hour) is not None


@dataclass(frozen=True, slots=True)
class Hours:
    """The hours of one stream."""

    lake: Lake
    settings: StreamSettings

    def is_as_certified(
        self, hour: Period, landed: Landed, listed: Mapping[str, Sum], *, is_gone: bool = False
    ) -> bool:
        """By a first look. `landed`: by the records; `listed`: what lies in its folders; `is_gone`:
        its files are, on purpose."""
        try:
            filed = latest(self.lake, hour, self.settings.name)
        except Corrupt:
            return False
        if filed is None or not isinstance(filed.certificate, Certificate):
            return False
        certificate = filed.certificate
        certified = {} if is_gone else sums_of(certificate)
        empty = Sum()
        folders = {*certified, *listed}
        return (
            (certificate.stream, certificate.period) == (self.settings.name, str(hour))
            and dict(certificate.commits) == landed.commits
            and sum(file.rows for file in certificate.files) == landed.rows
            and certificate.counts.get("landed") == landed.rows
            and all(listed.get(one, empty) == certified.get(one, empty) for one in folders)
            and (is_merged(certificate) or total_of(certificate) == landed.total)
            and all(self.lake.read(flag) == filed.raw for flag in self.flags(hour))
            and not (is_gone and list(self._removal(hour, is_finished=True)))
        )

    def judged(
        self, hour: Period, landed: Landed, folders: Collection[str], document: RootDocument
    ) -> list[Finding]:
        """What is wrong with a closed hour, file by file. `folders`: that were seen of it. Raises
        Unavailable."""
        stream, journal = self.settings.name, document.journal
        if not is_closed(document, stream, hour):
            return self.judged_open(hour, document)
        if journal is not None and place_of(hour, stream) in journal.reopens:
            return []  # its flags go down just now
        subject = f"{stream} {hour}"
        try:
            filed = latest(self.lake, hour, stream)
        except Corrupt as error:
            return [self._found(None, subject, str(error), "nothing proves what this hour holds")]
        if filed is None or not isinstance(filed.certificate, Certificate):
            path = archive_path(hour, stream, 1)
            words = f"the flags of {stream} passed {hour}, and there is no certificate of it"
            return [self._found(6, path, words, "nothing proves what this hour holds")]
        certificate = filed.certificate
        if (certificate.stream, certificate.period) != (stream, str(hour)):
            words = f"is the certificate of {certificate.stream} {certificate.period}"
            return [self._found(6, filed.path, words, "nothing proves what this hour holds")]
        return [
            *self._flags(hour, filed, document),
            *self._late_commits(hour, filed.path, certificate, landed),
            *self._files(hour, certificate, folders, document),
            *self._account(filed.path, certificate),
        ]

    def _removal(self, hour: Period, *, is_finished: bool) -> Iterator[Finding]:
        flags = self.flags(hour)
        name, period = self.settings.name, str(hour)
        return judged_removal(self.lake, name, period, flags, is_finished=is_finished)

    def judged_open(self, hour: Period, document: RootDocument) -> list[Finding]:
        """An hour that is not closed, or was opened again, has no flag."""
        stream, now = self.settings.name, moving(document.journal)
        if is_closed(document, stream, hour):
            return []
        found = []
        for flag in self.flags(hour):
            if flag in now or self.lake.facts(flag) is None:
                continue
            if place_of(hour, stream) in document.reopened:
                words = "the flag is up, and this hour was withdrawn"
                meaning = "readers take for complete what is being changed"
                found.append(self._strange_flag(6, flag, words, meaning))
            else:
                words = "the flag is up, and no document stands behind it"
                meaning = "readers take for complete what nobody closed; more may come"
                found.append(self._strange_flag(7, flag, words, meaning))
        return found

    def flags(self, hour: Period) -> tuple[str, ...]:
        try:
            return flag_paths(self.settings.folder, hour, self.settings.name)
        except Invalid:
            return ()  # its hours have no place for a flag

    def _flags(self, hour: Period, filed: Filed, document: RootDocument) -> Iterator[Finding]:
        now = moving(document.journal)
        is_below_a_flag = bool(raised_above(document, hour))
        for flag in self.flags(hour):
            raw = None if flag in now else self.lake.read(flag)
            if flag in now or raw == filed.raw:
                continue
            if raw is None:
                yield Finding(
                    7 if is_below_a_flag else None,
                    self.settings.name,
                    None,
                    flag,
                    "the flag is gone, and its hour is closed",
                    "who waits for it waits on; a flag above it says that it is there"
                    if is_below_a_flag
                    else "who waits for it waits on",
                    repair_flags(hour),
                )
            else:
                words = f"the flag is not what its certificate says, {filed.path}"
                yield self._strange_flag(6, flag, words, "somebody changed it: it proves nothing")

    def _late_commits(
        self, hour: Period, path: str, certificate: Certificate, landed: Landed
    ) -> Iterator[Finding]:
        for shard, number in unnamed(landed, certificate.commits)[:TOLD_MAX]:
            yield Finding(
                6,
                self.settings.name,
                shard,
                record_path(self.settings.name, shard, number),
                f"commit {number} has rows in {hour}, and its certificate {path} does not name it",
                "rows came to an hour that was closed; readers of its flag miss them, or get more "
                "than it promises",
                look_again(self.settings.name),
            )

    def _files(
        self,
        hour: Period,
        certificate: Certificate,
        folders: Collection[str],
        document: RootDocument,
    ) -> Iterator[Finding]:
        named = {file.path: file for file in certificate.files}
        journal = document.journal
        is_going = journal is not None and place_of(hour, self.settings.name) in journal.removes
        is_gone = is_removed(document, self.settings.name, hour)
        if is_gone:
            yield from self._removal(hour, is_finished=not is_going)
        sizes: dict[str, int] = {}
        told = 0
        for folder in sorted({*(folder_of(path) for path in named), *folders}):
            for entry in entries_of(self.lake, folder):
                name = name_of(entry.path)
                if entry.path in named and not entry.is_folder:
                    sizes[entry.path] = entry.size_bytes
                elif told == TOLD_MAX:
                    continue
                elif entry.is_folder or (commit_of(name) is None and merge_of(name) is None):
                    if is_foreign(folder, name, entry.is_folder):
                        told += 1
                        yield foreign(self.settings.name, entry.path)
                else:
                    told += 1
                    words = f"is not in the certificate of its hour, {hour}, which is closed"
                    meaning = "it came after the flag; readers get rows that nobody promised"
                    yield self._strange(6, entry.path, words, meaning)
        gone = [file for path, file in sorted(named.items()) if path not in sizes]
        if gone and not is_gone and not is_going:
            more = f", and {len(gone) - 1:,} more" if len(gone) > 1 else ""
            words = f"is not there{more}, and the certificate of {hour} names it"
            rows = sum(file.rows for file in gone)
            yield self._found(2, gone[0].path, words, f"{rows:,} rows are in no published file")
        cut = [file for path, file in sorted(named.items()) if path in sizes]
        for file in [one for one in cut if sizes[one.path] != one.size_bytes][:TOLD_MAX]:
            words = f"has {sizes[file.path]:,} bytes, and the certificate of {hour} says "
            meaning = "it was changed or cut off after it was published"
            yield self._found(1, file.path, f"{words}{file.size_bytes:,}", meaning)

    def _account(self, path: str, certificate: Certificate) -> Iterator[Finding]:
        """The certificate against the records of its commits, which are read again."""
        records = self._records(certificate)
        if records is None:
            return  # one is damaged or gone: a finding of its own
        files = [
            file
            for record in records
            for file in record.files
            if file.kind == "data" and file.period == certificate.period
        ]
        landed, certified = sum(f.rows for f in files), sum(f.rows for f in certificate.files)
        counted = certificate.counts.get("landed", 0)
        if landed != certified or counted != certified:
            words = (
                f"its files hold {certified:,} rows, it counts {counted:,}, and the commits that "
                f"it names landed {landed:,}"
            )
            yield self._found(6, path, words, "rows were lost or doubled when it was frozen")
        elif not is_merged(certificate):
            wanted = {(f.published, f.size_bytes, f.checksum, f.rows) for f in files}
            named = {(f.path, f.size_bytes, f.checksum, f.rows) for f in certificate.files}
            if wanted != named:
                words = (
                    f"it names {len(named - wanted):,} files that its commits do not have, and "
                    f"leaves out {len(wanted - named):,} of theirs"
                )
                yield self._found(6, path, words, "it is not the certificate of what landed")

    def _records(self, certificate: Certificate) -> list[Record] | None:
        spans = [(shard, *span) for shard, some in certificate.commits.items() for span in some]
        if sum(end - first for _, first, end in spans) > COMMITS_MAX:
            return None
        found: list[Record] = []
        for shard, first, end in spans:
            for number in range(first, end):
                try:
                    record = read_record(self.lake, self.settings.name, int(shard), number)
                except Corrupt:
                    return None
                if record is None:
                    return None
                found.append(record)
        return found

    def _found(self, invariant: int | None, subject: str, words: str, meaning: str) -> Finding:
        stream = self.settings.name
        return Finding(invariant, stream, None, subject, words, meaning, restore("it", stream))

    def _strange(self, invariant: int, path: str, words: str, meaning: str) -> Finding:
        stream = self.settings.name
        next_ = f"see whose it is, move it away; then {look_again(stream)}"
        return Finding(invariant, stream, None, path, words, meaning, next_)

    def _strange_flag(self, invariant: int, path: str, words: str, meaning: str) -> Finding:
        stream = self.settings.name
        next_ = f"move it away; then {look_again(stream)}"
        return Finding(invariant, stream, None, path, words, meaning, next_)


def sums_of(certificate: Certificate) -> dict[str, Sum]:
    """By folder, comparable with those of records and listings."""
    found: dict[str, Sum] = {}
    for file in certificate.files:
        here = found.setdefault(folder_of(file.path), Sum())
        here.add(file.path, file.size_bytes, commit_of(name_of(file.path)))
    return found


def is_merged(certificate: Certificate) -> bool:
    """It names files that no commit wrote: then they are judged by their rows."""
    return any(commit_of(name_of(file.path)) is None for file in certificate.files)


def check_frontier(
    root: str, stream: str, document: RootDocument, evidence: Evidence
) -> Iterator[Finding]:
    """The frontier rests on what was read before it moved. `evidence`: read after the document.
    Pure."""
    frontier_ms = document.streams.get(stream, Seat()).frontier_ms
    first_ms = document.streams.get(stream, Seat()).first_ms
    if frontier_ms is None or frontier_ms == first_ms:
        return
    until = Period.hour_of(frontier_ms)
    closing_ms = None if evidence.document is None else evidence.document.closing_ms
    if closing_ms is None or closing_ms < frontier_ms:
        yield Finding(
            6,
            stream,
            None,
            stream_key(stream),
            f"hours before {until} have their flags by {root_key(root)}, and `closing` is "
            f"{'not set' if closing_ms is None else Period.hour_of(closing_ms)}",
            "a source partition that joins would not be late for hours that are closed",
            look_again(stream),
        )
    for shard, checkpoint in enumerate(evidence.checkpoints):
        behind = [
            name
            for name, mark_ms in sorted(checkpoint.watermarks.items() if checkpoint else ())
            if mark_ms is not None and mark_ms < frontier_ms
        ]
        if behind:
            more = f" and {len(behind) - 1:,} more" if len(behind) > 1 else ""
            yield Finding(
                6,
                stream,
                shard,
                f"{stream}/{shard}",
                f"hours before {until} have their flags, and the watermark of source partition "
                f"{behind[0]}{more} has not passed them",
                "records of closed hours would be taken as on time",
                look_again(stream),
            )
