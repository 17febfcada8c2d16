"""Orders: records to land, and the proof from the lake alone that each is there once."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from headgate.commits.record import Record, from_bytes
from headgate.engine.footers import texts_of
from headgate.periods import HOUR_MS

TOWNS = ("Lisbon", "Tromsø", "São Paulo", "台北", "Cork", "Łódź")
SPOILED = ("{ this is no JSON", '{"id": -1}', '{"id": -2, "at": "yesterday"}')
"""Records that cannot be landed: they must be among the dead letters."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Orders with the ids [first, first + count), in files of equal size."""

    first: int
    count: int
    files: int
    hours: int  # over which their event times are spread, up to `until_ms`
    until_ms: int
    spoiled: bool = False  # the first file also holds what cannot be landed


def drop(folder: Path, batch: Batch, seed: int) -> None:
    """Writes each file under an unfinished name, then renames it, as a careful program would."""
    random = Random(seed)
    per_file = -(-batch.count // batch.files)
    for number in range(batch.files):
        first = batch.first + number * per_file
        ids = range(first, min(first + per_file, batch.first + batch.count))
        lines = list(_lines(ids, batch, random))
        if batch.spoiled and number == 0:
            lines[10:10] = SPOILED
        unfinished = folder / f".orders-{first:09}.json"
        unfinished.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        os.rename(unfinished, folder / f"orders-{first:09}.json")


def _lines(ids: Sequence[int], batch: Batch, random: Random) -> Iterator[str]:
    for one in ids:
        # More in some hours than in others, as orders are.
        at_ms = batch.until_ms - int(random.triangular(0, batch.hours, batch.hours / 4) * HOUR_MS)
        order = {
            "id": one,
            "at": at_ms,
            "town": random.choice(TOWNS),
            "cents": random.randrange(100_000),
        }
        yield json.dumps(order, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Proof:
    """What lies in the folders, counted."""

    hours: Counter[str]  # records by folder of the hour
    late: int
    dead: int
    missing: tuple[int, ...]
    doubled: tuple[int, ...]
    files: int

    @property
    def is_right(self) -> bool:
        return not self.missing and not self.doubled


def count(lake: Path, ids: range) -> Proof:
    """Reads every published Parquet file: no record of a commit, no document is asked."""
    seen = bytearray(ids.stop - ids.start)
    doubled: list[int] = []
    hours: Counter[str] = Counter()
    late = dead = files = 0
    for path in sorted(lake.rglob("*.parquet")):
        place = path.relative_to(lake).as_posix()
        if place.startswith("_headgate/"):
            continue
        files += 1
        for text in texts_of(str(path), "value"):
            if place.startswith("_dead/"):
                dead += 1
                continue
            one = json.loads(text)["id"]
            if seen[one - ids.start]:
                doubled.append(one)
            seen[one - ids.start] = 1
            if place.startswith("_late/"):
                late += 1
            else:
                hours["/".join(place.split("/")[:2])] += 1
    missing = [one for one in ids if not seen[one - ids.start]]
    return Proof(hours, late, dead, tuple(missing), tuple(doubled), files)


def records(lake: Path) -> Iterator[Record]:
    """All commit records, shard by shard."""
    for path in sorted((lake / "_headgate/commits").rglob("*.json")):
        yield from_bytes(path.read_bytes(), path.name)
