"""Node: one running Headgate process. The only place that starts threads and waits.

    starting ──▶ running ── drain: a signal, or a person's command ──▶ draining ──▶ left
                    └── kill, crash, a second signal: its session is closed by others within a term

Each loop has a thread. What a loop raises is logged and counted, and the loop goes on: an error
never ends it, the next tick sees everything anew. Draining lets the pieces in hand finish, gives
every right back and leaves; it has an end, after which the rest is left to the others.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait  # noqa: TID251 - here threads start
from enum import Enum
from typing import TypeVar

from headgate.ambient import Ambient, Deadline
from headgate.cluster.duties import Duties, Loop
from headgate.errors import Fenced, HeadgateError, OutcomeUnknown, Unavailable

RETRY_MS = 500  # after an error, with as much again by chance
DRAIN_MS = 60_000
LEAVE_MS = 5_000
POLL_MS = 100
HANDS = 8
HANDS_WORTH = 4  # fewer things are done sooner without help
COMPLAIN_MS = 60_000  # between two complaints about the same

log = logging.getLogger(__name__)


T = TypeVar("T")
R = TypeVar("R")


class Hands:
    """Does the same with many things at once: `headgate.lake.local.Each`. Closing twice is fine."""

    def __init__(self, count: int = HANDS) -> None:
        # Not one of the node's loops: they only wait for the file system, each for a moment.
        self._pool = ThreadPoolExecutor(count, "hand")

    def each(self, act: Callable[[T], R], things: Sequence[T]) -> list[R]:
        """What the first of them raises comes out, after all have ended."""
        if len(things) < HANDS_WORTH:
            return [act(thing) for thing in things]
        futures = [self._pool.submit(act, thing) for thing in things]
        wait(futures)
        return [future.result() for future in futures]

    def close(self) -> None:
        self._pool.shutdown()


class Ending(Enum):
    DRAINED = "everything is given back"
    TIMED_OUT = "work in hand did not come to an end in time"
    UNHEARD = "the store could not be told"


class Node:
    def __init__(self, duties: Duties, ambient: Ambient, *, drain_ms: int = DRAIN_MS) -> None:
        self._duties = duties
        self._ambient = ambient
        self._drain_ms = drain_ms
        self._is_stopped = threading.Event()
        self._wakes: list[threading.Event] = []
        self.errors: Counter[str] = Counter()  # by loop
        self._complaints: dict[str, tuple[str, int]] = {}  # by loop: what was said, and when

    def drain(self) -> None:
        """Asks it to stop in good order. Asking twice is fine; safe in a signal handler."""
        self._duties.drain()

    def run(self, on_poll: Callable[[], None] = lambda: None) -> Ending:
        """Until it is drained, or cannot be."""
        threads = [
            threading.Thread(  # noqa: TID251 - node is the place that starts threads
                target=self._run_loop, args=(name, loop), name=name, daemon=True
            )
            for name, loop in self._duties.loops().items()
        ]
        for thread in threads:
            thread.start()
        while not self._duties.steward.is_draining:
            on_poll()
            self._ambient.sleep_ms(POLL_MS)
        self._duties.drain()  # asked for by a document: the other loops must know, too
        ending = self._wait_until_drained(on_poll)
        if not self._leave() and ending is Ending.DRAINED:
            ending = Ending.UNHEARD
        self._is_stopped.set()
        for wake in self._wakes:
            wake.set()
        for thread in threads:
            if thread.name != "listener":  # it waits in the store, which is closed next
                thread.join(POLL_MS / 1000)
        return ending

    def _wait_until_drained(self, on_poll: Callable[[], None]) -> Ending:
        deadline = Deadline(self._ambient, self._drain_ms)
        patience = Deadline(self._ambient, LEAVE_MS)  # a store that is away may come back
        while not self._duties.is_drained:
            if deadline.is_over():
                held = self._duties.desk.keys()
                log.warning("node.drain_timed_out", extra={"held": len(held)})
                return Ending.TIMED_OUT
            session = self._duties.trust.session
            may_act = session is not None and self._duties.trust.left_ms(session) > 0
            if may_act:
                patience = Deadline(self._ambient, LEAVE_MS)
            elif patience.is_over() and not self._duties.desk.in_hand():
                return Ending.UNHEARD  # nothing is under way, and the store cannot be told
            on_poll()
            self._ambient.sleep_ms(POLL_MS / 5)
        return Ending.DRAINED

    def _leave(self) -> bool:
        deadline = Deadline(self._ambient, LEAVE_MS)
        while True:
            try:
                self._duties.membership.leave()
            except (Unavailable, OutcomeUnknown) as error:
                if deadline.is_over():
                    log.warning("node.could_not_leave", extra={"why": str(error)})
                    return False  # its session ends by itself, within a term
                self._ambient.sleep_ms(POLL_MS)
            else:
                return True

    def _run_loop(self, name: str, loop: Loop) -> None:
        wake = threading.Event()
        self._wakes.append(wake)
        loop.nudge.on_give(wake.set)
        while True:
            wake.clear()  # before the question: a stop just after it is not slept through
            if self._is_stopped.is_set():
                return
            due_ms = self._tick(name, loop)
            wake.wait(max(0, due_ms - self._ambient.monotonic_ms()) / 1000)

    def _tick(self, name: str, loop: Loop) -> int:
        try:
            due_ms = loop.tick()
        except Fenced as error:
            log.info("loop.fenced", extra={"loop": name, "why": str(error)})
        except HeadgateError as error:
            self._complain(name, error)
        except BaseException:
            self.errors[name] += 1
            log.exception("loop.bug", extra={"loop": name})
        else:
            if name in self._complaints:
                del self._complaints[name]
                log.warning("loop.recovered", extra={"loop": name})
            return due_ms
        return self._ambient.monotonic_ms() + int(RETRY_MS * (1 + self._ambient.random()))

    def _complain(self, name: str, error: HeadgateError) -> None:
        """When it begins, when it changes, and now and then: an outage must not flood the log."""
        self.errors[name] += 1
        now_ms, group = self._ambient.monotonic_ms(), type(error).__name__
        said, at_ms = self._complaints.get(name, ("", 0))
        if said != group or now_ms >= at_ms + COMPLAIN_MS:
            self._complaints[name] = (group, now_ms)
            log.warning("loop.failed", extra={"loop": name, "group": group, "why": str(error)})
