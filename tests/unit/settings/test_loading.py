import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.engine import EventTime, SparkSettings
from headgate.landing import StepSettings, StreamSettings
from headgate.settings import NodeDefaults, Settings
from headgate.settings.example import EXAMPLE
from headgate.settings.loading import judge
from headgate.settings.parsed import parse
from headgate.settings.problems import Problem, shown
from headgate.sources import FilesSettings

FULL = """\
namespace: demo
store: file:./state
lake: ./lake
streams:
  orders:
    source: {kind: files, path: ./incoming, format: json}   # json lines, csv, text, parquet; gzip
    event_time: {json: $.at, unit: ms}                         # or regex, column, sql
    land_as: parquet                                           # parquet, json, text
    folder: "{yyyy}-{MM}-{dd}/{HH}/{stream}/data"
    shards: 1
    shift: 5m
    grace: 30s
    allowed_lateness: 10m
    future_skew: 5m
    late_records: divert                                       # divert, append, dead-letter
    # first_hour: 2026-11-01T00
tables:
  orders: {kind: parquet, path: ./tables/orders, feed: {stream: orders}}
spark: {master: "local[*]", conf: {}, packages: []}
"""
SMALL = """\
store: file:./state
lake: ./lake
streams:
  orders:
    source: {kind: files, path: ./incoming}
    event_time: {json: $.at}
"""


def settings(text: str, **environ: str) -> Settings:
    found = judge(text.encode(), "/srv/app", environ)
    assert found.settings is not None, list(map(str, found.problems))
    return found.settings


def problems(text: str, **environ: str) -> list[Problem]:
    found = judge(text.encode(), "/srv/app", environ)
    assert found.settings is None
    return list(found.problems)


def problem(text: str, **environ: str) -> str:
    found = problems(text, **environ)
    assert len(found) == 1, list(map(str, found))
    return str(found[0])


def stream(more: str = "", **parts: str) -> str:
    """A file with one stream, in which something is different."""
    keys = {
        "source": "{kind: files, path: ./incoming}",
        "event_time": "{json: $.at}",
        **parts,
    }
    lines = "".join(f"    {key}: {value}\n" for key, value in keys.items())
    return f"store: file:./state\nlake: ./lake\nstreams:\n  orders:\n{lines}{more}"


def orders(text: str) -> StreamSettings:
    return settings(text).streams["orders"]


# ── what loads ────────────────────────────────────────────────────────────────────────────────────


def test_the_settings_of_the_whole_file_are_put_together() -> None:
    found = settings(FULL)

    assert (found.namespace, found.store) == ("demo", "file:/srv/app/state")
    assert found.lake.root == "/srv/app/lake"
    one = found.streams["orders"]
    assert isinstance(one.source, FilesSettings)
    assert (one.source.path, one.source.format) == ("/srv/app/incoming", "json")
    assert one.event_time == EventTime("json", "$.at", "ms")
    assert (one.shift_ms, one.grace_ms) == (300_000, 30_000)
    assert (one.allowed_lateness_ms, one.future_skew_ms) == (600_000, 300_000)
    table = found.tables["orders"]
    assert (table.kind, table.path, table.stream) == ("parquet", "/srv/app/tables/orders", "orders")
    assert found.spark == SparkSettings()


def test_the_example_loads() -> None:
    assert list(settings(EXAMPLE).streams) == ["orders"]


def test_defaults_are_those_of_the_values_themselves() -> None:
    found = settings(SMALL)
    one = found.streams["orders"]

    assert one == StreamSettings(one.name, one.source, one.event_time, one.folder)
    assert found == Settings(found.store, found.lake, streams=found.streams)
    assert found.node == NodeDefaults()


