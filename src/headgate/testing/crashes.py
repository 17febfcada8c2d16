"""Crashes: one flow, hurt at every effect it makes, must always end in the same state.

The effects are those that a calm run makes, never a list by hand. For each of them: crash before,
crash after, request lost, reply lost, request repeated. What then recovers is hurt at each of its
own effects, too, and recovers once more.

    act ── returns ─────────────────────────────────────────────────▶ compare with the calm state
     └── Crashed, OutcomeUnknown, Unavailable ──▶ recover ── returns ──▶ compare
                                                    └── the same three ──▶ recover ──▶ compare

A flow that handles a lost reply by itself just returns. Any other exception is a failure.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Protocol, TypeVar

from headgate.errors import HeadgateError, OutcomeUnknown, Unavailable
from headgate.testing.faults import (
    Call,
    Calm,
    Crashed,
    Harm,
    Point,
    Scripted,
    Sort,
    Stage,
    points_of,
)
from headgate.testing.strands import Strand

HARMS = (
    Harm.CRASH_BEFORE,
    Harm.CRASH_AFTER,
    Harm.LOSE_REQUEST,
    Harm.LOSE_REPLY,
    Harm.DUPLICATE,
)

World = TypeVar("World")


class Flow(Protocol[World]):
    """Something that one process does, and whoever comes after it finishes.

    It does the same each time: no clock, chance or thread of its own.
    """

    def fresh(self) -> World:
        """A new world in which nothing of it happened."""

    def act(self, world: World, stage: Stage) -> None:
        """One process does it once, with everything that it acts on wrapped with that stage."""

    def recover(self, world: World, stage: Stage) -> None:
        """What a newly started process does. Often the same as `act`."""

    def state(self, world: World) -> object:
        """What must be equal in the end."""


def check_every_crash(
    flow: Flow[World], harms: Sequence[Harm] = HARMS, again: Sequence[Harm] = HARMS
) -> int:
    """How many ways to fail were tried. Raises AssertionError, naming the one that went wrong.

    `again` are the harms during recovery; none: recovery is left in peace. Of two crashes each is
    around a write.
    """
    calm_state, calls = _calm(flow)
    recoveries: list[tuple[Point, list[Call]]] = []
    for first in points_of(calls, harms):
        world, recovery, story = flow.fresh(), Calm(), [_words(first, calls)]
        if _is_stopped(flow.act, world, first, story):
            _run(flow.recover, world, recovery, story)
        _compare(flow, world, calm_state, story)
        recoveries.append((first, recovery.calls))
    checked = len(recoveries)
    # Only now the double ones: the shortest way to fail is the one to be told of.
    for first, recovery_calls in recoveries:
        if _is_idle(first, calls):
            continue
        for second in points_of(recovery_calls, again):
            if _is_idle(second, recovery_calls):
                continue
            once = [_words(first, calls)]
            twice = [*once, "then, during recovery, " + _words(second, recovery_calls)]
            world = flow.fresh()
            _is_stopped(flow.act, world, first, once)
            if _is_stopped(flow.recover, world, second, twice):
                _run(flow.recover, world, Calm(), twice)
            _compare(flow, world, calm_state, twice)
            checked += 1
    return checked


def _is_idle(point: Point, calls: Sequence[Call]) -> bool:
    """A crash around a read leaves what a crash after the write before it leaves."""
    is_crash = point.harm in (Harm.CRASH_BEFORE, Harm.CRASH_AFTER)
    return is_crash and calls[point.effect - 1].sort is not Sort.WRITE


def late_wakers(flow: Flow[World]) -> int:
    """The process is paused before an effect, another recovers to the end, then the first goes on.

    For every effect; how many that were. What of HeadgateError the first then raises is its own
    matter: it may be fenced or refused. Raises AssertionError if the end differs from the calm one.
    """
    calm_state, calls = _calm(flow)
    for effect in range(1, len(calls) + 1):
        story = [f"paused before {_ordinal(effect)} effect: {calls[effect - 1]}"]
        world = flow.fresh()
        first = _parked(flow.act, world, effect, story)
        _run(flow.recover, world, Calm(), [*story, "another process recovers"])
        with _noted([*story, "another process recovered", "the first woke up"]):
            _go_on(first)
        _compare(flow, world, calm_state, [*story, "another recovered", "the first went on"])
    return len(calls)


def woken_midway(flow: Flow[World], before: Callable[[Call], bool] = lambda _: True) -> int:
    """The process is paused before an effect; another recovers, up to an effect of its own; there
    the first goes on to its end, then the other to its.

    For every two effects, of the first only those that are asked for; how many pairs that were.
    Raises as `late_wakers`.
    """
    calm_state, calls = _calm(flow)
    checked = 0
    for effect in (number for number, call in enumerate(calls, 1) if before(call)):
        paused = f"paused before {_ordinal(effect)} effect: {calls[effect - 1]}"
        recovery = _recovery_of(flow, effect, paused)
        for second in range(1, len(recovery) + 1):
            there = f"{_ordinal(second)} effect of the recovery: {recovery[second - 1]}"
            story = [paused, f"woken before {there}"]
            world = flow.fresh()
            first = _parked(flow.act, world, effect, story)
            other = _parked(flow.recover, world, second, story)
            with _noted(story):
                _go_on(first)
                other.switch()
            _compare(flow, world, calm_state, story)
            checked += 1
    return checked


def _recovery_of(flow: Flow[World], effect: int, words: str) -> list[Call]:
    """The effects of whoever recovers while the first stands before that effect."""
    world, stage = flow.fresh(), Calm()
    _parked(flow.act, world, effect, [words])
    _run(flow.recover, world, stage, [words, "another process recovers"])
    return stage.calls


def _parked(
    run: Callable[[World, Stage], None], world: World, effect: int, story: Sequence[str]
) -> Strand:
    """It was begun, and stands before that effect."""
    stage = _Parking(effect)
    strand = stage.strand = Strand(partial(run, world, stage))
    with _noted(story):
        strand.switch()
    if strand.is_over:
        raise AssertionError(f"{_told(story)}: was not reached; is the flow the same each time?")
    return strand


class _Parking:
    """Calm, but for one effect before which the process stands still."""

    def __init__(self, effect: int) -> None:
        self.strand: Strand | None = None
        self._left = effect
        self._calm = Calm()

    def around(self, call: Call, act: Callable[[], object]) -> object:
        if self.strand is not None and len(self._calm.calls) + 1 == self._left:
            strand, self.strand = self.strand, None
            strand.park()
        return self._calm.around(call, act)


def _go_on(strand: Strand) -> None:
    try:
        strand.switch()
    except HeadgateError:
        return


def _calm(flow: Flow[World]) -> tuple[object, list[Call]]:
    world, stage = flow.fresh(), Calm()
    _run(flow.act, world, stage, ["calm run"])
    if not stage.calls:
        raise AssertionError("the calm run made no effect: is everything wrapped with the stage?")
    return flow.state(world), stage.calls


def _is_stopped(
    run: Callable[[World, Stage], None], world: World, point: Point, story: Sequence[str]
) -> bool:
    """Did it end early, so that somebody must recover?"""
    stage = Scripted([point])
    is_stopped = False
    try:
        _run(run, world, stage, story)
    except (Crashed, OutcomeUnknown, Unavailable):
        is_stopped = True
    if not stage.is_spent:
        raise AssertionError(f"{_told(story)}: was not reached; is the flow the same each time?")
    return is_stopped


def _run(
    run: Callable[[World, Stage], None], world: World, stage: Stage, story: Sequence[str]
) -> None:
    with _noted(story):
        run(world, stage)


@contextmanager
def _noted(story: Sequence[str]) -> Iterator[None]:
    """Whatever goes wrong inside says at which point it did."""
    try:
        yield
    except BaseException as error:
        error.add_note(_told(story))
        raise


def _compare(flow: Flow[World], world: World, calm: object, story: Sequence[str]) -> None:
    found = flow.state(world)
    if found != calm:
        raise AssertionError(f"{_told(story)}\n  calm:  {calm!r}\n  found: {found!r}")


def _told(story: Sequence[str]) -> str:
    return ", ".join(story)


def _words(point: Point, calls: Sequence[Call]) -> str:
    return f"{point.harm.value} {_ordinal(point.effect)} effect: {calls[point.effect - 1]}"


def _ordinal(number: int) -> str:
    last = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{last}"
