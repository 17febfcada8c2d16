"""Nodes land from a real broker, and are killed with -9 or stopped at moments that chance decides;
then the lake is compared with the topic, offset by offset.

    a wave of orders ──▶ a node is killed: in the middle of a commit, or at any moment ──▶ started
    again ──▶ … ──▶ everything has landed ──▶ all stop ──▶ compared, audited

The first one is held in the middle of a commit until it is killed there. The seed is printed. It
decides which moments are aimed at afterwards; the rest is up to the machine.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.testing.drama.script import is_nobody_held_up
from tests.e2e.kafka_crews import NODES, SHARDS, Brigade, Ground, Size, brigade_in
from tests.e2e.landing_crews import chance_of_this_run
from tests.servers.kafka import KafkaBroker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]

WAVES = 3
SIZE = Size(wave=5_000, hours=20, lanes=4)
HERE = Ground("./lake", lambda folder: folder / "lake")


@pytest.fixture
def brigade(tmp_path: Path, kafka: KafkaBroker) -> Iterator[Brigade]:
    with brigade_in(tmp_path, kafka, SIZE, HERE) as brigade:
        yield brigade


def test_k17_nodes_killed_with_minus_nine_while_they_land_from_kafka_lose_and_double_nothing(
    brigade: Brigade,
) -> None:
    brigade.land_under_kills(WAVES, chance_of_this_run())

    brigade.check()


def test_k19_a_node_that_is_stopped_in_a_commit_and_wakes_after_another_made_it_doubles_nothing(
    brigade: Brigade,
) -> None:
    brigade.hold.touch()
    for name in NODES:
        brigade.start(name)
    brigade.send()
    paused, shards = brigade.held()
    assert paused.pause(lambda: is_nobody_held_up(brigade.store))
    assert any(0 < done < files for done, files in map(brigade.published, shards))
    brigade.hold.unlink()

    brigade.await_all()  # by the other one
    assert not any(brigade.holder_of(shard) == paused.name for shard in range(SHARDS))
    paused.wake()

    def is_back() -> bool:
        paused.read()
        return paused.state == "running"  # in a new session

    brigade.until(is_back, "it has joined again")
    brigade.send()
    brigade.await_all()
    brigade.stop()

    brigade.check()
