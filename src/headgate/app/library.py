"""Library: what the command line does, in Python.

app = App(store="file:./state", lake="./lake")
app.add(Stream("orders", source=Files("./incoming"), event_time="$.at"))
print(app.run(until="idle").streams["orders"].landed)
"""

import getpass
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from importlib.metadata import entry_points
from os import PathLike
from pathlib import Path
from typing import Literal

from headgate.ambient import Ambient, Deadline, SystemAmbient
from headgate.app.acts import Acts, Person
from headgate.app.checkup import (
    Checkup,
    SampleRecord,
    check_files,
    check_topics,
    clock_finding,
    judged,
)
from headgate.app.clusters import open_cluster
from headgate.app.declared import Files, Stream, Table, Tree, declared
from headgate.app.flags import REPAIR_REASON, FlagActs
from headgate.app.gaps import Accepted, GapActs, kafka_of
from headgate.app.growth import Topics, TopicWatch, discover, grown, grown_from
from headgate.app.hours import await_ready, filed_certificate, hour_of, why_not_ready
from headgate.app.locating import FileOrigin, Located, Locating
from headgate.app.nodes import Joined, Place, joined_node
from headgate.app.preview import OpenSource, Preview, look_ahead, preview
from headgate.app.progress import ShardProgress, progress_of
from headgate.app.resetting import Reset, ResetActs
from headgate.app.results import Counts, RunResult, StreamResult, counts_of, results_of
from headgate.app.roots import is_more_to_come, roots_of, site_opener, tables_of
from headgate.apply.remedies import Decision, Remedies
from headgate.audit import Audit
from headgate.audit.inspection import audit
from headgate.audit.verifying import Verified, verify
from headgate.cluster.duties import NodeSettings
from headgate.cluster.session import TERM_MS
from headgate.cluster.store_clock import StoreClock
from headgate.commits import StepKind
from headgate.commits.certificate import Certificate
from headgate.commits.streams import StreamDocument, stream_key
from headgate.engine import Engine
from headgate.errors import Corrupt, Invalid, Unavailable
from headgate.lake import Lake
from headgate.lake.ledger import Ledger
from headgate.lake.memory import MemoryLake
from headgate.lake.opening import is_there, open_lake
from headgate.landing import StreamSettings
from headgate.landing.shaping import has_sql
from headgate.node import Ending, Hands
from headgate.periods import Period
from headgate.settings import Settings
from headgate.settings.loading import load
from headgate.settings.units import duration_ms
from headgate.sources import KafkaSettings
from headgate.sources.kafka import Cluster
from headgate.status import read_status
from headgate.status.streams import known_streams, shards_of
from headgate.status.tables import TableStatus, read_tables
from headgate.status.why import Why
from headgate.store import DocumentStore, JsonObject
from headgate.store.changes import read
from headgate.store.registry import open_store

__all__ = ["App", "Files", "RunResult", "Stream", "StreamResult", "Table"]

IDLE_LOOK_MS = 500
WHERE = "library"  # in the ledger, in the place of a node


