"""Landings: an App with real Spark in a folder of its own, and what lies in its lake afterwards.

Rows are read from the published files alone: no document and no record of a commit is asked.
"""

import gc
import gzip
import json
import os
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fastavro
import pytest

from headgate import App, Files, Stream
from headgate.ambient import Ambient, SystemAmbient
from headgate.commits.certificate import FLAG
from headgate.commits.record import Record, from_bytes
from headgate.engine import Job, SparkSettings, Staged
from headgate.engine.footers import values_of
from headgate.engine.spark import SparkEngine
from headgate.lake.ledger import Line, decoded
from headgate.periods import HOUR_MS, escape_name
from headgate.sources.spark import FilesReader

MINUTE_MS = 60_000
# With every jar that any test needs: a session that is there already cannot get one.
SPARK = SparkSettings("local[2]", needs=("kafka", "avro"))


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class SharedSpark(SparkEngine):
    """Stays open when a run ends: one session serves all tests of a process."""

    def __init__(self, lake: Path) -> None:
        super().__init__(SPARK, f"file://{lake}", {"files": FilesReader()})
        self.before: Callable[[Job], None] = lambda _: None  # something happens before a job
        self.after: Callable[[Job], None] = lambda _: None

    def stage(self, job: Job) -> Staged:
        self.before(job)
        staged = super().stage(job)
        self.after(job)
        return staged

    def close(self) -> None:
        pass


@pytest.fixture(scope="module", autouse=True)
def sockets_to_java() -> Iterator[None]:
    """pyspark leaves them to the garbage collector; here nobody complains about it."""
    yield
    gc.collect()


class ShiftedClock(SystemAmbient):
    """A wall clock that is wrong by so much; the other clocks are right."""

    def __init__(self, off_ms: int) -> None:
        self._off_ns = off_ms * 1_000_000

    def wall_ns(self) -> int:
        return super().wall_ns() + self._off_ns


@dataclass(frozen=True, slots=True)
class Row:
    """One record as it lies in the lake."""

    place: str  # folder of its file
    value: Any  # the record: a JSON value where it is one, else its text
    raw: bytes
    partition: str
    number: int
    line: int
    reason: str | None

    @property
    def position(self) -> tuple[str, int, int]:
        return self.partition, self.number, self.line

    @property
    def hour(self) -> str:
        """`<date>/<hour>` of an hour's folder."""
        return "/".join(self.place.removeprefix("_late/").split("/")[:2])


@dataclass(frozen=True, slots=True)
class Rows:
    data: list[Row] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)
    dead: list[Row] = field(default_factory=list)

    @property
    def counts(self) -> tuple[int, int, int]:
        return len(self.data), len(self.late), len(self.dead)

    def ids(self, *kinds: str) -> Counter[int]:
        """`id` of each record, as often as it is there."""
        wanted = kinds or ("data", "late")
        return Counter(row.value["id"] for kind in wanted for row in getattr(self, kind))

    @property
    def reasons(self) -> Counter[str | None]:
        return Counter(row.reason for row in self.dead)


