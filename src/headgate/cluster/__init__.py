"""Cluster: how equal nodes share tasks through the store, without ever talking to each other.

Safety comes from compare-and-set alone; sessions only give liveness. Nothing here has heard of
records: a task is a name, a kind and some bytes.

    presence    who is there: each node has one session, renewed, closed by compare-and-set
    trust       how long this node may act: counted from the start of its last renewal
    right       a document {"holder": session, "epoch": n}: the leader, a task
    tasks       rights with a payload, a state and their tries
    planner     a pure function: what one node takes and gives back
    claims      the loop that carries a plan out
    leader      the loop of the one node that creates and removes tasks

A loop is a `tick()` that returns the monotonic millisecond of its next look. `headgate.node` runs
them; a simulation runs the same ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from headgate.store import TIMEOUT_MS, DocumentStore, Version


@dataclass(frozen=True, slots=True)
class Advert:
    """What a member says of itself."""

    node: str  # a name for people; nothing depends on it
    workers: int
    labels: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()  # of tasks that it can do; none: any
    held: tuple[str, ...] = ()  # keys of tasks, the first of them if there are many
    held_count: int = 0
    is_draining: bool = False


@dataclass(frozen=True, slots=True)
class Member:
    number: int
    session: str
    advert: Advert
    expires_at_ms: int  # by the store's clock
    version: Version


@dataclass(frozen=True, slots=True)
class Look:
    """Who is there, and who this look found to be over."""

    members: tuple[Member, ...]  # by number
    over: tuple[str, ...]  # sessions whose documents say closed
    next_ms: int  # on the monotonic clock: when the next look is worth it


class Presence(Protocol):
    """Who is there. Beside the store, because some stores know it better than documents do.

    P1  No number is given twice, not even after everybody left; a later join has a higher one.
    P2  look() shows every member whose join was acknowledged before it and that is not over.
    P3  Over is for ever: such a member is never shown again, its renewal raises Fenced, and
        is_over() says so. is_over() is never said of one that may still renew.
    P4  Who left is over at once.
    P5  Whoever is no longer renewed is over for every watcher within a term of being watched,
        whatever any clock says.
    P6  Whoever is renewed in time stays, also if the watchers' wall clocks are wrong.
    P7  look() shows the advert of the last acknowledged renewal.
    P8  After OutcomeUnknown the same call may be made again; it ends in one member, not in two.
    P9  Nobody is over before `hold_ms` after the start of its last acknowledged renewal.

    All methods may be called from several threads.
    """

    @property
    def hold_ms(self) -> int:
        """How long a renewal holds, counted from its start; at most the term."""

    def join(self, session: str, advert: Advert, *, timeout_ms: int = TIMEOUT_MS) -> Member:
        """`session` is a new id, never used before. Raises Unavailable, OutcomeUnknown, Fenced (an
        earlier try got through, and was closed since: take a new id)."""

    def renew(self, member: Member, advert: Advert, *, timeout_ms: int = TIMEOUT_MS) -> Member:
        """Raises Fenced (it is over), Unavailable, OutcomeUnknown."""

    def leave(self, member: Member, *, timeout_ms: int = TIMEOUT_MS) -> None:
        """Leaving twice is fine. Raises Unavailable, OutcomeUnknown."""

    def look(self, *, timeout_ms: int = TIMEOUT_MS) -> Look:
        """Closes every session that is provably over, then says who is left. Raises Unavailable."""

    def is_over(self, session: str, *, timeout_ms: int = TIMEOUT_MS) -> bool:
        """Raises Unavailable, Corrupt (nobody can tell)."""

    def forget(self, session: str, *, timeout_ms: int = TIMEOUT_MS) -> None:
        """Removes what is left of a session that is over; it stays over. Raises Unavailable,
        OutcomeUnknown, Invalid (it is not over)."""

    def watch(self, ring: Callable[[], None]) -> None:
        """`ring` is called when somebody may have come or gone: a hint, which may never come."""

    def close(self) -> None:
        """Gives back what is held open. Does not leave. Closing twice is fine."""


class Kind(Protocol):
    """One kind of task: what its payload means and how it is done."""

    @property
    def name(self) -> str: ...

    def start(self, assignment: "Assignment") -> "Work":
        """No effect yet. Raises Invalid (the payload)."""

    def release_command(self, task: str) -> str:
        """By which a person lets a task of this kind go on; the task as people see it."""


class Assignment(Protocol):
    """What a work may know of the task it does. Every effect asks `check` first: each one, not each
    tick, because a node may be paused in between."""

    @property
    def key(self) -> str: ...

    @property
    def payload(self) -> bytes: ...

    @property
    def epoch(self) -> int: ...

    @property
    def node(self) -> str: ...

    @property
    def is_draining(self) -> bool:
        """The node wants to stop: come to a good end with this tick."""

    def check(self) -> None:
        """Raises Fenced: trust is over or the right is lost. Start no effect."""

    def left_ms(self) -> int:
        """How long this node may still act; the time limit of every call."""

    def guard(self, store: DocumentStore) -> DocumentStore:
        """The store, with both asked at every call."""


class Work(Protocol):
    """A task being done by this node."""

    @property
    def well_ms(self) -> int | None:
        """After running for so long its earlier tries are forgiven; None: not yet. A work that
        waits for long, and then takes its node down, must have come to some good end before."""

    def tick(self) -> int | None:
        """Does a piece; the monotonic millisecond of the next one, or None: the task is done.

        Raises Fenced (stop, no failure), Unavailable (later again, no failure), Halted (set aside
        at once). Whatever else it raises is a failed try.
        """


class Feed(Protocol):
    """A numbered sequence of tasks that the leader creates. The number is the input's place in it,
    so that whoever creates it, it is the same task."""

    @property
    def name(self) -> str: ...

    def wanted(self, first: int, limit: int) -> "tuple[Order, ...]":
        """The next inputs from that number on; fewer than `limit`: there are no more for now."""


@dataclass(frozen=True, slots=True)
class Order:
    """A task to be created."""

    kind: str
    payload: bytes
    labels: tuple[str, ...] = ()  # only nodes that have one of them; none: any node
