"""Work: the work of one table, whoever holds it.

    take over ──▶ halting? close the run ──▶ a current run? ask the table ──▶ intake ──▶ head
        ▲                                                                        │
        └── Conflict, an unknown outcome: know nothing ── applied ◀── apply ◀── begin

Its effects: what a crash before and after each leaves, and what becomes of a node that was paused
before it and wakes up late:

    take over      before: nothing; after: a holder's epoch. Late: refused, by epoch and version.
    sweep          before: what old holders prepared lies there; after: gone. Late: it touches only
                   what is older than itself.
    manifest,      a crash anywhere: the hour is queued again, as the same bytes, name and number.
    entry, cursor  Late: an entry whose number is done comes back, and is removed by that number.
    renewed entry  of a retry, before begin: the same again. Late: refused, or it changes what
                   nobody reads any more: a run has a copy of its entry.
    begin          before: nothing; after: a run on record. Late: refused, by version.
    the table's    before: the next holder asks the table, finds nothing, applies it; after: it
    commit         finds it. Late: refused if the identity is taken; else it is the same batch, of
                   the same run and manifest, and whoever is second is refused.
    applied        before: as after the commit; after: the entry is left over. Late: refused.
    entry deleted  before: its number is done, so it is removed and not applied. Late: another
                   number of that name stays.
    halting        before: it fails again; after: the run is being closed. Late: refused.
    empty commit   before: halting still; after: the name is taken. Late: refused, it is taken.
    halted         before: the name is found taken, by the empty batch or by the rows, which are
                   then applied; after: a person decides. Late: refused.

"Not found" is believed only while the recorded version is in the table's history (`course`).
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from headgate.ambient import Ambient
from headgate.apply import TableSettings
from headgate.apply.course import (
    ApplyIt,
    HaltAt,
    IsIn,
    course_of_current,
    course_of_next,
    place_of,
)
from headgate.apply.intake import Intake
from headgate.apply.notice import lost_command
from headgate.apply.table_document import (
    SYSTEM,
    Current,
    Halt,
    TableTenure,
    applied,
    begun,
    begun_again,
    failed,
    halted,
    halting,
)
from headgate.backlog import Aside, Entry
from headgate.backlog.manifest import check_files, read_manifest
from headgate.backlog.queue import head, put_aside, remove
from headgate.cluster import Assignment
from headgate.engine.failure import JobFailed
from headgate.errors import Conflict, Corrupt, Invalid, OutcomeUnknown, Unavailable
from headgate.lake import Lake
from headgate.lake.guarded import GuardedLake
from headgate.lake.ledger import Ledger
from headgate.periods import Period
from headgate.store import DocumentStore
from headgate.tables import Batch, BatchFile, Identity, Table

LOOK_MS = 2_000  # between two looks, when there is nothing to do
STUMBLE_MS = 1_000  # after something failed or is out of reach; then twice as long each time
STUMBLE_MS_MAX = 60_000
STUMBLES_MAX = 10

log = logging.getLogger(__name__)

OpenTable = Callable[[TableSettings, int, Callable[[], None]], Table]
"""For the holder of an epoch; the last is asked before each effect, and raises Fenced."""


@dataclass(frozen=True, slots=True)
class TableTools:
    """What the tables of a node share."""

    store: DocumentStore
    lake: Lake
    open_table: OpenTable
    first_hour_ms: Callable[[str], int | None]  # of a stream; None: not known yet
    ledger: Ledger
    ambient: Ambient


class TableWork:
    """`headgate.cluster.Work`."""

    def __init__(self, assignment: Assignment, settings: TableSettings, tools: TableTools) -> None:
        self._assignment = assignment
        self._settings = settings
        self._tools = tools
        self._ambient = tools.ambient
        self._store = assignment.guard(tools.store)
        self._tenure = TableTenure(self._store, settings.name, assignment.epoch, settings.stream)
        self._table = tools.open_table(settings, assignment.epoch, assignment.check)
        self._lake = GuardedLake(tools.lake, assignment)
        self._intake = Intake(settings, self._store, self._lake, self._tenure)
        self._begun: tuple[int, int] | None = None  # run and attempt that this holder began
        self._stumbles = 0  # in a row
        self._rest_until_ms = 0
        self.well_ms: int | None = None  # 0 once it has applied something

    def tick(self) -> int | None:
        if self._ambient.monotonic_ms() < self._rest_until_ms:
            return self._rest_until_ms
        try:
            due_ms = self._advance()
        except (Conflict, OutcomeUnknown):
            self._tenure.lose()
            raise
        except Unavailable:
            pause_ms = min(STUMBLE_MS * 2**self._stumbles, STUMBLE_MS_MAX)
            self._stumbles = min(self._stumbles + 1, STUMBLES_MAX)
            self._rest_until_ms = self._ambient.monotonic_ms() + pause_ms
            raise
        self._stumbles = 0
        return max(due_ms, self._rest_until_ms)

    def _advance(self) -> int:
        now_ms = self._ambient.monotonic_ms()
        if not self._tenure.is_held():
            self._take_over()
        document = self._tenure.document
        if document.state == "halted":
            return now_ms + LOOK_MS
        if document.state == "halting":
            self._close(document.current)
            return now_ms
        if document.current is not None:
            self._recover(document.current)
            return now_ms
        unreadable = self._take_in()
        kept = head(self._store, self._settings.name)
        if kept is not None:
            self._take(kept.value)
            return now_ms
        if unreadable is not None:
            raise unreadable
        return now_ms + LOOK_MS

    def _take_in(self) -> Corrupt | None:
        """What stands in the way of the next hour: those that wait already are not concerned."""
        try:
            first_hour_ms = self._tools.first_hour_ms(self._settings.stream)
            self._intake.take_in(first_hour_ms, self._wall_ms())
        except Corrupt as error:
            log.error("hour.unreadable", extra={"table": self._settings.name, "why": str(error)})
            return error
        return None

    def _take_over(self) -> None:
        self._begun = None
        self._tenure.take_over()
        self._table.sweep()

    # The head of the backlog

    def _take(self, entry: Entry) -> None:
        place = place_of(self._tenure.document, entry)
        if place == "done":
            remove(self._store, self._settings.name, entry.batch, entry.number)
        elif place == "early":
            self._set_aside(entry)
        else:
            self._begin(entry)

    def _set_aside(self, entry: Entry) -> None:
        name, behind = self._settings.name, self._tenure.document.applied_up_to
        reason = f"it sorts before {behind}, which the table has already"
        self._note("batch.set_aside", entry.batch, reason)
        generation, manifest = entry.generation, entry.manifest_hash
        aside = Aside(entry.batch, generation, manifest, reason, self._wall_ms())
        put_aside(self._store, name, aside)
        remove(self._store, name, entry.batch, entry.number)

    def _begin(self, entry: Entry) -> None:
        if self._tenure.document.renews:
            entry = self._intake.renewed(entry)
        else:
            self._intake.look_again(Period.parse(entry.batch), self._wall_ms())
        seen = self._table.look(self._tenure.document.version, entry.batch)
        course = course_of_next(entry.batch, seen)
        if isinstance(course, HaltAt):
            self._halt(entry.batch, course.words)
        elif isinstance(course, ApplyIt):
            base = course.base
            current = self._tenure.write(lambda found: begun(found, entry, base)).current
            self._apply_begun(current)

    # A run that is on record

    def _recover(self, current: Current) -> None:
        seen = self._table.look(current.version, current.entry.batch)
        course = course_of_current(current, seen)
        if isinstance(course, IsIn):
            self._conclude(current, course.found.version, course.found.rows)
        elif isinstance(course, HaltAt):
            self._halt(current.entry.batch, course.words)
        elif self._begun == (current.run, current.attempt):
            self._apply(current)
        else:
            self._apply_begun(self._tenure.write(begun_again).current)

    def _apply_begun(self, current: Current | None) -> None:
        if current is not None:
            self._begun = (current.run, current.attempt)
            self._apply(current)

    def _apply(self, current: Current) -> None:
        """Afterwards it is in the table and on record; or the next tick asks the table."""
        entry, identity = current.entry, identity_of(current)
        try:
            batch = self._batch_of(entry)
            version = self._table.apply(batch, identity, current.version)
        except (JobFailed, Corrupt, Invalid) as error:
            self._fail(current, str(error))
            return
        except (Conflict, OutcomeUnknown) as error:
            log.info("batch.doubtful", extra={"batch": entry.batch, "why": str(error)})
            return
        self._conclude(current, version, batch.rows)

    def _batch_of(self, entry: Entry) -> Batch:
        """Raises Corrupt: it is not what was queued."""
        manifest = read_manifest(self._lake, entry.manifest, entry.manifest_hash)
        check_files(self._lake, manifest)
        files = tuple(
            BatchFile(file.path, file.size_bytes, file.checksum, file.rows)
            for file in manifest.files
        )
        return Batch(entry.batch, entry.manifest_hash, files)

    def _conclude(self, current: Current, version: str, rows: int) -> None:
        entry = current.entry
        self._tenure.write(lambda found: applied(found, version, rows))
        self.well_ms = 0
        name = self._settings.name
        log.info("batch.applied", extra={"table": name, "batch": entry.batch, "rows": rows})
        remove(self._store, name, entry.batch, entry.number)

    def _fail(self, current: Current, words: str) -> None:
        batch, tries_max, at_ms = current.entry.batch, self._settings.tries_max, self._wall_ms()
        log.warning("batch.failed", extra={"table": self._settings.name, "batch": batch})
        if self._tenure.document.tries + 1 >= tries_max:
            self._note("table.halting", f"{batch} {current.run}", words)
        after = self._tenure.write(lambda found: failed(found, words, tries_max, at_ms))
        if after.state == "running" and after.current is not None:
            self._begun = (after.current.run, after.current.attempt)
            pause_ms = min(STUMBLE_MS * 2**after.tries, STUMBLE_MS_MAX)
            self._rest_until_ms = self._ambient.monotonic_ms() + pause_ms

    # Standing still

    def _halt(self, batch: str, words: str) -> None:
        self._note("table.halting", f"{batch} {self._tenure.document.run}", words)
        halt = Halt(batch, words, SYSTEM, self._wall_ms())
        self._tenure.write(lambda found: halting(found, halt))

    def _close(self, current: Current | None) -> None:
        """From halting to halted: first nobody may be able to change the table any more."""
        if current is not None and not self._is_closed(current):
            return
        self._tenure.write(halted)
        log.error("table.halted", extra={"table": self._settings.name})

    def _is_closed(self, current: Current) -> bool:
        """Its identity is taken, and not by its rows; else it is applied."""
        if current.version and not self._table.look(current.version, current.entry.batch).base:
            # An empty batch in a folder that is not the table would stop nobody who is paused.
            raise Unavailable(
                f"table {self._settings.name}: is not mounted on this node, or was deleted: there "
                "is no mark in its folder; a node may still change it, so it is not halted yet; "
                f"next: mount it; if it is gone for good, {lost_command(self._settings.name)}"
            )
        try:
            self._table.commit_empty(identity_of(current), current.version)
        except (Conflict, OutcomeUnknown) as error:
            log.info("run.doubtful", extra={"run": current.run, "why": str(error)})
        own = self._table.look(current.version, current.entry.batch).runs.get(current.run)
        if own is None:
            raise Unavailable(f"run {current.run}: is not closed yet; next: it is tried again")
        is_in = own.kind == "rows" and own.manifest == current.entry.manifest_hash
        if is_in:
            self._conclude(current, own.version, own.rows)
        return not is_in

    def _note(self, what: str, subject: str, words: str) -> None:
        name = self._settings.name
        self._assignment.check()
        self._tools.ledger.note(what, name, words, id=f"{what} {name} {subject}")

    def _wall_ms(self) -> int:
        return self._ambient.wall_ns() // 1_000_000


def identity_of(current: Current) -> Identity:
    return Identity(current.entry.batch, current.run)
