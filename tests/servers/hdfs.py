"""HDFS: a name node and a data node, from their jars, each a process of its own.

    address     of the name node, without a detour
    wire        like `address`, through toxiproxy

Nothing lies between a client and the data node: hdfs-native closes one half of a connection before
it reads the answer in the other, and toxiproxy then closes both. It can be paused and killed.
The data node reports a block before it acknowledges it (HdfsNode.java): a file is closed in 30 ms,
not in half a second. What only an administrator may do, the name node does when it is told
(`safe_mode`, `quota`).
Measured on two cores: 8 s to start, 5 s to start the name node again; 180 MB each.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from hdfs_native import Client, WriteOptions

from tests.servers.fetch import fetched
from tests.servers.process import (
    ChildProcess,
    ServerFailed,
    free_ports,
    java,
    stop_all,
    wait_until,
    working_folder,
)
from tests.servers.toxiproxy import Proxy, Toxiproxy

QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
T = TypeVar("T")

READY_WITHIN_S = 90
DONE_WITHIN_S = 30
NO_QUOTA = -1
AT_ONCE = {"dfs.client.failover.max.attempts": "1"}  # else it waits 15 s for a dead server

# One replica, and no waiting: what takes half a minute in earnest is done at once.
SETTINGS = {
    "dfs.replication": "1",
    "dfs.namenode.safemode.extension": "0",
    "dfs.heartbeat.interval": "1",
    "dfs.blocksize": "1048576",
    "dfs.namenode.fs-limits.min-block-size": "1048576",
    "dfs.namenode.handler.count": "8",
    "ipc.client.connect.max.retries": "2",
}


class HdfsCluster:
    """Keeps its ports and its data over kill and start, until it is closed. The network must
    outlive it. Whoever runs it is its superuser."""

    def __init__(self, network: Toxiproxy, *, folder: Path | None = None) -> None:
        name, self._page, self._data, self._data_page, self._data_ipc = free_ports(5)
        self.address = f"127.0.0.1:{name}"
        self.network = network
        self._given_folder = folder
        self._wire: Proxy | None = None
        self._children: tuple[ChildProcess, ChildProcess] | None = None
        self._told = 0
        self._exits = ExitStack()

    @property
    def url(self) -> str:
        return f"hdfs://{self.address}"

    @property
    def wire(self) -> Proxy:
        return _started(self._wire)

    @property
    def name_node(self) -> ChildProcess:
        return _started(self._children)[0]

    @property
    def data_node(self) -> ChildProcess:
        return _started(self._children)[1]

    def __enter__(self) -> Self:
        """Raises ServerFailed, with everything stopped again."""
        with ExitStack() as exits:
            folder = exits.enter_context(working_folder("hdfs", self._given_folder))
            self._wire = self.network.proxy(self.address)
            exits.callback(self._wire.close)
            self._children = (
                self._prepare("name", folder, self._of_name_node(folder)),
                self._prepare("data", folder, self._of_data_node(folder)),
            )
            exits.callback(stop_all, self._children)
            self.start()
            self._exits = exits.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._exits.__exit__(kind, error, traceback)

    def start(self) -> None:
        """Returns when files can be written; what runs is left alone. Raises ServerFailed."""
        children = [self.name_node, self.data_node]
        for child in children:
            child.start()
        wait_until(self._takes_files, "hdfs to take a file", READY_WITHIN_S, children)

    def heal(self) -> None:
        """Both run and serve, the wire has no fault, and there is no safe mode."""
        self.wire.heal()
        for child in (self.name_node, self.data_node):
            child.resume()
        self.start()

    def contents(self, root: str) -> Mapping[str, bytes]:
        """Every file below this folder, by its path there, as somebody else sees it."""
        client = Client(self.url, AT_ONCE)
        return {
            one.path.removeprefix(f"{root}/"): client.read(one.path).read()
            for one in client.list_status(root, True)
            if not one.isdir
        }

    @contextmanager
    def safe_mode(self) -> Iterator[None]:
        """Everything can be read, and nothing changes."""
        self._tell("safemode enter")
        try:
            yield
        finally:
            self._tell("safemode leave")

    @contextmanager
    def quota(self, path: str, names: int, size_bytes: int) -> Iterator[None]:
        """Below this folder there is room for so many files and folders, itself included, and for
        so many bytes."""
        self._tell(f"quota {path} {names} {size_bytes}")
        try:
            yield
        finally:
            self._tell(f"quota {path} {NO_QUOTA} {NO_QUOTA}")

    def _tell(self, order: str) -> None:
        """Raises ServerFailed."""
        self._told += 1
        number, child = self._told, self.name_node
        child.tell(f"{number} {order}")

        def answer() -> str:
            lines = child.log.read_text(errors="replace").splitlines()
            return next((one for one in lines if one.split(" ")[1:2] == [str(number)]), "")

        wait_until(lambda: bool(answer()), f"hdfs: {order}", DONE_WITHIN_S, [child])
        if not answer().startswith("DONE"):
            raise ServerFailed(f"hdfs: {order}: {answer()}")

    def _prepare(self, name: str, folder: Path, settings: Mapping[str, str]) -> ChildProcess:
        place = fetched("hdfs")
        told = [f"{key}={value}" for key, value in {**SETTINGS, **settings}.items()]
        command = java(
            "384m", [place / "libs" / "*", place / "classes"], QUIET, "HdfsNode", name, *told
        )
        return ChildProcess(f"hdfs-{name}", command, folder / f"{name}.log")

    def _of_name_node(self, folder: Path) -> dict[str, str]:
        return {
            "fs.defaultFS": self.url,
            "dfs.namenode.name.dir": str(folder / "name"),
            "dfs.namenode.http-address": f"127.0.0.1:{self._page}",
        }

    def _of_data_node(self, folder: Path) -> dict[str, str]:
        return {
            "fs.defaultFS": self.url,
            "dfs.datanode.data.dir": str(folder / "data"),
            "dfs.datanode.address": f"127.0.0.1:{self._data}",
            "dfs.datanode.http.address": f"127.0.0.1:{self._data_page}",
            "dfs.datanode.ipc.address": f"127.0.0.1:{self._data_ipc}",
        }

    def _takes_files(self) -> bool:
        if "READY" not in self.name_node.log.read_text(errors="replace"):
            return False
        client = Client(self.url, AT_ONCE)
        try:
            file = client.create("/ready", WriteOptions(overwrite=True))
            file.write(b"x")
            file.close()
            return client.read("/ready").read() == b"x"
        except (OSError, RuntimeError):
            return False


def _started(what: T | None) -> T:
    if what is None:
        raise ServerFailed("hdfs was never started")
    return what
