"""Ambient: the only door to clock, randomness, ids and sleep.

Everything that asks for the time or for chance takes an `Ambient` as an argument, so that a
simulation can own both and a seed can replay. The linter refuses `time`, `random`, `uuid` and
`datetime.now` everywhere else.

Three clocks, because they answer three questions: `wall_ns` "what time is it" (may jump, may be
wrong), `monotonic_ms` "how long did this process have" and `boot_ms` "how long was it for others".
The last two never run backwards and mean nothing elsewhere; they part when the machine sleeps.
"""

import random
import secrets
import time
from typing import Protocol


class Ambient(Protocol):
    def wall_ns(self) -> int:
        """Nanoseconds since 1970 in UTC, as this machine believes. May jump."""

    def monotonic_ms(self) -> int:
        """Milliseconds that never run backwards, and stand still while the machine sleeps: to judge
        others by, since who slept saw nothing of them. Only differences mean something."""

    def boot_ms(self) -> int:
        """Milliseconds that never run backwards, and go on while the machine sleeps: for what
        others may have done meanwhile. Only differences mean something."""

    def random(self) -> float:
        """A number in [0, 1): for pauses and choices, never for secrets or names."""

    def new_id(self) -> str:
        """128 random bits as 32 hexadecimal digits: never the same twice."""

    def sleep_ms(self, duration_ms: float) -> None:
        """Does nothing for that long; zero or less returns at once."""


_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the first is Linux


class SystemAmbient:
    """The real world."""

    def wall_ns(self) -> int:
        return time.time_ns()

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def boot_ms(self) -> int:
        return time.clock_gettime_ns(_BOOT_CLOCK) // 1_000_000

    def random(self) -> float:
        return random.random()

    def new_id(self) -> str:
        return secrets.token_hex(16)

    def sleep_ms(self, duration_ms: float) -> None:
        if duration_ms > 0:
            time.sleep(duration_ms / 1000)


class Deadline:
    """A moment on the monotonic clock: how long may this call still take?"""

    def __init__(self, ambient: Ambient, timeout_ms: int) -> None:
        self._ambient = ambient
        self._end_ms = ambient.monotonic_ms() + timeout_ms

    def left_ms(self) -> int:
        """Never negative."""
        return max(0, self._end_ms - self._ambient.monotonic_ms())

    def is_over(self) -> bool:
        return self.left_ms() == 0
