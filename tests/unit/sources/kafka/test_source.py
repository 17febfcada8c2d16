"""The Kafka source: where it starts, what it plans, and what proves that nothing is left."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.engine import OFFSETS_TALLIED, Tally
from headgate.errors import Conflict, Corrupt, Halted, Unavailable
from headgate.sources.kafka.source import CLOSED
from headgate.testing.weir import ABORTED, COMMITTED, Weir
from tests.unit.sources.kafka.rivers import River, spans, values


def tallied(partition: str, *offsets: int) -> Tally:
    first = offsets[0] - offsets[0] % OFFSETS_TALLIED
    return Tally("0-1", partition, first, "data", len(offsets), min(offsets), max(offsets), None)


# Where reading begins


def test_a_stream_begins_with_what_is_there() -> None:
    river = River()
    river.weir.send("t", 0, values(5))
    river.weir.expire("t", 0, 2)
    river.weir.send("t", 1, values(3))
    assert river.round() == [("t/0", 2, 5), ("t/1", 0, 3)]
    assert river.gaps == []
    assert river.positions == {"t/0": "5", "t/1": "3"}


def test_a_stream_may_begin_at_the_end() -> None:
    river = River(start="end")
    river.weir.send("t", 0, values(5))
    assert river.round() == []
    river.weir.send("t", 0, values(2))
    assert river.round() == [("t/0", 5, 7)]


def test_a_stream_may_begin_at_a_time() -> None:
    river = River(start="time", start_ms=1_000)
    river.weir.send("t", 0, values(3), at_ms=999)
    river.weir.send("t", 0, values(2), at_ms=1_000)
    river.weir.send("t", 1, values(4), at_ms=10)
    assert river.round() == [("t/0", 3, 5)]
    assert river.document.starts == {"t/0": 3, "t/1": 4}


@pytest.mark.parametrize(("start", "start_ms"), [("beginning", None), ("end", None), ("time", 5)])
def test_the_start_is_fixed_once_even_if_a_second_holder_looks_later(
    start: str, start_ms: int | None
) -> None:
    river = River(start=start, start_ms=start_ms)
    river.weir.send("t", 0, values(5), at_ms=1)
    river.look()
    fixed = dict(river.document.starts)
    river.weir.send("t", 0, values(7), at_ms=1)

    river.source = river.opened()
    plan = river.looked()

    first = 0 if start == "beginning" else 5
    assert fixed == {"t/0": first, "t/1": 0} == river.document.starts
    assert spans(plan) == [("t/0", first, 12)]


def test_what_expires_between_the_first_look_and_the_first_read_is_a_gap() -> None:
    river = River(out_of_range="earliest")
    river.weir.send("t", 0, values(5))
    river.look()
    river.weir.expire("t", 0, 3)

    assert river.round() == [("t/0", 3, 5)]
    assert [(gap.partition, gap.first, gap.next) for gap in river.gaps] == [("t/0", "0", "3")]


def test_a_start_inside_an_open_transaction_waits_for_it() -> None:
    river = River(start="end")
    river.weir.send("t", 0, values(5))
    transaction = river.weir.begin("t", 0, values(2))
    assert river.round() == []
    river.weir.end(transaction)
    assert river.round() == [("t/0", 5, 8)]


def test_a_partition_whose_start_cannot_be_told_is_not_read_yet() -> None:
    river = River(start="end")
    river.weir.leaderless = {("t", 1)}
    river.weir.send("t", 1, values(3))
    assert river.round() == []
    assert set(river.ends_ms) == {"t/0"}
    river.weir.leaderless = set()
    assert river.round() == []
    assert river.document.starts == {"t/0": 0, "t/1": 3}


@pytest.mark.parametrize("start", ["beginning", "end"])
def test_a_partition_that_is_added_is_read_from_its_beginning(start: str) -> None:
    river = River(start=start)
    river.weir.send("t", 0, values(5))
    river.round()
    river.weir.widen("t", 4)
    river.weir.send("t", 3, values(2))
    assert ("t/3", 0, 2) in river.round()
    assert set(river.ends_ms) == {"t/0", "t/1", "t/2", "t/3"}


# What is planned


def test_a_plan_reads_on_from_where_the_commit_under_way_leads() -> None:
    river = River()
    river.weir.send("t", 0, values(10, 100))
    river.look()
    first = river.plan(300)
    ahead = {**river.positions, **{name: one.next for name, one in first.ranges.items()}}
    second = river.source.plan(ahead, size_bytes_max=300)
    assert (spans(first), spans(second)) == ([("t/0", 0, 3)], [("t/0", 3, 6)])
    assert second.ranges["t/0"].first == "3"
    assert (first.has_more, set(first.ends_ms)) == (True, {"t/1"})


def test_nothing_is_planned_of_what_has_not_joined() -> None:
    river = River()
    river.weir.send("t", 0, values(5))
    river.weir.send("t", 1, values(5))
    river.look()
    plan = river.source.plan({"t/1": ""}, size_bytes_max=10**9)
    assert spans(plan) == [("t/1", 0, 5)]
    assert plan.ends_ms.keys() == {"t/1"}


def test_before_the_first_look_nothing_is_known() -> None:
    plan = River().source.plan({"t/0": ""}, size_bytes_max=10**9)
    assert (plan.is_empty, plan.has_more, plan.ends_ms) == (True, True, {})


def test_after_a_look_that_failed_nothing_is_known() -> None:
    river = River()
    river.weir.send("t", 0, values(5))
    river.look()
    river.weir.is_silent = True
    with pytest.raises(Unavailable):
        river.source.look(river.positions)
    assert river.plan().is_empty


@pytest.mark.parametrize("position", ["x", "-1", "1.5", "٣"])
def test_a_position_that_is_no_offset_is_corrupt(position: str) -> None:
    river = River()
    river.look()
    river.positions["t/0"] = position
    with pytest.raises(Corrupt, match="t/0"):
        river.look()


def test_positions_of_another_kind_of_source_stop_everything() -> None:
    river = River()
    river.positions = {"lane-0": "7"}
    with pytest.raises(Halted, match="lane-0: is no partition of a topic"):
        river.look()


def test_only_what_belongs_to_the_shard_is_planned() -> None:
    river = River()
    river.weir.send("t", 0, values(5))
    river.weir.send("t", 1, values(5))
    river.source = river.opened(lambda name: name == "t/1")
    assert river.source.partitions() == ("t/1",)
    assert river.round() == [("t/1", 0, 5)]


def test_no_round_has_more_records_than_the_settings_say() -> None:
    river = River(records_max=7)
    river.weir.send("t", 0, values(20))
    assert spans(river.looked()) == [("t/0", 0, 7)]


@pytest.mark.parametrize("until", ["4", "7"])
def test_a_range_is_read_again_exactly_as_it_was(until: str) -> None:
    river = River()
    river.weir.send("t", 0, values(10))
    river.weir.send("t", 1, values(10))
    river.look()
    plan = river.plan(until={"t/0": until})
    assert spans(plan) == [("t/0", 0, int(until))]
    assert plan.ranges.keys() == {"t/0"}
    assert plan.ends_ms == {}
    assert spans(river.opened().plan(river.positions, size_bytes_max=1, until={"t/0": until})) == [
        ("t/0", 0, int(until))
    ]


def test_a_range_that_cannot_be_asked_for_is_not_read_again_in_part() -> None:
    river = River()
    river.weir.send("t", 0, values(10))
    river.weir.send("t", 1, values(10))
    river.weir.leaderless = {("t", 1)}
    river.look()
    with pytest.raises(Unavailable, match=r"t/1: cannot be read again up to offset 10"):
        river.plan(until={"t/0": "10", "t/1": "10"})


def test_a_range_behind_the_end_is_not_read_again() -> None:
    river = River()
    river.weir.send("t", 0, values(10))
    river.weir.cut("t", 0, 5)
    river.look()
    with pytest.raises(Unavailable, match="t/0"):
        river.plan(until={"t/0": "10"})


def test_where_there_is_room_for_one_partition_they_take_turns() -> None:
    river = River()
    river.weir.send("t", 0, values(10))
    river.weir.send("t", 1, values(10))
    read = list[str]()
    for _ in range(6):
        plan = river.looked(1)
        river.commit(plan)
        read += [name for name, _, _ in spans(plan)]
    assert sorted(read) == ["t/0"] * 3 + ["t/1"] * 3


# What proves that nothing is left


def test_a_proof_is_as_of_before_anything_was_asked() -> None:
    river = River()
    plan = river.looked()
    assert plan.is_empty
    assert plan.ends_ms == {"t/0": river.now_ms, "t/1": river.now_ms}
    seen_ms = river.now_ms
    river.ambient.pass_ms(5_000)
    assert set(river.plan().ends_ms.values()) == {seen_ms}


def test_an_open_transaction_is_no_proof_of_idleness() -> None:
    river = River()
    river.weir.send("t", 0, values(10))
    transaction = river.weir.begin("t", 0, values(5))

    waiting = river.look()
    plan = river.plan()

    assert (waiting.records, waiting.unfinished) == (10, 1)
    assert spans(plan) == [("t/0", 0, 10)]
    assert plan.ends_ms.keys() == {"t/1"}
    river.commit(plan)
    assert river.looked().ends_ms.keys() == {"t/1"}, "all that is stable was read, and yet"
    river.weir.end(transaction)
    assert spans(river.looked()) == [("t/0", 10, 16)]
    assert river.plan().ends_ms.keys() == {"t/0", "t/1"}


def test_what_a_reader_of_everything_has_read_is_a_proof_whatever_is_open() -> None:
    river = River(isolation="read_uncommitted")
    river.weir.send("t", 0, values(10))
    river.weir.begin("t", 0, values(5))
    waiting = river.look()
    assert (waiting.records, waiting.unfinished) == (15, 0)
    assert spans(river.plan()) == [("t/0", 0, 15)]
    assert river.plan().ends_ms.keys() == {"t/0", "t/1"}


def test_what_was_read_before_it_was_committed_is_not_called_taken_back() -> None:
    river = River(isolation="read_uncommitted")
    transaction = river.weir.begin("t", 0, values(5))
    river.round()
    river.reopen(isolation="read_committed")
    assert set(river.looked().ends_ms) == {"t/0", "t/1"}, "all that is there was read"
    river.weir.send("t", 0, values(1))

    plan = river.looked()

    assert (spans(plan), set(plan.ends_ms)) == ([], {"t/1"})
    river.weir.end(transaction)
    assert river.round() == [("t/0", 5, 7)]


def test_k3_nobody_answers_and_nothing_is_proved() -> None:
    river = River()
    river.look()
    river.weir.is_silent = True
    with pytest.raises(Unavailable):
        river.source.partitions()
    with pytest.raises(Unavailable):
        river.source.look(river.positions)
    assert river.plan().ends_ms == {}


def test_a_partition_without_a_leader_holds_its_hours_and_no_others() -> None:
    river = River()
    river.weir.send("t", 0, values(5))
    river.weir.leaderless = {("t", 1)}
    waiting = river.look()
    assert (waiting.unreadable, waiting.why) == (1, "t/1: cannot be asked for its end now")
    assert spans(river.plan()) == [("t/0", 0, 5)]
    assert river.plan().ends_ms.keys() == {"t/0"}


# What waits


def test_what_waits_is_counted_weighed_and_dated() -> None:
    river = River()
    river.weir.reaches["t"].retention_ms = 3_600_000
    river.weir.send("t", 0, values(7, 200), at_ms=river.now_ms - 60_000)
    river.weir.send("t", 1, values(3, 50), at_ms=river.now_ms - 90_000)
    waiting = river.look()
    assert (waiting.files, waiting.records, waiting.size_bytes) == (0, 10, 7 * 200 + 3 * 50)
    assert waiting.is_any
    assert waiting.oldest_ms == river.now_ms - 1_000 - 90_000
    assert waiting.expires_ms == {
        "t/0": river.now_ms - 1_000 - 60_000 + 3_600_000,
        "t/1": river.now_ms - 1_000 - 90_000 + 3_600_000,
    }


def test_nothing_waits() -> None:
    waiting = River().look()
    assert (waiting.is_any, waiting.size_bytes, waiting.oldest_ms) == (False, 0, None)
    assert (waiting.unfinished, waiting.unreadable, waiting.why) == (0, 0, "")


@pytest.mark.parametrize("at_ms", [-1, 0])
def test_records_without_a_time_are_as_old_as_they_are_seen(at_ms: int) -> None:
    river = River()
    river.weir.send("t", 0, values(3), at_ms=at_ms)
    assert river.look().oldest_ms == river.now_ms


def test_settings_that_may_not_be_read_are_no_harm() -> None:
    river = River()
    river.weir.has_secret_settings = True
    river.weir.send("t", 0, values(3))
    assert river.look().expires_ms == {}
    assert river.round() == [("t/0", 0, 3)]


def test_one_partition_that_gives_no_record_does_not_keep_others_from_being_read() -> None:
    river = River()
    river.weir.send("t", 0, values(3))
    river.weir.send("t", 1, values(3))
    river.weir.unreadable = {("t", 1)}
    assert river.look().records == 6
    assert ("t/0", 0, 3) in spans(river.plan())


# What was read, against what is there


def test_k21_a_transaction_leaves_holes_that_are_no_loss() -> None:
    river = River()
    river.weir.send("t", 0, values(2))
    river.weir.end(river.weir.begin("t", 0, values(3)), ABORTED)
    river.weir.end(river.weir.begin("t", 0, values(2)), COMMITTED)
    plan = river.looked()
    assert spans(plan) == [("t/0", 0, 9)]
    river.source.reconcile(plan, [tallied("t/0", 0, 1, 6, 7)])
    assert river.cluster.counted == 1
    for wrong in ([tallied("t/0", 0, 1, 6)], [tallied("t/0", 0, 1, 2, 6, 7)], []):
        with pytest.raises(Corrupt, match="t/0, offsets 0 to 8"):
            river.source.reconcile(plan, wrong)


def test_compaction_leaves_holes_that_are_no_loss() -> None:
    river = River()
    river.weir.send("t", 0, values(6))
    river.weir.compact("t", 0, [1, 3])
    plan = river.looked()
    river.source.reconcile(plan, [tallied("t/0", 0, 2, 4, 5)])
    with pytest.raises(Corrupt, match="3 rows were staged, and 4 records are there"):
        river.source.reconcile(plan, [tallied("t/0", 0, 2, 4)])


def test_a_row_for_each_offset_costs_no_question() -> None:
    river = River()
    river.weir.send("t", 0, values(3))
    river.source.reconcile(river.looked(), [tallied("t/0", 0, 1, 2)])
    assert river.cluster.counted == 0


def test_a_row_that_was_lost_is_found_in_its_bucket_however_many_there_are() -> None:
    river = River()
    count = 9 * OFFSETS_TALLIED
    river.weir.send("t", 0, values(count, 1))
    plan = river.looked()
    whole = [
        tallied("t/0", *range(first, first + OFFSETS_TALLIED))
        for first in range(0, count, OFFSETS_TALLIED)
    ]
    river.source.reconcile(plan, whole)
    lost = 7 * OFFSETS_TALLIED
    whole[7] = tallied("t/0", *range(lost, lost + 123), *range(lost + 124, lost + OFFSETS_TALLIED))
    with pytest.raises(Corrupt, match="t/0, offsets 70,000 to 79,999"):
        river.source.reconcile(plan, whole)


# Before the commit


@pytest.mark.parametrize("trouble", ["expired", "recreated", "deleted", "cut", "forbidden"])
def test_what_changed_while_it_was_read_is_not_confirmed(trouble: str) -> None:
    river = River()
    river.weir.send("t", 0, values(5))
    plan = river.looked()
    river.source.confirm(plan)
    if trouble == "expired":
        river.weir.expire("t", 0, 1)
    elif trouble == "recreated":
        river.weir.make("t", 2)
        river.weir.send("t", 0, values(5))
    elif trouble == "deleted":
        river.weir.delete("t")
    elif trouble == "cut":
        river.weir.cut("t", 0, 4)
    else:
        river.weir.forbidden = {"t"}
    with pytest.raises(Conflict, match="t/0"):
        river.source.confirm(plan)


def test_what_came_or_expired_elsewhere_meanwhile_is_no_harm() -> None:
    river = River()
    river.weir.send("t", 0, values(5))
    river.weir.send("t", 1, values(5))
    river.commit(river.looked())
    river.weir.send("t", 0, values(5))
    plan = river.looked()
    river.weir.send("t", 0, values(3))
    river.weir.expire("t", 0, 5)
    river.weir.expire("t", 1, 5)
    river.weir.begin("t", 0, values(1))
    river.source.confirm(plan)


def test_a_plan_that_moves_no_record_needs_no_cluster() -> None:
    river = River()
    plan = river.looked()
    river.weir.is_silent = True
    river.source.confirm(plan)
    river.source.reconcile(plan, [])
    river.source.settle({"t/0": "3", "t/1": CLOSED})


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.integers(1, 400))
def test_whatever_comes_ranges_join_and_end_at_the_end(sent: list[int], size_bytes: int) -> None:
    weir = Weir()
    weir.make("t", 3)
    river = River(weir)
    read = list[tuple[str, int]]()
    for n, count in enumerate(sent):
        if n % 4 == 3:
            weir.end(weir.begin("t", n % 3, values(count)), ABORTED if n % 8 == 3 else COMMITTED)
        weir.send("t", n % 3, values(count, 20))
        plan = river.looked(size_bytes)
        river.commit(plan)
        read += [(name, at) for name, first, end in spans(plan) for at in range(first, end)]
    for _ in range(500):
        plan = river.looked(size_bytes)
        if plan.is_empty:
            break
        river.commit(plan)
        read += [(name, at) for name, first, end in spans(plan) for at in range(first, end)]
    assert len(plan.ends_ms) == 3
    ends = {f"t/{n}": weir.log("t", n).high for n in range(3)}
    assert sorted(read) == sorted((name, at) for name, end in ends.items() for at in range(end))
