"""ZooKeeper: one server or an ensemble, from the jars inside PySpark.

Measured on two cores, `-Xmx128m`: one server 1 s and 120 MB, three 2.5 s and 130 MB each; a write
went through 0.5 to 1 s after the leader's kill -9 and 4 s after its pause, heal() took 1 s.
"""

import re
import socket
from collections.abc import Sequence
from pathlib import Path

import pyspark

from tests.servers.cluster import Cluster
from tests.servers.process import ChildProcess, free_ports, java

ANSWER_WITHIN_S = 1
SERVER = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

# A tick of 500 ms lets sessions end between 1 and 10 s, and a lost leader be noticed in 2.
CONFIG = """\
tickTime=500
initLimit=20
syncLimit=4
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=srvr,mntr,ruok
quorumListenOnAllIPs=false
"""


class ZooKeeperEnsemble(Cluster):
    """Extra lines of zoo.cfg come last and win, e.g. `maxSessionTimeout=60000`."""

    def __init__(
        self,
        size: int = 3,
        *,
        heap: str = "128m",
        config: Sequence[str] = (),
        folder: Path | None = None,
    ) -> None:
        super().__init__("zookeeper", size, folder)
        self._heap = heap
        self._config = config
        peers = zip(free_ports(size), free_ports(size), strict=True)
        self._peers = [f"127.0.0.1:{follow}:{elect}" for follow, elect in peers]

    def leader(self) -> int:
        """Index of the leading (or only) server; waits out an election."""
        return self._leader()

    def mode(self, index: int) -> str:
        """leader, follower, standalone; empty while it does not serve."""
        found = re.search(r"^Mode: (\w+)$", self.ask(index, "srvr"), re.MULTILINE)
        return found[1] if found else ""

    def ask(self, index: int, word: str) -> str:
        """The answer to a four-letter word; empty when nobody answers."""
        address = ("127.0.0.1", self.ports[index])
        try:
            with socket.create_connection(address, timeout=ANSWER_WITHIN_S) as connection:
                connection.sendall(word.encode())
                with connection.makefile("rb") as answer:
                    return answer.read().decode()
        except OSError:
            return ""

    def _prepare(self, index: int, folder: Path) -> ChildProcess:
        home = folder / f"server-{index}"
        data = home / "data"
        data.mkdir(parents=True, exist_ok=True)
        (data / "myid").write_text(f"{index + 1}\n")
        config = home / "zoo.cfg"
        lines = [
            f"dataDir={data}",
            f"clientPortAddress=127.0.0.1\nclientPort={self.ports[index]}",
            *(f"server.{i}={peer}" for i, peer in enumerate(self._peers, 1) if self.size > 1),
            *self._config,
        ]
        config.write_text(CONFIG + "\n".join(lines) + "\n")
        jars = Path(pyspark.__file__).parent / "jars"
        command = java(self._heap, [jars / "*"], SERVER, str(config))
        return ChildProcess(f"zookeeper-{index}", command, home / "server.log")

    def _is_whole(self) -> bool:
        modes = [self.mode(index) for index in range(self.size)]
        if self.size == 1:
            return modes == ["standalone"]
        if sorted(modes) != [*["follower"] * (self.size - 1), "leader"]:
            return False
        # A server that was paused says follower until it notices that the leader dropped it.
        state = self.ask(modes.index("leader"), "mntr")
        return f"zk_synced_followers\t{self.size - 1}\n" in state

    def _find_leaders(self) -> list[int]:
        return [index for index in self._able() if self.mode(index) in ("leader", "standalone")]
