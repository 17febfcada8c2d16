"""Library: what the command line does, in Python.

app = App(store="file:./state", lake="./lake")
app.add(Stream("orders", source=Files("./incoming"), event_time="$.at"))
print(app.run(until="idle").streams["orders"].landed)
"""

import getpass
import json
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headgate.ambient import Ambient, Deadline, SystemAmbient
from headgate.app.acts import Acts, Person
from headgate.app.nodes import Joined, Place, joined_node
from headgate.app.progress import ShardProgress, progress_of
from headgate.audit import Audit
from headgate.audit.inspection import audit
from headgate.cluster.duties import NodeSettings
from headgate.cluster.session import TERM_MS
from headgate.cluster.store_clock import StoreClock
from headgate.commits import StepKind
from headgate.commits.replay import read_record
from headgate.engine import Engine
from headgate.errors import Corrupt, Invalid, Unavailable
from headgate.lake import Lake
from headgate.lake.ledger import Ledger
from headgate.lake.opening import open_lake
from headgate.node import Ending
from headgate.settings import Settings
from headgate.settings.loading import judge, load, message
from headgate.store import DocumentStore, JsonObject
from headgate.store.registry import open_store

if TYPE_CHECKING:
    from headgate.app.equipment import Landing

IDLE_LOOK_MS = 500


