"""Jobs: one job of the engine serves all shards of the same shape that are due on this node.

    a shard submits ──▶ ticket ── gathered for a moment ──▶ one job ──▶ each ticket has its share
                                                             └── failed: again in halves ──▶ …

Shards of several streams share a job if they read a log. It writes into a folder that belongs to
the first of them; then each share is moved into an attempt of its own, of its own stream: what is
left of a job that came to nothing is swept with the first one's, and no journal can name it.

Each shard then commits for itself. A job that fails is repeated in halves, so that only a job of
one shard counts as that shard's try: a poison shard costs the others time, and nothing else.

A question is whether the engine takes the expressions of a shape. It is asked once, before any job
that comes after it, and needs no record.
"""

import logging
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from headgate.ambient import Ambient
from headgate.cluster.nudge import Nudge
from headgate.engine import Engine, Job, Shape, ShardInput, StagedFile, Tally
from headgate.engine.failure import JobFailed
from headgate.errors import Fenced, Invalid, OutcomeUnknown, Unavailable
from headgate.lake import Lake
from headgate.lake.guarded import Permit
from headgate.landing.names import attempt_folder, labels_of, shard_folder

GATHER_MS = 200  # so long a ticket waits for others of its shape
SHARDS_MAX = 12  # of one stream in one job: their labels are in the name of its folder
TOGETHER_MAX = 500  # of several streams
TOGETHER = "together"
IDLE_MS = 60_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Share:
    """What a job staged for one shard."""

    folder: str  # of the shard in the attempt
    attempt: str
    files: tuple[StagedFile, ...]
    tallies: tuple[Tally, ...]


@dataclass(slots=True, eq=False)
class Ticket:
    """What one shard wants to have staged. The loop sets `outcome`, once."""

    shape: Shape
    input: ShardInput
    permit: Permit
    due_ms: int  # until then it waits for others of its shape
    outcome: Share | Exception | None = None
    is_given_up: bool = False  # its shard is gone: nobody wants it


@dataclass(slots=True, eq=False)
class Question:
    """Whether the engine takes a shape. The loop answers."""

    shape: Shape
    is_answered: bool = False
    refusal: Invalid | None = None  # what the settings must be corrected in


@dataclass(slots=True)
class _Attempt:
    folder: str
    labels: set[str] = field(default_factory=set)  # whose share was not let go
    left: set[str] = field(default_factory=set)  # of them: only the sweeper may remove it