def test_every_key_reaches_its_value() -> None:
    text = SMALL.replace("lake: ./lake", 'lake: {root: l, file_mode: "640", group: data}').replace(
        "    event_time: {json: $.at}\n",
        "    event_time: {column: at, parse: \"yyyy-MM-dd'T'HH:mm\"}\n"
        "    first_hour: 2026-11-01T00\n    last_hour: 2026-11-01T01\n"
        "    record_size_max: 1MiB\n    round_size: 2GB\n"
        "    nodes: [big, big]\n    steps: [{kind: announce, to: {host: h}}]\n"
        "    merge: true\n    target_size: 64MB\n    codec: snappy\n",
    )
    text = text.replace(
        "path: ./incoming",
        "path: in, format: csv, lanes: 4, include: ['*.csv'], exclude: [x], min_age: 10s, "
        "after_read: move, move_to: done, columns: [at, id]",
    )

    found = settings(text + "node: {name: n1, workers: 4, labels: [big]}\n")
    one = found.streams["orders"]

    assert (found.lake.file_mode, found.lake.group) == (0o640, "data")
    assert (one.is_merged, one.target_bytes, one.codec) == (True, 64_000_000, "snappy")
    assert isinstance(one.source, FilesSettings)
    assert (one.source.lanes, one.source.min_age_ms, one.source.move_to) == (
        *(4, 10_000, "/srv/app/done"),
    )
    assert (one.source.include, one.source.exclude) == (("*.csv",), ("x",))
    assert one.source.columns == ("at", "id")
    assert one.event_time == EventTime("column", "at", "text", "yyyy-MM-dd'T'HH:mm")
    assert one.first_hour_ms == 1_793_491_200_000
    assert one.end_ms == 1_793_491_200_000 + 2 * 3_600_000
    assert (one.record_bytes_max, one.round_bytes) == (1_048_576, 2_000_000_000)
    assert one.nodes == ("big",)
    assert one.steps == (StepSettings("announce", {"to": {"host": "h"}}),)
    assert found.node == NodeDefaults("n1", 4, ("big",))


@pytest.mark.parametrize(
    ("land_as", "codec", "said"),
    [
        ("parquet", "zsdt", "is none of 'zstd', "),
        ("parquet", "zsdt", "; the nearest is 'zstd'"),
        ("json", "snappy", "codec: json is not packed by snappy: use none or gzip; the nearest is"),
        ("text", "zstd", "codec: text is not packed by zstd: use none or gzip; the nearest is"),
    ],
)
def test_a_codec_is_one_that_its_format_knows(land_as: str, codec: str, said: str) -> None:
    assert said in problem(stream(land_as=land_as, codec=codec))


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"merge": "true"}, "merge: avro files are not merged: leave it out, or land as parquet"),
        ({"codec": "gzip"}, "codec: avro is not packed by gzip: use deflate or zstd or snappy"),
        (
            {"source": "{kind: files, path: x, format: parquet}", "event_time": "{column: at}"},
            "land_as: Parquet files land as parquet or json, and not as avro",
        ),
    ],
)
def test_what_cannot_be_with_avro_files_is_refused(parts: dict[str, str], said: str) -> None:
    assert said in problem(stream(land_as="avro", **parts))
    assert orders(stream(land_as="avro", codec="deflate")).land_as == "avro"


@pytest.mark.parametrize(("land_as", "codec"), [("json", "gzip"), ("parquet", "none")])
def test_a_codec_that_fits_its_format_is_taken(land_as: str, codec: str) -> None:
    assert orders(stream(land_as=land_as, codec=codec)).codec == codec


@pytest.mark.parametrize(("parse", "pattern"), [('""', ""), ("iso", ""), ("yyyy", "yyyy")])
def test_an_event_time_in_a_text_has_a_pattern_or_is_iso(parse: str, pattern: str) -> None:
    found = orders(stream(event_time=f"{{json: $.at, parse: {parse}}}"))
    assert (found.event_time.unit, found.event_time.pattern) == ("text", pattern)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("file:state", "file:/srv/app/state"),
        ("file:../s%20t", "file:/srv/s%20t"),
        ("file:/abs", "file:/abs"),
        ("file:///abs", "file:///abs"),
        ("zk://h1,h2/x?user=u&password=${env:P}", "zk://h1,h2/x?user=u&password=${env:P}"),
    ],
)
def test_a_store_in_files_starts_at_the_folder_of_the_settings(url: str, expected: str) -> None:
    assert settings(SMALL.replace("file:./state", url)).store == expected


