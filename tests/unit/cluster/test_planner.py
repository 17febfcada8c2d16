"""The planner: shares that add up, few moves, nobody's toes. Values in, values out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headgate.cluster.planner import Item, Plan, Seat, deal, may_take, plan

ROUNDS_MAX = 20
GPU = ("gpu",)


def items_of(count: int, labels: tuple[str, ...] = (), prefix: str = "task") -> list[Item]:
    return [Item(f"{prefix}-{number:03}", None, labels=labels) for number in range(count)]


def seats_of(count: int, workers: int = 1) -> list[Seat]:
    return [Seat(f"s{number}", number, workers) for number in range(1, count + 1)]


def apply(items: Sequence[Item], me: str, moves: Plan) -> list[Item]:
    """As compare-and-set would: only what is free is claimed, only what is ours is returned."""
    claims, returns = set(moves.claims), set(moves.returns)
    return [
        replace(item, holder=me)
        if item.key in claims and item.holder is None
        else replace(item, holder=None)
        if item.key in returns and item.holder == me
        else item
        for item in items
    ]


def settle(items: Sequence[Item], seats: Sequence[Seat]) -> tuple[list[Item], int]:
    """Rounds: each plans from the same state, then all plans are carried out, one by one. Also how
    many tasks were given back."""
    now, returned = list(items), 0
    for _ in range(ROUNDS_MAX):
        plans = {seat.session: plan(now, seats, seat.session) for seat in seats}
        if all(found == Plan() for found in plans.values()):
            return now, returned
        for session, found in plans.items():
            returned += len(found.returns)
            now = apply(now, session, found)
    raise AssertionError(f"no rest after {ROUNDS_MAX} rounds: {now}, {seats}")


def loads(items: Sequence[Item]) -> Mapping[str | None, int]:
    return Counter(item.holder for item in items)


def moved(before: Sequence[Item], after: Sequence[Item]) -> set[str]:
    return {a.key for a, b in zip(before, after, strict=True) if a.holder != b.holder}


@st.composite
def fleets(draw: st.DrawFn) -> list[Seat]:
    numbers = draw(st.lists(st.integers(1, 99), min_size=1, max_size=8, unique=True))
    labels = st.frozensets(st.sampled_from(["gpu", "big"]), max_size=2)
    seats = [Seat(f"s{n}", n, draw(st.integers(0, 4)), draw(labels)) for n in numbers]
    return draw(st.permutations(seats))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Item], list[Seat]]:
    """Any fleet, and tasks that anybody may hold, members or not."""
    seats = draw(fleets())
    by_session = {seat.session: seat for seat in seats}
    holders = st.sampled_from([None, *by_session])
    labels = st.sampled_from([(), (), GPU, ("big",), ("big", "gpu"), ("none",)])
    items = [
        Item(f"task-{number:03}", draw(holders), labels=draw(labels))
        for number in range(draw(st.integers(0, 30)))
    ]
    for place, item in enumerate(items):
        if item.holder and may_take(by_session[item.holder], item.kind, item.labels):
            items[place] = replace(item, is_begun=draw(st.booleans()))
    return items, seats


def test_q1_every_task_is_claimed_once_whatever_the_counts() -> None:
    for count in range(41):
        for nodes in range(1, 13):
            seats = seats_of(nodes)

            after, returned = settle(items_of(count), seats)

            found = [loads(after)[seat.session] for seat in seats]
            assert sum(found) == count, (count, nodes)
            assert max(found) - min(found) <= 1, (count, nodes)
            assert returned == 0, (count, nodes)


def test_q1_more_nodes_than_tasks_some_are_idle_and_no_task_is() -> None:
    after, _ = settle(items_of(3), seats_of(12))
    assert sorted(loads(after).values()) == [1, 1, 1]
    assert None not in loads(after)


@given(worlds())
def test_q1_from_any_state_every_task_comes_to_somebody_who_may_have_it(
    world: tuple[list[Item], list[Seat]],
) -> None:
    items, seats = world
    able = {seat.session: seat for seat in seats if seat.workers > 0}

    after, _ = settle(items, seats)

    for item in after:
        takers = [seat for seat in able.values() if may_take(seat, item.kind, item.labels)]
        if takers:
            assert item.holder in {seat.session for seat in takers}
        else:
            assert item.holder is None


@given(worlds())
def test_shares_add_up_to_what_somebody_may_take(world: tuple[list[Item], list[Seat]]) -> None:
    items, seats = world
    able = [seat for seat in seats if seat.workers > 0]
    by_class: dict[tuple[str, tuple[str, ...]], list[Item]] = {}
    for item in items:
        by_class.setdefault((item.kind, item.labels), []).append(item)
    for one, shares in deal(by_class, able).items():
        takers = [seat for seat in able if may_take(seat, *one)]
        count = len(by_class[one])
        assert sum(shares.values()) == (count if takers else 0)
        assert shares.keys() <= {seat.session for seat in takers}


@given(st.integers(0, 60), st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_a_share_is_what_its_workers_are_worth(count: int, workers: list[int]) -> None:
    seats = [Seat(f"s{n}", n, amount) for n, amount in enumerate(workers)]
    after, _ = settle(items_of(count), seats)
    for seat in seats:
        worth = count * seat.workers / sum(workers)
        assert abs(loads(after)[seat.session] - worth) < len(seats)
        assert abs(loads(after)[seat.session] - worth) <= max(1, 0.5 * seat.workers), seats


@given(worlds())
def test_a_plan_claims_what_is_free_and_returns_what_is_ours(
    world: tuple[list[Item], list[Seat]],
) -> None:
    items, seats = world
    holders = {item.key: item.holder for item in items}
    for seat in seats:
        found = plan(items, seats, seat.session)
        assert all(holders[key] is None for key in found.claims)
        assert all(holders[key] == seat.session for key in found.returns)
        assert len(set(found.claims)) == len(found.claims)
        assert len(set(found.returns)) == len(found.returns)


@given(worlds())
def test_the_order_in_which_members_are_listed_does_not_matter(
    world: tuple[list[Item], list[Seat]],
) -> None:
    items, seats = world
    for seat in seats:
        assert plan(items, seats, seat.session) == plan(items, seats[::-1], seat.session)


@given(st.integers(0, 40), st.integers(1, 10), st.booleans())
def test_two_who_see_the_same_free_tasks_do_not_meet(count: int, nodes: int, mixed: bool) -> None:
    seats = [replace(seat, labels=frozenset(GPU)) for seat in seats_of(nodes)]
    items = [*items_of(count, GPU, "gpu"), *items_of(count)] if mixed else items_of(count)
    claims = [key for seat in seats for key in plan(items, seats, seat.session).claims]
    assert sorted(claims) == sorted(item.key for item in items)


def test_q12_27_tasks_from_three_nodes_to_two_only_the_leavers_9_move() -> None:
    seats = seats_of(3)
    before, _ = settle(items_of(27), seats)
    assert loads(before) == {"s1": 9, "s2": 9, "s3": 9}
    freed = [replace(i, holder=None) if i.holder == "s2" else i for i in before]

    after, returned = settle(freed, [seats[0], seats[2]])

    assert moved(before, after) == {item.key for item in before if item.holder == "s2"}
    assert returned == 0
    assert sorted(loads(after).values()) == [13, 14]


@given(st.integers(0, 60), st.integers(2, 10), st.data())
def test_q12_when_a_node_leaves_only_its_tasks_move(
    count: int, nodes: int, data: st.DataObject
) -> None:
    seats = seats_of(nodes)
    before, _ = settle(items_of(count), seats)
    leaver = data.draw(st.sampled_from(seats))
    freed = [replace(i, holder=None) if i.holder == leaver.session else i for i in before]

    after, returned = settle(freed, [seat for seat in seats if seat != leaver])

    assert returned == 0
    assert moved(before, after) == {i.key for i in before if i.holder == leaver.session}


@given(st.integers(0, 60), st.integers(1, 10))
def test_q12_when_a_node_joins_only_its_share_moves(count: int, nodes: int) -> None:
    before, _ = settle(items_of(count), seats_of(nodes))
    after, returned = settle(before, seats_of(nodes + 1))
    share = loads(after)[f"s{nodes + 1}"]
    assert share == count // (nodes + 1)  # what is left over stays where it is
    assert returned == share
    assert len(moved(before, after)) == share


@given(worlds())
def test_a_plan_at_rest_is_empty_and_stays_so(world: tuple[list[Item], list[Seat]]) -> None:
    items, seats = world
    after, _ = settle(items, seats)
    assert all(plan(after, seats, seat.session) == Plan() for seat in seats)


def test_a_node_without_workers_gives_everything_back_and_takes_nothing() -> None:
    seats = [Seat("s1", 1, 0), Seat("s2", 2, 1)]
    items = [Item("a", "s1"), Item("b", None), Item("c", "s2"), Item("d", "s1", labels=GPU)]
    assert plan(items, seats, "s1") == Plan(returns=("a", "d"))
    assert plan(items, seats, "nobody") == Plan()


def test_what_was_begun_is_given_back_last() -> None:
    items = [
        Item("a", "s1", is_begun=False),
        Item("b", "s1", is_begun=True),
        Item("c", "s1", is_begun=False),
        Item("d", "s1", is_begun=True),
    ]
    assert plan(items, seats_of(2), "s1").returns == ("c", "a")


def test_begun_work_is_not_interrupted_for_a_difference_of_one() -> None:
    begun = [Item(key, "s1", is_begun=True) for key in "abc"]
    other = [Item("d", "s2")]
    assert plan([*begun, *other], seats_of(2), "s1") == Plan()
    assert plan([*begun, Item("d", "s1"), *other], seats_of(2), "s1").returns == ("d",)
    assert plan(begun, seats_of(2), "s1").returns == ("c",)  # the other one has nothing to do


@given(st.integers(0, 30), st.integers(0, 10), st.integers(1, 6))
def test_tasks_that_nobody_may_take_disturb_nobody(count: int, odd: int, nodes: int) -> None:
    seats = seats_of(nodes)
    alone, _ = settle(items_of(count), seats)
    together, _ = settle([*items_of(odd, ("no such label",), "odd"), *items_of(count)], seats)
    assert together[odd:] == alone
    assert all(item.holder is None for item in together[:odd])


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 5), st.integers(0, 5))
def test_restricted_tasks_burden_those_who_may_take_them_no_more_than_they_must(
    restricted: int, others: int, able: int, unable: int
) -> None:
    labelled = [replace(seat, labels=frozenset(GPU)) for seat in seats_of(able)]
    plain = seats_of(able + unable)[able:]
    items = [*items_of(restricted, GPU, "gpu"), *items_of(others)]

    after, _ = settle(items, [*labelled, *plain])

    must = -(-restricted // able)
    fair = -(-(restricted + others) // (able + unable))
    for seat in (*labelled, *plain):
        assert loads(after)[seat.session] <= max(must, fair)


def test_a_kind_that_only_one_node_knows_is_its_alone() -> None:
    old = Seat("old", 1, 2, kinds=frozenset({"steps"}))
    new = Seat("new", 2, 2, kinds=frozenset({"steps", "landing"}))
    items = [Item(f"task-{number}", None, kind="landing") for number in range(4)]

    assert plan(items, [old, new], "old") == Plan()
    assert set(plan(items, [old, new], "new").claims) == {item.key for item in items}


def test_work_that_was_begun_a_moment_ago_is_given_back_only_later() -> None:
    items = [Item(f"task-{n}", "a", is_begun=True, is_fresh=True) for n in range(4)]
    seats = [Seat("a", 1, 2), Seat("b", 2, 2)]

    assert plan(items, seats, "a") == Plan(is_waiting=True)
    ripe = [replace(item, is_fresh=False) for item in items]
    assert len(plan(ripe, seats, "a").returns) == 2
