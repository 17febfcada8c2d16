"""Declared: a stream, its source and a table, as a Python program writes them.

The names are those of the settings file, and so are the values: durations like `5m`, sizes like
`128MB`. What is left out has the default of the settings. Nothing is judged here; `App.add` does.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from os import PathLike, fspath
from typing import Literal

from headgate.engine import LandAs
from headgate.errors import Invalid
from headgate.landing import LateRecords
from headgate.settings import Settings, TableKind
from headgate.settings.loading import judge
from headgate.settings.problems import Problem, quoted
from headgate.store import JsonObject

Tree = dict[str, object]
Codec = Literal["zstd", "snappy", "gzip", "lz4", "deflate", "none"]


@dataclass(frozen=True, slots=True)
class Files:
    """A folder into which files are dropped: `source` in the settings."""

    path: str | PathLike[str]
    format: Literal["json", "csv", "text", "parquet"] = "json"
    _: KW_ONLY
    lanes: int | None = None
    include: Sequence[str] | None = None
    exclude: Sequence[str] | None = None
    min_age: str | None = None
    after_read: Literal["keep", "move", "delete"] | None = None
    move_to: str | PathLike[str] | None = None
    columns: Sequence[str] | None = None

    def tree(self) -> Tree:
        return {"kind": "files", **_given(self)}


@dataclass(frozen=True, slots=True)
class Kafka:
    """Topics of a Kafka cluster: `source` in the settings, with `kind: kafka`."""

    brokers: str
    topic: str | None = None
    _: KW_ONLY
    topics: Sequence[str] | None = None
    pattern: str | None = None
    format: Literal["json", "text", "binary", "avro"] | None = None
    schema: str | PathLike[str] | None = None
    registry: str | Mapping[str, str] | None = None
    framing: Literal["none", "confluent"] | None = None
    start: str | None = None
    out_of_range: Literal["fail", "earliest", "latest"] | None = None
    isolation: Literal["read_committed", "read_uncommitted"] | None = None
    options: Mapping[str, str] | None = None
    spark_options: Mapping[str, str] | None = None
    land: Sequence[Literal["key", "headers", "timestamp"]] | None = None
    round_records: int | None = None
    records_per_second: int | None = None

    def tree(self) -> Tree:
        return {"kind": "kafka", **_given(self)}


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream. `event_time` is a JSON path, or a mapping as in the settings."""

    name: str
    source: Files | Kafka
    event_time: str | Mapping[str, str]
    _: KW_ONLY
    land_as: LandAs | None = None
    folder: str | None = None
    former_folders: Sequence[str] | None = None
    shards: int | None = None
    shift: str | None = None
    grace: str | None = None
    allowed_lateness: str | None = None
    future_skew: str | None = None
    late_records: LateRecords | None = None
    first_hour: str | None = None
    last_hour: str | None = None
    record_size_max: str | None = None
    round_size: str | None = None
    merge: bool | None = None
    target_size: str | None = None
    codec: Codec | None = None
    columns: str | None = None
    nodes: Sequence[str] | None = None
    steps: Sequence[JsonObject] | None = None

    def tree(self) -> Tree:
        by = {"json": self.event_time} if isinstance(self.event_time, str) else self.event_time
        given = _given(self)
        del given["name"]
        return {**given, "source": self.source.tree(), "event_time": by}


@dataclass(frozen=True, slots=True)
class Table:
    """A table that takes the ready hours of a stream, in order."""

    name: str
    stream: str
    path: str | PathLike[str]
    _: KW_ONLY
    kind: TableKind = "parquet"

    def tree(self) -> Tree:
        return {"kind": self.kind, "path": self.path, "feed": {"stream": self.stream}}


def declared(what: str, tree: Tree, parts: Sequence[Stream | Table], folder: str) -> Settings:
    """`what`: whose call this is, for the message; `folder`: where relative paths start. Raises
    Invalid, with every problem."""
    streams = {one.name: one.tree() for one in parts if isinstance(one, Stream)}
    tables = {one.name: one.tree() for one in parts if isinstance(one, Table)}
    found = judge(_yaml({**tree, "streams": streams, "tables": tables}), folder, {})
    if found.settings is not None:
        return found.settings
    count = "1 problem" if len(found.problems) == 1 else f"{len(found.problems):,} problems"
    listed = "\n".join(f"  {_without_a_line(one)}" for one in found.problems)
    raise Invalid(f"{what}: {count}, so nothing of it is used\n{listed}\nnext: correct the call")


def _yaml(whole: Tree) -> bytes:
    """JSON is YAML, too; but for letters that JSON writes as two."""
    return json.dumps(whole, default=_plain, ensure_ascii=False).encode()


def _given(declaration: Files | Kafka | Stream) -> Tree:
    every = {one.name: getattr(declaration, one.name) for one in fields(declaration)}
    return {name: value for name, value in every.items() if value is not None}


def _without_a_line(problem: Problem) -> Problem:
    """There is no file, and the stream or table is named already."""
    is_of_part = problem.place[:1] in (("streams",), ("tables",)) and len(problem.place) > 2
    return replace(problem, line=0, place=problem.place[2 if is_of_part else 0 :])


def _plain(value: object) -> object:
    """What JSON does not know. Raises Invalid."""
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise Invalid(
        f"{quoted(str(value))} is a {type(value).__name__}, and a setting is a text, a number, a "
        "list or a mapping; durations are like '5m', sizes like '128MB'; next: correct the call"
    )
