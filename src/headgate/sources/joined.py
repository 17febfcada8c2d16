"""Joined: several sources as one: the stream's own, and its dead letters driven in again.

A plan is of one of them at a time: records of different shapes do not share a job. Where both have
something they take turns: a log that never stands still must not keep its letters waiting.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from headgate.engine import Tally
from headgate.sources import Plan, Source, Waiting

Value = TypeVar("Value")


class JoinedSource:
    """`headgate.sources.Source`. Their source partitions have different names: those of `letters`
    are known without asking anybody, and all others belong to `own`."""

    def __init__(self, own: Source, letters: Source) -> None:
        self._own_source = own
        self._sources = (own, letters)
        self._letters = letters
        self._owners = dict.fromkeys(letters.partitions(), letters)
        self._is_turn_of_letters = False

    def partitions(self) -> tuple[str, ...]:
        return (*self._own_source.partitions(), *self._owners)

    def look(self, positions: Mapping[str, str]) -> Waiting:
        looks = [one.look(self._own(one, positions)) for one in self._sources]
        oldest = [look.oldest_ms for look in looks if look.oldest_ms is not None]
        return Waiting(
            sum(look.files for look in looks),
            sum(look.size_bytes for look in looks),
            min(oldest, default=None),
            sum(look.unfinished for look in looks),
            sum(look.unreadable for look in looks),
            next((look.why for look in looks if look.why), ""),
            sum(look.records for look in looks),
            {name: ms for look in looks for name, ms in look.expires_ms.items()},
            any(look.is_held_back for look in looks),
        )

    def plan(
        self, positions: Mapping[str, str], *, size_bytes_max: int, until: Mapping[str, str] = {}
    ) -> Plan:
        if until:
            wanted = [one for one in self._sources if self._own(one, until)]
            plans = [self._plan(one, positions, size_bytes_max, until) for one in wanted]
            return _first_of(plans)
        if self._is_turn_of_letters:
            self._is_turn_of_letters = False
            # The stream's own source is not asked: what it plans, it counts as read.
            plan = self._plan(self._letters, positions, size_bytes_max)
            if not plan.is_empty:
                return replace(plan, has_more=True)
        own, letters = (self._plan(one, positions, size_bytes_max) for one in self._sources)
        self._is_turn_of_letters = not (own.is_empty or letters.is_empty)
        return _first_of([own, letters])

    def _plan(
        self,
        source: Source,
        positions: Mapping[str, str],
        size_bytes_max: int,
        until: Mapping[str, str] = {},
    ) -> Plan:
        return source.plan(
            self._own(source, positions),
            size_bytes_max=size_bytes_max,
            until=self._own(source, until),
        )

    def confirm(self, plan: Plan) -> None:
        for one in self._sources:
            if self._own(one, plan.ranges):
                one.confirm(plan)

    def reconcile(self, plan: Plan, tallies: Sequence[Tally]) -> None:
        for one in self._sources:
            if self._own(one, plan.ranges):
                one.reconcile(plan, tallies)

    def settle(self, positions: Mapping[str, str]) -> None:
        for one in self._sources:
            one.settle(self._own(one, positions))

    def _own(self, source: Source, by_partition: Mapping[str, Value]) -> dict[str, Value]:
        return {
            name: value
            for name, value in by_partition.items()
            if self._owners.get(name, self._own_source) is source
        }


def _first_of(plans: Sequence[Plan]) -> Plan:
    """The first that has something; the others are told by whether they have something, too."""
    first = next((plan for plan in plans if not plan.is_empty), plans[0])
    others = [plan for plan in plans if plan is not first]
    ends_ms = dict(first.ends_ms)
    for plan in others:
        if plan.is_empty:
            ends_ms.update(plan.ends_ms)
    has_more = first.has_more or any(one.has_more or not one.is_empty for one in others)
    return replace(first, ends_ms=ends_ms, has_more=has_more)
