"""Busy: somebody works while the audit looks, effect by effect."""

from collections.abc import Callable, Iterator

from headgate.testing.faults import Call, Sort, Stage
from headgate.testing.strands import Strand


class Busy:
    """Goes on with somebody else's work at one call of the audit, and at those behind it."""

    def __init__(self, steps: Iterator[None], first: int, at_once: int) -> None:
        self.steps = steps
        self.calls = -first
        self.at_once = at_once

    def happen(self) -> None:
        self.calls += 1
        if self.calls > 0:
            for _ in range(self.at_once):
                next(self.steps, None)


class Beside:
    """The stage of an audit beside which somebody works."""

    def __init__(self, busy: Busy) -> None:
        self.busy = busy

    def around(self, call: Call, act: Callable[[], object]) -> object:
        del call
        found = act()
        self.busy.happen()
        return found


class _Parking:
    strand: Strand

    def around(self, call: Call, act: Callable[[], object]) -> object:
        found = act()
        if call.sort is Sort.WRITE:
            self.strand.park()
        return found


def effects(run: Callable[[Stage], None]) -> Iterator[None]:
    """What a process does on a stage, one effect at a time."""
    stage = _Parking()
    stage.strand = Strand(lambda: run(stage))
    while not stage.strand.is_over:
        stage.strand.switch()
        yield
