"""Inspection: the whole audit: stream by stream, then root by root, then table by table.

    documents ──▶ each shard: its records, in order ──▶ each folder: its sum ──▶ where they differ
                  └── the sum of each folder ────────────────┘                     file by file
    the root's document ──▶ … ──▶ each closed hour: its certificate, flags and sums ──▶ each parent

A root's document is read before the records: what it says is closed was complete by then. Memory
grows with shards and hours, never with files or commits.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from headgate.apply import TableSettings
from headgate.apply.table_document import table_key
from headgate.audit import Audit, Checked, Finding, OnProgress
from headgate.audit.account import check_account
from headgate.audit.advice import restore
from headgate.audit.belonging import Spans, check_folders, foreign, is_foreign
from headgate.audit.chain import Chain
from headgate.audit.closed import (
    Hours,
    check_frontier,
    closed_hours,
    is_being_changed,
    is_closed,
    is_removed,
    open_again,
)
from headgate.audit.documents import (
    check_checkpoints,
    check_root_documents,
    check_stream_documents,
    check_table_documents,
    remark_streams,
    remark_tables,
    shards_of,
)
from headgate.audit.hours import Landed, add_hours
from headgate.audit.leftovers import remark_leftovers
from headgate.audit.merged import check_merge, check_merged_checksums, merge_records
from headgate.audit.numbers import Missing, Present, Unreadable, history, last_concluded
from headgate.audit.parents import Parents, check_root_document, is_raised, raised_parents
from headgate.audit.reading import OpenSite, Reading, no_site
from headgate.audit.removed import add_removal, statements_in
from headgate.audit.standing import (
    check_beyond,
    check_journal,
    check_journaled_record,
    remark_journal,
)
from headgate.audit.steady import AGAIN, Steady
from headgate.audit.sums import Sum, add_merge, add_record, spans_of
from headgate.audit.tree import data_folders
from headgate.commits.certificate import CERTIFICATES
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.merges import merge_of
from headgate.commits.record import Record, record_path
from headgate.commits.roots import RootDocument, root_key, root_name
from headgate.errors import Corrupt, Invalid
from headgate.lake import Lake
from headgate.lake.pages import entries_of
from headgate.lake.paths import folder_of, name_of
from headgate.landing import StreamSettings
from headgate.landing.names import commit_of
from headgate.periods import Period, escape_name
from headgate.ready.evidence import read_evidence
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
    tables: Collection[TableSettings] = (),
    open_site: OpenSite = no_site,
    only: Collection[str] = (),
    is_deep: bool = False,
    on_progress: OnProgress = in_silence,
) -> Audit:
    """`streams`, `tables`: of the settings; `only`: audit these streams, with their roots and
    tables; `is_deep`: read every file, and compare its checksum. Raises Invalid (no such stream),
    Unavailable, Corrupt (of the lake)."""
    unknown = sorted(set(only) - set(streams))
    if unknown:
        raise Invalid(
            f"there is no stream {unknown[0]!r} in the settings; known: "
            f"{', '.join(sorted(streams)) or 'none'}; next: headgate config check"
        )
    chosen = [streams[name] for name in sorted(only or streams)]
    fed = [table for table in tables if not only or table.stream in only]
    work = _Inspection(store, lake, is_deep, on_progress)
    work.inspect_documents(streams, tables, only)
    for stream in chosen:
        work.inspect_stream(stream)
    for root in sorted({root_name(stream.folder) for stream in chosen}):
        work.inspect_root(root, [one for one in streams.values() if root_name(one.folder) == root])
    for table in fed:
        work.inspect_table(table, open_site)
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
            seen["hours"],
            seen["parents"],
            seen["tables"],
            seen["batches"],
        )
        return Audit(tuple(self.findings), tuple(self.remarks), checked, self.left_out)

    def tell(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            if len(self.findings) < FINDINGS_MAX:
                self.findings.append(finding)
            else:
                self.left_out += 1

    def inspect_documents(
        self,
        streams: Mapping[str, StreamSettings],
        tables: Collection[TableSettings],
        only: Collection[str],
    ) -> None:
        self.on_progress(0, None, "documents")
        self.tell(check_stream_documents(self.store, only))
        self.tell(check_checkpoints(self.store, only))
        roots = {root_key(root_name(streams[name].folder)) for name in only}
        self.tell(check_root_documents(self.store, roots))
        if not only:
            self.tell(check_table_documents(self.store, ()))
            self.remarks += remark_streams(self.store, streams)
            self.remarks += remark_tables(self.store, [table.name for table in tables])
        elif fed := [table_key(table.name) for table in tables if table.stream in only]:
            self.tell(check_table_documents(self.store, fed))

    def root_document(self, root: str) -> RootDocument | None:
        """None: there is none, or it is a finding of the documents."""
        try:
            kept = read(self.store, root_key(root), RootDocument)
        except Corrupt:
            return None
        return None if kept is None else kept.value

    def inspect_stream(self, settings: StreamSettings) -> None:
        self.seen["streams"] += 1
        stream, root = settings.name, root_name(settings.folder)
        # Before the records: an hour that it says is closed had all of its commits by then.
        document = self.root_document(root) or RootDocument()
        expected: dict[str, Sum] = {}
        landed: dict[str, Landed] = {}
        for shard in shards_of(self.store, self.lake, stream):
            self.inspect_shard(settings, shard, expected, landed)
        self.inspect_merges(stream, expected)
        self.inspect_removals(stream, expected)
        listed: dict[Period, dict[str, Sum]] = {}  # of closed hours, by folder
        opened = set(open_again(document, stream))
        strange: dict[str, Spans] = {}
        for folder in self.folders(settings, expected):
            hour = hour_of_folder(settings, folder)
            is_certified = hour is not None and is_closed(document, stream, hour)
            found = self.inspect_folder(settings, folder, is_certified=is_certified)
            wanted = expected.get(folder, Sum())
            if hour is not None and is_certified:
                listed.setdefault(hour, {})[folder] = found
            elif found != wanted:
                strange[folder] = spans_of(found, wanted)
            if hour is not None and not is_certified:
                opened.add(hour)
        self.inspect_hours(settings, document, landed, listed)
        self.inspect_opened(settings, document, opened)
        self.inspect_strange(settings, landed, strange)
        self.remarks += remark_leftovers(self.store, self.lake, stream)

    def inspect_hours(
        self,
        settings: StreamSettings,
        document: RootDocument,
        landed: Mapping[str, Landed],
        listed: Mapping[Period, Mapping[str, Sum]],
    ) -> None:
        stream = settings.name
        steady = Steady(self.store, root_name(settings.folder), self.remarks)
        try:
            evidence = read_evidence(self.store, stream)
        except Corrupt:
            return  # a finding of the documents
        self.tell(check_frontier(steady.root, stream, document, evidence))
        hours = Hours(self.lake, settings)
        for hour in closed_hours(document, stream):
            self.seen["hours"] += 1
            self.on_progress(self.seen["hours"], None, f"{stream}: closed hours")
            rows = landed.get(str(hour), Landed())
            folders = listed.get(hour, {})
            is_gone = is_removed(document, stream, hour)
            if not hours.is_as_certified(hour, rows, folders, is_gone=is_gone):
                judge = partial(hours.judged, hour, rows, tuple(folders))
                self.tell(steady.told(f"{stream} {hour}", stream, judge))
            if self.left_out:
                break  # whoever has so many looks at the first ones anyway

    def inspect_opened(
        self, settings: StreamSettings, document: RootDocument, opened: Collection[Period]
    ) -> None:
        """Hours that are not closed have no flag."""
        stream, hours = settings.name, Hours(self.lake, settings)
        steady = Steady(self.store, root_name(settings.folder), self.remarks)
        for hour in sorted(opened):
            if hours.judged_open(hour, document):
                judge = partial(hours.judged_open, hour)
                self.tell(steady.told(f"{stream} {hour}", stream, judge))

    def inspect_root(self, root: str, streams: Collection[StreamSettings]) -> None:
        document = self.root_document(root)
        if document is None:
            self.tell(self.lost_root(root, streams))
            return
        parents = Parents(self.lake, root, next(iter(streams)).folder)
        steady = Steady(self.store, root, self.remarks)
        self.tell(check_root_document(root, document))
        for period in raised_parents(document):
            self.seen["parents"] += 1
            self.on_progress(self.seen["parents"], None, "flags over all streams")
            if parents.judged(period, document):
                self.tell(steady.told(str(period), "", partial(parents.judged, period)))
            if self.left_out:
                break
        for period in parents.folders():
            if not is_raised(document, period) and parents.has_flag(period):
                self.tell(steady.told(str(period), "", partial(parents.judged, period)))

    def lost_root(self, root: str, streams: Collection[StreamSettings]) -> Iterator[Finding]:
        """Flags without a document that says how far they are."""
        flagged = [
            one.name
            for one in streams
            if self.lake.list(f"{CERTIFICATES}/{escape_name(one.name)}", limit=1).entries
        ]
        # Afterwards: whoever raised flags meanwhile had written it before.
        if flagged and self.store.get(root_key(root)) is None:
            words = f"there is no such document, and {flagged[0]} has certificates"
            meaning = "nobody knows which hours are closed; they would be flagged again"
            next_ = f"stop the nodes; then put the store back from a backup, then {AGAIN}"
            yield Finding(6, flagged[0], None, root_key(root), words, meaning, next_)

    def inspect_table(self, table: TableSettings, open_site: OpenSite) -> None:
        self.seen["tables"] += 1
        self.on_progress(self.seen["tables"], None, f"table {table.name}")
        reading = Reading(self.store, self.lake, table, self.is_deep)
        self.tell(reading.findings(open_site))
        self.seen["batches"] += reading.batches

    def inspect_shard(
        self,
        settings: StreamSettings,
        shard: int,
        expected: dict[str, Sum],
        landed: dict[str, Landed],
    ) -> None:
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
        self.remarks += remark_journal(self.store, self.lake, stream, shard)
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
                add_hours(landed, item.record)
                if self.is_deep:
                    self.tell(check_checksums(self.lake, item.record))
            self.on_progress(item.record.number, last, f"{stream}/{shard}: commit records")
        self.tell(chain.end(checkpoint))
        self.rows += chain.counts

    def inspect_merges(self, stream: str, expected: dict[str, Sum]) -> None:
        for item in merge_records(self.lake, stream):
            if isinstance(item, Finding):
                self.tell([item])
                continue
            self.tell(check_merge(item))
            add_merge(expected, item)
            if self.is_deep:
                self.tell(check_merged_checksums(self.lake, item))

    def inspect_removals(self, stream: str, expected: dict[str, Sum]) -> None:
        for item in statements_in(self.lake, stream):
            if isinstance(item, Finding):
                self.tell([item])
            else:
                add_removal(expected, item)

    def folders(self, settings: StreamSettings, expected: Mapping[str, Sum]) -> Iterator[str]:
        """Those that are there, then those that only records name."""
        left = set(expected)
        for folder in data_folders(self.lake, settings):
            left.discard(folder)
            yield folder
        yield from sorted(left)

    def inspect_folder(self, settings: StreamSettings, folder: str, *, is_certified: bool) -> Sum:
        """`is_certified`: whatever lies there is compared with a certificate, whatever its name."""
        self.seen["folders"] += 1
        self.on_progress(self.seen["folders"], None, f"{settings.name}: folders")
        found = Sum()
        for entry in entries_of(self.lake, folder):
            name = name_of(entry.path)
            said = None if entry.is_folder else commit_of(name)
            if said is not None or (not entry.is_folder and merge_of(name) is not None):
                self.seen["files"] += 1
                found.add(entry.path, entry.size_bytes, said)
            elif not is_foreign(folder, name, entry.is_folder):
                continue
            elif is_certified:
                self.seen["files"] += 1
                found.add(entry.path, entry.size_bytes, None)
            else:
                self.tell([foreign(settings.name, entry.path)])
        return found

    def inspect_strange(
        self,
        settings: StreamSettings,
        landed: Mapping[str, Landed],
        strange: Mapping[str, Spans],
    ) -> None:
        names = iter(sorted(strange))
        done = 0
        while group := list(islice(names, FOLDERS_AT_ONCE)):
            self.on_progress(done, len(strange), f"{settings.name}: files")
            folders = {one: strange[one] for one in group}
            root = root_key(root_name(settings.folder))
            found = check_folders(self.store, self.lake, settings.name, folders, root)
            self.tell(self.still_open(settings, landed, found))
            done += len(group)

    def still_open(
        self, settings: StreamSettings, landed: Mapping[str, Landed], found: Iterable[Finding]
    ) -> Iterator[Finding]:
        """Without those of hours that were closed meanwhile: their certificate is asked instead."""
        document: RootDocument | None = None
        steady = Steady(self.store, root_name(settings.folder), self.remarks)
        hours, judged = Hours(self.lake, settings), set[Period]()
        for finding in found:
            hour = hour_of_folder(settings, folder_of(finding.subject))
            document = document or self.root_document(steady.root) or RootDocument()
            if hour is None or hour in judged:
                if hour is None:
                    yield finding
            elif is_closed(document, settings.name, hour):
                judged.add(hour)
                folders = (folder_of(finding.subject),)
                judge = partial(hours.judged, hour, landed.get(str(hour), Landed()), folders)
                yield from steady.told(f"{settings.name} {hour}", settings.name, judge)
            elif not is_being_changed(document, settings, hour):
                yield finding


def hour_of_folder(settings: StreamSettings, folder: str) -> Period | None:
    """The hour whose data folder this is; None: it is another kind of folder."""
    place = settings.folder.match(folder)
    return None if place is None or place.stream != settings.name else place.period


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
