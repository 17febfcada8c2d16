"""Spark elsewhere: a Connect server, or a standalone master with a worker, from PySpark itself.

Measured on two cores: a Connect server answers after 5 s, a worker is registered after 5 s.
"""

import socket
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import pyspark

from tests.servers.process import ChildProcess, free_ports, stop_all, wait_until

READY_WITHIN_S = 120
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"


class ConnectServer:
    """Its jobs run in the server's own process."""

    def __init__(self, folder: Path) -> None:
        (self._port,) = free_ports(1)
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.ui.enabled": "false",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
        }
        told = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
        command = ["--class", CONNECT, "--master", "local[2]", *told, "spark-internal"]
        self._child = _child("spark-connect", "spark-submit", command, folder)

    @property
    def url(self) -> str:
        return f"sc://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._child.start()
        wait_until(lambda: _answers(self._port), "Spark Connect", READY_WITHIN_S, [self._child])

    def kill(self) -> None:
        self._child.kill()

    def __enter__(self) -> "ConnectServer":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._child.stop()


class StandaloneCluster:
    """A master and one worker with one core."""

    def __init__(self, folder: Path) -> None:
        port, page, worker_page = free_ports(3)
        self.url = f"spark://127.0.0.1:{port}"
        here = ["--host", "127.0.0.1"]
        self._master = _child(
            "spark-master",
            "spark-class",
            [MASTER, *here, "--port", str(port), "--webui-port", str(page)],
            folder,
        )
        room = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work")]
        self._worker = _child(
            "spark-worker",
            "spark-class",
            [WORKER, *here, *room, "--webui-port", str(worker_page), self.url],
            folder,
        )

    def ran(self) -> str:
        """What the worker's log says of executors that it launched."""
        return "\n".join(
            line for line in self._worker.log.read_text().splitlines() if "Asked to launch" in line
        )

    def __enter__(self) -> "StandaloneCluster":
        for child, words in ((self._master, "ALIVE"), (self._worker, "registered with master")):
            child.start()
            wait_until(
                lambda child=child, words=words: words in child.log.read_text(),  # type: ignore[misc] # bound now
                f"{child.name}: {words}",
                READY_WITHIN_S,
                [child],
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        stop_all([self._worker, self._master])


def _child(name: str, program: str, arguments: Sequence[str], folder: Path) -> ChildProcess:
    folder.mkdir(parents=True, exist_ok=True)
    command = str(Path(pyspark.__file__).parent / "bin" / program)
    environment = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(folder / "local")}
    return ChildProcess(name, [command, *arguments], folder / f"{name}.log", environment)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
