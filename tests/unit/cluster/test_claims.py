"""Claims: a plan carried out one move at a time, while others do the same."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from headgate.cluster import Advert, Member, Order
from headgate.cluster.claims import FAR_MS, Claims, workers_of
from headgate.cluster.desk import Desk
from headgate.cluster.feeds import FeedState, feed_key
from headgate.cluster.picture import Picture, is_zombie, read_picture
from headgate.cluster.presence import DocumentPresence
from headgate.cluster.settling import SETTLE_MS, SETTLE_MS_MAX, Settling
from headgate.cluster.tasks import TASKS, Task, claimed_task, finished, new_task, task_key
from headgate.errors import OutcomeUnknown, Unavailable
from headgate.store import DocumentStore, Version
from headgate.store.changes import Kept, change
from headgate.store.codec import body_of, parse
from headgate.testing.faults import Harm, Point, Scripted, wrap
from headgate.testing.manual import ManualAmbient, manual_store

STEPS_MAX = 200


class World:
    """A store with some tasks, and members who claim by hand."""

    def __init__(self, tasks: int = 4) -> None:
        self.ambient = ManualAmbient()
        self.store = manual_store(self.ambient)
        self.presence = DocumentPresence(self.store, self.ambient)
        self.members: list[Member] = []
        for number in range(tasks):
            self.store.create(task_key("demo", number), body_of(new_task(Order("steps", b""))))

    def join(self, session: str, workers: int = 1, store: DocumentStore | None = None) -> "Claimer":
        self.members.append(self.presence.join(session, Advert(session, workers)))
        return Claimer(self, session, store or self.store)

    def holders(self) -> list[str]:
        return [parse(found, Task).holder for found in self.store.list(TASKS).documents]

    def change(self, number: int, decide: Callable[[Task], Task]) -> None:
        change(self.store, task_key("demo", number), Task, decide)


class Claimer:
    def __init__(self, world: World, session: str, store: DocumentStore) -> None:
        self.world = world
        self.session = session
        self.store = store
        self.desk = Desk()
        self.settling = Settling()
        self.claims = Claims(world.presence, self.desk, self.settling, world.ambient)
        self.picture = Picture()

    def look(self) -> None:
        self.picture = read_picture(self.world.store)
        self.claims.replan()

    def step(self, *, is_draining: bool = False) -> int:
        if self.settling.see(self.world.members, None, self.world.ambient.monotonic_ms()):
            self.claims.replan()
        outcomes, on_desk = self.desk.outcomes()
        for outcome in outcomes:
            self.picture.tasks[outcome.key] = outcome
        return self.claims.step(
            self.store,
            self.session,
            self.picture,
            self.world.members,
            on_desk,
            is_draining=is_draining,
        )

    def settle(self, *, is_draining: bool = False) -> None:
        """Steps until there is nothing to do for long."""
        for _ in range(STEPS_MAX):
            now_ms = self.world.ambient.monotonic_ms()
            due_ms = self.step(is_draining=is_draining)
            if due_ms >= now_ms + FAR_MS:
                return
            self.world.ambient.pass_ms(due_ms - now_ms)
        raise AssertionError("it does not come to rest")


def test_it_claims_its_share_one_move_at_a_time() -> None:
    world = World(4)
    claimer = world.join("a")
    claimer.look()
    claimer.settle()
    assert world.holders() == ["a"] * 4
    assert sorted(claimer.desk.keys()) == sorted(claimer.picture.tasks)


def test_after_somebody_came_it_waits_until_the_list_stands_still() -> None:
    world = World(4)
    claimer = world.join("a")
    claimer.look()
    start_ms = world.ambient.monotonic_ms()
    assert claimer.step() == start_ms + SETTLE_MS
    world.ambient.pass_ms(SETTLE_MS - 1)
    world.join("b")
    assert claimer.step() == world.ambient.monotonic_ms() + SETTLE_MS
    assert world.holders() == [""] * 4
    for _ in range(40):  # somebody comes all the time: it has an end
        world.ambient.pass_ms(SETTLE_MS // 2)
        world.join(f"n{world.ambient.new_id()}")
        claimer.step()
        if "a" in world.holders():
            break
    waited_ms = world.ambient.monotonic_ms() - start_ms
    assert SETTLE_MS_MAX <= waited_ms <= SETTLE_MS_MAX + SETTLE_MS


def test_who_leaves_is_replaced_at_once() -> None:
    world = World(4)
    a, _ = world.join("a"), world.join("b")
    a.look()
    a.settle()
    assert world.holders().count("a") == 2
    gone = world.members.pop()
    world.presence.leave(gone)
    assert a.step() < world.ambient.monotonic_ms() + SETTLE_MS


def test_q2_two_who_want_the_same_task_get_one_holder_and_go_on() -> None:
    world = World(1)
    a, b = world.join("a"), world.join("b")
    both = world.members
    a.look()
    b.look()
    for one in (a, b):  # each plans as if the other were not there
        world.members = [member for member in both if member.session == one.session]
        one.step()
    world.ambient.pass_ms(2 * SETTLE_MS)
    for one in (a, b):
        world.members = [member for member in both if member.session == one.session]
        one.step()
    world.members = both
    assert world.holders() == ["a"]
    assert b.desk.is_empty()
    assert b.picture.tasks[task_key("demo", 0)].value.holder == "a"  # and it knows why
    b.settle()
    assert world.holders() == ["a"]


def test_q2_a_task_of_a_session_that_only_looks_gone_is_not_taken() -> None:
    """Not among the members of an old look, but alive: compare-and-set asks again."""
    world = World(1)
    world.join("a")
    world.change(0, lambda task: claimed_task(task, "a", lambda _: True, 0))
    b = world.join("b")
    world.members = [member for member in world.members if member.session == "b"]
    b.look()
    world.ambient.pass_ms(2 * SETTLE_MS)
    for _ in range(5):
        b.step()
        world.ambient.pass_ms(SETTLE_MS)
    assert world.holders() == ["a"]


def test_a_task_that_is_gone_since_the_look_is_forgotten() -> None:
    world = World(2)
    a = world.join("a")
    a.look()
    gone = a.picture.tasks[task_key("demo", 0)]
    world.store.delete(gone.key, gone.version)
    a.settle()
    assert a.desk.keys() == [task_key("demo", 1)]
    assert gone.key not in a.picture.tasks


def test_what_it_holds_beyond_its_share_is_given_back() -> None:
    world = World(4)
    a = world.join("a")
    a.look()
    a.settle()
    world.join("b")
    a.settle()
    assert sorted(world.holders()) == ["", "", "a", "a"]
    assert len(a.desk.keys()) == 2


def test_what_a_worker_has_in_hand_is_left_to_it() -> None:
    world = World(2)
    a = world.join("a")
    a.look()
    a.settle()
    in_hand = [a.desk.take_due(world.ambient.monotonic_ms()) for _ in range(2)]
    a.claims.replan()
    a.step(is_draining=True)
    a.step(is_draining=True)
    assert all(held is not None and held.is_wanted_back for held in in_hand)
    assert world.holders() == ["a", "a"]


def test_a_drained_node_gives_everything_back_without_waiting() -> None:
    world = World(3)
    a = world.join("a")
    a.look()
    a.settle()
    world.join("b")  # would have to settle first
    a.claims.replan()
    a.settle(is_draining=True)
    assert world.holders() == ["", "", ""]
    assert a.desk.is_empty()


def test_what_the_documents_say_is_ours_is_put_on_the_desk() -> None:
    """A claim whose answer was lost, or that an outage took off the desk."""
    world = World(2)
    a = world.join("a")
    world.change(0, lambda task: claimed_task(task, "a", lambda _: True, 0))
    a.look()
    a.step()
    assert a.desk.keys() == [task_key("demo", 0)]


def test_what_is_ours_no_more_is_dropped_and_a_picture_that_is_older_is_not_believed() -> None:
    world = World(2)
    a = world.join("a")
    old = read_picture(world.store)
    a.look()
    a.settle()
    a.picture = old  # from before the claims
    a.claims.replan()
    a.step()
    assert len(a.desk.keys()) == 2

    world.join("b")
    world.change(0, lambda task: claimed_task(task, "b", lambda _: True, 0))
    a.look()
    a.step()
    assert a.desk.keys() == [task_key("demo", 1)]


def test_one_still_in_a_dropped_hand_is_held_once_the_worker_let_go() -> None:
    world = World(1)
    a = world.join("a")
    a.look()
    a.settle()
    held = a.desk.take_due(world.ambient.monotonic_ms())
    assert held is not None
    a.desk.drop(held.key)
    a.look()
    a.step()
    assert a.desk.keys() == []
    a.desk.let_go(held, None)
    a.step()
    assert a.desk.keys() == [task_key("demo", 0)]


def test_what_is_done_set_aside_or_removed_is_not_claimed() -> None:
    world = World(3)
    world.change(0, lambda task: claimed_task(task, "x", lambda _: True, 0))
    world.change(0, lambda task: finished("k", task, "x", 1))
    world.store.create(feed_key("demo"), body_of(FeedState(1, 3, ((1, 2),))))
    a = world.join("a")
    a.look()
    a.settle()
    assert world.holders() == ["", "", "a"]


@pytest.mark.parametrize("harm", [Harm.LOSE_REPLY, Harm.LOSE_REQUEST, Harm.REFUSE])
def test_l11_an_outage_in_a_claim_or_a_return_costs_nothing(harm: Harm) -> None:
    world = World(2)
    stage = Scripted([])
    a = world.join("a", store=wrap(DocumentStore, world.store, stage))
    a.look()
    world.ambient.pass_ms(2 * SETTLE_MS)
    a.step()
    world.ambient.pass_ms(2 * SETTLE_MS)
    for is_draining in (False, True):
        for ahead in range(1, 40):
            stage._points[len(stage.calls) + ahead] = Point(ahead, harm)
        a.claims.replan()
        with pytest.raises((Unavailable, OutcomeUnknown)):
            a.step(is_draining=is_draining)
        stage._points.clear()
        a.look()  # what the steward does after an error
        a.settle(is_draining=is_draining)
        assert world.holders() == (["", ""] if is_draining else ["a", "a"])
        assert len(a.desk.keys()) == (0 if is_draining else 2)


def test_the_workers_of_who_wants_to_stop_do_not_count() -> None:
    advert = Advert("n", 3)
    member = Member(1, "s", advert, 0, Version("1"))
    assert workers_of(member) == 3
    assert workers_of(replace(member, advert=replace(advert, is_draining=True))) == 0


def test_a_zombie_is_known_by_its_number() -> None:
    state = Kept(feed_key("demo"), FeedState(removed=((2, 4),)), Version("1"))
    picture = Picture(feeds={state.key: state})
    found = [number for number in range(6) if is_zombie(picture, task_key("demo", number))]
    assert found == [2, 3]
    assert not is_zombie(picture, task_key("other", 2))


def test_a_task_finished_while_the_steward_was_busy_is_not_held_again() -> None:
    world = World(tasks=1)
    a = world.join("a")
    a.look()
    a.settle()
    (key,) = a.desk.keys()
    a.claims.replan()

    # The desk is asked, then a worker finishes, and only then is the picture matched.
    _, on_desk = a.desk.outcomes()
    held = a.desk.take_due(world.ambient.monotonic_ms())
    assert held is not None
    a.desk.let_go(held, held.task)
    a.claims.step(a.store, "a", a.picture, world.members, on_desk, is_draining=False)

    assert a.desk.keys() == [], f"{key} would be done twice"