class Yard:
    """A folder with everything of one installation."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lake = root / "lake"
        self.engine = SharedSpark(self.lake)

    def app(self, *streams: Stream, ambient: Ambient | None = None) -> App:
        store = f"file:{self.root}/state"
        app = App(store, str(self.lake), engine=self.engine, ambient=ambient)
        for stream in streams:
            app.add(stream)
        return app

    def folder(self, name: str) -> Path:
        """Into which its files are dropped."""
        place = self.root / "incoming" / name
        place.mkdir(parents=True, exist_ok=True)
        return place

    def stream(
        self,
        name: str,
        event_time: Any = "$.at",
        format: Any = "json",
        source: dict[str, Any] | None = None,
        **options: Any,
    ) -> Stream:
        return Stream(
            name, Files(self.folder(name), format, **(source or {})), event_time, **options
        )

    def drop(self, stream: str, name: str, content: bytes | Iterable[Any]) -> Path:
        """A whole file at once, as a careful program drops it."""
        raw = content if isinstance(content, bytes) else lines_of(content)
        path = self.folder(stream) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.root / "unfinished"
        unfinished.write_bytes(raw)
        os.rename(unfinished, path)
        return path

    def rows(self, stream: str) -> Rows:
        """Of all published files of a stream."""
        found, name = Rows(), escape_name(stream)
        for path in sorted(self.lake.rglob("*")):
            place = path.parent.relative_to(self.lake).as_posix()
            is_flag = path.name == FLAG
            if not path.is_file() or place.startswith("_headgate") or is_flag:
                continue
            if place.startswith(f"_dead/{name}/"):
                found.dead.extend(_rows(place, path))
            elif place.startswith("_late/") and f"/{name}/" in place:
                found.late.extend(_rows(place, path))
            elif not place.startswith("_") and f"/{name}/" in place:
                found.data.extend(_rows(place, path))
        return found

    def records(self, stream: str, shard: int = 0) -> list[Record]:
        folder = self.lake / "_headgate/commits" / escape_name(stream) / str(shard)
        return [from_bytes(path.read_bytes(), path.name) for path in sorted(folder.glob("*.json"))]

    def ledger(self, what: str) -> list[Line]:
        """Its lines of this kind, without doubles."""
        files = sorted((self.lake / "_headgate/ledger").rglob("*.jsonl"))
        lines = [decoded(raw) for file in files for raw in file.read_bytes().splitlines()]
        return list({line.id: line for line in lines if line and line.what == what}.values())

    def staging(self) -> list[str]:
        """What is left where nobody looks."""
        folder = self.lake / "_headgate/staging"
        return [str(path) for path in folder.rglob("*") if path.is_file()]


def lines_of(records: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in records)


def orders(ids: Sequence[int], at_ms: int, step_ms: int = 0) -> list[dict[str, int]]:
    return [{"id": one, "at": at_ms + n * step_ms} for n, one in enumerate(ids)]


def whole_hour(hours_ago: int) -> int:
    """The beginning of an hour that is over, unless it is this one."""
    return now_ms() // HOUR_MS * HOUR_MS - hours_ago * HOUR_MS


def _rows(place: str, path: Path) -> Iterator[Row]:
    if path.suffix == ".parquet":
        for one in values_of(str(path)):
            yield _of_struct(place, one)
    elif path.suffix == ".avro":
        with path.open("rb") as content:
            for row in fastavro.reader(content):
                yield _of_struct(place, dict(row))  # type: ignore[arg-type] # a record is one
    else:
        raw = path.read_bytes()
        for line in (gzip.decompress(raw) if path.suffix == ".gz" else raw).split(b"\n")[:-1]:
            yield _of_line(place, line)


def _of_struct(place: str, one: dict[str, Any]) -> Row:
    told = one.pop("_headgate")
    raw = told["raw"] if told["raw"] is not None else str(one.get("value", "")).encode()
    value = _value(raw) if set(one) == {"value"} else one
    return Row(place, value, raw, told["partition"], told["number"], told["line"], told["reason"])


def _of_line(place: str, line: bytes) -> Row:
    if not line.startswith(b'{"_headgate"'):  # text
        where, _, raw = line.partition(b"\t")
        partition, _, numbers = where.decode().rpartition("/")
        number, _, own = numbers.partition(":")
        return Row(place, _value(raw), raw, partition, int(number), int(own), None)
    one = json.loads(line)
    told = one.pop("_headgate")
    raw = b64decode(one["raw_base64"]) if "raw_base64" in one else str(one.get("raw", "")).encode()
    value = one.get("value", one)
    return Row(
        place, value, raw, told["partition"], told["number"], told["line"], told.get("reason")
    )


def _value(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode("utf-8", "replace")
