"""What the store contract needs of each backend beside the store: damage, outages, disturbances."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch
from urllib.parse import quote
from urllib.request import Request, urlopen

from kazoo.client import KazooClient

from headgate import open_store
from headgate.ambient import Ambient, SystemAmbient
from headgate.store import DocumentStore
from headgate.store.file import STRIPES, FileStore
from headgate.store.memory import MemoryStore, Shelf
from headgate.store.names import parts
from tests.servers.cluster import Cluster
from tests.servers.opensearch import OpenSearchCluster
from tests.servers.toxiproxy import Proxy
from tests.servers.zookeeper import ZooKeeperEnsemble


class MemoryHarness:
    def __init__(self) -> None:
        self._shelf = Shelf()

    def open(self, namespace: str, ambient: Ambient) -> DocumentStore:
        return MemoryStore(self._shelf, namespace, ambient)

    def damage(self, namespace: str, key: str) -> str:
        place = (namespace, *parts(key))
        raw, version = self._shelf.documents[place]
        self._shelf.documents[place] = (raw[: len(raw) // 2], version)
        return key

    @contextmanager
    def outage(self, name: str) -> Iterator[None]:
        assert name == "another thread holds it"
        is_over, is_held = threading.Event(), threading.Event()

        def hold() -> None:
            with self._shelf.changed:
                is_held.set()
                is_over.wait()

        holder = threading.Thread(target=hold, daemon=True)
        holder.start()
        is_held.wait()
        try:
            yield
        finally:
            is_over.set()
            holder.join()

    def disturbance(self, name: str) -> AbstractContextManager[None]:
        raise AssertionError(f"memory: has no disturbance {name}")


class FileHarness:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._namespaces: set[str] = set()

    def open(self, namespace: str, ambient: Ambient) -> DocumentStore:
        self._namespaces.add(namespace)
        return FileStore(self._folder, namespace, ambient)

    def damage(self, namespace: str, key: str) -> str:
        file = self._folder / namespace / f"{key}.json"
        content = bytearray(file.read_bytes())
        content[-5] ^= 1
        file.write_bytes(content)
        return str(file)

    @contextmanager
    def outage(self, name: str) -> Iterator[None]:
        start = {"a writer is stopped": self._stopped_writer, "the disk is full": self._full_disk}
        with ExitStack() as stack:
            for namespace in self._namespaces:
                stack.enter_context(start[name](self._folder / namespace))
            yield

    @contextmanager
    def _stopped_writer(self, root: Path) -> Iterator[None]:
        """As a process that was stopped in mid-write would: every stripe stays locked."""
        with ExitStack() as stack:
            for number in range(STRIPES):
                stripe = stack.enter_context((root / ".stripes" / f"{number:02x}").open("w"))
                fcntl.flock(stripe, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _full_disk(self, root: Path) -> Iterator[None]:
        def full(*_: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(root))

        with patch.object(os, "write", full):
            yield

    @contextmanager
    def disturbance(self, name: str) -> Iterator[None]:
        """Processes that write to the same stripes die with -9, one after the other."""
        assert name == "writers are killed"
        (namespace,) = self._namespaces
        ambient = SystemAmbient()
        for _ in range(6):
            child = subprocess.Popen(
                [sys.executable, "-c", _VICTIM, str(self._folder), namespace],
                stdout=subprocess.PIPE,
            )
            assert child.stdout is not None
            child.stdout.readline()  # it is writing
            ambient.sleep_ms(30 * ambient.random())
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
            child.stdout.close()
        yield


# Its own documents, in the same stripes as those of the tests: it dies with their locks in its hand
# and half a document aside.
_VICTIM = """
import sys
from pathlib import Path
from headgate.ambient import SystemAmbient
from headgate.store.file import STRIPES, FileStore, stripe_of

stripes = {stripe_of(key) for key in ("x", "y", "z", "tasks/1")}
keys = [key for key in (f"victim-{n}" for n in range(40 * STRIPES)) if stripe_of(key) in stripes]
store = FileStore(Path(sys.argv[1]), sys.argv[2], SystemAmbient())
body = {"format": 1, "filling": "x" * 300_000}
for n in range(100_000):
    key = keys[n % len(keys)]
    found = store.get(key)
    store.replace(key, body, found.version) if found else store.create(key, body)
    if n == 3:
        print("writing", flush=True)
