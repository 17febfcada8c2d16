"""Estuary: where the brook meets the lake. What must be true there in the end.

Every record that the brook gave out is in the lake once: in an hour's folder, late, or dead. Read
from the published files alone, as anybody could.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.engine import EventTime
from headgate.lake.memory import MemoryLake
from headgate.landing import StreamSettings
from headgate.landing.names import DEAD, LATE
from headgate.periods import DEFAULT_FOLDER, FolderTemplate
from headgate.sources import FilesSettings
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.testing.brook import Brook
from headgate.testing.mill import taken_by

STREAM = "orders"


def settings_of(shards: int = 1) -> StreamSettings:
    """A stream for tests: short shifts, small rounds."""
    return StreamSettings(
        STREAM,
        FilesSettings("/brook"),
        EventTime("json", "$.at"),
        FolderTemplate.parse(DEFAULT_FOLDER),
        land_as="json",
        shards=shards,
        round_bytes=300,
        shift_ms=10_000,
        grace_ms=1_000,
        allowed_lateness_ms=60_000,
    )


@dataclass(slots=True)
class Estuary:
    """What all machines share, but for the store."""

    settings: StreamSettings
    brook: Brook = field(default_factory=Brook)
    lake: MemoryLake = field(default_factory=MemoryLake)

    def landed(self) -> Counter[int]:
        """How often each id is in published files."""
        found: Counter[int] = Counter()
        for path, content in self.published().items():
            del path
            found.update(json.loads(line)["id"] for line in content.decode().splitlines())
        return found

    def published(self) -> Mapping[str, bytes]:
        """Files of records, with late and dead ones."""
        return {
            path: content
            for path, content in self.lake.files().items()
            if not path.startswith("_") or path.startswith((f"{LATE}/", f"{DEAD}/"))
        }

    def faults(self) -> list[str]:
        """What is wrong, if everything should have landed."""
        landed, wanted = self.landed(), set(self.brook.ids())
        faults = [f"record {one} is lost" for one in sorted(wanted - set(landed))]
        faults += [
            f"record {one} is there {count} times" for one, count in landed.items() if count > 1
        ]
        return [*faults, *self._misplaced()]

    def _misplaced(self) -> Iterator[str]:
        """Of a stream with outputs, what lies in the folder of another than took it."""
        filters = [(one.name, one.filter) for one in self.settings.outputs]
        for path, content in self.published().items():
            place = self.settings.folder.match_file(path.removeprefix(f"{LATE}/"))
            for line in content.decode().splitlines() if place and filters else ():
                number = json.loads(line)["id"]
                if place and place[0].stream != taken_by(filters, number):
                    yield f"record {number} is in {path}, and another output took it"

    def is_landed(self, store: DocumentStore) -> bool:
        """Every position is at the end, and no commit is unfinished."""
        for shard in range(self.settings.shards):
            found = read(store, checkpoint_key(self.settings.name, shard), Checkpoint)
            if found is None or found.value.journal is not None:
                return False
            for name, position in found.value.positions.items():
                if int(position or 0) < len(self.brook.drops[name]):
                    return False
        names = {
            name
            for shard in range(self.settings.shards)
            if (found := read(store, checkpoint_key(self.settings.name, shard), Checkpoint))
            is not None
            for name in found.value.positions
        }
        return names == set(self.brook.drops)
