"""Timeline: what happens when. Simulated time stands still while code runs, then jumps on.

Things of the same moment happen in the order in which they were planned. Whoever has something to
observe is told at once, in that order, too.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

from headgate.testing.simulation.events import Event, Observer
from headgate.testing.strands import getcurrent

START_US = 1_793_491_200_000_000  # of simulated time, on the wall: 2026-11-01 00:00 UTC
LOOK_EVERY_US = 100_000


class Timeline:
    def __init__(self) -> None:
        self.now_us = 0
        self.heap: list[tuple[int, int, Callable[[], object]]] = []
        self.next_number = count().__next__
        self.observers: list[Observer] = []
        self._failure: Exception | None = None
        self.hub = getcurrent()  # where run() runs; every strand gives back to it

    @property
    def now_ms(self) -> int:
        return self.now_us // 1_000

    def push(self, time_us: int, action: Callable[[], object]) -> None:
        heappush(self.heap, (time_us, self.next_number(), action))

    def at(self, time_ms: float, action: Callable[[], object]) -> None:
        """Outside of every machine. A moment that is past is now."""
        self.push(max(self.now_us, int(time_ms * 1_000)), action)

    def observe(self, observer: Observer) -> None:
        self.observers.append(observer)

    def emit(self, event: Event) -> None:
        """What an observer raises comes out of `run`: the code that is observed must not catch it
        as a failure of its own."""
        try:
            for observer in self.observers:
                observer(event)
        except Exception as error:  # noqa: BLE001  # a checker may raise anything
            self._failure = self._failure or error

    def run(self, until_ms: float, is_over: Callable[[], bool] | None = None) -> bool:
        """Until then, or until it is over (asked every 100 ms): was it over?

        What an observer or a machine's code raises comes out here; not what a loop handles.
        """
        limit_us = int(until_ms * 1_000)
        look_us = self.now_us
        heap = self.heap
        while heap and heap[0][0] <= limit_us:
            if is_over is not None and heap[0][0] >= look_us:
                if is_over():
                    return True
                look_us = heap[0][0] + LOOK_EVERY_US
            self.now_us, _, action = heappop(heap)
            action()
            if self._failure is not None:
                raise self._failure
        self.now_us = max(self.now_us, limit_us)
        return is_over is not None and is_over()
