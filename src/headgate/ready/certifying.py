"""Certifying: from the records of the commits that have files in an hour to its certificate.

The checkpoints name those commits. Once every watermark has passed the hour's end no commit can add
to it, so what they name then is all there will be. If its small files were merged, the merge record
says what stands in their place.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headgate.commits.certificate import (
    Certificate,
    CertifiedFile,
    CertifiedGap,
    CertifiedPartition,
    sealed,
)
from headgate.commits.checkpoint import Checkpoint, Spans
from headgate.commits.merges import MergeRecord, merge_path, read_merge
from headgate.commits.record import Record, RecordFile, record_path
from headgate.commits.replay import read_record
from headgate.errors import Corrupt, Halted
from headgate.lake import Lake
from headgate.lake.pages import entries_of
from headgate.lake.paths import folder_of
from headgate.periods import Period
from headgate.ready.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Gathered:
    """What is known of the commits with files in an hour, and of its merge."""

    hour: Period
    evidence: Evidence
    commits: Mapping[str, Spans]
    records: Mapping[int, list[Record]]
    gapped: Sequence[Record] = ()  # commits without files in the hour, with gaps that concern it
    merge: MergeRecord | None = None  # None: its files are as they landed

    @property
    def every(self) -> list[Record]:
        return [record for found in self.records.values() for record in found]

    def files(self, kind: str) -> list[RecordFile]:
        """As they landed."""
        period = str(self.hour)
        every = (file for record in self.every for file in record.files)
        return [file for file in every if file.kind == kind and file.period == period]


def gather(
    lake: Lake, stream: str, hour: Period, evidence: Evidence, generation: int = 1
) -> Gathered:
    """Raises Halted (a record or a merged file is gone), Corrupt, Unavailable."""
    commits = {
        str(shard): checkpoint.periods[str(hour)]
        for shard, checkpoint in enumerate(evidence.checkpoints)
        if checkpoint is not None and str(hour) in checkpoint.periods
    }
    records = {
        int(shard): list(_records(lake, stream, int(shard), spans))
        for shard, spans in commits.items()
    }
    gapped = [
        record
        for shard, checkpoint in enumerate(evidence.checkpoints)
        if checkpoint is not None
        for record in _records(lake, stream, shard, _gapped_in(checkpoint, str(hour)))
    ]
    # Whatever the settings say by now: it may have been merged before they were changed.
    merge = read_merge(lake, stream, str(hour), generation)
    if merge is not None:
        _check_published(lake, merge)
    return Gathered(hour, evidence, commits, records, gapped, merge)


def certificate_of(stream: str, found: Gathered, closed_ms: int, node: str) -> Certificate:
    """Of the first generation. Pure. Raises Corrupt."""
    hour, every = found.hour, found.every
    files = in_place(found.files("data"), found.merge)
    partitions = {
        name: partition
        for shard, checkpoint in enumerate(found.evidence.checkpoints)
        if checkpoint is not None
        for name, partition in _partitions(checkpoint, found.records.get(shard, []))
    }
    return sealed(
        Certificate(
            stream,
            str(hour),
            1,
            files,
            partitions,
            tuple(
                CertifiedGap(gap.partition, gap.first, gap.next, gap.reason)
                for record in (*every, *found.gapped)
                for gap in record.gaps
                if gap.concerns(str(hour))
            ),
            {
                "landed": sum(file.rows for file in files),
                "late": sum(file.rows for file in found.files("late")),
                "dead": sum(record.counts.get("dead", 0) for record in every),
            },
            _span(hour, every),
            found.commits,
            closed_ms,
            node,
        )
    )


def in_place(data: Sequence[RecordFile], merge: MergeRecord | None) -> tuple[CertifiedFile, ...]:
    """By path: what landed, but for what was merged; and what became of that. Raises Corrupt: the
    merge names a file that no commit of the hour has."""
    landed = {
        file.published: CertifiedFile(file.published, file.size_bytes, file.checksum, file.rows)
        for file in data
    }
    outputs = () if merge is None else merge.outputs
    for one in (one for output in outputs for one in output.inputs):
        known = landed.pop(one.path, None)
        if known != CertifiedFile(one.path, one.size_bytes, one.checksum, one.rows):
            raise Corrupt(
                f"{one.path}: a merge of its hour names it, and its commit record says something "
                "else; the hour gets no flag; next: headgate audit"
            )
    for output in outputs:
        landed[output.published] = CertifiedFile(
            output.published, output.size_bytes, output.checksum, output.rows
        )
    return tuple(landed[path] for path in sorted(landed))


def _check_published(lake: Lake, merge: MergeRecord) -> None:
    """No journal stands, so its outputs are there, unless the store or the lake was rolled back.
    Raises Halted."""
    sizes = _sizes(lake, [one.published for one in merge.outputs])
    for one in merge.outputs:
        if sizes.get(one.published) != one.size_bytes:
            path = merge_path(merge.stream, merge.period, merge.generation)
            raise Halted(
                f"{one.published}: is not there as {path} says, so rows of its hour are missing; "
                "the hour gets no flag; next: restore it from a backup, then headgate audit"
            )


def check_there(lake: Lake, certificate: Certificate) -> None:
    """What an hour that was withdrawn certifies is still there: a flag of the next generation would
    else vouch for what somebody changed. Raises Halted, Unavailable."""
    sizes = _sizes(lake, [file.path for file in certificate.files])
    for file in certificate.files:
        if sizes.get(file.path) != file.size_bytes:
            state = "is gone" if file.path not in sizes else "has another size"
            raise Halted(
                f"{file.path}: {state} since {certificate.period} was certified, so its flag is "
                "not raised again; next: restore it from a backup, then headgate verify "
                f"{certificate.period}"
            )


def _sizes(lake: Lake, paths: Iterable[str]) -> dict[str, int]:
    """Of what lies beside these files."""
    return {
        entry.path: entry.size_bytes
        for folder in sorted({folder_of(path) for path in paths})
        for entry in entries_of(lake, folder)
        if not entry.is_folder
    }


def _records(lake: Lake, stream: str, shard: int, spans: Spans) -> Iterator[Record]:
    for first, end in spans:
        for number in range(first, end):
            record = read_record(lake, stream, shard, number)
            if record is None:
                path = record_path(stream, shard, number)
                raise Halted(
                    f"{path}: is gone, so nobody knows the files of its commit; the hours with "
                    "them get no flag; next: restore it from a backup, or see what is there: "
                    "headgate audit"
                )
            yield record


def _gapped_in(checkpoint: Checkpoint, hour: str) -> Spans:
    """Of commits that are not named for their files."""
    named = {n for first, end in checkpoint.periods.get(hour, ()) for n in range(first, end)}
    numbers = [
        number
        for one in checkpoint.gapped
        if one.since <= hour <= one.until
        for number in range(one.first, one.next)
        if number not in named
    ]
    return tuple((number, number + 1) for number in numbers)


def _partitions(
    checkpoint: Checkpoint, records: list[Record]
) -> Iterator[tuple[str, CertifiedPartition]]:
    for name, mark_ms in checkpoint.watermarks.items():
        if mark_ms is None:
            continue  # blocks: an hour with such a one is not certified
        ranges = [record.ranges[name] for record in records if name in record.ranges]
        here = checkpoint.positions.get(name, "")
        first, end = (ranges[0].first, ranges[-1].next) if ranges else (here, here)
        by = checkpoint.reached.get(name, "records")
        yield name, CertifiedPartition(first, end, mark_ms, by)


def _span(hour: Period, records: list[Record]) -> tuple[int, int] | None:
    seen = [moment for record in records for moment in record.event_ms or ()]
    if not seen:
        return None
    return max(min(seen), hour.start_ms), min(max(seen), hour.end_ms - 1)
