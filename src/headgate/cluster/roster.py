"""Roster: the last known members, kept by the leader in a document that outlives all nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from headgate.cluster import Member
from headgate.store.codec import Whole

ROSTER = "cluster/roster"


@dataclass(frozen=True, slots=True)
class Entry:
    number: Whole
    node: str
    session: str
    workers: Whole
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Roster:
    epoch: Whole = 0  # of the leader that wrote it: an older one's write is refused
    members: tuple[Entry, ...] = ()
    format: Literal[1] = 1


def entries(members: Sequence[Member]) -> tuple[Entry, ...]:
    return tuple(
        Entry(m.number, m.advert.node, m.session, m.advert.workers, m.advert.labels)
        for m in members
    )
