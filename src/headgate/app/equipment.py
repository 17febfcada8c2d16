"""Equipment: what a node needs to land the streams of its settings.

Spark is started by the first round that reads something, or to judge expressions in SQL, and not
before: a node without either, or with nothing but status to tell, needs no Java.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from headgate.ambient import Ambient
from headgate.app.clusters import open_cluster
from headgate.app.nodes import Equip, Equipment
from headgate.app.redriving import redriven_letters
from headgate.app.roots import first_hour_ms, roots_of, tables_of
from headgate.app.watching import Watch
from headgate.apply import TableSettings
from headgate.apply.kind import TableFeed, TableKind
from headgate.apply.work import OpenTable, TableTools
from headgate.cluster.duties import Loop
from headgate.cluster.store_clock import StoreClock
from headgate.commits import StepKind
from headgate.commits.replay import read_record
from headgate.engine import Engine, Schemas, SparkSettings
from headgate.engine.footers import columns_of
from headgate.engine.gateway.spark import give_up
from headgate.engine.merger import Merger
from headgate.engine.merger.spark import SparkMerger
from headgate.engine.shelf import Shelf
from headgate.engine.spark import Reader, SparkEngine
from headgate.engine.watch.spark import stages_now
from headgate.errors import Invalid
from headgate.lake import Lake, LakeSettings
from headgate.lake.ledger import Ledger
from headgate.lake.opening import local_root, open_lake, scheme_of
from headgate.lake.s3a import conf_of
from headgate.lake.shelf import shelf_of
from headgate.landing import StreamSettings
from headgate.landing.jobs import Jobs
from headgate.landing.kind import LandFeed, LandKind
from headgate.landing.names import commit_of
from headgate.landing.shard import OpenSource, Tools
from headgate.landing.stream_document import shard_of
from headgate.node import HANDS, Hands
from headgate.ready.kind import RootFeed, RootKind
from headgate.ready.work import RootTools
from headgate.settings import Settings
from headgate.settings.secrecy import resolved, resolved_values
from headgate.sources import AvroSettings, FilesSettings, KafkaSettings, Source
from headgate.sources.files import FilesSource
from headgate.sources.folder import Folder
from headgate.sources.joined import JoinedSource
from headgate.sources.kafka import Cluster
from headgate.sources.kafka.options import for_spark
from headgate.sources.kafka.registry import KnownSchemas, Registry, read_schema
from headgate.sources.kafka.source import KafkaSource
from headgate.sources.kafka.spark import KafkaReader
from headgate.sources.local_folder import LocalFolder
from headgate.sources.shapes import SchemaOf
from headgate.sources.spark import FilesReader
from headgate.store import DocumentStore
from headgate.tables import Mover, Table
from headgate.tables.parquet import ParquetTable
from headgate.tables.site import open_site
from headgate.tables.spark import SparkMover


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
    is_bucket = scheme_of(settings.lake.root) == "s3"
    with closing(Hands(settings.lake.bucket.requests_max if is_bucket else HANDS)) as hands:
        lake = open_lake(settings.lake, ambient, hands.each)
        own_conf = resolved(settings.spark)
        spark = replace(
            own_conf,
            needs=needs_of(settings),
            conf={**conf_of(settings.lake, ambient), **own_conf.conf},
        )
        shelf = shelf_of(lake, hands.each)
        schemas = schemas_of(settings)
        own = engine or SparkEngine(spark, lake.url, readers_of(settings, shelf), schemas, shelf)
        with (
            closing(own),
            closing(SparkMover(spark, lake.url)) as mover,
            closing(SparkMerger(spark, lake.url, shelf)) as merger,
        ):
            yield Landing(lake, own, mover, merger, hands)


def kafka_streams(settings: Settings) -> list[KafkaSettings]:
    every = (*settings.streams.values(), *settings.templates.values())
    sources = (stream.source for stream in every)
    return [one for one in sources if isinstance(one, KafkaSettings)]


def needs_of(settings: Settings) -> tuple[str, ...]:
    """Jars beside Spark's own."""
    every = (*settings.streams.values(), *settings.templates.values())
    needs = {
        "kafka": bool(kafka_streams(settings)),
        "avro": any("avro" in (one.source.format, one.land_as) for one in every),
        "s3": scheme_of(settings.lake.root) == "s3",
    }
    return tuple(need for need, is_needed in needs.items() if is_needed)


