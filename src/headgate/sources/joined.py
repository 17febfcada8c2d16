"""Joined: several sources as one: the stream's own, and its dead letters driven in again.

A plan is of one of them at a time: records of different shapes do not share a job.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from headgate.engine import Tally
from headgate.sources import Plan, Source, Waiting

Value = TypeVar("Value")


class JoinedSource:
    """`headgate.sources.Source`. Their source partitions have different names."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._owners = {name: one for one in sources for name in one.partitions()}

    def partitions(self) -> tuple[str, ...]:
        self._owners = {name: one for one in self._sources for name in one.partitions()}
        return tuple(self._owners)

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
        )

    def plan(
        self, positions: Mapping[str, str], *, size_bytes_max: int, until: Mapping[str, str] = {}
    ) -> Plan:
        plans = [
            one.plan(
                self._own(one, positions),
                size_bytes_max=size_bytes_max,
                until=self._own(one, until),
            )
            for one in self._sources
            if not until or self._own(one, until)
        ]
        first = next((plan for plan in plans if not plan.is_empty), plans[0])
        others = [plan for plan in plans if plan is not first]
        ends_ms = dict(first.ends_ms)
        for plan in others:
            if plan.is_empty:
                ends_ms.update(plan.ends_ms)
        has_more = first.has_more or any(one.has_more or not one.is_empty for one in others)
        return replace(first, ends_ms=ends_ms, has_more=has_more)

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
            name: value for name, value in by_partition.items() if self._owners.get(name) is source
        }
