"""Many nodes land records, one seed, everything that can go wrong. A red seed joins seeds.txt."""

from dataclasses import replace
from pathlib import Path

import pytest

from headgate.landing import Output
from headgate.testing.tide import TideScenario, play_tide, tide_of

BLOCKS = 10
SEEDS = 200
SEEDS_IN_SOAK = 5_000
PAST = Path(__file__).parent / "tides.txt"


OUTPUTS = (Output("bids", "id % 2 = 0"), Output("asks", "id % 3 = 0"))  # some of neither


def play_or_fail(seed: int) -> int:
    return judged(seed, tide_of(seed))


def judged(seed: int, scenario: TideScenario) -> int:
    outcome = play_tide(scenario)
    if outcome.is_red:
        words = "\n".join(outcome.violations[:10])
        pytest.fail(f"tide {seed}:\n{words}\nnext: add `{seed}` to {PAST.name}", pytrace=False)
    return outcome.effects


@pytest.mark.parametrize("seed", [int(line.split()[0]) for line in PAST.read_text().splitlines()])
def test_tides_that_were_red_once_stay_green(seed: int) -> None:
    assert play_or_fail(seed) > 0


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_inv1_inv2_inv4_in_every_tide_each_record_lands_once(
    block: int, request: pytest.FixtureRequest
) -> None:
    is_soak = request.config.getoption("--soak") is not None
    size = (SEEDS_IN_SOAK if is_soak else SEEDS) // BLOCKS
    effects = sum(play_or_fail(seed) for seed in range(block * size, (block + 1) * size))
    assert effects > size  # it did something


@pytest.mark.timeout(3_600)
def test_inv1_inv2_with_outputs_each_record_lands_once_in_the_one_that_took_it(
    request: pytest.FixtureRequest,
) -> None:
    is_soak = request.config.getoption("--soak") is not None
    for seed in range((SEEDS_IN_SOAK if is_soak else SEEDS) // BLOCKS):
        assert judged(seed, replace(tide_of(seed), outputs=OUTPUTS)) > 0
