"""Standing: invariant 4: beyond what is concluded there is at most one commit, which the journal
names."""

from collections.abc import Iterator

from headgate.audit import Finding
from headgate.audit.advice import restore, show_journal
from headgate.audit.numbers import number_of
from headgate.commits.checkpoint import Checkpoint, checkpoint_key, concluded
from headgate.commits.record import record_folder, record_path
from headgate.errors import Corrupt
from headgate.lake import FileFacts, Lake
from headgate.store import DocumentStore
from headgate.store.changes import read


def check_journal(stream: str, shard: int, checkpoint: Checkpoint) -> Iterator[Finding]:
    """Whether the journal fits its own checkpoint. Pure."""
    journal, name = checkpoint.journal, f"{stream}/{shard}"
    if journal is None:
        return
    if journal.number != checkpoint.number:
        yield Finding(
            4,
            stream,
            shard,
            name,
            f"the journal is of commit {journal.number}, and the last that was journaled is "
            f"{checkpoint.number}",
            "two commits may be unfinished at once",
            show_journal(stream, shard),
        )
    try:
        concluded(name, checkpoint, journal, checkpoint.committed_ms)
    except Corrupt as error:
        yield Finding(
            2,
            stream,
            shard,
            name,
            f"the fact of commit {journal.number} would be refused: {error}",
            "the shard stands still",
            show_journal(stream, shard),
        )


def check_journaled_record(
    lake: Lake, stream: str, shard: int, checkpoint: Checkpoint
) -> Iterator[Finding]:
    """A record under the journal's number is the one that the journal means. It stays so after the
    fact: nobody else ever has this number."""
    journal = checkpoint.journal
    if journal is None:
        return
    path = record_path(stream, shard, journal.number)
    found = lake.facts(path)
    if found not in (None, FileFacts(journal.size_bytes, journal.checksum)):
        yield Finding(
            4,
            stream,
            shard,
            path,
            f"another commit record than the journal's lies under number {journal.number}",
            "a store was rolled back, or a second installation uses this lake; nothing more is "
            "committed for this shard",
            show_journal(stream, shard),
        )


def check_beyond(store: DocumentStore, lake: Lake, stream: str, shard: int) -> Iterator[Finding]:
    """No record has a number that was not journaled. Raises Unavailable, Corrupt (the checkpoint
    cannot be read)."""
    before = read(store, checkpoint_key(stream, shard), Checkpoint)
    known = 0 if before is None else before.value.number
    page = lake.list(record_folder(stream, shard), after=f"{known:010}.json")
    found = [number for number in map(number_of, page.entries) if number is not None]
    # Afterwards: a record that was published meanwhile was journaled before.
    after = read(store, checkpoint_key(stream, shard), Checkpoint)
    beyond = [one for one in found if one > (0 if after is None else after.value.number)]
    if not beyond:
        return
    shown = f"{beyond[0]}" if len(beyond) == 1 else f"{beyond[0]} to {beyond[-1]}"
    more = " and more" if page.next_after is not None else ""
    said = "there is no checkpoint" if after is None else f"the last journaled {after.value.number}"
    yield Finding(
        4,
        stream,
        shard,
        record_path(stream, shard, beyond[0]),
        f"records of commit {shown}{more} are published, and in the store {said}",
        "the store was lost or rolled back, or a second installation uses this lake; records would "
        "be landed twice",
        f"stop the nodes; then {restore('the store', stream)}",
    )
