"""Steady: a look at the lake during which a root's document stood still.

What looked wrong at first is looked at again so, and only then told: flags and certificates change
only as the document says, so whatever such a look sees is no work that was just going on.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from headgate.audit import Finding
from headgate.commits.roots import RootDocument, RootJournal, root_key
from headgate.errors import Corrupt
from headgate.store import DocumentStore
from headgate.store.changes import read

LOOKS_MAX = 5
AGAIN = "headgate audit"

Judge = Callable[[RootDocument], list[Finding]]


@dataclass(slots=True)
class Steady:
    """Looks at one root."""

    store: DocumentStore
    root: str
    remarks: list[Finding] = field(default_factory=list)

    def told(self, subject: str, stream: str, judge: Judge) -> list[Finding]:
        """What `judge` finds while the document does not change. Raises Unavailable."""
        for _ in range(LOOKS_MAX):
            before = self._read()
            if before is None:
                return []  # a finding of its own
            document, version = before
            found = judge(document)
            if not found:
                return []
            after = self._read()
            if after is not None and after[1] == version:
                return found
        words = f"could not be judged: its flags changed at each of {LOOKS_MAX} looks"
        meaning = "nodes are working on it; nothing is known to be wrong"
        self.remarks.append(Finding(None, stream, None, subject, words, meaning, AGAIN))
        return []

    def _read(self) -> tuple[RootDocument, str] | None:
        try:
            kept = read(self.store, root_key(self.root), RootDocument)
        except Corrupt:
            return None
        return None if kept is None else (kept.value, kept.version)


def moving(journal: RootJournal | None) -> set[str]:
    """Paths that a standing journal is about to change, or has changed."""
    if journal is None:
        return set()
    return {path for move in journal.moves for path in (move.staged, move.published)}
