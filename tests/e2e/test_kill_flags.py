"""Nodes that land, flag and apply are killed with -9, at moments that chance decides.

    a wave of both streams ──▶ a node is killed: in the middle of a commit, while flags are raised,
    while a batch is applied, or at any moment ──▶ started again ──▶ … ──▶ every hour is ready and
    in the table ──▶ all stop ──▶ counted in lake and table, verified, audited

The seed is printed. It decides which moments are aimed at, and in which order; the rest is up to
the machine.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest

from headgate.ambient import SystemAmbient
from headgate.apply.kind import kind_name as apply_name
from headgate.apply.table_document import TableDocument, table_key
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.roots import RootDocument, root_key, root_name
from headgate.landing.kind import feed_name
from headgate.periods import HOUR_MS, Period, aligned, hours_between
from headgate.ready.kind import kind_name as ready_name
from headgate.settings import Settings
from headgate.settings.loading import load
from headgate.store.changes import read
from headgate.store.registry import open_store
from headgate.testing.drama.child import Child
from headgate.testing.drama.headcount import (
    Dropped,
    count_lake,
    count_table,
    lake_faults,
    table_faults,
)
from headgate.testing.drama.home import JAVA
from headgate.testing.drama.jury import flags_of
from headgate.testing.drama.orders import SPOILED, Wave, drop, names_of, write
from headgate.testing.drama.scene import Scene, look
from tests.e2e.crews import Crew
from tests.e2e.test_landing_cli import HEADGATE, headgate

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

NODES = ("red", "blue")
STREAMS = {"orders": 2_000, "платежи 支払": 1_000}  # records of a wave
TABLE = "orders"
ROUNDS = 3
HOURS_A_WAVE = 3
LATE = 40  # of each stream
LATENESS_MS = 60_000
AIM_S = 100.0
SHOW_S = 0.3
LOOK_S = 0.001
SETTINGS = """\
namespace: kill
store: file:./state
lake: ./lake
streams:
{streams}
tables:
  orders: {{kind: parquet, path: ./tables/orders, feed: {{stream: orders}}}}
spark:
  master: "local[1]"
  conf: {{spark.driver.memory: 512m, spark.driver.extraJavaOptions: "{java}"}}
"""
STREAM = """\
  {name}:
    source: {{kind: files, path: ./incoming/{name}, format: json}}
    event_time: {{json: $.at, unit: ms}}
    shift: 1s
    grace: 0s
    allowed_lateness: 1m
    first_hour: {first}
