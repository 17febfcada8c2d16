"""Simulation: many machines in one thread, one seed, simulated time, interleaved at every call.

    simulation   the seed, the machines, the faults that are planned
    timeline     what happens when: the only clock there is
    machine      one simulated process: its strands, its clocks, its end
    network      the stage between a machine and what it calls: latency, loss, time limits
    shared       the store that all machines share
    blows        faults as data
    events       what an observer is told
    story        events as short lines for a person
    reduction    from many faults to the few that matter

Nothing here has heard of sessions, rights or tasks. A seed replays: whatever is left to chance is
drawn from generators that each belong to one machine, so that a fault taken away does not shift the
luck of the others.
"""

from headgate.testing.simulation.blows import AtCall, AtEffect, AtTime, Blow, Fault
from headgate.testing.simulation.events import Event, Happening, Observer
from headgate.testing.simulation.kernel import Simulation
from headgate.testing.simulation.machine import Machine
from headgate.testing.simulation.reduction import reduce
from headgate.testing.simulation.shared import SharedShelf, SharedStore
from headgate.testing.simulation.story import tell

__all__ = [
    "AtCall",
    "AtEffect",
    "AtTime",
    "Blow",
    "Event",
    "Fault",
    "Happening",
    "Machine",
    "Observer",
    "SharedShelf",
    "SharedStore",
    "Simulation",
    "reduce",
    "tell",
]
