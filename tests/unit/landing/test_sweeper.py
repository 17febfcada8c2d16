"""What the sweeper takes, and what it leaves alone."""

from collections.abc import Collection

import pytest

from headgate.commits.checkpoint import Checkpoint, Journal
from headgate.lake.memory import MemoryLake
from headgate.lake.paths import REMOVING, STAGING, removing_path
from headgate.landing import sweeper
from headgate.landing.sweeper import is_sweepable, sweep
from tests.crash.landing_flows import Land, LandInRounds, Recover, Restage
from tests.crash.landing_world import land, land_while_it_is_swept, world_of

ROOT = f"{STAGING}/orders"
ID = "a" * 32


def journal_in(folder: str) -> Journal:
    return Journal(1, 1, folder, f"{folder}/record.json", 1, "sha256:0", {}, {}, {}, (), 0)


@pytest.mark.parametrize(
    ("epoch", "is_journaled", "is_needed", "is_taken"),
    [
        (4, False, False, True),
        (4, False, True, True),  # of an epoch that is over
        (5, False, False, True),
        (5, False, True, False),
        (6, False, False, False),
        (4, True, False, False),
        (5, True, False, False),
    ],
)
def test_g12_only_what_no_journal_names_and_nobody_needs_is_taken(
    epoch: int, is_journaled: bool, is_needed: bool, is_taken: bool
) -> None:
    attempt = f"{ROOT}/{ID}.0-{epoch}"
    journal = journal_in(f"{attempt}/shard=0-{epoch}") if is_journaled else None
    checkpoint = Checkpoint(epoch=5, journal=journal)
    assert is_sweepable(checkpoint, attempt, 0, epoch, lambda *_: is_needed) == is_taken


def lake_with(*paths: str) -> MemoryLake:
    lake = MemoryLake()
    for path in paths:
        lake.put(f"{ROOT}/{path}", b"")
    return lake


def left_in(lake: MemoryLake) -> list[str]:
    return [path.removeprefix(f"{ROOT}/") for path in lake.files()]


def run(
    lake: MemoryLake,
    checkpoint: Checkpoint,
    epochs: dict[int, int] | None = None,
    needed: Collection[str] = (),
) -> int:
    return sweep(
        lake, "orders", 0, checkpoint, (epochs or {}).get, lambda _, label: label in needed
    )


def test_what_is_not_ours_is_left_alone() -> None:
    lake = lake_with("notes.txt", "someone/f", f"{ID}.0-1", f"{ID}/f", f"{ID}.1-1/shard=1-1/f")
    before = left_in(lake)
    assert run(lake, Checkpoint(epoch=5)) == 0
    assert left_in(lake) == before


def test_an_own_old_attempt_goes_with_all_that_the_job_left() -> None:
    lake = lake_with(f"{ID}.0-1/shard=0-1/f", f"{ID}.0-1/_temporary/f")
    assert run(lake, Checkpoint(epoch=5)) == 1
    assert left_in(lake) == []


def test_of_a_shared_attempt_only_the_own_part_goes() -> None:
    lake = lake_with(f"{ID}.0-1.1-1/shard=0-1/f", f"{ID}.0-1.1-1/shard=1-1/f")
    run(lake, Checkpoint(epoch=5), {1: 9})
    assert left_in(lake) == [f"{ID}.0-1.1-1/shard=1-1/f"]


@pytest.mark.parametrize(("other", "is_gone"), [(2, True), (1, False), (None, False)])
def test_what_a_shared_job_left_goes_once_all_its_shards_have_other_holders(
    other: int | None, is_gone: bool
) -> None:
    lake = lake_with(f"{ID}.0-1.1-1/_temporary/f")
    run(lake, Checkpoint(epoch=5), {} if other is None else {1: other})
    assert (left_in(lake) == []) == is_gone


def test_a_listing_is_followed_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    class Paged(MemoryLake):
        def list(self, folder: str, *, after: str = "", limit: int = 3):  # type: ignore[no-untyped-def]
            return super().list(folder, after=after, limit=limit)

    lake = Paged()
    for number in range(10):
        lake.put(f"{ROOT}/{number:032x}.0-1/shard=0-1/f", b"")
    assert run(lake, Checkpoint(epoch=5)) == 10
    assert left_in(lake) == []

    monkeypatch.setattr(sweeper, "PAGES_MAX", 2)
    for number in range(10):
        lake.put(f"{ROOT}/{number:032x}.0-1/shard=0-1/f", b"")
    assert run(lake, Checkpoint(epoch=5)) == 6  # the next sweep goes on


@pytest.mark.parametrize("flow", [Land(), LandInRounds(), Recover(), Restage()], ids=str)
def test_g12_a_sweep_between_all_steps_takes_nothing_that_is_needed(flow: Land) -> None:
    world = flow.fresh()
    land_while_it_is_swept(world)
    state = flow.state(world)
    assert (state["faults"], state["audit"], state["journals"]) == ([], (), [None])


def test_g12_of_the_own_epoch_goes_what_nobody_needs() -> None:
    lake = lake_with(f"{ID}.0-5/shard=0-5/f", f"{ID}.0-5/_temporary/f")
    assert run(lake, Checkpoint(epoch=5), needed={"0-5"}) == 0
    assert len(left_in(lake)) == 2
    assert run(lake, Checkpoint(epoch=5)) == 1
    assert left_in(lake) == []


@pytest.mark.parametrize("needed", [set[str](), {"1-9"}], ids=["nobody", "the other"])
def test_what_a_shared_job_of_this_node_left_goes_once_nobody_here_needs_it(
    needed: set[str],
) -> None:
    lake = lake_with(f"{ID}.0-5.1-9/_temporary/f", f"{ID}.0-5.1-9/shard=0-5/f")
    run(lake, Checkpoint(epoch=5), {1: 9}, needed)
    assert (left_in(lake) == []) == (not needed)


def test_what_another_shard_may_have_journaled_stays_though_nobody_here_needs_it() -> None:
    lake = lake_with(f"{ID}.0-5.1-9/shard=1-9/record.json", f"{ID}.0-5.1-9/shard=0-5/f")
    run(lake, Checkpoint(epoch=5), {1: 9})
    assert left_in(lake) == [f"{ID}.0-5.1-9/shard=1-9/record.json"]


def test_another_nodes_job_is_not_judged_by_what_this_node_needs() -> None:
    """Its label of this shard is older: another node may be running it for the other one."""
    lake = lake_with(f"{ID}.0-4.1-9/_temporary/f")
    run(lake, Checkpoint(epoch=5), {1: 9})
    assert left_in(lake) == [f"{ID}.0-4.1-9/_temporary/f"]


def test_a_holder_sweeps_what_somebody_did_not_finish_to_remove() -> None:
    world = world_of()
    facts = world.lake.stage("elsewhere", b"to be removed")
    path = removing_path("f" * 32, facts)
    world.lake.publish("elsewhere", path)
    world.lake.put(f"{REMOVING}/somebodys", b"to be removed")
    world.drop("lane-0", world.now_ms)

    land(world)

    assert path not in world.lake.files()
    assert f"{REMOVING}/somebodys" in world.lake.files()
