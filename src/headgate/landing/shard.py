"""Shard: the work of one shard, whoever holds it.

    take over ──▶ a journal stands? finish it ──▶ look ── due ──▶ round: staged by a job
                        ▲                          ▲                    │
                        │                          └──── the fact ◀── publish ◀── intent
                        └── Conflict, an unknown outcome: know nothing, take over again

While a commit publishes, the next round may already be staged; it judges lateness by the watermarks
that commit will set, and its own intent comes after that fact. What a round staged is deleted only
when no write of the checkpoint can name it any more.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from shlex import quote

from headgate.ambient import Ambient, Deadline
from headgate.cluster import Assignment
from headgate.commits import StepKind
from headgate.commits.checkpoint import (
    Base,
    Checkpoint,
    Journal,
    Tenure,
    base_after,
    base_of,
    checkpoint_key,
)
from headgate.commits.record import Record, record_path
from headgate.commits.replay import carry_out_journal
from headgate.commits.streams import StreamDocument
from headgate.engine import NO_MARK_MS, Shape, ShardInput
from headgate.errors import (
    Conflict,
    Corrupt,
    Fenced,
    Halted,
    Invalid,
    OutcomeUnknown,
    Unavailable,
)
from headgate.lake import READ_BYTES_MAX, Lake
from headgate.lake.guarded import GuardedLake
from headgate.lake.ledger import Ledger
from headgate.lake.local import Each, in_turn
from headgate.landing import StreamSettings
from headgate.landing.clock import Clock
from headgate.landing.committing import Occasion, Prepared, check_counts, prepare
from headgate.landing.jobs import Jobs, Question, Share, Ticket
from headgate.landing.lake_mark import check_lake, check_mark
from headgate.landing.names import attempt_folder, label_of, named, shard_folder
from headgate.landing.outlook import is_proved, lacks_marks, words_of_the_end
from headgate.landing.report import Report, Reporter, report_key, words_of
from headgate.landing.restaging import clear_commit, record_of
from headgate.landing.rounds import Shift, Start, next_move, shift_at
from headgate.landing.shaping import first_shape, has_sql, shape_of
from headgate.landing.stream_document import check_seat, fix_first_hour, open_stream
from headgate.landing.sweeper import sweep, sweep_removed
from headgate.landing.watermarks import first_hour, marks_after, oldest_hour
from headgate.periods import Period
from headgate.sources import Plan, Source, Waiting
from headgate.store import DocumentStore
from headgate.store.changes import read

POLL_MS = 50  # between two looks at a ticket
LOOK_MS = 5_000  # between two looks at the source
SWEEP_MS = 600_000
DRAIN_MS = 45_000  # how long a node that stops waits for a round that is under way
RESTAGE_BYTES_MAX = 2**62
NOTHING = Plan("", "", (), {}, (), (), {}, has_more=False)
STUMBLE_MS = 1_000  # after the first failure of something else; then twice as long each time
STUMBLE_MS_MAX = 60_000
STUMBLES_MAX = 10
REMARK_MAX = 2_000  # letters: it ends in a command, which may name long paths

log = logging.getLogger(__name__)

OpenSource = Callable[[StreamSettings, int, int, DocumentStore], Source]
"""For a stream, a shard and an epoch, on the guarded store."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What the shards of a node share."""

    store: DocumentStore
    lake: Lake
    jobs: Jobs
    open_source: OpenSource
    ledger: Ledger
    ambient: Ambient
    clock_off_ms: Callable[[], int]  # this node's wall clock against the store's
    kinds: Mapping[str, StepKind]
    eager_since_ms: int | None = None  # by the store's clock: land all that is there by then
    each: Each = in_turn


@dataclass(slots=True)
class Round:
    plan: Plan
    base: Base
    ends: int  # the shift that is over once nothing is left behind it; 0: none
    ticket: Ticket | None  # None: nothing is to be read
    stream: StreamDocument
    discovered_ms: int  # before the source named its partitions; 0: nobody knows
    replaces: Journal | None = None
    share: Share | None = None
    is_intended: bool = False  # the write that names its staging was begun