"""
Value = TypeVar("Value")


class Fleet(Crew):
    settings: Settings
    hours: tuple[Period, ...]
    dropped: dict[str, Dropped]

    def install(self) -> None:
        now_ms = SystemAmbient().wall_ns() // 1_000_000
        end_ms = aligned(now_ms - 3 * LATENESS_MS, HOUR_MS)
        self.hours = tuple(hours_between(end_ms - ROUNDS * HOURS_A_WAVE * HOUR_MS, end_ms))
        streams = "".join(STREAM.format(name=name, first=self.hours[0]) for name in STREAMS)
        text = SETTINGS.format(streams=streams.rstrip(), java=JAVA)
        (self.folder / "headgate.yaml").write_text(text, "utf-8")
        self.settings = load(self.folder / "headgate.yaml", {})
        self.dropped = {name: Dropped(range(0), {}, 0, 0) for name in STREAMS}

    # What is dropped: each wave goes on where the last one ended, in the middle of an hour

    def incoming(self, stream: str) -> Path:
        return self.folder / "incoming" / stream

    def late_wave(self, stream: str) -> Wave:
        first, count = self.hours[0], STREAMS[stream] * ROUNDS
        ids = range(count, count + LATE)
        return Wave("late", ids, 1, first.start_ms, first.end_ms)

    def begin(self, seed: int) -> None:
        """A file that is still being written: watermarks go by the records alone."""
        for stream in STREAMS:
            self.incoming(stream).mkdir(parents=True)
            write(self.incoming(stream), self.late_wave(stream), seed, prefix=".")

    def drop(self, number: int, seed: int) -> None:
        wave_ms = HOURS_A_WAVE * HOUR_MS
        from_ms = self.hours[0].start_ms + number * wave_ms - (HOUR_MS // 2 if number else 0)
        is_last = number == ROUNDS - 1
        until_ms = self.hours[0].start_ms + (number + 1) * wave_ms
        until_ms -= 0 if is_last else HOUR_MS // 2
        for stream, count in STREAMS.items():
            ids, bad = range(number * count, (number + 1) * count), () if number else SPOILED
            wave = Wave(f"wave-{number}", ids, 1, from_ms, until_ms, bad)
            hours = drop(self.incoming(stream), wave, seed)
            before = self.dropped[stream]
            every = Counter(dict(before.hours)) + hours
            self.dropped[stream] = Dropped(range(ids.stop), every, 0, len(SPOILED))

    def drop_late(self) -> None:
        for stream in STREAMS:
            folder, wave = self.incoming(stream), self.late_wave(stream)
            (name,) = names_of(wave)
            os.rename(folder / f".{name}", folder / name)
            before = self.dropped[stream]
            self.dropped[stream] = Dropped(range(wave.ids.stop), before.hours, LATE, before.dead)

    # Moments: a node is killed in it

    def in_a_commit(self, is_over: Callable[[], bool]) -> str | None:
        return self._amid(
            checkpoint_key(TABLE, 0),
            Checkpoint,
            lambda found: found.journal is not None and found.journal.rows > 0,
            lambda: self.holder(feed_name(TABLE), 0),
            is_over,
        )

    def while_flags_are_raised(self, is_over: Callable[[], bool]) -> str | None:
        root = root_name(self.settings.streams[TABLE].folder)
        return self._amid(
            root_key(root),
            RootDocument,
            lambda found: found.journal is not None,
            lambda: self.holder(ready_name(root), 0),
            is_over,
        )

    def while_a_batch_is_applied(self, is_over: Callable[[], bool]) -> str | None:
        return self._amid(
            table_key(TABLE),
            TableDocument,
            lambda found: found.current is not None,
            lambda: self.holder(apply_name(TABLE), 0),
            is_over,
        )

    def _amid(
        self,
        name: str,
        kind: type[Value],
        is_amid: Callable[[Value], bool],
        holder: Callable[[], Child | None],
        is_over: Callable[[], bool],
    ) -> str | None:
        """Stopped first: whoever only watched would come too late."""
        while not is_over():
            if self._is(name, kind, is_amid) and (child := holder()) is not None:
                child.freeze()
                if self._is(name, kind, is_amid):
                    child.kill()
                    print(f"{child.name}: killed, and {name} says that it was at work")
                    return child.name
                child.thaw()
            time.sleep(LOOK_S)
        return None

    def _is(self, name: str, kind: type[Value], is_amid: Callable[[Value], bool]) -> bool:
        found = read(self.store, name, kind)
        return found is not None and is_amid(found.value)

    # Looking

    def scene(self) -> Scene:
        lake = self.folder / "lake"
        return look(self.store, lake, self.settings, self.hours, SystemAmbient())

    def is_through(self, number: int) -> Callable[[], bool]:
        """Whether a wave has gone all the way, as far as it can: there is nothing left to aim at.
        Asked often, looked up now and then."""
        last = str(self.hours[(number + 1) * HOURS_A_WAVE - 2])
        ends_s, asked_s = time.monotonic() + AIM_S, 0.0

        def is_over() -> bool:
            nonlocal asked_s
            if time.monotonic() < asked_s + SHOW_S:
                return False
            asked_s = time.monotonic()
            return asked_s > ends_s or self.scene().tables[0].applied_up_to >= last

        return is_over

    def has_a_ready_hour(self) -> bool:
        return all(one.ready > 0 for one in self.scene().streams)

    def is_all_there(self) -> bool:
        scene = self.scene()
        rows = sum(one.records + one.dead for one in self.dropped.values())
        is_ready = all(one.ready == len(self.hours) for one in scene.streams)
        (table,) = scene.tables
        is_applied = table.applied_up_to >= str(self.hours[-1]) and not table.waiting
        return scene.rows >= rows and is_ready and is_applied


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with (
        closing(open_store(f"file:{tmp_path / 'state'}", "kill")) as store,
        closing(Fleet(tmp_path, store, [HEADGATE])) as fleet,
    ):
        fleet.install()
        yield fleet


def test_k17_k24_b22_nodes_killed_with_minus_nine_while_they_flag_and_apply_lose_nothing(
    fleet: Fleet,
) -> None:
    seed = int(os.environ.get("HEADGATE_SEED", random.randrange(10**6)))
    print(f"HEADGATE_SEED={seed}")
    chance = random.Random(seed)
    aimed = [fleet.in_a_commit, fleet.while_flags_are_raised, fleet.while_a_batch_is_applied, None]
    hits = 0
    fleet.begin(seed)
    for name in NODES:
        fleet.start(name)

    for number, moment in enumerate(chance.sample(aimed, ROUNDS)):
        fleet.until(
            lambda: all(child.read() or child.session for child in fleet.children.values()),
            "both have joined",
        )
        fleet.drop(number, seed)
        if moment is None:
            time.sleep(chance.uniform(0, 6))
        caught = None if moment is None else moment(fleet.is_through(number))
        hits += caught is not None
        fleet.start(caught or fleet.kill(chance.choice(NODES)))
    assert hits, "every moment that was aimed at was over too soon"
    # Else they may be read together with what makes them late.
    fleet.until(fleet.has_a_ready_hour, "the first hour of each stream is ready")
    fleet.drop_late()
    fleet.until(fleet.is_all_there, "every hour is ready, and in the table")
    fleet.stop()

    lake = {
        name: count_lake(fleet.folder / "lake", own.folder, name, fleet.dropped[name].ids)
        for name, own in fleet.settings.streams.items()
    }
    for name, found in lake.items():
        assert list(lake_faults(name, fleet.dropped[name], found)) == []
    table = count_table(fleet.folder / "tables" / TABLE, lake[TABLE])
    assert list(table_faults(lake[TABLE], table, fleet.hours)) == []
    flags = [
        flag
        for name, own in fleet.settings.streams.items()
        for flag in flags_of(own.folder, name, fleet.hours)
    ]
    assert [one for one in flags if not (fleet.folder / "lake" / one).is_file()] == []
    for command in (["verify", "--all"], ["audit", "--deep"]):
        done = headgate(fleet.folder, *command)
        assert done.returncode == 0, done.stdout
