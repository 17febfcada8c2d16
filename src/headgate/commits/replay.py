"""Replay: does what is not done yet of a journal's commit, from whatever a crash left.

    record ──▶ files, each for itself and in parallel ──▶ steps of the user's own ──▶ the fact

Many files are first published at once, if the lake finds them as they should be; whatever is not
certainly done afterwards becomes a step like any other.

It asks no clock, lists no folder and makes up no name: whoever does it, and however often, ends in
the same state (invariant 5).
"""

from collections.abc import Mapping, Sequence

from headgate.commits import StepKind
from headgate.commits.checkpoint import Journal
from headgate.commits.record import Record, RecordFile, from_bytes, record_path
from headgate.commits.steps import PublishFile, carry_out, carry_out_own
from headgate.errors import Corrupt, Halted, Invalid, OutcomeUnknown
from headgate.lake import FileFacts, Lake
from headgate.lake.local import Each, in_turn

AT_ONCE_MIN = 64  # fewer files are published one by one
AT_ONCE_MAX = 2_000  # then trust is asked for again


def carry_out_journal(
    lake: Lake,
    stream: str,
    shard: int,
    journal: Journal,
    kinds: Mapping[str, StepKind],
    each: Each = in_turn,
    known: Record | None = None,
) -> Record:
    """Afterwards every step is done, and the fact may be written. `known`: what the caller itself
    put under the journal's checksum. Raises Halted (a person decides), Corrupt, Unavailable, and
    whatever a step of the user's own raises."""
    name, published = f"{stream}/{shard}", record_path(stream, shard, journal.number)
    facts = FileFacts(journal.size_bytes, journal.checksum)
    carry_out(PublishFile(name, journal.record, published, facts), lake)
    record = known or read_record(lake, stream, shard, journal.number)
    if record is None:
        raise Halted(
            f"{published}: was published, and is gone again; "
            f'next: headgate journal restage {name} --reason "…"'
        )
    rest = _published_at_once(lake, record.files)
    steps = [PublishFile(name, file.staged, file.published, file.facts) for file in rest]
    each(lambda step: carry_out(step, lake), steps)
    paths = (published, *(file.published for file in record.files))
    lake.settle(sorted({path.rpartition("/")[0] for path in paths}))

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


def _published_at_once(lake: Lake, files: Sequence[RecordFile]) -> list[RecordFile]:
    """Those that are not certainly done afterwards. Raises Unavailable."""
    if len(files) < AT_ONCE_MIN:
        return list(files)
    rest: list[RecordFile] = []
    for first in range(0, len(files), AT_ONCE_MAX):
        some = files[first : first + AT_ONCE_MAX]
        try:
            done = lake.publish_all(some)
        except OutcomeUnknown:
            done = (False,) * len(some)
        rest += [file for file, is_done in zip(some, done, strict=True) if not is_done]
    return rest


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
