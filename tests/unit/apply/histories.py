"""What must hold when a table's history is not what was recorded; also proofs for planted bugs."""

from contextlib import suppress

from headgate.errors import Unavailable
from tests.crash.apply_flows import ApplyOne, died_with_its_rows_in
from tests.crash.apply_world import TURN_MS, Process, World


def deleted(world: World) -> None:
    """Somebody deleted the table, mark and all."""
    for path in world.basin.files():
        facts = world.basin.facts(path)
        assert facts is not None
        world.basin.remove(path, facts)


def stand_still(world: World) -> None:
    """A node looks at it again and again."""
    node = Process(world)
    for _ in range(10):
        world.ambient.pass_ms(TURN_MS)
        with suppress(Unavailable):
            node.work.tick()


def a_history_that_is_gone_halts() -> World:
    """A holder died with its rows in the table, and then somebody deleted it: nobody can say
    whether a reader took them already. Nor can its run be closed: it is halting until it is there
    again."""
    world = ApplyOne().fresh()
    died_with_its_rows_in(world, ApplyOne())
    deleted(world)
    stand_still(world)
    assert world.document().state == "halting", "it was applied again"
    assert world.rows() == []
    return world
