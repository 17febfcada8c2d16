"""Nodes work while the audit looks: whatever they do, and whenever, a sound world stays clean."""

from collections.abc import Callable, Iterator
from itertools import islice, pairwise

import pytest

from headgate.commits.record import Record, to_bytes
from headgate.lake import LIST_MAX, FileFacts, Listing
from headgate.lake.memory import MemoryLake
from headgate.store import TIMEOUT_MS, Document, DocumentStore
from headgate.testing.planted import ForwardingStore
from tests.unit.audit.busy import Busy
from tests.unit.audit.worlds import DEAD, World, landed

HOURS = {"2026-11-01T01": 3, "2026-11-01T20": 1}
CALLS_MAX = 1_000


class BusyLake(MemoryLake):
    def __init__(self, world: World) -> None:
        super().__init__()
        for path, content in world.lake.files().items():
            self.put(path, content)
        self.busy: Busy | None = None

    def _happen(self) -> None:
        if self.busy is not None:
            busy, self.busy = self.busy, None
            busy.happen()
            self.busy = busy

    def list(self, folder: str, *, after: str = "", limit: int = LIST_MAX) -> Listing:
        found = super().list(folder, after=after, limit=limit)
        self._happen()
        return found

    def read(self, path: str, size_bytes_max: int = 256_000_000) -> bytes | None:
        found = super().read(path, size_bytes_max)
        self._happen()
        return found

    def facts(self, path: str) -> FileFacts | None:
        found = super().facts(path)
        self._happen()
        return found


class BusyStore(ForwardingStore):
    def __init__(self, behind: DocumentStore, lake: BusyLake) -> None:
        super().__init__(behind)
        self._lake = lake

    def get(self, key: str, *, timeout_ms: int = TIMEOUT_MS) -> Document | None:
        found = super().get(key, timeout_ms=timeout_ms)
        self._lake._happen()
        return found


def publishing(world: World, record: Record) -> Iterator[None]:
    world.lake.put(world.path(record), to_bytes(record))
    yield
    for file in record.files:
        world.lake.put(file.published, f"rows of {file.published}".encode())
        yield


def commits(world: World) -> Iterator[None]:
    for _ in range(2):
        journal, record = world.intend(HOURS, late={"2026-10-31T23": 1}, dead=1)
        yield
        yield from publishing(world, record)
        world.conclude(journal)
        yield


def restage(world: World) -> Iterator[None]:
    _, lost = world.intend(HOURS, dead=1)
    yield
    yield from publishing(world, lost)
    for file in lost.files:
        world.remove(file.published)
        yield
    journal, record = world.intend(HOURS, dead=1, replaces=lost.number)
    yield
    yield from publishing(world, record)
    world.conclude(journal)
    yield


def redrive(world: World) -> Iterator[None]:
    name = "shard0-commit0000000002-0.parquet"
    way = [DEAD, "_redrive/orders", "_redriven/orders"]
    for start, end in pairwise(way):
        world.move(f"{start}/{name}", f"{end}/{name}")
        yield


@pytest.mark.parametrize("deed", [commits, restage, redrive], ids=lambda deed: deed.__name__)
@pytest.mark.parametrize("at_once", [1, 100])
def test_work_that_goes_on_meanwhile_is_no_finding(
    deed: Callable[[World], Iterator[None]], at_once: int
) -> None:
    steps = sum(1 for _ in deed(landed(2)))
    for begun in range(steps):
        for first in range(CALLS_MAX):
            if audited(deed, begun, first, at_once):
                break
        else:
            raise AssertionError(f"an audit of two commits makes {CALLS_MAX} calls")


def audited(deed: Callable[[World], Iterator[None]], begun: int, first: int, at_once: int) -> bool:
    """Whether the audit was over before the work went on."""
    world = landed(2)
    work = deed(world)
    for _ in islice(work, begun):
        pass
    world.lake = lake = BusyLake(world)
    quiet, world.store = world.store, BusyStore(world.store, lake)
    lake.busy = busy = Busy(work, first, at_once)
    found = world.audit()
    lake.busy, world.store = None, quiet
    assert found.is_clean, (begun, first, found.findings)
    return busy.calls <= 0


def test_planted_a_file_that_goes_missing_meanwhile_is_still_found() -> None:
    world = landed(3)
    lake = BusyLake(world)
    world.lake = lake

    def loses() -> Iterator[None]:
        world.remove("2026-11-01/01/orders/data/shard0-commit0000000001-0.parquet")
        yield

    lake.busy = Busy(loses(), 2, 1)
    assert [finding.invariant for finding in world.audit().findings] == [2]
