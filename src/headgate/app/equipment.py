"""Equipment: what a node needs to land the streams of its settings.

Spark is started by the first round that reads something, and not before: a node without work, or
with nothing but status to tell, needs no Java.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial

from headgate.ambient import Ambient
from headgate.app.letters import REDRIVEN_PREFIX
from headgate.app.nodes import Equip, Equipment
from headgate.app.roots import first_hour_ms, roots_of, tables_of
from headgate.apply import TableSettings
from headgate.apply.kind import TableFeed, TableKind
from headgate.apply.work import OpenTable, TableTools
from headgate.cluster.store_clock import StoreClock
from headgate.commits import StepKind
from headgate.commits.replay import read_record
from headgate.engine import Engine
from headgate.engine.footers import columns_of
from headgate.engine.merger import Merger
from headgate.engine.merger.spark import SparkMerger
from headgate.engine.spark import SparkEngine
from headgate.errors import Invalid
from headgate.lake import Lake, LakeSettings
from headgate.lake.ledger import Ledger
from headgate.lake.opening import local_root, open_lake
from headgate.landing import StreamSettings
from headgate.landing.jobs import Jobs
from headgate.landing.kind import LandFeed, LandKind
from headgate.landing.names import REDRIVE, REDRIVEN, commit_of
from headgate.landing.shard import OpenSource, Tools
from headgate.landing.stream_document import shard_of
from headgate.node import Hands
from headgate.periods import escape_name
from headgate.ready.kind import RootFeed, RootKind
from headgate.ready.work import RootTools
from headgate.settings import Settings
from headgate.settings.secrecy import resolved
from headgate.sources import FilesSettings, Source
from headgate.sources.files import FilesSource
from headgate.sources.joined import JoinedSource
from headgate.sources.local_folder import LocalFolder
from headgate.sources.shapes import SchemaOf
from headgate.sources.spark import FilesReader
from headgate.store import DocumentStore
from headgate.tables import Mover, Table
from headgate.tables.parquet import ParquetTable
from headgate.tables.site import open_site
from headgate.tables.spark import SparkMover

READERS = {"files": FilesReader()}


class StoreAmbient:
    """The ambient of a node with the store's clock on its wall: when a file was first seen, and
    when nothing was waiting, must not depend on which node looked."""

    def __init__(self, behind: Ambient, clock: StoreClock) -> None:
        self._clock = clock
        self.monotonic_ms = behind.monotonic_ms
        self.boot_ms = behind.boot_ms
        self.random = behind.random
        self.new_id = behind.new_id
        self.sleep_ms = behind.sleep_ms

    def wall_ns(self) -> int:
        """Raises Unavailable."""
        return self._clock.now_ms() * 1_000_000


@dataclass(frozen=True, slots=True)
class Landing:
    """Everything that outlives a node's membership."""

    lake: Lake
    engine: Engine
    mover: Mover
    merger: Merger
    hands: Hands


@contextmanager
def opened_landing(
    settings: Settings, ambient: Ambient, engine: Engine | None = None
) -> Iterator[Landing]:
    """`engine`: instead of Spark. Raises Invalid, Unavailable."""
    check_apart(settings)
    with closing(Hands()) as hands:
        lake = open_lake(settings.lake, ambient, hands.each)
        spark = resolved(settings.spark)
        own = engine or SparkEngine(spark, lake.url, READERS)
        with (
            closing(own),
            closing(SparkMover(spark, lake.url)) as mover,
            closing(SparkMerger(spark, lake.url)) as merger,
        ):
            yield Landing(lake, own, mover, merger, hands)


def check_apart(settings: Settings) -> None:
    """What is landed must not be read again. Raises Invalid."""
    lake = os.path.realpath(local_root(settings.lake.root))
    for name, stream in settings.streams.items():
        for path in filter(None, (stream.source.path, stream.source.move_to)):
            source = os.path.realpath(path)
            if os.path.commonpath((lake, source)) in (lake, source):
                raise Invalid(
                    f"stream {name}: {path} and the lake {lake} lie in each other: what is landed "
                    "would be read again; next: give them folders side by side in the settings"
                )


