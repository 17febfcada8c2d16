"""C8 with many files: neither the store nor memory is flooded by what waits or is kept."""

import tracemalloc
from collections.abc import Iterator
from typing import TypeVar

from headgate.sources import FilesSettings
from headgate.sources.files import LOOK_MS_MIN, FilesSource
from headgate.sources.folder import Entry, digest_of
from headgate.sources.identities import Identities
from headgate.sources.lanes import BATCH_FILES_MAX, UNREAD_FILES_MAX
from headgate.sources.memory_folder import MemoryFolder
from headgate.sources.picking import PLAN_FILES_MAX
from headgate.store.pages import pages
from headgate.testing.manual import ManualAmbient, manual_store

FILES = 200_000
KEPT = 50_000
SIZE_BYTES = 100
MTIME_NS = 1_700_000_000_000_000_000

T = TypeVar("T")


class EndlessFolder(MemoryFolder):
    """Its files need no memory of their own. In an order that is not that of the names."""

    def scan(self) -> Iterator[Entry]:
        for n in range(FILES):
            yield self._entry(n * 7_919 % FILES)

    def stat(self, path: str) -> Entry | None:
        return self._entry(int(path.removesuffix(".json")))

    def head(self, path: str, size_bytes_max: int = 1) -> bytes:
        return b"{"

    def _entry(self, n: int) -> Entry:
        return Entry(f"{n:06}.json", SIZE_BYTES, MTIME_NS)


def test_c8_two_hundred_thousand_waiting_files_flood_neither_store_nor_memory() -> None:
    ambient = ManualAmbient()
    store = manual_store(ambient)
    settings = FilesSettings("/memory")
    source = FilesSource(settings, "orders", ["lane-0"], 1, store, EndlessFolder(), ambient)

    tracemalloc.start()
    try:
        waiting = source.look({})
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (waiting.files, waiting.size_bytes) == (FILES, FILES * SIZE_BYTES)
    assert peak_bytes < 30_000_000
    documents = [one.key for page in pages(store) for one in page.documents]
    assert len(documents) == 2 + UNREAD_FILES_MAX // BATCH_FILES_MAX

    position = 0
    while position < UNREAD_FILES_MAX + 2 * PLAN_FILES_MAX:
        ambient.pass_ms(LOOK_MS_MIN)
        source.look({"lane-0": str(position)})
        plan = source.plan({"lane-0": str(position)}, size_bytes_max=10**12)
        assert [file.path for file in plan.files] == [
            f"/memory/{n:06}.json" for n in range(position, position + PLAN_FILES_MAX)
        ]
        assert plan.has_more
        assert plan.ends_ms == {}
        position += PLAN_FILES_MAX
        source.settle({"lane-0": str(position)})
    documents = [one.key for page in pages(store) for one in page.documents]
    assert len(documents) <= 4 + UNREAD_FILES_MAX // BATCH_FILES_MAX


def test_c8_a_kept_file_costs_less_than_sixty_bytes_of_memory() -> None:
    tracemalloc.start()
    try:
        digests = Identities()
        for n in range(KEPT):
            digests.add(digest_of(Entry(f"{n}", n, n)))
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(digests) == KEPT
    assert kept_bytes < 60 * KEPT
