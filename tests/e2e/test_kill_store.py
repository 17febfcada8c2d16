"""A store that is lost in mid-shift: nodes killed with -9, its folder deleted, made anew; then on.

a wave ──▶ two nodes land; one is held in the middle of a commit ──▶ both are killed with -9
──▶ rm -rf of the store ──▶ headgate store rebuild ──▶ another wave, a node ──▶ counted
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headgate.ambient import SystemAmbient
from headgate.audit.inspection import audit
from headgate.periods import HOUR_MS
from headgate.settings.loading import load
from headgate.store.registry import open_store
from headgate.testing.drama.headcount import count_lake
from headgate.testing.drama.orders import SPOILED, Wave, drop
from tests.e2e.landing_crews import LandingCrew
from tests.e2e.test_kill_landing import HOURS, INCOMING, NODES, STREAM, crew_in

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

WAVE = 5_000  # records


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LandingCrew]:
    with crew_in(tmp_path) as crew:
        yield crew


def rebuild(folder: Path) -> subprocess.CompletedProcess[str]:
    headgate = Path(sys.executable).with_name("headgate")
    return subprocess.run(
        [str(headgate), "store", "rebuild", "--reason", "the disk is gone"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_store_lost_in_mid_shift_with_its_nodes_is_made_anew_and_counts_are_exact(
    fleet: LandingCrew,
) -> None:
    now_ms = SystemAmbient().wall_ns() // 1_000_000
    incoming, first_ms = fleet.folder / INCOMING, now_ms - HOURS * HOUR_MS
    fleet.hold.touch()
    for name in NODES:
        fleet.start(name)
    drop(incoming, Wave("orders-0", range(WAVE), 8, first_ms, now_ms, SPOILED), 1)
    killed = fleet.kill_the_held()
    (other,) = set(NODES) - {killed}
    fleet.kill(other)

    shutil.rmtree(fleet.folder / "state")
    done = rebuild(fleet.folder)
    assert done.returncode == 0, done.stderr
    assert "its last commit was cut in half" in done.stdout
    assert "the audit is clean" in done.stdout
    again = rebuild(fleet.folder)
    assert (again.returncode, "the store is not empty" in again.stderr) == (1, True)

    settings = load(fleet.folder / "headgate.yaml", {})
    with closing(open_store(settings.store, settings.namespace)) as store:
        fleet.store = store
        drop(incoming, Wave("orders-1", range(WAVE, 2 * WAVE), 8, first_ms, now_ms), 2)
        fleet.start(killed)
        wanted = 2 * WAVE + len(SPOILED)
        fleet.until(lambda: fleet.rows >= wanted, "everything has landed")
        fleet.stop()
        found = count_lake(
            fleet.folder / "lake", settings.streams[STREAM].folder, STREAM, range(2 * WAVE)
        )
        assert (found.missing, found.doubled, found.astray) == ([], [], [])
        assert (found.hours.total() + found.late, found.dead) == (2 * WAVE, len(SPOILED))
        assert fleet.rows == wanted
        assert audit(store, fleet.lake, settings.streams, is_deep=True).findings == ()
