"""Rebuild: a lost store is made anew from the lake.

    a store that is empty ──▶ `rebuild`: running ──▶ what was cut in half in the lake is finished
        ──▶ documents, one after the other ──▶ audit ──▶ `lake`: the mark ──▶ `rebuild`: done

Its effects: what a crash just after each leaves, and what the same command does then:

    effect                 a crash leaves                        again
    `rebuild` is created   a store that only this may go on with goes on
    files of a removal     gone, as its statement says           the rest
    a flag is raised       its certificate was kept              the rest
    staging is removed     nobody could publish it               the rest
    a document             some are there, and equal             finds them, and makes the rest
    `lake` is created      nodes may land                        finds it
    `rebuild`: done        nothing                               refused: the store is not empty

Nobody lands before `lake` is there: it says whose lake that is, and comes last. Each document is a
function of the lake alone: two who do this at once make the same. One that is there and says
something else is somebody else's work, and ends it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, Literal
from urllib.parse import unquote

from headgate.ambient import Ambient
from headgate.app.acts import Person
from headgate.app.derived import (
    Certified,
    Shard,
    closed_by,
    open_periods,
    read_shard,
    root_document,
    table_document,
)
from headgate.app.growth import grown
from headgate.app.roots import tables_of
from headgate.apply.table_document import table_key
from headgate.audit import Audit, OnProgress
from headgate.audit.inspection import audit, in_silence
from headgate.audit.reading import OpenSite
from headgate.cluster.session import FOLDER as SESSIONS
from headgate.commits.certificate import flag_paths
from headgate.commits.checkpoint import Checkpoint, Wish, checkpoint_key
from headgate.commits.record import COMMITS
from headgate.commits.removals import (
    mark_path,
    removed_hours,
    statements_of,
)
from headgate.commits.removals import to_bytes as statement_bytes
from headgate.commits.roots import FlagMove, root_key, root_name
from headgate.commits.streams import Pause, StreamDocument, stream_key
from headgate.errors import Conflict, Halted, Invalid
from headgate.lake import Lake
from headgate.lake.ledger import Ledger, Line, read_ledger
from headgate.lake.local import Each, in_turn
from headgate.lake.pages import entries_of
from headgate.lake.paths import STAGING, folder_of, name_of
from headgate.landing import StreamSettings
from headgate.landing.lake_mark import KEY as MARK_KEY
from headgate.landing.lake_mark import LakeMark, mark_id
from headgate.landing.names import staging_folder
from headgate.periods import YEAR_10000_MS, Period, escape_name
from headgate.ready.flagging import raise_flag
from headgate.ready.freezing import READY_STAGING
from headgate.ready.removing import remove_file
from headgate.settings import Settings
from headgate.sources import FilesSettings, KafkaSettings
from headgate.sources.folder import Folder
from headgate.sources.kafka.document import document_key, from_origins
from headgate.sources.kafka.templates import (
    TOPIC,
    TemplateDocument,
    matching,
    template_key,
)
from headgate.sources.origins import Read, digests_in, lane_documents
from headgate.store import DocumentStore, JsonObject
from headgate.store.changes import change, create_if_absent, read
from headgate.store.codec import Whole, body_of
from headgate.store.pages import pages
from headgate.tables import Taken
from headgate.tables.parquet import mark_of, taken_in

KEY: Final = "rebuild"
MENDING: Final = f"{STAGING}/_rebuild"  # no stream has such a folder: names are escaped
NOTED: Final = ("stream.", "table.")

FoldersOf = Callable[[StreamSettings], Sequence[tuple[FilesSettings, Folder]]]
"""The folders that a stream reads files from: its own, if it does, and that of its dead letters."""


@dataclass(frozen=True, slots=True)
class RebuildDocument:
    lake: str  # its id
    who: str
    reason: str
    at_ms: Whole
    state: Literal["running", "done"] = "running"
    format: Literal[1] = 1


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What became of it."""

    streams: int
    shards: int
    records: int
    documents: int
    tables: int
    standing: tuple[str, ...]  # shards whose last commit a node will finish
    audit: Audit