def test_a_folder_with_signs_of_a_url_stays_that_folder() -> None:
    found = judge(SMALL.encode(), "/srv/100%?", {})
    assert found.settings is not None
    assert found.settings.store == "file:/srv/100%25%3F/state"
    assert found.settings.lake.root == "/srv/100%?/lake"


@pytest.mark.parametrize(
    "text", ["./lake", "lake", "file:./lake", "file:/srv/app/lake", "x/../lake"]
)
def test_one_lake_has_one_root_however_it_is_written(text: str) -> None:
    assert settings(SMALL.replace("lake: ./lake", f"lake: {text}")).lake.root == "/srv/app/lake"


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("hdfs://nn:8020/lakes/shop", "hdfs://nn:8020/lakes/shop"),
        ("HDFS://shop-cluster/lake/", "hdfs://shop-cluster/lake"),
    ],
)
def test_a_lake_on_hdfs_has_its_url_and_may_have_modes(text: str, root: str) -> None:
    lake = f'{{root: "{text}", file_mode: "640", folder_mode: "750", group: lakers}}'
    found = settings(SMALL.replace("lake: ./lake", f"lake: {lake}")).lake
    assert (found.root, found.file_mode, found.folder_mode) == (root, 0o640, 0o750)
    assert found.group == "lakers"


@pytest.mark.parametrize(
    ("lake", "said"),
    [
        ('"hdfs://nn:8020"', "hdfs://HOST:PORT/FOLDER"),
        ('"hdfs://nn:8020/"', "hdfs://HOST:PORT/FOLDER"),
        ('"hdfs://nn:8020/a/../b"', "hdfs://HOST:PORT/FOLDER"),
        ('"hdfs://me@nn:8020/a"', "hdfs://HOST:PORT/FOLDER"),
        ('{root: "hdfs://nn:8020/a", endpoint: "http://x:1"}', "on HDFS"),
    ],
)
def test_what_hdfs_cannot_do_is_refused_in_words(lake: str, said: str) -> None:
    problems = judge(SMALL.replace("lake: ./lake", f"lake: {lake}").encode(), "/srv/app", {})
    assert problems.settings is None
    assert said in str(problems.problems)


@pytest.mark.parametrize("mode", ['"640"', "640", "0640", "0o640", '"0640"'])
def test_a_mode_is_written_as_for_chmod(mode: str) -> None:
    text = SMALL.replace("lake: ./lake", f"lake: {{root: l, file_mode: {mode}}}")
    assert settings(text).lake.file_mode == 0o640


@pytest.mark.parametrize("name", ["on", "2026", "a b", "日本", "a/b", '"%"', "x" * 64, '"it\'s"'])
def test_any_text_can_name_a_stream(name: str) -> None:
    assert list(settings(SMALL.replace("  orders:", f"  {name}:")).streams) == [name.strip('"')]


def test_numbers_and_truths_of_spark_are_texts() -> None:
    text = SMALL + "spark: {conf: {spark.a: 4, spark.b: true, spark.c: on, spark.d: 0.5}}\n"
    assert settings(text).spark.conf == {
        **{"spark.a": "4", "spark.b": "true", "spark.c": "on", "spark.d": "0.5"}
    }


# ── where a value comes from ──────────────────────────────────────────────────────────────────────


def test_each_value_says_where_it_comes_from() -> None:
    environ = {"HEADGATE_LAKE": "/l", "HEADGATE__STREAMS__ORDERS__SHIFT": "1h30m"}

    found = judge(SMALL.encode(), "/srv/app", environ)

    seen: dict[str, tuple[Any, str]] = {
        shown(one.place): (one.value, one.origin) for one in found.values
    }
    assert seen["store"] == ("file:/srv/app/state", "line 1")
    assert seen["lake.root"] == ("/l", "HEADGATE_LAKE")
    assert seen["streams.orders.source.path"] == ("/srv/app/incoming", "line 5")
    assert seen["streams.orders.shift"] == ("1h30m", "HEADGATE__STREAMS__ORDERS__SHIFT")
    assert seen["streams.orders.grace"] == ("30s", "default")
    assert seen["streams.orders.record_size_max"] == ("16MB", "default")