@dataclass(frozen=True, slots=True)
class Files:
    """A folder into which files are dropped. Options are those of `source` in the settings."""

    path: str
    format: str = "json"
    options: JsonObject = field(default_factory=dict)

    def tree(self) -> dict[str, object]:
        return {"kind": "files", "path": self.path, "format": self.format, **self.options}


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream, with the names of the settings file; durations like `5m`.

    `event_time` is a JSON path, or a mapping as in the settings.
    """

    name: str
    source: Files
    event_time: str | JsonObject
    options: JsonObject = field(default_factory=dict)

    def tree(self) -> dict[str, object]:
        by = {"json": self.event_time} if isinstance(self.event_time, str) else self.event_time
        return {"source": self.source.tree(), "event_time": dict(by), **self.options}


@dataclass(frozen=True, slots=True)
class StreamResult:
    """What a stream has in the lake after a run, from all of its commits in this run."""

    name: str
    landed: int
    late: int
    dead: int
    gaps: int
    commits: int
    watermark_ms: int | None  # of the slowest source partition; None: one has none yet
    stands_still: tuple[str, ...]  # shards that nobody works on, and why


@dataclass(frozen=True, slots=True)
class RunResult:
    streams: Mapping[str, StreamResult]
    is_idle: bool  # everything that was there at the start has landed
    ending: Ending


class App:
    """An installation: its settings, and what can be done with it."""

    def __init__(
        self,
        store: str = "file:./state",
        lake: str = "./lake",
        *,
        namespace: str = "default",
        spark: JsonObject | None = None,
        settings: Settings | None = None,
        engine: Engine | None = None,
        ambient: Ambient | None = None,
    ) -> None:
        self._tree: dict[str, object] = {"store": store, "lake": lake, "namespace": namespace}
        if spark is not None:
            self._tree["spark"] = spark
        self._streams: dict[str, Stream] = {}
        self._settings = settings
        self._kinds = registered_kinds()
        self._engine = engine
        self._ambient = ambient or SystemAmbient()

    @classmethod
    def from_file(cls, path: str | Path, *, engine: Engine | None = None) -> "App":
        """Raises Invalid, with every problem."""
        return cls(settings=load(Path(path), os.environ), engine=engine)

    def add(self, stream: Stream) -> None:
        """Raises Invalid: its name is taken, or the settings come from a file."""
        if self._settings is not None:
            raise Invalid("the settings come from a file; next: add the stream there")
        if stream.name in self._streams:
            raise Invalid(f"stream {stream.name}: was added already")
        self._streams[stream.name] = stream

    def add_step_kind(self, kind: StepKind) -> None:
        """A step of your own, for streams whose settings name it."""
        self._kinds[kind.name] = kind

    @property
    def settings(self) -> Settings:
        """Raises Invalid, with every problem."""
        if self._settings is not None:
            return self._settings
        streams = {name: stream.tree() for name, stream in self._streams.items()}
        raw = json.dumps({**self._tree, "streams": streams}).encode()  # JSON is YAML, too
        found = judge(raw, os.getcwd(), {})
        if found.settings is None:
            raise Invalid(message(Path("App(…)"), found.problems))
        return found.settings

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
        # Only who lands needs Spark's library: it takes a second to load.
        from headgate.app.equipment import landing_equipment, opened_landing

        settings, ambient = self.settings, self._ambient
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
            equip = landing_equipment(
                settings,
                landing,
                name,
                kinds=self._kinds,
                eager_since_ms=since_ms if until == "idle" else None,
            )
            with joined_node(place, own, ambient, equip=equip, term_ms=term_ms) as joined:
                before = _counts(store, settings)
                on_start(joined)
                watch = _Watch(
                    self, store, clock, since_ms, until, max_seconds, joined, on_progress
                )

                def poll() -> None:
                    on_poll(joined)
                    watch.poll()

                ending = joined.node.run(poll)
                after = progress_of(store, settings.streams, since_ms, clock.now_ms())
                return RunResult(
                    _results(landing, settings, before, after),
                    all(one.is_idle for one in after),
                    ending,
                )

    @contextmanager
    def acts(self, node: str = "command line") -> Iterator[Acts]:
        """What a person asks of it."""
        with self._opened() as (store, lake):
            yield Acts(store, lake, Ledger(lake, node, self._ambient), self._ambient)

    def pause(self, stream: str, reason: str, who: str = "") -> bool:
        with self.acts() as acts:
            return acts.pause(stream, Person(who or getpass.getuser(), reason))

    def resume(self, stream: str, reason: str, who: str = "") -> bool:
        with self.acts() as acts:
            return acts.resume(stream, Person(who or getpass.getuser(), reason))

    def audit(self, *, is_deep: bool = False) -> Audit:
        """Checks the invariants over store and lake; repairs nothing."""
        with self._opened() as (store, lake):
            return audit(store, lake, self.settings.streams, is_deep=is_deep)

    def progress(self) -> list[ShardProgress]:
        """How far each shard is, from documents alone."""
        with self._opened() as (store, _):
            now_ms = StoreClock(store, self._ambient).now_ms()
            return progress_of(store, self.settings.streams, 0, now_ms)

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
        clock: StoreClock,
        since_ms: int,
        until: str | None,
        max_seconds: float | None,
        joined: Joined,
        on_progress: Callable[[Sequence[ShardProgress]], None],
    ) -> None:
        self._ambient = app._ambient  # noqa: SLF001 - of the same module
        self._streams = app.settings.streams
        self._store = store
        self._clock = clock
        self._since_ms = since_ms
        self._until = until
        self._joined = joined
        self._on_progress = on_progress
        limit_ms = None if max_seconds is None else int(max_seconds * 1000)
        self._deadline = None if limit_ms is None else Deadline(self._ambient, limit_ms)
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
        if not any(one.is_waited_for for one in found):
            self._end()

    def _end(self) -> None:
        self._is_over = True
        self._joined.node.drain()


Counts = dict[str, dict[int, int]]
"""By stream and shard: the number of the last commit."""


def _counts(store: DocumentStore, settings: Settings) -> Counts:
    found: Counts = {}
    for one in progress_of(store, settings.streams, 0, 0):
        last = one.checkpoint.number - (one.checkpoint.journal is not None)
        found.setdefault(one.stream, {})[one.shard] = last
    return found


def _results(
    landing: "Landing",
    settings: Settings,
    before: Counts,
    after: Sequence[ShardProgress],
) -> dict[str, StreamResult]:
    return {
        name: _result(name, landing.lake, before[name], [s for s in after if s.stream == name])
        for name in settings.streams
    }


def _result(
    name: str, lake: Lake, before: Mapping[int, int], shards: Sequence[ShardProgress]
) -> StreamResult:
    rows = {"data": 0, "late": 0, "dead": 0}
    gaps = commits = 0
    marks: list[int | None] = []
    for shard in shards:
        last = shard.checkpoint.number - (shard.checkpoint.journal is not None)
        numbers = range(before[shard.shard] + 1, last + 1)
        found = [read_record(lake, name, shard.shard, number) for number in numbers]
        made = [record for record in found if record is not None]
        replaced = {record.replaces for record in made}
        for record in made:
            if record.number in replaced:
                continue  # it was never finished, and its range is in a later one
            commits += 1
            gaps += len(record.gaps)
            for kind in rows:
                rows[kind] += record.counts.get(kind, 0)
        marks += shard.checkpoint.watermarks.values()
    known = [mark for mark in marks if mark is not None]
    return StreamResult(
        name,
        rows["data"],
        rows["late"],
        rows["dead"],
        gaps,
        commits,
        min(known) if known and len(known) == len(marks) else None,
        tuple(
            f"{one.name}: {why}"
            for one in shards
            if (why := one.set_aside or one.paused or one.stuck)
        ),
    )
