"""Jobs: one job of the engine serves all shards of the same shape that are due on this node.

    a shard submits ──▶ ticket ── gathered for a moment ──▶ one job ──▶ each ticket has its share
                                                             └── failed: again in halves ──▶ …

Each shard then commits for itself. A job that fails is repeated in halves, so that only a job of
one shard counts as that shard's try: a poison shard costs the others time, and nothing else.
"""

import logging
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from headgate.ambient import Ambient
from headgate.cluster.nudge import Nudge
from headgate.engine import Engine, Job, Shape, ShardInput, StagedFile, Tally
from headgate.engine.failure import JobFailed
from headgate.errors import Fenced, OutcomeUnknown, Unavailable
from headgate.lake import Lake
from headgate.lake.guarded import Permit
from headgate.landing.names import attempt_folder, labels_of, shard_folder

GATHER_MS = 200  # so long a ticket waits for others of its shape
SHARDS_MAX = 12  # of one job: their labels are in the name of its folder
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

    def tick(self) -> int:
        """One job, if one is due."""
        now_ms = self._ambient.monotonic_ms()
        with self._lock:
            first = self._waiting[0] if self._waiting else None
            if first is None:
                return now_ms + IDLE_MS
            if now_ms < first.due_ms:
                return first.due_ms
            batch = [one for one in self._waiting if one.shape == first.shape][:SHARDS_MAX]
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

    def _run(self, batch: Sequence[Ticket]) -> None:
        tickets = [ticket for ticket in batch if self._is_wanted(ticket)]
        if not tickets:
            return
        labels = [ticket.input.label for ticket in tickets]
        shape = tickets[0].shape
        folder = attempt_folder(shape.stream, self._ambient.new_id, labels)
        with self._lock:
            self._attempts[folder] = _Attempt(folder, set(labels))
        self.ran += 1
        try:
            staged = self._engine.stage(Job(shape, folder, tuple(one.input for one in tickets)))
        except JobFailed as error:
            refused = self._refusal(folder)
            self._clean(folder)
            if refused is not None:
                for ticket in tickets:
                    ticket.outcome = refused
                return
            if len(tickets) == 1:
                tickets[0].outcome = error
                return
            log.warning("job.halved", extra={"shards": labels, "why": str(error)})
            middle = len(tickets) // 2
            self._run(tickets[:middle])
            self._run(tickets[middle:])
            return
        except Exception as error:  # noqa: BLE001 - also what is no error of ours: nobody may wait for ever
            self._clean(folder)
            for ticket in tickets:
                ticket.outcome = error
            return
        for ticket in tickets:
            label = ticket.input.label
            share = Share(
                shard_folder(folder, label),
                folder,
                tuple(file for file in staged.files if file.label == label),
                tuple(tally for tally in staged.tallies if tally.label == label),
            )
            with self._lock:  # who gives up later finds the share, and lets it go
                is_unwanted = ticket.is_given_up
                ticket.outcome = share
            if is_unwanted:
                with suppress(Unavailable, OutcomeUnknown):  # else the sweeper has more to do
                    self.let_go(share, label)

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

    def _clean(self, folder: str) -> None:
        """Of a job that failed: nobody was told of it, so nothing can name it."""
        with self._lock:
            self._attempts.pop(folder, None)
        try:
            self._lake.remove_folder(folder)
        except (Unavailable, OutcomeUnknown) as error:
            log.warning("job.rubbish_left", extra={"folder": folder, "why": str(error)})
