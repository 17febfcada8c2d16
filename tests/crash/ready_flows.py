"""Flows of ready, for whoever hurts them: what one holder of a root does, and the next finishes.

After a crash a new process comes with the next epoch. What must be equal in the end is which flags
are there, what they say (but for when, and by whom) and every frontier.
"""

from contextlib import suppress
from dataclasses import dataclass, field, replace

from headgate.app.acts import Acts, Person
from headgate.app.flags import FlagActs
from headgate.app.retention import RetentionActs
from headgate.commits.certificate import FLAG, hold_path
from headgate.commits.checkpoint import Wish
from headgate.commits.removals import How
from headgate.commits.roots import (
    Removal,
    RootDocument,
    place_of,
    removal_asked,
    root_key,
    wished,
)
from headgate.errors import Halted
from headgate.lake import Lake
from headgate.lake.ledger import Ledger
from headgate.lake.paths import STAGING, folder_of
from headgate.periods import HOUR_MS
from headgate.ready.repair import repair_of
from headgate.store import DocumentStore
from headgate.store.changes import change
from headgate.testing.faults import Calm, Stage, wrap
from tests.crash.ready_world import DAY, TEMPLATE, Process, World, hour, run, settings_of

MERGE_BYTES = 90  # of at most six rows
ANN = Wish("the disk was replaced", "ann", 0)
PERSON = Person("ann", "the disk was replaced")


@dataclass(frozen=True)
class Close:
    """The last hour of a day, with records of two streams, and an empty one after it."""

    def fresh(self) -> World:
        world = World(settings_of("orders", "bids"))
        for stream, rows in (("orders", 3), ("bids", 2)):
            world.open(stream, hour(23))
            world.land(stream, hour(23), rows)
            world.reach(stream, hour(25))
        return world

    def act(self, world: World, stage: Stage) -> None:
        Process(world, stage).run()

    def recover(self, world: World, stage: Stage) -> None:
        self.act(world, stage)

    def state(self, world: World) -> object:
        faults = world.faults()
        run(world)  # whoever comes next sweeps, and changes nothing else
        return faults, world.state()

    def __str__(self) -> str:
        return type(self).__name__


class CloseAlone(Close):
    """The least that has a parent: there are many ways to hurt a flow twice."""

    def fresh(self) -> World:
        world = World(settings_of("orders"))
        world.open("orders", hour(23))
        world.land("orders", hour(23), 2)
        world.reach("orders", hour(24))
        return world


class Withdraw(Close):
    """A person wants an hour's flags withdrawn; the next generation follows, parents too."""

    def fresh(self) -> World:
        world = super().fresh()
        run(world)
        wish_withdrawn(world, "orders", 23)
        return world


class WithdrawAlone(CloseAlone):
    """The least that can be withdrawn."""

    def fresh(self) -> World:
        world = super().fresh()
        run(world)
        wish_withdrawn(world, "orders", 23)
        return world


class WithdrawAndHold(Withdraw):
    """A hold file keeps the hour open."""

    def fresh(self) -> World:
        world = super().fresh()
        hold(world, "orders", 23)
        return world


class WithdrawTwice(Withdraw):
    """The second generation is withdrawn as the first was."""

    def fresh(self) -> World:
        world = super().fresh()
        run(world)
        wish_withdrawn(world, "orders", 23)
        return world


class Mend(Close):
    """Somebody deleted flags of all levels."""

    def fresh(self) -> World:
        world = super().fresh()
        run(world)
        for path in (f"2027-01-15/23/orders/{FLAG}", f"2027-01-15/23/{FLAG}", f"2027-01-15/{FLAG}"):
            delete(world, path)
        wish_repaired(world, 0, 24)
        return world


class Retire(Close):
    """A person retires a stream that left the settings, with hours of it that have no flag; then
    whoever holds the root goes on. After a crash the person does it again."""

    def fresh(self) -> World:
        world = super().fresh()
        run(world)
        world.settings = settings_of("orders")
        world.land("bids", hour(25), 2)
        world.reach("orders", hour(27))
        return world

    def act(self, world: World, stage: Stage) -> None:
        retire(world, "bids", stage)
        Process(world, stage).run()

    def state(self, world: World) -> object:
        return super().state(world), world.stream("bids").retired


class AskForRepair(Mend):
    """A person asks for it, by the command's own way, and again after a crash."""

    def fresh(self) -> World:
        world = super().fresh()
        wish_nothing(world)
        return world

    def act(self, world: World, stage: Stage) -> None:
        acts = flag_acts(world, stage)
        acts.repair(acts.missing(), PERSON)
        Process(world, stage).run()


class AskToWithdraw(Close):
    """A person asks for it, by the command's own way; again after a crash, unless it was done."""

    def fresh(self) -> World:
        world = super().fresh()
        run(world)
        hold(world, "orders", 23)  # else it could be done twice
        return world

    def act(self, world: World, stage: Stage) -> None:
        with suppress(Halted):  # it was withdrawn already
            flag_acts(world, stage).withdraw("orders", hour(23), PERSON)
        Process(world, stage).run()


class Merge(Close):
    """An hour of small files that become two, and one that is large enough; another stream has its
    hour beside it."""

    def fresh(self) -> World:
        world = World(settings_of("orders", "bids", merge_bytes=MERGE_BYTES))
        for stream in ("orders", "bids"):
            world.open(stream, hour(23))
        for rows in (3, 2, 9, 3, 2):
            world.land("orders", hour(23), rows)
        world.land("bids", hour(23), 2)
        for stream in ("orders", "bids"):
            world.reach(stream, hour(24))
        return world


