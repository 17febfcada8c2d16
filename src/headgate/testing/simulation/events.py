"""Events: what an observer of a simulation is told. Checkers and stories are made of them.

started ── acted ── replied      a call, as it should be
started ── replied ── acted      told that nobody knows; the request landed afterwards
started ── acted                 lost on the way back, or the caller is dead
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from headgate.testing.faults import Call


class Happening(Enum):
    STARTED = "started"  # the caller's moment: what it knew and trusted then
    ACTED = "acted"  # the store's moment; outcome: answer or error
    REPLIED = "replied"  # what the caller was told; outcome: answer or error
    HARMED = "harmed"  # a planned fault meets this call; outcome: which
    BOOTED = "booted"
    KILLED = "killed"
    PAUSED = "paused"  # outcome: for how many ms, as for the next
    ASLEEP = "asleep"
    CUT = "cut off"
    WOKE = "woke up"
    SKEWED = "clock set"  # outcome: by how many ms it is off
    TOLD = "told"  # by the scenario; outcome: what


class Event(NamedTuple):
    """A tuple, because a simulation makes millions of them."""

    time_us: int
    machine: str
    happening: Happening
    number: int = 0  # of the machine's calls, the first is 1; 0: no call
    call: Call | None = None
    outcome: object = None


Observer = Callable[[Event], None]
