"""Look: what store and lake say of an installation, read at one moment. Values, read-only.

A lookout looks for everybody: many pages cost the store as much as one. It opens the store when it
is first asked, so that a store that is away is something to show, and asks again.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from headgate.ambient import Ambient
from headgate.app.rest import rested
from headgate.app.roots import is_more_to_come
from headgate.commits.roots import RootDocument, root_key, root_name
from headgate.errors import Corrupt, Unavailable
from headgate.lake.opening import is_there, open_lake
from headgate.ready.evidence import Evidence, read_evidence
from headgate.settings import Settings
from headgate.status import ClusterStatus, read_status
from headgate.status.streams import StreamsStatus, read_streams
from headgate.status.tables import TableStatus, read_tables
from headgate.status.why import Why, read_why
from headgate.store import Damaged, DocumentStore
from headgate.store.changes import read
from headgate.store.probe import remarks

KEEP_MS = 1_000  # a look is good for so long, also one that failed


@dataclass(frozen=True, slots=True)
class StreamLook:
    """Of one stream of the settings, or of one of its outputs."""

    root: RootDocument
    evidence: Evidence
    why: Why  # of the first hour that is not ready


@dataclass(frozen=True, slots=True)
class Look:
    fleet: ClusterStatus
    streams: StreamsStatus
    known: Mapping[str, StreamLook]  # by stream; none of one that is damaged
    tables: tuple[TableStatus, ...]
    damaged: tuple[Damaged, ...]
    remarks: tuple[str, ...] = ()  # of a store without anything: its URL may be misspelt


class Lookout:
    """Safe for threads. `opened` may raise Unavailable, each time."""

    def __init__(
        self, opened: Callable[[], DocumentStore], settings: Settings, ambient: Ambient
    ) -> None:
        self.settings = settings
        self._opened = opened
        self._ambient = ambient
        self._turn = threading.Lock()
        self._store: DocumentStore | None = None
        self._last: tuple[int, Look | Unavailable] | None = None

    def look(self) -> Look:
        """Raises Unavailable."""
        with self._turn:
            now_ms = self._ambient.monotonic_ms()
            if self._last is None or now_ms >= self._last[0] + KEEP_MS:
                found = self._looked()
                self._last = (self._ambient.monotonic_ms(), found)
            found = self._last[1]
        if isinstance(found, Unavailable):  # also kept: nobody queues up to knock again
            raise Unavailable(str(found))
        return found

    def close(self) -> None:
        with self._turn:
            if self._store is not None:
                self._store.close()
            self._store = self._last = None

    def _looked(self) -> Look | Unavailable:
        try:
            if self._store is None:
                self._store = self._opened()
            return read_look(self._store, self.settings, self._ambient)
        except Unavailable as error:
            return error


def read_look(store: DocumentStore, settings: Settings, ambient: Ambient) -> Look:
    """Raises Unavailable."""
    fleet = read_status(store, ambient)
    # A lake that is not there yet is not made by a look at it.
    lake = open_lake(settings.lake, ambient) if is_there(settings.lake) else None
    streams = read_streams(store, settings.streams, fleet, lake=lake)
    roots, damaged = _read_roots(store, settings)
    known: dict[str, StreamLook] = {}
    for one in streams.streams:
        own = settings.streams.get(one.name)
        root = None if own is None else roots.get(root_name(own.folder))
        for face in () if own is None or root is None else own.flagged:
            with suppress(Corrupt):  # it is named where it is read
                evidence = read_evidence(store, one.name)
                why = read_why(store, lake, face, one, None, fleet.at_ms)
                known[face.name] = StreamLook(root or RootDocument(), evidence, why)
    tables = tuple(read_tables(store, settings.tables))

    def is_more() -> bool:
        if lake is None:
            return any(one.why.state == "closing" for one in known.values())
        with suppress(Corrupt):
            return is_more_to_come(store, lake, settings)
        return True

    fleet = rested(fleet, streams, is_more)
    every = tuple(dict.fromkeys((*fleet.damaged, *streams.damaged, *damaged)))
    is_empty = not (fleet.members or fleet.last_seen or fleet.tasks or fleet.feeds or every)
    words = tuple(one.words for one in remarks(settings.store)) if is_empty else ()
    return Look(fleet, streams, known, tables, every, words)


def _read_roots(
    store: DocumentStore, settings: Settings
) -> tuple[dict[str, RootDocument], list[Damaged]]:
    found: dict[str, RootDocument] = {}
    damaged: list[Damaged] = []
    for name in sorted({root_name(one.folder) for one in settings.streams.values()}):
        try:
            kept = read(store, root_key(name), RootDocument)
        except Corrupt as error:
            damaged.append(Damaged(root_key(name), root_key(name), str(error)))
        else:
            found[name] = RootDocument() if kept is None else kept.value
    return found, damaged
