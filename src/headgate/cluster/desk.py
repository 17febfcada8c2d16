"""Desk: the tasks this node holds, and which of them a worker has in its hand.

    held ── a worker takes it ──▶ in hand ── put back, with when it is due ──▶ held
     │                               └── over: done, failed for good, given back, fenced ──▶ off
     └── taken off, dropped ──▶ off

Nothing here touches the store. The steward puts on the desk what it claimed and takes off what it
gives back; workers take what is due. A task is in one hand at most, so that a node never runs two
works of one task: one that was dropped while in a worker's hand blocks its name until that worker
lets go.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from headgate.cluster import Work
from headgate.cluster.nudge import Nudge
from headgate.cluster.tasks import KeptTask, Trouble, is_start_of

Report = Callable[[], KeptTask]
AT_ONCE = 0  # milliseconds of a monotonic clock: long ago


@dataclass(slots=True, eq=False)
class Held:
    """A task on the desk. Only the worker that has it in hand changes what follows `task`."""

    task: KeptTask
    session: str
    epoch: int
    due_ms: int
    work: Work | None = None
    report: Report | None = None  # what the store must still be told
    is_started: bool = False  # its try is counted
    started_at_ms: int = 0
    trouble: Trouble | None = None
    is_in_hand: bool = False
    is_wanted_back: bool = False
    is_returning: bool = False  # the report gives it back: whoever comes next may tell it
    is_dropped: bool = False

    @property
    def key(self) -> str:
        return self.task.key


class Desk:
    def __init__(self) -> None:
        self._lock = threading.Lock()  # never held while anything else is called
        self._held: dict[str, Held] = {}
        self._leaving: dict[str, Held] = {}  # dropped, but still in a worker's hand
        self._outcomes: list[KeptTask] = []
        self.due = Nudge()  # wakes workers
        self.changed = Nudge()  # wakes the steward
        self.loose = Nudge()  # one was let go that may still be ours: its document tells

    def keys(self) -> list[str]:
        with self._lock:
            return list(self._held)

    def begun(self, until_ms: int) -> set[str]:
        """Keys of tasks whose work had started by then."""
        with self._lock:
            return {
                key
                for key, held in self._held.items()
                if held.is_started and held.started_at_ms <= until_ms
            }

    def in_hand(self) -> list[str]:
        with self._lock:
            return [key for key, held in self._held.items() if held.is_in_hand]

    def is_empty(self) -> bool:
        with self._lock:
            return not self._held and not self._leaving

    def epochs(self) -> dict[str, int]:
        with self._lock:
            return {key: held.epoch for key, held in self._held.items()}

    def hold(self, task: KeptTask, session: str, due_ms: int) -> bool:
        """False: a work of it is still in a worker's hand; try again later."""
        with self._lock:
            if task.key in self._leaving:
                return False
            if task.key not in self._held:
                self._held[task.key] = Held(task, session, task.value.epoch, due_ms)
        self.due.give()
        return True

    def drop(self, key: str) -> None:
        """It is not ours any more."""
        with self._lock:
            held = self._held.pop(key, None)
            if held is not None:
                held.is_dropped = True
                if held.is_in_hand:
                    self._leaving[key] = held

    def drop_all(self) -> dict[str, str]:
        """What is lost, with the start that was under way, if there was one."""
        with self._lock:
            starts = {key: (held.task.value.start, held.epoch) for key, held in self._held.items()}
        for key in starts:
            self.drop(key)
        return {key: start for key, (start, epoch) in starts.items() if is_start_of(start, epoch)}

    def take_off(self, key: str) -> Held | None:
        """For giving it back; in the taker's hand until it lets go. None: a worker has it in hand
        or takes it next, brings its work to a good end, and gives it back itself."""
        with self._lock:
            held = self._held.get(key)
            if held is None:
                return None
            if held.is_in_hand or (held.report is not None and not held.is_returning):
                held.is_wanted_back = True
                return None
            if held.work is None or (held.is_wanted_back and held.due_ms > AT_ONCE):
                held.is_in_hand = True
                self._leaving[key] = self._held.pop(key)
                return held
            # Its work was begun: it comes to a good end first, and its worker gives it back.
            held.is_wanted_back = True
            held.due_ms = AT_ONCE
        self.due.give()
        return None

    def take_due(self, now_ms: int) -> Held | None:
        """The one that is due longest; in the taker's hand from now on."""
        with self._lock:
            waiting = [held for held in self._held.values() if not held.is_in_hand]
            first = min(waiting, key=lambda held: held.due_ms, default=None)
            if first is None or first.due_ms > now_ms:
                return None
            first.is_in_hand = True
            return first

    def next_due_ms(self, otherwise_ms: int) -> int:
        with self._lock:
            dues = [held.due_ms for held in self._held.values() if not held.is_in_hand]
        return min([*dues, otherwise_ms])

    def put_back(self, held: Held, due_ms: int) -> None:
        with self._lock:
            held.is_in_hand = False
            held.due_ms = due_ms
            was_leaving = self._leaving.pop(held.key, None) is not None
            if not held.is_dropped:
                self._held.setdefault(held.key, held)  # it had been taken off
        self.due.give()
        if was_leaving:
            self.changed.give()  # its name is free again

    def let_go(self, held: Held, outcome: KeptTask | None) -> None:
        """Off the desk, with what became of its document, if that is known."""
        with self._lock:
            held.is_in_hand = False
            self._leaving.pop(held.key, None)
            if self._held.get(held.key) is held:
                del self._held[held.key]
            if outcome is not None:
                self._outcomes.append(outcome)
            is_loose = outcome is None and not held.is_dropped
        if is_loose:
            self.loose.give()
        self.changed.give()

    def outcomes(self) -> tuple[list[KeptTask], dict[str, int]]:
        """What workers wrote since the last call, and the epochs of what is held now.

        At one moment: what is off the desk is among the outcomes, of this call or an earlier one.
        Asked one after the other, a task finished in between would look like one to be held again.
        """
        with self._lock:
            found, self._outcomes = self._outcomes, []
            return found, {key: held.epoch for key, held in self._held.items()}
