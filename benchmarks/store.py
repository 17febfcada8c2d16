"""What a document store costs against the bare thing beneath it, in the same run.

    python -m benchmarks.store              file, zk, es
    python -m benchmarks.store file zk      some of them
    python -m benchmarks.store trie         1,000,000 documents in a trie on ZooKeeper (minutes)

Peers take turns in short rounds, so that a noisy machine disturbs both alike.
"""

import os
import resource
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from kazoo.client import KazooClient
from opensearchpy import OpenSearch

from benchmarks.report import Number, publish
from headgate import open_store
from headgate.store import DocumentStore, JsonObject
from headgate.store.pages import pages
from headgate.store.trie import trie_key
from tests.servers.opensearch import OpenSearchCluster
from tests.servers.zookeeper import ZooKeeperEnsemble

ROUNDS = 15
CALLS = 100  # in each round
BODY: JsonObject = {"format": 1, "n": 0, "filling": "x" * 900}

TRIE_DOCUMENTS = 1_000_000
LISTED = 100_000
PROCESSES, THREADS = 2, 12


def compare(ours: Callable[[], object], bare: Callable[[], object]) -> tuple[float, float]:
    """Median seconds of a call, ours and bare."""
    times: dict[str, list[float]] = {"ours": [], "bare": []}
    for round_number in range(ROUNDS + 1):
        for name, call in (("ours", ours), ("bare", bare)):
            started = time.perf_counter()
            for _ in range(CALLS):
                call()
            if round_number:  # the first one warms up
                times[name].append((time.perf_counter() - started) / CALLS)
    return statistics.median(times["ours"]), statistics.median(times["bare"])