# ── what does not ─────────────────────────────────────────────────────────────────────────────────


def test_all_problems_are_said_at_once_in_the_order_of_the_file() -> None:
    text = (
        FULL.replace("shift:", "shfit:")
        .replace("grace: 30s", "grace: 30")
        .replace("unit: ms", "unit: us")
    )
    text = text.replace("stream: orders", "stream: oders").replace("land_as: parquet", "land_as: x")

    found = problems(text, HEADGATE__STREAMS__ORDERS__SHARDS="many", HEADGATE__X="1")

    assert [(shown(one.place), one.where) for one in found] == [
        ("streams.orders.event_time.unit", "line 7"),
        ("streams.orders.land_as", "line 8"),
        ("streams.orders.shfit", "line 11"),
        ("streams.orders.grace", "line 12"),
        ("tables.orders.feed.stream", "line 18"),
        ("streams.orders.shards", "HEADGATE__STREAMS__ORDERS__SHARDS"),
        ("", "HEADGATE__X"),
    ]


@pytest.mark.parametrize(
    ("text", "place", "near"),
    [
        (SMALL + "namespce: x\n", "namespce", "namespace"),
        (stream(shfit="5m"), "streams.orders.shfit", "shift"),
        (stream(source="{kind: files, paht: x, path: x}"), "streams.orders.source.paht", "path"),
        (stream(event_time="{jsn: $.at, json: $.at}"), "streams.orders.event_time.jsn", "json"),
        (SMALL + "spark: {mastr: x}\n", "spark.mastr", "master"),
        (SMALL.replace("lake: ./lake", "lake: {root: x, mode: 1}"), "lake.mode", "file_mode"),
    ],
)
def test_an_unknown_key_is_named_with_its_place_and_the_nearest(
    text: str, place: str, near: str
) -> None:
    said = problem(text)
    assert f": {place}: unknown key" in said
    assert f"the nearest known one is '{near}'" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lake: ./lake\n", "store: is missing"),
        (
            SMALL.replace("    event_time: {json: $.at}\n", ""),
            "streams.orders.event_time: is missing",
        ),
        (SMALL.replace("kind: files, ", ""), "streams.orders.source.kind: is missing"),
        (SMALL + "spark:\n", "spark: is empty"),
        ("store: file:x\nlake: x\nstreams: {orders: }\n", "streams.orders: is empty"),
        (SMALL + "tables: []\n", "tables: needs keys"),
        (SMALL + "spark: {packages: x}\n", "spark.packages: needs a list"),
        (SMALL + "namespace: 5\n", "namespace: needs a text"),
        (SMALL + "namespace: true\n", "namespace: needs a text"),
        (SMALL + "namespace: a/b\n", "must not be empty or contain"),
        (SMALL + "node: {workers: 0}\n", "must be at least 1, not 0"),
        (SMALL + "node: {workers: 1001}\n", "must be at most 1,000"),
        (stream(shards="true"), "needs a whole number, not true"),
        (stream(shards="two"), "needs a whole number"),
        (stream(shards="1.5"), "needs a whole number"),
        (stream(shift=""), "streams.orders.shift: is empty"),
        (stream(shift="5"), "5 has no unit: write it like 5m"),
        (stream(shift="5 minutes"), "is no duration"),
        (stream(shift="0s"), "must be from 100ms to 1d"),
        (stream(round_size="128"), "128 has no unit: write it like 128MB"),
        (stream(merge="yes"), "needs true or false"),
        (stream(target_size="0B"), "must be from 1B to 1TiB, not '0B'"),
        (stream(record_size_max="2GiB"), "must be from 1B to 1GiB"),
        (stream(late_records="apend"), "the nearest is 'append'"),
        (stream(late_records="append"), "not built yet"),
        (stream(folder='"{yyyy}/{stream}"'), "missing: each hour"),
        (stream(first_hour="2026-11-01"), "write its hour, like 2026-11-01T00"),
        (stream(last_hour="2026-11-01"), "write its hour, like 2026-11-01T00"),
        (
            stream(first_hour="2026-11-01T10", last_hour="2026-11-01T09"),
            "last_hour: is before `first_hour: 2026-11-01T10`: no hour would be left",
        ),
        (stream(first_hour="2026-13-01T00"), "not in the calendar"),
        (stream(steps="[{to: x}]"), "streams.orders.steps[0].kind: is missing"),
        (SMALL.replace("lake: ./lake", "lake: gs://b/x"), "not gs:"),
        (SMALL.replace("lake: ./lake", 'lake: "a\\0b"'), "control character"),
        (SMALL.replace("lake: ./lake", 'lake: ""'), "lake.root: is empty"),
        (SMALL.replace("lake: ./lake", "lake: {root: x, file_mode: 240}"), "lock out Headgate"),
        (SMALL.replace("lake: ./lake", "lake: {root: x, folder_mode: 648}"), "is no mode"),
        (SMALL.replace("file:./state", "./state"), "no store URL"),
        (SMALL.replace("file:./state", "file://host/x"), "names a host"),
        (SMALL.replace("  orders:", '  "a\\u0007b":'), "control character"),
        (SMALL.replace("  orders:", f"  {'x' * 65}:"), "1 to 64 characters"),
        (SMALL.replace("  orders:", f"  {'日' * 60}:"), "longer than 255 bytes"),
        (FULL.replace("path: ./tables/orders,", ""), "path: is missing"),
        (FULL.replace("kind: parquet, path: ./tables", "kind: delta, path: ./t"), "not built yet"),
        (FULL.replace("land_as: parquet", "land_as: json"), "a table takes parquet"),
        (FULL.replace("path: ./tables/orders", "path: ./lake/orders"), "lies in the lake"),
        (
            FULL.replace(
                "spark:",
                "  more: {kind: parquet, path: ./tables/orders/x, feed: {stream: orders}}\nspark:",
            ),
            "table 'orders' lies there, too",
        ),
        (FULL.replace("kind: parquet,", "kind: parket,"), "the nearest is 'parquet'"),
        (FULL.replace(", feed: {stream: orders}", ""), "tables.orders.feed: is missing"),
        (SMALL + "namespace: ${env:X}\n", "a reference is for secrets"),
    ],
)
def test_what_is_wrong_is_said_in_words(text: str, said: str) -> None:
    assert said in problem(text)