class App:
    """An installation: its settings, and what can be done with it."""

    def __init__(
        self,
        store: str = "file:./state",
        lake: str | PathLike[str] = "./lake",
        *,
        namespace: str = "default",
        spark: JsonObject | None = None,
        settings: Settings | None = None,
        engine: Engine | None = None,
        ambient: Ambient | None = None,
    ) -> None:
        """`settings`: instead of the arguments before it. Raises Invalid, with every problem."""
        self._tree: Tree = {"store": store, "lake": lake, "namespace": namespace}
        if spark is not None:
            self._tree["spark"] = spark
        self._parts: tuple[Stream | Table, ...] = ()
        self._is_fixed = settings is not None
        self._settings = settings or declared("App(…)", self._tree, (), os.getcwd())
        self._kinds = registered_kinds()
        self._engine = engine
        self._ambient = ambient or SystemAmbient()
        self._clusters: dict[str, Cluster] = {}  # of templates
        self._is_grown = False  # its settings have the streams of its templates

    @classmethod
    def from_file(cls, path: str | Path, *, engine: Engine | None = None) -> "App":
        """Raises Invalid, with every problem."""
        return cls(settings=load(Path(path), os.environ), engine=engine)

    def add(self, part: Stream | Table) -> None:
        """A table comes after its stream. Raises Invalid, with every problem: what it says, its
        name is taken, or the settings come from a file. Then it is not added."""
        kind = "stream" if isinstance(part, Stream) else "table"
        if self._is_fixed:
            raise Invalid(f"the settings come from a file; next: add the {kind} there")
        if any(type(one) is type(part) and one.name == part.name for one in self._parts):
            raise Invalid(f"{kind} {part.name}: was added already; next: give it another name")
        parts = (*self._parts, part)
        self._settings = declared(f"{kind} {part.name}", self._tree, parts, os.getcwd())
        self._is_grown = False
        self._parts = parts

    def add_step_kind(self, kind: StepKind) -> None:
        """A step of your own, for streams whose settings name it."""
        self._kinds[kind.name] = kind

    @property
    def settings(self) -> Settings:
        """With the streams of its templates that are noted in the store. Raises Unavailable, if it
        has templates."""
        if self._settings.templates and not self._is_grown:
            place = self._settings
            with closing(open_store(place.store, place.namespace, ambient=self._ambient)) as store:
                self._settings = grown_from(place, store)
            self._is_grown = True
        return self._settings

    def run(
        self,
        until: Literal["idle"] | None = None,
        *,
        max_seconds: float | None = None,
        node: str = "",
        on_start: Callable[[Joined], None] = lambda _: None,
        on_poll: Callable[[Joined], None] = lambda _: None,
        on_progress: Callable[[Sequence[ShardProgress]], None] = lambda _: None,
        workers: int | None = None,
        labels: Sequence[str] = (),
        term_ms: int = TERM_MS,
    ) -> RunResult:
        """A node, in this thread; until everything has landed, its time is over, or somebody drains
        it. Raises Invalid, Unavailable."""
        ambient = self._ambient
        limit_ms = None if max_seconds is None else int(max_seconds * 1000)
        deadline = None if limit_ms is None else Deadline(ambient, limit_ms)
        before: Counts = {}
        while True:  # once more for each time that new topics come
            result, has_news = self._run(
                until, deadline, before, node, on_start, on_poll, on_progress, workers, labels,
                term_ms,
            )  # fmt: skip
            if not has_news:
                return result

    def _run(
        self,
        until: Literal["idle"] | None,
        deadline: Deadline | None,
        before: Counts,
        node: str,
        on_start: Callable[[Joined], None],
        on_poll: Callable[[Joined], None],
        on_progress: Callable[[Sequence[ShardProgress]], None],
        workers: int | None,
        labels: Sequence[str],
        term_ms: int,
    ) -> tuple[RunResult, bool]:
        """Until it ends, or there are topics that become streams: then it is left in good order, to
        be started with them. `before`: what had landed before the first time."""
        # Only who lands needs Spark's library: it takes a second to load.
        from headgate.app.equipment import landing_equipment, opened_landing

        ambient, topics = self._ambient, self._discover()
        settings = self._settings = grown(self._settings, topics)
        self._is_grown = True
        name = node or settings.node.name or f"{socket.gethostname()}-{os.getpid()}"
        own = NodeSettings(
            name,
            workers or settings.node.workers,
            tuple(sorted({*labels, *settings.node.labels})),
        )
        place = Place(settings.store, settings.namespace)
        with (
            opened_landing(settings, ambient, self._engine) as landing,
            closing(open_store(place.url, place.namespace, ambient=ambient)) as store,
        ):
            clock = StoreClock(store, ambient)
            since_ms = clock.now_ms()
            news = TopicWatch(settings, topics, store, self._open_cluster, ambient)
            equip = landing_equipment(
                settings,
                landing,
                name,
                kinds=self._kinds,
                eager_since_ms=since_ms if until == "idle" else None,
                loops={"topics": news} if settings.templates and until is None else {},
            )
            with joined_node(place, own, ambient, equip=equip, term_ms=term_ms) as joined:
                for stream, counts in counts_of(store, settings).items():
                    before.setdefault(stream, counts)
                on_start(joined)
                watch = _Watch(
                    self, store, landing.lake, clock, since_ms, until, deadline, joined, on_progress
                )

                is_left_for_news: list[bool] = []

                def poll() -> None:
                    on_poll(joined)
                    watch.poll()
                    if news.has_news and not joined.duties.steward.is_draining:
                        is_left_for_news.append(True)
                        joined.node.drain()

                ending = joined.node.run(poll)
                after = progress_of(store, settings.streams, since_ms, clock.now_ms())
                result = RunResult(
                    results_of(store, landing.lake, settings, before, after),
                    {one.name: one for one in read_tables(store, settings.tables)},
                    all(one.is_idle for one in after),
                    ending,
                )
                return result, bool(is_left_for_news) and ending is Ending.DRAINED

    def _discover(self) -> Topics:
        """Topics of templates; also those that nobody has noted yet."""
        if not self._settings.templates:
            return {}
        place = self._settings
        with closing(open_store(place.store, place.namespace, ambient=self._ambient)) as store:
            return discover(place, store, self._open_cluster)

    def _open_cluster(self, settings: KafkaSettings) -> Cluster:
        if settings.place not in self._clusters:
            self._clusters[settings.place] = open_cluster(settings, self._ambient)
        return self._clusters[settings.place]

    @contextmanager
    def acts(self, node: str = WHERE) -> Iterator[Acts]:
        """What a person asks of it."""
        with self._opened() as (store, lake):
            yield Acts(store, lake, Ledger(lake, node, self._ambient), self._ambient)

    def pause(self, stream: str, reason: str, who: str = "") -> bool:
        with self.acts() as acts:
            return acts.pause(
                self.settings.called(stream), Person(who or getpass.getuser(), reason)
            )

    def resume(self, stream: str, reason: str, who: str = "") -> bool:
        with self.acts() as acts:
            return acts.resume(
                self.settings.called(stream), Person(who or getpass.getuser(), reason)
            )

    def retire(self, stream: str, reason: str, who: str = "") -> bool:
        """It is over for good, and nobody waits for it; whether anything changed."""
        with self.acts() as acts:
            by = Person(who or getpass.getuser(), reason)
            name, known = self.settings.called(stream), self.settings.streams
            return acts.retire(name, by, known) is not None

    def reset(self, stream: str, into: str, reason: str, who: str = "") -> Reset | None:
        """It begins anew, in the folder that the settings have for it by now; what it landed before
        stays. None: it did already. Raises Invalid (settings and call do not agree, the new root is
        not empty), Halted (somebody works on it), Unavailable."""
        own, by = self._stream(stream), Person(who or getpass.getuser(), reason)
        with self._opened() as (store, lake):
            ledger = Ledger(lake, WHERE, self._ambient)
            acts = ResetActs(store, lake, ledger, self._ambient)
            return acts.reset(own, into, self.settings, by)

    def accept_gap(self, stream: str, what: str, reason: str, who: str = "") -> Accepted:
        """Records are gone at a Kafka cluster, and reading goes on behind them. `what`: a source
        partition whose next records expired, or a topic that was deleted and made again. Raises
        Invalid, Halted (nothing of it is gone), Unavailable."""
        own = self._stream(stream)
        cluster = open_cluster(kafka_of(own), self._ambient)
        with self._opened() as (store, lake):
            acts = GapActs(store, lake, Ledger(lake, WHERE, self._ambient), self._ambient)
            return acts.accept(own, what, cluster, Person(who or getpass.getuser(), reason))

    def locate(self, stream: str, position: str) -> Located:
        """Where a record of the source is in the lake: commit, files and row. `position`:
        TOPIC/PARTITION/OFFSET, LANE/NUMBER, LANE/NUMBER:LINE, or the path of a file of the source.
        Raises Invalid, Corrupt, Unavailable."""
        with self._looked_at() as (store, lake):
            streams = self.settings.streams
            return Locating(store, lake, streams, self._ambient).locate(
                self.settings.called(stream), position
            )

    def origin(self, path: str) -> FileOrigin:
        """Which commits a file of the lake is from, and what they read. Raises Invalid, Corrupt,
        Unavailable."""
        with self._looked_at() as (store, lake):
            streams = self.settings.streams
            known, _ = known_streams(store, streams)
            return Locating(store, lake, streams, self._ambient).origin(path, known)

    def plan(self, stream: str) -> Preview:
        """What the next round would read, where it would write, and which hour comes next; nothing
        is changed. Raises Invalid, Unavailable, Corrupt."""
        own = self._stream(stream)
        with self._looked_at() as (store, lake):
            return preview(own, store, lake, self.settings, self._sources(lake), self._ambient)

    def check_source(self, stream: str, *, is_spark_asked: bool = False) -> Checkup:
        """Whether its source can be read, and what comes from it. Of a stream with expressions in
        SQL, Spark is asked whether it takes them; `is_spark_asked`: also what becomes of the
        samples. Raises Invalid, Unavailable (the store), Corrupt."""
        own = self._stream(stream)
        source = own.source
        now_ms = self._ambient.wall_ns() // 1_000_000
        with self._looked_at() as (store, lake):
            if isinstance(source, KafkaSettings):
                cluster = open_cluster(source, self._ambient)
                found = check_topics(own, source, cluster, store, now_ms)
            else:
                sources = self._sources(lake)
                document = read(store, stream_key(stream), StreamDocument)
                found = check_files(
                    own,
                    source,
                    lambda shard: look_ahead(own, shard, store, sources),
                    shards_of(own, None if document is None else document.value),
                )
            clock = clock_finding(read_status(store, self._ambient).clock_off_ms)
        found = replace(found, findings=(*found.findings, clock))
        is_judged, is_sampled = has_sql(own), is_spark_asked and bool(found.samples)
        if not is_judged and not is_sampled:
            return found
        from headgate.app.judging import judge_by_spark

        def judge(samples: Sequence[SampleRecord]) -> Sequence[SampleRecord]:
            return judge_by_spark(self.settings, own, samples, found.columns, self._ambient)

        return judged(found, judge, has_sql=is_judged, is_sampled=is_sampled)

    def _sources(self, lake: Lake) -> OpenSource:
        # Only who looks at a source needs what reads it.
        from headgate.app.equipment import source_opener

        return source_opener(self.settings.lake, lake, self._ambient)

    @contextmanager
    def flag_acts(self, node: str = WHERE) -> Iterator[FlagActs]:
        """What a person asks of flags."""
        with self._opened() as (store, lake):
            ledger = Ledger(lake, node, self._ambient)
            yield FlagActs(store, lake, ledger, self._ambient, roots_of(self.settings))

    def repair_flags(
        self,
        first: str = "",
        last: str = "",
        *,
        reason: str = REPAIR_REASON,
        who: str = "",
    ) -> list[str]:
        """The paths of flags that are missing, from one hour or day to another; they are raised
        again by a node that runs, or the next one that does."""
        with self.flag_acts() as acts:
            begin, end = (Period.parse(one) if one else None for one in (first, last))
            missing = acts.missing(begin, end)
            acts.repair(missing, Person(who or getpass.getuser(), reason))
            return [one.path for one in missing]

    def withdraw_flags(self, stream: str, hour: str, reason: str, who: str = "") -> int:
        """Of one hour, and of what is above it; the generation that comes next."""
        with self.flag_acts() as acts:
            by = Person(who or getpass.getuser(), reason)
            name = self.settings.called(stream)
            return acts.withdraw(name, Period.parse(hour), by).generation

    def audit(self, *, is_deep: bool = False) -> Audit:
        """Checks the invariants over store, lake and tables; repairs nothing."""
        with self._opened() as (store, lake):
            return audit(
                store,
                lake,
                self.settings.landed,
                tables=tables_of(self.settings),
                open_site=site_opener(self._ambient),
                is_deep=is_deep,
            )

    def verify(self, period: str = "") -> Verified:
        """Certificates against flags and files, as they lie in the lake; "": every period. No store
        is asked. Raises Invalid, Unavailable."""
        lake = open_lake(self.settings.lake, self._ambient)
        folders = {name: one.folder for name, one in self.settings.every.items()}
        with closing(Hands()) as hands:
            wanted = Period.parse(period) if period else None
            return verify(lake, folders, wanted, each=hands.each)

    def why(self, stream: str, hour: str = "") -> Why:
        """Why this hour is not ready; "": the first that is not. Raises Invalid, Unavailable,
        Corrupt."""
        name, wanted = self._flagged(stream).name, hour_of(hour) if hour else None
        with self._opened() as (store, lake):
            return why_not_ready(store, lake, self.settings, name, wanted, self._ambient)

    def wait(self, stream: str, period: str, timeout: str = "1h") -> bool:
        """Whether an hour, or every hour of a day, is ready within that time. Raises Invalid,
        Corrupt (a flag was changed), Unavailable."""
        one, lake = self._flagged(stream), open_lake(self.settings.lake, self._ambient)
        timeout_ms = duration_ms(timeout)
        return await_ready(lake, one, Period.parse(period), timeout_ms, self._ambient) is None

    def certificate(self, stream: str, hour: str) -> Certificate | None:
        """Of the last generation; None: it was never flagged. Raises Invalid, Corrupt,
        Unavailable."""
        lake = open_lake(self.settings.lake, self._ambient)
        found = filed_certificate(lake, self._flagged(stream).name, hour_of(hour))
        return None if found is None else found[1]

    def tables(self) -> dict[str, TableStatus]:
        """How far each is, and what stands still and why. Raises Unavailable."""
        with self._opened() as (store, _):
            return {one.name: one for one in read_tables(store, self.settings.tables)}

    def halt_table(self, table: str, reason: str, who: str = "") -> TableStatus:
        """Nothing more enters it. This and the next four raise Invalid (no such table or batch),
        Halted (it is not in a state for this), Unavailable."""
        return self._decide(table, lambda remedies, by: remedies.halt(table, by), reason, who)

    def resume_table(self, table: str, reason: str, who: str = "") -> TableStatus:
        """A halted one goes on; if it stopped at a batch, with the table as it is now."""
        return self._decide(table, lambda remedies, by: remedies.resume(table, by), reason, who)

    def retry_table(self, table: str, reason: str, who: str = "") -> TableStatus:
        """The batch that it halted at is applied again."""
        return self._decide(table, lambda remedies, by: remedies.retry(table, by), reason, who)

    def skip_batch(self, table: str, batch: str, reason: str, who: str = "") -> TableStatus:
        """The batch that it halted at is left out for good, on record."""
        return self._decide(table, lambda one, by: one.skip(table, batch, by), reason, who)

    def mark_applied(self, table: str, batch: str, reason: str, who: str = "") -> TableStatus:
        """The rows of the batch that it halted at are in it already."""
        return self._decide(table, lambda one, by: one.mark_applied(table, batch, by), reason, who)

    def _decide(
        self,
        table: str,
        act: Callable[[Remedies, Decision], object],
        reason: str,
        who: str,
    ) -> TableStatus:
        if table not in self.settings.tables:
            known = ", ".join(self.settings.tables) or "none"
            raise Invalid(f"there is no table {table!r}; known: {known}; next: correct the name")
        with self._opened() as (store, lake):
            remedies = Remedies(store, Ledger(lake, WHERE, self._ambient), self._ambient)
            act(remedies, Decision(who or getpass.getuser(), reason))
            (found,) = read_tables(store, [table])
            return found

    def _flagged(self, name: str) -> StreamSettings:
        """A stream, or an output of one."""
        found = self.settings.flagged.get(self.settings.called(name)) or self._stream(name)
        if found.outputs:
            names = ", ".join(one.word for one in found.flagged)
            raise Invalid(f"stream {name!r} has outputs; next: name one of them: {names}")
        return found

    def _stream(self, name: str) -> StreamSettings:
        found = self.settings.streams.get(self.settings.called(name))
        if found is None:
            known = ", ".join(self.settings.streams) or "none"
            raise Invalid(f"there is no stream {name!r}; known: {known}; next: correct the name")
        return found

    def progress(self) -> list[ShardProgress]:
        """How far each shard is, from documents alone."""
        with self._opened() as (store, _):
            now_ms = StoreClock(store, self._ambient).now_ms()
            return progress_of(store, self.settings.streams, 0, now_ms)

    @contextmanager
    def _looked_at(self) -> Iterator[tuple[DocumentStore, Lake]]:
        """A lake that is not there yet is an empty one, and is not made by a look at it."""
        settings = self.settings
        has_lake = is_there(settings.lake)
        lake = open_lake(settings.lake, self._ambient) if has_lake else MemoryLake()
        store = open_store(settings.store, settings.namespace, ambient=self._ambient)
        with closing(store):
            yield store, lake

    @contextmanager
    def _opened(self) -> Iterator[tuple[DocumentStore, Lake]]:
        settings = self.settings
        lake = open_lake(settings.lake, self._ambient)
        store = open_store(settings.store, settings.namespace, ambient=self._ambient)
        with closing(store):
            yield store, lake


