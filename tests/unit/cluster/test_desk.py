"""The desk: what a node holds, and in whose hand it is."""

from headgate.cluster import Order
from headgate.cluster.desk import Desk, Held
from headgate.cluster.tasks import KeptTask, claimed_task, new_task, task_key
from headgate.store import Version
from headgate.store.changes import Kept


def task(number: int = 0, session: str = "mine") -> KeptTask:
    value = claimed_task(new_task(Order("steps", b"")), session, lambda _: True, 0)
    return Kept(task_key("demo", number), value, Version("1"))


def taken(desk: Desk, now_ms: int = 0) -> Held:
    held = desk.take_due(now_ms)
    assert held is not None
    return held


def test_a_task_is_in_one_hand_at_most() -> None:
    desk = Desk()
    assert desk.hold(task(), "mine", due_ms=0)
    held = taken(desk)
    assert desk.take_due(10**9) is None
    assert desk.in_hand() == [held.key]
    desk.put_back(held, due_ms=50)
    assert desk.in_hand() == []
    assert desk.take_due(49) is None
    assert desk.take_due(50) is held


def test_the_one_that_is_due_longest_comes_first() -> None:
    desk = Desk()
    for number, due_ms in [(1, 30), (2, 10), (3, 20)]:
        desk.hold(task(number), "mine", due_ms)
    assert desk.next_due_ms(99) == 10
    assert [taken(desk, 30).key for _ in range(3)] == [task(n).key for n in (2, 3, 1)]
    assert desk.next_due_ms(99) == 99


def test_held_twice_is_held_once() -> None:
    desk = Desk()
    desk.hold(task(), "mine", 0)
    held = taken(desk)
    assert desk.hold(task(), "mine", 0)
    assert desk.take_due(0) is None
    desk.let_go(held, None)
    assert desk.is_empty()


def test_one_dropped_in_a_workers_hand_blocks_its_name_until_it_is_let_go() -> None:
    desk = Desk()
    desk.hold(task(), "mine", 0)
    held = taken(desk)
    desk.drop(held.key)
    assert held.is_dropped
    assert desk.keys() == []
    assert not desk.is_empty()  # a worker is still at it
    assert not desk.hold(task(), "mine", 0)
    desk.let_go(held, None)
    assert desk.is_empty()
    assert desk.hold(task(), "mine", 0)
    assert taken(desk) is not held


def test_one_put_back_after_it_was_dropped_is_gone_and_its_name_is_free() -> None:
    desk = Desk()
    desk.hold(task(), "mine", 0)
    held = taken(desk)
    desk.drop_all()
    desk.put_back(held, 0)
    assert desk.is_empty()
    assert desk.take_due(0) is None
    assert desk.hold(task(), "mine", 0)


def test_dropping_what_is_not_there_is_fine() -> None:
    desk = Desk()
    desk.drop("nothing")
    assert desk.is_empty()


def test_what_nobody_has_in_hand_is_taken_off_and_the_rest_is_asked_for() -> None:
    desk = Desk()
    for number in (1, 2, 3):
        desk.hold(task(number), "mine", number)
    in_hand = taken(desk, 1)
    with_report = taken(desk, 2)
    with_report.report = lambda: task(2)
    desk.put_back(with_report, 0)

    assert desk.take_off(in_hand.key) is None
    assert desk.take_off(with_report.key) is None  # its result must be told first
    free = desk.take_off(task(3).key)

    assert free is not None
    assert not free.is_wanted_back
    assert in_hand.is_wanted_back
    assert with_report.is_wanted_back
    assert desk.keys() == [in_hand.key, with_report.key]
    assert desk.take_off("nothing") is None


class Begun:
    """`headgate.cluster.Work` that has something under way."""

    well_ms: int | None = None

    def tick(self) -> int | None:
        return 10**9


def test_work_that_was_begun_comes_to_a_good_end_before_it_is_taken_off() -> None:
    """Between two ticks nobody has it in hand: given back then, its round would come to nothing."""
    desk = Desk()
    desk.hold(task(), "mine", 0)
    held = taken(desk)
    held.work = Begun()
    desk.put_back(held, due_ms=10**9)
    desk.due.take()

    assert desk.take_off(held.key) is None
    assert held.is_wanted_back
    assert desk.keys() == [held.key]
    assert desk.due.take(), "a worker is woken"
    assert desk.take_off(held.key) is None, "asked for again, it is still its worker's turn"
    assert desk.take_due(0) is held, "though it was due much later"


def test_begun_work_whose_worker_had_its_turn_and_failed_is_taken_off() -> None:
    """It put it back with a pause: what it needs is out of reach, and waiting would help nobody."""
    desk = Desk()
    desk.hold(task(), "mine", 0)
    held = taken(desk)
    held.work = Begun()
    desk.put_back(held, due_ms=0)
    assert desk.take_off(held.key) is None
    desk.put_back(taken(desk), due_ms=1_000)
    assert desk.take_off(held.key) is held
    assert desk.keys() == []


def test_outcomes_are_told_once() -> None:
    desk = Desk()
    for number in (1, 2):
        desk.hold(task(number), "mine", 0)
    first, second = taken(desk), taken(desk)
    desk.let_go(first, task(1))
    desk.let_go(second, None)
    assert desk.outcomes() == ([task(1)], {})
    assert desk.outcomes() == ([], {})


def test_it_says_what_is_begun_and_under_which_epoch() -> None:
    desk = Desk()
    for number in (1, 2):
        desk.hold(task(number), "mine", 0)
    taken(desk).is_started = True
    assert desk.begun(0) == {task(1).key}
    assert desk.epochs() == {task(1).key: 1, task(2).key: 1}


def test_workers_and_steward_are_woken() -> None:
    desk = Desk()
    desk.hold(task(), "mine", 0)
    assert desk.due.take()
    assert not desk.changed.take()
    held = taken(desk)
    desk.put_back(held, 0)
    assert desk.due.take()
    assert not desk.changed.take()  # the steward has nothing to do with it
    held = taken(desk)
    desk.drop(held.key)
    desk.put_back(held, 0)
    assert desk.changed.take()  # its name is free again
    desk.hold(task(), "mine", 0)
    desk.let_go(taken(desk), None)
    assert desk.changed.take()


def test_what_is_let_go_without_an_outcome_may_still_be_ours_and_what_was_dropped_is_not() -> None:
    desk = Desk()
    for number in (1, 2, 3):
        desk.hold(task(number), "mine", 0)
    told, loose, dropped = taken(desk), taken(desk), taken(desk)
    desk.let_go(told, task(1))
    desk.drop(dropped.key)
    desk.let_go(dropped, None)
    assert not desk.loose.take()
    desk.let_go(loose, None)
    assert desk.loose.take()
