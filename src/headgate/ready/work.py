"""Work of a root: its holder closes hours, freezes certificates, raises and withdraws flags.

    take over ──▶ finish the journal ──▶ withdraw what a person wants ──▶ close hours: streams,
        ▲                                                                 then hours, then days
        │                                            merge: one hour of each stream ◀──┘
        └── Conflict, an unknown outcome, somebody else wrote: know nothing

Its effects, in order: what a crash just after each leaves, and what a holder does at most that was
paused before it and wakes up when another one has finished. Before it: what the line above says.

    effect                  a crash leaves                                    woken late
    root: epoch             older holders' writes are refused                 is refused
    root: a first hour      the stream is expected from then on               is refused
    stream: `closing`       who joins is late; hours stay open till closed    it never moves back
    files are staged        nobody names them: the next holder sweeps them    the same
    root: the journal       **frozen**: the next holder carries it out        is refused
    archive, flags, each    the rest follows from the journal                 nothing is staged
    root: the fact          frontiers moved; `closed` follows with `closing`  is refused
    a flag is withdrawn     the rest follows from the journal                 another file is there
    root: a try to merge    it counts, whatever became of it                  is refused
    a merge is prepared     nobody names it: the next holder sweeps it        the same
    merge record, outputs   the rest follows from the journal                 nothing is staged
    an input is removed     the rest follows from the journal                 it is gone already
    a statement             files may go, and their tables are asked again    nothing is staged
    a file is removed       the rest follows from the journal                 it is gone already
    a mark                  the rest follows from the journal                 nothing is staged
    staging is removed      nothing                                           its own, and unnamed

Hours and days are raised as streams are, each level in its own journal after the fact of the level
below: so a parent's flag implies its children's. A pass is bounded and lists no folder of hours.

Merging comes last in a pass, so that no other stream waits for more than one hour of each. It is
only an optimisation: after `MERGE_TRIES_MAX` tries that were begun the hour is flagged as it is.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from shlex import quote

from headgate.ambient import Ambient
from headgate.backlog.needs import tables_behind
from headgate.cluster import Assignment
from headgate.commits.certificate import (
    Certificate,
    ParentCertificate,
    flag_paths,
    hold_path,
    parent_flag_path,
    sealed,
)
from headgate.commits.removals import how_of
from headgate.commits.roots import (
    Removal,
    RootJournal,
    Seat,
    begun,
    check_end,
    concluded,
    goes_on,
    in_trouble,
    intended,
    merge_failed,
    merge_tried,
    place_of,
    removal_done,
    repaired,
    roots_with,
    unwished,
)
from headgate.commits.streams import StreamDocument, stream_key, with_closing
from headgate.engine.failure import JobFailed
from headgate.engine.merger import Merger
from headgate.errors import (
    Conflict,
    Corrupt,
    Halted,
    HeadgateError,
    Invalid,
    OutcomeUnknown,
    Unavailable,
)
from headgate.lake import Lake
from headgate.lake.guarded import GuardedLake
from headgate.lake.ledger import Ledger
from headgate.lake.local import Each, in_turn
from headgate.lake.pages import entries_of
from headgate.periods import HOUR_MS, Kind, Period
from headgate.ready import MERGE_TRIES_MAX, ReadyStream, RootSettings
from headgate.ready.archive import required, required_parent
from headgate.ready.certifying import Gathered, certificate_of, check_there, gather
from headgate.ready.closing import HOURS_MAX, begins_ms, closable
from headgate.ready.evidence import Evidence, read_evidence
from headgate.ready.flagging import carry_out_flags
from headgate.ready.freezing import (
    Flags,
    attempt_folder,
    check_free,
    epochs_in,
    files_of,
    stage_files,
    staging_of,
    withdrawal,
    words_of,
)
from headgate.ready.grouping import groups_of
from headgate.ready.merging import Attempt, Wanted, carry_out_merge, prepare
from headgate.ready.propagation import Parent, next_days, next_hours, passed_ms
from headgate.ready.removing import HOURS_MAX as REMOVED_AT_ONCE
from headgate.ready.removing import (
    Going,
    carry_out_removal,
    hours_of,
    needed,
    obstacle,
    prepared,
    removal_subject,
    state_removal,
    unfinished,
)
from headgate.ready.removing import files_of as statements_and_marks
from headgate.ready.repair import flagged_hours, missing_flags
from headgate.ready.root import RootTenure
from headgate.store import DocumentStore
from headgate.store.changes import change, read
from headgate.store.names import parts

LOOK_MS = 500  # between two looks, while an hour could be complete
PASS_HOURS_MAX = 128  # of all streams that one journal raises; it must fit the document
MERGE_AGAIN_MS = 10_000  # after a try to merge that failed
OUT_OF_REACH_MAX = 3  # streams, before a pass gives up

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RootTools:
    """What the roots of a node share."""

    store: DocumentStore
    lake: Lake
    ledger: Ledger
    ambient: Ambient
    store_ms: Callable[[], int]  # the store's clock
    each: Each = in_turn  # many disks wait at once as long as one
    merger: Merger | None = None  # None: this node merges nothing, and says so


@dataclass(frozen=True, slots=True)
class Due:
    """Hours of a stream that may be closed."""

    stream: ReadyStream
    seat: Seat
    evidence: Evidence
    hours: tuple[Period, ...]


class RootWork:
    """`headgate.cluster.Work`."""

    def __init__(self, assignment: Assignment, settings: RootSettings, tools: RootTools) -> None:
        self._assignment = assignment
        self._settings = settings
        self._tools = tools
        self._store = assignment.guard(tools.store)
        self._lake = GuardedLake(tools.lake, assignment)
        self._tenure = RootTenure(self._store, settings.name, assignment.epoch)
        self._troubles: dict[str, str] = {}  # of this pass
        self._out_of_reach: list[Unavailable] = []  # streams of this pass
        self._wanted: dict[str, Wanted] = {}  # of this pass, by stream: to be merged first
        self._merge_due_ms: dict[str, int] = {}  # by stream: not tried again before
        self.well_ms: int | None = None  # 0 once it has come through a pass

    def tick(self) -> int | None:
        try:
            is_more = self._advance()
        except Conflict:  # a stream took its seat, or a person asked for something: looked at again
            self._tenure.lose()
            is_more = False
        except OutcomeUnknown:
            self._tenure.lose()  # what the document says is not known: taken over, by a write
            raise
        self.well_ms = 0
        now_ms = self._tools.ambient.monotonic_ms()
        return now_ms if is_more else now_ms + LOOK_MS

    def _advance(self) -> bool:
        """Whether more may be due at once."""
        if not self._tenure.is_current():
            self._take_over()
        journal = self._tenure.document.journal
        if journal is not None and not self._finish(journal):
            return False
        self._troubles, self._wanted, self._out_of_reach = {}, {}, []
        self._withdraw_what_is_wished()
        is_more = self._close_hours()
        self._raise_again()
        is_more |= self._remove_what_is_asked()
        if self._tenure.document.journal is not None:
            return False  # a table came meanwhile, and is waited for
        for kind in self._settings.folder.rolls_up:
            is_more |= self._raise_parents(kind)
            if kind == "hour":
                self._pass_what_nobody_has()
        is_more |= self._repair()
        self._tell()
        for _, wanted in sorted(self._wanted.items()):
            is_more |= self._merge(wanted)
        if self._out_of_reach:
            raise self._out_of_reach[0]
        return is_more

    @contextmanager
    def _noted(self, subject: str) -> Iterator[None]:
        """Around what only decides: one stream's trouble is for a person, and the others go on."""
        try:
            yield
        except (Corrupt, Halted, Invalid) as error:
            self._troubles[subject] = str(error)

    @contextmanager
    def _tolerated(self) -> Iterator[None]:
        """A stream whose files are out of reach stops no other; it is told at the end of the pass.
        If several are, it is the store or the lake, and nobody waits for each."""
        try:
            yield
        except Unavailable as error:
            self._out_of_reach.append(error)
            if len(self._out_of_reach) >= OUT_OF_REACH_MAX:
                raise

    # Taking over

    def _take_over(self) -> None:
        lasts = {one.name: _end_of(one) for one in self._settings.streams}
        document = self._tenure.take_over(lasts)
        named = "" if document.journal is None else document.journal.folder
        folders = (entry.path for entry in entries_of(self._lake, staging_of(self._settings.name)))
        for folder, epoch in epochs_in(folders):
            if epoch <= self._assignment.epoch and folder != named:
                self._lake.remove_folder(folder)

    # Closing

    def _close_hours(self) -> bool:
        due: list[Due] = []
        room = PASS_HOURS_MAX
        for stream in self._settings.streams:
            if room <= 0:
                break
            with self._noted(stream.name), self._tolerated():
                found = self._due_of(stream, min(room, HOURS_MAX))
                if found is not None:
                    due.append(found)
                    room -= len(found.hours)
        flags: list[Flags] = []
        for one, outcome in zip(due, self._tools.each(self._outcome, due), strict=True):
            certified, trouble = outcome
            flags += certified
            if isinstance(trouble, Unavailable):
                self._out_of_reach.append(trouble)
            elif trouble is not None:
                self._troubles[one.stream.name] = str(trouble)
        if flags:
            frontiers = {one.stream: one.period.end_ms for one in flags if one.stream is not None}
            self._raise(flags, RootJournal("raise", "", (), frontiers_ms=frontiers))
        return bool(flags)

    def _due_of(self, stream: ReadyStream, limit: int) -> Due | None:
        """What nothing stands in the way of, as far as one read of it tells."""
        seat = self._tenure.document.streams[stream.name]
        check_end(self._tenure.document, stream.name, _end_of(stream))
        if seat.retired is not None or not self._is_due(seat, stream):
            return None
        if not self._is_merge_due(stream.name):
            return None
        found = read_evidence(self._store, stream.lands)
        if seat.first_ms is None:
            first_ms = begins_ms(seat, found.document)
            if first_ms is None:
                return None
            closed_ms = None if found.document is None else found.document.closed_ms
            # Of an output that came later: what the checkpoints have forgotten is before it.
            earliest = [closed_ms] if stream.of and closed_ms is not None else []
            first_ms = max([first_ms, *earliest, *self._ends_elsewhere(stream.name)])
            document = self._tenure.change(partial(begun, stream=stream.name, first_ms=first_ms))
            seat = document.streams[stream.name]
        hours = self._free_to_close(
            stream, closable(seat, found, stream.allowed_lateness_ms, limit)
        )
        return Due(stream, seat, found, hours) if hours else None

    def _ends_elsewhere(self, stream: str) -> Iterator[int]:
        """Of a stream whose folder was changed: an hour has its flags in one root, and never in
        two. Raises Halted: it may still go on in the other one."""
        for kept in roots_with(self._store, stream):
            seat = kept.value.streams[stream]
            if kept.key == self._tenure.name:
                continue
            if seat.retired is None or seat.last_ms is None:
                raise Halted(
                    f"stream {stream}: its folder was changed, and it still has its seat where "
                    "that was before; it is flagged here from the hour on where it ends there; "
                    "next: restart every node with the new settings, then headgate stream retire "
                    f'{quote(stream)} --reason "…"'
                )
            yield seat.last_ms

    def _outcome(self, due: Due) -> tuple[list[Flags], HeadgateError | None]:
        """One stream's trouble is for a person, and the others go on; so do its hours before it."""
        flags: list[Flags] = []
        try:
            for one in self._closed(due):
                flags += [one]
        except (Corrupt, Halted, Invalid, Unavailable) as error:
            return flags, error
        return flags, None

    def _closed(self, due: Due) -> Iterator[Flags]:
        """The hours that are over for good, each with its certificate."""
        stream, seat = due.stream, due.seat
        closing_ms = due.hours[-1].end_ms
        self._mark(stream.lands, closing_ms, self._certified_ms(stream.lands))
        again = self._read_again(stream.lands, due.evidence)
        sure = closable(seat, again, stream.allowed_lateness_ms, len(due.hours))
        for hour in (hour for hour in sure if hour.end_ms <= closing_ms):
            gathered = gather(self._lake, stream.name, hour, again, of=stream.of)
            if self._is_merged_first(stream, gathered):
                return
            yield self._certified(stream, gathered)

    def _is_due(self, seat: Seat, stream: ReadyStream) -> bool:
        """Whether its next hour could be complete, by the clock: else nothing needs to be read."""
        if seat.frontier_ms is None:
            return True
        if seat.last_ms is not None and seat.frontier_ms >= seat.last_ms:
            return False
        due_ms = seat.frontier_ms + HOUR_MS + stream.allowed_lateness_ms
        return self._tools.store_ms() >= due_ms

    def _free_to_close(self, stream: ReadyStream, hours: Sequence[Period]) -> tuple[Period, ...]:
        """Up to the first that a hold file keeps back: hours are flagged in order."""
        for number, hour in enumerate(hours):
            if self._lake.facts(hold_path(stream.folder, hour, stream.name)) is not None:
                return tuple(hours[:number])
        return tuple(hours)

    def _certified_ms(self, lands: str) -> int | None:
        """Hours of a stream that end by then have the certificates of all its outputs: not before
        may its checkpoints forget them. None: of one nobody knows."""
        seats = self._tenure.document.streams
        own = [one for one in self._settings.streams if one.lands == lands]
        every = [seats[one.name] for one in own]
        if any(one.of for one in own):
            known = {one.name for one in self._settings.streams}
            others = [name for name, seat in seats.items() if name not in known and goes_on(seat)]
            every += [seats[name] for name in others if self._may_be_output(name)]
        ends = [seat.frontier_ms for seat in every if seat.retired is None]
        certified = [end_ms for end_ms in ends if end_ms is not None]
        return min(certified) if certified and len(certified) == len(ends) else None

    def _may_be_output(self, name: str) -> bool:
        """Of a seat that these settings do not have: one that was taken out of them may come back,
        or is not in them yet. A stream without outputs has a document of its own."""
        found = read(self._store, stream_key(name), StreamDocument)
        return found is None or found.value.has_outputs

    def _mark(self, stream: str, closing_ms: int, closed_ms: int | None) -> None:
        change(
            self._store,
            stream_key(stream),
            StreamDocument,
            lambda found: with_closing(found, closing_ms, closed_ms),
        )

    def _read_again(self, stream: str, _before: Evidence) -> Evidence:
        """After `closing` was written: whoever joined before that is in here, and blocks."""
        return read_evidence(self._store, stream)

    def _certified(self, stream: ReadyStream, gathered: Gathered) -> Flags:
        now_ms, node = self._tools.store_ms(), self._assignment.node
        certificate = certificate_of(stream.name, gathered, now_ms, node)
        paths = flag_paths(stream.folder, gathered.hour, stream.name)
        flags = Flags(gathered.hour, stream.name, certificate, paths)
        check_free(self._lake, self._settings.name, flags)
        return flags

    # Merging

    def _is_merge_due(self, stream: str) -> bool:
        return self._tools.ambient.monotonic_ms() >= self._merge_due_ms.get(stream, 0)

    def _is_merged_first(self, stream: ReadyStream, gathered: Gathered) -> bool:
        """Whether an hour has small files that are to be merged before it is certified."""
        if stream.merge_bytes is None or gathered.merge is not None:
            return False
        groups = groups_of(gathered.files("data"), stream.merge_bytes)
        if not groups:
            return False
        wanted = Wanted(stream.name, gathered.hour, groups)
        before = self._tenure.document.merging.get(stream.name)
        is_same = before is not None and before.period == str(gathered.hour)
        if before is not None and is_same and before.tries >= MERGE_TRIES_MAX:
            self._leave_unmerged(wanted, before.why or "its node ended in the middle of it")
            return False
        self._wanted[stream.name] = wanted
        return True

    def _leave_unmerged(self, wanted: Wanted, why: str) -> None:
        place = place_of(wanted.hour, wanted.stream)
        words = f"flagged with its small files, after {MERGE_TRIES_MAX} tries to merge them: {why}"
        self._tools.ledger.note("merge.given_up", place, words, id=f"unmerged {place}")

    def _merge(self, wanted: Wanted) -> bool:
        """Whether its flag is due at once: it is merged, or will not be."""
        if self._assignment.is_draining:
            return False
        stream, period = wanted.stream, str(wanted.hour)
        # Before anything: a merge that takes node after node down comes to an end, too.
        self._tenure.change(partial(merge_tried, stream=stream, period=period))
        new_id, epoch = self._tools.ambient.new_id(), self._assignment.epoch
        folder = attempt_folder(self._settings.name, epoch, new_id)
        try:
            if self._tools.merger is None:
                raise Unavailable("this node has no engine that merges; next: try another node")
            attempt = Attempt(folder, epoch, self._assignment.node, self._tools.store_ms())
            journal = prepare(self._lake, self._tools.merger, wanted, attempt)
            place = place_of(wanted.hour, stream)
            self._tools.ledger.note("files.merged", place, wanted.words, id=f"merge {place}")
        except (JobFailed, Corrupt, Halted, Invalid, OutcomeUnknown, Unavailable) as error:
            is_given_up = self._fail(stream, period, str(error))
            self._discard(folder)
            return is_given_up
        self._journal(journal)
        return True

    def _fail(self, stream: str, period: str, why: str) -> bool:
        """Whether that was the last try."""
        log.warning("merge.failed", extra={"stream": stream, "period": period, "why": why})
        failed = partial(merge_failed, stream=stream, why=why)
        is_last = self._tenure.change(failed).merging[stream].tries >= MERGE_TRIES_MAX
        if not is_last:
            self._merge_due_ms[stream] = self._tools.ambient.monotonic_ms() + MERGE_AGAIN_MS
        return is_last

    # Parents

    def _raise_parents(self, kind: Kind) -> bool:
        """The next level, after the fact of the one below it, in the same pass."""
        due = (next_hours if kind == "hour" else next_days)(self._tenure.document)
        flags: list[Flags] = []
        found: list[Parent] = []
        is_stopped = False
        for parent in due:
            if is_stopped and not parent.is_again:
                continue  # the frontier goes over no trouble; what was withdrawn lies behind it
            with self._noted(f"/{kind}"):
                flags += [self._parent(parent)]
                found += [parent]
            is_stopped |= parent not in found
        if not flags:
            return False
        ends = [parent.period.end_ms for parent in found if not parent.is_again]
        frontier_ms = max(ends, default=None)
        journal = RootJournal(
            "raise",
            "",
            (),
            hours_ms=frontier_ms if kind == "hour" else None,
            days_ms=frontier_ms if kind == "day" else None,
            raises=tuple(place_of(parent.period) for parent in found if parent.is_again),
        )
        self._raise(flags, journal)
        return True

    def _pass_what_nobody_has(self) -> None:
        """After the last hour of the last stream: else the day would wait for hours of nobody."""
        hours_ms = passed_ms(self._tenure.document, self._tools.store_ms())
        if hours_ms is not None:
            self._tenure.change(lambda found: replace(found, hours_ms=hours_ms))

    def _parent(self, parent: Parent) -> Flags:
        period = parent.period
        if period.kind == "hour":
            found = {one: required(self._lake, period, one) for one in parent.children}
        else:
            root, hours = self._settings.name, [Period.parse(one) for one in parent.children]
            found = {str(one): required_parent(self._lake, root, one) for one in hours}
        flag = parent_flag_path(self._settings.folder, period)
        certificate = sealed(
            ParentCertificate(
                str(period),
                self._tenure.document.reopened.get(place_of(period), 1),
                {one: filed.certificate.hash for one, filed in found.items()},
                self._tools.store_ms(),
                self._assignment.node,
            )
        )
        flags = Flags(period, None, certificate, () if flag is None else (flag,))
        check_free(self._lake, self._settings.name, flags)
        return flags

    # Withdrawing

    def _withdraw_what_is_wished(self) -> None:
        for place, wish in sorted(self._tenure.document.wishes.items()):
            with self._noted(place):
                journal = self._withdrawal(place)
                if journal is None:
                    self._tenure.change(partial(unwished, place=place))
                    continue
            if place in self._troubles:
                continue
            generation = journal.reopens[place]
            words = f"{wish.reason}: its flags are withdrawn, generation {generation} comes next"
            self._tools.ledger.note(
                "flags.withdrawn", place, words, who=wish.who, id=f"withdraw {place} {generation}"
            )
            self._journal(journal)

    def _withdrawal(self, place: str) -> RootJournal | None:
        """None: there is no flag to withdraw, or it was already."""
        document = self._tenure.document
        text, name = parts(place)
        hour, seat = Period.parse(text), document.streams
        is_flagged = name in seat and hour.end_ms <= (seat[name].frontier_ms or 0)
        if not is_flagged or place in document.reopened:
            return None
        if how_of(seat[name].removed, hour) is not None:
            return None  # there is nothing that a next generation could certify
        return withdrawal(self._lake, document, self._known(name).folder, hour, name)

    def _known(self, stream: str) -> ReadyStream:
        """Raises Invalid: the settings changed, or another node has others."""
        found = self._settings.stream(stream)
        if found is None:
            raise Invalid(
                f"stream {stream} is not in the settings of this node, so nobody knows where its "
                "flags lie; what was asked for waits, and so do flags above it; next: put it back "
                "into the settings, with a last_hour if it is over"
            )
        return found

    def _raise_again(self) -> None:
        """Hours that were withdrawn, once no hold file keeps them back: the next generation."""
        flags: list[Flags] = []
        for place, generation in sorted(self._tenure.document.reopened.items()):
            if "/" not in place or len(flags) == PASS_HOURS_MAX:
                continue
            with self._noted(place):
                flags += self._next_generation(place, generation)
        if flags:
            raises = tuple(one.place for one in flags)
            self._raise(flags, RootJournal("raise", "", (), raises=raises))

    def _next_generation(self, place: str, generation: int) -> list[Flags]:
        text, name = parts(place)
        hour, stream = Period.parse(text), self._known(name)
        if not self._free_to_close(stream, [hour]):
            return []
        old = required(self._lake, hour, name).certificate
        if not isinstance(old, Certificate):
            return []
        check_there(self._lake, old)
        now_ms, node = self._tools.store_ms(), self._assignment.node
        new = sealed(replace(old, generation=generation, closed_ms=now_ms, node=node))
        flags = Flags(hour, name, new, flag_paths(stream.folder, hour, name))
        check_free(self._lake, self._settings.name, flags)
        return [flags]

    # Removing

    def _remove_what_is_asked(self) -> bool:
        """A day's hours of one removal at most; whether more may be due at once."""
        for removal in self._tenure.document.removals:
            going: list[Going] = []
            subject, next_ms = removal_subject(removal), None
            with self._noted(subject), self._tolerated():
                next_ms = self._gather_going(removal, going)
            if going:
                self._remove(removal, going)
                return True
            if next_ms is not None and next_ms > removal.from_ms:
                self._tenure.change(partial(removal_done, removal=removal, until_ms=next_ms))
                return True
        return False

    def _gather_going(self, removal: Removal, going: list[Going]) -> int:
        """Where the next look begins. What stands in the way of an hour stands in the way of those
        behind it. Raises Halted, Corrupt, Invalid, Unavailable."""
        stream, document = self._known(removal.stream), self._tenure.document
        hours = list(islice(hours_of(document, removal), REMOVED_AT_ONCE + 1))
        if not hours:
            return removal.until_ms
        behind = list(tables_behind(self._store, stream.name, str(hours[-1]), removal.without))
        found = read(self._store, stream_key(stream.lands), StreamDocument)
        shards = 1 if found is None else found.value.shards
        now_ms, node = self._tools.store_ms(), self._assignment.node
        for hour in hours[:REMOVED_AT_ONCE]:
            why = obstacle(document, removal, behind, hour)
            if why:
                self._troubles[removal_subject(removal)] = why
                return hour.start_ms
            one = prepared(self._lake, stream, removal, hour, shards, now_ms, node)
            if one is None:
                continue
            if one.statement.late:
                why = unfinished(stream.lands, one, read_evidence(self._store, stream.lands))
            if why:
                self._troubles[removal_subject(removal)] = why
                return hour.start_ms
            going.append(one)
        return hours[-1].start_ms if len(hours) > REMOVED_AT_ONCE else removal.until_ms

    def _remove(self, removal: Removal, going: Sequence[Going]) -> None:
        removes = {place_of(one.hour, removal.stream): removal.how for one in going}
        root = self._settings.name
        folder = attempt_folder(root, self._assignment.epoch, self._tools.ambient.new_id())
        files = statements_and_marks(going)
        moves = stage_files(self._lake, folder, files, self._tools.each)
        for one in going:
            said, place = one.statement, place_of(one.hour, removal.stream)
            told = f"{said.words}, {sum(file.rows for file in said.every):,} rows"
            self._tools.ledger.note(
                f"hour.{removal.how}",
                place,
                told,
                who=removal.wish.who,
                id=f"{removal.how} {place} {said.number}",
            )
        self._journal(
            RootJournal("remove", folder, moves, removes=removes, without=removal.without)
        )

    def _carry_out_removal(self, journal: RootJournal) -> bool:
        """False: a table came that needs one of these hours; it is waited for."""
        statements = state_removal(self._lake, journal)
        last = max((one.period for one in statements), default="")
        streams = {one.stream for one in statements}
        # After the lake says it: a table that comes later sees it.
        behind = {
            one: list(tables_behind(self._store, one, last, journal.without)) for one in streams
        }
        why = next(
            (
                words
                for one in statements
                if (words := needed(one.stream, behind[one.stream], one.period))
            ),
            "",
        )
        if why:
            self._troubles = {f"{statements[0].how} {statements[0].stream}": why}
            self._tell()
            return False
        carry_out_removal(self._lake, journal, statements)
        return True

    # Repairing

    def _repair(self) -> bool:
        """A day of what a person asked for, or as far as the first hour with something missing."""
        document = self._tenure.document
        if document.repair is None:
            return False
        files: list[tuple[str, bytes]] = []
        hours = flagged_hours(document, document.repair)
        for hour in hours:
            with self._noted(f"repair {hour}"):
                files = missing_flags(self._lake, document, self._settings, hour)
            if files:
                self._publish(files, RootJournal("raise", "", ()), f"again, of {hour}")
                break
        until_ms = hour.end_ms if hours else document.repair.until_ms
        self._tenure.change(partial(repaired, until_ms=until_ms))
        return True

    # Carrying out

    def _raise(self, flags: Sequence[Flags], wanted: RootJournal) -> None:
        files = files_of(self._settings.name, flags)
        self._publish(files, wanted, words_of(flags))

    def _publish(self, files: Iterable[tuple[str, bytes]], wanted: RootJournal, told: str) -> None:
        """Staged, frozen, raised, concluded. `told`: whose flags, in the ledger."""
        root = self._settings.name
        folder = attempt_folder(root, self._assignment.epoch, self._tools.ambient.new_id())
        moves = stage_files(self._lake, folder, files, self._tools.each)
        self._tools.ledger.note("flags.raised", root, told, id=f"flags {folder}")
        self._journal(replace(wanted, folder=folder, moves=moves))

    def _journal(self, journal: RootJournal) -> None:
        self._tenure.change(lambda found: intended(self._tenure.name, found, journal))
        self._finish(journal)

    def _finish(self, journal: RootJournal) -> bool:
        """Whether it is concluded; else it waits for somebody else."""
        if journal.kind == "remove":
            if not self._carry_out_removal(journal):
                return False
        else:
            carry_out = carry_out_merge if journal.kind == "merge" else carry_out_flags
            carry_out(self._lake, journal)
        self._tenure.change(lambda found: concluded(self._tenure.name, found, journal))
        done = {"root": self._settings.name, "kind": journal.kind, "moves": len(journal.moves)}
        log.info("journal.done", extra=done)
        if journal.folder:
            self._discard(journal.folder)
        return True

    def _discard(self, folder: str) -> None:
        """Of staging, that no journal names; what is left the next holder sweeps."""
        try:
            self._lake.remove_folder(folder)
        except (Unavailable, OutcomeUnknown) as error:
            log.info("staging.left", extra={"folder": folder, "why": str(error)})

    # Telling

    def _tell(self) -> None:
        before = self._tenure.document.troubles
        now = self._tenure.change(partial(in_trouble, troubles=dict(self._troubles))).troubles
        for subject, why in now.items():
            if before.get(subject) != why:
                log.warning("flags.trouble", extra={"subject": subject, "why": why})


def _end_of(stream: ReadyStream) -> int | None:
    return None if stream.last_hour_ms is None else stream.last_hour_ms + HOUR_MS
