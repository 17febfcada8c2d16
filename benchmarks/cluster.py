"""Spark elsewhere: two standalone workers of one core against `local[2]`, on the same work.

Each is a process with its own driver, and both take turns in landing the files of `land_files` from
the first look to the fact.

    python -m benchmarks.cluster
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.land_files import RECORDS, ROUNDS, WARM_UPS, generate, ready_to_land
from benchmarks.report import Number, publish
from headgate.engine import SparkSettings
from headgate.engine.gateway.spark import start
from tests.servers.spark_servers import StandaloneCluster

LOCAL = "local[2]"
CONF = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "2g"}


def child(master: str, incoming: Path, place: Path) -> None:
    """Lands once for each line that it is sent, and says how many seconds that took."""
    session, _ = start(SparkSettings(master, conf=CONF))
    for n, _ in enumerate(sys.stdin):
        own = place / str(n)
        own.mkdir()
        with ready_to_land(incoming, own) as act:
            started = time.perf_counter()
            act()
            seconds = time.perf_counter() - started
        shutil.rmtree(own)
        print(seconds, flush=True)
    session.stop()


def drivers(masters: dict[str, str], incoming: Path, place: Path) -> "dict[str, list[float]]":
    """Seconds of each, by name."""
    running = dict[str, subprocess.Popen[str]]()
    times: dict[str, list[float]] = {name: [] for name in masters}
    for name, master in masters.items():
        own = place / name
        own.mkdir()
        words = [sys.executable, "-m", "benchmarks.cluster", master, str(incoming), str(own)]
        running[name] = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    try:
        for n in range(WARM_UPS + ROUNDS):
            for name, driver in running.items():
                assert driver.stdin is not None
                assert driver.stdout is not None
                print("land", file=driver.stdin, flush=True)
                seconds = float(driver.stdout.readline())
                print(f"{name} {seconds:.1f} s", file=sys.stderr)
                if n >= WARM_UPS:
                    times[name].append(seconds)
    finally:
        for driver in running.values():
            driver.communicate(timeout=60)
    return times


def main() -> None:
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        place = Path(folder)
        session, _ = start(SparkSettings(LOCAL))
        generate(session, place / "in")
        session.stop()
        with StandaloneCluster(place / "cluster", workers=2, memory="3g") as cluster:
            masters = {"local": LOCAL, "cluster": cluster.url}
            times = drivers(masters, place / "in", place)
    took = {f"{name}_s": statistics.median(all_s) for name, all_s in times.items()}
    ratio = took["local_s"] / took["cluster_s"]
    rate = RECORDS / took["cluster_s"]
    publish("cluster", [Number("cluster", rate, "records/s", ratio, LOCAL, took)])


if __name__ == "__main__":
    if sys.argv[1:]:
        child(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
