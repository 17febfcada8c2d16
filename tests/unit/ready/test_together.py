"""Faults of the originals that need both: what landing promises, and what ready makes of it."""

from dataclasses import replace

import pytest

from headgate.commits.streams import Pause, StreamDocument, stream_key
from headgate.errors import Unavailable
from headgate.landing.names import DEAD, LATE
from headgate.landing.shard import LOOK_MS
from headgate.periods import HOUR_MS
from headgate.sources import Waiting
from headgate.store.changes import change
from headgate.testing.brook import BrookSource
from headgate.testing.faults import Calm
from tests.crash.landing_world import Process
from tests.crash.together_world import MINUTE_MS, Shore

YEAR_MS = 365 * 24 * HOUR_MS


def mark_of(shore: Shore, stream: str = "orders", lane: int = 0) -> int | None:
    return shore.worlds[stream].checkpoint().watermarks[f"{stream}-{lane}"]


def test_k1_kf14_a_reader_at_twenty_past_leaves_its_hour_open_for_any_number_of_looks() -> None:
    shore = Shore()
    hour = shore.hour(0)
    shore.pass_ms(20 * MINUTE_MS)
    shore.drop(shore.now_ms - 5)
    shore.land()
    shore.pass_ms(3 * HOUR_MS)  # nobody reads
    for _ in range(5):
        shore.flag()
    assert shore.flagged() == []
    assert mark_of(shore) is not None
    assert (mark_of(shore) or 0) < hour.end_ms

    shore.drop(hour.end_ms - 5)  # it was on its way
    shore.land()
    shore.flag()
    assert hour in shore.flagged()
    assert shore.faults() == []


def test_k2_a_restart_at_twenty_past_with_files_only_staged_flags_nothing() -> None:
    shore = Shore()
    hour = shore.hour(0)
    shore.drop(hour.start_ms + 5)
    shore.land()
    shore.pass_ms(20 * MINUTE_MS)
    shore.drop(shore.now_ms - 5)  # stopped here, with half a shift
    shore.pass_ms(41 * MINUTE_MS)
    process = Process(shore.base, Calm())  # started again: what waits is staged, nothing journaled
    while not process.mill.jobs:
        process.turn()
    before = mark_of(shore)
    for _ in range(3):
        shore.flag()
    assert shore.flagged() == []
    assert mark_of(shore) == before  # a start stores no time of its own

    process.until(shore.base.is_landed)
    shore.pass_ms(2 * MINUTE_MS)
    shore.land()
    shore.flag()
    assert hour in shore.flagged()
    assert shore.faults() == []


