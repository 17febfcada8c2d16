import pytest

from headgate.cli.moments import many, moment_of, shown_bytes, shown_moment
from headgate.errors import Invalid
from headgate.periods import Period

NOON_MS = Period.parse("2026-11-01T12").start_ms


@pytest.mark.parametrize(
    ("text", "moment_ms"),
    [
        ("1h", NOON_MS - 3_600_000),
        ("1h30m", NOON_MS - 5_400_000),
        ("7d", NOON_MS - 7 * 86_400_000),
        ("2026-11-01", NOON_MS - 12 * 3_600_000),
        ("2026-11-01T11", NOON_MS - 3_600_000),
        ("2026-11-01T11:30", NOON_MS - 1_800_000),
        ("2026-11-01T11:59:59Z", NOON_MS - 1_000),
    ],
)
def test_a_moment_is_so_long_ago_or_a_time_in_utc(text: str, moment_ms: int) -> None:
    assert moment_of(text, NOON_MS) == moment_ms


@pytest.mark.parametrize(
    "text", ["", "yesterday", "5", "2026-13-01", "2026-11-01T25", "2026-11-01T11:60", "1x", "T"]
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        moment_of(text, NOON_MS)


def test_moments_and_sizes_in_words() -> None:
    assert shown_moment(NOON_MS) == "2026-11-01T12:00:00Z"
    assert shown_moment(None) == "-"
    assert shown_moment(2**62) == f"{2**62} ms"
    assert [shown_bytes(n) for n in (0, 999, 1_500, 2_000_000)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "2.0 MB",
    ]
    assert [many(n, "file") for n in (0, 1, 2_000)] == ["0 files", "1 file", "2,000 files"]
