"""A lake whose disk is full or read-only: the shard waits and says why, nothing moves, and with
room again everything is there once.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration import lean_disks, lean_landing

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parent.parent.parent
ACTS = ("full while staging", "full while publishing", "read-only")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """By act. One process of its own: only there can the disk be another one."""
    way, folder = ("mount" if lean_disks.may_mount() else "limits"), tmp_path_factory.mktemp("disk")
    command = [sys.executable, "-m", lean_landing.__name__, str(folder), way]
    if way == "mount":
        command = [*lean_disks._own_mounts(), *command]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-5_000:]
    return {one["act"]: one for one in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("act", ACTS)
def test_inv2_a_disk_that_refuses_is_told_and_no_position_moves(
    told: dict[str, Any], act: str
) -> None:
    one, n = told[act], ACTS.index(act) + 1

    words = ("read-only",) if act == "read-only" else ("not enough room", "No space left")
    assert any(word in " ".join(one["heard"]) for word in words), one["heard"]
    assert one["refused"]["position"] == str(n)
    assert one["refused"]["findings"] == []
    assert (one["refused"]["journal"] is not None) == (act == "full while publishing")


@pytest.mark.parametrize("act", ACTS)
def test_inv2_with_room_again_everything_lands_once(told: dict[str, Any], act: str) -> None:
    one, n = told[act], ACTS.index(act) + 1

    assert one["mended"]["ids"] == list(range(20 * (n + 1)))
    assert one["mended"]["position"] == str(n + 1)
    assert (one["mended"]["journal"], one["mended"]["set_aside"]) == (None, "")
    assert one["mended"]["findings"] == []
