"""Inspection: the whole audit, stream by stream.

    documents ──▶ each shard: its records, in order ──▶ each folder: its sum ──▶ where they differ
                  └── the sum of each folder ────────────────┘                     file by file

Memory grows with shards and hours, never with files or commits.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from headgate.audit import Audit, Checked, Finding, OnProgress
from headgate.audit.account import check_account
from headgate.audit.advice import look_again, restore
from headgate.audit.belonging import Spans, check_folders
from headgate.audit.chain import Chain
from headgate.audit.documents import (
    check_checkpoints,
    check_stream_documents,
    remark_streams,
    shards_of,
)
from headgate.audit.leftovers import remark_leftovers
from headgate.audit.numbers import Missing, Present, Unreadable, history, last_concluded
from headgate.audit.standing import check_beyond, check_journal, check_journaled_record
from headgate.audit.sums import Sum, add_record, spans_of
from headgate.audit.tree import data_folders
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.record import Record, record_path
from headgate.errors import Corrupt, Invalid
from headgate.lake import Lake
from headgate.lake.pages import entries_of
from headgate.lake.paths import name_of
from headgate.landing import StreamSettings
from headgate.landing.names import DEAD, commit_of
from headgate.store import DocumentStore
from headgate.store.changes import read

FINDINGS_MAX = 1_000  # whoever has more looks at the first ones anyway
FOLDERS_AT_ONCE = 20  # that are looked at file by file


def in_silence(done: int, total: int | None, words: str) -> None:
    """Nobody watches."""


def audit(
    store: DocumentStore,
    lake: Lake,
    streams: Mapping[str, StreamSettings],
    *,
    only: Collection[str] = (),
    is_deep: bool = False,
    on_progress: OnProgress = in_silence,
) -> Audit:
    """`streams`: of the settings; `only`: audit these of them; `is_deep`: read every file, and
    compare its checksum. Raises Invalid (no such stream), Unavailable, Corrupt (of the lake)."""
    unknown = sorted(set(only) - set(streams))
    if unknown:
        raise Invalid(
            f"there is no stream {unknown[0]!r} in the settings; known: "
            f"{', '.join(sorted(streams)) or 'none'}; next: headgate config check"
        )
    work = _Inspection(store, lake, is_deep, on_progress)
    work.inspect_documents(streams, only)
    for name in sorted(only or streams):
        work.inspect_stream(streams[name])
    return work.result()


@dataclass(slots=True)
class _Inspection:
    store: DocumentStore
    lake: Lake
    is_deep: bool
    on_progress: OnProgress
    findings: list[Finding] = field(default_factory=list)
    remarks: list[Finding] = field(default_factory=list)
    left_out: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)

    def result(self) -> Audit:
        seen = self.seen
        checked = Checked(
            seen["streams"],
            seen["shards"],
            seen["records"],
            seen["folders"],
            seen["files"],
            dict(self.rows),
        )
        return Audit(tuple(self.findings), tuple(self.remarks), checked, self.left_out)

    def tell(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            if len(self.findings) < FINDINGS_MAX:
                self.findings.append(finding)
            else:
                self.left_out += 1

    def inspect_documents(
        self, streams: Mapping[str, StreamSettings], only: Collection[str]
    ) -> None:
        self.on_progress(0, None, "documents")
        self.tell(check_stream_documents(self.store, only))
        self.tell(check_checkpoints(self.store, only))
        if not only:
            self.remarks += remark_streams(self.store, streams)

    def inspect_stream(self, settings: StreamSettings) -> None:
        self.seen["streams"] += 1
        expected: dict[str, Sum] = {}
        for shard in shards_of(self.store, self.lake, settings.name):
            self.inspect_shard(settings, shard, expected)
        strange: dict[str, Spans] = {}
        for folder in self.folders(settings, expected):
            found = self.inspect_folder(settings, folder)
            wanted = expected.get(folder, Sum())
            if found != wanted:
                strange[folder] = spans_of(found, wanted)
        self.inspect_strange(settings.name, strange)
        self.remarks += remark_leftovers(self.store, self.lake, settings.name)

    def inspect_shard(self, settings: StreamSettings, shard: int, expected: dict[str, Sum]) -> None:
        stream = settings.name
        try:
            kept = read(self.store, checkpoint_key(stream, shard), Checkpoint)
            beyond = list(check_beyond(self.store, self.lake, stream, shard))
        except Corrupt:
            return  # a finding of the documents
        self.seen["shards"] += 1
        self.tell(beyond)
        checkpoint = Checkpoint() if kept is None else kept.value
        self.tell(check_journal(stream, shard, checkpoint))
        self.tell(check_journaled_record(self.lake, stream, shard, checkpoint))
        chain, last = Chain(stream, shard), last_concluded(checkpoint)
        self.on_progress(0, last, f"{stream}/{shard}: commit records")
        for item in history(self.lake, stream, shard, checkpoint):
            if isinstance(item, Missing):
                chain.tear()
                self.tell([_no_record(stream, shard, item)])
                continue
            if isinstance(item, Unreadable):
                chain.tear()
                self.tell([_bad_record(stream, shard, item)])
                continue
            self.seen["records"] += 1
            self.tell(check_account(item.record, settings))
            if isinstance(item, Present):
                self.tell(chain.add(item.record))
                add_record(expected, item.record)
                if self.is_deep:
                    self.tell(check_checksums(self.lake, item.record))
            self.on_progress(item.record.number, last, f"{stream}/{shard}: commit records")
        self.tell(chain.end(checkpoint))
        self.rows += chain.counts

    def folders(self, settings: StreamSettings, expected: Mapping[str, Sum]) -> Iterator[str]:
        """Those that are there, then those that only records name."""
        left = set(expected)
        for folder in data_folders(self.lake, settings):
            left.discard(folder)
            yield folder
        yield from sorted(left)

    def inspect_folder(self, settings: StreamSettings, folder: str) -> Sum:
        self.seen["folders"] += 1
        self.on_progress(self.seen["folders"], None, f"{settings.name}: folders")
        found = Sum()
        for entry in entries_of(self.lake, folder):
            name = name_of(entry.path)
            said = None if entry.is_folder else commit_of(name)
            if said is not None:
                self.seen["files"] += 1
                found.add(entry.path, entry.size_bytes, *said)
            elif is_foreign(folder, name, entry.is_folder):
                self.tell([_foreign(settings.name, entry.path)])
        return found

    def inspect_strange(self, stream: str, strange: Mapping[str, Spans]) -> None:
        names = iter(sorted(strange))
        done = 0
        while group := list(islice(names, FOLDERS_AT_ONCE)):
            self.on_progress(done, len(strange), f"{stream}: files")
            self.tell(
                check_folders(self.store, self.lake, stream, {one: strange[one] for one in group})
            )
            done += len(group)


def check_checksums(lake: Lake, record: Record) -> Iterator[Finding]:
    """Of files that have the right size; the others are found without reading them."""
    for file in record.files:
        try:
            facts = lake.facts(file.published)
        except Corrupt:
            continue  # no file: a finding of its folder
        if facts is None or facts.size_bytes != file.size_bytes or facts == file.facts:
            continue
        yield Finding(
            1,
            record.stream,
            record.shard,
            file.published,
            f"has the checksum {facts.checksum}, and the record of commit {record.number} says "
            f"{file.checksum}",
            "its content was changed after it was published",
            restore("it", record.stream),
        )


def is_foreign(folder: str, name: str, is_folder: bool) -> bool:
    """Readers of lakes skip what is hidden, and would take this for records. Pure."""
    if is_folder and folder.startswith(f"{DEAD}/"):
        return False
    return not name.startswith(("_", "."))


def _foreign(stream: str, path: str) -> Finding:
    return Finding(
        1,
        stream,
        None,
        path,
        "lies in a data folder, and no commit has such a name",
        "readers of this folder take it for records of the stream",
        f"see whose it is, move it away; then {look_again(stream)}",
    )


def _no_record(stream: str, shard: int, hole: Missing) -> Finding:
    shown = f"{hole.first}" if hole.first == hole.last else f"{hole.first} to {hole.last}"
    return Finding(
        2,
        stream,
        shard,
        record_path(stream, shard, hole.first),
        f"the record of commit {shown} is not there, and the checkpoint has passed it",
        "nobody can say which records these commits landed, and in which files",
        restore("it", stream),
    )


def _bad_record(stream: str, shard: int, damage: Unreadable) -> Finding:
    return Finding(
        None,
        stream,
        shard,
        record_path(stream, shard, damage.number),
        damage.words,
        f"nobody can say which records commit {damage.number} landed, and in which files",
        restore("it", stream),
    )
