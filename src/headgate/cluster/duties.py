"""Duties: the loops of one node, put together. Who runs them is not decided here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from headgate.ambient import Ambient
from headgate.cluster import Advert, Feed, Kind, Presence
from headgate.cluster.claims import Claims
from headgate.cluster.desk import Desk
from headgate.cluster.leader import Leader
from headgate.cluster.membership import Membership
from headgate.cluster.nudge import Nudge
from headgate.cluster.settling import Settling
from headgate.cluster.steward import Listener, Steward
from headgate.cluster.trust import Trust
from headgate.cluster.worker import Worker
from headgate.errors import Invalid
from headgate.store import DocumentStore

HELD_SHOWN_MAX = 100
WORKERS_MAX = 1_000


class Loop(Protocol):
    """What a node runs, each loop for itself."""

    @property
    def nudge(self) -> Nudge:
        """Wakes it before its time."""

    def tick(self) -> int:
        """Does what is due; the monotonic millisecond of the next look."""


@dataclass(frozen=True, slots=True)
class NodeSettings:
    name: str
    workers: int = 2
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or not self.name.isprintable():
            raise Invalid(f"node name {self.name!r}: needs letters that can be shown")
        if not 1 <= self.workers <= WORKERS_MAX:
            raise Invalid(f"a node has 1 to {WORKERS_MAX:,} workers, not {self.workers:,}")


class Duties:
    def __init__(
        self,
        settings: NodeSettings,
        store: DocumentStore,
        presence: Presence,
        ambient: Ambient,
        kinds: Sequence[Kind] = (),
        feeds: Sequence[Feed] = (),
        more: Mapping[str, Loop] | None = None,
    ) -> None:
        """`more` are loops that the kinds need."""
        self._more = more or {}
        changed, written = Nudge(), Nudge()
        self._settings = settings
        settling = Settling()
        self.trust = Trust(ambient)
        self.desk = Desk()
        self.membership = Membership(presence, self.trust, ambient, self._advert, changed)
        self.leader = Leader(presence, feeds, ambient)
        self.steward = Steward(
            store,
            self.membership,
            self.trust,
            self.leader,
            Claims(presence, self.desk, settling, ambient),
            settling,
            self.desk,
            ambient,
            written=written,
            changed=changed,
        )
        by_name = {kind.name: kind for kind in kinds}
        self._kinds = tuple(sorted(by_name))
        self.workers = tuple(
            Worker(
                store,
                self.desk,
                self.trust,
                by_name,
                ambient,
                settings.name,
                lambda: self.steward.is_draining,
            )
            for _ in range(settings.workers)
        )
        self.listener = Listener(store, ambient, written)

    def loops(self) -> Mapping[str, Loop]:
        return {
            "membership": self.membership,
            "listener": self.listener,
            "steward": self.steward,
            **{f"worker {number}": worker for number, worker in enumerate(self.workers, 1)},
            **self._more,
        }

    def drain(self) -> None:
        """Finish what is in hand, give everything back, take nothing new."""
        if not self.steward.is_draining:
            self.steward.drain()
        self.desk.due.give()
        self.membership.renew_now()  # others plan without us from then on

    @property
    def is_drained(self) -> bool:
        return self.steward.is_draining and self.steward.has_nothing

    def _advert(self) -> Advert:
        held = self.desk.keys()
        return Advert(
            self._settings.name,
            self._settings.workers,
            self._settings.labels,
            self._kinds,
            tuple(sorted(held)[:HELD_SHOWN_MAX]),
            len(held),
            self.steward.is_draining,
        )
