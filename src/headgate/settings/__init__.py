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
    def flagged(self) -> Mapping[str, StreamSettings]:
        """What has flags: streams, and outputs of streams like streams of their own."""
        return {face.name: face for one in self.streams.values() for face in one.flagged}

    @property
    def landed(self) -> Mapping[str, StreamSettings]:
        """Streams whose folders are known: those that land, and their earlier lives."""
        return {**self.past, **self.streams}

    @property
    def every(self) -> Mapping[str, StreamSettings]:
        """The same, with their outputs: whatever may have flags and certificates."""
        found = self.landed.values()
        return {face.name: face for one in found for face in (one, *one.flagged)}

    def called(self, name: str) -> str:
        """What a person means: `orders` is its life of today, `orders~1` its first."""
        today = (key for one in (self.streams, self.flagged) for key in one)
        known = {**self.streams, **self.flagged}
        first = name.removesuffix("~1")
        found = (key for key in today if known[key].word == name)
        return next(found, first if first in self.every else name)
