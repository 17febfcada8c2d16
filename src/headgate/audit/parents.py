"""Parents: invariant 7: a flag over streams or hours implies the flag of every child that was
expected, and names the very certificate that this child has now.

Which parents are raised is told by the root's document, and so is who is expected; what they were
raised on, by their certificates. A flag in a folder that the document knows nothing of is nobody's
promise.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.audit import Finding
from headgate.audit.advice import repair_flags
from headgate.audit.steady import AGAIN, moving
from headgate.audit.tree import parent_folders
from headgate.commits.certificate import ParentCertificate, parent_flag_path
from headgate.commits.roots import RootDocument, place_of, root_key
from headgate.errors import Corrupt
from headgate.lake import Lake
from headgate.periods import DAY_MS, FolderTemplate, Period, aligned, hours_between
from headgate.ready.archive import Filed, latest, latest_parent, parent_archive_path
from headgate.ready.propagation import expected, raised_above
from headgate.store.names import parts

TOLD_MAX = 20  # children of one parent
_MOVE = f"move it away; then {AGAIN}"
_RESTORE = f"put it back from a backup, then {AGAIN}"


def is_raised(document: RootDocument, period: Period) -> bool:
    """By the document: the frontier has passed it, it has children, nobody has withdrawn it."""
    frontier_ms = document.hours_ms if period.kind == "hour" else document.days_ms
    if frontier_ms is None or frontier_ms < period.end_ms or place_of(period) in document.reopened:
        return False
    return any(expected(document.streams, hour) != () for hour in period.hours())


def raised_parents(document: RootDocument) -> Iterator[Period]:
    """Each hour, and each day behind its last one."""
    firsts = [seat.first_ms for seat in document.streams.values() if seat.first_ms is not None]
    if not firsts:
        return
    first_ms = min(firsts)
    if document.hours_ms is not None:
        for hour in hours_between(first_ms, document.hours_ms):
            if is_raised(document, hour):
                yield hour
    for start_ms in range(aligned(first_ms, DAY_MS), document.days_ms or first_ms, DAY_MS):
        day = Period(start_ms, "day")
        if is_raised(document, day):
            yield day


@dataclass(frozen=True, slots=True)
class Parents:
    """Those of one root."""

    lake: Lake
    root: str
    template: FolderTemplate

    def folders(self) -> Iterator[Period]:
        """Every hour and day that has a folder above its streams. Raises Unavailable."""
        yield from parent_folders(self.lake, self.template)

    def has_flag(self, period: Period) -> bool:
        flag = parent_flag_path(self.template, period)
        return flag is not None and self.lake.facts(flag) is not None

    def judged(self, period: Period, document: RootDocument) -> list[Finding]:
        """Raises Unavailable."""
        journal = document.journal
        if not is_raised(document, period):
            return list(self._down(period, document))
        if journal is not None and place_of(period) in journal.reopens:
            return []  # its flag goes down just now
        try:
            filed = latest_parent(self.lake, self.root, period)
        except Corrupt as error:
            words, meaning = str(error), "nothing proves what this flag rests on"
            return [self._found(None, str(period), words, meaning, _RESTORE)]
        if filed is None or not isinstance(filed.certificate, ParentCertificate):
            path = parent_archive_path(self.root, period, 1)
            words = f"flags passed {period}, and there is no certificate of it"
            return [self._found(7, path, words, "nothing proves that it is complete", _RESTORE)]
        return [
            *self._flag(period, filed, document),
            *self._children(period, filed.path, filed.certificate, document),
        ]

    def _down(self, period: Period, document: RootDocument) -> Iterator[Finding]:
        flag = parent_flag_path(self.template, period)
        if flag is None or flag in moving(document.journal) or self.lake.facts(flag) is None:
            return
        if place_of(period) in document.reopened:
            words = "the flag is up, and something below it was withdrawn"
            meaning = "readers take for complete what is being changed"
            yield self._found(6, flag, words, meaning, _MOVE)
        else:
            words = "the flag is up, and no document stands behind it"
            meaning = "readers take for complete what nobody closed; more may come"
            yield self._found(7, flag, words, meaning, _MOVE)

    def _flag(self, period: Period, filed: Filed, document: RootDocument) -> Iterator[Finding]:
        flag = parent_flag_path(self.template, period)
        if flag is None or flag in moving(document.journal):
            return
        raw = self.lake.read(flag)
        if raw is None:
            words, meaning = "the flag is gone", "who waits for it waits on"
            yield self._found(None, flag, words, meaning, repair_flags(period))
        elif raw != filed.raw:
            words = f"the flag is not what its certificate says, {filed.path}"
            meaning = "somebody changed it: it proves nothing"
            yield self._found(7, flag, words, meaning, _MOVE)

    def _children(
        self, period: Period, path: str, certificate: ParentCertificate, document: RootDocument
    ) -> Iterator[Finding]:
        rests = "its flag rests on what is not so"
        if certificate.period != str(period):
            words = f"is the certificate of {certificate.period}"
            yield self._found(7, path, words, rests, _RESTORE)
            return
        if not certificate.children:
            yield self._found(7, path, "it names no children", rests, AGAIN)
        wanted = children_of(document, period)
        if wanted is None:
            words = f"{period} has its flag, and of a stream nobody knows whether it is expected"
            yield self._found(7, root_key(self.root), words, rests, AGAIN)
        told = 0
        for child in sorted({*certificate.children, *(wanted or ())}):
            words = self._wrong_child(period, child, certificate.children.get(child))
            if words and told < TOLD_MAX:
                told += 1
                yield self._found(7, path, words, rests, AGAIN)

    def _wrong_child(self, period: Period, child: str, known: str | None) -> str:
        """What is not so with one; "": nothing."""
        if known is None:
            return f"it does not name {child}, which was expected"
        try:
            if period.kind == "hour":
                filed = latest(self.lake, period, child)
            else:
                filed = latest_parent(self.lake, self.root, Period.parse(child))
        except Corrupt:
            return ""  # a finding of its own
        if filed is None:
            return f"{child} has no certificate"
        if filed.certificate.hash != known:
            return f"it names another certificate of {child} than the one it has, {filed.path}"
        return ""

    def _found(
        self, invariant: int | None, subject: str, words: str, meaning: str, next_: str
    ) -> Finding:
        return Finding(invariant, "", None, subject, words, meaning, next_)


def children_of(document: RootDocument, period: Period) -> tuple[str, ...] | None:
    """Who must have a flag below this one; None: it is not known. Pure."""
    if period.kind == "hour":
        return expected(document.streams, period)
    found = []
    for hour in period.hours():
        names = expected(document.streams, hour)
        if names is None:
            return None
        found += [str(hour)] if names else []
    return tuple(found)


def check_root_document(root: str, document: RootDocument) -> Iterator[Finding]:
    """Frontiers and what is open again, against each other. Pure."""
    for period in raised_parents(document):
        if period.kind != "hour":
            continue
        for child in children_of(document, period) or ():
            seat = document.streams[child]
            if seat.frontier_ms is None or seat.frontier_ms < period.end_ms:
                yield _doubt(root, f"{period} has its flag, and {child} has none there")
                return  # it is so from there on
    for place in sorted(document.reopened):
        hour = Period.parse(parts(place)[0])
        if hour.kind == "hour":
            for above in raised_above(document, hour):
                yield _doubt(root, f"{place} was withdrawn, and {above} above it was not")


def _doubt(root: str, words: str) -> Finding:
    meaning = "readers take for complete what is not"
    return Finding(7, "", None, root_key(root), words, meaning, AGAIN)
