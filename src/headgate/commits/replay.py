"""Replay: does what is not done yet of a journal's commit, from whatever a crash left.

    record ──▶ files, each for itself and in parallel ──▶ steps of the user's own ──▶ the fact

It asks no clock, lists no folder and makes up no name: whoever does it, and however often, ends in
the same state (invariant 5).
"""

from collections.abc import Mapping

from headgate.commits import StepKind
from headgate.commits.checkpoint import Journal
from headgate.commits.record import Record, from_bytes, record_path
from headgate.commits.steps import PublishFile, carry_out, carry_out_own
from headgate.errors import Corrupt, Halted, Invalid
from headgate.lake import FileFacts, Lake
from headgate.lake.local import Each, in_turn


def carry_out_journal(
    lake: Lake,
    stream: str,
    shard: int,
    journal: Journal,
    kinds: Mapping[str, StepKind],
    each: Each = in_turn,
) -> Record:
    """Afterwards every step is done, and the fact may be written. Raises Halted (a person decides),
    Corrupt, Unavailable, and whatever a step of the user's own raises."""
    name, published = f"{stream}/{shard}", record_path(stream, shard, journal.number)
    facts = FileFacts(journal.size_bytes, journal.checksum)
    carry_out(PublishFile(name, journal.record, published, facts), lake)
    record = read_record(lake, stream, shard, journal.number)
    if record is None:
        raise Halted(
            f"{published}: was published, and is gone again; "
            f'next: headgate journal restage {name} --reason "…"'
        )
    steps = [PublishFile(name, file.staged, file.published, file.facts) for file in record.files]
    each(lambda step: carry_out(step, lake), steps)
    folders = {path.rpartition("/")[0] for path in (published, *(s.published for s in steps))}
    lake.settle(sorted(folders))

    def kind_of(name: str) -> StepKind:
        if name not in kinds:
            raise Invalid(
                f"commit {stream}/{shard}/{journal.number} has a step of kind {name!r}, which this "
                "node does not know; next: register it, as on the node that made this commit"
            )
        return kinds[name]

    for own in record.steps:
        carry_out_own(own, kind_of)
    return record


def read_record(lake: Lake, stream: str, shard: int, number: int) -> Record | None:
    """A published one; None if there is none. Raises Corrupt, Unavailable."""
    path = record_path(stream, shard, number)
    raw = lake.read(path)
    if raw is None:
        return None
    record = from_bytes(raw, path)
    if (record.stream, record.shard, record.number) != (stream, shard, number):
        raise Corrupt(f"{path}: is the record of {record.stream}/{record.shard}/{record.number}")
    return record