TWO = (
    SMALL
    + """\
  others:
    source: {kind: files, path: /srv/app/incoming}
    event_time: {json: $.at}
"""
)
HERE, THERE = "path: ./incoming", "path: /srv/app/incoming"


@pytest.mark.parametrize(
    ("here", "there", "is_refused"),
    [
        (HERE, THERE, False),
        (f"{HERE}, after_read: delete", THERE, True),
        (HERE, f"{THERE}, after_read: move, move_to: /done", True),
        (f"{HERE}, after_read: delete, include: [a*]", THERE, True),
        (f"{HERE}, after_read: delete, include: [a*]", f"{THERE}, include: [b*]", False),
        (f"{HERE}, after_read: delete", f"{THERE}/deeper", True),
        (HERE, f"{THERE}/deeper, after_read: delete", True),
        (f"{HERE}, exclude: [deeper/*]", f"{THERE}/deeper, after_read: delete", False),
        (f"{HERE}, after_read: delete", f"{THERE}-2, after_read: delete", False),
    ],
)
def test_two_streams_of_one_folder_of_which_one_takes_files_away_are_refused(
    here: str, there: str, is_refused: bool
) -> None:
    found = judge(TWO.replace(HERE, here).replace(THERE, there).encode(), "/srv/app", {})
    assert (found.settings is None) == is_refused
    if is_refused:
        (one,) = found.problems
        assert str(one).startswith("line 8: streams.others.source.path: stream 'orders' reads")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{kind: files, path: x, after_read: move}", "move_to: is missing"),
        ("{kind: files, path: x, move_to: y}", "has no use with `after_read: keep`"),
        ("{kind: files, path: x, after_read: move, move_to: x/done}", "read again"),
        ("{kind: files, path: x, columns: [a]}", "json files have no columns"),
        ("{kind: files, path: x, format: dead}", "is none of"),
        ("{kind: kafkaa, path: x}", "is none of 'files' or 'kafka'; the nearest is 'kafka'"),
        ("{kind: files, path: x, lanes: 0}", "at least 1"),
        ("{kind: files, path: x, include: '*.json'}", "needs a list"),
    ],
)
def test_a_source_that_cannot_be_is_refused(source: str, said: str) -> None:
    assert said in problem(stream(source=source))


