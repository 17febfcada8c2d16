"""Lean landing: a program that lands on a disk which is full or read-only at times.

    python -m tests.integration.lean_landing ROOT mount|limits

`mount`: the lake is a small file system of its own; whoever starts this gives it a mount namespace.
`limits`: where nobody may have one, Java's files may not grow, and the lake is refused. Each act
prints a line of JSON: what was told while the disk refused, what stood in the checkpoint then, and
what was in the lake after it had room again.
"""

import errno
import json
import logging
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import psutil
import pytest

from headgate import App
from headgate.app.nodes import Joined
from headgate.commits.replay import carry_out_journal
from headgate.errors import Unavailable
from headgate.lake import FileFacts
from headgate.lake.local import LocalLake
from headgate.lake.refusals import refusal
from tests.integration.landings import Yard, orders, whole_hour

HEARD_S = 90.0
FILE_BYTES_MAX = 16_384  # so long may Java's files be, where nothing else refuses
MOUNT = ["mount", "-t", "tmpfs", "-o", "size=3m,nr_inodes=500", "tmpfs"]


class Disk(Protocol):
    def fill(self) -> None: ...
    def make_read_only(self) -> None: ...
    def mend(self) -> None: ...


class MountedDisk:
    """A file system with 3 MB of room, and room for 500 files."""

    def __init__(self, lake: Path) -> None:
        self._lake = lake
        self._filler = lake / "filler"
        lake.mkdir()
        subprocess.run([*MOUNT, str(lake)], check=True)

    def fill(self) -> None:
        self._filler.mkdir()
        for n in range(10_000):
            with suppress(OSError):
                (self._filler / str(n)).write_bytes(b"x" * 65_536)
            if not (self._filler / str(n)).exists():
                return  # neither room nor names are left

    def make_read_only(self) -> None:
        self._remount("ro")

    def mend(self) -> None:
        self._remount("rw")
        subprocess.run(["rm", "-rf", str(self._filler)], check=True)

    def _remount(self, how: str) -> None:
        # Only this view of it: Java may hold files of a job that failed open for writing.
        subprocess.run(["mount", "-o", f"remount,bind,{how}", str(self._lake)], check=True)


class LimitedDisk:
    """The lake writes and moves nothing, and of a full one Java writes short files only."""

    def __init__(self) -> None:
        self._patch = pytest.MonkeyPatch()

    def fill(self) -> None:
        self._limit_java(FILE_BYTES_MAX)
        self._refuse(errno.ENOSPC)

    def make_read_only(self) -> None:
        self._refuse(errno.EROFS)

    def mend(self) -> None:
        self._limit_java(resource.RLIM_INFINITY)
        self._patch.undo()

    def _refuse(self, number: int) -> None:
        def refuse(*_: object) -> bool:
            raise OSError(number, os.strerror(number))

        def refuse_to_stage(_lake: LocalLake, path: str, _content: bytes) -> FileFacts:
            raise refusal(OSError(number, os.strerror(number)), path)

        self._patch.setattr("headgate.lake.moves.rename_new", refuse)
        self._patch.setattr(LocalLake, "stage", refuse_to_stage)

    def _limit_java(self, size_bytes: int) -> None:
        for process in psutil.Process().children(recursive=True):
            limits = (size_bytes, resource.RLIM_INFINITY)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limits)


class Hearing(logging.Handler):
    """Why tasks wait or fail."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg in ("task.waits", "task.failed"):
            self.heard.append(str(record.__dict__["why"]))


class Story:
    def __init__(self, root: Path, disk: Disk) -> None:
        self.disk = disk
        self.yard = Yard(root)
        self.app: App = self.yard.app(self.yard.stream("orders"))
        self.dropped = 0
        self.hearing = Hearing()
        logging.getLogger("headgate.cluster.worker").addHandler(self.hearing)

    def act(self, name: str, spoil: Callable[[], None]) -> None:
        self.drop()
        self.hearing.heard.clear()
        spoil()
        try:
            self.app.run(on_poll=self._end_when_heard, until="idle", max_seconds=HEARD_S)
        except Unavailable as error:
            self.hearing.heard.append(str(error))
        refused = self.told()
        self.disk.mend()
        heard = list(self.hearing.heard)
        self.app.run(until="idle")
        self.say(act=name, heard=heard, refused=refused, mended=self.told())

    def drop(self) -> None:
        """Records that cannot be packed into little room."""
        chance = random.Random(self.dropped)
        ids = range(self.dropped, self.dropped + 20)
        at_ms = whole_hour(self.dropped // 20)  # each time another hour: there is a folder to make
        lines = [{**one, "fill": chance.randbytes(4_000).hex()} for one in orders(ids, at_ms)]
        self.yard.drop("orders", f"{self.dropped}.json", lines)
        self.dropped += 20

    def told(self) -> dict[str, Any]:
        (shard,) = self.app.progress()
        journal = shard.checkpoint.journal
        return {
            "position": shard.checkpoint.positions.get("lane-0", ""),
            "journal": None if journal is None else journal.number,
            "set_aside": shard.set_aside,
            "ids": sorted(self.yard.rows("orders").ids().elements()),
            "findings": [one.words for one in self.app.audit(is_deep=True).findings],
        }

    def say(self, **what: object) -> None:
        print(json.dumps(what), flush=True)

    def _end_when_heard(self, joined: Joined) -> None:
        if self.hearing.heard:
            joined.node.drain()


@contextmanager
def before_publishing(act: Callable[[], None]) -> Iterator[None]:
    """Once: after the intent, before the first file is published."""
    left = [act]

    def carry_out(*args: Any, **options: Any) -> Any:
        if left:
            left.pop()()
        return carry_out_journal(*args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headgate.landing.shard.carry_out_journal", carry_out)
        yield


def main(root: Path, way: str) -> None:
    disk: Disk = MountedDisk(root / "lake") if way == "mount" else LimitedDisk()
    story = Story(root, disk)
    story.drop()
    story.app.run(until="idle")
    story.act("full while staging", disk.fill)
    with before_publishing(disk.fill):
        story.act("full while publishing", lambda: None)
    story.act("read-only", disk.make_read_only)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
