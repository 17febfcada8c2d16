"""What a pass over 100 streams costs after one day, and after five years of hours.

    python -m benchmarks.propagate

Every stream's next hour becomes complete; one pass closes it for all of them, freezes 100
certificates, raises 200 flags and the hour's. Calls of store and lake are counted with one day of
flagged hours behind it and with five years: the root's document is put where it would be then, with
the certificates of the last day, and the folders of all those hours lie in the lake. In turns, each
pass with an hour of its own. The limit is a second, and the same number of calls.
"""

import json
import os
import statistics
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from benchmarks.held import Held
from benchmarks.report import Number, publish
from benchmarks.shore import TEMPLATE, begin, land, open_shore, reach, root_of
from headgate import open_store
from headgate.ambient import SystemAmbient
from headgate.commits.certificate import FLAG, flag_paths, parent_flag_path
from headgate.commits.roots import RootDocument, Seat, root_key
from headgate.commits.streams import StreamDocument, stream_key, with_closing
from headgate.lake import Lake
from headgate.lake.ledger import Ledger
from headgate.node import Hands
from headgate.periods import DAY_MS, HOUR_MS, Period
from headgate.ready.work import RootTools, RootWork
from headgate.store import DocumentStore
from headgate.store.changes import change
from headgate.testing.faults import Calm, wrap

STREAMS = [f"stream{n:03}" for n in range(100)]
PASSES = 5
NEXT = Period.parse("2026-11-01T00")  # the first hour that a counted pass raises
AGES = {"1 day": 1, "5 years": 5 * 365}
LIMIT_S = 1.0


class World:
    """An installation of that age."""

    def __init__(self, folder: Path, days: int) -> None:
        folder.mkdir()
        self.ambient, self.folder, self.calm = SystemAmbient(), folder, Calm()
        self.store = open_store(f"file:{folder}/state")
        self.lake = open_shore(folder / "lake", self.ambient)
        self.settings = root_of(STREAMS)
        first = Period(NEXT.start_ms - days * DAY_MS, "hour")
        for stream in STREAMS:
            begin(self.store, stream, first)
        self._age(first)
        lake = wrap(Lake, self.lake, self.calm)
        store = wrap(DocumentStore, self.store, self.calm)
        ledger = Ledger(lake, "bench", self.ambient)
        self.hands = Hands()
        tools = RootTools(store, lake, ledger, self.ambient, self._now_ms, self.hands.each)
        self.work = RootWork(Held(), self.settings, tools)
        self.work.tick()

    def _now_ms(self) -> int:
        return self.ambient.wall_ns() // 1_000_000

    def _age(self, first: Period) -> None:
        """As it would be after all those hours; of the flags, one in each hour."""
        end_ms = NEXT.start_ms
        seat = Seat(None, first.start_ms, end_ms)
        aged = RootDocument(streams=dict.fromkeys(STREAMS, seat), hours_ms=end_ms, days_ms=end_ms)
        change(self.store, root_key(self.settings.name), RootDocument, lambda _: aged)
        for stream in STREAMS:
            change(
                self.store,
                stream_key(stream),
                StreamDocument,
                lambda found: with_closing(found, end_ms, end_ms),
            )
        for start_ms in range(first.start_ms, end_ms, HOUR_MS):
            flag = parent_flag_path(TEMPLATE, Period(start_ms, "hour"))
            place = self.folder / "lake" / str(flag)
            place.parent.mkdir(parents=True)
            place.touch()

    def pass_over(self, hour: Period) -> tuple[float, Counter[str]]:
        """Seconds, and calls by name, of the pass that flags this hour."""
        self.hands.each(lambda stream: self._complete(stream, hour), STREAMS)
        self.calm.calls.clear()
        began_s = time.monotonic()
        self.work.tick()
        took_s = time.monotonic() - began_s
        for stream in STREAMS:
            for path in flag_paths(TEMPLATE, hour, stream):
                if self.lake.facts(path) is None:
                    raise SystemExit(f"{path}: was not raised in this pass")
        return took_s, Counter(call.method for call in self.calm.calls)

    def _complete(self, stream: str, hour: Period) -> None:
        land(self.store, self.lake, stream, hour)
        reach(self.store, stream, hour.end_ms)

    def close(self) -> None:
        self.hands.close()
        self.store.close()


def main() -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        worlds = {age: World(Path(name) / str(days), days) for age, days in AGES.items()}
        took: dict[str, list[float]] = {age: [] for age in AGES}
        calls: dict[str, Counter[str]] = {age: Counter() for age in AGES}
        for number in range(PASSES):
            hour = Period(NEXT.start_ms + number * HOUR_MS, "hour")
            for age, world in worlds.items():
                seconds, counted = world.pass_over(hour)
                took[age].append(seconds)
                calls[age] += counted
        for world in worlds.values():
            with closing(world):
                over_all = world.folder / "lake" / str(NEXT).replace("T", "/") / FLAG
                if json.loads(over_all.read_text())["period"] != str(NEXT):
                    raise SystemExit("the hour over all streams was not raised")
    young, old = (sum(calls[age].values()) for age in AGES)
    seconds = statistics.median(took["5 years"])
    detail = {
        "streams": len(STREAMS),
        "passes": PASSES,
        "calls_1_day": young / PASSES,
        "calls_5_years": old / PASSES,
        "seconds_1_day": statistics.median(took["1 day"]),
        "seconds_5_years": seconds,
        "limit_s": LIMIT_S,
        **{f"calls_{method}": n / PASSES for method, n in sorted(calls["5 years"].items())},
    }
    publish(
        "propagate",
        [
            Number("pass_time", seconds, "s", seconds / LIMIT_S, "1 s", detail),
            Number("propagate", old / PASSES, "calls", old / young, "1 day of hours", detail),
        ],
    )


if __name__ == "__main__":
    main()
