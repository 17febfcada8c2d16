"""Racing: calls in the background, at once, and until something is so. Everything has an end."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import pytest

from headgate.ambient import SystemAmbient
from headgate.errors import Conflict, HeadgateError, OutcomeUnknown, Unavailable

T = TypeVar("T")

PATIENCE_S = 60  # an upper bound for what should take moments; never a measurement


class Threads:
    """Calls in the background. What hangs fails its test and is left behind."""

    def __enter__(self) -> "Threads":
        self._pool = ThreadPoolExecutor(max_workers=16)
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def start(self, call: Callable[..., T], *args: object, **named: object) -> Future[T]:
        return self._pool.submit(call, *args, **named)


def at_once(calls: Sequence[Callable[[], object]]) -> list[object]:
    barrier = threading.Barrier(len(calls))

    def synchronised(call: Callable[[], object]) -> object:
        barrier.wait()
        return call()

    with Threads() as threads:
        running = [threads.start(synchronised, call) for call in calls]
        return [one.result(PATIENCE_S) for one in running]


def eventually(call: Callable[[], T]) -> T:
    last: HeadgateError | None = None
    for _ in range(40):  # each try has its own time limit
        try:
            return call()
        except (Unavailable, OutcomeUnknown, Conflict) as error:
            last = error
            SystemAmbient().sleep_ms(250)
    pytest.fail(f"the store did not come back: {last}")


def until(condition: Callable[[], bool], *, within_s: float) -> bool:
    """Whether the condition came true in time."""
    for _ in range(int(within_s / 0.02)):
        if condition():
            return True
        SystemAmbient().sleep_ms(20)
    return condition()
