"""Ambush: a node is caught in the middle of a commit, and killed there with -9.

    a journal stands ──▶ its node is stopped ──▶ files of the commit are published: killed
                          ▲                  └── not yet: it may go on for a moment ──┐
                          └───────────────────────────────────────────────────────────┘

A commit takes a few thousandths of a second: whoever only watched would come too late. The moment
is real all the same: nothing in the node knows of it.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headgate.cluster.tasks import Task, task_key
from headgate.commits.checkpoint import Checkpoint, Journal, checkpoint_key
from headgate.commits.record import from_bytes, record_path
from headgate.landing.kind import feed_name
from headgate.store import DocumentStore, Version
from headgate.store.changes import read
from headgate.store.codec import parse
from headgate.testing.drama.child import Child

MOMENT_S = 0.0005  # that it may go on at a time
MOMENTS_MAX = 2_000
LOOK_S = 0.001
STILL_S = 0.003  # until what the kernel had begun for a stopped node is done


@dataclass(frozen=True, slots=True)
class Caught:
    """The commit in whose middle a node was killed."""

    shard: str
    node: str
    number: int
    published: int
    files: int
    is_in_the_middle: bool  # its journal stands: no position has moved


class Ambush:
    """For the shards of these streams, and the nodes that may hold them."""

    def __init__(
        self, store: DocumentStore, lake: Path, shards: Mapping[str, int], children: list[Child]
    ) -> None:
        self._store = store
        self._lake = lake
        self._shards = shards
        self._children = children
        self._seen: dict[str, Version] = {}  # by checkpoint: what was looked at already

    def lie_in_wait(self, is_over: Callable[[], bool]) -> Caught | None:
        """Until somebody is caught; None: it is over before that. Raises what the store raises."""
        while not is_over():
            for stream, shard, journal in self._journals():
                caught = self._spring(stream, shard, journal)
                if caught is not None:
                    return caught
            time.sleep(LOOK_S)
        return None

    def _journals(self) -> Iterator[tuple[str, int, Journal]]:
        """Of commits with records that began since the last look."""
        for stream, count in self._shards.items():
            for shard in range(count):
                name = checkpoint_key(stream, shard)
                found = self._store.get(name)
                if found is None or self._seen.get(name) == found.version:
                    continue
                self._seen[name] = found.version
                journal = parse(found, Checkpoint).journal
                if journal is not None and journal.rows:
                    yield stream, shard, journal

    def _spring(self, stream: str, shard: int, journal: Journal) -> Caught | None:
        child = self._holder(stream, shard)
        if child is None:
            return None
        for _ in range(MOMENTS_MAX):
            child.freeze()
            if self._is_amid(stream, shard, journal):
                time.sleep(STILL_S)
                if self._is_amid(stream, shard, journal):
                    child.kill()
                    done, files = self._published(stream, shard, journal)
                    is_standing = self._journal(stream, shard) == journal
                    name = f"{stream}/{shard}"
                    return Caught(name, child.name, journal.number, done, files, is_standing)
            is_over = self._journal(stream, shard) != journal
            child.thaw()
            if is_over:  # the commit was faster
                break
            time.sleep(MOMENT_S)
        return None

    def _is_amid(self, stream: str, shard: int, journal: Journal) -> bool:
        """Something is published, and the fact is not written."""
        is_begun = self._published(stream, shard, journal)[0] > 0
        return is_begun and self._journal(stream, shard) == journal

    def _published(self, stream: str, shard: int, journal: Journal) -> tuple[int, int]:
        """Files at their names, and all of them."""
        path = self._lake / record_path(stream, shard, journal.number)
        if not path.exists():  # it is published first
            return 0, 0
        files = from_bytes(path.read_bytes(), str(path)).files
        return sum((self._lake / one.published).exists() for one in files), len(files)

    def _journal(self, stream: str, shard: int) -> Journal | None:
        found = read(self._store, checkpoint_key(stream, shard), Checkpoint)
        return None if found is None else found.value.journal

    def _holder(self, stream: str, shard: int) -> Child | None:
        task = read(self._store, task_key(feed_name(stream), shard), Task)
        if task is None or not task.value.holder:
            return None
        for child in self._children:
            if child.is_there and child.session == task.value.holder:
                return child
        return None
