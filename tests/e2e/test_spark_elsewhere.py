"""Landing through a Spark that runs elsewhere: a Connect server, and a standalone cluster."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headgate.engine.footers import values_of
from headgate.periods import escape_name
from tests.servers.process import ChildProcess, wait_until
from tests.servers.spark_servers import ConnectServer, StandaloneCluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

HEADGATE = str(Path(sys.executable).with_name("headgate"))
NAME = 'orders, "50 %" 日本'  # a comma would part two tags of a Connect session
WITHIN_S = 150  # seconds on a machine that has nothing else to do


class Place:
    """A folder with settings, files to land and a lake."""

    def __init__(self, folder: Path, spark: dict[str, Any], name: str) -> None:
        self.folder = folder
        self.name = name
        self.incoming = folder / "incoming"
        self.incoming.mkdir()
        source = {"kind": "files", "path": "./incoming", "lanes": 2, "min_age": "0s"}
        stream = {"source": source, "event_time": {"json": "$.at"}, "shards": 2, "shift": "1s"}
        tree = {
            "namespace": "elsewhere", "store": "file:./state", "lake": "./lake",
            "streams": {name: {**stream, "grace": "0s"}}, "spark": spark,
        }  # fmt: skip
        (folder / "headgate.yaml").write_text(json.dumps(tree))

    def drop(self, name: str, ids: Sequence[int], *more: str) -> None:
        at_ms = time.time_ns() // 1_000_000
        lines = [json.dumps({"id": one, "at": at_ms - one}) for one in ids]
        unfinished = self.incoming / f".{name}"
        unfinished.write_text("".join(f"{line}\n" for line in (*lines, *more)))
        unfinished.rename(self.incoming / name)

    def says(self, *words: str, code: int = 0) -> str:
        told = subprocess.run(
            [HEADGATE, *words],
            capture_output=True, text=True, timeout=150, cwd=self.folder, check=False,
        )  # fmt: skip
        assert told.returncode == code, told.stdout + told.stderr
        return told.stdout

    def waits(self) -> bool:
        told = subprocess.run(
            [HEADGATE, "status"], capture_output=True, text=True, cwd=self.folder, check=False
        )
        return "its session is gone" in told.stdout and told.returncode == 1

    def landed(self, kind: str = "data") -> Counter[Any]:
        """What lies in the lake, as often as it does."""
        name, found = escape_name(self.name), Counter[Any]()
        pattern = f"_dead/{name}/**/*.parquet" if kind == "dead" else f"2*/*/{name}/**/*.parquet"
        for path in (self.folder / "lake").glob(pattern):
            for row in values_of(str(path)):
                if kind == "dead":
                    found[row["_headgate"]["reason"]] += 1
                else:
                    found[json.loads(row["value"])["id"]] += 1
        return found


@pytest.fixture
def connect(tmp_path: Path) -> ConnectServer:
    return ConnectServer(tmp_path / "server")


def test_records_land_once_through_spark_connect_and_a_killed_server_costs_only_time(
    tmp_path: Path, connect: ConnectServer
) -> None:
    with connect:
        place = Place(tmp_path, {"remote": connect.url}, NAME)
        place.drop("a.json", range(300), "{", "")
        place.drop("d.json", range(300, 500))
        command = [HEADGATE, "run", "--config", str(tmp_path / "headgate.yaml")]
        node = ChildProcess("node", command, tmp_path / "node.log")
        node.start()
        try:
            wait_until(lambda: len(place.landed()) == 500, "500 records", WITHIN_S, [node])

            connect.kill()
            place.drop("c.json", range(500, 700))
            wait_until(place.waits, "the shard to say that it waits", WITHIN_S, [node])
            connect.start()
            wait_until(lambda: len(place.landed()) == 700, "700 records", WITHIN_S, [node])
        finally:
            node.stop()

        assert place.landed() == Counter(range(700))
        assert place.landed("dead") == {"bad json": 1}
        assert "clean" in place.says("audit", "--deep")
        assert "Warning" not in (tmp_path / "node.log").read_text()


def test_records_land_once_through_a_standalone_cluster(tmp_path: Path) -> None:
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        conf = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m"}
        place = Place(tmp_path, {"master": cluster.url, "conf": conf}, NAME)
        place.drop("a.json", range(300), "{", "")
        place.drop("d.json", range(300, 500))

        place.says("run", "--until", "idle")

        assert place.landed() == Counter(range(500))
        assert place.landed("dead") == {"bad json": 1}
        assert "clean" in place.says("audit")
        assert cluster.ran()  # by the worker, and not in this process


def test_a_connect_server_that_is_not_there_is_named_and_blames_no_shard(tmp_path: Path) -> None:
    place = Place(tmp_path, {"remote": "sc://127.0.0.1:9"}, "orders")
    place.drop("a.json", range(3))

    place.says("run", "--until", "idle", "--max-seconds", "15", code=1)

    status = place.says("status", code=1)
    assert "Spark at the Connect server does not start" in status
    assert ", 0 set aside, " in status
