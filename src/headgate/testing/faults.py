"""Faults: a layer between a process and whatever it acts on, where calls go wrong on purpose.

`wrap` gives any protocol a front whose every method is a `Call`, handed to a stage. The stage
decides whether, when and how often it is done, and what the caller is told. A stage stands for one
process: it counts the effects of everything that was wrapped with it.

    running ── crash before or after an effect ──▶ dead: every further call raises Crashed

`EFFECTS` knows every method of every protocol. A method that it does not know is refused: what no
stage can interrupt, no test can prove.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import NamedTuple, Protocol, TypeVar, cast

from headgate.ambient import Ambient
from headgate.cluster import Presence
from headgate.engine import Engine
from headgate.engine.merger import Merger
from headgate.errors import Ended, HeadgateError, Invalid, OutcomeUnknown, Unavailable
from headgate.lake import Lake
from headgate.sources import Source
from headgate.sources.folder import Folder
from headgate.sources.kafka import Cluster
from headgate.store import DocumentStore
from headgate.tables import Mover
from headgate.tables.site import Site


class Sort(Enum):
    """What a lost answer means."""

    WRITE = "write"  # it may have happened: OutcomeUnknown
    READ = "read"  # ask again: Unavailable
    WAIT = "wait"  # as READ; blocks until something happens or its time is over
    LOCAL = "local"  # never leaves the process: cannot be lost, is no effect


EFFECTS: Mapping[type[object], Mapping[str, Sort]] = {
    DocumentStore: {
        "get": Sort.READ,
        "create": Sort.WRITE,
        "replace": Sort.WRITE,
        "delete": Sort.WRITE,
        "list": Sort.READ,
        "wait": Sort.WAIT,
        "now_ms": Sort.READ,
        "close": Sort.LOCAL,
    },
    Presence: {
        "hold_ms": Sort.LOCAL,
        "join": Sort.WRITE,
        "renew": Sort.WRITE,
        "leave": Sort.WRITE,
        "look": Sort.READ,
        "is_over": Sort.READ,
        "forget": Sort.WRITE,
        "watch": Sort.LOCAL,
        "close": Sort.LOCAL,
    },
    Folder: {
        "ident": Sort.READ,
        "absolute": Sort.LOCAL,
        "scan": Sort.READ,
        "stat": Sort.READ,
        "head": Sort.READ,
        "open_drawer": Sort.WRITE,
        "take": Sort.WRITE,
        "put": Sort.WRITE,
        "remove": Sort.WRITE,
        "names": Sort.READ,
        "close_drawer": Sort.WRITE,
    },
    Lake: {
        "url": Sort.LOCAL,
        "stage": Sort.WRITE,
        "seal": Sort.WRITE,
        "facts": Sort.READ,
        "publish": Sort.WRITE,
        "publish_all": Sort.WRITE,
        "settle": Sort.WRITE,
        "read": Sort.READ,
        "open": Sort.READ,
        "list": Sort.READ,
        "remove": Sort.WRITE,
        "remove_folder": Sort.WRITE,
        "append": Sort.WRITE,
    },
    Cluster: {
        "names": Sort.READ,
        "topics": Sort.READ,
        "bounds": Sort.READ,
        "offsets_at": Sort.READ,
        "keeping": Sort.READ,
        "sample": Sort.READ,
        "count": Sort.READ,
    },
    Source: {
        "partitions": Sort.READ,
        "look": Sort.WRITE,
        "plan": Sort.READ,
        "confirm": Sort.READ,
        "reconcile": Sort.LOCAL,
        "settle": Sort.WRITE,
    },
    Engine: {
        "check": Sort.READ,
        "stage": Sort.WRITE,
        "close": Sort.LOCAL,
    },
    Site: {
        "url": Sort.LOCAL,
        "stage": Sort.WRITE,
        "seal": Sort.WRITE,
        "facts": Sort.READ,
        "publish": Sort.WRITE,
        "publish_all": Sort.WRITE,
        "publish_folder": Sort.WRITE,
        "settle": Sort.WRITE,
        "read": Sort.READ,
        "open": Sort.READ,
        "list": Sort.READ,
        "remove": Sort.WRITE,
        "remove_folder": Sort.WRITE,
        "append": Sort.WRITE,
    },
    Mover: {
        "move": Sort.WRITE,
    },
    Merger: {
        "merge": Sort.WRITE,
    },
}


class Crashed(Ended):
    """The process is dead, as by kill -9: nothing of ours catches this."""


class Call(NamedTuple):
    """One call of a protocol. A tuple, because a simulation makes millions of them."""

    protocol: str
    method: str
    args: tuple[object, ...]
    kwargs: Mapping[str, object]
    sort: Sort

    @property
    def subject(self) -> str:
        """What it is about: the key, mostly."""
        first = self.args[0] if self.args else ""
        text = first if isinstance(first, str) else repr(first)
        return text if len(text) <= 80 else text[:77] + "..."

    def __str__(self) -> str:
        return f"{self.protocol}.{self.method}({repr(self.subject) if self.args else ''})"


class Stage(Protocol):
    """Stands between one process and the world."""

    def around(self, call: Call, act: Callable[[], object]) -> object:
        """What the caller is told of this call. `act` does it; it may be done later, or twice."""


class Harm(Enum):
    """What happens to one effect."""

    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    LOSE_REQUEST = "request lost at"
    LOSE_REPLY = "reply lost of"
    REFUSE = "refusal of"
    DUPLICATE = "request repeated of"
    PAUSE_BEFORE = "pause before"
    PAUSE_AFTER = "pause after"
    # Only a simulation has the time for these.
    SLEEP_BEFORE = "machine asleep before"
    SLEEP_AFTER = "machine asleep after"
    SLOW_REQUEST = "slow request of"
    SLOW_REPLY = "slow reply of"
    LOSE_WAKE_UP = "wake-up lost at"


_FOR_SIMULATIONS = frozenset(
    {
        *(Harm.SLEEP_BEFORE, Harm.SLEEP_AFTER, Harm.SLOW_REQUEST),
        *(Harm.SLOW_REPLY, Harm.LOSE_WAKE_UP),
    }
)


@dataclass(frozen=True, slots=True)
class Point:
    effect: int  # the first is 1
    harm: Harm
    duration_ms: int = 0


Thing = TypeVar("Thing")


def wrap(protocol: type[object], behind: Thing, stage: Stage) -> Thing:
    """`behind`, with every method of the protocol on that stage, and nothing else.

    Raises Invalid if the protocol is not in `EFFECTS`, or has a method that is not.
    """
    sorts = sorts_of(protocol)
    properties = {name for name in sorts if isinstance(getattr(protocol, name), property)}
    front = _front_of(protocol.__name__, properties, behind)
    for name in sorts.keys() - properties:
        method = _staged(protocol.__name__, name, sorts[name], getattr(behind, name), stage)
        setattr(front, name, method)
    return cast(Thing, front)


def sorts_of(
    protocol: type[object],
    table: Mapping[type[object], Mapping[str, Sort]] = EFFECTS,
) -> Mapping[str, Sort]:
    """Every public method and property of a protocol. Raises Invalid if the table differs."""
    sorts = table.get(protocol, {})
    declared = {
        name
        for base in protocol.__mro__
        if base not in (object, Protocol) and base.__module__ != "typing"
        for name in (*vars(base), *vars(base).get("__annotations__", {}))
        if not name.startswith("_")
    }
    differing = sorted(declared ^ set(sorts))
    if differing or not declared:
        raise Invalid(
            f"{protocol.__name__}: {', '.join(differing) or 'no method'} differs between the "
            "protocol and faults.EFFECTS; next: say there of what sort each method is"
        )
    return sorts


def _front_of(name: str, properties: Iterable[str], behind: object) -> object:
    """Properties live in classes, so each front has one of its own."""
    read = {name: property(partial(_read, behind, name)) for name in properties}
    front: object = type(f"Staged{name}", (), dict(read))()
    return front


def _read(behind: object, name: str, _front: object) -> object:
    return getattr(behind, name)


def _staged(
    protocol: str, method: str, sort: Sort, real: Callable[..., object], stage: Stage
) -> Callable[..., object]:
    around = stage.around
    new = tuple.__new__

    def staged(*args: object, **kwargs: object) -> object:
        # Around NamedTuple's own constructor, which takes twice as long.
        call = new(Call, (protocol, method, args, kwargs, sort))
        return around(call, partial(real, *args, **kwargs))

    return staged


def lost(call: Call, how: str) -> HeadgateError:
    """What a caller is told who will never know."""
    if call.sort is Sort.WRITE:
        return OutcomeUnknown(f"{call}: {how}; it may have happened")
    return Unavailable(f"{call}: {how}")


class Calm:
    """Nothing goes wrong. `calls` are the effects that were made."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def around(self, call: Call, act: Callable[[], object]) -> object:
        if call.sort is not Sort.LOCAL:
            self.calls.append(call)
        return act()


