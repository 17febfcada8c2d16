"""Scene: what documents say of a drama that lands: who holds what, hours, shards, a table.

It is for people's eyes, and to know when the next thing may happen: nothing is proved by it.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headgate.ambient import Ambient
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.roots import RootDocument, root_key, root_name
from headgate.landing import StreamSettings
from headgate.landing.names import ATTEMPT, label_of, staging_folder
from headgate.periods import Period
from headgate.ready.evidence import read_evidence
from headgate.settings import Settings
from headgate.status import ClusterStatus, read_status
from headgate.status.hours import State as HourState
from headgate.status.hours import states_of
from headgate.status.tables import TableStatus, read_tables
from headgate.store import DocumentStore
from headgate.store.changes import read

READY = "ready"


@dataclass(frozen=True, slots=True)
class ShardCell:
    name: str
    session: str  # of its holder; "": nobody's
    epoch: int
    commits: int
    rows: int
    is_in_a_round: bool


@dataclass(frozen=True, slots=True)
class StreamCell:
    name: str
    hours: tuple[HourState, ...]
    counts: Mapping[str, int]  # rows by kind: data, late, dead

    @property
    def rows(self) -> int:
        return sum(self.counts.values())

    @property
    def ready(self) -> int:
        """How many hours from the first on."""
        return next((n for n, one in enumerate(self.hours) if one != READY), len(self.hours))


@dataclass(frozen=True, slots=True)
class Scene:
    """What one look found."""

    hours: tuple[Period, ...] = ()
    shards: tuple[ShardCell, ...] = ()
    streams: tuple[StreamCell, ...] = ()
    tables: tuple[TableStatus, ...] = ()
    held: Mapping[str, str] = field(default_factory=dict)  # sessions by what they hold

    @property
    def rows(self) -> int:
        return sum(one.rows for one in self.streams)

    def holds(self, session: str) -> tuple[str, ...]:
        return tuple(what for what, one in self.held.items() if session and one == session)


def look(
    store: DocumentStore, lake: Path, settings: Settings, hours: Sequence[Period], ambient: Ambient
) -> Scene:
    """Raises Unavailable, Corrupt."""
    fleet = read_status(store, ambient)
    held = {_shown(task.name): task.session for task in fleet.tasks}
    shards: list[ShardCell] = []
    streams: list[StreamCell] = []
    for own in settings.streams.values():
        cells, counts = _shards(store, lake, own, held)
        shards += cells
        streams.append(StreamCell(own.name, _hours(store, own, hours, fleet), counts))
    tables = tuple(read_tables(store, settings.tables))
    return Scene(tuple(hours), tuple(shards), tuple(streams), tables, held)


def _shards(
    store: DocumentStore, lake: Path, own: StreamSettings, held: Mapping[str, str]
) -> tuple[list[ShardCell], dict[str, int]]:
    cells, counts = [], {"data": 0, "late": 0, "dead": 0}
    under_way = _labels(lake / staging_folder(own.name))
    for shard in range(own.shards):
        kept = read(store, checkpoint_key(own.name, shard), Checkpoint)
        found = Checkpoint() if kept is None else kept.value
        for kind in counts:
            counts[kind] += found.counts.get(kind, 0)
        name = f"{own.name}/{shard}"
        commits = found.number - (found.journal is not None)
        is_in_a_round = label_of(shard, found.epoch) in under_way
        cells.append(
            ShardCell(name, held.get(name, ""), found.epoch, commits, found.rows, is_in_a_round)
        )
    return cells, counts


def _labels(folder: Path) -> set[str]:
    """Of the shards, with their epochs, that something is staged for."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return set()
    found = (ATTEMPT.fullmatch(name) for name in names)
    return {label for one in found if one for label in one[2].split(".")}


def _hours(
    store: DocumentStore, own: StreamSettings, hours: Sequence[Period], fleet: ClusterStatus
) -> tuple[HourState, ...]:
    kept = read(store, root_key(root_name(own.folder)), RootDocument)
    root = RootDocument() if kept is None else kept.value
    evidence = read_evidence(store, own.name)
    states = states_of(own, evidence, root, hours, fleet.at_ms, is_held=False)
    return tuple(one.state for one in states)


def _shown(task: str) -> str:
    """`orders/0`, `flags`, `table orders`: what a task is to people."""
    kind, _, rest = task.partition(":")
    if kind == "land":
        return rest
    return "flags" if kind == "ready" else f"table {rest.rpartition('/')[0]}"
