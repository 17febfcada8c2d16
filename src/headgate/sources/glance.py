"""Glance: one scan of the folder, sorted out: what is new, what is unfinished, what is still there.

What is new is kept only up to the room there is for it, the first by name; of the rest only count
and size are kept, so that a million waiting files need no memory.

A file is too young while its modification time is less than `min_age` ago. One whose time lies in
the future is too young until it was seen unchanged for so long. An unfinished name counts for an
hour after its last change: a `_SUCCESS` or `.keep` must not stop an hour for ever.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headgate.sources import FilesSettings
from headgate.sources.book import Book
from headgate.sources.folder import DRAWER_PREFIX, Entry, digest_of, lane_of
from headgate.sources.patterns import Patterns, is_unfinished

UNFINISHED_MS_MAX = 3_600_000
SPARE = 1_000
FUTURE_FILES_MAX = 100_000  # of which it is remembered since when they are seen


@dataclass(slots=True)
class Found:
    """Of one lane."""

    room: int
    new: list[Entry] = field(default_factory=list)  # the first of them by name; sorted at the end
    beyond_files: int = 0  # new, too, and there is no room for them
    beyond_bytes: int = 0
    seen: set[int] = field(default_factory=set)  # numbers
    young: int = 0
    refused: int = 0  # that cannot be read

    def add(self, entry: Entry) -> None:
        self.new.append(entry)
        if len(self.new) >= 2 * self.room + SPARE:
            self.cut()

    def cut(self) -> None:
        self.new.sort()
        self.beyond_files += len(self.new[self.room :])
        self.beyond_bytes += sum(entry.size_bytes for entry in self.new[self.room :])
        del self.new[self.room :]


@dataclass(slots=True)
class Glance:
    lanes: dict[str, Found]
    entries: int = 0
    unfinished: int = 0  # of whatever lane their later name is
    blind: list[str] = field(default_factory=list)  # folders that cannot be looked into


class Glancing:
    """Remembers from scan to scan only which files come from the future."""

    def __init__(self, settings: FilesSettings) -> None:
        """Raises Invalid."""
        self._settings = settings
        self._patterns = Patterns(settings.include, settings.exclude)
        self._names = [f"{settings.prefix}-{n}" for n in range(settings.lanes)]
        self._future: dict[bytes, int] = {}  # since when, on the monotonic clock

    def sort_out(
        self,
        entries: Iterable[Entry],
        books: Mapping[str, Book],
        rooms: Mapping[str, int],
        wall_ns: int,
        monotonic_ms: int,
    ) -> Glance:
        glance = Glance({lane: Found(rooms[lane]) for lane in books})
        future: dict[bytes, int] = {}
        for entry in entries:
            if entry.path.startswith(DRAWER_PREFIX):
                continue
            glance.entries += 1
            if entry.is_blind or is_unfinished(entry.path):
                self._note_unfinished(glance, entry, wall_ns)
                continue
            lane = self._names[lane_of(entry.path, len(self._names))]
            if lane in books and self._patterns.is_included(entry.path):
                digest = digest_of(entry)
                found, book = glance.lanes[lane], books[lane]
                number = book.live.get(digest)
                if number is not None:
                    found.seen.add(number)
                elif book.known.see(digest):
                    continue
                elif self._is_young(entry, digest, future, wall_ns, monotonic_ms):
                    found.young += 1
                else:
                    found.add(entry)
        self._future = future
        for found in glance.lanes.values():
            found.cut()
        return glance

    def _note_unfinished(self, glance: Glance, entry: Entry, wall_ns: int) -> None:
        if self._patterns.is_excluded(entry.path):
            return
        if entry.is_blind:
            if not is_unfinished(entry.path) and not self._patterns.is_excluded(f"{entry.path}/x"):
                glance.blind.append(entry.path)
        elif abs(wall_ns - entry.mtime_ns) < UNFINISHED_MS_MAX * 1_000_000:
            glance.unfinished += 1

    def _is_young(
        self, entry: Entry, digest: bytes, future: dict[bytes, int], wall_ns: int, now_ms: int
    ) -> bool:
        min_age_ms = self._settings.min_age_ms
        age_ns = wall_ns - entry.mtime_ns
        if min_age_ms == 0 or age_ns >= min_age_ms * 1_000_000:
            return False
        if age_ns >= 0:
            return True
        since_ms = self._future.get(digest, now_ms)
        if len(future) < FUTURE_FILES_MAX:
            future[digest] = since_ms
        return now_ms - since_ms < min_age_ms