def readers_of(settings: Settings, shelf: Shelf | None = None) -> dict[str, Reader]:
    """By kind of source; `shelf`: of a lake that is elsewhere than on this machine. Raises Invalid:
    a secret that is not there."""
    clusters = {
        one.place: for_spark(
            one.brokers,
            resolved_values(one.options),
            resolved_values(one.spark_options),
            one.isolation,
        )
        for one in kafka_streams(settings)
    }
    return {"files": FilesReader(shelf), "kafka": KafkaReader(clusters)}


def schemas_of(settings: Settings) -> Schemas:
    """Of all Avro streams. Raises Invalid: a file that is none, a secret that is not there."""
    every = {one.avro for one in kafka_streams(settings) if one.avro is not None}
    files = {one.coding.place: read_schema(one.schema) for one in every if one.schema}
    registries = {one.coding.place: _registry(one) for one in every if one.registry}
    return KnownSchemas(files, registries)


def _registry(settings: AvroSettings) -> Registry:
    secret = resolved_values({"password": settings.password, "token": settings.token})
    return Registry(settings.registry, user=settings.user, ca=settings.ca, **secret)


def check_apart(settings: Settings) -> None:
    """What is landed must not be read again. Raises Invalid."""
    if scheme_of(settings.lake.root) != "file":
        return  # nothing is read from there
    lake = os.path.realpath(local_root(settings.lake.root))
    for name, stream in settings.streams.items():
        if not isinstance(stream.source, FilesSettings):
            continue
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
    loops: Mapping[str, Loop] | None = None,
) -> Equip:
    """For `joined_node`; with these loops besides."""
    more = loops or {}

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
            {"jobs": jobs, **_watched(settings.spark, ambient), **more},
        )

    return equip


def _watched(spark: SparkSettings, ambient: Ambient) -> dict[str, Loop]:
    """A loop, unless nobody wants it or the driver is elsewhere."""
    if spark.remote or not spark.stall_after_ms:
        return {}
    return {"watch": Watch(spark.stall_after_ms, stages_now, give_up, ambient)}


def table_opener(landing: Landing, ambient: Ambient) -> OpenTable:
    def open_table(settings: TableSettings, epoch: int, check: Callable[[], None]) -> Table:
        site = open_site(settings.path, ambient)
        return ParquetTable(settings.name, site, landing.mover, ambient, epoch, check)

    return open_table


def source_opener(settings: LakeSettings, lake: Lake, ambient: Ambient) -> OpenSource:
    """The stream's own source, and that of its dead letters which are driven in again."""
    clusters = Clusters(ambient)

    def open_source(stream: StreamSettings, shard: int, epoch: int, store: DocumentStore) -> Source:
        open_one = partial(_open_files, stream, shard, epoch, store, ambient)
        source = stream.source

        def is_mine(partition: str) -> bool:
            return shard_of(partition, stream.shards) == shard

        if isinstance(source, FilesSettings):
            own = open_one(source, LocalFolder(source.path), columns_of)
        else:
            cluster = clusters.opened(source)
            own = KafkaSource(source, stream.name, is_mine, store, cluster, ambient)
        dead = redriven_letters(settings, lake, stream.name)
        return JoinedSource(own, open_one(*dead, partial(columns_of_letters, lake, stream.name)))

    return open_source


class Clusters:
    """Kafka clusters, each with one client however many shards read from it."""

    def __init__(self, ambient: Ambient) -> None:
        self._ambient = ambient
        self._alone = threading.Lock()
        self._opened: dict[str, Cluster] = {}

    def opened(self, settings: KafkaSettings) -> Cluster:
        """Raises Invalid."""
        with self._alone:
            found = self._opened.get(settings.place)
            if found is None:
                found = self._opened[settings.place] = open_cluster(settings, self._ambient)
            return found


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
    folder: Folder,
    schema_of: SchemaOf,
) -> Source:
    lanes = [f"{files.prefix}-{number}" for number in range(files.lanes)]
    own = [one for one in lanes if shard_of(one, stream.shards) == shard]
    return FilesSource(files, stream.name, own, epoch, store, folder, ambient, schema_of)
