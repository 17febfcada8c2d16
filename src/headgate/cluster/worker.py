"""Worker: a slot of a node that does one piece of one task at a time.

    take what is due ──▶ start it, if it is new: count the try, look whether it was removed
                    ──▶ one tick of its work ──▶ put back | done | failed | given back | fenced

What the store must be told (done, failed, given back) is kept with the task until the store took
it: an outage in that moment costs time, not the result. A task that raises is the task's failure,
never the node's.
"""

import logging
from collections.abc import Callable, Mapping

from headgate.ambient import Ambient
from headgate.cluster import Kind
from headgate.cluster.desk import Desk, Held
from headgate.cluster.feeds import FeedState, feed_key, is_removed
from headgate.cluster.tasks import (
    FAILED_TRIES_MAX,
    UNUSABLE_MS,
    WORDS_MAX,
    KeptTask,
    Task,
    Trouble,
    failed,
    feed_and_number,
    finished,
    given_back,
    is_start_of,
    payload_of,
    proved_well,
    put_aside,
    release_command,
    shown,
    started,
)
from headgate.cluster.trust import GuardedStore, SessionPermit, Trust
from headgate.errors import (
    Conflict,
    Corrupt,
    Ended,
    Fenced,
    Halted,
    Invalid,
    OutcomeUnknown,
    Unavailable,
)
from headgate.store import DocumentStore
from headgate.store.changes import change, read

RETRY_MS = 1_000  # after the first failure; each further one waits four times as long
RETRY_MS_MAX = 60_000
AGAIN_MS = 1_000  # after Unavailable
IDLE_MS = 60_000

log = logging.getLogger(__name__)


class Assigned:
    """What a work knows of its task: the `Assignment` of `headgate.cluster`."""

    def __init__(
        self, held: Held, payload: bytes, node: str, trust: Trust, is_draining: Callable[[], bool]
    ) -> None:
        self._held = held
        self._trust = trust
        self._is_draining = is_draining
        self.key = held.key
        self.payload = payload
        self.epoch = held.epoch
        self.node = node

    @property
    def is_draining(self) -> bool:
        return self._is_draining() or self._held.is_wanted_back

    def check(self) -> None:
        if self._held.is_dropped:
            raise Fenced(f"{self.key}: epoch {self.epoch} is over; this holder stops")
        self._trust.check(self._held.session)

    def guard(self, store: DocumentStore) -> DocumentStore:
        return GuardedStore(store, self)

    def left_ms(self) -> int:
        return 0 if self._held.is_dropped else self._trust.left_ms(self._held.session)


