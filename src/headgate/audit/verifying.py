"""Verifying: certificates against flags and files, as they lie in the lake now. No store is asked.

    the last certificate of an hour ──▶ its flags have the same bytes
                                    ──▶ every file has its size and checksum; there is no other
    a parent's ──▶ each child's certificate has the hash that it names, and is not withdrawn
    a flag that lies there ──▶ there is a certificate; the certified hours of a stream have no hole
    a statement of removal ──▶ what it names is gone on purpose, and nobody put it back

Whatever a person deleted or edited is named. In memory are the names of periods, and as many files
as are read at once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from shlex import quote
from typing import TypeVar

from headgate.audit import Finding, OnProgress
from headgate.audit.advice import repair_flags, without_a_backup
from headgate.audit.inspection import in_silence
from headgate.audit.removed import judged_removal
from headgate.audit.tree import hour_folders, parent_folders
from headgate.commits.certificate import (
    CERTIFICATES,
    Certificate,
    CertifiedFile,
    ParentCertificate,
    flag_paths,
    hold_path,
    parent_flag_path,
    parents_folder,
    withdrawn_path,
)
from headgate.commits.merges import merge_of
from headgate.commits.removals import Statement, mark_path, removed_hours, statements_of
from headgate.commits.roots import root_name
from headgate.errors import Corrupt, Invalid
from headgate.lake import FileFacts, Lake
from headgate.lake.local import Each, in_turn
from headgate.lake.pages import entries_of
from headgate.lake.paths import folder_of, name_of
from headgate.landing.names import commit_of
from headgate.periods import FolderTemplate, Period, escape_name, hours_between
from headgate.ready.archive import Filed, latest, latest_parent

FINDINGS_MAX = 1_000
FILES_AT_ONCE = 2_000  # of however many hours
SMALL_BYTES_MAX = 256_000  # several threads at once take longer for such files than one
_NO_PROOF = "nothing proves what this period holds"
Looked = TypeVar("Looked")


@dataclass(slots=True)
class Verified:
    findings: list[Finding]
    periods: int = 0
    withdrawn: int = 0  # periods without a flag, on record
    removed: int = 0  # hours whose files are gone on purpose, on record
    files: int = 0
    size_bytes: int = 0
    left_out: int = 0  # findings beyond the most that are kept

    @property
    def is_clean(self) -> bool:
        return not self.findings


def verify(
    lake: Lake,
    templates: Mapping[str, FolderTemplate],
    period: Period | None = None,
    *,
    each: Each = in_turn,
    on_progress: OnProgress = in_silence,
    named: str = "",
) -> Verified:
    """`templates`: folders by stream; `period`: only this hour, or this day with its hours;
    `named`: the options that name the settings, for commands. Raises Unavailable."""
    work = _Verifying(lake, each, Verified([]), templates, named)
    for stream, template in sorted(templates.items()):
        known = _certified(lake, f"{CERTIFICATES}/{escape_name(stream)}")
        hours = [one for one in known if _is_in(one, period)]
        gone = set(removed_hours(lake, stream))
        for done, hour in enumerate(hours):
            on_progress(done, len(hours), f"verifying {stream}")
            work.hour(stream, template, hour, is_stated=str(hour) in gone)
        work.read_files()
        on_progress(len(hours), len(hours), f"verifying {stream}")
        work.holes(stream, known, period)
        certified = set(known)
        hours_there = _hours_of(lake, stream, template, period)
        work.uncertified(stream, (one for one in hours_there if one not in certified), template)
    roots = {root_name(template): template for template in templates.values()}
    for root, above in sorted(roots.items()):  # its streams agree on what is above them
        known = _certified(lake, parents_folder(root))
        parents = [one for one in known if _is_in(one, period)]
        for done, parent in enumerate(parents):
            on_progress(done, len(parents), "verifying flags over all streams")
            work.parent(templates, above, parent)
        certified = set(known)
        folders = (one for one in parent_folders(lake, above) if _is_in(one, period))
        work.uncertified("", (one for one in folders if one not in certified), above)
    return work.found


def _hours_of(
    lake: Lake, stream: str, template: FolderTemplate, period: Period | None
) -> Iterator[Period]:
    """Those that have a folder."""
    for folder in hour_folders(lake, stream, template):
        place = template.match(folder)
        if place is not None and _is_in(place.period, period):
            yield place.period


def _certified(lake: Lake, folder: str) -> list[Period]:
    """Periods that have certificates. A folder that is no period is somebody else's."""
    found = []
    for entry in entries_of(lake, folder):
        try:
            found.append(Period.parse(name_of(entry.path)))
        except Invalid:
            continue
    return found


