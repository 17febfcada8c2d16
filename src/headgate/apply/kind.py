"""Kind: how apply looks to the cluster: one kind, one feed and one task for each table.

A node whose settings do not have a table does not have its kind, and leaves it to others.
"""

import json
from dataclasses import dataclass
from shlex import quote

from headgate.apply import TableSettings
from headgate.apply.work import TableTools, TableWork
from headgate.cluster import Assignment, Order


def kind_name(table: str) -> str:
    return f"apply:{table}"


@dataclass(frozen=True, slots=True)
class TableFeed:
    """`headgate.cluster.Feed`: the one task of a table, which is never done."""

    settings: TableSettings

    @property
    def name(self) -> str:
        return kind_name(self.settings.name)

    def wanted(self, first: int, limit: int) -> tuple[Order, ...]:
        if first > 0 or limit < 1:
            return ()
        payload = json.dumps({"table": self.settings.name}).encode()
        return (Order(self.name, payload, self.settings.nodes),)


@dataclass(frozen=True, slots=True)
class TableKind:
    """`headgate.cluster.Kind`."""

    settings: TableSettings
    tools: TableTools

    @property
    def name(self) -> str:
        return kind_name(self.settings.name)

    def start(self, assignment: Assignment) -> TableWork:
        return TableWork(assignment, self.settings, self.tools)

    def release_command(self, task: str) -> str:
        return f'headgate task release {quote(task)} --reason "…"'
