import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import Invalid
from headgate.settings.units import duration_ms, duration_text, size_bytes, size_text


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        *(("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("1h30m", 5_400_000)),
        *(("2d", 172_800_000), ("0s", 0), ("1h1ms", 3_600_001)),
    ],
)
def test_a_duration_is_numbers_with_units(text: str, expected_ms: int) -> None:
    assert duration_ms(text) == expected_ms


@pytest.mark.parametrize(
    "text",
    ["", "5", "5 m", "5min", "-5m", "1.5h", "30m1h", "5m5m", "m", "5M", "\u0665m", "9" * 60 + "h"],
)
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(Invalid, match="1h30m"):
        duration_ms(text)


@pytest.mark.parametrize(
    ("text", "expected_bytes"),
    [
        *(("500B", 500), ("64kB", 64_000), ("64KB", 64_000), ("128MB", 128_000_000)),
        *(("128 MB", 128_000_000), ("1GiB", 1_073_741_824), ("2TiB", 2_199_023_255_552)),
    ],
)
def test_a_size_is_a_number_with_a_unit(text: str, expected_bytes: int) -> None:
    assert size_bytes(text) == expected_bytes


@pytest.mark.parametrize("text", ["", "128", "128M", "128mb", "1.5GB", "-1B", "1GB1MB", "MB"])
def test_what_is_no_size_is_refused_with_examples(text: str) -> None:
    with pytest.raises(Invalid, match="128MB"):
        size_bytes(text)


@given(st.integers(0, 365 * 86_400_000))
def test_a_duration_reads_back_what_it_writes(duration: int) -> None:
    assert duration_ms(duration_text(duration)) == duration


@given(st.integers(0, 10**13) | st.integers(0, 1_000).map(lambda n: n * 2**20))
def test_a_size_reads_back_what_it_writes(size: int) -> None:
    assert size_bytes(size_text(size)) == size
