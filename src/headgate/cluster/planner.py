"""Planner: what one node takes and what it gives back. Values in, values out.

Every node plans for itself, from what it sees. Those who see the same come to shares that fit
together: they add up to all tasks, each as near to what its workers are worth as whole tasks can
be. Of all such shares the plan takes those that move least: what is left over goes to whoever holds
more already.

A task may be restricted to nodes with one of some labels. Tasks of the same labels are one class;
the class that the fewest nodes may take is dealt out first, and each next task goes to the node
with the least work per worker.

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


@dataclass(frozen=True, slots=True)
class Item:
    """A task, as the plan sees it."""

    key: str
    holder: str | None  # None: free, or its holder is over
    labels: tuple[str, ...] = ()
    is_begun: bool = False  # by this node: given back last, and only if somebody is short


@dataclass(frozen=True, slots=True)
class Plan:
    claims: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()


def plan(items: Sequence[Item], seats: Sequence[Seat], me: str) -> Plan:
    """`items` in the order of their keys."""
    able = sorted((seat for seat in seats if seat.workers > 0), key=lambda seat: seat.number)
    mine = next((place for place, seat in enumerate(able) if seat.session == me), None)
    if mine is None:
        return Plan(returns=tuple(item.key for item in items if item.holder == me))
    claims: list[str] = []
    returns: list[str] = []
    for labels, shares in deal(items, able).items():
        of_class = [item for item in items if item.labels == labels]
        held = [item for item in of_class if item.holder == me]
        share = shares.get(me, 0)
        if len(held) > share:
            spare = [item for item in reversed(held) if not item.is_begun]
            if _is_anybody_short(of_class, shares):
                spare += [item for item in reversed(held) if item.is_begun]
            returns += [item.key for item in spare[: len(held) - share]]
        elif len(held) < share:
            start = sum(shares.get(seat.session, 0) for seat in able[:mine])
            from_my_place = of_class[start:] + of_class[:start]
            free = [item.key for item in from_my_place if item.holder is None]
            claims += free[: share - len(held)]
    return Plan(tuple(claims), tuple(returns))


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
    items: Sequence[Item], seats: Sequence[Seat]
) -> Mapping[tuple[str, ...], Mapping[str, int]]:
    """How many tasks of each class each session gets. A class that nobody may take gets nothing."""
    counts: dict[tuple[str, ...], int] = defaultdict(int)
    holds: dict[tuple[tuple[str, ...], str], int] = defaultdict(int)
    for item in items:
        counts[item.labels] += 1
        if item.holder is not None:
            holds[item.labels, item.holder] += 1
    able = {labels: [s for s in seats if may_take(s, labels)] for labels in counts}
    dealt: dict[str, int] = defaultdict(int)  # of all classes so far
    shares: dict[tuple[str, ...], Mapping[str, int]] = {}
    for labels in sorted(counts, key=lambda labels: (len(able[labels]), labels)):
        held = {seat.session: holds[labels, seat.session] for seat in able[labels]}
        shares[labels] = _deal_class(counts[labels], able[labels], held, dealt)
    return shares


def may_take(seat: Seat, labels: Sequence[str]) -> bool:
    return not labels or not seat.labels.isdisjoint(labels)


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
