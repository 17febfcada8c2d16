"""Steps: a kind of task that can be checked. Each step is a compare-and-set of one document.

The document `steps/<feed>/<number>` says who did which step under which epoch. A new holder first
writes its epoch into it, and goes on from what that acknowledged write contained; so each step is
there once, whoever was killed or paused in between. `find_faults` reads such a document and says
what is wrong with it.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from headgate.ambient import Ambient
from headgate.cluster import Assignment, Order
from headgate.cluster.tasks import feed_and_number, release_command, shown
from headgate.errors import Fenced, Invalid
from headgate.store import DocumentStore
from headgate.store.changes import Kept, change, create_if_absent
from headgate.store.codec import Whole
from headgate.store.names import key

STEPS = "steps"
KIND = "steps"
WELL_MS = 300_000  # who stepped for so long is forgiven its earlier tries


@dataclass(frozen=True, slots=True)
class Step:
    number: Whole
    node: str
    epoch: Whole


@dataclass(frozen=True, slots=True)
class Progress:
    """What a task has done so far."""

    input: Whole  # its place in the feed: each is there once, under whatever name
    epoch: Whole = 0
    steps: tuple[Step, ...] = ()
    format: Literal[1] = 1


@dataclass(frozen=True, slots=True)
class StepsFeed:
    """So many tasks, each of so many steps. Poison fails at every try; a killer ends its node."""

    name: str
    count: int
    steps: int
    pause_ms: int = 0
    poison: frozenset[int] = frozenset()
    killers: frozenset[int] = frozenset()
    labels: tuple[str, ...] = ()

    @property
    def never_done(self) -> frozenset[int]:
        return self.poison | self.killers

    def wanted(self, first: int, limit: int) -> tuple[Order, ...]:
        last = min(self.count, first + limit)
        return tuple(self._order(number) for number in range(first, last))

    def _order(self, number: int) -> Order:
        settings = {
            "input": number,
            "steps": self.steps,
            "pause_ms": self.pause_ms,
            "is_poison": number in self.poison,
            "is_killer": number in self.killers,
        }
        return Order(KIND, json.dumps(settings).encode(), self.labels)


class StepsKind:
    """`headgate.cluster.Kind`: works that do one step a tick."""

    def __init__(
        self, store: DocumentStore, ambient: Ambient, die: Callable[[], None] | None = None
    ) -> None:
        self._store = store
        self._ambient = ambient
        self._die = die  # how a killer ends its node; without it, it is mere poison

    @property
    def name(self) -> str:
        return KIND

    def start(self, assignment: Assignment) -> "StepsWork":
        try:
            settings = json.loads(assignment.payload)
            steps, pause_ms = int(settings["steps"]), int(settings["pause_ms"])
            number = int(settings["input"])
            is_poison = bool(settings.get("is_poison", False))
            is_killer = bool(settings.get("is_killer", False))
        except (ValueError, KeyError, TypeError) as error:
            raise Invalid(f"{assignment.key}: this is no payload of steps: {error}") from error
        work = StepsWork(
            assignment, self._store, self._ambient, number, steps, pause_ms, is_poison or is_killer
        )
        if is_killer and self._die is not None:
            self._die()
        return work

    def release_command(self, task: str) -> str:
        return release_command(task)


class StepsWork:
    well_ms = WELL_MS

    def __init__(
        self,
        assignment: Assignment,
        store: DocumentStore,
        ambient: Ambient,
        number: int,
        steps: int,
        pause_ms: int,
        is_poison: bool,
    ) -> None:
        self._assignment = assignment
        self._store = assignment.guard(store)
        self._ambient = ambient
        self._input = number
        self._steps = steps
        self._pause_ms = pause_ms
        self._is_poison = is_poison
        self._key = progress_key(assignment.key)
        self._done: Kept[Progress] | None = None  # as last acknowledged

    def tick(self) -> int | None:
        if self._done is None:
            create_if_absent(self._store, self._key, Progress(self._input))
            self._done = self._change(self._taken_over)
        if self._is_poison:
            raise RuntimeError(f"{shown(self._assignment.key)} is poison: it fails whoever tries")
        if len(self._done.value.steps) < self._steps:
            # Which step it will be is fixed before: after a lost answer it may be there already.
            number = len(self._done.value.steps) + 1
            self._done = self._change(lambda found: self._stepped(found, number))
        if len(self._done.value.steps) >= self._steps:
            return None
        return self._ambient.monotonic_ms() + self._pause_ms

    def _change(self, decide: Callable[[Progress], Progress]) -> Kept[Progress]:
        known, self._done = self._done, None  # after an error: read again, from the start
        return change(self._store, self._key, Progress, decide, known)

    def _taken_over(self, found: Progress) -> Progress:
        return replace(self._checked(found), epoch=self._assignment.epoch)

    def _stepped(self, found: Progress, number: int) -> Progress:
        checked = self._checked(found)
        if len(checked.steps) >= number:
            return checked
        mine = Step(number, self._assignment.node, self._assignment.epoch)
        return replace(checked, steps=(*checked.steps, mine))

    def _checked(self, found: Progress) -> Progress:
        epoch = self._assignment.epoch
        if found.epoch > epoch:
            raise Fenced(f"{self._key}: epoch {epoch} was followed by {found.epoch}; it stops")
        return found


def progress_key(task: str) -> str:
    feed, number = feed_and_number(task)
    return f"{STEPS}/{key(feed, f'{number:010}')}"


def find_faults(feed: StepsFeed, progress: Sequence[Progress]) -> list[str]:
    """What is wrong at the end, if all of the feed but its poison should be done."""
    by_input: dict[int, list[Progress]] = {}
    for one in progress:
        by_input.setdefault(one.input, []).append(one)
    faults = []
    for number in range(feed.count):
        found = by_input.get(number, [])
        if number in feed.never_done:
            continue
        if len(found) != 1:
            faults.append(f"input {number} of {feed.name} was worked on by {len(found)} tasks")
        for done in found:
            faults += _faults_of(f"{feed.name}/{number}", done, feed.steps)
    return faults


def _faults_of(name: str, done: Progress, steps: int) -> Iterator[str]:
    numbers = [step.number for step in done.steps]
    epochs = [step.epoch for step in done.steps]
    if numbers != list(range(1, steps + 1)):
        yield f"{name}: steps {numbers}, not 1 to {steps}, once each"
    if epochs != sorted(epochs):
        yield f"{name}: an older epoch wrote after a newer: {epochs}"
