"""What a topic may go through: records that expired, a topic made again, a forbidden one."""

from dataclasses import replace
from typing import Any

import pytest

from headgate.errors import Halted
from headgate.sources import Gap
from headgate.sources.kafka.source import CLOSED
from headgate.testing.weir import Weir
from tests.unit.sources.kafka.rivers import River, spans, values


def told(gaps: list[Gap]) -> list[tuple[str, str, str]]:
    return [(gap.partition, gap.first, gap.next) for gap in gaps]


def expired(**changed: Any) -> River:
    """Read up to offset 5; then 8 of 12 were gone."""
    river = River(**changed)
    river.weir.send("t", 0, values(5))
    river.round()
    river.weir.send("t", 0, values(7))
    river.weir.expire("t", 0, 8)
    return river


# Records that expired before they were read


def test_what_expired_stops_everything_until_a_person_decides() -> None:
    river = expired()
    with pytest.raises(Halted, match=r"t/0: offsets 5 to 7 expired before they were read") as told_:
        river.look()
    assert "next: headgate gap accept orders t/0 --reason" in str(told_.value)
    assert river.plan().is_empty


def test_an_accepted_gap_is_on_record_once() -> None:
    river = expired()
    river.accept_gap("t/0", 5)
    assert river.round() == [("t/0", 8, 12)]
    assert told(river.gaps) == [("t/0", "5", "8")]
    assert river.gaps[0].reason == (
        "offsets 5 to 7 expired before they were read; accepted by a person"
    )
    assert river.round() == []
    assert len(river.gaps) == 1


def test_an_accepted_gap_is_no_leave_for_the_next_one() -> None:
    river = expired()
    river.accept_gap("t/0", 5)
    river.round()
    river.weir.send("t", 0, values(3))
    river.weir.expire("t", 0, 14)
    with pytest.raises(Halted, match="offsets 12 to 13 expired"):
        river.look()


def test_reading_goes_on_with_what_is_left() -> None:
    river = expired(out_of_range="earliest")
    assert river.round() == [("t/0", 8, 12)]
    assert told(river.gaps) == [("t/0", "5", "8")]
    assert "out_of_range: earliest" in river.gaps[0].reason


def test_reading_goes_on_at_the_end() -> None:
    river = expired(out_of_range="latest")
    assert river.round() == []
    assert told(river.gaps) == [("t/0", "5", "12")]
    assert "out_of_range: latest" in river.gaps[0].reason
    assert river.positions["t/0"] == "12"
    river.weir.send("t", 0, values(1))
    assert river.round() == [("t/0", 12, 13)]
    assert len(river.gaps) == 1


def test_a_gap_is_in_no_plan_behind_the_one_that_has_it() -> None:
    river = expired(out_of_range="earliest")
    river.look()
    first = river.plan(1)
    ahead = {**river.positions, **{name: one.next for name, one in first.ranges.items()}}
    second = river.source.plan(ahead, size_bytes_max=1)
    assert (told([*first.gaps]), second.gaps) == ([("t/0", "5", "8")], ())
    assert (spans(first), spans(second)) == ([("t/0", 8, 9)], [("t/0", 9, 10)])


def test_a_gap_is_recorded_though_nothing_is_left() -> None:
    river = expired(out_of_range="earliest")
    river.weir.expire("t", 0, 12)
    plan = river.looked()
    assert not plan.has_input
    assert plan.ranges["t/0"].next == "12"
    river.commit(plan)
    assert told(river.gaps) == [("t/0", "5", "12")]
    assert river.looked().is_empty


@pytest.mark.parametrize(
    ("until", "gap_end", "read"), [("10", "8", [("t/0", 8, 10)]), ("7", "7", []), ("8", "8", [])]
)
@pytest.mark.parametrize("policy", ["earliest", "latest"])
def test_a_range_read_again_has_what_is_left_of_it_and_the_gap_in_it(
    policy: str, until: str, gap_end: str, read: list[tuple[str, int, int]]
) -> None:
    river = expired(out_of_range=policy)
    river.look()
    plan = river.plan(until={"t/0": until})
    assert spans(plan) == read
    assert told([*plan.gaps]) == [("t/0", "5", gap_end)]
    assert (plan.ranges["t/0"].first, plan.ranges["t/0"].next) == ("5", until)


def test_an_end_that_moved_back_stops_everything() -> None:
    river = River()
    river.weir.send("t", 0, values(9))
    river.round()
    river.weir.cut("t", 0, 4)
    with pytest.raises(Halted, match=r"t/0: its end is offset 4, and 9 was reached before"):
        river.look()


# A topic that was deleted and made again


def recreated(**changed: Any) -> River:
    river = River(**changed)
    river.weir.send("t", 0, values(5))
    river.weir.send("t", 1, values(2))
    river.round()
    river.weir.send("t", 0, values(4))
    river.weir.make("t", 3)
    river.weir.send("t", 0, values(20))
    return river


def test_a_topic_made_again_stops_everything_until_a_person_decides() -> None:
    river = recreated()
    with pytest.raises(Halted, match="topic t was deleted and made again") as told_:
        river.look()
    assert "next: headgate gap accept orders t --reason" in str(told_.value)
    assert river.positions.keys() == {"t/0", "t/1"}
    river.source = river.opened()  # whoever comes next sees it, too
    with pytest.raises(Halted, match="made again"):
        river.look()


