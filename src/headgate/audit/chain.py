"""Chain: invariant 2, from record to record. Values in, findings out.

The ranges of each source partition join without hole or overlap, watermarks never move back, and
what the last record leads to is what the checkpoint says. Behind a record that cannot be read
nothing is known: the next range of each source partition is taken as it is, so that one damage
is one finding.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from headgate.audit import Finding
from headgate.audit.advice import show_journal
from headgate.commits.checkpoint import Checkpoint
from headgate.commits.record import Record


@dataclass(slots=True)
class Chain:
    stream: str
    shard: int
    positions: dict[str, str] = field(default_factory=dict)
    marks_ms: dict[str, int] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    rows: int = 0  # in files
    is_torn: bool = False  # a record is missing or damaged

    def tear(self) -> None:
        self.is_torn = True
        self.positions.clear()
        self.marks_ms.clear()

    def add(self, record: Record) -> Iterator[Finding]:
        """The next one that was not replaced."""
        yield from ranges_join(self, record)
        yield from marks_go_on(self, record)
        self.positions |= {name: span.next for name, span in record.ranges.items()}
        yield from positions_told(self, record)
        self.marks_ms |= {name: mark.after_ms for name, mark in record.watermarks.items()}
        self.counts.update(record.counts)
        self.rows += sum(file.rows for file in record.files)

    def end(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        yield from positions_end(self, checkpoint)
        yield from marks_end(self, checkpoint)
        yield from rows_end(self, checkpoint)

    def broken(self, subject: str, words: str, meaning: str) -> Finding:
        advice = show_journal(self.stream, self.shard)
        return Finding(2, self.stream, self.shard, subject, words, meaning, advice)

    @property
    def name(self) -> str:
        return f"{self.stream}/{self.shard}"


def ranges_join(chain: Chain, record: Record) -> Iterator[Finding]:
    for partition, span in record.ranges.items():
        known = chain.positions.get(partition, span.first if chain.is_torn else "")
        if span.first != known:
            yield chain.broken(
                f"{chain.name}/{record.number}",
                f"commit {record.number} reads {partition} from {span.first!r} on, and the commits "
                f"before it end at {known!r}",
                "records between the two are not in the lake, or are there twice",
            )


def positions_told(chain: Chain, record: Record) -> Iterator[Finding]:
    """After it. One that nobody wrote them into tells none."""
    for partition, said in record.positions.items():
        led = chain.positions.get(partition, said if chain.is_torn else "")
        if said != led:
            yield chain.broken(
                f"{chain.name}/{record.number}",
                f"commit {record.number} says that {partition} is at {said!r} after it, and its "
                f"ranges and those before it lead to {led!r}",
                "whoever looks for the commit that read a record looks on the wrong side",
            )


def marks_go_on(chain: Chain, record: Record) -> Iterator[Finding]:
    for partition, mark in record.watermarks.items():
        known = chain.marks_ms.get(partition, mark.before_ms if chain.is_torn else None)
        if mark.before_ms != known or (known is not None and mark.after_ms < known):
            yield chain.broken(
                f"{chain.name}/{record.number}",
                f"commit {record.number} moves the watermark of {partition} from {mark.before_ms} "
                f"to {mark.after_ms}, and the commits before it set {known}",
                "lateness was judged by a watermark that was not in force",
            )


def positions_end(chain: Chain, checkpoint: Checkpoint) -> Iterator[Finding]:
    for partition in sorted({*chain.positions, *checkpoint.positions}):
        said = checkpoint.positions.get(partition, "")
        led = chain.positions.get(partition, said if chain.is_torn else "")
        if said != led:
            yield chain.broken(
                chain.name,
                f"the checkpoint's position of {partition} is {said!r}, and its commit records "
                f"lead to {led!r}",
                "it passes records that are not in the lake, or would read some of them again",
            )


def marks_end(chain: Chain, checkpoint: Checkpoint) -> Iterator[Finding]:
    for partition in sorted({*chain.marks_ms, *checkpoint.watermarks}):
        said = checkpoint.watermarks.get(partition)
        led = chain.marks_ms.get(partition, said if chain.is_torn else None)
        if said != led:
            yield chain.broken(
                chain.name,
                f"the checkpoint's watermark of {partition} is {said}, and its commit records "
                f"lead to {led}",
                "hours would be closed too early, or held back",
            )


def rows_end(chain: Chain, checkpoint: Checkpoint) -> Iterator[Finding]:
    if not chain.is_torn and chain.rows != checkpoint.rows:
        yield chain.broken(
            chain.name,
            f"the checkpoint counts {checkpoint.rows:,} rows, and the files of its commit records "
            f"hold {chain.rows:,}",
            "a commit is missing, or counts twice",
        )
