"""Restaging: what is left of a commit whose files are gone goes, before its range is read again.

Its record stays, named as replaced by the next one; it is published first if it was not yet, and
says what to remove. The order matters: staged before published, so that whoever wakes up late finds
nothing to publish; and all of it settled before the new intent, so that a power cut brings nothing
back that nobody will name any more.
"""

from headgate.commits.checkpoint import Journal
from headgate.commits.record import Record, record_path
from headgate.commits.replay import read_record
from headgate.commits.steps import PublishFile, carry_out
from headgate.errors import Conflict, Corrupt, Halted
from headgate.lake import FileFacts, Lake


def clear_commit(lake: Lake, stream: str, shard: int, journal: Journal) -> None:
    """Raises Halted (nobody knows what was published), Corrupt, Unavailable, OutcomeUnknown."""
    record = record_of(lake, stream, shard, journal)
    lake.remove_folder(journal.folder)
    for file in record.files:
        try:
            lake.remove(file.published, file.facts)
        except Conflict as error:
            raise Corrupt(
                f"{file.published}: is not the file of commit {journal.number}; it is left alone; "
                "next: headgate audit"
            ) from error
    places = [path for file in record.files for path in (file.staged, file.published)]
    lake.settle(sorted({journal.folder, *(one.rpartition("/")[0] for one in places)}))


def record_of(lake: Lake, stream: str, shard: int, journal: Journal) -> Record:
    """Of the commit that is to be cleared, published. Raises Halted (nobody knows what was
    published), Corrupt, Unavailable."""
    published = record_path(stream, shard, journal.number)
    facts = FileFacts(journal.size_bytes, journal.checksum)
    if lake.facts(journal.record) == facts:
        carry_out(PublishFile(f"{stream}/{shard}", journal.record, published, facts), lake)
        lake.settle([published.rpartition("/")[0]])
    record = read_record(lake, stream, shard, journal.number)
    if record is None:
        raise Halted(
            f"{published}: is gone, so nobody knows which files of commit {journal.number} were "
            "published; read again, records could be doubled; next: restore it from a backup, or "
            "see what is there: headgate audit"
        )
    return record