"""


class ServerHarness(ABC):
    """Real servers behind proxies: what lies between a client and them can go wrong, too."""

    def __init__(self, cluster: Cluster, proxies: Sequence[Proxy]) -> None:
        self._cluster = cluster
        self._proxies = proxies

    @property
    def hosts(self) -> str:
        return ",".join(proxy.address for proxy in self._proxies)

    @abstractmethod
    def open(self, namespace: str, ambient: Ambient) -> DocumentStore: ...

    @abstractmethod
    def damage(self, namespace: str, key: str) -> str: ...

    @abstractmethod
    def _leader(self) -> int: ...

    @contextmanager
    def outage(self, name: str) -> Iterator[None]:
        start = {
            "the network is cut": self._cut,
            "no quorum": self._no_quorum,
            "nobody answers": self._silence,
        }
        with start[name]():
            yield

    @contextmanager
    def disturbance(self, name: str) -> Iterator[None]:
        start = {
            "the leader is killed": self._killed_leader,
            "the leader is paused": self._paused_leader,
            "the network is cut": self._cut,
            "the network is slow": self._slow,
            "replies are lost": self._lost_replies,
        }
        with start[name]():
            yield

    @contextmanager
    def _cut(self) -> Iterator[None]:
        with ExitStack() as stack:
            for proxy in self._proxies:
                stack.enter_context(proxy.cut())
            yield

    @contextmanager
    def _slow(self) -> Iterator[None]:
        with ExitStack() as stack:
            for proxy in self._proxies:
                stack.enter_context(proxy.slow(150))
            yield

    @contextmanager
    def _lost_replies(self) -> Iterator[None]:
        with ExitStack() as stack:
            for proxy in self._proxies:
                stack.enter_context(proxy.lose_replies())
            yield

    @contextmanager
    def _silence(self) -> Iterator[None]:
        for index in range(self._cluster.size):
            self._cluster.pause(index)
        try:
            yield
        finally:
            self._cluster.heal()

    @contextmanager
    def _killed_leader(self) -> Iterator[None]:
        self._cluster.kill(self._leader())
        try:
            yield
        finally:
            self._cluster.heal()

    @contextmanager
    def _paused_leader(self) -> Iterator[None]:
        self._cluster.pause(self._leader())
        try:
            yield
        finally:
            self._cluster.heal()

    @contextmanager
    def _no_quorum(self) -> Iterator[None]:
        for index in range(self._cluster.size // 2 + 1):
            self._cluster.kill(index)
        try:
            yield
        finally:
            self._cluster.heal()


class ZooKeeperHarness(ServerHarness):
    def __init__(self, ensemble: ZooKeeperEnsemble, proxies: Sequence[Proxy]) -> None:
        super().__init__(ensemble, proxies)
        self._ensemble = ensemble

    def open(self, namespace: str, ambient: Ambient) -> DocumentStore:
        return open_store(f"zk://{self.hosts}/contract", namespace, ambient=ambient)

    def damage(self, namespace: str, key: str) -> str:
        client = KazooClient(self._ensemble.hosts)
        client.start()
        try:
            path = f"/contract/{namespace}/{key}"
            content, _ = client.get(path)
            client.set(path, content[: len(content) // 2])
        finally:
            client.stop()
            client.close()
        return path

    def _leader(self) -> int:
        return self._ensemble.leader()


class OpenSearchHarness(ServerHarness):
    def __init__(self, cluster: OpenSearchCluster, proxies: Sequence[Proxy]) -> None:
        super().__init__(cluster, proxies)
        self._opensearch = cluster

    def open(self, namespace: str, ambient: Ambient) -> DocumentStore:
        return open_store(f"es://{self.hosts}/contract", namespace, ambient=ambient)

    def damage(self, namespace: str, key: str) -> str:
        place = f"_doc/{quote(f'{namespace}/{key}', safe='')}"
        stored = self._opensearch.ask(0, f"contract/{place}")["_source"]
        del stored["body"]["format"]
        self._send("PUT", f"contract/{place}?refresh=true", stored)
        return f"{namespace}/{key}"

    @contextmanager
    def outage(self, name: str) -> Iterator[None]:
        if name != "the index is read-only":
            with super().outage(name):
                yield
            return
        self._send("PUT", "contract/_settings", {"index.blocks.write": True})
        try:
            yield
        finally:
            self._send("PUT", "contract/_settings", {"index.blocks.write": None})

    def _leader(self) -> int:
        return self._opensearch.manager()

    def _send(self, method: str, path: str, body: object) -> None:
        request = Request(
            f"http://127.0.0.1:{self._opensearch.ports[0]}/{path}",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method=method,
        )
        with urlopen(request, timeout=30) as answer:
            answer.read()
