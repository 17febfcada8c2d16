"""Two nodes land orders and are killed with -9 at moments that chance decides; then the count.

    a wave of orders ──▶ a node is killed: in the middle of a commit, or at any moment ──▶ started
    again ──▶ … ──▶ everything has landed ──▶ both stop ──▶ counted in the lake, audited

The first one is held in the middle of a commit until it is killed there. The seed is printed. It
decides which moments are aimed at afterwards; the rest is up to the machine.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from headgate.ambient import SystemAmbient
from headgate.audit.inspection import audit
from headgate.lake.opening import open_lake
from headgate.periods import HOUR_MS
from headgate.settings.loading import load
from headgate.store.registry import open_store
from headgate.testing.drama.headcount import count_lake
from headgate.testing.drama.home import JAVA
from headgate.testing.drama.orders import SPOILED, Wave, drop
from tests.e2e.landing_crews import HELD, LandingCrew, chance_of_this_run

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

WAVES = 3
WAVE = 10_000  # records
HOURS = 20  # over which they are spread: so many files has a commit
SHARDS = 2
NODES = ("red", "blue")
STREAM = "заказы 注文"  # a name as people write it, also through journals and crashes
INCOMING = "приём/受注"
SETTINGS = f"""\
namespace: kill
store: file:./state
lake: ./lake
streams:
  {STREAM}:
    source: {{kind: files, path: ./{INCOMING}, format: json, lanes: 4}}
    event_time: {{json: $.at, unit: ms}}
    shards: {SHARDS}
    shift: 1s
    grace: 0s
    allowed_lateness: {3 * HOURS}h
spark:
  master: "local[1]"
  conf: {{spark.driver.memory: 512m, spark.driver.extraJavaOptions: "{JAVA}"}}
"""


@contextmanager
def crew_in(folder: Path) -> Iterator[LandingCrew]:
    (folder / INCOMING).mkdir(parents=True)
    (folder / "headgate.yaml").write_text(SETTINGS)
    settings = load(folder / "headgate.yaml", {})
    with (
        closing(open_store(settings.store, settings.namespace)) as store,
        closing(
            LandingCrew(
                folder,
                store,
                [*HELD, str(folder / "hold")],
                lake=open_lake(settings.lake, SystemAmbient()),
                stream=STREAM,
                shards=SHARDS,
            )
        ) as crew,
    ):
        yield crew


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LandingCrew]:
    with crew_in(tmp_path) as crew:
        yield crew


def test_k17_k23_g6_nodes_killed_with_minus_nine_while_they_land_lose_and_double_nothing(
    fleet: LandingCrew,
) -> None:
    chance = chance_of_this_run()
    now_ms = SystemAmbient().wall_ns() // 1_000_000
    fleet.hold.touch()
    for name in NODES:
        fleet.start(name)

    for wave in range(WAVES):
        before = wave * WAVE
        ids, spoiled = range(before, before + WAVE), SPOILED if wave == 0 else ()
        records = Wave(f"orders-{wave}", ids, 8, now_ms - HOURS * HOUR_MS, now_ms, spoiled)
        drop(fleet.folder / INCOMING, records, chance.randrange(10**6))
        fleet.start(fleet.kill_one(wave, before + WAVE, chance))
    wanted = WAVES * WAVE + len(SPOILED)
    fleet.until(lambda: fleet.rows >= wanted, "everything has landed")
    fleet.stop()

    settings = load(fleet.folder / "headgate.yaml", {})
    folder, ids = settings.streams[STREAM].folder, range(WAVES * WAVE)
    found = count_lake(fleet.folder / "lake", folder, STREAM, ids)
    assert (found.missing, found.doubled, found.astray) == ([], [], [])
    assert (found.hours.total() + found.late, found.dead) == (WAVES * WAVE, len(SPOILED))
    assert fleet.rows == wanted
    assert audit(fleet.store, fleet.lake, settings.streams, is_deep=True).findings == ()
