"""What all shards of a stream agree on."""

from dataclasses import replace

import pytest

from headgate.commits.streams import stream_key
from headgate.errors import Invalid
from headgate.landing.kind import LandFeed, kind_name
from headgate.landing.stream_document import fix_first_hour, open_stream, shard_of
from headgate.periods import HOUR_MS
from headgate.testing.estuary import settings_of
from headgate.testing.manual import ManualAmbient, manual_store


def test_the_number_of_shards_is_fixed_by_the_first_who_opens_it() -> None:
    store = manual_store(ManualAmbient())
    assert open_stream(store, settings_of(3)).shards == 3
    with pytest.raises(Invalid, match="next: write shards: 3, or give the stream another name"):
        open_stream(store, settings_of(4))


def test_whoever_is_first_decides_the_first_hour() -> None:
    store = manual_store(ManualAmbient())
    open_stream(store, settings_of())
    assert fix_first_hour(store, "orders", 7_200_000) == 7_200_000
    assert fix_first_hour(store, "orders", 3_600_000) == 7_200_000


def test_a_first_hour_of_the_settings_stands_from_the_start() -> None:
    store = manual_store(ManualAmbient())
    settings = replace(settings_of(), first_hour_ms=3_600_000)
    assert open_stream(store, settings).first_hour_ms == 3_600_000
    assert fix_first_hour(store, "orders", 7_200_000) == 3_600_000


def test_a_source_partition_belongs_to_one_shard_for_ever() -> None:
    assert [shard_of(f"lane-{n}", 4) for n in range(6)] == [0, 3, 3, 3, 2, 1]
    assert {shard_of(f"lane-{n}", 4) for n in range(100)} == {0, 1, 2, 3}


def test_g10_streams_that_look_alike_have_documents_apart() -> None:
    assert len({stream_key(name) for name in ("a:b", "a b", "a/b")}) == 3


def test_a_stream_feeds_one_task_for_each_shard() -> None:
    feed = LandFeed(replace(settings_of(3), nodes=("big",)))
    orders = feed.wanted(1, 10)
    assert [(order.kind, order.labels) for order in orders] == [(kind_name("orders"), ("big",))] * 2
    assert orders[0].payload == b'{"stream": "orders", "shard": 1}'
    assert feed.wanted(3, 10) == ()


def test_k7_a_first_hour_that_the_settings_say_later_counts_until_something_has_landed() -> None:
    store = manual_store(ManualAmbient())
    assert open_stream(store, settings_of()).first_hour_ms is None
    later = replace(settings_of(), first_hour_ms=3 * HOUR_MS)
    assert open_stream(store, later).first_hour_ms == 3 * HOUR_MS
    again = replace(settings_of(), first_hour_ms=9 * HOUR_MS)
    assert open_stream(store, again).first_hour_ms == 3 * HOUR_MS
