"""Worlds: a store and a lake in which a stream has landed something, made by hand."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headgate.audit import Audit, Finding
from headgate.audit.inspection import audit
from headgate.commits.checkpoint import Checkpoint, Journal, checkpoint_key, concluded
from headgate.commits.record import (
    Mark,
    Record,
    RecordFile,
    RecordGap,
    RecordRange,
    facts_of,
    from_bytes,
    record_path,
    to_bytes,
)
from headgate.commits.streams import StreamDocument, stream_key
from headgate.engine import EventTime
from headgate.lake.memory import MemoryLake
from headgate.landing import StreamSettings
from headgate.landing.names import file_stem, folder_of, shard_folder, staging_folder
from headgate.periods import FolderTemplate, Period
from headgate.sources import FilesSettings
from headgate.store import DocumentStore, JsonObject
from headgate.store.changes import read
from headgate.store.codec import body_of
from headgate.testing.manual import ManualAmbient, manual_store

START_MS = Period.parse("2026-11-01T00").start_ms
TODAY = Period.parse("2026-11-02")
EPOCH = 7
LANE = "lane-0"
DATA = "2026-11-01/01/orders/data"
DEAD = f"_dead/orders/{TODAY}"


def settings_of(name: str = "orders", **changes: Any) -> StreamSettings:
    template = FolderTemplate.parse("{yyyy}-{MM}-{dd}/{HH}/{stream}/data")
    event_time = EventTime("json", "$.at")
    found = StreamSettings(name, FilesSettings("/incoming"), event_time, template)
    return replace(found, **changes)


class World:
    """Each commit reads ten positions of one lane, and moves its watermark on by an hour."""

    def __init__(self, settings: StreamSettings | None = None) -> None:
        self.settings = settings or settings_of()
        self.stream = self.settings.name
        self.store: DocumentStore = manual_store(ManualAmbient())
        self.lake = MemoryLake()
        self.put(stream_key(self.stream), body_of(StreamDocument(self.settings.shards)))

    # Landing

    def land(
        self,
        rows: Mapping[str, int],
        *,
        late: Mapping[str, int] | None = None,
        dead: int = 0,
        shard: int = 0,
    ) -> Record:
        """A whole commit: rows by hour, on time and late, and dead letters."""
        journal, record = self.intend(rows, late=late, dead=dead, shard=shard)
        self.publish(record)
        self.conclude(journal, shard)
        return record

    def intend(
        self,
        rows: Mapping[str, int],
        *,
        late: Mapping[str, int] | None = None,
        dead: int = 0,
        shard: int = 0,
        replaces: int | None = None,
    ) -> tuple[Journal, Record]:
        """Journaled, and nothing of it published."""
        checkpoint = self.checkpoint(shard)
        number = checkpoint.number + 1
        files = [self._file(shard, number, "data", hour, count) for hour, count in rows.items()]
        files += [self._file(shard, number, "late", *one) for one in (late or {}).items()]
        files += [self._file(shard, number, "dead", "", dead)] if dead else []
        first = checkpoint.positions.get(LANE, "")
        before_ms = checkpoint.watermarks.get(LANE)
        record = Record(
            self.stream,
            shard,
            number,
            EPOCH,
            "node-1",
            TODAY.start_ms,
            number,
            {LANE: RecordRange(first, str(int(first or 0) + 10))},
            {
                "data": sum(rows.values()),
                "late": sum((late or {}).values()),
                "dead": dead,
                "skip": 1,
            },
            tuple(files),
            watermarks={LANE: Mark(before_ms, (before_ms or START_MS) + 3_600_000, "records")},
            replaces=replaces,
        )
        journal = self.journal_of(record)
        self.write(replace(checkpoint, epoch=EPOCH, number=number, journal=journal), shard)
        return journal, record

    def stage(self, journal: Journal, record: Record) -> None:
        """All that the journal's commit needs to be published."""
        self.lake.put(journal.record, to_bytes(record))
        for file in record.files:
            self.lake.put(file.staged, content_of(file.published))

    def publish(self, record: Record) -> None:
        self.lake.put(self.path(record), to_bytes(record))
        for file in record.files:
            self.lake.put(file.published, content_of(file.published))

    def conclude(self, journal: Journal, shard: int = 0) -> None:
        self.write(concluded("", self.checkpoint(shard), journal, TODAY.start_ms), shard)

    def journal_of(self, record: Record) -> Journal:
        facts = facts_of(to_bytes(record))
        folder = self.attempt(record.shard, record.epoch, record.number)
        return Journal(
            record.number,
            record.epoch,
            folder,
            f"{folder}/record.json",
            facts.size_bytes,
            facts.checksum,
            {name: span.next for name, span in record.ranges.items()},
            {name: mark.after_ms for name, mark in record.watermarks.items()},
            {},
            tuple(sorted({file.period for file in record.files if file.kind == "data"})),
            record.shift,
            dict(record.counts),
            record.replaces,
        )

    def attempt(self, shard: int, epoch: int, id_: int = 1) -> str:
        """The folder of this shard in the staging of an attempt."""
        label = f"{shard}-{epoch}"
        return shard_folder(f"{staging_folder(self.stream)}/{id_:032x}.{label}", label)

    def _file(self, shard: int, number: int, kind: Any, hour: str, rows: int) -> RecordFile:
        hour_ms = Period.parse(hour).start_ms if hour else None
        folder = folder_of(self.settings, shard, kind, hour_ms, TODAY)
        path = f"{folder}/{file_stem(shard, number)}-0.parquet"
        facts = facts_of(content_of(path))
        return RecordFile(kind, hour, "staged", path, facts.size_bytes, facts.checksum, rows)

    # Documents and records, by hand

    def put(self, key: str, body: JsonObject) -> None:
        found = self.store.get(key)
        if found is None:
            self.store.create(key, body)
        else:
            self.store.replace(key, body, found.version)

    def checkpoint(self, shard: int = 0) -> Checkpoint:
        found = read(self.store, checkpoint_key(self.stream, shard), Checkpoint)
        fresh = Checkpoint(positions={LANE: ""}, watermarks={LANE: None})
        return fresh if found is None else found.value

    def write(self, checkpoint: Checkpoint, shard: int = 0) -> None:
        self.put(checkpoint_key(self.stream, shard), body_of(checkpoint))

    def change_checkpoint(self, **changes: Any) -> None:
        self.write(replace(self.checkpoint(), **changes))

    def delete(self, key: str) -> None:
        found = self.store.get(key)
        assert found is not None
        self.store.delete(key, found.version)

    def path(self, record: Record) -> str:
        return record_path(record.stream, record.shard, record.number)

    def record(self, number: int, shard: int = 0) -> Record:
        path = record_path(self.stream, shard, number)
        raw = self.lake.read(path)
        assert raw is not None
        return from_bytes(raw, path)

    def change_record(self, of: int, /, **changes: Any) -> None:
        record = replace(self.record(of), **changes)
        self.lake.put(record_path(self.stream, 0, of), to_bytes(record))

    def remove(self, path: str) -> None:
        facts = self.lake.facts(path)
        assert facts is not None, path
        self.lake.remove(path, facts)

    def move(self, path: str, to: str) -> None:
        self.lake.publish(path, to)

    # The audit

    def audit(self, **options: Any) -> Audit:
        return audit(self.store, self.lake, {self.stream: self.settings}, **options)

    def only_finding(self, **options: Any) -> Finding:
        found = self.audit(**options)
        assert len(found.findings) == 1, found.findings
        return found.findings[0]


def landed(commits: int = 3) -> World:
    """Some commits, each with two hours, late records and a dead letter."""
    world = World()
    for hour in range(commits):
        rows = {f"2026-11-01T{hour:02}": 5, f"2026-11-01T{hour + 1:02}": 2}
        world.land(rows, late={"2026-10-31T23": 1}, dead=1)
    return world


def restaged() -> World:
    """Commit 4 was journaled and lost its files; commit 5 replaced it."""
    world = landed(3)
    _, lost = world.intend({"2026-11-01T09": 1})
    world.lake.put(world.path(lost), to_bytes(lost))
    journal, record = world.intend({"2026-11-01T09": 1}, replaces=4)
    world.publish(record)
    world.conclude(journal)
    return world


def gap(partition: str = LANE, reason: str = "vanished") -> RecordGap:
    return RecordGap(partition, "3", "4", reason)


def content_of(path: str) -> bytes:
    return f"rows of {path}".encode()
