"""Landing through a Spark that runs elsewhere: a Connect server, and a standalone cluster."""

import json
import re
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
from tests.kafka.topics import Sent, new_topic, produce
from tests.servers.kafka import KafkaBroker
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

    def node(self, *words: str, log: str = "node") -> ChildProcess:
        command = [HEADGATE, *words, "--config", str(self.folder / "headgate.yaml")]
        return ChildProcess(log, command, self.folder / f"{log}.log")

    def is_writing(self) -> bool:
        """A task of the job under way has begun to write its share."""
        return any((self.folder / "lake/_headgate/staging").rglob("_temporary/**/*.parquet"))

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
        node = place.node("run")
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


def many(place: "Place", files: int = 8, lines: int = 25_000) -> int:
    """Enough to do for a while: how many."""
    for n in range(files):
        place.drop(f"{n}.json", range(n * lines, (n + 1) * lines))
    return files * lines


def of_cluster(cluster: StandaloneCluster, **conf: str) -> dict[str, Any]:
    own = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m"}
    return {"master": cluster.url, "conf": {**own, **conf}}


def check_landed(place: Place, count: int) -> None:
    assert place.landed() == Counter(range(count))
    assert "clean" in place.says("audit", "--deep")


@pytest.mark.parametrize("loss", ["executor", "worker"])
def test_an_executor_or_a_worker_that_is_lost_in_a_job_costs_only_time(
    tmp_path: Path, loss: str
) -> None:
    with StandaloneCluster(tmp_path / "cluster", workers=2) as cluster:
        place = Place(tmp_path, of_cluster(cluster), "orders")
        count = many(place)
        node = place.node("run", "--until", "idle")
        node.start()
        try:
            wait_until(place.is_writing, "a task that writes", WITHIN_S, [node])
            if loss == "worker":
                cluster.workers[0].kill()
            else:
                (lost,) = cluster.executors(0)  # a worker has one core
                lost.kill()
            wait_until(lambda: not node.is_running, "the node to be idle", 2 * WITHIN_S)
        finally:
            node.stop()
        check_landed(place, count)
        if loss == "executor":
            assert len(cluster.ran().splitlines()) > 2, "another one came"


def test_a_master_that_forgot_its_applications_costs_only_time(tmp_path: Path) -> None:
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        place = Place(tmp_path, {**of_cluster(cluster), "stall_after": "20s"}, "orders")
        place.drop("a.json", range(300))
        node = place.node("run")
        node.start()
        try:
            wait_until(lambda: len(place.landed()) == 300, "300 records", WITHIN_S, [node])

            cluster.master.kill()
            cluster.start()  # without its state
            wait_until(
                lambda: not cluster.executors(0), "executors that nobody knows to end", WITHIN_S
            )
            place.drop("b.json", range(300, 500))
            stalled = "no task of its jobs ran for 20"
            wait_until(lambda: stalled in node.log.read_text(), "the stall", WITHIN_S, [node])
            wait_until(lambda: len(place.landed()) == 500, "500 records", WITHIN_S, [node])
        finally:
            node.stop()
        check_landed(place, 500)
        assert " task.failed " not in node.log.read_text(), "no shard is blamed"


def test_tasks_that_run_twice_to_be_sooner_land_once(tmp_path: Path) -> None:
    conf = {
        "spark.speculation": "true",
        "spark.speculation.interval": "20ms",
        "spark.speculation.minTaskRuntime": "1ms",
        "spark.speculation.multiplier": "1.01",
        "spark.speculation.quantile": "0.1",
    }
    with StandaloneCluster(tmp_path / "cluster", workers=2) as cluster:
        place = Place(tmp_path, of_cluster(cluster, **conf), "orders")
        count = many(place)
        place.says("run", "--until", "idle")
        check_landed(place, count)


def test_nodes_share_a_cluster_and_each_lands_at_the_same_time(tmp_path: Path) -> None:
    """An application each, of which none takes more than its share."""
    with StandaloneCluster(tmp_path / "cluster", workers=2) as cluster:
        place = Place(tmp_path, of_cluster(cluster, **{"spark.cores.max": "1"}), "orders")
        count = many(place)
        nodes = [place.node("run", "--name", name, log=name) for name in ("first", "second")]
        for node in nodes:
            node.start()
        try:
            wait_until(lambda: cluster.cores_used() == [1, 1], "two applications", WITHIN_S, nodes)
            wait_until(lambda: len(place.landed()) == count, "all", 2 * WITHIN_S, nodes)
        finally:
            for node in nodes:
                node.stop()
        check_landed(place, count)


@pytest.mark.kafka
def test_jars_come_from_a_folder_where_no_repository_can_be_reached(
    tmp_path: Path, kafka: KafkaBroker
) -> None:
    topic = new_topic(kafka)
    produce(kafka, topic, [Sent(f'{{"at": {time.time_ns() // 1_000_000}}}'.encode())] * 20)
    source = {"kind": "kafka", "brokers": kafka.address, "topic": topic}
    stream = {"source": source, "event_time": {"json": "$.at"}}
    tree = {"store": "file:./state", "lake": "./lake", "streams": {"orders": stream}}

    def run(folder: Path, spark: dict[str, Any]) -> str:
        folder.mkdir()
        (folder / "headgate.yaml").write_text(json.dumps({**tree, "spark": spark}))
        words = [HEADGATE, "run", "--until", "idle", "--max-seconds", "60"]
        told = subprocess.run(
            words, capture_output=True, text=True, timeout=150, cwd=folder, check=False
        )
        return told.stdout + told.stderr

    fetched = tmp_path / "ivy"  # as on a machine that reaches one
    assert "20" in run(tmp_path / "first", {"conf": {"spark.jars.ivy": str(fetched)}})
    fetched.joinpath("jars").rename(tmp_path / "jars")
    nothing = tmp_path / "no-repository.xml"
    nothing.write_text("<ivysettings><settings/></ivysettings>")
    conf = {"spark.jars.ivySettings": str(nothing)}

    assert "does not start" in run(tmp_path / "second", {"conf": conf})
    told = run(tmp_path / "third", {"conf": conf, "packages": ["../jars"]})
    assert re.search(r"orders\s+20\s", told), told


def test_records_land_once_through_a_standalone_cluster(tmp_path: Path) -> None:
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        place = Place(tmp_path, of_cluster(cluster), NAME)
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