class Worker:
    def __init__(
        self,
        store: DocumentStore,
        desk: Desk,
        trust: Trust,
        kinds: Mapping[str, Kind],
        ambient: Ambient,
        node: str,
        is_draining: Callable[[], bool],
    ) -> None:
        self._store = store
        self._desk = desk
        self._trust = trust
        self._kinds = kinds
        self._ambient = ambient
        self._node = node
        self._is_draining = is_draining
        self.nudge = desk.due  # wakes this loop
        self.failures = 0  # of tasks, while this worker ran

    def tick(self) -> int:
        """One piece of one task. Whatever the task raises is caught, counted and stored."""
        now_ms = self._ambient.monotonic_ms()
        session = self._trust.session
        if session is None or self._trust.left_ms(session) == 0:
            return now_ms + AGAIN_MS
        held = self._desk.take_due(now_ms)
        if held is None:
            return self._desk.next_due_ms(now_ms + IDLE_MS)
        try:
            self._advance(held)
        except Fenced as error:
            log.info(
                "task.fenced", extra={"task": held.key, "epoch": held.epoch, "why": str(error)}
            )
            self._desk.let_go(held, None)
        except (Unavailable, OutcomeUnknown, Conflict) as error:
            # The store or what the task needs is out of reach: not the task's fault.
            log.warning("task.waits", extra={"task": held.key, "why": str(error)})
            held.trouble = self._trouble(error)
            self._put_back(held, AGAIN_MS)
        except (Corrupt, Invalid) as error:
            # Its document or its feed's is damaged: the others go on.
            log.error("task.unusable", extra={"task": held.key, "why": str(error)})
            held.trouble = self._trouble(error)
            self._put_back(held, UNUSABLE_MS)
        except BaseException:
            self._desk.let_go(held, None)
            raise
        return self._ambient.monotonic_ms()

    def _advance(self, held: Held) -> None:
        store = GuardedStore(self._store, SessionPermit(self._trust, held.session))
        if held.report is not None:
            self._tell(held)
            return
        if held.work is None and (held.is_wanted_back or self._is_draining()):
            self._report(held, lambda: self._give_back(store, held))
            return
        if not held.is_started and not self._start(store, held):
            return
        try:
            due_ms = self._work(held)
        except (Ended, Fenced, Unavailable, OutcomeUnknown, Conflict):
            raise
        except BaseException as error:  # noqa: BLE001 - the boundary of a task: all of it is its own
            self._fail(store, held, error)
            return
        held.trouble = None
        if due_ms is None:
            self._report(held, lambda: self._finish(store, held))
        elif held.is_wanted_back or self._is_draining():
            self._report(held, lambda: self._give_back(store, held))
        else:
            self._note_well(store, held)
            self._put_back(held, max(0, due_ms - self._ambient.monotonic_ms()))

    def _work(self, held: Held) -> int | None:
        if held.work is None:
            kind = self._kinds.get(held.task.value.kind)
            if kind is None:
                known = ", ".join(sorted(self._kinds)) or "none"
                raise Invalid(
                    f"no task kind {held.task.value.kind!r} on this node, known are: {known}; "
                    "next: run all nodes with the same release"
                )
            assigned = Assigned(
                held, payload_of(held.task), self._node, self._trust, self._is_draining
            )
            held.work = kind.start(assigned)
        due_ms = held.work.tick()
        if due_ms is not None and not isinstance(due_ms, int):
            raise TypeError(f"tick() returned {type(due_ms).__name__}, not a millisecond or None")
        return due_ms

    def _start(self, store: DocumentStore, held: Held) -> bool:
        """Counts the try. False: there is nothing to run."""
        if is_zombie_now(store, held.key):
            log.info("task.removed_before", extra={"task": held.key})
            self._desk.let_go(held, None)
            return False
        before = held.task.value
        if before.tries >= FAILED_TRIES_MAX and not is_start_of(before.start, held.epoch):
            words = f"its node ended {before.tries} times while it ran"
            if before.error is not None:
                words += f"; the last error before: {before.error.words}"
            trouble = Trouble(words[:WORDS_MAX], self._node, self._wall_ms())
            self._report(held, lambda: self._put_aside(store, held, trouble))
            return False
        held.task = change(
            store,
            held.key,
            Task,
            lambda task: started(held.key, task, held.session, held.epoch),
            held.task,
        )
        held.is_started = True
        held.started_at_ms = self._ambient.monotonic_ms()
        return True

    def _fail(self, store: DocumentStore, held: Held, error: BaseException) -> None:
        self.failures += 1
        trouble = self._trouble(error)
        tries = held.task.value.tries
        is_over = tries >= FAILED_TRIES_MAX or isinstance(error, Halted)
        log.warning("task.failed", extra={"task": held.key, "tries": tries, "why": trouble.words})
        log.debug("task.traceback", extra={"task": held.key}, exc_info=error)
        held.trouble = trouble
        held.work = None
        if isinstance(error, Halted):
            self._report(held, lambda: self._put_aside(store, held, trouble))
        elif is_over:
            self._report(held, lambda: self._write_failure(store, held, trouble))
        else:
            self._write_failure(store, held, trouble)
            held.is_started = False  # the next start counts as the next try
            pause_ms: int = RETRY_MS * 4 ** max(0, tries - 1)  # 0 tries: it was forgiven them
            self._put_back(held, min(pause_ms, RETRY_MS_MAX))

    def _write_failure(self, store: DocumentStore, held: Held, trouble: Trouble) -> KeptTask:
        held.task = change(
            store,
            held.key,
            Task,
            lambda task: failed(held.key, task, held.session, held.epoch, trouble),
            held.task,
        )
        if held.task.value.set_aside is not None:
            self._log_set_aside(held, trouble)
        return held.task

    def _report(self, held: Held, report: Callable[[], KeptTask]) -> None:
        """Tells the store how it ended; if that fails, again later, and nothing else."""
        held.report = report
        self._tell(held)

    def _tell(self, held: Held) -> None:
        assert held.report is not None  # noqa: S101 - for the type checker
        outcome = held.report()
        held.work = None
        self._desk.let_go(held, outcome)

    def _finish(self, store: DocumentStore, held: Held) -> KeptTask:
        kept = change(
            store,
            held.key,
            Task,
            lambda task: finished(held.key, task, held.session, held.epoch),
            held.task,
        )
        log.info("task.done", extra={"task": held.key, "epoch": held.epoch})
        return kept

    def _give_back(self, store: DocumentStore, held: Held) -> KeptTask:
        kept = change(
            store,
            held.key,
            Task,
            lambda task: given_back(task, held.session, held.epoch),
        )
        log.info("task.given_back", extra={"task": held.key, "epoch": held.epoch})
        return kept

    def _put_aside(self, store: DocumentStore, held: Held, trouble: Trouble) -> KeptTask:
        kept = change(
            store,
            held.key,
            Task,
            lambda task: put_aside(held.key, task, held.session, held.epoch, trouble),
        )
        self._log_set_aside(held, trouble)
        return kept

    def _log_set_aside(self, held: Held, trouble: Trouble) -> None:
        name = shown(held.key)
        kind = self._kinds.get(held.task.value.kind)
        following = release_command(name) if kind is None else kind.release_command(name)
        extra = {"task": name, "why": trouble.words, "next": following}
        log.warning("task.set_aside", extra=extra)

    def _note_well(self, store: DocumentStore, held: Held) -> None:
        ran_ms = self._ambient.monotonic_ms() - held.started_at_ms
        well_ms = None if held.work is None else held.work.well_ms
        if held.task.value.tries and well_ms is not None and ran_ms >= well_ms:
            held.task = change(
                store,
                held.key,
                Task,
                lambda task: proved_well(held.key, task, held.session, held.epoch),
                held.task,
            )

    def _put_back(self, held: Held, pause_ms: int) -> None:
        self._desk.put_back(held, self._ambient.monotonic_ms() + pause_ms)

    def _trouble(self, error: BaseException) -> Trouble:
        return Trouble(words_of(error), self._node, self._wall_ms())

    def _wall_ms(self) -> int:
        return self._ambient.wall_ns() // 1_000_000


def words_of(error: BaseException) -> str:
    """What can be stored, whatever the error says of itself."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - somebody else's code
        said = "it cannot say what happened"
    words = f"{type(error).__name__}: {said}"[:WORDS_MAX]
    return words.encode("utf-8", "backslashreplace").decode("utf-8")


def is_zombie_now(store: DocumentStore, key: str) -> bool:
    """Asked after the claim and before the start: only then can nobody remove it in between."""
    feed, number = feed_and_number(key)
    state = read(store, feed_key(feed), FeedState)
    return state is not None and is_removed(state.value, number)