@pytest.mark.parametrize(
    ("event_time", "said"),
    [
        ("{}", "exactly one of json, regex, column, sql, kafka and avro, and has none"),
        ("{unit: ms}", "exactly one of"),
        ("{json: $.a, sql: x}", "has json and sql"),
        ("{json: $.a, unit: s, parse: iso}", "`unit` and `parse`"),
        ("{json: at}", "$.outer.inner"),
        ("{json: $}", "$.outer.inner"),
        ("{json: '$.a[0]'}", "without [0]"),
        ("{json: $.a.*}", "without [0]"),
        ("{json: $..a}", "without [0]"),
        ("{json: $.a b}", "no path"),
        ("{json: \"$['a'\"}", "no path"),
        ("{regex: '(a'}", "is no regular expression"),
        ("{regex: 'a'}", "has 0 groups"),
        ("{regex: '(a)(b)'}", "has 2 groups"),
        ("{regex: '(?P<t>a)'}", "plain group"),
        ("{sql: '  '}", "is empty"),
        ("{json: $.a, parse: YYYY-MM-dd}", "Y means nothing"),
        ("{json: $.a, parse: HH:mm}", "has no year"),
        ('{json: $.a, parse: "yyyy\'T"}', "no second one"),
        ("{column: at}", "has no meaning for json files"),
    ],
)
def test_an_event_time_that_cannot_be_is_refused(event_time: str, said: str) -> None:
    assert said in problem(stream(event_time=event_time))


@pytest.mark.parametrize(
    "path", ["$.a", "$.a.b-c", "$.a['b c'].d", "$['a.b']['*']", "$.größe", "$._x"]
)
def test_a_json_path_is_names(path: str) -> None:
    assert orders(stream(event_time=f'{{json: "{path}"}}')).event_time.text == path


def test_streams_that_differ_in_upper_and_lower_case_only_are_refused() -> None:
    one = "{source: {kind: files, path: x}, event_time: {json: $.at}}"
    said = problem(f"store: file:x\nlake: x\nstreams:\n  Orders: {one}\n  orders: {one}\n")
    assert "streams.orders: differs from 'Orders' only in" in said


def test_a_table_of_no_stream_is_named_with_the_nearest() -> None:
    assert "the nearest is 'orders'" in problem(FULL.replace("stream: orders", "stream: order"))


def test_a_problem_of_the_text_and_one_of_a_value_are_said_together() -> None:
    found = problems(SMALL + "namespace: a/b\nlake: other\n")
    assert [one.line for one in found] == [7, 8]


def test_a_missing_store_can_come_from_the_environment() -> None:
    found = settings(SMALL.replace("store: file:./state\n", ""), HEADGATE_STORE="file:/s")
    assert found.store == "file:/s"


