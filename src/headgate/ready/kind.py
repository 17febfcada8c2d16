"""Kind: how ready looks to the cluster: one kind and one feed for each root, with one task.

A node whose settings do not have a root's streams does not have its kind, and leaves it to others.
"""

import json
from dataclasses import dataclass
from shlex import quote

from headgate.cluster import Assignment, Order
from headgate.ready import RootSettings
from headgate.ready.work import RootTools, RootWork


def kind_name(root: str) -> str:
    return f"ready:{root}"


@dataclass(frozen=True, slots=True)
class RootFeed:
    """`headgate.cluster.Feed`: one task, which is never done."""

    settings: RootSettings

    @property
    def name(self) -> str:
        return kind_name(self.settings.name)

    def wanted(self, first: int, limit: int) -> tuple[Order, ...]:
        payload = json.dumps({"root": self.settings.name}).encode()
        every = (Order(self.name, payload, self.settings.nodes),)
        return every[first : first + limit]


@dataclass(frozen=True, slots=True)
class RootKind:
    """`headgate.cluster.Kind`."""

    settings: RootSettings
    tools: RootTools

    @property
    def name(self) -> str:
        return kind_name(self.settings.name)

    def start(self, assignment: Assignment) -> RootWork:
        return RootWork(assignment, self.settings, self.tools)

    def release_command(self, task: str) -> str:
        return f'headgate task release {quote(task)} --reason "…"'
