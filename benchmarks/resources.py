"""What a node takes: of a core while nothing happens, of memory while much does.

    python -m benchmarks.resources idle      a node with one quiet stream, for a minute
    python -m benchmarks.resources memory    1 million records against 20 million, in rounds

The last number of `memory` is the growth of the Python process from the first to the second; the
Java process has a heap of a fixed size, and is measured as a whole.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.report import Number, publish

HEADGATE = (sys.executable, "-c", "from headgate.cli.main import main; main()")
SETTLE_S = 15.0
IDLE_S = 60.0
SMALL, LARGE = 1_000_000, 20_000_000
PER_FILE = 500_000
NOON_MS = 1_793_534_400_000

SETTINGS = """\
store: file:./state
lake: ./lake
streams:
  orders:
    source: {kind: files, path: ./incoming, format: json, after_read: delete}
    event_time: {json: $.at, unit: ms}
    round_size: 100MB
    allowed_lateness: 1d  # every file has the same hours
spark: {conf: {spark.driver.memory: 1g}}
"""


def idle() -> None:
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        node = subprocess.Popen([*HEADGATE, "run"], cwd=folder, stderr=subprocess.DEVNULL)
        try:
            time.sleep(SETTLE_S)
            process = psutil.Process(node.pid)
            before, began_s = cpu_s(process), time.monotonic()
            time.sleep(IDLE_S)
            share = (cpu_s(process) - before) / (time.monotonic() - began_s)
            detail = {"seconds": IDLE_S, "rss_mb": process.memory_info().rss / 1e6}
        finally:
            node.kill()
            node.wait()
    publish(
        "resources", [Number("idle_node", 100 * share, "% of a core", share / 0.02, "2 %", detail)]
    )


def memory() -> None:
    peaks = {count: peak_of(count) for count in (SMALL, LARGE)}
    small, large = peaks[SMALL], peaks[LARGE]
    detail = {
        "records_small": SMALL,
        "records_large": LARGE,
        "python_mb_small": small["python_mb"],
        "python_mb_large": large["python_mb"],
        "java_mb_small": small["java_mb"],
        "java_mb_large": large["java_mb"],
        "seconds_large": large["seconds"],
    }
    ratio = large["python_mb"] / small["python_mb"]
    publish(
        "resources",
        [Number("driver_memory", large["python_mb"], "MB", ratio, f"{SMALL:,} records", detail)],
    )


def peak_of(count: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        drop(folder / "incoming", count)
        peaks = peak_while_idle_comes(folder)
        rows = sum(
            json.loads(path.read_text())["counts"]["data"]
            for path in (folder / "lake/_headgate/commits").rglob("*.json")
        )
        assert rows == count, (rows, count)
        return peaks


def peak_while_idle_comes(folder: Path) -> dict[str, float]:
    """Of a node with the settings in this folder, from its start until it is idle."""
    began_s = time.monotonic()
    node = subprocess.Popen(
        [*HEADGATE, "run", "--until", "idle"], cwd=folder, stderr=subprocess.DEVNULL
    )
    peaks = {"python_mb": 0.0, "java_mb": 0.0}
    while node.poll() is None:
        sample(psutil.Process(node.pid), peaks)
        time.sleep(0.2)
    assert node.returncode == 0, node.returncode
    return {**peaks, "seconds": time.monotonic() - began_s}


def sample(process: psutil.Process, peaks: dict[str, float]) -> None:
    try:
        own = process.memory_info().rss / 1e6
        java = sum(one.memory_info().rss for one in process.children(recursive=True)) / 1e6
    except psutil.NoSuchProcess:
        return
    peaks["python_mb"] = max(peaks["python_mb"], own)
    peaks["java_mb"] = max(peaks["java_mb"], java)


def prepare(folder: Path) -> None:
    (folder / "incoming").mkdir()
    (folder / "headgate.yaml").write_text(SETTINGS)


def drop(folder: Path, count: int) -> None:
    """The same half million lines again and again: what they say does not matter here."""
    pad = "x" * 40
    lines = (
        f'{{"id":{number},"at":{NOON_MS + number * 20},"town":"Cork","note":"{pad}"}}\n'
        for number in range(PER_FILE)
    )
    block = "".join(lines).encode()
    for number in range(count // PER_FILE):
        (folder / f"orders-{number:04}.json").write_bytes(block)


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    {"idle": idle, "memory": memory}[sys.argv[1]]()
