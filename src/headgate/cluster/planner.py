"""Planner: what one node takes and what it gives back. Values in, values out.

Every node plans for itself, from what it sees. Those who see the same come to shares that fit
together: they add up to all tasks, each as near to what its workers are worth as whole tasks can
be. Of all such shares the plan takes those that move least: what is left over goes to whoever holds
more already.

A task may be restricted to nodes with one of some labels, and only who knows its kind can do it.
Tasks that the same nodes may take are one class; the class that the fewest may take is dealt out
first, and each next task goes to the node with the least work per worker.

A stale plan is harmless: a claim is a compare-and-set, and of two who planned the same one wins.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush


@dataclass(frozen=True, slots=True)
class Seat:
    """A member, as the plan sees it."""

    session: str
    number: int
    workers: int
    labels: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()  # of task that it knows; none: it takes any


@dataclass(frozen=True, slots=True)
class Item:
    """A task, as the plan sees it."""

    key: str
    holder: str | None  # None: free, or its holder is over
    kind: str = ""
    labels: tuple[str, ...] = ()
    is_begun: bool = False  # by this node: given back last, and only if somebody is short

    is_fresh: bool = False  # begun a moment ago: not given back before it had some time


@dataclass(frozen=True, slots=True)
class Plan:
    claims: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()
    is_waiting: bool = False  # something is to be given back, but it is fresh: plan again later


Class = tuple[str, tuple[str, ...]]
"""Kind and labels: tasks that the same nodes may take."""


def plan(items: Sequence[Item], seats: Sequence[Seat], me: str) -> Plan:
    """`items` in the order of their keys."""
    able = sorted((seat for seat in seats if seat.workers > 0), key=lambda seat: seat.number)
    mine = next((place for place, seat in enumerate(able) if seat.session == me), None)
    if mine is None:
        return Plan(returns=tuple(item.key for item in items if item.holder == me))
    claims: list[str] = []
    returns: list[str] = []
    is_waiting = False
    by_class: dict[Class, list[Item]] = defaultdict(list)
    for item in items:
        by_class[item.kind, item.labels].append(item)
    for one, shares in deal(by_class, able).items():
        of_class = by_class[one]
        held = [item for item in of_class if item.holder == me]
        share = shares.get(me, 0)
        if len(held) > share:
            spare = [item for item in reversed(held) if not item.is_begun]
            if _is_anybody_short(of_class, shares):
                spare += [item for item in reversed(held) if item.is_begun]
            wanted = spare[: len(held) - share]
            returns += [item.key for item in wanted if not item.is_fresh]
            is_waiting |= any(item.is_fresh for item in wanted)
        elif len(held) < share:
            start = sum(shares.get(seat.session, 0) for seat in able[:mine])
            from_my_place = of_class[start:] + of_class[:start]
            free = [item.key for item in from_my_place if item.holder is None]
            claims += free[: share - len(held)]
    return Plan(tuple(claims), tuple(returns), is_waiting)


def _is_anybody_short(items: Sequence[Item], shares: Mapping[str, int]) -> bool:
    """Whether it is worth to interrupt begun work: somebody has nothing, or lacks more than one.

    Without this, short tasks would be handed to and fro whenever one of them is done.
    """
    held = Counter(item.holder for item in items)
    return any(
        share - held[session] > 1 or (share > 0 and held[session] == 0)
        for session, share in shares.items()
    )


def deal(
    by_class: Mapping[Class, Sequence[Item]], seats: Sequence[Seat]
) -> Mapping[Class, Mapping[str, int]]:
    """How many tasks of each class each session gets. A class that nobody may take gets nothing."""
    able = {one: [seat for seat in seats if may_take(seat, *one)] for one in by_class}
    dealt: dict[str, int] = defaultdict(int)  # of all classes so far
    shares: dict[Class, Mapping[str, int]] = {}
    for one in sorted(by_class, key=lambda one: (len(able[one]), one)):
        holds = Counter(item.holder for item in by_class[one])
        held = {seat.session: holds[seat.session] for seat in able[one]}
        shares[one] = _deal_class(len(by_class[one]), able[one], held, dealt)
    return shares


def may_take(seat: Seat, kind: str, labels: Sequence[str]) -> bool:
    is_known = not seat.kinds or kind in seat.kinds
    return is_known and (not labels or not seat.labels.isdisjoint(labels))


def _deal_class(
    count: int, seats: Sequence[Seat], held: Mapping[str, int], dealt: dict[str, int]
) -> Mapping[str, int]:
    shares = {seat.session: 0 for seat in seats}
    if not seats:
        return shares
    # Least work per worker first, with the half of the task it would get: else small nodes get more
    # than they are worth. Of equals, who already holds a task that it would have to give back.
    heap = [((dealt[s.session] + 0.5) / s.workers, -held[s.session], s.number, s) for s in seats]
    heapify(heap)
    for _ in range(count):
        _, _, number, seat = heappop(heap)
        session = seat.session
        shares[session] += 1
        dealt[session] += 1
        still_held = held[session] - shares[session]
        heappush(heap, ((dealt[session] + 0.5) / seat.workers, -still_held, number, seat))
    return shares