PLACES = [
    *(("store",), ("lake",), ("lake", "root"), ("streams",), ("streams", "orders"), ("tables",)),
    *(("streams", "orders", key) for key in ("source", "event_time", "folder", "steps", "shift")),
    *(("streams", "orders", "source", key) for key in ("path", "columns", "format", "move_to")),
    *(("streams", "orders", "event_time", key) for key in ("json", "regex", "parse", "unit")),
    *(("spark",), ("spark", "conf"), ("spark", "conf", "x"), ("spark", "remote"), ("node",)),
    *(("tables", "t"), ("tables", "t", "feed"), ("lake", "file_mode")),
]
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(PLACES), ODD, max_size=3))
def test_no_value_anywhere_raises_anything(values: dict[tuple[str, ...], Any]) -> None:
    tree = parse(SMALL.encode()).tree
    for place, value in values.items():
        inner = tree
        for step in place[:-1]:
            below = inner.get(step)
            inner[step] = below if isinstance(below, dict) else {}
            inner = inner[step]
        inner[place[-1]] = value

    found = judge(json.dumps(tree).encode(), "/srv/app", {})

    assert (found.settings is None) == bool(found.problems)
    assert all("\n" not in str(one) for one in found.problems)


# ── secrets ───────────────────────────────────────────────────────────────────────────────────────

BARE = "hunter2"


@pytest.mark.parametrize(
    "text",
    [
        SMALL + f"spark: {{conf: {{spark.hadoop.fs.s3a.secret.key: {BARE}}}}}\n",
        SMALL + f"spark: {{conf: {{spark.hadoop.fs.s3a.access.key: {BARE}}}}}\n",
        SMALL + f"spark: {{conf: {{spark.ssl.keyPassword: {BARE}}}}}\n",
        SMALL + f"spark: {{conf: {{spark.x.token: {BARE}}}}}\n",
        SMALL + f"spark: {{conf: {{spark.x.token: 'a ${{env:X}} {BARE}'}}}}\n",
        SMALL + f"spark: {{conf: {{spark.url: 'jdbc:x://u:{BARE}@h/d'}}}}\n",
        SMALL + f"spark: {{conf: {{spark.driver.extraJavaOptions: -Dpassword={BARE}}}}}\n",
        SMALL + f"spark: {{conf: {{spark.x.password: [{BARE}]}}}}\n",
        SMALL + f"spark: {{remote: 'sc://h:15002/;token={BARE}'}}\n",
        SMALL.replace("file:./state", f"zk://u:{BARE}@h/x"),
        SMALL.replace("file:./state", f"es://h/x?password={BARE}"),
        SMALL.replace("lake: ./lake", f"lake: s3://k:{BARE}@b/x"),
        stream(steps=f"[{{kind: post, auth: {{api_key: {BARE}}}}}]"),
    ],
)
def test_a_bare_secret_is_refused_and_never_repeated(text: str) -> None:
    found = problems(text)
    assert found
    assert not any(BARE in f"{one} {one!r}" for one in found)


def test_every_bare_secret_is_named() -> None:
    conf = f"{{spark.a.password: {BARE}, spark.b.token: 12345}}"
    found = problems(SMALL + f"spark: {{conf: {conf}}}\n")
    assert [shown(one.place) for one in found] == [
        'spark.conf["spark.a.password"]',
        'spark.conf["spark.b.token"]',
    ]


def test_a_bare_secret_from_the_environment_is_refused_as_well() -> None:
    text = SMALL + "spark: {conf: {spark.x.password: '${env:P}'}}\n"
    said = problem(text, HEADGATE__SPARK__CONF__SPARK_X_PASSWORD=BARE)
    assert BARE not in said
    assert said.startswith("HEADGATE__SPARK__CONF__SPARK_X_PASSWORD: ")


@pytest.mark.parametrize("remote", ["local[1]", "spark://h:7077", "h:15002"])
def test_a_remote_that_is_no_connect_server_is_refused(remote: str) -> None:
    said = problem(SMALL + f"spark: {{remote: '{remote}'}}\n")
    assert "spark.remote: is no Spark Connect server, which is written sc://" in said


def test_references_stay_references() -> None:
    text = SMALL + "spark: {remote: '${env:R}', conf: {spark.x.password: '${file:/run/p}'}}\n"
    found = settings(text).spark
    assert (found.remote, found.conf) == ("${env:R}", {"spark.x.password": "${file:/run/p}"})