class Scripted:
    """Does harm at the given effects. `calls` are the effects that were begun, harmed or not."""

    def __init__(self, points: Sequence[Point], ambient: Ambient | None = None) -> None:
        self.calls: list[Call] = []
        self.is_dead = False
        self._points = {point.effect: point for point in points}
        self._ambient = ambient
        for point in points:
            if point.harm in _FOR_SIMULATIONS:
                raise Invalid(f"{point.harm.value} an effect: only a simulation can do this")
            if point.harm in (Harm.PAUSE_BEFORE, Harm.PAUSE_AFTER) and ambient is None:
                raise Invalid(f"{point.harm.value} an effect: needs the ambient that moves on")

    @property
    def is_spent(self) -> bool:
        """Every point was reached."""
        return all(effect <= len(self.calls) for effect in self._points)

    def around(self, call: Call, act: Callable[[], object]) -> object:
        if self.is_dead:
            raise Crashed(f"{call}: this process is dead")
        if call.sort is Sort.LOCAL:
            return act()
        self.calls.append(call)
        point = self._points.get(len(self.calls))
        return act() if point is None else self._harm(point, call, act)

    def _harm(self, point: Point, call: Call, act: Callable[[], object]) -> object:
        match point.harm:
            case Harm.CRASH_BEFORE:
                raise self._die(call)
            case Harm.CRASH_AFTER:
                _outcome(act)
                raise self._die(call)
            case Harm.LOSE_REQUEST:
                raise lost(call, "the request was lost")
            case Harm.LOSE_REPLY:
                _outcome(act)
                raise lost(call, "the reply was lost")
            case Harm.REFUSE:
                raise Unavailable(f"{call}: refused for now")
            case Harm.DUPLICATE:
                answer = act()  # if this raises, nothing is repeated: it said nothing will be
                _outcome(act)
                return answer
            case Harm.PAUSE_BEFORE:
                self._pause(point)
                return act()
            case _:
                answer = act()
                self._pause(point)
                return answer

    def _die(self, call: Call) -> Crashed:
        self.is_dead = True
        return Crashed(str(call))

    def _pause(self, point: Point) -> None:
        if self._ambient is not None:
            self._ambient.sleep_ms(point.duration_ms)


