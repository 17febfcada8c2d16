"""Sum: what a folder holds, as a number that says whether two accounts of it are the same.

An hour costs some hundred bytes, however many files are in it: so the records of a whole stream and
the listings of its lake are compared without either of them in memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from headgate.commits.merges import MergeRecord
from headgate.commits.record import Record
from headgate.lake.paths import folder_of


@dataclass(slots=True)
class Sum:
    files: int = 0
    total: int = 0  # of a digest of each path and size: in whatever order
    spans: dict[int, tuple[int, int]] = field(default_factory=dict, compare=False)
    """By shard, the first and the last commit that has files here."""

    def add(self, path: str, size_bytes: int, commit: tuple[int, int] | None) -> None:
        """`commit`: shard and number; None: it is a merged file."""
        self.files += 1
        self.total += _digest(path, size_bytes)
        if commit is not None:
            shard, number = commit
            first, last = self.spans.get(shard, (number, number))
            self.spans[shard] = (min(first, number), max(last, number))

    def take(self, path: str, size_bytes: int) -> None:
        """It is not expected any more; its commit is still one that has files here."""
        self.files -= 1
        self.total -= _digest(path, size_bytes)


def _digest(path: str, size_bytes: int) -> int:
    raw = blake2b(f"{path}\0{size_bytes}".encode(), digest_size=16).digest()
    return int.from_bytes(raw, "big")


def add_record(sums: dict[str, Sum], record: Record) -> None:
    for file in record.files:
        found = sums.setdefault(folder_of(file.published), Sum())
        found.add(file.published, file.size_bytes, (record.shard, record.number))


def add_merge(sums: dict[str, Sum], record: MergeRecord) -> None:
    """After all commit records: what they name was merged."""
    for output in record.outputs:
        for one in output.inputs:
            sums.setdefault(folder_of(one.path), Sum()).take(one.path, one.size_bytes)
        found = sums.setdefault(folder_of(output.published), Sum())
        found.add(output.published, output.size_bytes, None)


def spans_of(*sums: Sum) -> Mapping[int, tuple[int, int]]:
    """Of all of them together."""
    found: dict[int, tuple[int, int]] = {}
    for one in sums:
        for shard, (first, last) in one.spans.items():
            lower, upper = found.get(shard, (first, last))
            found[shard] = (min(first, lower), max(last, upper))
    return found