class Jobs:
    """A loop of the node. `submit` and `let_go` are for shards, from their own threads."""

    def __init__(self, engine: Engine, lake: Lake, ambient: Ambient) -> None:
        self._engine = engine
        self._lake = lake
        self._ambient = ambient
        self._lock = threading.Lock()  # never held while anything else is called
        self._waiting: deque[Ticket] = deque()
        self._attempts: dict[str, _Attempt] = {}
        self._questions: dict[Shape, Question] = {}
        self.nudge = Nudge()  # wakes this loop
        self.ran = 0  # jobs, for tests and status

    def submit(
        self, shape: Shape, wanted: ShardInput, permit: Permit, *, is_alone: bool = False
    ) -> Ticket:
        """`is_alone`: no other shard has its shape."""
        due_ms = self._ambient.monotonic_ms() + (0 if is_alone else GATHER_MS)
        ticket = Ticket(shape, wanted, permit, due_ms)
        with self._lock:
            self._waiting.append(ticket)
        self.nudge.give()
        return ticket

    def ask(self, shape: Shape) -> Question:
        """The same for all who ask for this shape."""
        with self._lock:
            question = self._questions.setdefault(shape, Question(shape))
        self.nudge.give()
        return question

    def tick(self) -> int:
        """One question that was not asked yet, or one job, if one is due."""
        now_ms = self._ambient.monotonic_ms()
        with self._lock:
            open_ = [one for one in self._questions.values() if not one.is_answered]
        if open_:
            self._answer(open_[0])
            return now_ms
        with self._lock:
            first = self._waiting[0] if self._waiting else None
            if first is None:
                return now_ms + IDLE_MS
            if now_ms < first.due_ms:
                return first.due_ms
            batch = _batch(first, self._waiting)
            for ticket in batch:
                self._waiting.remove(ticket)
        self._run(batch)
        return self._ambient.monotonic_ms()

    def give_up(self, ticket: Ticket) -> Share | Exception | None:
        """Nobody wants it any more; what came of it so far is the caller's to deal with."""
        with self._lock:
            ticket.is_given_up = True
            return ticket.outcome

    def let_go(self, share: Share, label: str) -> None:
        """A shard needs its share no more: it is removed, and the attempt's folder with the last
        one. Raises Unavailable, OutcomeUnknown: then the sweeper has more to do."""
        with self._lock:
            attempt = self._attempts.get(share.attempt)
            if attempt is not None:
                attempt.labels.discard(label)
                if not attempt.labels:
                    del self._attempts[share.attempt]
            is_last = len(labels_of(share.attempt.rpartition("/")[2]) or ()) == 1
            is_last |= attempt is not None and not attempt.labels
        self._lake.remove_folder(share.attempt if is_last else share.folder)

    def leave(self, share: Share, label: str) -> None:
        """A shard has no use for its share, but a journal may name it: it stays where it is, for
        the sweeper, who knows the journal. Nobody else's letting go removes it."""
        with self._lock:
            attempt = self._attempts.get(share.attempt)
            if attempt is not None:
                attempt.left.add(label)

    def is_needed(self, folder: str, label: str) -> bool:
        """Whether a job is writing for this shard into the attempt's folder, or somebody has a use
        for what it wrote. Of attempts of this node only."""
        with self._lock:
            attempt = self._attempts.get(folder)
            return attempt is not None and label in attempt.labels - attempt.left

    def _answer(self, question: Question) -> None:
        try:
            self._engine.check(question.shape)
        except Invalid as error:
            question.refusal = error
        except (Unavailable, JobFailed) as error:
            # The first job says it again, if it still is so.
            log.warning("job.unasked", extra={"stream": question.shape.stream, "why": str(error)})
        finally:
            question.is_answered = True

    def _run(self, batch: Sequence[Ticket]) -> None:
        tickets = [ticket for ticket in batch if self._is_wanted(ticket)]
        if not tickets:
            return
        layout = self._layout(tickets)
        self.ran += 1
        try:
            staged = self._engine.stage(Job(tickets[0].shape, layout.folder, layout.inputs))
        except JobFailed as error:
            refused = self._refusal(layout.folder)
            self._clean(layout)
            if refused is not None:
                for ticket in tickets:
                    ticket.outcome = refused
                return
            if len(tickets) == 1:
                tickets[0].outcome = error
                return
            labels = [ticket.input.label for ticket in tickets]
            log.warning("job.halved", extra={"shards": labels, "why": str(error)})
            middle = len(tickets) // 2
            self._run(tickets[:middle])
            self._run(tickets[middle:])
            return
        except Exception as error:  # noqa: BLE001 - also what is no error of ours: nobody may wait for ever
            self._clean(layout)
            for ticket in tickets:
                ticket.outcome = error
            return
        if layout.is_together:
            self._forget(layout.folder)  # what each needs lies elsewhere by now
        for ticket, wanted, (folder, attempt) in zip(
            tickets, layout.inputs, layout.places, strict=True
        ):
            label = ticket.input.label
            share = Share(
                folder,
                attempt,
                tuple(
                    replace(file, label=label)
                    for file in staged.files
                    if file.label == wanted.label
                ),
                tuple(
                    replace(tally, label=label)
                    for tally in staged.tallies
                    if tally.label == wanted.label
                ),
            )
            with self._lock:  # who gives up later finds the share, and lets it go
                is_unwanted = ticket.is_given_up
                ticket.outcome = share
            if is_unwanted:
                with suppress(Unavailable, OutcomeUnknown):  # else the sweeper has more to do
                    self.let_go(share, label)

    def _layout(self, tickets: Sequence[Ticket]) -> "_Layout":
        """Where the job writes; what it is going to write is known as needed before it does."""
        new_id, first = self._ambient.new_id, tickets[0]
        labels = [ticket.input.label for ticket in tickets]
        if len({ticket.shape.stream for ticket in tickets}) == 1:
            folder = attempt_folder(first.shape.stream, new_id, labels)
            with self._lock:
                self._attempts[folder] = _Attempt(folder, set(labels))
            places = tuple((shard_folder(folder, label), folder) for label in labels)
            return _Layout(folder, tuple(ticket.input for ticket in tickets), places)
        attempts = [attempt_folder(one.shape.stream, new_id, [one.input.label]) for one in tickets]
        places = tuple(
            (shard_folder(attempt, label), attempt)
            for attempt, label in zip(attempts, labels, strict=True)
        )
        # Two streams may have the same label.
        inputs = tuple(
            replace(ticket.input, label=str(n), folder=folder)
            for n, (ticket, (folder, _)) in enumerate(zip(tickets, places, strict=True))
        )
        together = attempt_folder(first.shape.stream, new_id, labels[:1])
        with self._lock:
            self._attempts[together] = _Attempt(together, {labels[0]})
            for attempt, label in zip(attempts, labels, strict=True):
                self._attempts[attempt] = _Attempt(attempt, {label})
        return _Layout(f"{together}/{TOGETHER}", inputs, places, is_together=True)

    def _is_wanted(self, ticket: Ticket) -> bool:
        if ticket.is_given_up:
            return False
        try:
            ticket.permit.check()
        except Fenced as error:
            ticket.outcome = error
            return False
        return True

    def _refusal(self, folder: str) -> Unavailable | None:
        """Why the lake takes nothing, if that is so: then no shard made the job fail, and the
        engine may have said it in other words."""
        try:
            self._lake.stage(f"{folder}/probe", b"is there room?")
        except Unavailable as error:
            return error
        except OutcomeUnknown:
            return None
        return None

    def _clean(self, layout: "_Layout") -> None:
        """Of a job that failed: nobody was told of it, so nothing can name it."""
        self._forget(layout.folder)
        if layout.is_together:
            for _, attempt in layout.places:
                self._forget(attempt)

    def _forget(self, folder: str) -> None:
        attempt = folder.removesuffix(f"/{TOGETHER}")
        with self._lock:
            self._attempts.pop(attempt, None)
        try:
            self._lake.remove_folder(attempt)
        except (Unavailable, OutcomeUnknown) as error:
            log.warning("job.rubbish_left", extra={"folder": attempt, "why": str(error)})


def _batch(first: Ticket, waiting: Iterable[Ticket]) -> list[Ticket]:
    """All that can share a job with the first; in their order."""
    if not first.shape.is_shared:
        return [one for one in waiting if one.shape == first.shape][:SHARDS_MAX]
    shape = replace(first.shape, stream="")
    alike = [one for one in waiting if replace(one.shape, stream="") == shape][:TOGETHER_MAX]
    is_one_stream = len({one.shape.stream for one in alike}) == 1
    return alike[:SHARDS_MAX] if is_one_stream else alike


@dataclass(frozen=True, slots=True)
class _Layout:
    folder: str  # of the job
    inputs: tuple[ShardInput, ...]
    places: tuple[tuple[str, str], ...]  # of each: its folder, and its attempt
    is_together: bool = False  # of several streams
