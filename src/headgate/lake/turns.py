"""Turns: one writer at a time, by an advisory lock of the system, and never waited for for ever."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from shlex import quote

from headgate.ambient import Ambient, Deadline
from headgate.errors import Unavailable

WAIT_MS = 5_000
LOOK_MS = 5


@contextmanager
def one_at_a_time(handle: int, place: str, ambient: Ambient) -> Iterator[None]:
    """The file or folder of this handle is ours. Raises Unavailable, OSError."""
    _wait(handle, place, ambient)
    try:
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)  # close alone would not, had somebody forked


def _wait(handle: int, place: str, ambient: Ambient) -> None:
    deadline = Deadline(ambient, WAIT_MS)
    while True:  # ends with the deadline
        with suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if deadline.is_over():
            raise Unavailable(
                f"{place}: another process has been writing here for {WAIT_MS} ms, and nothing was "
                f"done; next: see who it is, and wake or end it: fuser {quote(place)}"
            )
        ambient.sleep_ms(LOOK_MS * ambient.random())
