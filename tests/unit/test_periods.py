import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from headgate.errors import Invalid
from headgate.periods import (
    DAY_MS,
    DEFAULT_FOLDER,
    HOUR_MS,
    YEAR_1_MS,
    YEAR_10000_MS,
    FolderTemplate,
    Period,
    Place,
    aligned,
    escape_name,
    hours_between,
    relative_to,
)

HOUR_13 = Period.parse("2026-11-01T13")
DAY = Period.parse("2026-11-01")
DEFAULT = FolderTemplate.parse(DEFAULT_FOLDER)
PER_STREAM = FolderTemplate.parse("{stream}/{yyyy}/{MM}/{dd}/{HH}")
SHARDED = FolderTemplate.parse("date={yyyy}-{MM}-{dd}/hour={HH}/{stream}/shard={shard}")


def ms(text: str) -> int:
    """An oracle that shares no arithmetic with the code under test."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


PeriodOf = Callable[[int], Period]

moments = st.integers(YEAR_1_MS, YEAR_10000_MS - 1)
hours = moments.map(Period.hour_of)
days = moments.map(Period.day_of)
streams = st.text(min_size=1, max_size=15)  # one character may become twelve, of 255
shards = st.integers(0, 10**6)
# Few values, all of them dangerous: places that nearly collide.
near_hours = st.sampled_from([HOUR_13, HOUR_13.next(), Period.parse("2026-11-11T13")])
tricky_streams = st.text("a0_.%-/: =é", min_size=1, max_size=4)


@st.composite
def templates(draw: st.DrawFn, required: tuple[str, ...] = ()) -> FolderTemplate:
    """Any order of symbols, date symbols repeated or not, literals and slashes between."""
    always = ["yyyy", "MM", "dd", "HH", "stream", *required]
    more = draw(st.lists(st.sampled_from(["yyyy", "MM", "dd", "HH"]), max_size=2))
    text = draw(st.sampled_from(["", "lake/", "date=", "0"]))
    for symbol in draw(st.permutations(always + more)):
        text += f"{{{symbol}}}" + draw(st.sampled_from(["", "", "/", "/", "-", "/x=", "7", "%2"]))
    try:
        return FolderTemplate.parse(text + draw(st.sampled_from(["x", "/data", "größe.d"])))
    except Invalid:  # stream and shard ran into each other
        reject()


@contextmanager
def local_zone(zone: str) -> Iterator[None]:
    before = os.environ.get("TZ")
    try:
        os.environ["TZ"] = zone
        time.tzset()
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


# Periods


def test_an_event_belongs_to_the_hour_and_the_day_it_happened_in() -> None:
    event_ms = ms("2026-11-01T13:59:59.999")

    assert Period.hour_of(event_ms) == HOUR_13
    assert Period.day_of(event_ms) == DAY
    assert (HOUR_13.start_ms, HOUR_13.end_ms) == (ms("2026-11-01T13:00"), ms("2026-11-01T14:00"))


def test_the_end_of_an_hour_belongs_to_the_next_one() -> None:
    assert not HOUR_13.contains(HOUR_13.end_ms)
    assert HOUR_13.next().contains(HOUR_13.end_ms)
    assert Period.hour_of(HOUR_13.end_ms) == HOUR_13.next()


def test_an_event_before_1970_belongs_to_the_hour_before_it_not_after_it() -> None:
    assert str(Period.hour_of(-1)) == "1969-12-31T23"
    assert str(Period.day_of(-1)) == "1969-12-31"


def test_hours_and_days_step_over_the_ends_of_months_and_leap_years() -> None:
    assert str(Period.parse("2028-02-28T23").next()) == "2028-02-29T00"
    assert str(Period.parse("2100-02-28").next()) == "2100-03-01"
    assert str(Period.parse("2026-01-01").previous()) == "2025-12-31"


@given(moments, st.sampled_from([Period.hour_of, Period.day_of]))
def test_periods_tile_time_without_gap_or_overlap(moment_ms: int, period_of: PeriodOf) -> None:
    period = period_of(moment_ms)

    assert period.contains(moment_ms)
    for neighbour_ms in (period.start_ms, period.end_ms - 1):
        assert period_of(neighbour_ms) == period
    if period.end_ms < YEAR_10000_MS:
        following = period.next()
        assert following.start_ms == period.end_ms
        assert following.previous() == period
        assert following == period_of(period.end_ms)


@given(days)
def test_a_day_is_exactly_its_24_hours(day: Period) -> None:
    parts = day.hours()

    assert len(parts) == 24
    assert (parts[0].start_ms, parts[-1].end_ms) == (day.start_ms, day.end_ms)
    assert all(a.end_ms == b.start_ms for a, b in pairwise(parts))
    assert {hour.day() for hour in parts} == {day}
    assert all(len(hour.hours()) == 1 for hour in parts)


@given(st.lists(hours | days))
def test_periods_sort_by_time_and_a_day_comes_before_its_hours(periods: list[Period]) -> None:
    in_order = sorted(periods)

    assert in_order == sorted(periods, key=lambda period: (period.start_ms, -period.end_ms))


def test_hours_between_two_moments_are_all_that_share_a_moment_with_them() -> None:
    half_past_one, three = ms("2026-11-01T13:30"), ms("2026-11-01T15:00")

    assert [str(hour) for hour in hours_between(half_past_one, three)] == [
        "2026-11-01T13",
        "2026-11-01T14",
    ]
    assert list(hours_between(three - 1, three + 1)) == [HOUR_13.next(), HOUR_13.next().next()]


@pytest.mark.parametrize("length_ms", [0, -1, -HOUR_MS])
def test_no_hour_lies_between_a_moment_and_itself_or_an_earlier_one(length_ms: int) -> None:
    moment_ms = ms("2026-11-01T13:30")

    assert list(hours_between(moment_ms, moment_ms + length_ms)) == []


def test_hours_of_a_long_span_are_made_one_by_one() -> None:
    all_of_time = hours_between(YEAR_1_MS, YEAR_10000_MS)

    assert str(next(all_of_time)) == "0001-01-01T00"


@given(moments, st.integers(1, 3 * DAY_MS))
def test_an_aligned_start_is_a_multiple_at_most_one_duration_back(t_ms: int, d_ms: int) -> None:
    start_ms = aligned(t_ms, d_ms)

    assert start_ms % d_ms == 0
    assert start_ms <= t_ms < start_ms + d_ms


@pytest.mark.parametrize("duration_ms", [0, -5])
def test_a_duration_of_nothing_is_refused(duration_ms: int) -> None:
    with pytest.raises(Invalid, match="above 0"):
        aligned(17, duration_ms)


@given(hours | days)
def test_the_text_of_a_period_reads_back_as_the_same_period(period: Period) -> None:
    assert Period.parse(str(period)) == period


def test_an_hour_may_be_written_with_a_slash_as_in_its_folder() -> None:
    assert Period.parse("2026-11-01/13") == HOUR_13
    assert str(HOUR_13) == "2026-11-01T13"
    assert str(Period.parse("0033-04-03T15")) == "0033-04-03T15"


@pytest.mark.parametrize(
    "text",
    [
        *[
            "",
            "now",
            "2026",
            "2026-11",
            "2026-11-1",
            "2026-11-01T",
            "2026-11-01T1",
            "2026-11-01 13",
        ],
        *["2026-11-01T13Z", "2026-11-01T13:00", "+2026-11-01", " 2026-11-01", "2026-11-01\n"],
        *["2026-13-01", "2026-02-29", "2026-11-01T24", "0000-01-01", "10000-01-01", "٢٠٢٦-11-01"],
    ],
)
def test_text_that_is_no_period_is_refused_by_name(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        Period.parse(text)

    assert repr(text) in str(refused.value)


@pytest.mark.parametrize("event_ms", [ms("9999-12-31T23:59:59") + 1000, YEAR_1_MS - 1, 10**30])
def test_an_event_outside_the_calendar_is_invalid_and_no_crash(event_ms: int) -> None:
    for period_of in (Period.hour_of, Period.day_of):
        with pytest.raises(Invalid, match="0001 to 9999"):
            period_of(event_ms)


def test_the_first_and_the_last_hour_of_the_calendar_exist_and_nothing_beyond() -> None:
    first, last = Period.hour_of(YEAR_1_MS), Period.hour_of(YEAR_10000_MS - 1)

    assert DEFAULT.folder(first, stream="s") == "0001-01-01/00/s/data"
    assert DEFAULT.folder(last, stream="s") == "9999-12-31/23/s/data"
    with pytest.raises(Invalid):
        first.previous()
    with pytest.raises(Invalid):
        last.next()


def test_a_period_cannot_start_in_its_own_middle() -> None:
    with pytest.raises(Invalid, match="hour_of"):
        Period(HOUR_13.start_ms + 1, "hour")
    with pytest.raises(Invalid, match="day_of"):
        Period(HOUR_13.start_ms, "day")


def test_a_period_of_an_unknown_kind_is_invalid() -> None:
    kind: Any = "week"
    with pytest.raises(Invalid, match="'week' is no kind of period"):
        Period(0, kind)


@pytest.mark.parametrize(
    ("from_ms", "until_ms"),
    [(YEAR_10000_MS - 1, YEAR_10000_MS + 1), (YEAR_1_MS - 1, YEAR_1_MS + 1), (0, 10**30)],
)
def test_hours_outside_the_calendar_are_refused_before_the_first_is_given(
    from_ms: int, until_ms: int
) -> None:
    with pytest.raises(Invalid, match="0001 to 9999"):
        hours_between(from_ms, until_ms)


def test_hours_reach_to_both_ends_of_the_calendar() -> None:
    assert list(hours_between(YEAR_10000_MS - 1, YEAR_10000_MS)) == [
        Period.hour_of(YEAR_10000_MS - 1)
    ]
    assert list(hours_between(YEAR_1_MS, YEAR_1_MS + 1)) == [Period.hour_of(YEAR_1_MS)]
    assert list(hours_between(10**30, 10**30)) == []


def test_k9_the_local_time_zone_changes_no_period_and_no_folder() -> None:
    new_york, auckland = "EST5EDT,M3.2.0,M11.1.0", "NZST-12NZDT,M9.5.0,M4.1.0/3"
    clock_change_ms = ms("2026-11-01T06:00")  # New York sets its clocks back, and has 25 hours
    pictures, offsets = set(), set()
    for zone in ("UTC0", new_york, auckland):
        with local_zone(zone):
            offsets.add(time.localtime(clock_change_ms // 1000).tm_gmtoff)
            day = Period.day_of(clock_change_ms)
            folders = tuple(DEFAULT.folder(hour, stream="orders") for hour in day.hours())
            places = tuple(map(DEFAULT.match, folders))
            pictures.add((day, Period.parse("2026-11-01T06"), DEFAULT.day_folder(day), places))

    assert len(offsets) == 3
    assert len(pictures) == 1
    assert folders[6] == "2026-11-01/06/orders/data"


# Folders


def test_the_default_template_gives_the_folders_of_the_document() -> None:
    assert DEFAULT.folder(HOUR_13, stream="orders") == "2026-11-01/13/orders/data"
    assert DEFAULT.stream_folder(HOUR_13, "orders") == "2026-11-01/13/orders"
    assert DEFAULT.hour_folder(HOUR_13) == "2026-11-01/13"
    assert DEFAULT.day_folder(DAY) == "2026-11-01"
    assert str(DEFAULT) == DEFAULT_FOLDER


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("{stream}/{yyyy}{MM}{dd}{HH}", "orders/2026110113"),
        ("date={yyyy}-{MM}-{dd}/hour={HH}/{stream}", "date=2026-11-01/hour=13/orders"),
        ("year={yyyy}/{yyyy}-{MM}-{dd}T{HH}/{stream}", "year=2026/2026-11-01T13/orders"),
        ("{yyyy}/{MM}/{dd}/{HH}/{stream}-{shard}", "2026/11/01/13/orders-7"),
        ("{shard}{HH}/{dd}.{MM}.{yyyy}/{stream}", "713/01.11.2026/orders"),
    ],
)
def test_a_template_may_order_and_join_its_symbols_freely(text: str, folder: str) -> None:
    template = FolderTemplate.parse(text)
    shard = 7 if template.has_shard else None

    assert template.folder(HOUR_13, stream="orders", shard=7) == folder
    assert template.match(folder) == Place(HOUR_13, "orders", shard)


@given(templates(), hours, streams)
def test_a_folder_reads_back_as_its_hour_and_stream(
    template: FolderTemplate, hour: Period, stream: str
) -> None:
    folder = template.folder(hour, stream=stream)

    assert template.match(folder) == Place(hour, stream)
    assert template.match_file(f"{folder}/part-0.parquet") == (
        Place(hour, stream),
        "part-0.parquet",
    )


@given(templates(required=("shard",)), hours, streams, shards)
def test_a_folder_reads_back_as_its_hour_stream_and_shard(
    template: FolderTemplate, hour: Period, stream: str, shard: int
) -> None:
    folder = template.folder(hour, stream=stream, shard=shard)

    assert template.match(folder) == Place(hour, stream, shard)


@given(
    templates(required=("shard",)),
    st.lists(
        st.tuples(near_hours, tricky_streams, st.integers(0, 120)),
        min_size=2,
        max_size=6,
        unique=True,
    ),
)
def test_distinct_hours_streams_and_shards_never_share_a_folder(
    template: FolderTemplate, places: list[tuple[Period, str, int]]
) -> None:
    folders = {template.folder(hour, stream=stream, shard=shard) for hour, stream, shard in places}

    assert len(folders) == len(places)


@given(templates(), hours, streams | tricky_streams)
def test_no_stream_name_leaves_its_folder_or_hides_it_from_readers(
    template: FolderTemplate, hour: Period, stream: str
) -> None:
    names = template.folder(hour, stream=stream).split("/")

    assert len(names) == len(template.segments)
    assert all(name and not name.startswith((".", "_")) for name in names)
    assert not set(escape_name(stream)) & set("\\*?[]{}:/ ")


@pytest.mark.parametrize(
    ("stream", "name"),
    [
        *[("orders", "orders"), ("orders.v1_eu-2", "orders.v1_eu-2")],
        *[("a b", "a%20b"), ("a:b", "a%3Ab"), ("a/b", "a%2Fb"), ("a%20b", "a%2520b")],
        *[("_late", "%5Flate"), (".hidden", "%2Ehidden"), (".", "%2E"), ("..", "%2E.")],
        *[("ü", "%C3%BC"), ("u\u0308", "u%CC%88"), ("\n", "%0A"), ("\x00", "%00")],
    ],
)
def test_names_are_escaped_without_loss(stream: str, name: str) -> None:
    assert escape_name(stream) == name
    assert DEFAULT.match(f"2026-11-01/13/{name}/data") == Place(HOUR_13, stream)


@pytest.mark.parametrize("stream", ["", "\ud800", "x" * 256, "ü" * 50])
def test_a_stream_name_that_cannot_be_a_folder_is_refused(stream: str) -> None:
    with pytest.raises(Invalid):
        DEFAULT.folder(HOUR_13, stream=stream)


@pytest.mark.parametrize(
    "path",
    [
        *["2026-13-01/13/orders/data", "2026-02-29/13/orders/data", "2026-11-31/13/orders/data"],
        *["2026-11-01/24/orders/data", "0000-11-01/13/orders/data", "2026-11-1/13/orders/data"],
        *["2026-11-01/١٣/orders/data", "2026-11-01/13/orders/date", "2026-11-01/13/orders"],
        *["2026-11-01/13/%41/data", "2026-11-01/13/%3a/data", "2026-11-01/13/a b/data"],
        *["2026-11-01/13/%zz/data", "2026-11-01/13/%C3/data", "2026-11-01/13/%ED%A0%80/data"],
        *["2026-11-01/13/_late/data", "2026-11-01/13/../data", "2026-11-01/13//data", ""],
        *["/2026-11-01/13/orders/data", "2026-11-01/13/orders/data/", "2026-11-01/13/a/data\n"],
    ],
)
def test_any_spelling_but_our_own_matches_nothing(path: str) -> None:
    assert DEFAULT.match(path) is None


@pytest.mark.parametrize("shard", ["07", "-1", "+1", "1_0", "\u0661", "9" * 5000, ""])
def test_a_shard_has_one_spelling(shard: str) -> None:
    assert SHARDED.match(f"date=2026-11-01/hour=13/orders/shard={shard}") is None


def test_a_symbol_that_stands_twice_must_say_the_same_twice() -> None:
    template = FolderTemplate.parse("year={yyyy}/{yyyy}-{MM}-{dd}/{HH}/{stream}")

    assert template.match("year=2026/2026-11-01/13/orders") == Place(HOUR_13, "orders")
    assert template.match("year=2025/2026-11-01/13/orders") is None


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        ("2026-11-01/13/orders/data/part-0.parquet", "part-0.parquet"),
        ("2026-11-01/13/orders/data/_READY", "_READY"),
        ("2026-11-01/13/orders/data/a/b", "a/b"),
    ],
)
def test_a_file_is_known_by_the_folder_it_lies_in(path: str, rest: str) -> None:
    assert DEFAULT.match_file(path) == (Place(HOUR_13, "orders"), rest)


@pytest.mark.parametrize("below", ["", "/", "/a//b", "/../x", "/./x"])
def test_the_folder_itself_and_crooked_paths_are_no_files_in_it(below: str) -> None:
    assert DEFAULT.match_file(f"2026-11-01/13/orders/data{below}") is None


@pytest.mark.parametrize(
    ("template", "path", "place"),
    [
        (DEFAULT, "2026-11-01", Place(DAY)),
        (DEFAULT, "2026-11-01/13", Place(HOUR_13)),
        (DEFAULT, "2026-11-01/13/orders", Place(HOUR_13, "orders")),
        (DEFAULT, "2026-11-01/13/orders/data", None),
        (DEFAULT, "2026-11-01/_READY", None),
        (DEFAULT, "2026-11-01/13/_READY", None),
        (DEFAULT, "2026-02-30", None),
        (PER_STREAM, "orders/2026/11", None),
        (PER_STREAM, "orders/2026/11/01", Place(DAY, "orders")),
        (SHARDED, "date=2026-11-01/hour=13/orders", Place(HOUR_13, "orders")),
    ],
)
def test_a_folder_above_the_data_stands_for_its_hour_or_day(
    template: FolderTemplate, path: str, place: Place | None
) -> None:
    assert template.match_parent(path) == place


@pytest.mark.parametrize(
    ("text", "kinds", "hour_folder", "day_folder"),
    [
        (DEFAULT_FOLDER, ("hour", "day"), "2026-11-01/13", "2026-11-01"),
        ("{yyyy}/{MM}/{dd}/{HH}/x/{stream}", ("hour", "day"), "2026/11/01/13", "2026/11/01"),
        ("{yyyy}{MM}{dd}{HH}/{stream}", ("hour",), "2026110113", None),
        ("{HH}/{yyyy}{MM}{dd}/{stream}", ("hour",), "13/20261101", None),
        ("{yyyy}-{MM}-{dd}/{stream}/{HH}", (), None, None),
        ("{yyyy}-{MM}-{dd}/{HH}-{stream}", (), None, None),
        ("{stream}/{yyyy}-{MM}-{dd}/{HH}", (), None, None),
        ("{shard}/{yyyy}-{MM}-{dd}/{HH}/{stream}", (), None, None),
    ],
)
def test_flags_roll_up_where_hour_and_day_have_folders_over_all_streams(
    text: str, kinds: tuple[str, ...], hour_folder: str | None, day_folder: str | None
) -> None:
    template = FolderTemplate.parse(text)

    assert template.rolls_up == kinds
    assert template.hour_folder(HOUR_13) == hour_folder
    assert template.day_folder(DAY) == day_folder


@given(templates(), hours, streams)
def test_the_folders_for_flags_lie_above_the_data_and_match_their_period(
    template: FolderTemplate, hour: Period, stream: str
) -> None:
    data = template.folder(hour, stream=stream)
    for folder, place in (
        (template.day_folder(hour.day()), Place(hour.day())),
        (template.hour_folder(hour), Place(hour)),
        (template.stream_folder(hour, stream), Place(hour, stream)),
    ):
        if folder is not None and folder != data:
            assert data.startswith(f"{folder}/")
            assert template.match_parent(folder) == place


def test_the_stream_folder_is_above_its_shards_and_missing_where_a_shard_comes_first() -> None:
    shards_first = FolderTemplate.parse("{shard}/{yyyy}{MM}{dd}{HH}/{stream}")

    assert SHARDED.stream_folder(HOUR_13, "orders") == "date=2026-11-01/hour=13/orders"
    assert PER_STREAM.stream_folder(HOUR_13, "orders") == "orders/2026/11/01/13"
    assert shards_first.stream_folder(HOUR_13, "orders") is None


def test_a_folder_asks_for_the_right_kind_of_period_and_for_its_shard() -> None:
    wrong_kinds: list[Callable[[], object]] = [
        lambda: DEFAULT.folder(DAY, stream="orders"),
        lambda: DEFAULT.stream_folder(DAY, "orders"),
        lambda: DEFAULT.hour_folder(DAY),
        lambda: DEFAULT.day_folder(HOUR_13),
    ]
    for wrong_kind in wrong_kinds:
        with pytest.raises(Invalid, match="this folder is for"):
            wrong_kind()
    for shard in (None, -1):
        with pytest.raises(Invalid, match="needs a shard"):
            SHARDED.folder(HOUR_13, stream="orders", shard=shard)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{yyyy}-{MM}-{dd}/{stream}", "{HH} missing"),
        ("", "{yyyy} {MM} {dd} {HH} {stream} missing"),
        (
            "{YYYY}-{MM}-{dd}/{HH}/{stream}",
            "unknown symbol {YYYY}, the nearest known one is {yyyy}",
        ),
        ("{yyyy}-{MM}-{dd}/{hour}/{stream}", "symbol {hour}, the nearest known one is {HH}"),
        ("{yyyy}-{MM}-{dd}/{HH}/{steam}", "symbol {steam}, the nearest known one is {stream}"),
        ("{yyyy}-{MM}-{dd}/{HH}/{stream}/{}", "unknown symbol {}"),
        ("{yyyy}-{MM}-{dd}/{HH}/{mm}/{stream}", "{mm} would make several folders for one hour"),
        ("{yyyy}-{MM}-{dd}/{HH}-{ss}/{stream}", "{ss} would make several folders for one hour"),
        ("{yyyy}-{MM}-{dd}/{HH}/{stream}{shard}", "cannot be told apart"),
        ("{yyyy}-{MM}-{dd}/{shard}{HH}7{stream}", "cannot be told apart"),
        ("{yyyy}-{MM}-{dd}/{HH}/{stream}/{stream}", "{stream} may stand there only once"),
        ("/{yyyy}-{MM}-{dd}/{HH}/{stream}", "relative"),
        ("{yyyy}-{MM}-{dd}/{HH}/{stream}/", "relative"),
        ("{yyyy}-{MM}-{dd}//{HH}/{stream}", "relative"),
        ("{yyyy}-{MM}-{dd}/{HH}/{stream}/ ", "only blanks"),
        ("  /{yyyy}-{MM}-{dd}/{HH}/{stream}", "only blanks"),
        ("./{yyyy}-{MM}-{dd}/{HH}/{stream}", "start with . or _: '.'"),
        ("../{yyyy}-{MM}-{dd}/{HH}/{stream}", "start with . or _: '..'"),
        ("_x={yyyy}-{MM}-{dd}/{HH}/{stream}", "start with . or _: '_x='"),
        ("{yyyy}-{MM}-{dd}\\{HH}/{stream}", "'\\\\' cannot be in a folder name"),
        ("{yyyy}-{MM}-{dd}\n/{HH}/{stream}", "'\\n' cannot be in a folder name"),
        ("{yyyy}:{MM}*{dd}/{HH}/{stream}", "':' '*' cannot be in a folder name"),
        ("{{yyyy}}-{MM}-{dd}/{HH}/{stream}", "'{' '}' cannot be in a folder name"),
        ("{yyyy}-{MM}-{dd}/{HH}/{stream", "'{' cannot be in a folder name"),
    ],
)
def test_a_template_that_cannot_work_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(Invalid) as refused:
        FolderTemplate.parse(text)

    assert reason in str(refused.value)


# Roots


@pytest.mark.parametrize("root", ["/logs", "/logs/", "file:/logs", "file:///logs", "FILE:///logs/"])
@pytest.mark.parametrize("listed_as", ["/logs", "file:/logs", "file:///logs"])
def test_k13_every_spelling_of_a_root_finds_the_same_periods(root: str, listed_as: str) -> None:
    data = relative_to(root, f"{listed_as}/2026-11-01/13/orders/data")
    day = relative_to(root, f"{listed_as}/2026-11-01/")

    assert data is not None
    assert DEFAULT.match(data) == Place(HOUR_13, "orders")
    assert day == DEFAULT.day_folder(DAY)


@pytest.mark.parametrize(
    "root", ["hdfs://h/logs", "hdfs://h:8020/a/logs", "s3://b", "s3a://b/x", "/"]
)
def test_k13_a_root_with_a_scheme_finds_the_same_periods(root: str) -> None:
    listed = f"{root.removesuffix('/')}/2026-11-01/13/orders/data"

    assert relative_to(root, listed) == "2026-11-01/13/orders/data"
    assert relative_to(root, root) == ""


@pytest.mark.parametrize(
    ("root", "path"),
    [
        *[("hdfs://h/logs", "hdfs://g/logs/x"), ("hdfs://h/logs", "hdfs:/logs/x")],
        *[("/logs", "hdfs://h/logs/x"), ("s3://b/logs", "s3://c/logs/x"), ("/logs", "/logs2/x")],
        *[("/logs", "/log"), ("/logs", "logs/x"), ("/logs", "/logs/../etc"), ("/logs", "/logs//x")],
        *[("/logs", ""), ("/logs", "file:"), ("file://h/logs", "/logs/x")],
    ],
)
def test_a_path_of_another_place_is_not_below_the_root(root: str, path: str) -> None:
    assert relative_to(root, path) is None


@pytest.mark.parametrize("root", ["", "logs", "./lake", "file:", "file:lake", "/a/../b", "s3://"])
def test_a_root_that_is_not_absolute_is_refused(root: str) -> None:
    with pytest.raises(Invalid, match="no plain absolute root"):
        relative_to(root, "/logs/2026-11-01")


def test_an_escaped_name_is_not_decoded_on_its_way_through_a_url() -> None:
    folder = DEFAULT.folder(HOUR_13, stream="a b:c")

    assert relative_to("s3://b/logs", f"s3://b/logs/{folder}") == folder