class ShardWork:
    """`headgate.cluster.Work`."""

    def __init__(
        self, assignment: Assignment, settings: StreamSettings, shard: int, tools: Tools
    ) -> None:
        self._assignment = assignment
        self._settings = settings
        self._shard = shard
        self._tools = tools
        self._ambient = tools.ambient
        self._store = assignment.guard(tools.store)
        self._lake = GuardedLake(tools.lake, assignment)
        self._tenure = Tenure(self._store, settings.name, shard, assignment.epoch)
        self._source = tools.open_source(settings, shard, assignment.epoch, self._store)
        self._label = label_of(shard, assignment.epoch)
        self._clock = Clock(
            tools.ambient, tools.clock_off_ms, assignment.node, settings.future_skew_ms
        )
        self._reporter = Reporter(
            self._store, report_key(settings.name, shard), tools.ambient, self._clock.store_ms
        )
        self._round: Round | None = None
        self._doubtful: list[Share] = []  # a write that names it may still be there
        self._shift: Shift | None = None
        self._swept_ms: int | None = None
        self._remark = ""
        self._lake_id = ""  # that of the store, once it is known
        self._waiting = Waiting(0, 0, None)  # at the last look
        self._stumbles = 0  # in a row
        self._rest_until_ms = 0
        self._is_parting = False  # its last shift is being finished
        self._has_tried_marks = False  # an empty round gave first watermarks, or could not
        self._lacks_marks = False
        self._question: Question | None = None  # whether the engine takes its expressions
        self.well_ms: int | None = None  # 0 once it has committed something

    @property
    def name(self) -> str:
        return f"{self._settings.name}/{self._shard}"

    def tick(self) -> int | None:
        try:
            due_ms = self._advance()
            while self._assignment.is_draining and not self._is_at_a_good_end():
                due_ms = self._advance()
        except (Conflict, OutcomeUnknown):
            self._abandon()
            self._tenure.lose()  # what the checkpoint says is not known: taken over, by a write
            raise
        except Unavailable as error:
            self._abandon()
            self._stumble(error)
            raise
        except Exception:
            self._abandon()
            raise
        return due_ms

    def _stumble(self, error: Unavailable) -> None:
        """What it needs is out of reach: tried less and less often, and people can see why."""
        pause_ms = min(STUMBLE_MS * 2**self._stumbles, STUMBLE_MS_MAX)
        self._stumbles = min(self._stumbles + 1, STUMBLES_MAX)
        self._rest_until_ms = self._ambient.monotonic_ms() + pause_ms
        self._remark = str(error)[:REMARK_MAX]
        self._report("waits, and tries again", self._waiting)

    def _is_at_a_good_end(self) -> bool:
        """Nothing is under way; or it takes too long, and the next holder reads it again."""
        if self._round is None:
            return True
        ticket = self._round.ticket
        if ticket is not None and ticket.outcome is None:
            deadline = Deadline(self._ambient, DRAIN_MS)
            while ticket.outcome is None and not deadline.is_over():
                self._assignment.check()
                self._ambient.sleep_ms(POLL_MS)
            if ticket.outcome is None:
                self._abandon()
                return True
        return False

    def _advance(self) -> int:
        if self._ambient.monotonic_ms() < self._rest_until_ms and not self._assignment.is_draining:
            return self._rest_until_ms
        if not self._tenure.is_held:
            self._take_over()
        self._ask_the_engine()
        checkpoint = self._tenure.checkpoint
        if checkpoint.journal is not None and self._round is None:
            self._recover(checkpoint, checkpoint.journal)
            return self._ambient.monotonic_ms()
        if self._round is not None:
            return self._go_on(self._round)
        return self._look()

    def _ask_the_engine(self) -> None:
        """Once, before there is anything to read. Whoever only lands what is there and ends is told
        by the first job: without one it needs no engine. Raises Halted."""
        if self._question is None:
            if self._tools.eager_since_ms is None and has_sql(self._settings):
                self._question = self._tools.jobs.ask(first_shape(self._settings))
        elif self._question.refusal is not None:
            raise self._hopeless(self._question.refusal)

    # Taking over

    def _take_over(self) -> None:
        self._remark = ""
        open_stream(self._store, self._settings)
        check_seat(self._store, self._settings)
        self._lake_id = check_mark(self._store, self._lake, self._ambient)
        is_taken, number = self._is_next_number_taken()
        checkpoint = self._tenure.take_over(self._source.partitions())
        if is_taken and checkpoint.number == number:  # still: so nobody journaled it meanwhile
            raise Corrupt(
                f"{self.name}: a record of commit {number + 1} is in the lake, and was never "
                "journaled here: the store was rolled back, or another one writes to this lake; "
                "nothing is overwritten; next: headgate audit"
            )
        named_folder = None if checkpoint.journal is None else checkpoint.journal.folder
        for share in self._doubtful:
            if share.folder != named_folder:
                self._let_go(share)
        self._doubtful = []
        self._sweep(checkpoint)
        self._settle(checkpoint)

    def _is_next_number_taken(self) -> tuple[bool, int]:
        """In the lake; and the number of the last commit, as it is before."""
        name, shard = self._settings.name, self._shard
        found = read(self._store, checkpoint_key(name, shard), Checkpoint)
        number = 0 if found is None else found.value.number
        return self._lake.facts(record_path(name, shard, number + 1)) is not None, number

    def _sweep(self, checkpoint: Checkpoint) -> None:
        now_ms = self._ambient.monotonic_ms()
        if self._swept_ms is not None and now_ms < self._swept_ms + SWEEP_MS:
            return
        self._swept_ms = now_ms
        try:
            sweep(
                self._lake,
                self._settings.name,
                self._shard,
                checkpoint,
                self._epoch_of,
                self._tools.jobs.is_needed,
            )
            sweep_removed(self._lake)
        except (Unavailable, OutcomeUnknown) as error:
            log.warning("staging.not_swept", extra={"shard": self.name, "why": str(error)})

    def _epoch_of(self, shard: int) -> int | None:
        found = read(self._store, checkpoint_key(self._settings.name, shard), Checkpoint)
        return None if found is None else found.value.epoch

    # Recovering

    def _recover(self, checkpoint: Checkpoint, journal: Journal) -> None:
        log.info("journal.found", extra={"shard": self.name, "commit": journal.number})
        if checkpoint.is_clearing:
            self._restage(checkpoint, journal)
            return
        try:
            self._finish(journal)
        except Halted:
            if checkpoint.restage is None:
                raise
            self._restage(checkpoint, journal)

    def _restage(self, checkpoint: Checkpoint, journal: Journal) -> None:
        """A person decided: what is left of that commit goes, its range is read again, and the new
        attempt is journaled under a new number."""
        self._tools.ledger.note(
            "journal.restaged",
            f"{self.name}/{journal.number}",
            "" if checkpoint.restage is None else checkpoint.restage.reason,
            id=f"restage {self.name}/{journal.number}",
            who="system" if checkpoint.restage is None else checkpoint.restage.who,
        )
        record_of(self._lake, self._settings.name, self._shard, journal)
        # By a write: whoever woke up late, after somebody else finished this, deletes nothing; and
        # nobody finishes it from now on.
        checkpoint = self._tenure.clear(journal)
        clear_commit(self._lake, self._settings.name, self._shard, journal)
        plan = NOTHING
        if journal.positions:
            self._source.look(checkpoint.positions)  # finds out what is lost
            plan = self._source.plan(
                checkpoint.positions, size_bytes_max=RESTAGE_BYTES_MAX, until=journal.positions
            )
        stream = open_stream(self._store, self._settings)
        base = base_of(checkpoint)
        self._round = self._start(plan, base, journal.shift, stream, 0, replaces=journal)

    # Looking

    def _look(self) -> int:
        # A source partition that is new is in the checkpoint before `closing` is read: what is
        # being closed then waits for it, or it is late for that. The time is taken before: this
        # discovery found whatever was there by then.
        discovered_ms = self._clock.discovery_ms()
        checkpoint = self._tenure.join(self._source.partitions())
        stream = open_stream(self._store, self._settings)
        now_ms = self._ambient.monotonic_ms()
        self._sweep(checkpoint)
        over = words_of_the_end(self._settings, stream, checkpoint)
        if over:  # before the source is asked: it may be gone by now, and that is nobody's worry
            self._waiting, self._remark = Waiting(0, 0, None), ""
            self._report(over, self._waiting, is_last=self._assignment.is_draining)
            return now_ms + LOOK_MS
        waiting = self._waiting = self._source.look(checkpoint.positions)
        if self._assignment.is_draining and (self._is_parting or not waiting.is_any):
            # Nobody looks after this: what is told now is what people see until somebody does.
            self._report("waiting" if waiting.is_any else "idle", waiting, is_last=True)
            return now_ms  # the next holder goes on from here
        if stream.paused is not None:
            self._report(f"paused by {stream.paused.who}: {stream.paused.reason}", waiting)
            return now_ms + LOOK_MS
        wall_ms = self._wall_ms()
        if self._shift is None or self._shift.number <= checkpoint.shift:
            self._shift = shift_at(self._settings, checkpoint.shift + 1, wall_ms, now_ms)
        self._is_parting = self._assignment.is_draining  # one more round, and no other
        eager_ms = self._tools.eager_since_ms
        self._lacks_marks = lacks_marks(checkpoint, stream)
        is_settled = not self._lacks_marks or self._has_tried_marks
        move = next_move(
            self._settings,
            self._shift,
            waiting,
            wall_ms=wall_ms,
            monotonic_ms=now_ms,
            look_ms=LOOK_MS,
            is_eager=eager_ms is not None or self._is_parting,
            is_proved=is_settled
            and eager_ms is not None
            and is_proved(checkpoint, eager_ms, self._clock.store_ms()),
        )
        if not isinstance(move, Start):
            due_ms = self._shift.end_ms + self._settings.grace_ms
            self._report("waiting" if waiting.is_any else "idle", waiting, due_ms=due_ms)
            return move.until_ms
        self._has_tried_marks |= self._lacks_marks and not waiting.is_any
        check_seat(self._store, self._settings)  # another node's settings may have ended it
        plan = self._plan(checkpoint.positions)
        ends = self._shift.number if move.ends_shift else 0
        self._round = self._start(plan, base_of(checkpoint), ends, stream, discovered_ms)
        doing = f"round of {plan.words}" if plan.has_input else "commit without records"
        self._report(f"{doing}: {move.why}", waiting)
        return now_ms

    def _plan(self, positions: Mapping[str, str]) -> Plan:
        return self._source.plan(positions, size_bytes_max=self._settings.round_bytes)

    def _start(
        self,
        plan: Plan,
        base: Base,
        ends: int,
        stream: StreamDocument,
        discovered_ms: int,
        replaces: Journal | None = None,
    ) -> Round:
        ticket = None
        if plan.has_input:
            marks = {one: self._mark(mark, stream) for one, mark in base.watermarks.items()}
            wanted = ShardInput(self._label, plan.files, marks, plan.spans)
            shape = self._shape(plan)
            is_alone = self._settings.shards == 1 and not shape.is_shared
            ticket = self._tools.jobs.submit(shape, wanted, self._assignment, is_alone=is_alone)
        return Round(plan, base, ends, ticket, stream, discovered_ms, replaces)

    def _mark(self, mark_ms: int | None, stream: StreamDocument) -> int:
        """What is late by it. A source partition that just joined has no watermark, and must not
        add to hours that were being closed before it did."""
        if mark_ms is not None:
            return mark_ms
        return NO_MARK_MS if stream.closing_ms is None else stream.closing_ms

    def _shape(self, plan: Plan) -> Shape:
        is_sure = self._is_clock_trusted(plan)
        return shape_of(
            self._settings, plan.reader, plan.format, plan.columns, is_clock_trusted=is_sure
        )

    # Committing

    def _go_on(self, round_: Round) -> int:
        ticket = round_.ticket
        if ticket is None:
            folder = attempt_folder(self._settings.name, self._ambient.new_id, [self._label])
            share = Share(shard_folder(folder, self._label), folder, (), ())
        elif ticket.outcome is None:
            return self._ambient.monotonic_ms() + POLL_MS
        elif isinstance(ticket.outcome, Exception):
            self._round = None
            raise self._hopeless(ticket.outcome)
        else:
            share = ticket.outcome
        round_.share = share
        prepared = self._intend(round_, share)
        self._round = self._next_round(round_, prepared.journal)
        self._finish(prepared.journal, share, prepared.record)
        return self._ambient.monotonic_ms()

    def _hopeless(self, error: Exception) -> Exception:
        """What the engine refuses for the settings, it refuses each time: no second try."""
        if not isinstance(error, Invalid):
            return error
        released = f'headgate shard release {quote(self.name)} --reason "…"'
        return Halted(f"{error}; next: {released}")

    def _intend(self, round_: Round, share: Share) -> Prepared:
        plan, settings = round_.plan, self._settings
        self._source.confirm(plan)
        self._source.reconcile(plan, share.tallies)
        checkpoint = self._tenure.checkpoint
        made_ms = self._wall_ms()
        number, old = checkpoint.number + 1, round_.replaces
        hour_ms = self._first_hour(round_, share)
        oldest_ms = self._oldest_hour(share, hour_ms)
        files = named(settings, self._shard, number, Period.day_of(made_ms), share.files, oldest_ms)
        skipped = sum(file.rows for file in share.files if file.kind == "skip")
        check_counts(files, skipped, share.tallies)
        floors = [one for one in (hour_ms, round_.stream.closing_ms) if one is not None]
        marks = marks_after(
            round_.base.watermarks,
            share.tallies,
            # Before anything has landed no hour can be closed, and nothing needs to be late.
            {} if hour_ms is None else plan.ends_ms,
            lateness_ms=settings.allowed_lateness_ms,
            floor_ms=max(floors, default=None),
            is_clock_trusted=self._is_clock_trusted(plan),
        )
        facts = self._lake.seal([one.staged.path for one in files]) if files else ()
        prepared = prepare(
            settings,
            Occasion(
                self._shard,
                number,
                self._assignment.epoch,
                self._assignment.node,
                made_ms,
                0 if plan.has_more else round_.ends,
                None if old is None else old.number,
                round_.discovered_ms,
                round_.stream.closed_ms,
                round_.base.positions,
                hour_ms,
            ),
            plan,
            share.folder,
            list(zip(files, facts, strict=True)),
            share.tallies,
            marks,
            self._tools.kinds,
        )
        self._check_before_intent(number, len(prepared.raw), len(files))
        sealed = self._lake.stage(prepared.journal.record, prepared.raw)
        prepared = prepared.staged_as(sealed)
        round_.is_intended = True
        self._tenure.intend(round_.base, prepared.journal)
        return prepared

    def _check_before_intent(self, number: int, size_bytes: int, files: int) -> None:
        """Raises Unavailable (another lake), Halted (nobody could read the record), Conflict."""
        if size_bytes > READ_BYTES_MAX:
            raise Halted(
                f"{self.name}: the record of the next commit would have {size_bytes:,} bytes, for "
                f"{files:,} files: event times are probably wrong; next: correct event_time, then "
                f'headgate shard release {self.name} --reason "…"'
            )
        check_lake(self._lake, self._lake_id)
        if self._lake.facts(record_path(self._settings.name, self._shard, number)) is not None:
            raise Conflict(f"{self.name}: somebody has made commit {number}; looked at again")

    def _first_hour(self, round_: Round, share: Share) -> int | None:
        """Fixed with the first records that land; or later, if those were ahead of their arrival:
        then hours that they are in count, too."""
        if round_.stream.first_hour_ms is not None:
            return round_.stream.first_hour_ms
        landed = (file.hour_ms for file in share.files if file.kind == "data")
        hours = [*self._open_hours(), *(one for one in landed if one is not None)]
        seen = [tally.event_ms_max for tally in share.tallies if tally.event_ms_max is not None]
        found = first_hour(hours, max(seen)) if seen else None
        return None if found is None else fix_first_hour(self._store, self._settings.name, found)

    def _oldest_hour(self, share: Share, first_hour_ms: int | None) -> int | None:
        hours = [
            one.hour_ms for one in share.files if one.kind == "data" and one.hour_ms is not None
        ]
        found = oldest_hour(hours, self._open_hours(), first_hour_ms)
        if found != first_hour_ms:
            log.warning("commit.too_many_hours", extra={"shard": self.name, "hours": len(hours)})
        return found

    def _open_hours(self) -> set[int]:
        return {Period.parse(period).start_ms for period in self._tenure.checkpoint.periods}

    def _next_round(self, round_: Round, journal: Journal) -> Round | None:
        """Staged while this commit publishes, if more waits behind it."""
        if not round_.plan.has_more or self._assignment.is_draining or round_.replaces is not None:
            return None
        stream = open_stream(self._store, self._settings)
        if stream.paused is not None or stream.retired is not None:
            return None
        base = base_after(self._tenure.checkpoint, journal)
        plan = self._plan(base.positions)
        if not plan.has_input:
            return None
        return self._start(plan, base, round_.ends, stream, round_.discovered_ms)

    def _finish(
        self, journal: Journal, share: Share | None = None, known: Record | None = None
    ) -> None:
        """The journal is carried out; then the fact."""
        settings, tools = self._settings, self._tools
        try:
            record = carry_out_journal(
                self._lake, settings.name, self._shard, journal, tools.kinds, tools.each, known
            )
        except Halted:
            # Behind a mount point that is empty nothing is lost, and no person is needed.
            check_lake(self._lake, self._lake_id)
            raise
        commit = f"{self.name}/{journal.number}"
        if record.files:  # of a commit without records its own record tells enough
            words = words_of(record.counts)
            tools.ledger.note("commit.made", commit, words, id=f"commit {commit}")
        for gap in record.gaps:
            tools.ledger.note(
                "gap.found", commit, gap.reason, id=f"gap {commit} {gap.partition} {gap.first}"
            )
        checkpoint = self._tenure.conclude(journal, self._wall_ms())
        self.well_ms = 0
        self._stumbles, self._remark = 0, ""
        log.info("commit.made", extra={"commit": commit, "rows": journal.rows})
        self._settle(checkpoint)
        self._let_go(share or Share(journal.folder, journal.folder.rpartition("/")[0], (), ()))

    def _settle(self, checkpoint: Checkpoint) -> None:
        """What was read is dealt with as the settings say; a failure here changes no fact."""
        try:
            self._source.settle(checkpoint.positions)
        except (Unavailable, OutcomeUnknown, Conflict) as error:
            log.warning("source.not_settled", extra={"shard": self.name, "why": str(error)})

    # Letting go

    def _abandon(self) -> None:
        """What is under way comes to nothing. Its staging goes, unless a write may name it: then
        the next take-over, which is a write, decides."""
        round_, self._round = self._round, None
        if round_ is None:
            return
        if round_.ticket is not None:
            outcome = self._tools.jobs.give_up(round_.ticket)
            if round_.share is None and isinstance(outcome, Share):
                round_.share = outcome
        if round_.share is None:
            return
        if round_.is_intended:
            self._doubtful.append(round_.share)
            # If nobody ticks this work again, the next one's sweep, which follows a write, decides.
            self._tools.jobs.leave(round_.share, self._label)
            self._tenure.lose()
        else:
            self._let_go(round_.share)

    def _let_go(self, share: Share) -> None:
        try:
            self._assignment.check()
            self._tools.jobs.let_go(share, self._label)
        except (Unavailable, OutcomeUnknown, Fenced) as error:
            log.info("staging.left", extra={"folder": share.folder, "why": str(error)})

    # Telling

    def _report(
        self, doing: str, waiting: Waiting, *, is_last: bool = False, due_ms: int | None = None
    ) -> None:
        report = Report(
            self._assignment.node,
            self._assignment.epoch,
            doing,
            waiting.files,
            waiting.size_bytes,
            waiting.oldest_ms,
            waiting.unfinished,
            waiting.unreadable,
            waiting.why[:REMARK_MAX],
            self._remark,
            self._stumbles,
            self._lacks_marks and self._has_tried_marks,
            due_ms,
            waiting_records=waiting.records,
            expires_ms=dict(waiting.expires_ms),
        )
        self._reporter.tell(report, is_last=is_last)

    def _is_clock_trusted(self, plan: Plan) -> bool:
        doubt = self._clock.doubt(plan)
        if doubt is not None:
            self._remark = doubt
        return doubt == ""

    def _wall_ms(self) -> int:
        return self._clock.wall_ms()
