"""What `headgate store rebuild` takes for 10,000 commit records, against a minute.

    python -m benchmarks.rebuild           10,000 commit records of four shards, over 240 hours

Ours is the whole work of the command on a `file:` store: records are read with as many threads as
the command has and led to checkpoints, certificates and flags are looked at, documents written, and
all of it is audited, which reads every record once more. The ratio is that to the minute that a
person may be asked to wait; what the mere bytes of the records take is told beside it.
"""

import logging
import tempfile
import time
from contextlib import closing
from pathlib import Path

from benchmarks.report import Number, publish
from headgate.ambient import SystemAmbient
from headgate.app.acts import Person
from headgate.app.rebuild import Rebuild
from headgate.audit.reading import no_site
from headgate.commits.record import (
    Mark,
    Record,
    RecordFile,
    RecordRange,
    record_path,
    to_bytes,
)
from headgate.engine import EventTime
from headgate.lake import LakeSettings
from headgate.lake.ledger import Ledger
from headgate.lake.opening import open_lake
from headgate.landing import StreamSettings
from headgate.landing.names import file_stem
from headgate.node import Hands
from headgate.periods import DEFAULT_FOLDER, HOUR_MS, FolderTemplate, Period
from headgate.settings import Settings
from headgate.sources import FilesSettings
from headgate.sources.local_folder import LocalFolder
from headgate.sources.origins import files_origin
from headgate.store.registry import open_store

RECORDS = 10_000
SHARDS = 4
HOURS = 240
FILES = 10  # that a commit reads
FIRST_HOUR_MS = 1_794_700_800_000  # a midnight
STREAM = "orders"
WAIT_S = 60
FOLDER = FolderTemplate.parse(DEFAULT_FOLDER)


def write(root: Path) -> list[Path]:
    """A lake with records and their files, which hold a line each."""
    found: list[Path] = []
    for n in range(RECORDS):
        shard, number = n % SHARDS, n // SHARDS + 1
        hour = Period(FIRST_HOUR_MS + n * HOURS // RECORDS * HOUR_MS, "hour")
        path = f"{FOLDER.folder(hour, stream=STREAM)}/{file_stem(shard, number)}-0.json"
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"x\n")
        staged = f"_headgate/staging/{STREAM}/{n:032x}.{shard}-1/shard={shard}-1/0.json"
        lane = f"lane-{shard}"
        first, end = (number - 1) * FILES, number * FILES
        digests = [(shard * 10**9 + one).to_bytes(16, "big") for one in range(first, end)]
        before_ms = None if number == 1 else FIRST_HOUR_MS
        record = Record(
            STREAM,
            shard,
            number,
            1,
            "node",
            FIRST_HOUR_MS,
            number,
            {lane: RecordRange(str(first) if first else "", str(end))},
            {"data": 1, "late": 0, "dead": 0, "skip": 0},
            (RecordFile("data", str(hour), staged, path, 2, "sha256:0", 1),),
            watermarks={lane: Mark(before_ms, FIRST_HOUR_MS, "records")},
            event_ms=(hour.start_ms, hour.start_ms),
            positions={lane: str(end)},
            origin=files_origin({lane: digests}),
            shards=SHARDS,
            first_hour_ms=FIRST_HOUR_MS,
        )
        place = root / record_path(STREAM, shard, number)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(to_bytes(record))
        found.append(place)
    (root / "_headgate/lake.json").write_text('{"format": 1, "id": "benchmark"}')
    return found


def peer_s(paths: list[Path]) -> float:
    started = time.perf_counter()
    for path in paths:
        path.read_bytes()
    return time.perf_counter() - started


def ours_s(root: Path, state: Path) -> tuple[float, int]:
    ambient = SystemAmbient()
    source = FilesSettings(str(root / "incoming"), lanes=SHARDS)
    stream = StreamSettings(STREAM, source, EventTime("json", "$.at"), FOLDER, shards=SHARDS)
    settings = Settings(f"file:{state}", LakeSettings(str(root)), streams={STREAM: stream})
    started = time.perf_counter()
    with closing(Hands()) as hands, closing(open_store(settings.store, "default")) as store:
        lake = open_lake(settings.lake, ambient)
        found = Rebuild(
            store,
            lake,
            Ledger(lake, "here", ambient),
            ambient,
            settings,
            folders_of=lambda _: [(source, LocalFolder(source.path))],
            open_site=no_site,
            each=hands.each,
        ).run(Person("benchmark", "to measure it"))
    if found.audit.findings or found.records != RECORDS:
        raise SystemExit(f"{found.records} records, {found.audit.findings[:3]}")
    return time.perf_counter() - started, found.documents


def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "lake"
        root.mkdir()
        paths = write(root)
        peer = min(peer_s(paths) for _ in range(3))
        seconds, documents = ours_s(root, Path(folder) / "state")
    detail = {"records": float(RECORDS), "documents": float(documents), "bytes_read_s": peer}
    number = Number(
        "rebuild",
        seconds,
        "s for 10,000 records",
        seconds / WAIT_S,
        "a minute",
        detail,
    )
    publish("rebuild", [number])


if __name__ == "__main__":
    main()
