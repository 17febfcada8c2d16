"""OpenSearch, and Elasticsearch 7: one node or a cluster, from its jars and a small main of ours.

Where both names exist we say `master`, which OpenSearch still understands and Elasticsearch must.

Measured on two cores, `-Xmx512m`: one node 3 s and 230 MB, three nodes 6 s; a write went through
0.5 s after the manager's kill -9 and 8 s after its pause, heal() took 4 s and 1 s.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from tests.servers.cluster import Cluster
from tests.servers.fetch import fetched
from tests.servers.process import ChildProcess, ServerFailed, free_ports, java, wait_until

ANSWER_WITHIN_S = 3
HEALED_WITHIN_S = 30  # mostly in four
HEALINGS_MAX = 3

# Lost nodes are noticed in about 3 s instead of 30, and found again at once. The disk of a test
# machine may be nearly full, which would forbid writing.
SETTINGS = {
    "cluster.name": "headgate-tests",
    "cluster.fault_detection.follower_check.interval": "500ms",
    "cluster.fault_detection.follower_check.retry_count": "2",
    "cluster.fault_detection.follower_check.timeout": "1500ms",
    "cluster.fault_detection.leader_check.interval": "500ms",
    "cluster.fault_detection.leader_check.retry_count": "2",
    "cluster.fault_detection.leader_check.timeout": "1500ms",
    "cluster.publish.timeout": "3s",
    "cluster.routing.allocation.disk.threshold_enabled": "false",
    "discovery.find_peers_interval": "200ms",
    "http.type": "netty4",
    "network.host": "127.0.0.1",
    "transport.type": "netty4",
}


class OpenSearchCluster(Cluster):
    """Extra settings win over ours. Security is off: plain HTTP, no user.

    A new index has its replicas a second later: create it with `wait_for_active_shards=all`, or
    call heal(), before killing the node that has the only copy.
    """

    product: ClassVar[str] = "opensearch"
    main: ClassVar[str] = "OpenSearchNode"

    def __init__(
        self,
        size: int = 3,
        *,
        heap: str = "512m",
        settings: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        super().__init__(self.product, size, folder)
        self._heap = heap
        self._settings = {**SETTINGS, **(settings or {})}
        self._transports = free_ports(size)

    def manager(self) -> int:
        """Index of the elected cluster manager; waits out an election."""
        return self._leader()

    def ask(self, index: int, path: str) -> Any:
        """The JSON that one node answers to a GET; None when it does not, or refuses."""
        url = f"http://127.0.0.1:{self.ports[index]}/{path}"
        try:
            with urllib.request.urlopen(url, timeout=ANSWER_WITHIN_S) as answer:
                return json.load(answer)
        except (OSError, ValueError):  # refused, too slow, an error code, half an answer
            return None

    def heal(self) -> None:
        """As for every cluster; and every index takes writes again.

        A copy that becomes primary while a new manager takes its office can keep its old term. It
        is called primary, and refuses writes and replicas for ever (OpenSearch's issue 19150).
        Losing its node is what gives the shard a new term.
        """
        for _ in range(HEALINGS_MAX):
            for child in self.children:
                child.resume()
                child.start()
            try:
                wait_until(self._is_whole, f"all of {self.name}", HEALED_WITHIN_S, self.children)
            except ServerFailed:
                for node in self._nodes_of_stuck_primaries():
                    self.restart(node)
            else:
                return
        super().heal()

    def _stuck_indices(self) -> list[str]:
        indices = self.ask(0, "_cat/indices?format=json&h=index")
        if indices is None:
            return ["_all"]  # not even the list of them
        return [row["index"] for row in indices if not self._takes_a_write(row["index"])]

    def _takes_a_write(self, index: str) -> bool:
        """Deleting what is not there goes the way of every write, and changes nothing."""
        url = f"http://127.0.0.1:{self.ports[0]}/{index}/_doc/nobody?timeout=1s"
        try:
            with urllib.request.urlopen(
                urllib.request.Request(url, method="DELETE"), timeout=ANSWER_WITHIN_S
            ):
                return True
        except urllib.error.HTTPError as error:
            error.close()
            return error.code < 500  # 404: the primary looked for it; 403: a block, on purpose
        except OSError:
            return False

    def _nodes_of_stuck_primaries(self) -> set[int]:
        stuck = self._stuck_indices()
        shards = self.ask(0, "_cat/shards?format=json&h=index,prirep,node") or []
        primaries = [row for row in shards if row["prirep"] == "p" and row["index"] in stuck]
        return {int(row["node"].removeprefix("node-")) for row in primaries if row["node"]}

    def _prepare(self, index: int, folder: Path) -> ChildProcess:
        names = [f"node-{other}" for other in range(self.size)]
        home = folder / names[index]
        home.mkdir(parents=True, exist_ok=True)
        settings = {
            **self._settings,
            "node.name": names[index],
            "path.home": str(home),
            "path.data": str(home / "data"),
            "path.logs": str(home / "logs"),
            "http.port": str(self.ports[index]),
            "transport.port": str(self._transports[index]),
        }
        if self.size == 1:
            settings["discovery.type"] = "single-node"
        else:
            seeds = [f"127.0.0.1:{port}" for port in self._transports]
            settings["discovery.seed_hosts"] = ",".join(seeds)
            settings["cluster.initial_master_nodes"] = ",".join(names)
        server = fetched(self.product)
        command = java(
            self._heap,
            [server / "classes", server / "libs" / "*"],
            self.main,
            *(f"{key}={value}" for key, value in settings.items()),
        )
        return ChildProcess(f"{self.product}-{index}", command, home / "server.log")

    def _is_whole(self) -> bool:
        is_settled = all(self._is_settled(index) for index in range(self.size))
        return is_settled and not self._stuck_indices()

    def _is_settled(self, index: int) -> bool:
        """This node sees all others, and no copy of a shard is still on its way."""
        health = self.ask(
            index,
            f"_cluster/health?wait_for_nodes={self.size}&wait_for_status=yellow"
            "&wait_for_no_initializing_shards=true&wait_for_events=languid"
            "&timeout=1s&master_timeout=1s",
        )
        return (
            health is not None
            and not health["timed_out"]
            and health["number_of_nodes"] == self.size
            and health["number_of_in_flight_fetch"] == 0
            and health["delayed_unassigned_shards"] == 0
        )

    def _find_leaders(self) -> list[int]:
        """Whom a majority names: one that was paused names itself until it notices."""
        able = self._able()
        answers = [self.ask(index, "_cat/master?format=json&local=true") for index in able]
        named = [answer[0]["node"] for answer in answers if answer]
        return [index for index in able if named.count(f"node-{index}") > self.size // 2]


class ElasticsearchCluster(OpenSearchCluster):
    """Elasticsearch 7.17. Measured: one node 3 s and 220 MB, three nodes 5 s."""

    product = "elasticsearch"
    main = "ElasticsearchNode"

    def __init__(
        self,
        size: int = 1,
        *,
        heap: str = "512m",
        settings: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        super().__init__(size, heap=heap, settings=settings, folder=folder)
