"""No more records a second than the settings say, and no rounds of next to nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.sources.kafka.source import TOKENS_S_MAX, TOKENS_S_MIN, Tokens
from tests.unit.sources.kafka.rivers import River, spans, values


@given(
    st.integers(1, 50),
    st.lists(st.tuples(st.integers(0, 90_000), st.integers(1, 4_000)), max_size=60),
)
def test_over_any_time_no_more_is_read_than_the_rate_allows(
    per_s: int, asked: list[tuple[int, int]]
) -> None:
    tokens, now_ms, read = Tokens(per_s), 1_000, 0
    for pause_ms, wanted in asked:
        now_ms += pause_ms
        taken = min(wanted, tokens.left(now_ms, wanted))
        tokens.take(taken)
        read += taken
        burst = per_s * TOKENS_S_MIN
        assert read <= burst + per_s * (now_ms - 1_000) / 1000


def test_a_long_quiet_time_is_made_up_for_and_has_an_end() -> None:
    tokens = Tokens(10)
    tokens.left(0, 1)
    assert tokens.left(10**12, 10**9) == 10 * TOKENS_S_MAX


def test_without_a_limit_there_is_none() -> None:
    tokens = Tokens(0)
    assert tokens.left(0, 10) >= 10**12
    tokens.take(10**12)
    assert tokens.left(0, 10) >= 10**12


def test_a_backlog_is_read_at_the_rate() -> None:
    river = River(records_per_s=100)
    river.weir.send("t", 0, values(100_000))
    river.look()
    began_ms, read, rounds = river.ambient.monotonic_ms(), 0, 0
    for _ in range(600):  # each look a second after the last one
        plan = river.looked()
        taken = sum(end - first for _, first, end in spans(plan))
        river.commit(plan)
        read, rounds = read + taken, rounds + bool(taken)
        passed_s = (river.ambient.monotonic_ms() - began_ms) / 1000
        assert read <= 100 * (passed_s + TOKENS_S_MIN)
    assert read >= 100 * (passed_s - TOKENS_S_MIN)
    assert rounds <= 600 / TOKENS_S_MIN + 1


def test_what_is_held_back_says_so_and_is_not_planned() -> None:
    river = River(records_per_s=100)
    river.weir.send("t", 0, values(10_000))
    assert not river.look().is_held_back
    river.commit(river.plan())
    assert river.positions["t/0"] == str(100 * TOKENS_S_MIN)

    assert river.look().is_held_back
    plan = river.plan()
    assert plan.is_empty
    assert plan.has_more
    assert "t/0" not in plan.ends_ms

    river.ambient.pass_ms(1_000 * TOKENS_S_MIN)
    assert not river.look().is_held_back
    assert not river.plan().is_empty


@pytest.mark.parametrize("count", [1, 99])
def test_a_little_is_not_held_back_for_long(count: int) -> None:
    river = River(records_per_s=100)
    river.weir.send("t", 0, values(100 * TOKENS_S_MIN))
    river.round()
    river.weir.send("t", 0, values(count))
    waiting = river.look()  # a second later
    assert (waiting.records, waiting.is_held_back) == (count, False)
    assert river.looked().has_input


def test_nothing_that_waits_is_held_back() -> None:
    river = River(records_per_s=1)
    assert not river.look().is_held_back


def test_a_range_is_read_again_whatever_the_rate() -> None:
    river = River(records_per_s=1)
    river.weir.send("t", 0, values(10_000))
    river.look()
    assert spans(river.plan(until={"t/0": "10000"})) == [("t/0", 0, 10_000)]
