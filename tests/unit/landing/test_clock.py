"""What is believed of arrivals and proofs, by the clock of this node and the store's."""

import pytest

from headgate.engine import InputFile
from headgate.errors import Unavailable
from headgate.landing.clock import Clock
from headgate.sources import Plan
from headgate.testing.manual import ManualAmbient

SKEW_MS, NOW_MS = 300_000, 1_800_000_000_000


def clock_off_by(off_ms: int) -> Clock:
    """This node's clock is so far ahead of the store's, which shows NOW_MS."""
    return Clock(ManualAmbient(NOW_MS + off_ms), lambda: off_ms, "node", SKEW_MS)


def plan_of(*, arrival_ms: int = NOW_MS, end_ms: int = NOW_MS) -> Plan:
    file = InputFile("lane-0", 0, "/in/0", 100, arrival_ms)
    return Plan("files", "json", (), {}, (file,), (), {"lane-0": end_ms}, has_more=False)


@pytest.mark.parametrize("off_ms", [0, SKEW_MS, -SKEW_MS])
@pytest.mark.parametrize("field", ["arrival_ms", "end_ms"])
@pytest.mark.parametrize(("ahead_ms", "is_believed"), [(SKEW_MS, True), (SKEW_MS + 1, False)])
def test_k4_what_was_told_by_a_clock_ahead_of_the_stores_is_not_believed(
    off_ms: int, field: str, ahead_ms: int, is_believed: bool
) -> None:
    """Also by a clock that was set right since: what it told stays."""
    doubt = clock_off_by(off_ms).doubt(plan_of(**{field: NOW_MS + ahead_ms}))
    assert doubt is not None
    assert (doubt == "") == is_believed
    assert is_believed or "no watermark moves until then" in doubt


@pytest.mark.parametrize("sign", [1, -1])
def test_k4_a_node_whose_own_clock_is_wrong_believes_nothing_and_says_so(sign: int) -> None:
    doubt = clock_off_by(sign * (SKEW_MS + 1)).doubt(plan_of())
    assert doubt is not None
    assert "the clock of node is" in doubt


def test_while_the_stores_clock_is_not_known_nothing_is_believed_or_discovered() -> None:
    def unknown() -> int:
        raise Unavailable("the store is away")

    clock = Clock(ManualAmbient(NOW_MS), unknown, "node", SKEW_MS)
    assert clock.doubt(plan_of()) is None
    assert clock.discovery_ms() == 0
    assert clock.store_ms() == NOW_MS
    assert clock_off_by(7_000).discovery_ms() == NOW_MS
