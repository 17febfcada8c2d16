"""Many nodes, one seed, everything that can go wrong. A red seed says why and joins seeds.txt."""

import re
from pathlib import Path

import pytest

from headgate.testing.fleet import play
from headgate.testing.inquest import explain
from headgate.testing.turmoil import scenario_of

BLOCKS = 20
SEEDS = 200
SEEDS_IN_SOAK = 10_000
PAST = Path(__file__).parent / "seeds.txt"


def seeds_of_the_past() -> list[int]:
    lines = PAST.read_text("utf-8").splitlines()
    return [int(found[1]) for line in lines if (found := re.match(r"(\d+)", line))]


def play_or_explain(seed: int) -> int:
    scenario = scenario_of(seed)
    outcome = play(scenario)
    if outcome.is_red:
        pytest.fail(f"{explain(scenario)}\nnext: add `{seed}` to {PAST.name}", pytrace=False)
    return outcome.effects


@pytest.mark.parametrize("seed", seeds_of_the_past())
def test_seeds_that_were_red_once_stay_green(seed: int) -> None:
    assert play_or_explain(seed) > 0


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_inv3_inv10_turmoil_does_nothing_twice_and_leaves_nothing_undone(
    block: int, request: pytest.FixtureRequest
) -> None:
    is_soak = request.config.getoption("--soak") is not None
    size = (SEEDS_IN_SOAK if is_soak else SEEDS) // BLOCKS
    effects = sum(play_or_explain(seed) for seed in range(block * size, (block + 1) * size))
    assert effects > size  # it did something