class MergeAlone(Merge):
    """The least that can be merged: there are many ways to hurt a flow twice."""

    def fresh(self) -> World:
        world = World(settings_of("orders", merge_bytes=MERGE_BYTES))
        world.open("orders", hour(22))
        for rows in (3, 2):
            world.land("orders", hour(22), rows)
        world.reach("orders", hour(23))
        return world


class Expire(Close):
    """Two hours of a stream expire, one with a record that came late; another stream's stay."""

    how: How = "expired"

    def fresh(self) -> World:
        world = super().fresh()
        run(world)
        world.land("orders", hour(23), 2, kind="late")
        wish_removed(world, self.how, "orders", 23, 25)
        return world


class EraseAlone(CloseAlone):
    """The least that can be erased."""

    def fresh(self) -> World:
        world = super().fresh()
        run(world)
        wish_removed(world, "erased", "orders", 23, 24)
        return world


class AskToErase(Close):
    """A person asks for a day, by the command's own way, and again after a crash."""

    def fresh(self) -> World:
        world = super().fresh()
        run(world)
        world.land("orders", hour(23), 1, kind="late")
        return world

    def act(self, world: World, stage: Stage) -> None:
        acts = retention_acts(world, stage)
        acts.ask(acts.erasing(DAY, PERSON))
        Process(world, stage).run()


class AskToExpire(Expire):
    """The same for what is old, after something of it was erased."""

    how = "erased"

    def fresh(self) -> World:
        world = super().fresh()
        run(world)
        return world

    def act(self, world: World, stage: Stage) -> None:
        acts = retention_acts(world, stage)
        acts.ask(acts.expiring(24 * HOUR_MS, PERSON))
        Process(world, stage).run()


@dataclass(frozen=True)
class WithPowerCuts(Close):
    """A crash takes the power with it; at the end it fails once more. What was acknowledged
    stays."""

    flow: Close = field(default_factory=Close)

    def fresh(self) -> World:
        world = self.flow.fresh()
        world.lake.settle(sorted({folder_of(path) for path in world.lake.files()}))
        return world

    def recover(self, world: World, stage: Stage) -> None:
        world.lake.power_cut()
        self.flow.recover(world, stage)

    def state(self, world: World) -> object:
        world.lake.power_cut()
        return self.flow.state(world)

    def __str__(self) -> str:
        return f"{self.flow}WithPowerCuts"


def retire(world: World, stream: str, stage: Stage | None = None) -> None:
    """As the command does: the settings do not have it."""
    lake = wrap(Lake, world.lake, stage or Calm())
    store = wrap(DocumentStore, world.store, stage or Calm())
    acts = Acts(store, lake, Ledger(lake, "here", world.ambient), world.ambient)
    acts.retire(stream, Person("ann", "the shop is closed"), {})


def flag_acts(world: World, stage: Stage | None = None) -> FlagActs:
    lake = wrap(Lake, world.lake, stage or Calm())
    store = wrap(DocumentStore, world.store, stage or Calm())
    ledger = Ledger(lake, "here", world.ambient)
    return FlagActs(store, lake, ledger, world.ambient, [world.settings])


def retention_acts(world: World, stage: Stage | None = None) -> RetentionActs:
    lake = wrap(Lake, world.lake, stage or Calm())
    store = wrap(DocumentStore, world.store, stage or Calm())
    ledger = Ledger(lake, "here", world.ambient)
    return RetentionActs(store, lake, ledger, world.ambient, [world.settings])


def wish_removed(world: World, how: How, stream: str, first: int, end: int) -> None:
    removal = Removal(how, stream, hour(first).start_ms, hour(end).start_ms, ANN)
    key = root_key(world.settings.name)
    change(world.store, key, RootDocument, lambda found: removal_asked(key, found, removal))


def wish_nothing(world: World) -> None:
    key = root_key(world.settings.name)
    change(world.store, key, RootDocument, lambda found: replace(found, repair=None))


def wish_withdrawn(world: World, stream: str, number: int) -> None:
    key, place = root_key(world.settings.name), place_of(hour(number), stream)
    change(world.store, key, RootDocument, lambda found: wished(found, place, ANN))


def wish_repaired(world: World, first: int, last: int) -> None:
    wish = repair_of(hour(first), hour(last), ANN)
    key = root_key(world.settings.name)
    change(world.store, key, RootDocument, lambda found: replace(found, repair=wish))


def hold(world: World, stream: str, number: int) -> None:
    staged = f"{STAGING}/{stream}/hold"
    world.lake.stage(staged, b"")
    world.lake.publish(staged, hold_path(TEMPLATE, hour(number), stream))


def let_go(world: World, stream: str, number: int) -> None:
    delete(world, hold_path(TEMPLATE, hour(number), stream))


def delete(world: World, path: str) -> None:
    facts = world.lake.facts(path)
    assert facts is not None, path
    world.lake.remove(path, facts)


HURT = (Close(), WithdrawAndHold(), Mend(), Merge(), Expire())
POWER_CUTS = tuple(WithPowerCuts(flow) for flow in HURT)
REMOVALS = (Expire(), AskToErase(), AskToExpire())
ACTS = (Retire(), AskForRepair(), AskToWithdraw())
FLOWS = (Close(), Withdraw(), WithdrawAndHold(), WithdrawTwice(), Mend(), Merge(), *ACTS, *REMOVALS)