@pytest.mark.parametrize("start", ["beginning", "end"])
def test_the_next_life_is_read_from_its_beginning_and_the_old_one_ends_with_a_gap(
    start: str,
) -> None:
    river = recreated(start=start)
    river.accept("t")

    plan = river.looked()
    river.commit(plan)

    assert spans(plan) == [("t~2/0", 0, 20)]
    old = {"t/0": CLOSED, "t/1": CLOSED}
    assert river.positions == {**old, "t~2/0": "20", "t~2/1": "", "t~2/2": ""}
    firsts = {"beginning": ("5", "2"), "end": ("", "")}[start]
    assert sorted(told(river.gaps)) == [
        ("t/0", firsts[0], CLOSED), ("t/1", firsts[1], CLOSED),
    ]  # fmt: skip
    assert plan.ends_ms.keys() == river.positions.keys()

    again = river.looked()
    assert again.is_empty
    assert again.gaps == ()
    assert again.ends_ms == dict.fromkeys(river.positions, river.now_ms)
    waiting = river.look()
    assert (waiting.unreadable, waiting.unfinished, waiting.why) == (0, 0, "")


def test_what_is_closed_stays_closed_whatever_is_asked() -> None:
    river = recreated()
    river.accept("t")
    river.round()
    plan = river.plan(until={"t~2/0": "20"})
    assert not plan.gaps
    other = river.opened()
    assert "t/0" not in other.partitions(), "its checkpoint knows it"
    river.source = other
    assert river.round() == []
    other.settle(river.positions)


def test_a_commit_that_closed_is_made_again() -> None:
    river = recreated()
    river.accept("t")
    river.look()
    until = {"t/0": CLOSED, "t/1": CLOSED, "t~2/0": "20"}
    plan = river.plan(until=until)
    assert {name: one.next for name, one in plan.ranges.items()} == until
    assert sorted(told([*plan.gaps])) == [("t/0", "5", CLOSED), ("t/1", "2", CLOSED)]
    assert spans(plan) == [("t~2/0", 0, 20)]


def test_a_range_of_an_earlier_life_cannot_be_read_again_and_is_a_gap_later() -> None:
    river = recreated()
    river.accept("t")
    river.look()
    plan = river.plan(until={"t/0": "9"})
    assert (plan.ranges, plan.gaps, plan.spans) == ({}, (), ())
    river.round()
    assert ("t/0", "5", CLOSED) in told(river.gaps)


def test_a_third_life_follows_the_second() -> None:
    river = recreated()
    river.accept("t")
    river.round()
    river.weir.make("t", 1)
    river.weir.send("t", 0, values(1))
    with pytest.raises(Halted):
        river.look()
    river.accept("t")
    assert river.round() == [("t~3/0", 0, 1)]
    assert told(river.gaps)[2:] == [("t~2/0", "20", CLOSED), ("t~2/1", "", CLOSED),
        ("t~2/2", "", CLOSED)]  # fmt: skip


# A topic that cannot be asked for


def two_topics() -> River:
    weir = Weir()
    weir.make("t", 2)
    weir.make("u", 2)
    return River(weir, topics=("t", "u"))


def test_k7_a_forbidden_topic_holds_the_hour_and_keeps_no_other_from_being_read() -> None:
    river = two_topics()
    river.weir.forbidden = {"u"}
    river.weir.send("t", 0, values(5))
    waiting = river.look()
    assert waiting.unreadable == 1
    assert waiting.why.startswith("topic u may not be read")
    assert river.positions.keys() == {"t/0", "t/1", "u/0"}
    plan = river.plan()
    assert spans(plan) == [("t/0", 0, 5)]
    assert plan.ends_ms.keys() == {"t/0", "t/1"}

    river.weir.forbidden = set()
    river.weir.send("u", 1, values(3))
    assert river.round() == [("t/0", 0, 5), ("u/1", 0, 3)]
    assert river.ends_ms.keys() == {"t/0", "t/1", "u/0", "u/1"}


def test_a_topic_that_is_not_there_yet_holds_the_hour() -> None:
    river = two_topics()
    river.weir.delete("u")
    waiting = river.look()
    assert (waiting.unreadable, waiting.why[:22]) == (1, "topic u is not there; ")
    assert "u/0" not in river.plan().ends_ms


@pytest.mark.parametrize("trouble", ["forbidden", "deleted"])
def test_c1_partitions_stay_though_their_topic_can_no_longer_be_described(trouble: str) -> None:
    river = two_topics()
    river.look()
    before = river.source.partitions()
    if trouble == "forbidden":
        river.weir.forbidden = {"u"}
    else:
        river.weir.delete("u")
    assert river.source.partitions() == before
    assert set(river.opened().partitions()) == set(before)
    waiting = river.look()
    assert waiting.unreadable == 1
    assert not {"u/0", "u/1"} & river.plan().ends_ms.keys()


def test_a_topic_that_comes_late_begins_like_the_others() -> None:
    river = two_topics()
    river.settings = replace(river.settings, start="end")
    river.source = river.opened()
    river.weir.forbidden = {"u"}
    river.round()
    river.weir.send("u", 0, values(5))
    river.weir.forbidden = set()
    assert river.round() == []
    assert river.document.starts["u/0"] == 5


def test_a_topic_that_left_the_settings_says_that_hours_wait_for_it() -> None:
    river = two_topics()
    river.round()
    river.reopen(topics=("t",))
    waiting = river.look()
    assert waiting.unreadable == 1
    assert waiting.why.startswith("topic u is not in the settings any more")
    assert river.plan().ends_ms.keys() == {"t/0", "t/1"}
