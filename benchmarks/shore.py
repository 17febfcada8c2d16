"""A lake and a store in which landing is what a benchmark says it did: facts without Spark."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from headgate.ambient import Ambient
from headgate.commits.checkpoint import Checkpoint, checkpoint_key, with_number
from headgate.commits.record import Record, RecordFile, RecordRange, record_path, to_bytes
from headgate.commits.roots import join_root, root_name
from headgate.commits.streams import StreamDocument, stream_key
from headgate.lake import Lake, LakeSettings
from headgate.lake.opening import open_lake
from headgate.lake.paths import STAGING
from headgate.periods import DEFAULT_FOLDER, FolderTemplate, Period
from headgate.ready import ReadyStream, RootSettings
from headgate.store import DocumentStore
from headgate.store.changes import change, create_if_absent, read

TEMPLATE = FolderTemplate.parse(DEFAULT_FOLDER)
LATENESS_MS = 60_000
LANE = "lane-0"


def root_of(streams: list[str]) -> RootSettings:
    found = tuple(ReadyStream(name, TEMPLATE, LATENESS_MS) for name in streams)
    return RootSettings(root_name(TEMPLATE), found)


def open_shore(folder: Path, ambient: Ambient) -> Lake:
    return open_lake(LakeSettings(str(folder)), ambient)


def begin(store: DocumentStore, stream: str, first: Period) -> None:
    """Its seat, its document, its checkpoint."""
    floor_ms = join_root(store, root_name(TEMPLATE), stream)
    document = StreamDocument(1, first.start_ms, floor_ms=floor_ms)
    create_if_absent(store, stream_key(stream), document)
    mark = Checkpoint(positions={LANE: ""}, watermarks={LANE: first.start_ms})
    create_if_absent(store, checkpoint_key(stream, 0), mark)


def land(
    store: DocumentStore,
    lake: Lake,
    stream: str,
    hour: Period,
    content: bytes = b"{}",
    rows: int = 1,
    suffix: str = "json",
) -> None:
    """A commit with one file in that hour; no watermark moves."""
    key = checkpoint_key(stream, 0)
    kept = read(store, key, Checkpoint)
    assert kept is not None
    number = kept.value.number + 1
    path = f"{TEMPLATE.folder(hour, stream=stream)}/shard0-commit{number:010}-0.{suffix}"
    staged = f"{STAGING}/{stream}/landed"
    facts = lake.stage(staged, content)
    lake.publish(staged, path)
    file = RecordFile("data", str(hour), staged, path, facts.size_bytes, facts.checksum, rows)
    span = RecordRange(str(number - 1), str(number))
    event_ms = (hour.start_ms, hour.start_ms + 5)
    ranges, counts = {LANE: span}, {"data": rows}
    record = Record(stream, 0, number, 1, "bench", 0, 0, ranges, counts, (file,), event_ms=event_ms)
    lake.stage(staged, to_bytes(record))
    lake.publish(staged, record_path(stream, 0, number))
    periods = with_number(kept.value.periods, [str(hour)], number)
    put(store, stream, number=number, positions={LANE: str(number)}, periods=periods)


def reach(store: DocumentStore, stream: str, until_ms: int) -> None:
    """The fact that completes every hour that ends by then."""
    marks: Mapping[str, int | None] = {LANE: until_ms}
    put(store, stream, watermarks=marks, discovered_ms=until_ms + LATENESS_MS)


def put(store: DocumentStore, stream: str, **fields: object) -> None:
    key = checkpoint_key(stream, 0)
    change(store, key, Checkpoint, lambda found: replace(found, **fields))  # type: ignore[arg-type] # fields of it
