"""Mill: an engine in memory. It judges records as the real one does; it stages JSON lines."""

import json
import re
from collections import defaultdict
from collections.abc import Sequence

from headgate.engine import InputFile, Job, Kind, Shape, ShardInput, Staged, StagedFile, Tally
from headgate.engine.failure import JobFailed
from headgate.lake.memory import MemoryLake
from headgate.periods import HOUR_MS, aligned
from headgate.testing.brook import Brook, Speck

Place = tuple[str, Kind, int | None, str]
FILTER = re.compile(r"id % (\d+) = (\d+)")


class Mill:
    """`headgate.engine.Engine`."""

    def __init__(self, brook: Brook, lake: MemoryLake) -> None:
        self._brook = brook
        self._lake = lake
        self.jobs = 0
        self.loses: int | None = None  # id of a record that is lost on the way, as a bad disk would

    def check(self, shape: Shape) -> None:
        """Takes every expression; what it does not know, it refuses with the first record."""

    def stage(self, job: Job) -> Staged:
        self.jobs += 1
        if any(file.partition in self._brook.poison for one in job.inputs for file in one.files):
            raise JobFailed("one of its files is poison")
        lines: dict[Place, list[str]] = defaultdict(list)
        tallies = []
        for one in job.inputs:
            for file in one.files:
                tallies += self._read(job, one, file, lines)
        files = []
        homes = {one.label: one.folder for one in job.inputs}
        for (label, kind, hour_ms, output), rows in sorted(lines.items(), key=str):
            home = homes[label] or f"{job.folder}/shard={label}"
            path = f"{home}/kind={kind}/hour={hour_ms}{output and f'/output={output}'}/part-0.json"
            self._lake.put(path, "".join(f"{row}\n" for row in rows).encode())
            files.append(StagedFile(path, label, kind, hour_ms, len(rows), output))
        return Staged(tuple(files), tuple(tallies))

    def _read(
        self, job: Job, one: ShardInput, file: InputFile, lines: dict[Place, list[str]]
    ) -> list[Tally]:
        drop = self._brook.read(file)
        mark_ms = one.marks_ms[file.partition]
        by_kind: dict[Kind, list[tuple[int, Speck]]] = defaultdict(list)
        for line, speck in enumerate(drop.specks, 1):
            kind, hour_ms = judged(job, speck, file.arrival_ms, mark_ms)
            output = "" if kind == "dead" else taken_by(job.shape.filters, speck.id) or ""
            by_kind[kind].append((line, speck))
            if speck.id != self.loses:
                row = {"id": speck.id, "at": f"{file.partition}/{file.number}:{line}"}
                lines[one.label, kind, hour_ms, output].append(json.dumps(row))
        return [self._tally(one, file, kind, found) for kind, found in sorted(by_kind.items())]

    def _tally(
        self, one: ShardInput, file: InputFile, kind: Kind, found: list[tuple[int, Speck]]
    ) -> Tally:
        kept = [(line, speck) for line, speck in found if speck.id != self.loses]
        numbers = [line for line, _ in found]
        events = [min(s.event_ms, file.arrival_ms) for _, s in kept if s.event_ms is not None]
        return Tally(
            one.label,
            file.partition,
            file.number,
            kind,
            len(kept),
            min(numbers),
            max(numbers),
            max(events, default=None) if kind in ("data", "late") else None,
        )

    def close(self) -> None:
        """Nothing is held open."""


def taken_by(filters: Sequence[tuple[str, str]], number: int) -> str | None:
    """The first output whose filter holds for the id of a record; "": there are none; None: no
    filter does."""
    if not filters:
        return ""
    for output, condition in filters:
        said = FILTER.fullmatch(condition)
        if said is not None and number % int(said[1]) == int(said[2]):
            return output
    return None


def judged(job: Job, speck: Speck, arrival_ms: int, mark_ms: int) -> tuple[Kind, int | None]:
    if speck.event_ms is None or speck.event_ms > arrival_ms + job.shape.future_skew_ms:
        return "dead", None
    if taken_by(job.shape.filters, speck.id) is None:
        return "dead", None
    hour_ms = aligned(speck.event_ms, HOUR_MS)
    return ("late" if hour_ms + HOUR_MS <= mark_ms else "data"), hour_ms
