"""Blows: the faults of a simulation, as data. What is data can be drawn, printed and reduced.

A machine's effects are counted over all processes of its name, so that a restart does not make the
same fault strike twice.
"""

from dataclasses import dataclass
from enum import Enum

from headgate.testing.faults import Harm


@dataclass(frozen=True, slots=True)
class AtEffect:
    """Strikes one call. `duration_ms` is the pause, the sleep or what is slow."""

    machine: str
    effect: int  # the first is 1
    harm: Harm
    duration_ms: int = 0

    def __str__(self) -> str:
        duration = f" for {self.duration_ms} ms" if self.duration_ms else ""
        return f"{self.machine}: {self.harm.value} effect {self.effect}{duration}"


class Blow(Enum):
    KILL = "killed"
    PAUSE = "paused"
    SLEEP = "asleep"
    CUT = "cut off from the store"  # for the amount: nothing gets through, some of it at once
    SKEW = "wall clock off"  # from then on, by the amount; 0 sets it right


@dataclass(frozen=True, slots=True)
class AtTime:
    """Strikes whichever process then runs under that name; none: nothing happens."""

    machine: str
    time_ms: int
    blow: Blow
    amount_ms: int = 0

    def __str__(self) -> str:
        amount = f" {self.amount_ms} ms" if self.amount_ms else ""
        return f"{self.machine}: {self.blow.value}{amount} at {self.time_ms / 1000:.3f} s"


@dataclass(frozen=True, slots=True)
class AtCall:
    """Strikes the nth call of a sort, whichever machine makes it: aimed at what matters."""

    method: str
    about: str  # what its key or its first path begins with
    nth: int  # the first is 1
    harm: Harm
    duration_ms: int = 0

    def __str__(self) -> str:
        duration = f" for {self.duration_ms} ms" if self.duration_ms else ""
        what = f"{self.method} {self.about}… number {self.nth}"
        return f"whoever it is: {self.harm.value} {what}{duration}"


Fault = AtEffect | AtTime | AtCall
