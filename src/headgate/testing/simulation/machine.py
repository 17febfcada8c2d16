"""Machine: one simulated process, with strands instead of threads, and clocks of its own.

    running ── pause, sleep ──▶ stopped ── its time is over ──▶ running
       └───────── kill ─────────────┴──────────────────────────▶ dead, for ever

Whatever would run while it is stopped runs when it wakes up, in the same order. While it is asleep
its monotonic clock stands still; the others go on. What it had under way when it stopped or died is
the network's matter.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Protocol

from headgate.errors import HeadgateError, Invalid
from headgate.testing.faults import Crashed, Stage
from headgate.testing.simulation.events import Event, Happening
from headgate.testing.simulation.timeline import START_US, Timeline
from headgate.testing.strands import Strand, getcurrent

REST_US_MIN = 100  # a loop that is due at once must not keep time from going on


class UnderWay(Protocol):
    """A request that a strand waits for."""

    def stop(self) -> None:
        """Its machine was stopped."""

    def die(self) -> None:
        """Its machine is dead."""


class Machine:
    """Made by `Simulation.boot`. `stage` is for `faults.wrap`, `ambient` for everything else."""

    def __init__(
        self, timeline: Timeline, name: str, luck: str, stage_for: "Callable[[Machine], Stage]"
    ) -> None:
        self.name = name
        self.timeline = timeline
        self.is_dead = False
        self.is_stopped = False
        self.held: list[Callable[[], object]] = []  # what runs after the wake-up
        self.ambient = MachineAmbient(self, luck)
        self.stage = stage_for(self)
        self.cut_until_us = 0
        self.never_slept = True  # its monotonic clock is the timeline
        self._strands: list[MachineStrand] = []
        self._stopped_until_us = 0
        self._asleep_until_us = 0
        self._slept_us = 0

    def start(self, name: str, function: Callable[[], object]) -> None:
        """A strand of this machine, from now on. What it raises comes out of `Timeline.run`."""
        if self.is_dead:
            raise Crashed(f"{self.name} is dead")
        strand = MachineStrand(self, name, function)
        self._strands = [known for known in self._strands if not known.is_over]
        self._strands.append(strand)
        self.timeline.push(self.timeline.now_us, strand.begin)

    def run_loop(
        self,
        name: str,
        tick: Callable[[], int | None],
        on_error: Callable[[HeadgateError], int | None],
    ) -> Callable[[], None]:
        """Calls `tick` for ever, each time at the monotonic millisecond that it returned; None ends
        the loop. The same of `on_error`. What is returned wakes the loop up before that.
        """
        loop = Loop(self, tick, on_error)
        self.start(name, loop.run)
        return loop.wake

    def kill(self) -> None:
        """Nothing of it ever runs again. From inside, this does not return."""
        if not self.is_dead:
            self.is_dead = True
            self.held.clear()
            for strand in self._strands:
                if strand.under_way is not None:
                    strand.under_way.die()
            self._emit(Happening.KILLED)
            self.timeline.push(self.timeline.now_us, self.bury)
        if getattr(getcurrent(), "machine", None) is self:
            raise Crashed(self.name)

    def bury(self) -> None:
        """Ends what is left of its strands. Only from the hub: strands give back to it."""
        for strand in self._strands:
            if strand.is_parked:
                strand.throw(Crashed(self.name))
        self._strands.clear()

    def pause(self, duration_ms: float) -> None:
        """As by SIGSTOP, or a long collection of garbage: it notices nothing but the time."""
        self._stop(int(duration_ms * 1_000), Happening.PAUSED)

    def sleep(self, duration_ms: float) -> None:
        """As a laptop that was closed: its monotonic clock stands still."""
        now_us, duration_us = self.timeline.now_us, int(duration_ms * 1_000)
        since_us = max(now_us, self._asleep_until_us)
        if not self.is_dead and now_us + duration_us > since_us:
            self.never_slept = False
            self._slept_us += now_us + duration_us - since_us
            self._asleep_until_us = now_us + duration_us
        self._stop(duration_us, Happening.ASLEEP)

    def cut(self, duration_ms: float) -> None:
        """Nothing it sends arrives; it goes on, and is told so or finds out by its time limits."""
        self.cut_until_us = self.timeline.now_us + int(duration_ms * 1_000)
        self._emit(Happening.CUT, int(duration_ms))

    def set_wall_off(self, wall_off_ms: int) -> None:
        """How wrong its wall clock is from now on."""
        self.ambient.wall_off_us = wall_off_ms * 1_000
        self._emit(Happening.SKEWED, wall_off_ms)

    def monotonic_us(self) -> int:
        return max(self.timeline.now_us, self._asleep_until_us) - self._slept_us

    def _stop(self, duration_us: int, happening: Happening) -> None:
        until_us = self.timeline.now_us + duration_us
        if self.is_dead:
            return
        self._emit(happening, duration_us // 1_000)
        self._stopped_until_us = max(self._stopped_until_us, until_us)
        self.is_stopped = True
        for strand in self._strands:
            if strand.under_way is not None:
                strand.under_way.stop()
        self.timeline.push(until_us, self._wake_up)

    def _wake_up(self) -> None:
        now_us = self.timeline.now_us
        if self.is_dead or not self.is_stopped or now_us < self._stopped_until_us:
            return
        self.is_stopped = False
        self._emit(Happening.WOKE)
        held, self.held = self.held, []
        for action in held:
            self.timeline.push(now_us, action)

    def _emit(self, happening: Happening, outcome: object = None) -> None:
        timeline = self.timeline
        timeline.emit(Event(timeline.now_us, self.name, happening, outcome=outcome))


class MachineStrand(Strand):
    """A thread of a machine. It never runs while its machine is stopped or dead."""

    def __init__(self, machine: Machine, name: str, function: Callable[[], object]) -> None:
        super().__init__(self._run, machine.timeline.hub)
        self.machine = machine
        self.name = name
        self.under_way: UnderWay | None = None
        self._function = function
        self._rest = 0  # how many rests it began: an alarm of an earlier one is no longer meant

    def begin(self) -> None:
        machine = self.machine
        if machine.is_stopped:
            machine.held.append(self.begin)
        elif not machine.is_dead:
            self.switch()

    def rest(self, duration_us: int) -> None:
        """Parks this strand, which is running, until the time is over or somebody wakes it."""
        if self.machine.is_dead:
            raise Crashed(self.machine.name)
        self._rest += 1
        timeline = self.machine.timeline
        timeline.push(timeline.now_us + duration_us, partial(self._rested, self._rest))
        self.park()

    def wake(self) -> None:
        timeline = self.machine.timeline
        timeline.push(timeline.now_us, partial(self._rested, self._rest))

    def _rested(self, rest: int) -> None:
        machine = self.machine
        if machine.is_stopped:
            machine.held.append(partial(self._rested, rest))
        elif rest == self._rest and not machine.is_dead:
            self._rest += 1
            self.switch()

    def _run(self) -> None:
        try:
            self._function()
        except Crashed:
            return
        except BaseException as error:
            seconds = self.machine.timeline.now_us / 1_000_000
            error.add_note(f"in {self.name} of {self.machine.name}, at {seconds:.6f} s")
            raise


class Loop:
    """Calls a tick for ever, whenever it is due or woken."""

    def __init__(
        self,
        machine: Machine,
        tick: Callable[[], int | None],
        on_error: Callable[[HeadgateError], int | None],
    ) -> None:
        self._machine = machine
        self._tick = tick
        self._on_error = on_error
        self._is_woken = False
        self._resting: MachineStrand | None = None

    def run(self) -> None:
        while True:
            self._is_woken = False
            try:
                due_ms = self._tick()
            except HeadgateError as error:
                due_ms = self._on_error(error)
            if due_ms is None:
                return
            self._rest(due_ms)

    def wake(self) -> None:
        """From anywhere. A wake-up during a tick means another tick."""
        self._is_woken = True
        if self._resting is not None:
            self._resting.wake()
            self._resting = None

    def _rest(self, due_ms: int) -> None:
        strand = running(self._machine)
        least_us = REST_US_MIN
        while True:
            left_us = 0 if self._is_woken else self._machine.ambient.until_us(due_ms)
            if max(left_us, least_us) <= 0:
                return
            self._resting = strand
            strand.rest(max(left_us, least_us))
            self._resting = None
            least_us = 0


class MachineAmbient:
    """The clocks, the chance and the sleep of one machine. Reading a clock takes no time."""

    def __init__(self, machine: Machine, luck: str) -> None:
        self.wall_off_us = 0
        self._machine = machine
        self._timeline = machine.timeline
        self._ids = Random(f"{luck} ids")
        self.random = Random(f"{luck} choices").random
        # Every machine's clocks count from elsewhere: to compare them must not seem to work.
        self._monotonic_from_us = self._ids.randrange(10**9) * 1_000
        self._boot_from_us = self._ids.randrange(10**9) * 1_000

    def wall_ns(self) -> int:
        return (START_US + self._timeline.now_us + self.wall_off_us) * 1_000

    def monotonic_ms(self) -> int:
        machine = self._machine
        if machine.never_slept:
            return (self._monotonic_from_us + self._timeline.now_us) // 1_000
        return (self._monotonic_from_us + machine.monotonic_us()) // 1_000

    def boot_ms(self) -> int:
        return (self._boot_from_us + self._timeline.now_us) // 1_000

    def new_id(self) -> str:
        return f"{self._ids.getrandbits(128):032x}"

    def sleep_ms(self, duration_ms: float) -> None:
        strand = running(self._machine)
        until_us = self._machine.monotonic_us() + int(duration_ms * 1_000)
        while (left_us := until_us - self._machine.monotonic_us()) > 0:
            strand.rest(left_us)

    def until_us(self, monotonic_ms: int) -> int:
        """How long it is until its monotonic clock shows this."""
        return monotonic_ms * 1_000 - self._monotonic_from_us - self._machine.monotonic_us()


def running(machine: Machine) -> MachineStrand:
    """The strand that runs now. Raises Invalid if it is not of this machine."""
    strand = getcurrent()
    if not isinstance(strand, MachineStrand) or strand.machine is not machine:
        raise Invalid(
            f"{machine.name}: only its own strands can wait; next: begin this with machine.start()"
        )
    if machine.is_dead:
        raise Crashed(machine.name)
    return strand
