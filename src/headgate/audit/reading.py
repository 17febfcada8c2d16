"""Reading: one table for the audit: its documents, its proofs, and what stands in its backlog.

The order in which they are read is the proof that nothing which nodes do meanwhile looks wrong: see
`sequence`. A folder that is not there is told in words.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field

from headgate.apply import TableSettings
from headgate.apply.table_document import TableDocument, is_done, table_key
from headgate.audit import Finding
from headgate.audit.advice import halt_table
from headgate.audit.sequence import Sequence, check_progress, check_waiting, hour_of
from headgate.audit.steady import AGAIN
from headgate.audit.stillness import check_closed, check_current, check_runs
from headgate.backlog import Aside, Entry
from headgate.backlog.manifest import read_manifest
from headgate.backlog.queue import asides, backlog_prefix, entries
from headgate.commits.roots import RootDocument, Seat, root_key, root_name
from headgate.errors import Corrupt, Invalid, Unavailable
from headgate.lake import Entry as LakeEntry
from headgate.lake import Lake
from headgate.lake.ledger import read_ledger
from headgate.periods import YEAR_10000_MS, Period
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.tables.parquet import mark_of, taken_in

STRAYS_MAX = 20
PASSES = ("table.skip", "table.mark_applied")

OpenSite = Callable[[TableSettings], Lake | None]
"""The folder of a table, as it is; None: there is none."""


def no_site(settings: TableSettings) -> None:
    """Of tables whose folders nobody can look into."""
    del settings


@dataclass(slots=True)
class Reading:
    """Of one table."""

    store: DocumentStore
    lake: Lake
    settings: TableSettings
    is_deep: bool = False
    batches: int = field(default=0, init=False)

    def findings(self, open_site: OpenSite) -> Iterator[Finding]:
        """Raises Unavailable: of store or lake."""
        before = self._document()
        if before is None:
            return  # a finding of the documents
        root = self._root()
        sequence = yield from self._inside(before, open_site)
        waiting: dict[int, Entry] = {}
        damaged = ""
        try:
            waiting = {entry.number: entry for entry in entries(self.store, self.settings.name)}
        except Corrupt as error:
            damaged = str(error)
        aside = self._asides()
        after = self._document()
        if after is None:
            return
        first_ms = root.streams.get(self.settings.stream, Seat()).first_ms
        yield from check_progress(self.settings, after, first_ms)
        yield from check_current(self.settings, after)
        if sequence is not None:
            self.batches = sequence.taken
            yield from check_closed(self.settings, before, sequence.closed)
            yield from check_runs(self.settings, sequence.run, after)
            yield from sequence.end(after, self._passed)
        if damaged:
            prefix = backlog_prefix(self.settings.name)
            meaning = "what waits for the table is not known"
            yield self._damage(prefix, damaged, meaning)
        else:
            yield from check_waiting(self.settings, before, waiting, aside, after)
        yield from self._manifests(after, waiting)
        # Last: what was queued had its flag before.
        yield from self._flagged(after)

    def _inside(
        self, before: TableDocument, open_site: OpenSite
    ) -> Generator[Finding, None, Sequence | None]:
        """What the table itself says; None: it could not be asked."""
        name = self.settings.name
        is_known = before.version != "" or before.batches > 0
        try:
            site = open_site(self.settings)
            mark = None if site is None else mark_of(site)
        except (Unavailable, Corrupt, Invalid) as error:
            yield self._damage(self.settings.path, f"cannot be read: {error}", _UNSEEN)
            return None
        if site is None or (mark is None and is_known):
            if is_known:
                what = "there is no such folder" if site is None else "it has no mark of a table"
                words = f"{what}, and table {name} has {before.batches:,} batches on record"
                meaning = "it is not mounted here, or was deleted: nobody can say what is in it"
                next_ = f"mount it, or put it back from a backup; then {AGAIN}"
                yield Finding(
                    8, self.settings.stream, None, self.settings.path, words, meaning, next_
                )
            return None
        if mark is not None and mark.table != name:
            words = f"is the folder of table {mark.table}, not of {name}"
            yield self._damage(self.settings.path, words, "two tables would mix their batches")
            return None
        sequence = Sequence(self.settings, before, "" if mark is None else mark.id)
        strays = 0
        try:
            for taken in taken_in(site, name, sequence.mark_id, is_deep=self.is_deep):
                if not isinstance(taken, LakeEntry):
                    yield from sequence.add(taken)
                elif strays < STRAYS_MAX:
                    strays += 1
                    words = "lies in the folder of the table, and belongs to no batch"
                    meaning = "readers of the table take it for rows"
                    next_ = f"see whose it is, move it away; then {AGAIN}"
                    subject = f"{self.settings.path}/{taken.path}"
                    yield Finding(8, self.settings.stream, None, subject, words, meaning, next_)
        except (Unavailable, Corrupt) as error:
            yield self._damage(self.settings.path, f"cannot be read: {error}", _UNSEEN)
            return None
        return sequence

    def _manifests(self, after: TableDocument, waiting: dict[int, Entry]) -> Iterator[Finding]:
        """What waits can be applied as it was frozen."""
        for entry in waiting.values():
            if is_done(after, entry.number):
                continue  # left over: whoever holds the table removes it
            try:
                manifest = read_manifest(self.lake, entry.manifest, entry.manifest_hash)
            except Corrupt as error:
                meaning = "the table halts at this batch"
                yield self._damage(entry.manifest, str(error), meaning)
                continue
            said = (entry.batch, entry.stream, entry.generation, entry.rows)
            if said != (manifest.batch, manifest.stream, manifest.generation, manifest.rows):
                words = f"is not the manifest of batch {entry.batch}, whose entry names it"
                yield self._damage(entry.manifest, words, "other rows would enter the table")

    def _flagged(self, after: TableDocument) -> Iterator[Finding]:
        """Nothing was queued that had no flag."""
        last, root = hour_of(after.queued_up_to), self._root()
        frontier_ms = root.streams.get(self.settings.stream, Seat()).frontier_ms
        if last is None or frontier_ms is None:
            return
        raised_ms = 0
        if root.journal is not None:
            raised_ms = root.journal.frontiers_ms.get(self.settings.stream, 0)
        if last.end_ms > max(frontier_ms, raised_ms):
            yield Finding(
                8,
                self.settings.stream,
                None,
                f"{self.settings.name} {last}",
                f"was queued, and flags of {self.settings.stream} go up to "
                f"{Period.hour_of(frontier_ms)}",
                "what enters the table may not be all of its hour",
                halt_table(self.settings.name),
            )

    def _document(self) -> TableDocument | None:
        """None: it cannot be read."""
        try:
            kept = read(self.store, table_key(self.settings.name), TableDocument)
        except Corrupt:
            return None
        return TableDocument() if kept is None else kept.value

    def _root(self) -> RootDocument:
        try:
            kept = read(self.store, root_key(root_name(self.settings.folder)), RootDocument)
        except Corrupt:
            return RootDocument()  # a finding of its own
        return RootDocument() if kept is None else kept.value

    def _asides(self) -> list[Aside]:
        try:
            return list(asides(self.store, self.settings.name))
        except Corrupt:
            return []

    def _passed(self) -> set[str]:
        """The document keeps the last ones; the ledger has all."""
        name = f"{self.settings.name} "
        return {
            line.subject.removeprefix(name)
            for line in read_ledger(self.lake, 0, YEAR_10000_MS)
            if line.what in PASSES and line.subject.startswith(name)
        }

    def _damage(self, subject: str, words: str, meaning: str) -> Finding:
        next_ = f"put it back from a backup, then {AGAIN}"
        return Finding(None, self.settings.stream, None, subject, words, meaning, next_)


_UNSEEN = "nobody can say what is in the table"
