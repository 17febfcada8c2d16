"""What may be believed of arrivals and proofs."""

import pytest

from headgate.engine import InputFile, InputSpan
from headgate.errors import Unavailable
from headgate.landing.clock import Clock
from headgate.sources import Plan
from headgate.testing.manual import ManualAmbient

SKEW_MS = 300_000
AMBIENT = ManualAmbient()
NOW_MS = AMBIENT.wall_ns() // 1_000_000


def clock(off_ms: int = 0) -> Clock:
    return Clock(AMBIENT, lambda: off_ms, "a", SKEW_MS)


def told(by: str, ms: int) -> Plan:
    """A plan that has this moment in one place."""
    files = (InputFile("lane-0", 1, "/a", 10, ms),) if by == "files" else ()
    spans = (InputSpan("t/0", "t", 0, 0, 5, ms, 100),) if by == "spans" else ()
    ends_ms = {"t/0": ms} if by == "ends" else {}
    return Plan("kafka", "json", (), {}, files, (), ends_ms, has_more=False, spans=spans)


@pytest.mark.parametrize("by", ["files", "spans", "ends"])
def test_a_moment_that_has_not_come_yet_is_not_believed(by: str) -> None:
    assert clock().doubt(told(by, NOW_MS + SKEW_MS)) == ""
    assert "records were first seen 300 s from now" in str(
        clock().doubt(told(by, NOW_MS + SKEW_MS + 1))
    )
    assert clock().doubt(told(by, NOW_MS - 10**9)) == ""


@pytest.mark.parametrize(("off_ms", "is_doubted"), [(SKEW_MS, False), (SKEW_MS + 1, True)])
def test_a_clock_that_is_far_off_is_not_believed(off_ms: int, is_doubted: bool) -> None:
    plan = told("spans", NOW_MS - 10**6)
    assert bool(clock(off_ms).doubt(plan)) == is_doubted
    assert bool(clock(-off_ms).doubt(plan)) == is_doubted


def test_while_nobody_knows_the_stores_clock_nothing_is_known() -> None:
    def unknown() -> int:
        raise Unavailable("no answer")

    blind = Clock(AMBIENT, unknown, "a", SKEW_MS)
    assert blind.doubt(told("spans", NOW_MS)) is None
    assert (blind.discovery_ms(), blind.store_ms()) == (0, NOW_MS)
