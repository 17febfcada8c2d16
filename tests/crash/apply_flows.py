"""Flows of apply, for whoever hurts them: what one process does, and the next one finishes.

After a crash a new process comes with the next epoch. What must be equal in the end is what counts:
each row in the table once, the order, what waits, what was passed. Not the numbers of runs.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from headgate.apply.remedies import Remedies
from headgate.errors import Halted
from headgate.testing.faults import Calm, Crashed, Harm, Point, Scripted, Stage
from tests.crash.apply_world import ANN, TABLE, Process, World, name_of, person


@dataclass(frozen=True)
class Apply:
    """Two hours with rows, and an empty one between them, are queued and applied."""

    def fresh(self) -> World:
        world = World()
        world.flag(0, "a", "b")
        world.flag(1)
        world.flag(2, "c")
        return world

    def act(self, world: World, stage: Stage) -> None:
        Process(world, stage).until(lambda: world.is_over(2))

    def recover(self, world: World, stage: Stage) -> None:
        self.act(world, stage)

    def state(self, world: World) -> Mapping[str, object]:
        return world.state()

    def __str__(self) -> str:
        return type(self).__name__


class ApplyOne(Apply):
    """The smallest there is, for pairs of effects."""

    def fresh(self) -> World:
        world = World()
        world.flag(0, "a")
        return world

    def act(self, world: World, stage: Stage) -> None:
        Process(world, stage).until(lambda: world.is_over(0))


class HaltAtAFailure(Apply):
    """The second hour fails each time."""

    def fresh(self) -> World:
        world = World()
        world.flag(0, "a")
        world.flag(1, "b")
        world.flag(2, "c")
        world.ladle.poison = {name_of(1)}
        Process(world).until(lambda: world.document().applied_up_to == name_of(0))
        return world


class HaltAsAPersonWants(Apply):
    """Between two batches; nothing changes afterwards."""

    def fresh(self) -> World:
        world = World()
        world.flag(0, "a")
        Process(world).until(lambda: world.is_over(0))
        person(world, Calm()).halt(TABLE, ANN)
        world.flag(1, "b")
        return world


class HaltWhoseRowsAreThere(Apply):
    """A holder died with the rows in the table and the run on record; a person halts it."""

    def fresh(self) -> World:
        world = ApplyOne().fresh()
        died_with_its_rows_in(world, ApplyOne())
        person(world, Calm()).halt(TABLE, ANN)
        return world


@dataclass(frozen=True)
class Remedy(Apply):
    """A person decides about a table that is halted at its second batch, and it goes on."""

    decide: Callable[[Remedies], object] = lambda _: None
    is_healed: bool = True
    name: str = ""

    def fresh(self) -> World:
        flow = HaltAtAFailure()
        world = flow.fresh()
        flow.act(world, Calm())
        assert world.document().state == "halted"
        if self.is_healed:
            world.ladle.poison = set()
        return world

    def act(self, world: World, stage: Stage) -> None:
        process = Process(world, stage)
        # A command that was interrupted is given again; if it got through, it is refused as such.
        if world.document().state == "halted":
            with suppress(Halted):
                self.decide(person(world, stage))
        process.until(lambda: world.is_over(2))

    def __str__(self) -> str:
        return self.name


REMEDIES = [
    Remedy(lambda one: one.retry(TABLE, ANN), name="Retry"),
    Remedy(lambda one: one.resume(TABLE, ANN), name="Resume"),
    Remedy(lambda one: one.skip(TABLE, name_of(1), ANN), is_healed=False, name="Skip"),
    Remedy(
        lambda one: one.mark_applied(TABLE, name_of(1), ANN),
        is_healed=False,
        name="MarkApplied",
    ),
]


@dataclass(frozen=True)
class RetryAfterMending(Remedy):
    """The hour was flagged again since: the new generation is applied, and set aside no more."""

    def fresh(self) -> World:
        world = super().fresh()
        world.flag(1, "mended", generation=2)
        return world


MENDED = RetryAfterMending(lambda one: one.retry(TABLE, ANN), name="RetryAfterMending")


class HaltBeforeItIsTold(Apply):
    """The command that halts, hurt itself."""

    def fresh(self) -> World:
        world = ApplyOne().fresh()
        Process(world).until(lambda: world.is_over(0))
        return world

    def act(self, world: World, stage: Stage) -> None:
        person(world, stage).halt(TABLE, ANN)
        Process(world, stage).until(lambda: world.document().state == "halted")


def died_with_its_rows_in(world: World, flow: Apply) -> None:
    """A process died right after its first batch entered the table."""
    calm = Calm()
    flow.act(flow.fresh(), calm)
    effect = next(
        number
        for number, call in enumerate(calm.calls, 1)
        if call.method == "publish_folder" and str(call.args[1]).startswith("headgate_batch=")
    )
    with suppress(Crashed):
        flow.act(world, Scripted([Point(effect, Harm.CRASH_AFTER)]))
    assert world.document().current is not None
    assert len(world.rows()) == 1


FLOWS: list[Apply] = [
    Apply(),
    HaltAtAFailure(),
    HaltAsAPersonWants(),
    HaltWhoseRowsAreThere(),
    HaltBeforeItIsTold(),
    *REMEDIES,
    MENDED,
]
