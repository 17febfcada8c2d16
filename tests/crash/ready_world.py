"""A world in memory in which hours are closed: landing is what a test says it did."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headgate.audit import Finding
from headgate.audit.inspection import audit
from headgate.commits.certificate import FLAG, Certificate, from_bytes, parent_from_bytes
from headgate.commits.checkpoint import (
    Checkpoint,
    Gapped,
    checkpoint_key,
    with_gaps,
    with_number,
)
from headgate.commits.merges import MERGES
from headgate.commits.merges import from_bytes as merge_from_bytes
from headgate.commits.record import (
    Record,
    RecordFile,
    RecordGap,
    RecordRange,
    record_path,
    to_bytes,
)
from headgate.commits.removals import MARKS, REMOVALS
from headgate.commits.removals import from_bytes as statement_from_bytes
from headgate.commits.roots import RootDocument, join_root, root_key, root_name
from headgate.commits.streams import StreamDocument, stream_key
from headgate.engine import EventTime
from headgate.engine.merger import Merger
from headgate.errors import Conflict, Fenced, OutcomeUnknown, Unavailable
from headgate.lake import Lake
from headgate.lake.ledger import Ledger
from headgate.lake.memory import MemoryLake
from headgate.lake.paths import LATE, STAGING
from headgate.landing import StreamSettings
from headgate.periods import DEFAULT_FOLDER, HOUR_MS, FolderTemplate, Period
from headgate.ready import ReadyStream, RootSettings
from headgate.ready.work import RootTools, RootWork
from headgate.sources import FilesSettings
from headgate.store import DocumentStore
from headgate.store.changes import change, create_if_absent, read
from headgate.testing.blend import Blend
from headgate.testing.faults import Calm, Stage, wrap
from headgate.testing.manual import ManualAmbient, manual_store
from tests.crash.landing_world import Held

TEMPLATE = FolderTemplate.parse(DEFAULT_FOLDER)
DAY = Period.parse("2027-01-15")
LATENESS_MS = 60_000
TICKS_MAX = 60


def hour(number: int) -> Period:
    """Of the day that the world begins in; also of a later one."""
    return Period(DAY.start_ms + number * HOUR_MS, "hour")


def settings_of(
    *streams: str, template: FolderTemplate = TEMPLATE, merge_bytes: int | None = None
) -> RootSettings:
    """`merge_bytes`: of the first stream."""
    found = [ReadyStream(name, template, LATENESS_MS) for name in streams]
    found[0] = replace(found[0], merge_bytes=merge_bytes)
    return RootSettings(root_name(template), tuple(found))


def landing_of(stream: ReadyStream) -> StreamSettings:
    source, event_time = FilesSettings("/incoming"), EventTime("json", "$.at")
    return StreamSettings(stream.name, source, event_time, stream.folder)


@dataclass
class World:
    """What all processes share. The clock is far ahead of every hour that a test speaks of."""

    settings: RootSettings = field(default_factory=lambda: settings_of("orders"))

    def __post_init__(self) -> None:
        self.ambient = ManualAmbient(DAY.start_ms + 40 * 24 * HOUR_MS)
        self.store = manual_store(self.ambient)
        self.lake = MemoryLake()
        self.merger = Blend(self.lake)
        self.epoch = 0

    # What landing does

    def open(self, stream: str, first: Period | None = None, shards: int = 1) -> None:
        """Its document, after its seat; its first hour once something has landed."""
        floor_ms = join_root(self.store, self.settings.name, stream)
        first_ms = None if first is None else max(first.start_ms, floor_ms or first.start_ms)
        document = StreamDocument(shards, first_ms, floor_ms=floor_ms)
        create_if_absent(self.store, stream_key(stream), document)
        for shard in range(shards):
            create_if_absent(self.store, checkpoint_key(stream, shard), Checkpoint())

    def land(
        self, stream: str, of: Period, rows: int = 1, shard: int = 0, kind: str = "data"
    ) -> None:
        """A commit with one file in that hour."""
        key = checkpoint_key(stream, shard)
        kept = read(self.store, key, Checkpoint)
        assert kept is not None
        number = kept.value.number + 1
        folder = TEMPLATE.folder(of, stream=stream)
        folder = folder if kind == "data" else f"{LATE}/{folder}"
        path = f"{folder}/shard{shard}-commit{number:010}-0.json"
        staged = f"{STAGING}/{stream}/landed"
        lines = "".join(f"{stream} {shard}/{number}:{row}\n" for row in range(rows))
        facts = self.lake.stage(staged, lines.encode())
        self.lake.publish(staged, path)
        file = RecordFile(kind, str(of), staged, path, facts.size_bytes, facts.checksum, rows)
        span = RecordRange(str(number - 1), str(number))
        record = Record(
            stream,
            shard,
            number,
            1,
            "node",
            0,
            0,
            {f"lane-{shard}": span},
            {kind: rows},
            (file,),
            event_ms=(of.start_ms, of.start_ms + 5),
        )
        self.lake.stage(staged, to_bytes(record))
        self.lake.publish(staged, record_path(stream, shard, number))
        self.put(
            stream,
            shard,
            number=number,
            positions={**kept.value.positions, f"lane-{shard}": str(number)},
            periods=with_number(kept.value.periods, [str(of)] * (kind == "data"), number),
        )

    def lose(self, stream: str, since: Period, until: Period) -> None:
        """A commit without files, with a gap that concerns these hours."""
        kept = read(self.store, checkpoint_key(stream, 0), Checkpoint)
        assert kept is not None
        number, lane = kept.value.number + 1, "lane-0"
        gap = RecordGap(lane, str(number - 1), str(number), "expired", str(since), str(until))
        span = RecordRange(gap.first, gap.next)
        record = Record(stream, 0, number, 1, "node", 0, 0, {lane: span}, {"dead": 3}, gaps=(gap,))
        staged = f"{STAGING}/{stream}/landed"
        self.lake.stage(staged, to_bytes(record))
        self.lake.publish(staged, record_path(stream, 0, number))
        gapped = Gapped(number, number + 1, gap.since, gap.until)
        self.put(stream, number=number, gapped=with_gaps(kept.value.gapped, [gapped], ""))

    def reach(self, stream: str, until: Period | int, shard: int = 0) -> None:
        """Its source partition's watermark is at the start of that hour; a discovery came after."""
        mark_ms = until if isinstance(until, int) else until.start_ms
        self.put(
            stream,
            shard,
            watermarks={f"lane-{shard}": mark_ms},
            discovered_ms=mark_ms + LATENESS_MS,
        )

    def put(self, stream: str, shard: int = 0, **fields: Any) -> None:
        change(
            self.store,
            checkpoint_key(stream, shard),
            Checkpoint,
            lambda found: replace(found, **fields),
        )

    # What is there

    def root(self) -> RootDocument:
        found = read(self.store, root_key(self.settings.name), RootDocument)
        return RootDocument() if found is None else found.value

    def stream(self, name: str) -> StreamDocument:
        found = read(self.store, stream_key(name), StreamDocument)
        assert found is not None
        return found.value

    def flags(self) -> list[str]:
        """Every flag, by its folder; withdrawn ones with their generation."""
        return sorted(path for path in self.lake.files() if FLAG in path)

    def rows(self, stream: str, of: Period) -> list[str]:
        """In the data files of that hour."""
        folder = f"{TEMPLATE.folder(of, stream=stream)}/"
        found = [raw for path, raw in self.data().items() if path.startswith(folder)]
        return sorted(line for raw in found for line in raw.decode().splitlines())

    def data(self) -> dict[str, bytes]:
        """Every data file, by path."""
        found = self.lake.files().items()
        return {path: raw for path, raw in found if path.endswith("json") and path[0] != "_"}

    def merges(self) -> Mapping[str, object]:
        """What merge records say, without when and by whom."""
        found = {path: raw for path, raw in self.lake.files().items() if path.startswith(MERGES)}
        records = {path: merge_from_bytes(raw, path) for path, raw in found.items()}
        return {
            path: [replace(output, staged="") for output in record.outputs]
            for path, record in records.items()
        }

    def removals(self) -> Mapping[str, object]:
        """What statements and marks say, without when and by whom."""
        ends = tuple(MARKS.values())
        found: dict[str, object] = {}
        for path, raw in self.lake.files().items():
            if path.startswith(REMOVALS) or path.endswith(ends):
                said = statement_from_bytes(raw, path)
                found[path] = replace(said, made_ms=0, asked_ms=0, node="", certificate="")
        return found

    def late(self) -> list[str]:
        return [path for path in self.lake.files() if path.startswith(f"{LATE}/")]

    def certificate(self, stream: str, of: Period) -> Certificate:
        path = f"{TEMPLATE.folder(of, stream=stream)}/{FLAG}"
        return from_bytes(self.lake.files()[path], path)

    def bodies(self) -> Mapping[str, object]:
        """What flags say, without when and by whom: hashes rest on that."""
        found: dict[str, object] = {}
        for path in self.flags():
            raw = self.lake.files()[path]
            body = json.loads(raw)
            if "children" in body:
                parent_from_bytes(raw, path)
                body["children"] = sorted(body["children"])
            else:
                from_bytes(raw, path)
            found[path] = {k: v for k, v in body.items() if k not in ("closed_ms", "node", "hash")}
        return found

    def findings(self, stage: Stage | None = None) -> list[Finding]:
        """Of the audit. Landing is what a test says it did: its positions are left out."""
        landing = {one.name: landing_of(one) for one in self.settings.streams}
        stage = stage or Calm()
        store, lake = wrap(DocumentStore, self.store, stage), wrap(Lake, self.lake, stage)
        found = audit(store, lake, landing).findings
        return [one for one in found if one.invariant not in (1, 2, 4)]

    def faults(self) -> list[str]:
        """What breaks invariant 7, seen in the lake: a parent's flag without a child's."""
        found: list[str] = []
        flags = {path for path in self.flags() if path.endswith(FLAG)}
        for path in flags:
            body = json.loads(self.lake.files()[path])
            folder = path.removesuffix(FLAG)
            for child, hash_text in body.get("children", {}).items():
                name = child.rpartition("T")[2] if body["period"].count("T") == 0 else child
                below = self.lake.files().get(f"{folder}{name}/{FLAG}")
                if below is None or json.loads(below)["hash"] != hash_text:
                    found.append(f"{path}: {child} has another flag, or none")
        return found

    def state(self) -> dict[str, object]:
        root = self.root()
        return {
            "flags": self.bodies(),
            "faults": self.faults(),
            "findings": self.findings(),
            "seats": {name: replace(seat) for name, seat in root.streams.items()},
            "frontiers": (root.hours_ms, root.days_ms),
            "open": dict(root.reopened),
            "data": self.data(),
            "merging": dict(root.merging),
            "merges": self.merges(),
            "removals": (self.removals(), self.late(), root.removals),
            "left": (root.journal, dict(root.wishes), root.repair, dict(root.troubles)),
            "staged": [path for path in self.lake.files() if path.startswith(f"{STAGING}/_ready")],
        }


@dataclass
class Process:
    """One node that holds the root, with an epoch of its own."""

    world: World
    stage: Stage = field(default_factory=Calm)

    def __post_init__(self) -> None:
        world = self.world
        world.epoch += 1
        lake = wrap(Lake, world.lake, self.stage)
        store = wrap(DocumentStore, world.store, self.stage)
        ledger = Ledger(lake, "node", world.ambient)
        tools = RootTools(
            store,
            lake,
            ledger,
            world.ambient,
            lambda: world.ambient.wall_ns() // 1_000_000,
            merger=wrap(Merger, world.merger, self.stage),
        )
        self.held = Held(world.epoch)
        self.work = RootWork(self.held, world.settings, tools)

    def run(self) -> None:
        """Until nothing moves: a calm pass that found nothing to do."""
        for _ in range(TICKS_MAX):
            self.world.ambient.pass_ms(100)
            try:
                due_ms = self.work.tick()
            except (Unavailable, OutcomeUnknown, Conflict):
                continue
            except Fenced:
                return
            assert due_ms is not None
            if due_ms > self.world.ambient.monotonic_ms():
                return
        raise AssertionError("it does not come to an end")


def run(world: World) -> None:
    Process(world).run()
