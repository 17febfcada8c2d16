"""Kind: how landing looks to the cluster: one kind and one feed for each stream, one task a shard.

A node whose settings do not have a stream does not have its kind, and leaves its shards to others.
"""

import json
from dataclasses import dataclass
from shlex import quote

from headgate.cluster import Assignment, Order
from headgate.errors import Invalid
from headgate.landing import StreamSettings
from headgate.landing.shard import ShardWork, Tools


def kind_name(stream: str) -> str:
    return f"land:{stream}"


def feed_name(stream: str) -> str:
    return f"land:{stream}"


@dataclass(frozen=True, slots=True)
class LandFeed:
    """`headgate.cluster.Feed`: the shards of a stream, which are never done."""

    settings: StreamSettings

    @property
    def name(self) -> str:
        return feed_name(self.settings.name)

    def wanted(self, first: int, limit: int) -> tuple[Order, ...]:
        last = min(self.settings.shards, first + limit)
        return tuple(self._order(shard) for shard in range(first, last))

    def _order(self, shard: int) -> Order:
        payload = json.dumps({"stream": self.settings.name, "shard": shard}).encode()
        return Order(kind_name(self.settings.name), payload, self.settings.nodes)


@dataclass(frozen=True, slots=True)
class LandKind:
    """`headgate.cluster.Kind`."""

    settings: StreamSettings
    tools: Tools

    @property
    def name(self) -> str:
        return kind_name(self.settings.name)

    def start(self, assignment: Assignment) -> ShardWork:
        try:
            shard = int(json.loads(assignment.payload)["shard"])
        except (ValueError, KeyError, TypeError) as error:
            raise Invalid(f"{assignment.key}: this is no payload of a shard: {error}") from error
        return ShardWork(assignment, self.settings, shard, self.tools)

    def release_command(self, task: str) -> str:
        shard = f"{self.settings.name}/{task.rpartition('/')[2]}"
        return f'headgate shard release {quote(shard)} --reason "…"'
