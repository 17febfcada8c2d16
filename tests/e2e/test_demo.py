"""The demo as people start it: it tells its story, proves it, and leaves everything running."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.e2e.test_landing_cli import ENVIRONMENT, HEADGATE, headgate

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

RECORDS = 4_000
WITHIN_S = 300.0
STOP_S = 90.0


@pytest.fixture
def demo(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Its talk and its results in one file."""
    command = [HEADGATE, "demo", "--keep", "--folder", "kept", "--records", str(RECORDS)]
    # A person's own settings must not reach the demo's nodes.
    environment = {**ENVIRONMENT, "HEADGATE_CONFIG": "/nowhere", "COLUMNS": "120"}
    with (tmp_path / "told").open("wb") as told:
        popen = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=told, stderr=subprocess.STDOUT
        )
    try:
        yield popen
    finally:
        popen.kill()
        popen.wait()


def test_the_demo_proves_itself_and_leaves_nodes_and_page_running(
    demo: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    file, folder = tmp_path / "told", tmp_path / "kept"
    ends_s = time.monotonic() + WITHIN_S
    while "nodes and page are still running" not in file.read_text("utf-8"):
        assert demo.poll() is None, file.read_text("utf-8")
        assert time.monotonic() < ends_s, file.read_text("utf-8")
        time.sleep(0.2)
    told = file.read_text("utf-8")

    # What happened
    assert re.search(r"is killed with -9 in the middle of commit .*: \d+ of \d+ files are", told)
    assert "is paused (SIGSTOP)" in told
    assert "found its session closed, and drops all it held" in told
    assert "halted: orders stopped at batch" in told
    assert "$ headgate table retry orders --reason 'the file is back'" in told
    # What is proved
    assert f"proved: each of {RECORDS:,} records is in the lake once" in told
    assert re.search(rf"{RECORDS - RECORDS // 100:,}  records in the folders of their hours", told)
    # What is still there
    (address,) = re.findall(r"^(http://\S+)$", told, re.MULTILINE)
    with urlopen(f"{address}state.json", timeout=30) as answer:
        state = json.load(answer)
    assert {one["name"] for one in state["streams"]} == {"orders", "payments"}
    assert len(state["nodes"]) == 2
    assert headgate(folder, "verify", "--all").returncode == 0

    os.kill(demo.pid, signal.SIGINT)
    assert demo.wait(STOP_S) == 0
    assert headgate(folder, "audit").returncode == 0
    status = json.loads(headgate(folder, "status", "--json").stdout)
    assert (status["members"], status["tables"][0]["state"]) == ([], "running")
