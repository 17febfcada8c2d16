"""Network: the stage between a machine and what it calls. Every call takes time and may be hurt.

    started ── request under way ──▶ acted ── reply under way ──▶ replied
        └── the time limit ends first ──▶ the caller is told that nobody knows; it still acts later

The machine may be stopped or killed at each arrow. A request under way when it stopped has left
already, or leaves after the wake-up; one that was under way when it died lands or does not: as the
seed decides. A stopped machine reads its replies when it wakes up.

How long a call takes depends on the seed, the machine and the number of the call, on nothing else.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from headgate.engine.failure import JobFailed
from headgate.errors import HeadgateError, Invalid, Unavailable
from headgate.store import TIMEOUT_MS
from headgate.testing.faults import Call, Crashed, Harm, Sort, lost
from headgate.testing.simulation.blows import AtCall, AtEffect
from headgate.testing.simulation.events import Event, Happening
from headgate.testing.simulation.machine import Machine, MachineStrand
from headgate.testing.simulation.shared import NotYet
from headgate.testing.strands import getcurrent

_STARTED, _ACTED, _REPLIED = Happening.STARTED, Happening.ACTED, Happening.REPLIED
_LOCAL, _WAIT = Sort.LOCAL, Sort.WAIT
_TWELVE_BITS = 4_095
ANSWERS = (HeadgateError, JobFailed)  # what protocols say they raise
_new = tuple.__new__


def usual_latencies_us() -> tuple[int, ...]:
    """4,096 equally likely ones: 0.1 to 5 ms; one in 51 up to 0.1 s, one in 256 up to 3 s."""
    usual = [100 + number * 4_900 // 4_000 for number in range(4_000)]
    slow = [5_000 + number * 95_000 // 80 for number in range(80)]
    awful = [100_000 + number * 2_900_000 // 16 for number in range(16)]
    return tuple(usual + slow + awful)


LATENCIES_US = usual_latencies_us()


class Aim:
    """Counts the calls that somebody aims at, over all machines."""

    def __init__(self, faults: Sequence[AtCall]) -> None:
        self._left = [(fault, fault.nth) for fault in faults]

    def __bool__(self) -> bool:
        return bool(self._left)

    def meet(self, call: Call, machine: str, number: int) -> AtEffect | None:
        """What this call suffers; None: nothing."""
        hit: AtCall | None = None
        left = []
        for fault, nth in self._left:
            if call.method == fault.method and _is_about(call, fault.about):
                nth -= 1
            if nth > 0:
                left.append((fault, nth))
            else:
                hit = fault
        self._left = left
        return None if hit is None else AtEffect(machine, number, hit.harm, hit.duration_ms)


def _is_about(call: Call, about: str) -> bool:
    first = call.args[0] if call.args else ""
    if isinstance(first, str):
        return first.startswith(about)
    if isinstance(first, Sequence):  # of moves
        return any(str(getattr(one, "staged", "")).startswith(about) for one in first)
    return False


class Network:
    """What one machine has to do with the world."""

    def __init__(
        self,
        machine: Machine,
        luck: str,
        faults: Mapping[int, AtEffect],
        effects: int,
        latencies_us: Sequence[int],
        aim: Aim,
    ) -> None:
        self._aim = aim
        self.effects = effects  # calls started under this machine's name
        self._latencies_us = latencies_us
        self._machine = machine
        self._faults = faults
        self._bits = Random(f"{luck} network").getrandbits

    def around(self, call: Call, act: Callable[[], object]) -> object:
        machine = self._machine
        if machine.is_dead:
            raise Crashed(machine.name)
        if call[4] is _LOCAL:
            return act()
        strand = getcurrent()
        if strand.__class__ is not MachineStrand or strand.machine is not machine:
            raise Invalid(
                f"{call}: not called by a strand of {machine.name}; next: call it in one, use the "
                "bare store outside of machines, and wrap only what calls nothing wrapped itself"
            )
        self.effects = number = self.effects + 1
        timeline = machine.timeline
        now_us = timeline.now_us
        if timeline.observers:
            event = (now_us, machine.name, _STARTED, number, call, None)
            timeline.emit(_new(Event, event))
        flight = Flight(machine, strand, call, act, number, self._latencies_us, self._bits(40))
        strand.under_way = flight
        if number in self._faults:
            flight.suffer(self._faults[number])
        elif self._aim and (fault := self._aim.meet(call, machine.name, number)) is not None:
            flight.suffer(fault)
        timeout_ms = call[3].get("timeout_ms", TIMEOUT_MS)
        flight.leave(now_us, timeout_ms * 1_000 if isinstance(timeout_ms, int) else 0)
        timeline.hub.switch()
        strand.under_way = None
        if flight.error is not None:
            raise flight.error
        return flight.result


class Flight:
    """One call on its way there and back."""

    result: object = None
    error: Exception | None = None
    _harm: AtEffect | None = None
    _not_yet: NotYet | None = None
    _limit_us = 0
    _has_landed = False
    _is_answered = False  # a wait that was rung, or whose time is over
    _is_over = False  # the caller was told
    _is_unsent = False  # still on the machine
    _is_dropped = False

    def __init__(
        self,
        machine: Machine,
        strand: MachineStrand,
        call: Call,
        act: Callable[[], object],
        number: int,
        latencies_us: Sequence[int],
        bits: int,
    ) -> None:
        self.machine = machine
        self.strand = strand
        self.call = call
        self.number = number
        self.request_us = latencies_us[bits & _TWELVE_BITS]
        self.reply_us = latencies_us[bits >> 12 & _TWELVE_BITS]
        self.luck = bits >> 24  # 16 bits, for what else chance decides
        self._act = act

    def suffer(self, fault: AtEffect) -> None:
        """Before it leaves."""
        self._harm = fault
        self._emit(Happening.HARMED, fault.harm.value)
        match fault.harm:
            case Harm.SLOW_REQUEST:
                self.request_us += fault.duration_ms * 1_000
            case Harm.SLOW_REPLY:
                self.reply_us += fault.duration_ms * 1_000
            case Harm.CRASH_BEFORE:
                self._is_dropped = True
                self.machine.kill()
            case Harm.PAUSE_BEFORE | Harm.SLEEP_BEFORE:
                _stop(self.machine, fault)
                self._is_unsent = True

    def leave(self, now_us: int, limit_us: int) -> None:
        timeline = self.machine.timeline
        self._limit_us = now_us + limit_us
        harm = None if self._harm is None else self._harm.harm
        if now_us < self.machine.cut_until_us:
            harm = Harm.REFUSE if self.luck & 4 else Harm.LOSE_REQUEST
        if harm is Harm.REFUSE:
            self.error = Unavailable(f"{self.call}: refused for now")
            timeline.push(now_us + self.request_us, self.deliver)
            return
        is_lost = harm is Harm.LOSE_REQUEST or harm is Harm.LOSE_REPLY
        is_slow = self.request_us + self.reply_us > limit_us and (
            self.call[4] is not _WAIT or harm is not None
        )
        if is_lost or is_slow:
            timeline.push(self._limit_us, self.expire)
        if harm is not Harm.LOSE_REQUEST:
            timeline.push(now_us + self.request_us, self.land)

    def land(self) -> None:
        machine = self.machine
        if self._is_dropped:
            return
        if self._is_unsent and machine.is_stopped:
            machine.held.append(self._leave_late)
            return
        self._has_landed = True
        timeline = machine.timeline
        try:
            answer: object = self._act()
        except NotYet as not_yet:
            self._wait_on(not_yet)
            return
        except ANSWERS as error:
            if not self._is_over:
                self.error = error
            answer = error
        else:
            if not self._is_over:
                self.result = answer
        if timeline.observers:
            event = (timeline.now_us, machine.name, _ACTED, self.number, self.call, answer)
            timeline.emit(_new(Event, event))
        if self._harm is None or self._is_on_its_way_back(self._harm):
            timeline.push(timeline.now_us + self.reply_us, self.deliver)

    def deliver(self) -> None:
        """The caller is told, if it is still there and still wants to know."""
        machine = self.machine
        if machine.is_stopped:
            machine.held.append(self.deliver)
        elif not self._is_over and not machine.is_dead:
            self._is_over = True
            timeline = machine.timeline
            if timeline.observers:
                outcome = self.error or self.result
                event = (timeline.now_us, machine.name, _REPLIED, self.number, self.call, outcome)
                timeline.emit(_new(Event, event))
            self.strand.switch()

    def expire(self) -> None:
        """The time limit is over. Whatever is under way stays under way."""
        machine = self.machine
        if machine.is_stopped:
            machine.held.append(self.expire)
        elif not self._is_over and not machine.is_dead:
            self.error = lost(self.call, "no answer within the time limit")
            self.deliver()

    def ring(self) -> None:
        """What this wait is for may have happened, or its time is over."""
        if self._not_yet is None or self._is_answered:
            return
        self._is_answered = True
        timeline = self.machine.timeline
        if not self._is_over:
            self.result = self._not_yet.mark()
        self._emit(Happening.ACTED, self.result)
        if self._harm is None or self._is_on_its_way_back(self._harm):
            timeline.push(timeline.now_us + self.reply_us, self.deliver)

    def stop(self) -> None:
        if not self._has_landed:
            self._is_unsent = self._is_unsent or bool(self.luck & 1)

    def die(self) -> None:
        if not self._has_landed:
            self._is_dropped = self._is_dropped or self._is_unsent or bool(self.luck & 2)

    def _leave_late(self) -> None:
        timeline = self.machine.timeline
        timeline.push(timeline.now_us + self.request_us, self.land)

    def _wait_on(self, not_yet: NotYet) -> None:
        timeline = self.machine.timeline
        self._not_yet = not_yet
        if self._harm is None or self._harm.harm is not Harm.LOSE_WAKE_UP:
            not_yet.ring_at_next_write(self.ring)
        timeline.push(max(timeline.now_us, self._limit_us), self.ring)

    def _is_on_its_way_back(self, fault: AtEffect) -> bool:
        """What happens right after it acted: is there still a reply?"""
        timeline = self.machine.timeline
        match fault.harm:
            case Harm.LOSE_REPLY:
                return False
            case Harm.CRASH_AFTER:
                self.machine.kill()
                return False
            case Harm.PAUSE_AFTER | Harm.SLEEP_AFTER:
                _stop(self.machine, fault)
            case Harm.DUPLICATE if self.error is None:  # else it said that nothing will be
                again_us = self.reply_us + LATENCIES_US[self.luck >> 4]
                timeline.push(timeline.now_us + again_us, self._act_again)
        return True

    def _act_again(self) -> None:
        try:
            answer: object = self._act()
        except NotYet:
            return
        except ANSWERS as error:
            answer = error
        self._emit(Happening.ACTED, answer)

    def _emit(self, happening: Happening, outcome: object) -> None:
        timeline = self.machine.timeline
        if timeline.observers:
            name = self.machine.name
            timeline.emit(Event(timeline.now_us, name, happening, self.number, self.call, outcome))


def _stop(machine: Machine, fault: AtEffect) -> None:
    if fault.harm in (Harm.SLEEP_BEFORE, Harm.SLEEP_AFTER):
        machine.sleep(fault.duration_ms)
    else:
        machine.pause(fault.duration_ms)
