"""A Kafka cluster in memory does what was seen of a real one."""

import pytest

from headgate.errors import Unavailable
from headgate.sources.kafka import Bounds, Keeping, Sample
from headgate.testing.weir import ABORTED, Weir

T = ("t", 0)


@pytest.fixture
def weir() -> Weir:
    found = Weir()
    found.make("t", 2, retention_ms=1_000)
    return found


def bounds(weir: Weir) -> Bounds:
    return weir.cluster().bounds([T])[T]


def test_up_to_an_open_transaction_everything_is_stable(weir: Weir) -> None:
    weir.send("t", 0, [b"x"] * 10)
    transaction = weir.begin("t", 0, [b"y"] * 5)
    assert bounds(weir) == Bounds(0, 15, 10)
    weir.send("t", 0, [b"z"])
    assert bounds(weir) == Bounds(0, 16, 10)
    weir.end(transaction)
    assert bounds(weir) == Bounds(0, 17, 17)


def test_a_marker_takes_an_offset_and_is_no_record(weir: Weir) -> None:
    weir.send("t", 0, [b"x"] * 10)
    weir.end(weir.begin("t", 0, [b"y"] * 5))
    assert bounds(weir) == Bounds(0, 16, 16)
    assert weir.cluster().count(T, 0, 16) == 15
    assert weir.cluster().count(T, 15, 16) == 0


@pytest.mark.parametrize(("isolation", "seen"), [("read_committed", 2), ("read_uncommitted", 5)])
def test_what_was_aborted_is_nobodys(weir: Weir, isolation: str, seen: int) -> None:
    weir.send("t", 0, [b"x"] * 2)
    weir.end(weir.begin("t", 0, [b"y"] * 3), ABORTED)
    assert weir.cluster(isolation).count(T, 0, 6) == seen


def test_a_transaction_ends_in_all_its_partitions(weir: Weir) -> None:
    transaction = weir.begin("t", 0, [b"x"])
    weir.join(transaction, "t", 1, [b"y"])
    weir.end(transaction)
    found = weir.cluster().bounds([("t", 0), ("t", 1)])
    assert set(found.values()) == {Bounds(0, 2, 2)}


def test_what_expired_cannot_be_read(weir: Weir) -> None:
    weir.send("t", 0, [b"x"] * 10)
    weir.expire("t", 0, 4)
    assert bounds(weir) == Bounds(4, 10, 10)
    assert weir.cluster().count(T, 4, 10) == 6
    with pytest.raises(Unavailable):
        weir.cluster().count(T, 3, 10)
    with pytest.raises(Unavailable):
        weir.cluster().sample(T, 11, 1)


def test_all_may_expire_and_the_end_stays(weir: Weir) -> None:
    weir.send("t", 0, [b"x"] * 3)
    weir.expire("t", 0, 3)
    assert bounds(weir) == Bounds(3, 3, 3)
    assert weir.send("t", 0, [b"x"]) == 3


def test_a_topic_made_again_begins_anew_with_another_id(weir: Weir) -> None:
    weir.send("t", 0, [b"x"] * 3)
    before = weir.cluster().topics(["t"])["t"]
    weir.make("t", 3)
    after = weir.cluster().topics(["t"])["t"]
    assert (before.id != after.id, before.partitions, after.partitions) == (True, 2, 3)
    assert bounds(weir) == Bounds(0, 0, 0)


def test_missing_and_forbidden_are_told_apart_and_have_no_id(weir: Weir) -> None:
    weir.forbidden = {"t"}
    found = weir.cluster().topics(["t", "u"])
    assert [(one.id, one.is_missing) for one in found.values()] == [("", False), ("", True)]
    assert all(one.why for one in found.values())
    assert weir.cluster().bounds([("t", 0), ("u", 0)]) == {}


def test_an_offset_is_found_by_time_or_it_is_the_end(weir: Weir) -> None:
    weir.send("t", 0, [b"x"] * 3, at_ms=10)
    weir.send("t", 0, [b"x"] * 3, at_ms=20)
    cluster = weir.cluster()
    assert [cluster.offsets_at([T], ms)[T] for ms in (5, 10, 11, 20, 21)] == [0, 0, 3, 3, 6]


def test_a_sample_is_of_what_is_read_next(weir: Weir) -> None:
    weir.send("t", 0, [b"x", b"yyy", None], at_ms=10)
    assert weir.cluster().sample(T, 1, 100) == Sample(2, 3, 10)
    assert weir.cluster().sample(T, 0, 1) == Sample(1, 1, 10)
    assert weir.cluster().sample(T, 3, 100) == Sample(0, 0, None)


def test_settings_of_a_topic_may_be_secret(weir: Weir) -> None:
    assert weir.cluster().keeping(["t", "u"]) == {"t": Keeping(1_000, is_compacted=False)}
    weir.has_secret_settings = True
    assert weir.cluster().keeping(["t"]) == {}


def test_a_cluster_that_is_silent_answers_nothing(weir: Weir) -> None:
    weir.is_silent = True
    cluster = weir.cluster()
    for ask in (
        lambda: cluster.topics(["t"]),
        lambda: cluster.bounds([T]),
        lambda: cluster.offsets_at([T], 1),
        lambda: cluster.keeping(["t"]),
        lambda: cluster.sample(T, 0, 1),
        lambda: cluster.count(T, 0, 1),
    ):
        with pytest.raises(Unavailable):
            ask()