def _outcome(act: Callable[[], object]) -> object:
    """The answer or the error, for somebody who does not wait for it."""
    try:
        return act()
    except Invalid:
        raise  # decided before anything is sent: no network can lose it
    except HeadgateError as error:
        return error


class SkewedAmbient:
    """The clocks of a machine that are wrong: the wall clock by an offset, all by a drift.

    `wall_off_ms` may be changed at any time: the clock was set.
    """

    def __init__(self, behind: Ambient, wall_off_ms: int = 0, drift_ppm: int = 0) -> None:
        self.wall_off_ms = wall_off_ms
        self._behind = behind
        self._drift_ppm = drift_ppm
        self._start_ns = behind.wall_ns()

    def wall_ns(self) -> int:
        true_ns = self._behind.wall_ns()
        return true_ns + self._drift(true_ns - self._start_ns) + self.wall_off_ms * 1_000_000

    def monotonic_ms(self) -> int:
        true_ms = self._behind.monotonic_ms()
        return true_ms + self._drift(true_ms)

    def boot_ms(self) -> int:
        true_ms = self._behind.boot_ms()
        return true_ms + self._drift(true_ms)

    def random(self) -> float:
        return self._behind.random()

    def new_id(self) -> str:
        return self._behind.new_id()

    def sleep_ms(self, duration_ms: float) -> None:
        """By its own clock: what runs fast sleeps less."""
        self._behind.sleep_ms(duration_ms * 1_000_000 / (1_000_000 + self._drift_ppm))

    def _drift(self, elapsed: int) -> int:
        return elapsed * self._drift_ppm // 1_000_000


def points_of(calls: Sequence[Call], harms: Sequence[Harm]) -> Iterator[Point]:
    """Every harm at every effect."""
    for effect in range(1, len(calls) + 1):
        for harm in harms:
            yield Point(effect, harm)
