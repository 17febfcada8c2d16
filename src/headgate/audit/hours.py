"""Hours: what the records of a stream say of each hour, small enough to keep for all of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from headgate.commits.certificate import Certificate
from headgate.commits.checkpoint import Spans, with_number
from headgate.commits.record import Record


@dataclass(slots=True)
class Landed:
    """Into one hour, on time."""

    commits: dict[str, Spans] = field(default_factory=dict)  # by shard, as a certificate has them
    rows: int = 0
    total: int = 0  # of a digest of each file: in whatever order
    outputs: dict[str, tuple[int, int]] = field(default_factory=dict)  # rows and total of each

    def of(self, output: str) -> "Landed":
        """As the certificate of an output has it: the commits are those of its stream."""
        return Landed(self.commits, *self.outputs.get(output, (0, 0)))


def add_hours(hours: dict[str, Landed], record: Record) -> None:
    shard = str(record.shard)
    for file in record.files:
        if file.kind != "data":
            continue
        found = hours.setdefault(file.period, Landed())
        digest = _digest(file.published, file.size_bytes, file.checksum, file.rows)
        found.rows += file.rows
        found.total += digest
        rows, total = found.outputs.get(file.output, (0, 0))
        found.outputs[file.output] = (rows + file.rows, total + digest)
        spans = found.commits.get(shard, ())
        if not spans or spans[-1][1] <= record.number:
            found.commits[shard] = with_number({shard: spans}, [shard], record.number)[shard]


def total_of(certificate: Certificate) -> int:
    """Of the files that it names."""
    return sum(_digest(f.path, f.size_bytes, f.checksum, f.rows) for f in certificate.files)


def _digest(path: str, size_bytes: int, checksum: str, rows: int) -> int:
    text = f"{path}\0{size_bytes}\0{checksum}\0{rows}"
    return int.from_bytes(blake2b(text.encode(), digest_size=16).digest(), "big")


def unnamed(landed: Landed, commits: Mapping[str, Spans]) -> list[tuple[int, int]]:
    """Shard and number of commits that are not among these, the first of each span. Pure."""
    found: list[tuple[int, int]] = []
    for shard, spans in landed.commits.items():
        for first, end in spans:
            number = first
            for known, known_end in sorted(commits.get(shard, ())):
                if known <= number:
                    number = max(number, known_end)
            if number < end:
                found.append((int(shard), number))
    return found