def landing_equipment(
    settings: Settings,
    landing: Landing,
    node: str,
    *,
    kinds: Mapping[str, StepKind],
    eager_since_ms: int | None = None,
) -> Equip:
    """For `joined_node`."""

    def equip(store: DocumentStore, ambient: Ambient) -> Equipment:
        jobs = Jobs(landing.engine, landing.lake, ambient)
        clock = StoreClock(store, ambient)
        tools = Tools(
            store,
            landing.lake,
            jobs,
            source_opener(settings.lake, landing.lake, StoreAmbient(ambient, clock)),
            Ledger(landing.lake, node, ambient),
            ambient,
            clock.off_ms,
            kinds,
            eager_since_ms,
            landing.hands.each,
        )
        root_tools = RootTools(
            store,
            landing.lake,
            tools.ledger,
            ambient,
            clock.now_ms,
            landing.hands.each,
            landing.merger,
        )
        table_tools = TableTools(
            store,
            landing.lake,
            table_opener(landing, ambient),
            partial(first_hour_ms, store, settings),
            tools.ledger,
            ambient,
        )
        streams, roots = settings.streams.values(), roots_of(settings)
        tables = tables_of(settings)
        return Equipment(
            [
                *(LandKind(stream, tools) for stream in streams),
                *(RootKind(root, root_tools) for root in roots),
                *(TableKind(table, table_tools) for table in tables),
            ],
            [*map(LandFeed, streams), *map(RootFeed, roots), *map(TableFeed, tables)],
            {"jobs": jobs},
        )

    return equip


def table_opener(landing: Landing, ambient: Ambient) -> OpenTable:
    def open_table(settings: TableSettings, epoch: int, check: Callable[[], None]) -> Table:
        site = open_site(settings.path, ambient)
        return ParquetTable(settings.name, site, landing.mover, ambient, epoch, check)

    return open_table


def source_opener(settings: LakeSettings, lake: Lake, ambient: Ambient) -> OpenSource:
    """The stream's own source, and that of its dead letters which are driven in again."""
    root = local_root(settings.root)

    def open_source(stream: StreamSettings, shard: int, epoch: int, store: DocumentStore) -> Source:
        open_one = partial(_open_files, stream, shard, epoch, store, ambient)
        dead = redrive_settings(root, stream.name)
        columns_of_dead = partial(columns_of_letters, lake, stream.name)
        return JoinedSource([open_one(stream.source, columns_of), open_one(dead, columns_of_dead)])

    return open_source


def redrive_settings(root: str, stream: str) -> FilesSettings:
    name = escape_name(stream)
    return FilesSettings(
        os.path.join(root, REDRIVE, name),
        "dead",
        after_read="move",
        move_to=os.path.join(root, REDRIVEN, name),
        prefix=REDRIVEN_PREFIX,
    )


def columns_of_letters(lake: Lake, stream: str, path: str) -> tuple[str, ...]:
    """Of the csv that a file of dead letters came from: its commit's record says them."""
    commit = commit_of(os.path.basename(path))
    record = None if commit is None else read_record(lake, stream, *commit)
    return () if record is None else record.columns


def _open_files(
    stream: StreamSettings,
    shard: int,
    epoch: int,
    store: DocumentStore,
    ambient: Ambient,
    files: FilesSettings,
    schema_of: SchemaOf,
) -> Source:
    lanes = [f"{files.prefix}-{number}" for number in range(files.lanes)]
    own = [one for one in lanes if shard_of(one, stream.shards) == shard]
    folder = LocalFolder(files.path)
    return FilesSource(files, stream.name, own, epoch, store, folder, ambient, schema_of)
