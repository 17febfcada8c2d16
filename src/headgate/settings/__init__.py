"""Settings: one file, `headgate.yaml`, becomes frozen values that are known to be possible.

    bytes ── parsed ──▶ tree ── overrides ──▶ tree ── model, crossings ──▶ Settings
                                                                    └──▶ problems, all at once

The values that a room needs stand beside its code; here they are only put together. Secrets are
references until the moment of use (`secrecy`). What is possible and still strange is a remark
(`remarks`, pure; `surroundings`, which looks at this machine).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from headgate.engine import SparkSettings
from headgate.lake import LakeSettings
from headgate.landing import StreamSettings

TableKind = Literal["parquet", "delta", "iceberg", "jdbc"]


@dataclass(frozen=True, slots=True)
class TableSettings:
    name: str
    kind: TableKind
    stream: str  # whose ready periods it takes
    path: str = ""  # absolute, or a URL; of parquet and delta


@dataclass(frozen=True, slots=True)
class NodeDefaults:
    """What a node is started with, unless its command says otherwise."""

    name: str = ""  # "": host and process id
    workers: int = 2
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Settings:
    store: str  # a URL; a path in it is absolute
    lake: LakeSettings
    namespace: str = "default"
    streams: Mapping[str, StreamSettings] = field(default_factory=dict)
    templates: Mapping[str, StreamSettings] = field(default_factory=dict)  # a stream for each topic
    tables: Mapping[str, TableSettings] = field(default_factory=dict)
    spark: SparkSettings = field(default_factory=SparkSettings)
    node: NodeDefaults = NodeDefaults()
    past: Mapping[str, StreamSettings] = field(default_factory=dict)  # earlier lives of streams

    @property
    def every(self) -> Mapping[str, StreamSettings]:
        """Streams whose folders are known: those that land, and their earlier lives."""
        return {**self.past, **self.streams}

    def called(self, name: str) -> str:
        """The stream that a person means: `orders` is its life of today, `orders~1` its first."""
        today = (key for key, one in self.streams.items() if one.word == name)
        first = name.removesuffix("~1")
        return next(today, first if first in self.past else name)
