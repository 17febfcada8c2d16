"""Shared: the store that all machines of a simulation share. It never blocks the thread.

A `MemoryStore` but for three things: bodies are kept as they are, because machines only read them,
as their types say, and millions of them need not become bytes and back; `wait` cannot wait, so it
says `NotYet` and whom to ask for a ring; and the clock is the simulation's, off by what the
scenario says (`clock_off_ms`).
"""

from collections.abc import Callable

from headgate.ambient import Ambient
from headgate.store import TIMEOUT_MS, Document, JsonObject, Mark, Version
from headgate.store.memory import MemoryStore, Shelf
from headgate.store.names import Parts, prefix_parts
from headgate.testing.simulation.timeline import START_US, Timeline


class NotYet(Exception):
    """Nothing was written since that mark. Not for callers: the network waits for them."""

    def __init__(
        self, mark: Callable[[], Mark], ring_at_next_write: Callable[[Callable[[], None]], None]
    ) -> None:
        super().__init__()
        self.mark = mark
        self.ring_at_next_write = ring_at_next_write


class SharedShelf(Shelf):
    def __init__(self, timeline: Timeline) -> None:
        super().__init__()
        self.clock_off_ms = 0  # the store's own clock may be wrong, and may jump
        self.bodies: dict[Version, Document] = {}
        self._timeline = timeline
        self._rings: dict[Parts, list[Callable[[], None]]] = {}

    def now_ms(self) -> int:
        return (START_US + self._timeline.now_us) // 1_000 + self.clock_off_ms

    def ring_at_next_write(self, below: Parts, ring: Callable[[], None]) -> None:
        self._rings.setdefault(below, []).append(ring)

    def count_write(self, place: Parts) -> None:
        super().count_write(place)
        if self._rings:
            for length in range(len(place)):
                for ring in self._rings.pop(place[:length], ()):
                    ring()


class SharedStore(MemoryStore):
    """A view of the shelf. Machines use it wrapped with their stage; scenarios as it is."""

    def __init__(self, shelf: SharedShelf, namespace: str, ambient: Ambient) -> None:
        super().__init__(shelf, namespace, ambient)
        self._shared = shelf

    def create(self, key: str, body: JsonObject, *, timeout_ms: int = TIMEOUT_MS) -> Version:
        version = super().create(key, body, timeout_ms=timeout_ms)
        self._shared.bodies[version] = Document(key, body, version)
        return version

    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        new = super().replace(key, body, version, timeout_ms=timeout_ms)
        self._shared.bodies[new] = Document(key, body, new)
        return new

    def _encode(self, key: str, body: JsonObject) -> bytes:  # noqa: ARG002
        return b""

    def _document(self, key: str, raw: bytes, version: Version) -> Document:  # noqa: ARG002
        return self._shared.bodies[version]

    def wait(self, prefix: str, since: Mark | None, *, timeout_ms: int) -> Mark:
        below = (self._namespace, *prefix_parts(prefix))
        mark = self._mark(below)
        if since is None or mark != since or timeout_ms <= 0:
            return mark
        shelf = self._shared
        raise NotYet(lambda: self._mark(below), lambda ring: shelf.ring_at_next_write(below, ring))

    def now_ms(self, *, timeout_ms: int = TIMEOUT_MS) -> int:  # noqa: ARG002  # takes no time
        return self._shared.now_ms()
