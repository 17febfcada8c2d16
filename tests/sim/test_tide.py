"""Many nodes land records, one seed, everything that can go wrong. A red seed joins seeds.txt."""

from pathlib import Path

import pytest

from headgate.testing.tide import play_tide, tide_of

BLOCKS = 10
SEEDS = 200
SEEDS_IN_SOAK = 5_000
PAST = Path(__file__).parent / "tides.txt"


def play_or_fail(seed: int) -> int:
    outcome = play_tide(tide_of(seed))
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
