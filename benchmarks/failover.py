"""From the end of a node to the first effect of whoever takes over, on real stores.

    python -m benchmarks.failover              file, zk, es
    python -m benchmarks.failover file         some of them
    python -m benchmarks.failover --rounds 3 --term-seconds 6 zk

Two nodes are processes of their own; one holds the only task and adds a step every 100 ms. It is
killed with -9, or asked to stop. The time ends with the first step under a higher epoch, as a third
process sees it in the store. The bound is the term + 1 s for a kill, 1 s for a graceful stop.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.report import Number, publish
from headgate.ambient import SystemAmbient
from headgate.store import DocumentStore
from headgate.store.codec import parse
from headgate.store.registry import open_store
from headgate.testing.steps import STEPS, Progress, Step
from tests.servers.opensearch import OpenSearchCluster
from tests.servers.zookeeper import ZooKeeperEnsemble

HEADGATE = str(Path(sys.executable).parent / "headgate")
ROUNDS = 10
TERM_S = 30
PAUSE_MS = 100
PATIENCE_S = 180
POLL_S = 0.005


class Pair:
    """Two nodes, and what they do."""

    def __init__(self, url: str, namespace: str, term_s: int) -> None:
        self._url = url
        self._namespace = namespace
        self._term_s = term_s
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._started = 0

    def start(self) -> None:
        while len(self._children) < 2:
            self._started += 1
            name = f"node-{self._started}"
            self._children[name] = subprocess.Popen(
                [
                    *(HEADGATE, "run", "--store", self._url),
                    *("--namespace", self._namespace, "--name", name, "--workers", "1"),
                    *("--term-seconds", str(self._term_s), "--demo-tasks", "1"),
                    *("--demo-steps", "1000", "--demo-pause-ms", str(PAUSE_MS)),
                ],
                stderr=subprocess.DEVNULL,
            )

    def end(self, name: str, how: signal.Signals) -> None:
        os.kill(self._children[name].pid, how)

    def reap(self, name: str) -> None:
        self._children.pop(name).wait(PATIENCE_S)

    def close(self) -> None:
        for child in self._children.values():
            child.kill()
            child.wait()


def last_step(store: DocumentStore) -> Step | None:
    documents = store.list(STEPS).documents
    steps = parse(documents[0], Progress).steps if documents else ()
    return steps[-1] if steps else None


def wait_for_step(store: DocumentStore, above_epoch: int) -> tuple[Step, float]:
    ends_s = time.perf_counter() + PATIENCE_S
    while time.perf_counter() < ends_s:
        step = last_step(store)
        if step is not None and step.epoch > above_epoch:
            return step, time.perf_counter()
        time.sleep(POLL_S)
    raise SystemExit(f"nobody took over within {PATIENCE_S} s")


def measure(url: str, how: signal.Signals, rounds: int, term_s: int) -> list[float]:
    ambient = SystemAmbient()
    found = []
    for _ in range(rounds):
        namespace = f"failover-{ambient.new_id()[:8]}"
        store = open_store(url, namespace)
        pair = Pair(url, namespace, term_s)
        try:
            pair.start()
            step, _ = wait_for_step(store, 0)
            # Both have joined, and the kill comes anywhere between two renewals.
            wait_for_members(store, 2)
            time.sleep(ambient.random() * term_s / 3)
            started_s = time.perf_counter()
            pair.end(step.node, how)
            _, ended_s = wait_for_step(store, step.epoch)
            found.append(ended_s - started_s)
            pair.reap(step.node)
        finally:
            pair.close()
            store.close()
    return found


def wait_for_members(store: DocumentStore, count: int) -> None:
    ends_s = time.perf_counter() + PATIENCE_S
    while len(store.list("sessions").documents) < count:
        if time.perf_counter() > ends_s:
            raise SystemExit(f"{count} nodes did not join within {PATIENCE_S} s")
        time.sleep(POLL_S)


def numbers(name: str, url: str, rounds: int, term_s: int) -> Iterator[Number]:
    killed = measure(url, signal.SIGKILL, rounds, term_s)
    yield _number(f"failover.{name}.killed", killed, term_s + 1, "the term + 1 s", term_s)
    drained = measure(url, signal.SIGTERM, rounds, term_s)
    yield _number(f"failover.{name}.drained", drained, 1, "1 s", term_s)


def _number(name: str, seconds: Sequence[float], bound_s: float, peer: str, term_s: int) -> Number:
    median = statistics.median(seconds)
    detail = {
        "rounds": float(len(seconds)),
        "term_s": float(term_s),
        "least_s": min(seconds),
        "most_s": max(seconds),
    }
    return Number(name, median, "s", median / bound_s, f"median against {peer}", detail)


@contextmanager
def url_of(name: str) -> Iterator[str]:
    with ExitStack() as stack:
        if name == "file":
            yield f"file:{stack.enter_context(tempfile.TemporaryDirectory())}"
        elif name == "zk":
            # The servers would cut a session of 30 s short.
            ensemble = stack.enter_context(ZooKeeperEnsemble(config=["maxSessionTimeout=60000"]))
            yield f"zk://{ensemble.hosts}/failover"
        else:
            cluster = stack.enter_context(OpenSearchCluster(size=3))
            yield f"es://{cluster.hosts}/failover"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stores", nargs="*", default=["file", "zk", "es"])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--term-seconds", type=int, default=TERM_S)
    asked = parser.parse_args()
    for name in asked.stores:
        with url_of(name) as url:
            publish("failover", list(numbers(name, url, asked.rounds, asked.term_seconds)))


if __name__ == "__main__":
    main()