@pytest.mark.parametrize("trouble", ["out of reach", "somebody is still writing"])
def test_k3_nothing_read_without_proof_moves_no_watermark_and_a_proof_does(
    trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shore = Shore()
    hour = shore.hour(0)
    shore.drop(hour.start_ms + 5)
    shore.land()
    before = mark_of(shore)
    shore.pass_ms(2 * HOUR_MS)
    honest = BrookSource.look, BrookSource.plan

    def look(self: BrookSource, positions: dict[str, str]) -> Waiting:
        if trouble == "out of reach":
            raise Unavailable("the source is out of reach")
        return replace(honest[0](self, positions), unfinished=1)

    def plan(self: BrookSource, *args: object, **kwargs: object) -> object:
        return replace(honest[1](self, *args, **kwargs), ends_ms={})  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(BrookSource, "look", look)
        patched.setattr(BrookSource, "plan", plan)
        process = Process(shore.base, Calm(), is_eager=False)
        for _ in range(100):  # several shifts
            shore.pass_ms(1_000)
            process.turn()
        shore.flag()
    assert mark_of(shore) == before
    assert shore.flagged() == []

    shore.land()  # back, and empty
    shore.flag()
    assert (mark_of(shore) or 0) >= hour.end_ms
    assert hour in shore.flagged()


def test_k4_a_record_of_2099_is_a_dead_letter_and_flags_no_hour_early() -> None:
    shore = Shore()
    hour = shore.hour(0)
    shore.pass_ms(20 * MINUTE_MS)
    shore.drop(shore.now_ms - 5, shore.now_ms + 73 * YEAR_MS)
    shore.land()
    shore.flag()
    assert shore.flagged() == []
    assert (mark_of(shore) or 0) < hour.end_ms
    published = shore.base.estuary.published()
    assert len([path for path in published if path.startswith(f"{DEAD}/")]) == 1
    assert not any("2099" in path or "2100" in path for path in published)


def test_k5_old_records_after_new_ones_lower_no_watermark() -> None:
    shore = Shore()
    shore.pass_ms(30 * MINUTE_MS)
    shore.drop(shore.now_ms - 5)
    shore.land()
    marks = [mark_of(shore) or 0]
    for minutes in (20, 90, 5 * 60):
        shore.drop(shore.now_ms - minutes * MINUTE_MS)
        shore.land()
        marks.append(mark_of(shore) or 0)
    assert marks == sorted(marks)
    assert shore.faults() == []


@pytest.mark.parametrize("first", [-3, None], ids=["first_hour", "its first commit decides"])
def test_k8_a_record_of_1970_makes_no_half_million_empty_hours(first: int | None) -> None:
    shore = Shore(first=first)
    begin = shore.hour(-3 if first is not None else 0)
    shore.pass_ms(20 * MINUTE_MS)
    shore.drop(5, shore.now_ms - 5)
    shore.land()
    shore.pass_ms(2 * HOUR_MS)
    shore.land()
    shore.flag()
    assert shore.flagged()[0] == begin
    assert len(shore.flagged()) == (2 if first is None else 5)
    late = [path for path in shore.base.estuary.published() if path.startswith(f"{LATE}/1970")]
    assert len(late) == 1
    assert shore.faults() == []


def test_k8_thirty_hours_down_then_thirty_flags_in_order_and_one_day() -> None:
    shore = Shore()
    hour = shore.hour(0)
    shore.drop(hour.start_ms + 5)
    shore.land()
    shore.pass_ms(30 * HOUR_MS + 2 * MINUTE_MS)
    shore.land()
    calm = Calm()
    shore.flag(shore.holder(calm))
    raised = [str(call.args[1]) for call in calm.calls if call.method == "publish"]
    own = [path for path in raised if path.endswith("/orders/_READY")]
    assert len(own) == 30
    assert own == sorted(own)
    assert len(shore.over_all()) == 30
    assert shore.faults() == []


def test_k14_a_late_record_is_apart_and_the_hours_certificate_still_verifies() -> None:
    shore = Shore()
    hour = shore.hour(0)
    shore.drop(hour.start_ms + 5)
    shore.land()
    shore.pass_ms(2 * HOUR_MS)
    shore.land()
    shore.flag()
    assert hour in shore.flagged()
    before = dict(shore.base.estuary.published())

    shore.drop(hour.start_ms + 9)
    shore.land()
    shore.flag()
    new = [path for path in shore.base.estuary.published() if path not in before]
    assert [path.split("/")[0] for path in new if "_READY" not in path] == [LATE]
    assert shore.verified().is_clean
    assert shore.faults() == []
    assert shore.base.checkpoint().counts["late"] == 1  # and status shows it


def test_b12_a_file_that_somebody_adds_after_the_certificate_is_shown() -> None:
    shore = Shore()
    hour = shore.hour(0)
    shore.drop(hour.start_ms + 5)
    shore.land()
    shore.pass_ms(2 * HOUR_MS)
    shore.land()
    shore.flag()
    folder = shore.base.settings.folder.folder(hour, stream="orders")
    shore.base.lake.put(f"{folder}/more.json", b"{}\n")
    subjects = [one.subject for one in shore.base.audit()]
    assert f"{folder}/more.json" in subjects


def test_k7_two_streams_of_one_root_one_paused_for_a_day() -> None:
    shore = Shore("orders", "clicks")
    first = shore.hour(0)
    for stream in ("orders", "clicks"):
        shore.drop(first.start_ms + 5, stream=stream)
    shore.land()
    pause = Pause("maintenance", "ann", 0)
    key = stream_key("clicks")
    change(shore.base.store, key, StreamDocument, lambda found: replace(found, paused=pause))
    for _ in range(24):
        shore.pass_ms(HOUR_MS)
        for stream in ("orders", "clicks"):
            shore.drop(shore.now_ms - 5, stream=stream)
        shore.land("orders")
        process = Process(shore.worlds["clicks"], Calm())
        for _ in range(3):
            process.turn()
        shore.flag()
    assert len(shore.flagged()) == 24
    assert shore.flagged("clicks") == []
    assert shore.over_all() == []

    change(shore.base.store, key, StreamDocument, lambda found: replace(found, paused=None))
    shore.pass_ms(LOOK_MS)
    shore.land()
    shore.flag()
    assert len(shore.flagged("clicks")) == len(shore.flagged())
    assert len(shore.over_all()) == len(shore.flagged())
    assert shore.faults() == []
    published = shore.worlds["clicks"].estuary.published()
    assert not [path for path in published if path.startswith((LATE, DEAD))]  # what waited, too
