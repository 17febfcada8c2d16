"""Everything at once, one seed, persons too. A red seed says why and joins watersheds.txt."""

import re
from pathlib import Path

import pytest

from headgate.testing.inquest import explain_watershed
from headgate.testing.simulation import tell
from headgate.testing.watershed import play_watershed
from headgate.testing.weather import watershed_of

BLOCKS = 10
SEEDS = 100
SEEDS_IN_SOAK = 3_000
PAST = Path(__file__).parent / "watersheds.txt"


def seeds_of_the_past() -> list[int]:
    lines = PAST.read_text("utf-8").splitlines()
    return [int(found[1]) for line in lines if (found := re.match(r"(\d+)", line))]


def play_or_explain(seed: int) -> int:
    scenario = watershed_of(seed)
    outcome = play_watershed(scenario)
    if outcome.is_red:
        words = explain_watershed(scenario)
        pytest.fail(f"{words}\nnext: add `{seed}` to {PAST.name}", pytrace=False)
    return outcome.effects


@pytest.mark.parametrize("seed", seeds_of_the_past())
def test_watersheds_that_were_red_once_stay_green(seed: int) -> None:
    assert play_or_explain(seed) > 0


def test_a_watershed_replays() -> None:
    first, again = (play_watershed(watershed_of(4), with_events=True) for _ in range(2))
    assert tell(first.events) == tell(again.events)
    assert first.finished_ms == again.finished_ms


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_inv6_inv7_inv8_inv9_in_every_watershed_all_land_once_are_flagged_and_applied(
    block: int, request: pytest.FixtureRequest
) -> None:
    is_soak = request.config.getoption("--soak") is not None
    size = (SEEDS_IN_SOAK if is_soak else SEEDS) // BLOCKS
    effects = sum(play_or_explain(seed) for seed in range(block * size, (block + 1) * size))
    assert effects > size  # it did something
