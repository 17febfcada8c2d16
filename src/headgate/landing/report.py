"""Report: what a shard's holder says of it now and then, for people: nothing is decided by it."""

from dataclasses import dataclass
from typing import Literal

from headgate.store.codec import Whole
from headgate.store.names import key

REPORTS = "reports"
REPORT_MS = 10_000  # between two of them


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
    at_ms: Whole = 0
    format: Literal[1] = 1


def report_key(stream: str, shard: int) -> str:
    return f"{REPORTS}/{key(stream, f'{shard:05}')}"
