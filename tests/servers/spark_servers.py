"""Spark elsewhere: a Connect server, or a standalone master with workers, from PySpark itself.

Measured on two cores: a Connect server answers after 5 s, a worker is registered after 5 s.
"""

import json
import socket
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import psutil
import pyspark

from tests.servers.process import ChildProcess, free_ports, stop_all, wait_until

READY_WITHIN_S = 120
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
MASTER = "org.apache.spark.deploy.master.Master"
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
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
    """A master, and workers with one core each."""

    def __init__(self, folder: Path, workers: int = 1, memory: str = "1g") -> None:
        port, self._page, *pages = free_ports(2 + workers)
        self.url = f"spark://127.0.0.1:{port}"
        here = ["--host", "127.0.0.1"]
        self.master = _child(
            "spark-master",
            "spark-class",
            [MASTER, *here, "--port", str(port), "--webui-port", str(self._page)],
            folder,
        )
        self.workers = [
            _child(
                f"spark-worker-{n}",
                "spark-class",
                [
                    *(WORKER, *here, "--cores", "1", "--memory", memory),
                    *("--work-dir", str(folder / f"work-{n}"), "--webui-port", str(page), self.url),
                ],
                folder,
            )
            for n, page in enumerate(pages)
        ]

    def ran(self) -> str:
        """What the workers' logs say of executors that they launched."""
        return "\n".join(
            line
            for worker in self.workers
            for line in worker.log.read_text().splitlines()
            if "Asked to launch" in line
        )

    def executors(self, worker: int) -> list[psutil.Process]:
        """Processes of this worker that run tasks."""
        found = []
        for one in psutil.Process(self.workers[worker].pid).children():
            with suppress(psutil.Error):  # it ends just now
                found += [one] if EXECUTOR in one.cmdline() else []
        return found

    def cores_used(self) -> list[int]:
        """Of each application that runs, as the master's page says."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._page}/json/", timeout=5) as answer:
            found = json.load(answer)
        return [int(one["cores"]) for one in found["activeapps"]]

    def start(self) -> None:
        """What is not running."""
        self._await(self.master, "ALIVE")
        for worker in self.workers:
            self._await(worker, "registered with master")

    def _await(self, child: ChildProcess, words: str) -> None:
        if child.is_running:
            return
        told = child.log.stat().st_size if child.log.exists() else 0
        child.start()
        wait_until(
            lambda: words in child.log.read_text()[told:],
            f"{child.name}: {words}",
            READY_WITHIN_S,
            [child],
        )

    def __enter__(self) -> "StandaloneCluster":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        stop_all([*self.workers, self.master])


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
