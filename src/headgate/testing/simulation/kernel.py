"""Kernel: a whole simulation: one seed, one timeline, the machines, their shared store, the faults.

with Simulation(seed, faults) as simulation:
    machine = simulation.boot("node-1")
    store = wrap(DocumentStore, simulation.store("cluster"), machine.stage)
    machine.run_loop("count", Counter(store, machine.ambient).tick, on_error)
    simulation.run(until_ms=600_000, is_over=all_is_done)
"""

from collections.abc import Sequence
from functools import partial
from random import Random

from headgate.ambient import SystemAmbient
from headgate.errors import Invalid
from headgate.testing.simulation.blows import AtCall, AtEffect, AtTime, Blow, Fault
from headgate.testing.simulation.events import Event, Happening
from headgate.testing.simulation.machine import Machine
from headgate.testing.simulation.network import LATENCIES_US, Aim, Network
from headgate.testing.simulation.shared import SharedShelf, SharedStore
from headgate.testing.simulation.timeline import Timeline


class Simulation(Timeline):
    """`latencies_us` are 4,096 of them, equally likely."""

    def __init__(
        self,
        seed: int,
        faults: Sequence[Fault] = (),
        latencies_us: Sequence[int] = LATENCIES_US,
    ) -> None:
        super().__init__()
        self.seed = seed
        self.random = Random(f"{seed} scenario")  # for the scenario; no machine draws from it
        self.shelf = SharedShelf(self)
        self.machines: dict[str, Machine] = {}  # the last that was booted of each name
        self._all: list[Machine] = []
        self._latencies_us = latencies_us
        self._networks: dict[str, Network] = {}
        self._at_effect: dict[str, dict[int, AtEffect]] = {}
        self._boots: dict[str, int] = {}
        self._aim = Aim([fault for fault in faults if isinstance(fault, AtCall)])
        for fault in faults:
            if isinstance(fault, AtTime):
                self.at(fault.time_ms, partial(self._strike, fault))
            elif isinstance(fault, AtCall):
                continue
            else:
                self._at_effect.setdefault(fault.machine, {})[fault.effect] = fault

    def boot(self, name: str) -> Machine:
        """A new process of this name. Raises Invalid while another one lives."""
        before = self.machines.get(name)
        if before is not None and not before.is_dead:
            raise Invalid(f"{name}: is running; next: kill it first, or take another name")
        self._boots[name] = boot = self._boots.get(name, 0) + 1
        luck = f"{self.seed} {name} {boot}"
        machine = Machine(self, name, luck, partial(self._network, name, luck))
        self.machines[name] = machine
        self._all.append(machine)
        self.emit(Event(self.now_us, name, Happening.BOOTED))
        return machine

    def store(self, namespace: str = "simulation") -> SharedStore:
        """The store that all machines share, without any network before it."""
        return SharedStore(self.shelf, namespace, SystemAmbient())

    def effects(self, name: str) -> int:
        """How many calls were started under this name."""
        return self._networks[name].effects if name in self._networks else 0

    def tell(self, machine: str, what: str) -> None:
        """Something of the scenario's own that observers and stories should know."""
        self.emit(Event(self.now_us, machine, Happening.TOLD, outcome=what))

    def close(self) -> None:
        """Ends everything. Observers hear no more of it. Closing twice is fine."""
        self.observers.clear()
        for machine in self._all:
            machine.kill()
            machine.bury()
        self.heap.clear()

    def __enter__(self) -> "Simulation":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _network(self, name: str, luck: str, machine: Machine) -> Network:
        faults = self._at_effect.get(name, {})
        network = Network(machine, luck, faults, self.effects(name), self._latencies_us, self._aim)
        self._networks[name] = network
        return network

    def _strike(self, fault: AtTime) -> None:
        machine = self.machines.get(fault.machine)
        if machine is None or machine.is_dead:
            return
        match fault.blow:
            case Blow.KILL:
                machine.kill()
            case Blow.PAUSE:
                machine.pause(fault.amount_ms)
            case Blow.SLEEP:
                machine.sleep(fault.amount_ms)
            case Blow.CUT:
                machine.cut(fault.amount_ms)
            case Blow.SKEW:
                machine.set_wall_off(fault.amount_ms)
