"""A person accepts a gap, and the command is crashed before and after each effect, and repeated."""

from dataclasses import dataclass

import pytest

from headgate.app.acts import Person
from headgate.app.gaps import GapActs
from headgate.errors import Halted
from headgate.lake import Lake
from headgate.lake.ledger import Ledger
from headgate.store import DocumentStore
from headgate.testing.crashes import check_every_crash, late_wakers
from headgate.testing.faults import Stage, wrap
from tests.unit.app.test_gaps import World, settings

ADA = Person("ada", "we know")


@dataclass(frozen=True)
class Accept:
    """Whoever comes after a crash types the same command again."""

    what: str

    def __str__(self) -> str:
        return self.what

    def fresh(self) -> World:
        world = World()
        if self.what == "orders":
            world.weir.make("orders")
        else:
            world.weir.expire("orders", 1, 8)
        world.sets_aside(0, 1)
        return world

    def act(self, world: World, stage: Stage) -> None:
        store = wrap(DocumentStore, world.store, stage)
        lake = wrap(Lake, world.lake, stage)
        ledger = Ledger(lake, "command line", world.ambient)
        acts = GapActs(store, lake, ledger, world.ambient)
        acts.accept(settings(), self.what, world.weir.cluster(), ADA)

    recover = act

    def state(self, world: World) -> object:
        noted = {(line.what, line.subject, line.words, line.who) for line in world.notes()}
        accepted = [line for line in world.notes() if line.what == "gap.accepted"]
        return world.document(), world.aside(), noted, len(accepted)


@pytest.mark.parametrize("flow", [Accept("orders/1"), Accept("orders")], ids=str)
def test_a_gap_is_accepted_once_from_every_crash(flow: Accept) -> None:
    assert check_every_crash(flow) > 50
    assert late_wakers(flow) > 5


@pytest.mark.parametrize("flow", [Accept("orders/1"), Accept("orders")], ids=str)
def test_what_is_noted_is_noted_before_it_is_done(flow: Accept) -> None:
    """A lake that cannot be written to: nothing is decided that nobody could read later."""
    world = flow.fresh()
    before = world.document()

    class Full:
        def append(self, *_: object) -> None:
            raise Halted("no room")

    ledger = Ledger(Full(), "command line", world.ambient)  # type: ignore[arg-type] # only that
    with pytest.raises(Halted, match="no room"):
        GapActs(world.store, world.lake, ledger, world.ambient).accept(
            settings(), flow.what, world.weir.cluster(), ADA
        )
    assert (world.document(), world.aside()) == (before, [0, 1])
