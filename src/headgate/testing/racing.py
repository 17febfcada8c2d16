"""Racing: calls in the background, at once, and until something is so. Everything has an end."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

import pytest

from headgate.ambient import Deadline, SystemAmbient
from headgate.errors import Conflict, HeadgateError, OutcomeUnknown, Unavailable

T = TypeVar("T")

PATIENCE_S = 60  # an upper bound for what should take moments; never a measurement


def in_background(call: Callable[..., T], *args: object, **named: object) -> Future[T]:
    """Ask for its result with a bound. What hangs fails its test and is left behind."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call(*args, **named))
        except BaseException as error:  # noqa: BLE001 - handed to whoever asks for the result
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def at_once(calls: Sequence[Callable[[], object]]) -> list[object]:
    barrier = threading.Barrier(len(calls))

    def synchronised(call: Callable[[], object]) -> object:
        barrier.wait()
        return call()

    running = [in_background(synchronised, call) for call in calls]
    return [one.result(PATIENCE_S) for one in running]


def eventually(call: Callable[[], T]) -> T:
    """Tries until the store lets it through; each try has a time limit of its own."""
    last: HeadgateError | None = None
    for _ in range(300):
        try:
            return call()
        except (Unavailable, OutcomeUnknown, Conflict) as error:
            last = error
            SystemAmbient().sleep_ms(100)
    pytest.fail(f"the store did not come back: {last}")


def until(condition: Callable[[], bool], *, within_s: float) -> bool:
    """Whether the condition came true in time, however long it takes to look."""
    ambient = SystemAmbient()
    deadline = Deadline(ambient, int(within_s * 1000))
    while not condition():
        if deadline.is_over():
            return False
        ambient.sleep_ms(20)
    return True
