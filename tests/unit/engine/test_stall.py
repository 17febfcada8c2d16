"""Whether jobs stand still, by what their stages say."""

import pytest

from headgate.engine.stall import StageFacts, Stall

WAITS = StageFacts(3, 0, active=0, ended=2)


def test_jobs_whose_stages_have_no_task_for_the_whole_limit_stand_still() -> None:
    stall = Stall(1_000)
    assert [stall.is_over_limit([WAITS], ms) for ms in (50, 500, 1_049, 1_050, 2_000)] == [
        *(False, False, False, True, True)
    ]


@pytest.mark.parametrize(
    "meanwhile",
    [
        [],
        [StageFacts(3, 0, active=1, ended=2)],
        [WAITS, StageFacts(4, 0, active=1, ended=0)],  # another job has the cores
        [StageFacts(3, 0, active=0, ended=3)],
        [StageFacts(3, 1, active=0, ended=2)],
        [StageFacts(5, 0, active=0, ended=2)],
    ],
)
def test_whatever_moves_begins_the_time_anew(meanwhile: list[StageFacts]) -> None:
    stall = Stall(1_000)
    stall.is_over_limit([WAITS], 0)
    assert not stall.is_over_limit(meanwhile, 990)
    assert not stall.is_over_limit([WAITS], 1_000)
    assert not stall.is_over_limit([WAITS], 1_999)
    assert stall.is_over_limit([WAITS], 2_000)


def test_a_task_that_takes_long_is_not_given_up() -> None:
    stall = Stall(1_000)
    runs = StageFacts(3, 0, active=1, ended=0)
    assert not any(stall.is_over_limit([runs], ms) for ms in range(0, 10_000, 500))


def test_nothing_to_do_is_no_stall() -> None:
    stall = Stall(1_000)
    assert not any(stall.is_over_limit([], ms) for ms in range(0, 10_000, 500))
