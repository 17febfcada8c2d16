"""Belonging: invariant 1, file by file, for folders in which listing and records differ.

A checkpoint is read first (what it says is concluded must be there), then the folders are listed,
then the records are read (a record is published before its files). Only a restage and a merge take
published files away, and only a redrive moves them: so what looks wrong is looked at twice, and
dead letters are looked for along their way. What was merged is in `merged`.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from headgate.audit import Finding
from headgate.audit.advice import look_again, restore
from headgate.audit.merged import judged_inputs, judged_outputs, merges_of, unlanded_inputs
from headgate.audit.numbers import last_concluded
from headgate.audit.removed import removed_paths
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.merges import merge_of
from headgate.commits.record import Record, RecordFile
from headgate.commits.replay import read_record
from headgate.errors import Corrupt
from headgate.lake import Lake
from headgate.lake.pages import entries_of
from headgate.lake.paths import folder_of, name_of
from headgate.landing.names import DEAD, REDRIVE, REDRIVEN, commit_of
from headgate.periods import escape_name
from headgate.store import DocumentStore
from headgate.store.changes import read

Spans = Mapping[int, tuple[int, int]]
"""By shard, the first and the last commit that may have files in a folder."""

REDRIVE_DEPTH = 3  # as deep as dead letters lie


@dataclass(slots=True)
class Commit:
    """What is known of one commit, as far as these folders are concerned."""

    record: Record | None  # None: there is none, or it cannot be read
    is_readable: bool = True
    is_replaced: bool = False
    files: dict[str, RecordFile] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shard:
    number: int
    checkpoint: Checkpoint | None  # None: there is none
    commits: Mapping[int, Commit]


def check_folders(
    store: DocumentStore, lake: Lake, stream: str, folders: Mapping[str, Spans], root: str
) -> list[Finding]:
    """What is wrong in these folders, and still is at a second look. `root`: the key of the root's
    document. Raises Unavailable."""
    first = _look(store, lake, stream, folders, root)
    if not first:
        return []
    second = set(_look(store, lake, stream, folders, root))
    return [finding for finding in first if finding in second]


def _look(
    store: DocumentStore, lake: Lake, stream: str, folders: Mapping[str, Spans], root: str
) -> list[Finding]:
    named = {shard for spans in folders.values() for shard in spans}
    before = {shard: _checkpoint(store, stream, shard) for shard in sorted(named)}
    listed = {folder: _listed(lake, folder) for folder in folders}
    seen: dict[int, set[int]] = {}
    for sizes in listed.values():
        for path in sizes:
            said = commit_of(name_of(path))
            if said is not None:
                seen.setdefault(said[0], set()).add(said[1])
    found: list[Finding] = []
    missing: list[tuple[Record, RecordFile]] = []
    landed: dict[str, RecordFile] = {}
    torn = False
    for shard in sorted({*named, *seen}):
        earlier = before.get(shard)
        wanted = _wanted(shard, folders, earlier) | seen.get(shard, set())
        commits = _commits(lake, stream, shard, wanted, folders)
        # After the listing: what was published meanwhile had been journaled.
        checkpoint = _checkpoint(store, stream, shard)
        if isinstance(checkpoint, Corrupt):
            torn = True
            continue  # told already; without it nothing of this shard can be judged
        judged = Shard(shard, checkpoint, commits)
        last = 0 if checkpoint is None else checkpoint.number
        for number, commit in commits.items():
            landed |= commit.files
            torn |= commit.record is None and (not commit.is_readable or number <= last)
        for folder in sorted(listed):
            found += _judged_files(stream, judged, listed[folder])
        if isinstance(earlier, Checkpoint):
            missing += _missing(judged, earlier, listed)
    periods = {file.period for file in landed.values() if file.kind == "data"}
    merges = merges_of(store, lake, stream, root, periods)
    found += [*judged_inputs(stream, merges, listed), *judged_outputs(stream, merges, listed)]
    if not torn:  # a record that is gone or cannot be read is a finding of its own
        found += unlanded_inputs(stream, merges, landed)
    lost = [one for one in missing if one[1].published not in merges.inputs]
    # After the listing: a statement is published before a file that it names goes.
    gone = removed_paths(lake, stream, sorted({file.period for _, file in lost if file.period}))
    lost = [one for one in lost if one[1].published not in gone]
    moved = _moved(lake, stream, lost)
    return found + _told(stream, [one for one in lost if one[1].published not in moved])


def _checkpoint(store: DocumentStore, stream: str, shard: int) -> Checkpoint | Corrupt | None:
    try:
        kept = read(store, checkpoint_key(stream, shard), Checkpoint)
    except Corrupt as error:
        return error
    return None if kept is None else kept.value


def _listed(lake: Lake, folder: str) -> dict[str, int]:
    """Our own files in it; those of others are another finding."""
    return {
        entry.path: entry.size_bytes
        for entry in entries_of(lake, folder)
        if not entry.is_folder and _is_ours(name_of(entry.path))
    }


def _is_ours(name: str) -> bool:
    return commit_of(name) is not None or merge_of(name) is not None


def _wanted(
    shard: int, folders: Mapping[str, Spans], checkpoint: Checkpoint | Corrupt | None
) -> set[int]:
    last = checkpoint.number if isinstance(checkpoint, Checkpoint) else 0
    spans = [spans[shard] for spans in folders.values() if shard in spans]
    return {number for first, end in spans for number in range(first, min(end, last) + 1)}


def _commits(
    lake: Lake, stream: str, shard: int, wanted: Collection[int], folders: Collection[str]
) -> dict[int, Commit]:
    """With the one behind each: it says whether that was replaced."""
    found: dict[int, Commit] = {}
    for number in sorted({*wanted, *(number + 1 for number in wanted)}):
        try:
            record = read_record(lake, stream, shard, number)
        except Corrupt:
            found[number] = Commit(None, is_readable=False)
            continue
        files = () if record is None else record.files
        named = {file.published: file for file in files if folder_of(file.published) in folders}
        found[number] = Commit(record, files=named)
        if record is not None and record.replaces in found:
            found[record.replaces].is_replaced = True
    return found


def _judged_files(stream: str, shard: Shard, sizes: Mapping[str, int]) -> Iterator[Finding]:
    for path, size_bytes in sizes.items():
        said = commit_of(name_of(path))
        if said is None or said[0] != shard.number:
            continue
        wrong = _what_is_wrong(shard, path, size_bytes, said[1])
        if wrong is not None:
            invariant, words, meaning = wrong
            advice = f"see whose it is, move it away; then {look_again(stream)}"
            yield Finding(invariant, stream, shard.number, path, words, meaning, advice)


def _what_is_wrong(
    shard: Shard, path: str, size_bytes: int, number: int
) -> tuple[int, str, str] | None:
    """Invariant, words and meaning. Pure."""
    commit, checkpoint = shard.commits[number], shard.checkpoint
    twice = "readers of this folder get records twice, or records that nobody landed"
    if commit.is_replaced or is_replaced_by_journal(checkpoint, number):
        return 1, f"is a file of commit {number}, which was replaced by {number + 1}", twice
    if commit.record is None:
        if checkpoint is None:
            return 1, f"its name says shard {shard.number}, which has no checkpoint", twice
        if number > checkpoint.number:
            words = f"its name says commit {number}, and the last journaled is {checkpoint.number}"
            return 4, words, twice
        if not commit.is_readable or number <= last_concluded(checkpoint):
            return None  # its record is damaged or gone: one finding of its own
        return 1, f"is published, and the record of commit {number} is not", twice
    named = commit.files.get(path)
    if named is None:
        return 1, f"its name says commit {number}, whose record does not name it", twice
    if named.size_bytes != size_bytes:
        words = f"has {size_bytes:,} bytes, and the record of commit {number} says "
        return 1, f"{words}{named.size_bytes:,}", "it was changed or cut off after it was published"
    return None


def is_replaced_by_journal(checkpoint: Checkpoint | None, number: int) -> bool:
    """The replacing commit is journaled, and its record perhaps not published yet."""
    journal = None if checkpoint is None else checkpoint.journal
    return journal is not None and journal.replaces == number


def _missing(
    shard: Shard, before: Checkpoint, listed: Mapping[str, Mapping[str, int]]
) -> Iterator[tuple[Record, RecordFile]]:
    for number, commit in shard.commits.items():
        is_over = number <= last_concluded(before) and not is_replaced_by_journal(before, number)
        if commit.record is None or commit.is_replaced or not is_over:
            continue
        for path, file in commit.files.items():
            if path not in listed[folder_of(path)]:
                yield commit.record, file


def _moved(lake: Lake, stream: str, missing: Collection[tuple[Record, RecordFile]]) -> set[str]:
    """Dead letters that were driven in again: where they lay. They are looked for in the order of
    their way, so that none is missed between two places."""
    lost: dict[tuple[str, int], list[str]] = {}
    for _, file in missing:
        if file.published.startswith(f"{DEAD}/"):
            lost.setdefault((name_of(file.published), file.size_bytes), []).append(file.published)
    found: set[str] = set()
    for root in (REDRIVE, REDRIVEN) if lost else ():
        for seen in _files_below(lake, f"{root}/{escape_name(stream)}", REDRIVE_DEPTH):
            found.update(lost.get(seen, ()))
    return found


def _files_below(lake: Lake, folder: str, depth: int) -> Iterator[tuple[str, int]]:
    """Name and size."""
    for entry in entries_of(lake, folder):
        if not entry.is_folder:
            yield name_of(entry.path), entry.size_bytes
        elif depth > 0:
            yield from _files_below(lake, entry.path, depth - 1)


def _told(stream: str, missing: Collection[tuple[Record, RecordFile]]) -> list[Finding]:
    """One finding for each commit and folder."""
    groups: dict[tuple[int, int, str], list[str]] = {}
    for record, file in missing:
        place = (record.shard, record.number, folder_of(file.published))
        groups.setdefault(place, []).append(file.published)
    found = []
    for (shard, number, _), paths in groups.items():
        more = f", and {len(paths) - 1:,} more of it in this folder" if len(paths) > 1 else ""
        words = f"is not there{more}, and the record of commit {number} names it"
        meaning = f"its records are in no published file, and commit {number} is concluded"
        advice = restore("it", stream)
        found.append(Finding(2, stream, shard, min(paths), words, meaning, advice))
    return found


def is_foreign(folder: str, name: str, is_folder: bool) -> bool:
    """Readers of lakes skip what is hidden, and would take this for records. Pure."""
    if is_folder and folder.startswith(f"{DEAD}/"):
        return False
    return not name.startswith(("_", "."))


def foreign(stream: str, path: str) -> Finding:
    return Finding(
        1,
        stream,
        None,
        path,
        "lies in a data folder, and no commit has such a name",
        "readers of this folder take it for records of the stream",
        f"see whose it is, move it away; then {look_again(stream)}",
    )
