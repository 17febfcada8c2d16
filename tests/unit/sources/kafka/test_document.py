"""What all shards of a stream agree on about its topics."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import Halted
from headgate.sources.kafka import Topic
from headgate.sources.kafka.document import (
    KafkaDocument,
    Life,
    fix_starts,
    open_document,
    parsed_name,
    partition_name,
    with_accepted,
    with_next_life,
    with_starts,
    with_topics,
)
from headgate.store import DocumentStore
from headgate.testing.faults import Harm, Point, Scripted, wrap
from headgate.testing.manual import ManualAmbient, manual_store

TOPICS = st.from_regex(r"[A-Za-z0-9._-]{1,20}", fullmatch=True)


@given(TOPICS, st.integers(1, 99), st.integers(0, 10_000))
def test_a_name_says_topic_life_and_number(topic: str, life: int, number: int) -> None:
    assert parsed_name(partition_name(topic, life, number)) == (topic, life, number)


def test_the_first_life_is_not_in_the_name() -> None:
    assert partition_name("orders", 1, 7) == "orders/7"
    assert partition_name("orders", 2, 7) == "orders~2/7"


@pytest.mark.parametrize("name", ["lane-0", "orders", "orders/", "/7", "orders/x", "orders~/1"])
def test_what_is_no_partition_of_a_topic_stops_everything(name: str) -> None:
    with pytest.raises(Halted, match="source of another kind"):
        parsed_name(name)


def test_a_topic_begins_its_first_life_when_it_is_first_seen() -> None:
    found = with_topics(KafkaDocument(), {"t": Topic("a", 3), "u": Topic("", 0, "forbidden")})
    assert found.lives == {"t": Life("a", 1, 3)}


def test_a_life_that_is_known_stays() -> None:
    first = with_topics(KafkaDocument(), {"t": Topic("a", 3)})
    assert with_topics(first, {"t": Topic("b", 5)}) is first
    assert with_topics(first, {"t": Topic("a", 5)}) is first
    assert with_topics(first, {"t": Topic("", 0, is_missing=True)}) is first


def test_the_next_life_has_no_partition_that_was_there_at_the_beginning() -> None:
    first = with_topics(KafkaDocument(), {"t": Topic("a", 3)})
    second = with_next_life(first, "t", Topic("b", 5))
    assert second.lives == {"t": Life("b", 2, 0)}
    assert with_next_life(second, "t", Topic("b", 5)) is second
    assert with_next_life(second, "u", Topic("b", 5)) is second


def test_who_is_first_decides_where_reading_begins() -> None:
    first = with_starts(KafkaDocument(), {"t/0": 5})
    assert with_starts(first, {"t/0": 9, "t/1": 7}).starts == {"t/0": 5, "t/1": 7}
    assert with_starts(first, {"t/0": 9}) is first


def test_a_gap_is_accepted_where_it_begins() -> None:
    found = with_accepted(with_accepted(KafkaDocument(), "t/0", 5), "t/0", 9)
    assert found.accepted == {"t/0": 9}


def test_who_is_second_reads_what_the_first_wrote() -> None:
    store = manual_store(ManualAmbient())
    first = open_document(store, "orders", {"t": Topic("a", 3)})
    second = open_document(store, "orders", {"t": Topic("b", 8), "u": Topic("c", 1)})
    assert second.value.lives == {"t": Life("a", 1, 3), "u": Life("c", 1, 1)}
    assert first.value.lives == {"t": Life("a", 1, 3)}
    assert fix_starts(store, "orders", {"t/0": 5}).starts == {"t/0": 5}
    assert fix_starts(store, "orders", {"t/0": 6, "t/1": 1}).starts == {"t/0": 5, "t/1": 1}
    assert open_document(store, "orders", {}).value.starts == {"t/0": 5, "t/1": 1}


@pytest.mark.parametrize("harm", [Harm.LOSE_REPLY, Harm.LOSE_REQUEST])
def test_an_answer_that_is_lost_changes_nothing(harm: Harm) -> None:
    behind = manual_store(ManualAmbient())
    open_document(behind, "orders", {"t": Topic("a", 1)})
    stage = Scripted([Point(2, harm)])  # the first write
    assert fix_starts(wrap(DocumentStore, behind, stage), "orders", {"t/0": 1}).starts == {"t/0": 1}
    assert stage.is_spent
    fix_starts(behind, "orders", {"t/0": 2})
    assert open_document(behind, "orders", {}).value.starts == {"t/0": 1}