@dataclass(slots=True)
class _Derived:
    documents: dict[str, JsonObject] = field(default_factory=dict)
    shards: int = 0
    records: int = 0
    tables: int = 0
    standing: list[str] = field(default_factory=list)
    folders: set[str] = field(default_factory=set)  # of staging that journals name
    flags: list[tuple[str, bytes]] = field(default_factory=list)  # that are missing


class Rebuild:
    """For whoever has the lake of an installation, and an empty store."""

    def __init__(
        self,
        store: DocumentStore,
        lake: Lake,
        ledger: Ledger,
        ambient: Ambient,
        settings: Settings,
        *,
        folders_of: FoldersOf,
        open_site: OpenSite,
        each: Each = in_turn,
        on_progress: OnProgress = in_silence,
    ) -> None:
        self._store = store
        self._lake = lake
        self._ledger = ledger
        self._ambient = ambient
        self._topics = topics_in(lake, settings)
        self._settings = grown(settings, self._topics)
        self._folders_of = folders_of
        self._open_site = open_site
        self._each = each
        self._on_progress = on_progress

    def run(self, person: Person) -> Rebuilt:
        """Raises Halted (the store is not empty, nodes run, or the lake lacks something), Corrupt,
        Unavailable, OutcomeUnknown."""
        id_ = self._check_lake()
        marker = self._begin(id_, person)
        if self._store.get(MARK_KEY) is not None:  # only the last word was missing
            change(self._store, KEY, RebuildDocument, lambda one: replace(one, state="done"))
            return Rebuilt(len(self._settings.streams), 0, 0, 0, 0, (), self._audit())
        derived = self._derive()  # before anything is changed: it may refuse
        for name, face in sorted(self._settings.flagged.items()):
            self._finish_removals(name, face)
        self._raise_flags(derived.flags)
        self._sweep(derived.folders)
        for done, (key, body) in enumerate(derived.documents.items()):
            self._on_progress(done, len(derived.documents), "writing documents")
            self._create(key, body)
        found = self._audit()
        if not found.findings:
            self._check_nobody()
            self._ledger.note(
                "store.rebuilt",
                id_[:8],
                f"{marker.reason}: {len(derived.documents):,} documents from {derived.records:,} "
                "commit records",
                id=f"rebuilt {id_} {marker.at_ms}",
                who=marker.who,
            )
            self._create(MARK_KEY, body_of(LakeMark(id_, is_marked=True)))
            change(self._store, KEY, RebuildDocument, lambda one: replace(one, state="done"))
        return Rebuilt(
            len(self._settings.streams),
            derived.shards,
            derived.records,
            len(derived.documents),
            derived.tables,
            tuple(derived.standing),
            found,
        )

    def outlook(self) -> Rebuilt:
        """What it would make. Reads only; nothing is judged. Raises as `run`."""
        self._check_lake()
        found = self._store.list("", limit=1)
        if found.documents or found.damaged:
            raise self._not_empty()
        derived = self._derive()
        counts = (derived.shards, derived.records, len(derived.documents), derived.tables)
        nothing = audit(self._store, self._lake, {})
        return Rebuilt(len(self._settings.streams), *counts, tuple(derived.standing), nothing)

    # Before and after

    def _check_lake(self) -> str:
        for stream in self._settings.landed.values():
            if stream.life > 1:
                raise Halted(
                    f"stream {stream.word}: began anew, and such a stream cannot be made from the "
                    "lake so far; nothing was changed; next: restore the store from a backup"
                )
        id_ = mark_id(self._lake)
        if id_ is None:
            raise Halted(
                f"{self._lake.url}: has no _headgate/lake.json, so nothing was ever landed there, "
                "or its disk is not mounted; next: mount it; a new installation needs no rebuild"
            )
        return id_

    def _begin(self, id_: str, person: Person) -> RebuildDocument:
        found = read(self._store, KEY, RebuildDocument)
        if found is None:
            page = self._store.list("", limit=1)
            if page.documents or page.damaged:
                raise self._not_empty()
            now_ms = self._ambient.wall_ns() // 1_000_000
            wanted = RebuildDocument(id_, person.who, person.reason, now_ms)
            create_if_absent(self._store, KEY, wanted)
            found = read(self._store, KEY, RebuildDocument)
        if found is None or found.value.state == "done":
            raise self._not_empty()
        if found.value.lake != id_:
            raise Halted(
                f"{self._lake.url}: is another lake than the one this store is being made from; "
                "next: name the right one in the settings, or begin with an empty store"
            )
        self._check_nobody()
        return found.value

    def _check_nobody(self) -> None:
        """Raises Halted: a node runs."""
        now_ms = self._store.now_ms()
        for page in pages(self._store, SESSIONS):
            for document in page.documents:
                expire = document.body.get("expire")
                is_live = document.body.get("state") == "live"
                if is_live and isinstance(expire, int) and expire > now_ms:
                    raise Halted(
                        f"node {document.body.get('node')} runs on this store: what it does would "
                        "mix with what is made anew; next: stop every node, empty the store, then "
                        "the same command again"
                    )

    def _not_empty(self) -> Halted:
        self._check_nobody()
        return Halted(
            "the store is not empty: a store is made anew only where nothing is, so that nothing "
            "that is known gets lost; next: headgate store ls shows what is there; if it is "
            "rubbish, name another namespace or an empty folder in the settings"
        )

    # Finishing what was cut in half in the lake

    def _finish_removals(self, name: str, face: StreamSettings) -> None:
        """What statements name goes, and marks are put beside the flags."""
        for period in removed_hours(self._lake, name):
            known: set[str] = set()
            for statement in statements_of(self._lake, name, period):
                flags = flag_paths(face.folder, Period.parse(period), name)
                marks = [mark_path(flag, statement.how) for flag in flags]
                is_first = statement.how not in known
                known.add(statement.how)
                # A later one of its kind has no mark of its own that would tell.
                if is_first and all(self._lake.facts(mark) is not None for mark in marks):
                    continue
                for file in statement.every:
                    remove_file(self._lake, file)
                self._lake.settle(sorted({folder_of(file.path) for file in statement.every}))
                raw = statement_bytes(statement)
                for number, mark in enumerate(marks):
                    if self._lake.facts(mark) is None:
                        staged = f"{MENDING}/{escape_name(name)}-{period}-{number}.json"
                        facts = self._lake.stage(staged, raw)
                        raise_flag(
                            self._lake, FlagMove(staged, mark, facts.size_bytes, facts.checksum)
                        )
                self._lake.settle(sorted({folder_of(mark) for mark in marks}))

    def _raise_flags(self, flags: Sequence[tuple[str, bytes]]) -> None:
        """Whose certificate is kept: a journal that would have raised them is lost."""
        for number, (path, raw) in enumerate(flags):
            self._on_progress(number, len(flags), "raising flags that are missing")
            staged = f"{MENDING}/flag-{number:05}.json"
            facts = self._lake.stage(staged, raw)
            raise_flag(self._lake, FlagMove(staged, path, facts.size_bytes, facts.checksum))
            self._lake.settle([folder_of(path)])

    def _sweep(self, kept: set[str]) -> None:
        """Staging that no journal names: of commits that did not happen."""
        folders = [staging_folder(name) for name in self._settings.streams]
        folders += [
            entry.path for entry in entries_of(self._lake, READY_STAGING) if entry.is_folder
        ]
        for folder in folders:
            for entry in entries_of(self._lake, folder):
                if entry.is_folder and not any(
                    one == entry.path or one.startswith(f"{entry.path}/") for one in kept
                ):
                    self._lake.remove_folder(entry.path)

    # Deriving

    def _derive(self) -> _Derived:
        found = _Derived()
        noted = self._noted()
        for template, topics in sorted(self._topics.items()):
            if topics:
                found.documents[template_key(template)] = body_of(TemplateDocument(topics))
        certified: dict[str, Certified] = {}
        roots: dict[str, JsonObject] = {}
        by_root: dict[str, dict[str, StreamSettings]] = {}
        for name, face in sorted(self._settings.flagged.items()):
            by_root.setdefault(root_name(face.folder), {})[name] = face
        retired = {
            line.subject: Wish(line.words, line.who, line.at_ms)
            for line in noted
            if line.what == "stream.retired"
        }
        hours_ms: dict[str, int | None] = {}
        for root, faces in sorted(by_root.items()):
            self._on_progress(0, None, "reading certificates")
            templates = {name: one.folder for name, one in faces.items()}
            document, own, flags = root_document(self._lake, root, templates, retired, self._each)
            certified |= own
            hours_ms[root] = document.hours_ms
            found.flags += flags
            if document.journal is not None:
                found.folders.add(document.journal.folder)
            if document.streams or document.journal is not None:
                roots[root_key(root)] = body_of(document)
        for name, stream in sorted(self._settings.streams.items()):
            over_all_ms = hours_ms[root_name(stream.folder)]
            self._derive_stream(found, name, stream, certified, over_all_ms, noted, retired)
        found.documents |= roots
        self._derive_tables(found, certified, noted)
        return found

    def _derive_stream(
        self,
        found: _Derived,
        name: str,
        stream: StreamSettings,
        certified: Mapping[str, Certified],
        over_all_ms: int | None,
        noted: Sequence[Line],
        retired: Mapping[str, Wish],
    ) -> None:
        shards = list(self._read_shards(name, stream))
        if not any(one.records for one in shards):
            return
        self._check_fixed(name, stream, shards, retired)
        self._derive_sources(found, name, stream, shards)
        first_ms = _first_ms(stream, shards, certified)
        going_on = [one.name for one in stream.flagged if one.name not in retired]
        faces = [certified.get(one) for one in going_on or (one.name for one in stream.flagged)]
        closing_ms, closed_ms = closed_by(faces, first_ms, over_all_ms)
        for number, shard in enumerate(shards):
            found.shards += 1
            found.records += shard.records
            checkpoint = open_periods(shard.checkpoint, closed_ms)
            if checkpoint.journal is not None:
                found.standing.append(f"{name}/{number}")
                found.folders.add(checkpoint.journal.folder)
            if shard.records:
                found.documents[checkpoint_key(name, number)] = body_of(checkpoint)
        end = retired.get(name)
        document = StreamDocument(
            stream.shards,
            first_ms,
            closing_ms,
            _paused(name, noted),
            floor_ms=first_ms,
            closed_ms=closed_ms,
            retired=None if end is None else Pause(end.reason, end.who, end.at_ms),
            has_outputs=bool(stream.outputs),
        )
        found.documents[stream_key(name)] = body_of(document)

    def _read_shards(self, name: str, stream: StreamSettings) -> Iterator[Shard]:
        there = {
            int(name_of(entry.path))
            for entry in entries_of(self._lake, f"{COMMITS}/{escape_name(name)}")
            if entry.is_folder and name_of(entry.path).isdecimal()
        }
        if there and max(there) >= stream.shards:
            raise Invalid(
                f"stream {name}: the lake has commits of {max(there) + 1} shards, and the settings "
                f"say {stream.shards}; the number of shards is fixed; next: write shards as before"
            )
        for number in range(stream.shards):
            self._on_progress(number, stream.shards, f"reading commit records of {name}")
            shard = Shard(Checkpoint())
            yield read_shard(self._lake, name, number, self._each) if number in there else shard

    def _check_fixed(
        self,
        name: str,
        stream: StreamSettings,
        shards: Sequence[Shard],
        retired: Mapping[str, Wish],
    ) -> None:
        said = max(one.shards for one in shards)
        if said and said != stream.shards:
            raise Invalid(
                f"stream {name} had {said} shards, and the settings say {stream.shards}; the "
                f"number of shards is fixed; next: write shards: {said}, as before"
            )
        landed = {output for one in shards for output in one.outputs}
        if {bool(output) for output in landed} - {bool(stream.outputs)}:
            began, say = ("without", "some") if stream.outputs else ("with", "none")
            raise Invalid(
                f"stream {name} landed {began} outputs, and the settings have {say}; next: write "
                "them as before"
            )
        lacking = sorted(landed - {"", *(one.name for one in stream.outputs), *retired})
        if lacking:  # else the commits of its open hours would be forgotten
            raise Invalid(
                f"stream {name} landed hours of its output {lacking[0]}, which nobody retired, and "
                "the settings do not have it; next: write it as before, and take it out again once "
                "the store is there"
            )
        if not all(one.is_whole for one in shards):
            raise Halted(
                f"stream {name}: some of its commit records were made by an older version, which "
                "did not write down what a source must know again: which files were read cannot be "
                "told any more, and they would be read again; next: restore the store from a backup"
            )

    def _derive_sources(
        self, found: _Derived, name: str, stream: StreamSettings, shards: Sequence[Shard]
    ) -> None:
        origins = [origin for one in shards for origin in one.origins]
        if isinstance(stream.source, KafkaSettings):
            document = from_origins(origins)
            if document is not None:
                found.documents[document_key(name)] = body_of(document)
        positions: dict[str, str] = {}
        digests: dict[str, list[bytes]] = {}
        for one in shards:
            journal = one.checkpoint.journal
            # What a standing journal reads is as good as read: a node finishes it.
            coming = {} if journal is None else journal.positions
            positions |= {**one.checkpoint.positions, **coming}
            for origin in one.origins:
                for lane, digest in digests_in(origin):
                    digests.setdefault(lane, []).append(digest)
        seen_ms = max(one.checkpoint.committed_ms for one in shards)
        read_ = Read(positions, digests, seen_ms)
        for settings, folder in self._folders_of(stream):
            for key, value in lane_documents(name, settings, read_, folder):
                found.documents[key] = body_of(value)

    def _derive_tables(
        self, found: _Derived, certified: Mapping[str, Certified], noted: Sequence[Line]
    ) -> None:
        for table in tables_of(self._settings):
            self._on_progress(0, None, f"reading table {table.name}")
            site = self._open_site(table)
            mark = None if site is None else mark_of(site)
            if site is None or mark is None:
                continue
            every = taken_in(site, table.name, mark.id)
            taken = [one for one in every if isinstance(one, Taken)]
            own = certified.get(table.stream)
            document = table_document(
                table,
                mark.id,
                taken,
                None if own is None else own.first_ms,
                noted,
            )
            if document is not None:
                found.tables += 1
                found.documents[table_key(table.name)] = body_of(document)

    def _noted(self) -> list[Line]:
        """What people decided, in order of time."""
        lines = read_ledger(self._lake, 0, YEAR_10000_MS)
        return [line for line in lines if line.what.startswith(NOTED)]

    # Writing

    def _create(self, key: str, body: JsonObject) -> None:
        with suppress(Conflict):
            self._store.create(key, body)
            return
        found = self._store.get(key)
        if found is None or found.body != body:
            raise Halted(
                f"{key}: somebody else writes to this store, and says something else there than "
                "the lake does; next: stop every node, empty the store, then the same command again"
            )

    def _audit(self) -> Audit:
        return audit(
            self._store,
            self._lake,
            self._settings.streams,
            tables=tables_of(self._settings),
            open_site=self._open_site,
            on_progress=self._on_progress,
        )


