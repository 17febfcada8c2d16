"""The count of the demo and of the kill tests, on real files: it must see what is wrong there."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.periods import DEFAULT_FOLDER, HOUR_MS, FolderTemplate, Period
from headgate.store.codec import text_of
from headgate.tables.parquet import PROOF, Proof
from headgate.testing.drama.headcount import (
    Dropped,
    count_lake,
    count_table,
    hours_of,
    lake_faults,
    table_faults,
)
from headgate.testing.drama.orders import SPOILED, Wave, drop

FOLDER = FolderTemplate.parse(DEFAULT_FOLDER)
BEGIN_MS = Period.parse("2026-11-01T13").start_ms
STREAM = "the orders"


def written(folder: Path, name: str, lines: Sequence[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"value": list(lines)}), folder / name)


class World:
    """Three hours of records, as a lake and a table would have them."""

    def __init__(self, folder: Path) -> None:
        self.lake, self.table, incoming = folder / "lake", folder / "table", folder / "incoming"
        incoming.mkdir()
        wave = Wave("orders", range(90), 2, BEGIN_MS, BEGIN_MS + 3 * HOUR_MS, SPOILED)
        hours = drop(incoming, wave, 7)
        self.dropped = Dropped(range(90), hours, 0, len(SPOILED))
        records: dict[int, list[str]] = {}
        for file in sorted(incoming.iterdir()):
            for line in file.read_text("utf-8").splitlines():
                if line not in SPOILED:
                    at_ms = json.loads(line)["at"]
                    records.setdefault(at_ms - at_ms % HOUR_MS, []).append(line)
        for run, (hour_ms, lines) in enumerate(sorted(records.items()), 1):
            hour = Period(hour_ms, "hour")
            written(self.hour(hour), "a.parquet", lines)
            batch = self.table / f"headgate_batch={hour}/headgate_run={run}"
            written(batch, "a.parquet", lines)
            (batch / PROOF).write_bytes(text_of(Proof("orders", str(hour), run, "rows", "")))
        written(self.lake / "_dead/the%20orders/2026-11-01", "a.parquet", SPOILED)
        written(self.lake / "_dead/others/2026-11-01", "a.parquet", SPOILED)
        written(self.lake / "_headgate/staging/x", "a.parquet", ["never read"])

    def hour(self, hour: Period) -> Path:
        return self.lake / FOLDER.folder(hour, stream=STREAM)

    @property
    def first(self) -> Path:
        return self.hour(Period(BEGIN_MS, "hour")) / "a.parquet"

    def faults(self) -> list[str]:
        lake = count_lake(self.lake, FOLDER, STREAM, self.dropped.ids)
        table = count_table(self.table, lake)
        found = [*lake_faults(STREAM, self.dropped, lake)]
        return [*found, *table_faults(lake, table, hours_of(self.dropped))]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_what_was_dropped_is_counted_once_in_lake_and_table(world: World) -> None:
    assert world.dropped.hours.keys() == {BEGIN_MS + n * HOUR_MS for n in range(3)}
    assert Counter(world.dropped.hours).total() == 90
    assert world.faults() == []


def test_planted_a_lost_file_is_seen_in_lake_and_table(world: World) -> None:
    world.first.unlink()

    faults = "\n".join(world.faults())

    assert "records are missing in the lake" in faults
    assert "rows of the table are not in that hour of the lake" in faults


def test_planted_a_file_that_is_there_twice_or_elsewhere_is_seen(world: World) -> None:
    lines = pq.read_table(world.first, partitioning=None)["value"].to_pylist()
    written(world.hour(Period(BEGIN_MS + HOUR_MS, "hour")), "b.parquet", lines)

    faults = "\n".join(world.faults())

    assert "in the lake more than once" in faults
    assert "in the folder of another hour" in faults


def test_planted_rows_that_the_table_lacks_or_has_twice_are_seen(world: World) -> None:
    first, second, _ = sorted(world.table.glob("*/*/a.parquet"))
    written(first.parent, "b.parquet", pq.read_table(first, partitioning=None)["value"].to_pylist())
    second.unlink()

    faults = "\n".join(world.faults())

    assert "rows are in the table more than once" in faults
    assert "0 rows of 2026-11-01T14 are in the table" in faults
