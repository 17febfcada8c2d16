"""Streams that come into being with their topics."""

from collections.abc import Collection, Mapping

import pytest

from headgate import App, Invalid, Kafka, Stream
from headgate.app.growth import LOOK_MS, TopicWatch, discover, grown, grown_from
from headgate.errors import Unavailable
from headgate.settings import Settings
from headgate.sources import KafkaSettings
from headgate.sources.kafka import Bounds, Keeping, Sample, Topic, TopicPartition
from headgate.sources.kafka.templates import matching, note_topics, read_topics
from headgate.store import DocumentStore
from headgate.store.registry import open_store
from headgate.testing.manual import ManualAmbient


class Cluster:
    """Only its topics are asked for."""

    def __init__(self, *names: str) -> None:
        self.all = [*names]
        self.is_silent = False

    def names(self) -> list[str]:
        if self.is_silent:
            raise Unavailable("nobody answers")
        return self.all

    def topics(self, names: Collection[str]) -> Mapping[str, Topic]:
        raise AssertionError(names)

    def bounds(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, Bounds]:
        raise AssertionError(partitions)

    def offsets_at(
        self, partitions: Collection[TopicPartition], at_ms: int
    ) -> Mapping[TopicPartition, int]:
        raise AssertionError(partitions, at_ms)

    def keeping(self, names: Collection[str]) -> Mapping[str, Keeping]:
        raise AssertionError(names)

    def sample(self, partition: TopicPartition, offset: int, records_max: int) -> Sample:
        raise AssertionError(partition, offset, records_max)

    def count(self, partition: TopicPartition, first: int, following: int) -> int:
        raise AssertionError(partition, first, following)


@pytest.fixture
def settings() -> Settings:
    app = App("memory:x", "/lake")
    app.add(Stream("in_{topic}", Kafka("h:1", pattern="shop[.].*"), "$.at", shift="1m"))
    app.add(Stream("in_shop.own", Kafka("h:1", "shop.own"), "$.at", shift="2m"))
    return app._settings


@pytest.fixture
def store(request: pytest.FixtureRequest) -> DocumentStore:
    return open_store(f"memory:{request.node.name}", ambient=ManualAmbient())


def test_only_a_whole_match_counts_and_never_a_topic_of_kafka_itself() -> None:
    names = ["shop.b", "my.shop.c", "shop.a", "__consumer_offsets", "shop"]

    assert matching(names, "shop[.].*") == ["shop.a", "shop.b"]
    assert matching(names, ".*") == ["my.shop.c", "shop", "shop.a", "shop.b"]


def test_each_topic_is_a_stream_with_the_settings_of_its_template(settings: Settings) -> None:
    found = grown(settings, {"in_{topic}": ("shop.a", "shop.own")})

    assert [*found.streams] == ["in_shop.own", "in_shop.a"]
    one = found.streams["in_shop.a"]
    assert isinstance(one.source, KafkaSettings)
    assert (one.name, one.shift_ms) == ("in_shop.a", 60_000)
    assert (one.source.topics, one.source.pattern) == (("shop.a",), "")
    assert found.streams["in_shop.own"].shift_ms == 120_000, "the settings name it themselves"


def test_a_topic_whose_name_is_too_long_for_a_stream_becomes_none(settings: Settings) -> None:
    assert grown(settings, {"in_{topic}": ("shop." + "x" * 100,)}) == settings


def test_what_was_found_is_known_to_who_asks_no_cluster(
    settings: Settings, store: DocumentStore
) -> None:
    cluster = Cluster("shop.a", "other")
    discover(settings, store, lambda _: cluster)

    assert [*grown_from(settings, store).streams] == ["in_shop.own", "in_shop.a"]


def test_a_topic_that_is_gone_and_a_silent_cluster_take_nothing_away(
    settings: Settings, store: DocumentStore
) -> None:
    cluster = Cluster("shop.a", "shop.b")
    discover(settings, store, lambda _: cluster)
    cluster.all = ["shop.c"]

    assert discover(settings, store, lambda _: cluster) == {
        "in_{topic}": ("shop.a", "shop.b", "shop.c")
    }
    cluster.is_silent = True
    assert discover(settings, store, lambda _: cluster)["in_{topic}"][-1] == "shop.c"


def test_two_nodes_that_find_topics_at_once_lose_none(store: DocumentStore) -> None:
    note_topics(store, "t_{topic}", ["a", "b"])
    assert note_topics(store, "t_{topic}", ["b", "c"]) == ("a", "b", "c")
    assert read_topics(store, ["t_{topic}", "u_{topic}"]) == {
        "t_{topic}": ("a", "b", "c"),
        "u_{topic}": (),
    }


def test_a_running_node_hears_of_new_topics_once(settings: Settings, store: DocumentStore) -> None:
    cluster, ambient = Cluster("shop.a"), ManualAmbient()
    known = discover(settings, store, lambda _: cluster)
    watch = TopicWatch(settings, known, store, lambda _: cluster, ambient)
    cluster.all.append("shop.b")

    assert watch.tick() == ambient.monotonic_ms() + LOOK_MS
    assert not watch.has_news, "not before its time"
    ambient.pass_ms(LOOK_MS)
    watch.tick()
    assert watch.has_news


def test_a_node_whose_neighbour_found_them_hears_of_them_too(
    settings: Settings, store: DocumentStore
) -> None:
    cluster, ambient = Cluster("shop.a"), ManualAmbient()
    known = discover(settings, store, lambda _: cluster)
    watch = TopicWatch(settings, known, store, lambda _: cluster, ambient)
    note_topics(store, "in_{topic}", ["shop.b"])
    cluster.is_silent = True

    ambient.pass_ms(LOOK_MS)
    watch.tick()

    assert watch.has_news


@pytest.mark.parametrize(
    ("name", "source", "words"),
    [
        ("orders", Kafka("h:1", pattern="a.*"), "put {topic} into its name"),
        ("{topic}", Kafka("h:1", "a"), "is for a source with a `pattern`"),
        ("{topic}", Kafka("h:1", pattern="("), "is no regular expression"),
        ("{topic}", Kafka("h:1", "a", pattern="a"), "exactly one of `topic`, `topics` and"),
        ("orders", Kafka("h:1"), "exactly one of `topic`, `topics` and"),
    ],
)
def test_what_cannot_be_a_template_is_refused(name: str, source: Kafka, words: str) -> None:
    with pytest.raises(Invalid) as refused:
        App("memory:x", "/lake").add(Stream(name, source, "$.at"))

    assert words in str(refused.value)
