"""Merged: invariant 1 for small files of an hour that became fewer large ones.

An input may be gone once a published merge record names it, and must be gone once the root's
journal names that record no more; an output belongs to its record. Anything else is a finding.
Whoever looks lists the folders first, reads the records then, and the root's journal last; and
looks twice.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from headgate.audit import Finding
from headgate.audit.advice import look_again, restore
from headgate.commits.merges import (
    MergeOutput,
    MergeRecord,
    from_bytes,
    merge_of,
    merge_path,
    merges_folder,
)
from headgate.commits.record import RecordFile
from headgate.commits.roots import RootDocument
from headgate.errors import Corrupt
from headgate.lake import Lake
from headgate.lake.pages import entries_of
from headgate.lake.paths import folder_of, join, name_of
from headgate.store import DocumentStore
from headgate.store.changes import read

_TWICE = "readers of this folder get records twice, or records that nobody landed"


@dataclass(slots=True)
class Merges:
    """What merge records say of some hours."""

    inputs: dict[str, str] = field(default_factory=dict)  # by path: of the output
    outputs: dict[str, MergeOutput] = field(default_factory=dict)  # by path
    unfinished: set[str] = field(default_factory=set)  # paths of both, where a journal stands

    def add(self, record: MergeRecord, *, is_unfinished: bool) -> None:
        for output in record.outputs:
            self.outputs[output.published] = output
            self.inputs.update((one.path, output.published) for one in output.inputs)
            if is_unfinished:
                self.unfinished.update((output.published, *(one.path for one in output.inputs)))


def merge_records(lake: Lake, stream: str) -> Iterator[MergeRecord | Finding]:
    """All of a stream; of one that cannot be read, the finding. Raises Unavailable."""
    for period in entries_of(lake, merges_folder(stream)):
        yield from _records_in(lake, stream, name_of(period.path))


def _records_in(lake: Lake, stream: str, period: str) -> Iterator[MergeRecord | Finding]:
    for entry in entries_of(lake, join(merges_folder(stream), period)):
        raw = lake.read(entry.path)
        if raw is None:
            continue
        try:
            record = from_bytes(raw, entry.path)
        except Corrupt as error:
            yield _damaged(stream, entry.path, str(error))
            continue
        said = merge_path(record.stream, record.period, record.generation)
        if said != entry.path:
            yield _damaged(stream, entry.path, f"is the record that belongs to {said}")
            continue
        yield record


def check_merge(record: MergeRecord) -> Iterator[Finding]:
    """What it says of its own files. Pure."""
    for output in record.outputs:
        folders = {folder_of(path) for path in (output.published, *(i.path for i in output.inputs))}
        if len(folders) > 1 or merge_of(name_of(output.published)) != record.generation:
            yield Finding(
                1,
                record.stream,
                None,
                merge_path(record.stream, record.period, record.generation),
                f"it names {output.published}, whose place or name does not say this merge",
                "the file may belong to two merges, or to none",
                look_again(record.stream),
            )


def check_merged_checksums(lake: Lake, record: MergeRecord) -> Iterator[Finding]:
    """Of outputs that have the right size; the others are found without reading them."""
    for output in record.outputs:
        try:
            facts = lake.facts(output.published)
        except Corrupt:
            continue  # no file: a finding of its folder
        if facts is None or facts.size_bytes != output.size_bytes or facts == output.facts:
            continue
        yield Finding(
            1,
            record.stream,
            None,
            output.published,
            f"has the checksum {facts.checksum}, and its merge record says {output.checksum}",
            "its content was changed after it was published",
            restore("it", record.stream),
        )


def merges_of(
    store: DocumentStore, lake: Lake, stream: str, root: str, periods: Iterable[str]
) -> Merges:
    """Of these hours. `root`: the key of the root's document. Raises Unavailable."""
    records = [
        one
        for period in sorted(periods)
        for one in _records_in(lake, stream, period)
        if isinstance(one, MergeRecord)
    ]
    found = Merges()
    if not records:
        return found
    # Last: a record is published under a journal, so without one it is finished.
    standing = _standing(store, root)
    for record in records:
        path = merge_path(record.stream, record.period, record.generation)
        found.add(record, is_unfinished=standing is None or path in standing)
    return found


def _standing(store: DocumentStore, root: str) -> set[str] | None:
    """Merge records that the root's journal names; None: nobody can say."""
    try:
        kept = read(store, root, RootDocument)
    except Corrupt:
        return None
    journal = None if kept is None else kept.value.journal
    is_merge = journal is not None and journal.kind == "merge"
    return {move.published for move in journal.moves} if journal and is_merge else set()


def judged_outputs(
    stream: str, merges: Merges, listed: Mapping[str, Mapping[str, int]]
) -> Iterator[Finding]:
    """`listed`: sizes of all our files, by folder and path."""
    move_away = f"see whose it is, move it away; then {look_again(stream)}"
    for path, size_bytes in ((p, size) for sizes in listed.values() for p, size in sizes.items()):
        output = merges.outputs.get(path)
        if merge_of(name_of(path)) is None:
            continue
        if output is None:
            words = "its name says a merge of its hour, and no merge record names it"
            yield Finding(1, stream, None, path, words, _TWICE, move_away)
        elif output.size_bytes != size_bytes:
            words = f"has {size_bytes:,} bytes, and its merge record says {output.size_bytes:,}"
            meaning = "it was changed or cut off after it was published"
            yield Finding(1, stream, None, path, words, meaning, move_away)
    for path, output in merges.outputs.items():
        sizes = listed.get(folder_of(path))
        if sizes is not None and path not in sizes and path not in merges.unfinished:
            yield Finding(
                2,
                stream,
                None,
                path,
                f"is not there, and its merge record names it, with {output.rows:,} rows",
                "they are in no published file",
                restore("it", stream),
            )


def judged_inputs(
    stream: str, merges: Merges, listed: Mapping[str, Mapping[str, int]]
) -> Iterator[Finding]:
    """Those that are still there."""
    for sizes in listed.values():
        for path in sizes:
            if path in merges.inputs and path not in merges.unfinished:
                yield Finding(
                    1,
                    stream,
                    None,
                    path,
                    f"was merged into {name_of(merges.inputs[path])}, and is still there",
                    _TWICE,
                    f"move it away; then {look_again(stream)}",
                )


def unlanded_inputs(
    stream: str, merges: Merges, landed: Mapping[str, RecordFile]
) -> Iterator[Finding]:
    """`landed`: what commit records name in the folders that are looked at."""
    folders = {folder_of(path) for path in landed}
    for path, output in merges.inputs.items():
        if folder_of(path) in folders and path not in landed:
            words = f"was merged into {name_of(output)}, and no commit record names it"
            yield Finding(1, stream, None, path, words, _TWICE, look_again(stream))


def _damaged(stream: str, path: str, words: str) -> Finding:
    meaning = "nobody can say which files were merged, and what became of them"
    return Finding(None, stream, None, path, words, meaning, restore("it", stream))