def registered_kinds() -> dict[str, StepKind]:
    """Step kinds that installed packages bring: entry points of the group `headgate.steps`."""
    found: list[StepKind] = [one.load()() for one in entry_points(group="headgate.steps")]
    return {kind.name: kind for kind in found}


class _Watch:
    """Asked ten times a second; looks at the documents now and then."""

    def __init__(
        self,
        app: App,
        store: DocumentStore,
        lake: Lake,
        clock: StoreClock,
        since_ms: int,
        until: str | None,
        deadline: Deadline | None,
        joined: Joined,
        on_progress: Callable[[Sequence[ShardProgress]], None],
    ) -> None:
        self._ambient = app._ambient  # noqa: SLF001 - of the same module
        self._streams = app.settings.streams
        self._settings = app.settings
        self._lake = lake
        self._store = store
        self._clock = clock
        self._since_ms = since_ms
        self._until = until
        self._joined = joined
        self._on_progress = on_progress
        self._deadline = deadline
        self._next_ms = 0
        self._is_over = False

    def poll(self) -> None:
        now_ms = self._ambient.monotonic_ms()
        if self._is_over or now_ms < self._next_ms:
            return
        self._next_ms = now_ms + IDLE_LOOK_MS
        if self._deadline is not None and self._deadline.is_over():
            self._end()
            return
        if self._until is None:
            return
        try:
            now_ms = self._clock.now_ms()
            found = progress_of(self._store, self._streams, self._since_ms, now_ms)
        except (Unavailable, Corrupt):
            return  # the next look will tell
        self._on_progress(found)
        if not any(one.is_waited_for for one in found) and not self._is_more_to_come():
            self._end()

    def _is_more_to_come(self) -> bool:
        """What has landed may be complete: its flags belong to it, and tables take it."""
        try:
            return is_more_to_come(self._store, self._lake, self._settings)
        except Unavailable:
            return True
        except Corrupt:
            return False  # for a person, and status says so

    def _end(self) -> None:
        self._is_over = True
        self._joined.node.drain()
