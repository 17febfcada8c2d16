"""How long after the fact that completes an hour its flag is there, and the day's after the last.

    python -m benchmarks.flag_latency

A node with its real loops and threads holds the root, on a file store and a local lake, with
nothing else to do. A fact (one compare-and-set of the checkpoint, as the last write of a commit)
completes one hour of a stream with a data file in it; then the flag in the stream's folder is
looked for until it is there, and over the last hour of a day the day's. Facts come at moments that
the node knows nothing of. The limits are 1 s and 2 s; the ratio is against them.
"""

import os
import random
import statistics
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

from benchmarks.report import Number, publish
from benchmarks.shore import TEMPLATE, begin, land, open_shore, reach, root_of
from headgate import open_store
from headgate.ambient import Ambient, SystemAmbient
from headgate.app.nodes import Equipment, Place, joined_node
from headgate.cluster.duties import NodeSettings
from headgate.cluster.store_clock import StoreClock
from headgate.commits.certificate import FLAG, flag_paths
from headgate.lake.ledger import Ledger
from headgate.periods import HOUR_MS, Period
from headgate.ready.kind import RootFeed, RootKind
from headgate.ready.work import RootTools
from headgate.store import DocumentStore

STREAM = "orders"
DAYS = 2
FIRST = Period.parse("2026-11-01")
LOOK_S = 0.002
PATIENCE_S = 60
FLAG_LIMIT_S, DAY_LIMIT_S = 1.0, 2.0
SEED = 7


def until_there(path: Path, since_s: float) -> float:
    """Seconds since then."""
    while not path.exists():
        if time.monotonic() > since_s + PATIENCE_S:
            raise SystemExit(f"{path}: was not raised in {PATIENCE_S} s")
        time.sleep(LOOK_S)
    return time.monotonic() - since_s


def measured(folder: Path) -> tuple[list[float], list[float]]:
    ambient, settings = SystemAmbient(), root_of([STREAM])
    place, lake = Place(f"file:{folder}/state"), open_shore(folder / "lake", SystemAmbient())
    chance = random.Random(SEED)

    def equip(store: DocumentStore, own: Ambient) -> Equipment:
        clock = StoreClock(store, own)
        tools = RootTools(store, lake, Ledger(lake, "bench", own), own, clock.now_ms)
        return Equipment([RootKind(settings, tools)], [RootFeed(settings)])

    hours = [Period(FIRST.start_ms + n * HOUR_MS, "hour") for n in range(24 * DAYS)]
    flags: list[float] = []
    days: list[float] = []
    with closing(open_store(place.url)) as store:
        begin(store, STREAM, hours[0])
        node = NodeSettings("bench", 2, ())
        with joined_node(place, node, ambient, equip=equip) as joined:
            thread = threading.Thread(target=joined.node.run, daemon=True)
            thread.start()
            for number, hour in enumerate(hours):
                land(store, lake, STREAM, hour)
                time.sleep(chance.random())
                reach(store, STREAM, hour.end_ms)
                since_s = time.monotonic()
                both = flag_paths(TEMPLATE, hour, STREAM)
                took = [until_there(folder / "lake" / path, since_s) for path in both]
                if number > 0:  # the first one waits for the node to take its task
                    flags.append(max(took))
                if hour.end_ms == hour.day().end_ms:
                    day = folder / "lake" / str(hour.day()) / FLAG
                    days.append(until_there(day, since_s))
            joined.node.drain()
            thread.join(PATIENCE_S)
    return flags, days


def main() -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        flags, days = measured(Path(name))
    detail = {
        "hours": len(flags),
        "least_s": min(flags),
        "median_s": statistics.median(flags),
        "most_s": max(flags),
        "days": len(days),
        "day_most_s": max(days),
    }
    worst_day, worst = max(days), max(flags)
    publish(
        "flag_latency",
        [
            Number("day_flag_latency", worst_day, "s", worst_day / DAY_LIMIT_S, "2 s", detail),
            Number("flag_latency", worst, "s", worst / FLAG_LIMIT_S, "1 s", detail),
        ],
    )


if __name__ == "__main__":
    main()
