"""Blend: a merger in memory. It joins files of lines as the real one does."""

from headgate.engine.failure import JobFailed
from headgate.engine.merger import Merged, MergeJob
from headgate.lake.memory import MemoryLake


class Blend:
    """`headgate.engine.merger.Merger`."""

    def __init__(self, lake: MemoryLake) -> None:
        self._lake = lake
        self.jobs = 0
        self.fails = ""  # why every job does
        self.loses = 0  # so many lines of each file, as a bad disk would

    def merge(self, job: MergeJob) -> tuple[Merged, ...]:
        self.jobs += 1
        if self.fails:
            raise JobFailed(self.fails)
        found = []
        for number, group in enumerate(job.groups):
            raws = [self._lake.read(path) for path in group]
            if None in raws:
                raise JobFailed(f"{group[raws.index(None)]}: is gone")
            lines = b"".join(raw for raw in raws if raw is not None).splitlines(keepends=True)
            kept = lines[: len(lines) - self.loses]
            path = f"{job.folder}/part-{number:05}"
            self._lake.put(path, b"".join(kept))
            found.append(Merged(path, len(kept)))
        return tuple(found)
