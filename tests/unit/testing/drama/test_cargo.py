import pytest

from headgate.periods import HOUR_MS, Period
from headgate.sources.folder import lane_of
from headgate.testing.drama.cargo import FIRST_WAVE_HOURS, ORDERS, STREAMS, waves_of
from headgate.testing.drama.orders import names_of

FIRST = Period.parse("2026-11-01T13")
HOURS = [Period(FIRST.start_ms + n * HOUR_MS, "hour") for n in range(12)]


@pytest.mark.parametrize("name", ["first", "second"])
def test_each_lane_gets_files_of_each_wave(name: str) -> None:
    """Without one its watermark would stand still, and no hour would be ready before the end."""
    wave = waves_of(ORDERS, 1_000, HOURS)[name]

    assert {lane_of(f"{name}/{one}", 2) for one in names_of(wave)} == {0, 1}


@pytest.mark.parametrize("records", [1_000, 200_000])
@pytest.mark.parametrize("stream", STREAMS)
def test_the_waves_of_a_stream_share_all_ids_and_all_hours(stream: str, records: int) -> None:
    waves = waves_of(stream, records, HOURS)
    first, second, late = waves["first"], waves["second"], waves["late"]

    assert (first.ids.start, first.ids.stop, second.ids.stop) == (
        *(0, second.ids.start, late.ids.start),
    )
    assert (first.from_ms, second.until_ms) == (HOURS[0].start_ms, HOURS[-1].end_ms)
    assert first.until_ms == second.from_ms == FIRST.start_ms + int(FIRST_WAVE_HOURS * HOUR_MS)
    assert min(len(first.ids), len(second.ids)) > 10 * len(late.ids) > 0


def test_late_records_belong_to_hours_that_the_first_wave_completes() -> None:
    for stream in STREAMS:
        waves = waves_of(stream, 1_000, HOURS)
        assert waves["late"].until_ms < waves["first"].until_ms - HOUR_MS


def test_both_streams_together_have_as_many_records_as_were_asked_for() -> None:
    for records in (1_000, 1_003, 200_000):
        assert sum(waves_of(one, records, HOURS)["late"].ids.stop for one in STREAMS) == records
