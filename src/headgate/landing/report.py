"""Report: what a shard's holder says of it now and then, for people: nothing is decided by it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from headgate.ambient import Ambient
from headgate.errors import Conflict, Corrupt, OutcomeUnknown, Unavailable
from headgate.store import DocumentStore
from headgate.store.codec import Whole, body_of
from headgate.store.names import key

REPORTS = "reports"
REPORT_MS = 10_000  # between two of them

WORDS = {
    "data": ("on time", "on time"),
    "late": ("late", "late"),
    "dead": ("dead letter", "dead letters"),
    "skip": ("blank line or header", "blank lines or headers"),
}
"""Of what lines became: of one, and of any other number."""


@dataclass(frozen=True, slots=True)
class Report:
    node: str
    epoch: Whole
    doing: str  # in words
    waiting_files: Whole = 0
    waiting_bytes: Whole = 0
    oldest_ms: Whole | None = None  # when the oldest of what waits was first seen
    unfinished: Whole = 0
    unreadable: Whole = 0  # files that a person must look at
    unreadable_why: str = ""  # of the first
    remark: str = ""  # what stands still, and why
    tries: Whole = 0  # in a row, for what it needs and cannot reach
    is_unmarked: bool = False  # a first watermark was tried to be given, in vain
    due_ms: Whole | None = None  # its next commit, by its wall clock: the shift's end and grace
    at_ms: Whole = 0
    waiting_records: Whole = 0  # of a log
    expires_ms: Mapping[str, Whole] = field(default_factory=dict)  # by source partition: when the
    # next record to read will be gone at the source
    format: Literal[1] = 1


def report_key(stream: str, shard: int) -> str:
    return f"{REPORTS}/{key(stream, f'{shard:05}')}"


class Reporter:
    """Writes a report if it says something new, and not too often."""

    def __init__(
        self, store: DocumentStore, name: str, ambient: Ambient, store_ms: Callable[[], int]
    ) -> None:
        self._store = store
        self._name = name
        self._ambient = ambient
        self._store_ms = store_ms
        self._last: tuple[int, Report] | None = None

    def tell(self, report: Report, *, is_last: bool = False) -> None:
        """`is_last`: nobody will tell anything after this."""
        now_ms = self._ambient.monotonic_ms()
        if self._last is not None:
            then_ms, before = self._last
            if before == report or (now_ms < then_ms + REPORT_MS and not is_last):
                return
        self._last = (now_ms, report)
        body = body_of(replace(report, at_ms=self._store_ms()))
        try:
            found = self._store.get(self._name)
            if found is None:
                self._store.create(self._name, body)
            else:
                self._store.replace(self._name, body, found.version)
        except (Conflict, Unavailable, OutcomeUnknown, Corrupt):
            self._last = None  # for people only: told again with the next look, the same or not


def words_of(counts: Mapping[str, int]) -> str:
    """For people; in the order in which they ask."""
    told = [
        f"{counts[kind]:,} {one if counts[kind] == 1 else more}"
        for kind, (one, more) in WORDS.items()
        if counts.get(kind)
    ]
    return ", ".join(told) or "no records"