def _first_ms(
    stream: StreamSettings, shards: Sequence[Shard], certified: Mapping[str, Certified]
) -> int | None:
    """As a record says it; of older ones, as far as certificates and files tell."""
    told = [one.first_hour_ms for one in shards if one.first_hour_ms is not None]
    if told:
        return told[0]
    firsts = [certified[one.name].first_ms for one in stream.flagged if one.name in certified]
    earliest = [Period.parse(one.earliest).start_ms for one in shards if one.earliest]
    return min(firsts or earliest, default=None)


def _paused(stream: str, noted: Sequence[Line]) -> Pause | None:
    found: Pause | None = None
    for line in noted:
        if line.subject == stream and line.what == "stream.paused":
            found = Pause(line.words, line.who, line.at_ms)
        elif line.subject == stream and line.what == "stream.resumed":
            found = None
    return found


def topics_in(lake: Lake, settings: Settings) -> dict[str, tuple[str, ...]]:
    """Topics that patterns have matched: they became streams, which have commits. Raises
    Unavailable."""
    names = [unquote(name_of(one.path)) for one in entries_of(lake, COMMITS)]
    found: dict[str, tuple[str, ...]] = {}
    for template, one in settings.templates.items():
        source = one.source
        head, _, tail = template.partition(TOPIC)
        if isinstance(source, KafkaSettings):
            topics = [
                name.removeprefix(head).removesuffix(tail)
                for name in names
                if name.startswith(head) and name.endswith(tail) and name not in settings.streams
            ]
            found[template] = tuple(matching(topics, source.pattern))
    return found
