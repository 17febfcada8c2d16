"""Flags on a real disk, made by processes of their own: time zones and spellings change nothing."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from headgate.ambient import SystemAmbient
from headgate.commits.certificate import FLAG
from headgate.commits.roots import join_root
from headgate.lake import LakeSettings
from headgate.lake.opening import open_lake
from headgate.ready.work import RootWork
from tests.crash.ready_world import Process, World, hour, settings_of

ROOT = Path(__file__).parents[2]
EXPECTED = [
    "2027-01-15/23/_READY",
    "2027-01-15/23/orders/_READY",
    "2027-01-15/23/orders/data/_READY",
    "2027-01-15/_READY",
    "2027-01-16/00/_READY",
    "2027-01-16/00/orders/_READY",
    "2027-01-16/00/orders/data/_READY",
]


def flag_hours(root: str) -> None:
    """The last hour of a day and the first of the next, on a lake of that spelling."""
    world = World(settings_of("orders"))
    join_root(world.store, world.settings.name, "orders")
    world.open("orders", hour(23))
    world.reach("orders", hour(25))
    process = Process(world)
    tools = process.work._tools
    lake = open_lake(LakeSettings(root), SystemAmbient())
    own = type(tools)(tools.store, lake, tools.ledger, tools.ambient, tools.store_ms)
    process.work = RootWork(process.held, world.settings, own)
    process.run()


def flags_in(folder: Path) -> list[str]:
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob(FLAG)
        if not str(path.relative_to(folder)).startswith("_headgate")
    )


def run_flow(root: str, env: Mapping[str, str]) -> None:
    code = f"from {__name__} import flag_hours; flag_hours({root!r})"
    code = code.replace(__name__, "tests.integration.test_ready_local")
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, **env}, check=True)


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns", "Pacific/Kiritimati"])
def test_k9_a_process_in_another_time_zone_raises_the_same_flags(zone: str, tmp_path: Path) -> None:
    run_flow(str(tmp_path / "lake"), {"TZ": zone})
    assert flags_in(tmp_path / "lake") == EXPECTED


@pytest.mark.parametrize("spelling", ["{}", "file:{}", "file://{}", "{}/", "{}/../lake"])
def test_k13_every_spelling_of_the_lake_has_the_same_flags(spelling: str, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    flag_hours(spelling.format(tmp_path / "lake"))
    assert flags_in(tmp_path / "lake") == EXPECTED
