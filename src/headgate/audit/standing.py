"""Standing: invariant 4: beyond what is concluded there is at most one commit, which the journal
names. And whether that commit can be finished at all."""

from collections.abc import Iterator

from headgate.audit import Finding
from headgate.audit.advice import restage, restore, show_journal
from headgate.audit.numbers import number_of
from headgate.commits.checkpoint import Checkpoint, Journal, checkpoint_key, concluded
from headgate.commits.record import Record, from_bytes, record_folder, record_path
from headgate.commits.replay import read_record
from headgate.commits.steps import PublishFile
from headgate.errors import Corrupt, Halted
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


def remark_journal(store: DocumentStore, lake: Lake, stream: str, shard: int) -> Iterator[Finding]:
    """Of a journal whose files are gone; nobody but a person can go on. Raises Unavailable."""
    before = _standing(store, stream, shard)
    lost = None if before is None else _lost(lake, stream, shard, before)
    # Afterwards: whoever finished it meanwhile has removed what was staged.
    if before is None or lost is None or _standing(store, stream, shard) != before:
        return
    yield Finding(
        None,
        stream,
        shard,
        lost,
        f"commit {before.number} of {stream}/{shard} is journaled and not finished, and what was "
        "staged for this file is missing or damaged",
        "nothing more of this shard lands; its records are still in the source, and are read again "
        "by a person's decision",
        restage(stream, shard),
    )


def _standing(store: DocumentStore, stream: str, shard: int) -> Journal | None:
    """That nobody has decided about yet."""
    try:
        found = read(store, checkpoint_key(stream, shard), Checkpoint)
    except Corrupt:
        return None  # a finding of the documents
    return None if found is None or found.value.restage is not None else found.value.journal


def _lost(lake: Lake, stream: str, shard: int, journal: Journal) -> str | None:
    """The first file of the journal's commit that can be published no more."""
    name, path = f"{stream}/{shard}", record_path(stream, shard, journal.number)
    facts = FileFacts(journal.size_bytes, journal.checksum)
    steps = [PublishFile(name, journal.record, path, facts)]
    try:
        record = read_record(lake, stream, shard, journal.number) or _staged(lake, journal)
    except Corrupt:
        return None  # a finding of its own
    if record is not None:
        steps += [PublishFile(name, one.staged, one.published, one.facts) for one in record.files]
    for step in steps:
        try:
            step.state(lake)
        except Halted:
            return step.published
        except Corrupt:
            return None  # another file has its name: a finding of its folder
    return None


def _staged(lake: Lake, journal: Journal) -> Record | None:
    raw = lake.read(journal.record)
    return None if raw is None else from_bytes(raw, journal.record)


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