class Replacer:
    """Replaces one document over and over."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._version = store.create("bench/doc", BODY)

    def __call__(self) -> None:
        self._version = self._store.replace("bench/doc", BODY, self._version)


def file() -> list[Number]:
    """The peer: write a file, fsync it, rename it over the old one, fsync the folder."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        content = (Path(folder) / "content").name.encode() + b"x" * 1_000

        def raw() -> None:
            handle = os.open(f"{folder}/aside", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.write(handle, content)
            os.fsync(handle)
            os.close(handle)
            os.rename(f"{folder}/aside", f"{folder}/doc")
            handle = os.open(folder, os.O_RDONLY)
            os.fsync(handle)
            os.close(handle)

        ours_s, bare_s = compare(Replacer(open_store(f"file:{folder}/state")), raw)
    detail = {"ours_us": ours_s * 1e6, "bare_us": bare_s * 1e6}
    peer = "write + fsync + rename + fsync of the folder"
    return [Number("store.file.replace", 1 / ours_s, "writes/s", ours_s / bare_s, peer, detail)]


def zk() -> list[Number]:
    """The peer: kazoo's own `set` with a version."""
    with ZooKeeperEnsemble(size=1, heap="512m") as server:
        client = KazooClient(server.hosts)
        client.start()
        client.create("/bare", b"x" * 1_000)
        version = [0]

        def bare() -> None:
            version[0] = client.set("/bare", b"x" * 1_000, version=version[0]).version

        store = open_store(f"zk://{server.hosts}/bench")
        ours_s, bare_s = compare(Replacer(store), bare)
        store.close()
        client.stop()
        client.close()
    detail = {"ours_us": ours_s * 1e6, "bare_us": bare_s * 1e6}
    peer = "kazoo set with a version"
    return [Number("store.zk.replace", 1 / ours_s, "writes/s", bare_s / ours_s, peer, detail)]


def es() -> list[Number]:
    """The peer: opensearch-py's own `index` with if_seq_no and if_primary_term."""
    with OpenSearchCluster(size=1) as server:
        client = OpenSearch(hosts=[server.hosts], max_retries=0)
        mapping = {
            "dynamic": "strict",
            "properties": {"body": {"type": "object", "enabled": False}},
        }
        client.indices.create(
            index="bare", body={"settings": {"number_of_replicas": 0}, "mappings": mapping}
        )
        last = client.index(index="bare", id="doc", body={"body": BODY})

        def bare() -> None:
            nonlocal last
            last = client.index(
                index="bare",
                id="doc",
                body={"body": BODY},
                params={"if_seq_no": last["_seq_no"], "if_primary_term": last["_primary_term"]},
            )

        store = open_store(f"es://{server.hosts}/bench")
        ours_s, bare_s = compare(Replacer(store), bare)
        store.close()
        client.close()
    detail = {"ours_us": ours_s * 1e6, "bare_us": bare_s * 1e6}
    peer = "opensearch-py index with if_seq_no and if_primary_term"
    return [Number("store.es.replace", 1 / ours_s, "writes/s", bare_s / ours_s, peer, detail)]


def fill(url: str, process: int) -> None:
    """A share of the trie's documents, from several threads."""

    def work(thread: int) -> None:
        store = open_store(url)
        first = process * THREADS + thread
        for n in range(first, TRIE_DOCUMENTS, PROCESSES * THREADS):
            store.create(trie_key("queues", f"{n:032x}"), {"format": 1, "last": ""})
        store.close()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def trie() -> list[Number]:
    """The limits: a child list of 100 KB, and memory that does not grow with the pages read."""
    with ZooKeeperEnsemble(size=1, heap="4g") as server:
        url = f"zk://{server.hosts}/bench"
        open_store(url).close()
        started = time.perf_counter()
        with ProcessPoolExecutor(PROCESSES) as pool:
            for done in [pool.submit(fill, url, n) for n in range(PROCESSES)]:
                done.result()
        created_s = time.perf_counter() - started
        print(f"{TRIE_DOCUMENTS:,} documents created in {created_s:.0f} s", file=sys.stderr)
        largest_bytes, folders = child_lists(server.hosts)
        store = open_store(url)
        started = time.perf_counter()
        seen, early_kb = 0, 0
        for page in pages(store, "queues"):
            seen += len(page.documents)
            if seen <= LISTED // 10:
                early_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            if seen >= LISTED:
                break
        listed_s = time.perf_counter() - started
        late_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        store.close()
    return [
        Number(
            "store.zk.trie_child_list",
            largest_bytes / 1_000,
            "KB",
            largest_bytes / 100_000,
            "a limit of 100 KB",
            {"documents": TRIE_DOCUMENTS, "folders": folders, "created_s": created_s},
        ),
        Number(
            "store.zk.list",
            seen / listed_s,
            "documents/s",
            late_kb / early_kb,
            "peak memory after the first tenth of the pages",
            {"documents": seen, "early_kb": early_kb, "late_kb": late_kb},
        ),
    ]


def child_lists(hosts: str) -> tuple[int, int]:
    """The largest child list in bytes as ZooKeeper sends it (4 + the name), and how many."""
    client = KazooClient(hosts)
    client.start()
    largest, count, todo = 0, 0, ["/bench"]
    while todo:
        batch = [client.get_children_async(path) for path in todo[:500]]
        paths, todo = todo[:500], todo[500:]
        for path, answer in zip(paths, batch, strict=True):
            children = answer.get()
            if not children:
                continue
            count += 1
            largest = max(largest, sum(4 + len(name.encode()) for name in children))
            if path.count("/") < 5:  # /bench/<namespace>/queues/ab/cd: below are documents
                todo += [f"{path}/{name}" for name in children if not name.startswith("!")]
    client.stop()
    client.close()
    return largest, count


SUBJECTS: dict[str, Callable[[], list[Number]]] = {"file": file, "zk": zk, "es": es, "trie": trie}


def main() -> None:
    for name in sys.argv[1:] or ["file", "zk", "es"]:
        publish("store", SUBJECTS[name]())


if __name__ == "__main__":
    main()
