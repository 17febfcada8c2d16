"""Memory: a store inside one process, for tests and the simulation.

`memory:NAME` is one store for everybody in this process who opens that name.
"""

import threading
from bisect import bisect_right, insort
from contextlib import AbstractContextManager
from functools import lru_cache

from headgate.ambient import Ambient, Deadline, SystemAmbient
from headgate.errors import Conflict, Corrupt, Invalid, Unavailable
from headgate.store import (
    PAGE_DOCUMENTS_MAX,
    TIMEOUT_MS,
    Damaged,
    Document,
    JsonObject,
    Mark,
    Page,
    Version,
)
from headgate.store.codec import decode, encode
from headgate.store.names import Parts, key, parts, prefix_parts
from headgate.store.pages import check_limit
from headgate.store.url import StoreUrl


class Shelf:
    """What one name holds, and its clock: shared by every store opened on it."""

    def __init__(self, clock: Ambient | None = None) -> None:
        self.clock = clock or SystemAmbient()
        self.changed = threading.Condition()
        self.documents: dict[Parts, tuple[bytes, Version]] = {}
        self.ordered: list[Parts] = []
        self.writes = 0
        self.last_write: dict[Parts, int] = {}  # by prefix

    def put(self, place: Parts, raw: bytes) -> Version:
        if place not in self.documents:
            insort(self.ordered, place)
        self.count_write(place)
        version = Version(str(self.writes))  # one counter for all: none comes twice
        self.documents[place] = (raw, version)
        return version

    def remove(self, place: Parts) -> None:
        del self.documents[place]
        self.ordered.remove(place)
        self.count_write(place)

    def count_write(self, place: Parts) -> None:
        self.writes += 1
        for length in range(len(place)):
            self.last_write[place[:length]] = self.writes
        self.changed.notify_all()


class _Released(AbstractContextManager[object]):
    """A condition that was acquired already, released at the end."""

    def __init__(self, condition: threading.Condition) -> None:
        self._condition = condition

    def __exit__(self, *_: object) -> None:
        self._condition.release()


_shelves: dict[str, Shelf] = {}
# Simulations list few keys, millions of times.
_key = lru_cache(maxsize=10_000)(key)


class MemoryStore:
    def __init__(self, shelf: Shelf, namespace: str, ambient: Ambient) -> None:
        self._shelf = shelf
        self._namespace = namespace
        self._ambient = ambient
        self._release = _Released(shelf.changed)

    def get(self, key: str, *, timeout_ms: int = TIMEOUT_MS) -> Document | None:
        place = self._place(key)
        with self._held(key, timeout_ms):
            found = self._shelf.documents.get(place)
        return None if found is None else self._document(key, *found)

    def create(
        self,
        key: str,
        body: JsonObject,
        *,
        timeout_ms: int = TIMEOUT_MS,
    ) -> Version:
        place, raw = self._place(key), self._encode(key, body)
        with self._held(key, timeout_ms):
            if place in self._shelf.documents:
                raise Conflict(f"{key}: is there already")
            return self._shelf.put(place, raw)

    def replace(
        self,
        key: str,
        body: JsonObject,
        version: Version,
        *,
        timeout_ms: int = TIMEOUT_MS,
    ) -> Version:
        place, raw = self._place(key), self._encode(key, body)
        with self._held(key, timeout_ms):
            self._check(key, place, version)
            return self._shelf.put(place, raw)

    def delete(self, key: str, version: Version, *, timeout_ms: int = TIMEOUT_MS) -> None:
        place = self._place(key)
        with self._held(key, timeout_ms):
            self._check(key, place, version)
            self._shelf.remove(place)

    def list(
        self,
        prefix: str = "",
        *,
        after: str = "",
        limit: int = PAGE_DOCUMENTS_MAX,
        timeout_ms: int = TIMEOUT_MS,
    ) -> Page:
        check_limit(limit)
        below = (self._namespace, *prefix_parts(prefix))
        start = max(below, (self._namespace, *prefix_parts(after)))
        documents: list[Document] = []
        damaged: list[Damaged] = []
        with self._held(prefix, timeout_ms):
            first = bisect_right(self._shelf.ordered, start)
            places = self._shelf.ordered[first : first + limit + 1]
            found = [(place, self._shelf.documents[place]) for place in places]
        found = [(place, entry) for place, entry in found if place[: len(below)] == below]
        for place, entry in found[:limit]:
            name = _key(*place[1:])
            try:
                documents.append(self._document(name, *entry))
            except Corrupt as error:
                damaged.append(Damaged(name, _where(name), str(error)))
        more = key(*found[limit - 1][0][1:]) if len(found) > limit else None
        return Page(tuple(documents), tuple(damaged), more)

    def wait(self, prefix: str, since: Mark | None, *, timeout_ms: int) -> Mark:
        below = (self._namespace, *prefix_parts(prefix))
        deadline = Deadline(self._ambient, timeout_ms)
        with self._held(prefix, timeout_ms):
            if since is not None:
                self._shelf.changed.wait_for(
                    lambda: self._mark(below) != since, timeout=deadline.left_ms() / 1000
                )
            return self._mark(below)

    def now_ms(self, *, timeout_ms: int = TIMEOUT_MS) -> int:
        return self._shelf.clock.wall_ns() // 1_000_000

    def close(self) -> None:
        """Nothing to give back: the documents belong to the name, not to who opened it."""

    def _held(self, key: str, timeout_ms: int) -> AbstractContextManager[object]:
        """For one thread at a time. Raises Unavailable."""
        # At least a moment: a wait of no time at all is a look, not a failure.
        if not self._shelf.changed.acquire(timeout=max(timeout_ms, 1) / 1000):
            raise Unavailable(f"{key}: another thread kept the store for {timeout_ms} ms")
        return self._release

    def _encode(self, key: str, body: JsonObject) -> bytes:
        return encode(key, body)

    def _document(self, key: str, raw: bytes, version: Version) -> Document:
        return Document(key, decode(raw, _where(key)), version)

    def _place(self, key: str) -> Parts:
        return (self._namespace, *parts(key))

    def _mark(self, below: Parts) -> Mark:
        return Mark(str(self._shelf.last_write.get(below, 0)))

    def _check(self, key: str, place: Parts, version: Version) -> None:
        found = self._shelf.documents.get(place)
        if found is None or found[1] != version:
            raise Conflict(f"{key}: version {version} is not current")


def open_url(url: StoreUrl, namespace: str, ambient: Ambient) -> MemoryStore:
    url.check_options()
    if url.hosts:
        raise Invalid("memory: has no hosts; next: write memory:NAME")
    return MemoryStore(_shelves.setdefault(url.path, Shelf()), namespace, ambient)


def _where(name: str) -> str:
    return f"memory:{name}"