def _is_in(one: Period, period: Period | None) -> bool:
    return period is None or (period.start_ms <= one.start_ms and one.end_ms <= period.end_ms)


@dataclass(slots=True)
class _Verifying:
    lake: Lake
    each: Each
    found: Verified
    templates: Mapping[str, FolderTemplate]
    named: str
    _waiting: list[tuple[str, Period, CertifiedFile]] = field(default_factory=list)

    def hour(
        self, stream: str, template: FolderTemplate, hour: Period, *, is_stated: bool = False
    ) -> None:
        """`is_stated`: a statement says that files of it are gone on purpose."""
        filed = self._filed(stream, hour)
        if filed is None or not isinstance(filed.certificate, Certificate):
            return
        certificate = filed.certificate
        self.found.periods += 1
        if (certificate.stream, certificate.period) != (stream, str(hour)):
            what = f"is the certificate of {certificate.stream} {certificate.period}"
            self._tell(stream, hour, filed.path, what, "it lies where another one should")
        flags = self._flags_of(stream, template, hour)
        if not self._flags(stream, hour, filed, flags):
            return
        self._others(stream, hour, certificate, flags)
        gone = self._removed(stream, hour, flags) if is_stated else set()
        for file in certificate.files:
            if file.path in gone:
                continue
            self._waiting.append((stream, hour, file))
            if len(self._waiting) == FILES_AT_ONCE:
                self.read_files()

    def _removed(self, stream: str, hour: Period, flags: Sequence[str]) -> set[str]:
        """Files that are gone on purpose, or about to go: then the marks are not there yet."""
        every: list[Statement] | None = self._told(
            stream, hour, lambda: statements_of(self.lake, stream, str(hour))
        )
        if not every:
            return set()
        self.found.removed += 1
        marks = [mark_path(flag, one.how) for one in every[:1] for flag in flags]
        is_finished = any(self.lake.facts(mark) is not None for mark in marks)
        for finding in judged_removal(self.lake, stream, str(hour), flags, is_finished=is_finished):
            self._tell(stream, hour, finding.subject, finding.words, finding.meaning, 6)
        return {file.path for one in every for file in one.every}

    def holes(self, stream: str, known: Sequence[Period], period: Period | None) -> None:
        """Hours are certified one after the other: what is missing between two was deleted."""
        for before, after in pairwise(sorted(known)):
            first = before.next()
            if first == after or not any(
                _is_in(one, period) for one in hours_between(first.start_ms, after.start_ms)
            ):
                continue
            more = "" if first.next() == after else f", nor any hour up to {after}"
            what = f"has no certificate{more}, and hours before and after it have one"
            self._tell(stream, first, f"{stream} {first}", what, _NO_PROOF)

    def uncertified(self, stream: str, periods: Iterable[Period], template: FolderTemplate) -> None:
        """A flag without a certificate."""
        for period in periods:
            for flag in self._flags_of(stream, template, period):
                if self.lake.facts(flag) is not None:
                    what = "the flag is up, and there is no certificate of its period"
                    self._tell(stream, period, flag, what, _NO_PROOF)

    def parent(
        self, templates: Mapping[str, FolderTemplate], template: FolderTemplate, period: Period
    ) -> None:
        root = root_name(template)
        filed = self._filed_above(root, period)
        if filed is None or not isinstance(filed.certificate, ParentCertificate):
            return
        self.found.periods += 1
        flag = parent_flag_path(template, period)
        if flag is not None and not self._flags("", period, filed, (flag,)):
            return
        for child, known in filed.certificate.children.items():
            if period.kind == "hour":
                below, flags = (
                    self._filed(child, period),
                    self._flags_of(child, templates.get(child), period),
                )
            else:
                hour = Period.parse(child)
                below = self._filed_above(root, hour)
                flags = self._flags_of("", template, hour)
            if below is None:
                continue
            if below.certificate.hash != known:
                what = f"{child} has another certificate than the one that is named here"
                self._tell("", period, filed.path, what, "its flag rests on what is no more")
            elif any(self._is_withdrawn(one, below.certificate.generation) for one in flags):
                what = f"{child} is withdrawn, and this flag above it is not"
                self._tell("", period, filed.path, what, "its flag rests on what is no more", 7)

    def _flags_of(
        self, stream: str, template: FolderTemplate | None, period: Period
    ) -> tuple[str, ...]:
        if template is None:
            return ()  # of a stream that is not in the settings: its folders are not known
        if not stream:
            flag = parent_flag_path(template, period)
            return () if flag is None else (flag,)
        try:
            return flag_paths(template, period, stream)
        except Invalid:
            return ()  # its hours have no place for a flag

    def _is_withdrawn(self, flag: str, generation: int) -> bool:
        return self.lake.facts(flag) is None and self._was_withdrawn(flag, generation)

    def _filed(self, stream: str, period: Period) -> Filed | None:
        """Of the last generation; what is wrong with it is told."""
        return self._told(stream, period, lambda: latest(self.lake, period, stream))

    def _filed_above(self, root: str, period: Period) -> Filed | None:
        return self._told("", period, lambda: latest_parent(self.lake, root, period))

    def _told(
        self, stream: str, period: Period, look: Callable[[], Looked | None]
    ) -> Looked | None:
        subject = f"{stream} {period}".strip()
        try:
            found = look()
        except Corrupt as error:
            self._tell(stream, period, subject, str(error), _NO_PROOF)
            return None
        if found is None:
            self._tell(stream, period, subject, "has no certificate any more", _NO_PROOF)
        return found

    def _flags(self, stream: str, period: Period, filed: Filed, flags: Sequence[str]) -> bool:
        """Whether it is raised: a withdrawn one promises nothing."""
        generation = filed.certificate.generation
        raws = {flag: self.lake.read(flag) for flag in flags}
        if any(self._was_withdrawn(flag, generation) for flag, raw in raws.items() if raw is None):
            self.found.withdrawn += 1
            return False
        for flag, raw in raws.items():
            if raw is None:
                what, meaning = "the flag is gone", "who waits for it waits on"
                self._tell(
                    stream, period, flag, what, meaning, mend=f"{repair_flags(period)}{self.named}"
                )
            elif raw != filed.raw:
                what = "the flag is not what its certificate says"
                self._tell(stream, period, flag, what, "somebody changed it, and it proves nothing")
        return True

    def _was_withdrawn(self, flag: str, generation: int) -> bool:
        return self.lake.facts(withdrawn_path(flag, generation)) is not None

    def read_files(self) -> None:
        """All that wait, many at once."""
        waiting, self._waiting = self._waiting, []
        files = [file for _, _, file in waiting]
        large = [file for file in files if file.size_bytes > SMALL_BYTES_MAX]
        of_large = iter(self.each(self._facts, large))
        found = [
            next(of_large) if file.size_bytes > SMALL_BYTES_MAX else self._facts(file)
            for file in files
        ]
        for (stream, hour, file), facts in zip(waiting, found, strict=True):
            self.found.files += 1
            self.found.size_bytes += file.size_bytes
            if isinstance(facts, Corrupt):
                self._tell_of_file(stream, hour, file, str(facts), "it cannot be read")
            elif facts is None:
                what = f"is gone: {file.rows:,} rows"
                self._tell_of_file(stream, hour, file, what, "the hour is not complete any more")
            elif facts != FileFacts(file.size_bytes, file.checksum):
                what = "has another size" if facts.size_bytes != file.size_bytes else "was changed"
                self._tell_of_file(stream, hour, file, what, "its rows are not those that landed")

    def _facts(self, file: CertifiedFile) -> FileFacts | Corrupt | None:
        try:
            return self.lake.facts(file.path)
        except Corrupt as error:
            return error

    def _others(
        self, stream: str, hour: Period, certificate: Certificate, flags: Sequence[str]
    ) -> None:
        """Data files that came to a closed hour: invariant 6."""
        named = {file.path for file in certificate.files}
        folders = {folder_of(path) for path in (*named, *flags)}
        for folder in sorted(folders):
            for entry in entries_of(self.lake, folder):
                name = name_of(entry.path)
                is_data = commit_of(name) is not None or merge_of(name) is not None
                if is_data and not entry.is_folder and entry.path not in named:
                    what = "is not in the certificate of its hour"
                    self._tell(stream, hour, entry.path, what, "it came after the flag", 6)

    def _tell_of_file(
        self, stream: str, hour: Period, file: CertifiedFile, words: str, meaning: str
    ) -> None:
        """Also what somebody without a backup can do."""
        hold = hold_path(self.templates[stream], hour, stream)
        more = without_a_backup(stream, hour, file.path, hold, self.named)
        self._tell(stream, hour, file.path, words, meaning, more=more)

    def _tell(
        self,
        stream: str,
        period: Period,
        subject: str,
        words: str,
        meaning: str,
        invariant: int | None = None,
        mend: str = "put it back from a backup",
        more: str = "",
    ) -> None:
        if len(self.found.findings) >= FINDINGS_MAX:
            self.found.left_out += 1
            return
        again = f"headgate verify {quote(str(period))}{self.named}"
        next_ = f"{mend}, then {again}" if invariant is None else again
        next_ = f"{next_}\n{more}" if more else next_
        self.found.findings.append(Finding(invariant, stream, None, subject, words, meaning, next_))
