"""Tasks: what each event makes of a task's document. Values in, values out."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.cluster import Order
from headgate.cluster.tasks import (
    FAILED_TRIES_MAX,
    NUMBER_MAX,
    Task,
    Trouble,
    claimed_task,
    failed,
    feed_and_number,
    finished,
    given_back,
    key_of_shown,
    new_task,
    payload_of,
    proved_well,
    put_aside,
    released_by_person,
    shown,
    started,
    taken_back,
    task_key,
)
from headgate.errors import Conflict, Corrupt, Fenced, Invalid
from headgate.store import Document, Version
from headgate.store.changes import Kept
from headgate.store.codec import body_of, parse

KEY = task_key("demo", 3)
TROUBLE = Trouble("ValueError: no", "node-1", 17)
OTHER = Trouble("KeyError: what", "node-2", 18)
FREE = new_task(Order("steps", b"abc"))

troubles = st.none() | st.sampled_from([TROUBLE, OTHER])
tasks = st.builds(
    Task,
    kind=st.just("steps"),
    payload=st.just("YWJj"),
    labels=st.sampled_from([(), ("gpu",)]),
    state=st.sampled_from(["outstanding", "done"]),
    holder=st.sampled_from(["", "a", "b"]),
    epoch=st.integers(1, 4),
    since_ms=st.just(0),
    starts=st.sampled_from([(), ("1/1",), ("1/1", "2/1"), ("1/1", "1/2", "2/1", "3/1", "4/1")]),
    start=st.sampled_from(["", "1/1", "2/1", "4/1"]),
    error=troubles,
    set_aside=troubles,
)


def over(_session: str) -> bool:
    return True


def live(_session: str) -> bool:
    return False


def held(task: Task = FREE, session: str = "a") -> Task:
    return claimed_task(task, session, over, at_ms=5)


def test_a_task_has_one_name_and_its_parts_can_be_read_from_it() -> None:
    assert KEY == "cluster/tasks/demo/0000000/0000000003"
    assert feed_and_number(KEY) == ("demo", 3)
    assert shown(KEY) == "demo/3"
    assert key_of_shown("demo/3") == KEY
    assert key_of_shown("a/b/3") == task_key("a/b", 3)
    assert task_key("demo", 1_234_567) == "cluster/tasks/demo/0001234/0001234567"


@given(st.text(min_size=1, max_size=8), st.integers(0, NUMBER_MAX))
def test_every_name_leads_back(feed: str, number: int) -> None:
    key = task_key(feed, number)
    assert feed_and_number(key) == (feed, number)
    assert key_of_shown(shown(key)) == key


@pytest.mark.parametrize("number", [-1, NUMBER_MAX + 1])
def test_a_number_beyond_the_names_is_invalid(number: int) -> None:
    with pytest.raises(Invalid, match="a task's number is 0 to 9,999,999,999"):
        task_key("demo", number)


@pytest.mark.parametrize(
    "key",
    [
        "cluster/tasks/demo/0000001/0000000003",
        "cluster/tasks/demo/0000000/3",
        "cluster/tasks/demo/0000000003",
        "cluster/tasks/demo/0000000/٣",
        "other/tasks/demo/0000000/0000000003",
    ],
)
def test_what_is_no_key_of_a_task_is_invalid(key: str) -> None:
    with pytest.raises(Invalid, match="is no key of a task"):
        feed_and_number(key)


@pytest.mark.parametrize("name", ["demo", "/3", "demo/", "demo/x", "demo/-1", "demo/٣"])
def test_what_a_person_mistypes_is_invalid(name: str) -> None:
    with pytest.raises(Invalid, match="FEED/NUMBER"):
        key_of_shown(name)


@given(st.binary())
def test_a_payload_comes_back(payload: bytes) -> None:
    assert payload_of(Kept(KEY, new_task(Order("k", payload)), Version("1"))) == payload


def test_a_payload_that_is_damaged_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="its payload is not base64"):
        payload_of(Kept(KEY, replace(FREE, payload="%%"), Version("1")))


@given(tasks)
def test_a_task_is_what_its_document_says(task: Task) -> None:
    assert parse(Document(KEY, body_of(task), Version("1")), Task) == task


def test_a_free_task_is_claimed_and_one_that_is_done_or_set_aside_is_not() -> None:
    assert held() == replace(FREE, holder="a", epoch=1, since_ms=5)
    done = finished(KEY, held(), "a", 1)
    aside = put_aside(KEY, held(), "a", 1, TROUBLE)
    for task in (done, aside):
        assert not task.is_claimable
        with pytest.raises(Conflict, match="done or set aside"):
            claimed_task(task, "b", over, 5)


def test_q2_a_task_of_a_live_holder_is_refused() -> None:
    with pytest.raises(Conflict, match="session a holds it"):
        claimed_task(held(), "b", live, 5)
    assert claimed_task(held(), "b", over, 6).epoch == 2


def test_a_start_is_counted_once_for_each_holder() -> None:
    first = started(KEY, held(), "a", 1)
    assert first.tries == 1
    assert started(KEY, first, "a", 1) is first
    second = started(KEY, held(first, "b"), "b", 2)
    assert second.tries == 2


def test_who_gives_it_back_in_good_order_takes_its_try_back() -> None:
    running = started(KEY, held(), "a", 1)
    back = given_back(running, "a", 1)
    assert back == replace(FREE, epoch=1, since_ms=5)
    never_started = given_back(held(replace(FREE, starts=("1/1", "2/1"))), "a", 1)
    assert never_started.tries == 2  # those before it stay


def test_what_another_holds_is_not_given_back() -> None:
    theirs = held(started(KEY, held(), "a", 1), "b")
    assert given_back(theirs, "a", 1) is theirs
    assert given_back(theirs, "b", 1) is theirs


def test_a_task_that_ran_well_is_forgiven() -> None:
    ill = failed(KEY, started(KEY, held(), "a", 1), "a", 1, TROUBLE)
    well = proved_well(KEY, started(KEY, ill, "a", 1), "a", 1)
    assert (well.tries, well.start, well.error) == (0, "", None)
    assert well.holder == "a"


def test_a_finished_task_is_done_and_free_and_can_be_told_twice() -> None:
    done = finished(KEY, started(KEY, held(), "a", 1), "a", 1)
    assert (done.state, done.holder, done.epoch, done.tries) == ("done", "", 1, 0)
    assert finished(KEY, done, "a", 1) is done
    with pytest.raises(Fenced):
        finished(KEY, done, "b", 2)


def test_l10_the_fifth_failure_sets_it_aside_with_its_error() -> None:
    task = held()
    for count in range(1, FAILED_TRIES_MAX):
        task = failed(KEY, started(KEY, task, "a", 1), "a", 1, TROUBLE)
        assert (task.tries, task.error, task.holder) == (count, TROUBLE, "a")
        assert task.is_claimable
    task = failed(KEY, started(KEY, task, "a", 1), "a", 1, OTHER)
    assert (task.tries, task.error, task.set_aside, task.holder) == (5, OTHER, OTHER, "")
    assert failed(KEY, task, "a", 1, OTHER) is task  # told again, after a lost answer


def test_failures_of_several_holders_add_up() -> None:
    task = FREE
    for number, session in enumerate("abcde", 1):
        assert task.is_claimable
        task = held(task, session)
        task = failed(KEY, started(KEY, task, session, number), session, number, TROUBLE)
    assert task.set_aside == TROUBLE


def test_a_person_gives_it_all_its_tries_again() -> None:
    aside = put_aside(KEY, started(KEY, held(), "a", 1), "a", 1, TROUBLE)
    back = released_by_person(aside)
    assert back.is_claimable
    assert (back.tries, back.start, back.epoch) == (0, "", 1)
    assert released_by_person(back) == back


@pytest.mark.parametrize("name", ["started", "proved_well", "finished", "failed", "put_aside"])
def test_inv3_whoever_holds_it_no_more_changes_nothing(name: str) -> None:
    theirs = held(held(), "b")
    for session, epoch in [("a", 1), ("a", 2), ("b", 1)]:
        with pytest.raises(Fenced, match="epoch"):
            CHANGES[name](theirs, session, epoch)


CHANGES: dict[str, Callable[[Task, str, int], Task]] = {
    "claimed": lambda task, session, _: claimed_task(task, session, over, 9),
    "given back": given_back,
    "started": lambda task, session, epoch: started(KEY, task, session, epoch),
    "proved_well": lambda task, session, epoch: proved_well(KEY, task, session, epoch),
    "finished": lambda task, session, epoch: finished(KEY, task, session, epoch),
    "failed": lambda task, session, epoch: failed(KEY, task, session, epoch, TROUBLE),
    "put_aside": lambda task, session, epoch: put_aside(KEY, task, session, epoch, TROUBLE),
    "released": lambda task, *_: released_by_person(task),
}


@pytest.mark.parametrize("name", CHANGES)
@given(task=tasks, session=st.sampled_from(["a", "b"]), epoch=st.integers(1, 4))
def test_inv3_asked_twice_nothing_more_changes_and_no_epoch_falls(
    name: str, task: Task, session: str, epoch: int
) -> None:
    decide = CHANGES[name]
    try:
        once = decide(task, session, epoch)
    except (Conflict, Fenced):
        return
    assert decide(once, session, epoch) == once
    assert once.epoch >= task.epoch
    assert once.tries >= 0
    assert (once.kind, once.payload, once.labels) == (task.kind, task.payload, task.labels)
    if once.holder not in ("", task.holder):
        assert once.epoch == task.epoch + 1
    if task.state == "done":
        assert once.state == "done"


def test_a_node_that_lives_takes_back_the_start_of_its_lost_session() -> None:
    lost = started(KEY, held(FREE), "a", 1)
    by_other = started(KEY, claimed_task(lost, "b", over, 0), "b", 2)
    assert by_other.starts == ("1/1", "2/1")

    again = taken_back(by_other, "1/1")

    assert (again.starts, again.start, again.holder) == (("2/1",), "2/1", "b")
    assert taken_back(again, "1/1") == again
