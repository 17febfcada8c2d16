"""Files land on HDFS: Spark writes there by itself, flags are raised, verify and audit agree.

One installation lands once for real; its table lies on local disk. Whoever damages something puts
it back.
"""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hdfs_native import Client, WriteOptions

from headgate.periods import HOUR_MS, Period
from tests.e2e.far_letters import check_redriving, spoiled
from tests.e2e.test_landing_cli import headgate
from tests.servers.hdfs import AT_ONCE, HdfsCluster

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.timeout(600)]

ROWS, HOURS = 60, 3


@dataclass(frozen=True)
class Installation:
    folder: Path
    cluster: HdfsCluster
    root: str  # on the server
    first: Period
    run: dict[str, Any]

    def contents(self) -> dict[str, bytes]:
        return dict(self.cluster.contents(self.root))

    def put(self, path: str, content: bytes) -> None:
        file = Client(self.cluster.url, AT_ONCE).create(
            f"{self.root}/{path}", WriteOptions(overwrite=True)
        )
        file.write(content)
        file.close()

    def ask(self, *arguments: str) -> Any:
        return headgate(self.folder, *arguments)


@pytest.fixture(scope="module")
def landed(hdfs: HdfsCluster, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder, root = tmp_path_factory.mktemp("hdfs"), f"/{os.urandom(4).hex()}/the-lake"
    stream = {
        "event_time": {"json": "$.at", "unit": "ms"},
        "shift": "5s",
        "grace": "1s",
    }
    settings = {
        "store": "file:./state",
        "lake": {"root": f"{hdfs.url}{root}", "file_mode": "0640", "group": "lakers"},
        "streams": {
            "orders": {
                **stream,
                "source": {"kind": "files", "path": "./incoming"},
                "merge": True,
            },
            "lines": {
                **stream,
                "source": {"kind": "files", "path": "./texts"},
                "land_as": "json",
            },
        },
        "tables": {
            "orders": {"kind": "parquet", "path": "./tables/o", "feed": {"stream": "orders"}}
        },
        "spark": {"master": "local[2]"},
    }
    (folder / "headgate.yaml").write_text(json.dumps(settings), "utf-8")
    now = Period.hour_of(int(time.time() * 1000))
    first = Period(now.start_ms - (HOURS + 1) * HOUR_MS, "hour")
    moments = [first.start_ms + n * HOURS * HOUR_MS // ROWS for n in range(ROWS)]
    lines = [json.dumps({"id": n, "at": at_ms}) for n, at_ms in enumerate(moments)]
    for name in ("incoming", "texts"):
        (folder / name).mkdir()
        (folder / name / "a.json").write_text("\n".join(lines), "utf-8")
        (folder / name / "bad.json").write_text(spoiled(now.start_ms), "utf-8")
    place = Installation(folder, hdfs, root, first, {})
    done = place.ask("run", "--until", "idle", "--json")
    assert done.returncode == 0, done.stderr
    return Installation(folder, hdfs, root, first, json.loads(done.stdout))


def test_every_record_is_on_hdfs_once_and_every_hour_has_its_flags(landed: Installation) -> None:
    files = landed.contents()
    by_stream = {one["name"]: one for one in landed.run["streams"]}
    assert by_stream["orders"]["landed"] == ROWS
    for number in range(HOURS):
        hour = str(Period(landed.first.start_ms + number * HOUR_MS, "hour")).replace("T", "/")
        for stream in ("orders", "lines"):
            above = f"{hour}/{stream}"
            assert files[f"{above}/_READY"] == files[f"{above}/data/_READY"]
        assert f"{hour}/_READY" in files
    lines = [
        json.loads(line)
        for path, content in files.items()
        if "/lines/data/" in path and not path.endswith("_READY")
        for line in content.splitlines()
    ]
    assert sorted(line["id"] for line in lines) == list(range(ROWS))


def test_what_was_published_has_its_mode_and_group_and_nothing_is_left_in_staging(
    landed: Installation,
) -> None:
    client = Client(landed.cluster.url, AT_ONCE)
    found = [one for one in client.list_status(landed.root, True) if not one.isdir]
    staged = [one.path for one in found if "/_headgate/staging/" in one.path]
    assert staged == []
    assert {(one.permission, one.group) for one in found} == {(0o640, "lakers")}


@pytest.mark.parametrize("command", [("verify", "--all"), ("audit",), ("status",)])
def test_who_only_looks_finds_all_in_order(landed: Installation, command: tuple[str, ...]) -> None:
    done = landed.ask(*command)
    assert done.returncode == 0, done.stdout + done.stderr


def test_verify_and_audit_find_a_file_that_somebody_changed(landed: Installation) -> None:
    files = landed.contents()
    path = next(one for one in files if "/orders/data/" in one and "_READY" not in one)
    landed.put(path, b"PAR1 no more")
    try:
        found = [landed.ask(*one) for one in (("verify", "--all"), ("audit",))]
    finally:
        landed.put(path, files[path])
    assert [one.returncode for one in found] == [1, 1]
    assert all(path in one.stdout for one in found)


def test_a_name_node_that_is_away_is_told_with_the_next_command(landed: Installation) -> None:
    landed.cluster.name_node.kill()
    try:
        done = landed.ask("verify", "--all")
    finally:
        landed.cluster.start()
    assert done.returncode == 3, done.stdout + done.stderr
    assert "HDFS did not answer" in done.stderr
    assert "next: try again, or hdfs dfs -ls hdfs://" in done.stderr


def test_doctor_finds_the_lake_safe(landed: Installation) -> None:
    done = landed.ask("doctor", "lake", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["is_safe"]
    staged = [path for path in landed.contents() if path.startswith("_headgate/staging/")]
    assert staged == []


def test_dead_letters_are_driven_in_again_from_hdfs(landed: Installation) -> None:
    check_redriving(landed.folder, landed.ask, landed.contents)
