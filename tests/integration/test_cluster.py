"""Nodes on real stores: cut off, paused, killed, left without a store. Every step is done once."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from headgate import open_store
from headgate.ambient import SystemAmbient
from headgate.cluster import session as sessions
from headgate.cluster import settling
from headgate.cluster.ephemeral import NODE_ENDED
from headgate.cluster.picture import read_picture
from headgate.cluster.session import Seen
from headgate.cluster.tasks import TASKS
from headgate.errors import Conflict, HeadgateError
from headgate.store import DocumentStore
from headgate.store.pages import pages
from headgate.testing.faults import Call
from headgate.testing.fleet import progress
from headgate.testing.racing import PATIENCE_S, eventually, in_background, until
from headgate.testing.steps import STEPS, StepsFeed, find_faults
from tests.integration.fleets import (
    GrowingFeed,
    NodeProcess,
    Place,
    RealFleet,
    RealNode,
    session_option,
)
from tests.servers.opensearch import OpenSearchCluster
from tests.servers.toxiproxy import Toxiproxy
from tests.servers.zookeeper import ZooKeeperEnsemble

INDEX = "cluster-it"
ZOOKEEPER = pytest.param("zookeeper", marks=pytest.mark.zookeeper)
OPENSEARCH = pytest.param("opensearch", marks=pytest.mark.opensearch)


def zookeeper_place(ensemble: ZooKeeperEnsemble) -> Place:
    return Place("zk://HOSTS/cluster-it", ensemble, (ensemble.leader, ensemble.leader))


def opensearch_place(cluster: OpenSearchCluster) -> Place:
    def primary() -> int:
        shards = cluster.ask(cluster.manager(), f"_cat/shards/{INDEX}?format=json")
        return int(next(one["node"] for one in shards if one["prirep"] == "p").rpartition("-")[2])

    return Place(f"es://HOSTS/{INDEX}", cluster, (cluster.manager, primary))


@pytest.fixture(scope="module", params=[ZOOKEEPER, OPENSEARCH])
def servers(request: pytest.FixtureRequest) -> Place:
    if request.param == "zookeeper":
        return zookeeper_place(request.getfixturevalue("zookeeper"))
    return opensearch_place(request.getfixturevalue("opensearch"))


@pytest.fixture(autouse=True)
def quick_to_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes with short terms, all started at once, need not wait long for one another."""
    monkeypatch.setattr(settling, "SETTLE_MS", 500)


@pytest.fixture
def fleet(servers: Place, network: Toxiproxy) -> Iterator[RealFleet]:
    with RealFleet(servers, network, GrowingFeed()) as fleet:
        yield fleet


def seen_sessions(store: DocumentStore) -> list[Seen]:
    def look() -> list[Seen]:
        found = pages(store, sessions.FOLDER)
        return [sessions.read(document) for page in found for document in page.documents]

    return eventually(look)


def check_all_work_again(fleet: RealFleet) -> None:
    """Each has its share of what comes later. Which of it: that depends on who was seen when."""
    assert until(lambda: all(node.may_act for node in fleet.nodes), within_s=PATIENCE_S)
    first = fleet.feed.now.count

    def has_everybody_worked() -> bool:
        if fleet.is_done():
            fleet.grow(9)
        later = range(first, fleet.feed.now.count)
        return all(fleet.has_worked(node, on=later) for node in fleet.nodes)

    assert until(has_everybody_worked, within_s=PATIENCE_S)
    fleet.finish()


# Cut off


def test_l2_a_node_that_is_cut_off_in_mid_task_stops_in_time_and_comes_back_as_a_new_one(
    fleet: RealFleet,
) -> None:
    fleet.grow(9)
    first, *_ = fleet.start("first", "second", "third")
    assert until(lambda: fleet.has_worked(first, steps=3), within_s=PATIENCE_S)
    session, before = first.session, fleet.held_by(first)

    first.cut()
    assert until(lambda: fleet.is_taken_over(before), within_s=PATIENCE_S)
    assert not first.may_act, "who takes over does so after the trust of the last holder"
    first.heal()

    assert until(lambda: first.session not in (None, session), within_s=PATIENCE_S)
    assert first.sessions_lost == 1
    fleet.finish()
    assert fleet.handed_over("first"), "others went on where it stood"


class HeldBack:
    """Keeps the next write of a step on its way, as a pause between asking and acting would."""

    def __init__(self, node: RealNode) -> None:
        self.is_reached, self.goes_on, self.is_over = (threading.Event() for _ in range(3))
        self.key = ""
        self.outcome: object = "it was written"
        self._one_only = threading.Lock()
        node.log.on_write = self._around

    def _around(self, call: Call, act: Callable[[], object]) -> object:
        is_step = call.method == "replace" and call.subject.startswith(f"{STEPS}/")
        if not is_step or not self._one_only.acquire(blocking=False):
            return act()
        self.key = call.subject
        self.is_reached.set()
        self.goes_on.wait(2 * PATIENCE_S)
        try:
            return act()
        except HeadgateError as error:
            self.outcome = error
            raise
        finally:
            self.is_over.set()


def test_q13_a_write_that_was_held_back_until_others_took_over_is_refused(fleet: RealFleet) -> None:
    fleet.grow(9)
    first, *_ = fleet.start("first", "second", "third")
    assert until(lambda: fleet.has_worked(first, steps=3), within_s=PATIENCE_S)
    before = fleet.held_by(first)
    held_back = HeldBack(first)
    assert held_back.is_reached.wait(PATIENCE_S)
    stood = fleet.steps_of(held_back.key)

    first.cut()
    assert until(lambda: fleet.is_taken_over(before), within_s=PATIENCE_S)
    assert until(lambda: fleet.steps_of(held_back.key) > stood, within_s=PATIENCE_S)
    first.heal()
    eventually(lambda: first.store.get(held_back.key, timeout_ms=1_000))
    held_back.goes_on.set()

    assert held_back.is_over.wait(PATIENCE_S)
    assert isinstance(held_back.outcome, Conflict), held_back.outcome
    fleet.finish()


def test_l2_a_node_that_hears_nothing_is_replaced_and_works_again_once_healed(
    fleet: RealFleet,
) -> None:
    """Its requests arrive at one server of three, its renewals with them, and no answer comes."""
    fleet.grow(9)
    deaf, *_ = fleet.start("deaf", "second", "third")
    assert until(lambda: fleet.has_worked(deaf, steps=3), within_s=PATIENCE_S)
    before = fleet.held_by(deaf)

    deaf.deafen()
    assert until(lambda: not deaf.may_act, within_s=PATIENCE_S)
    assert until(lambda: fleet.is_taken_over(before), within_s=PATIENCE_S)
    assert until(fleet.is_done, within_s=PATIENCE_S), "nobody waits for it"
    assert not deaf.may_act
    deaf.heal()

    check_all_work_again(fleet)


def test_l2_nodes_without_a_store_stop_in_time_and_come_back_by_themselves(
    fleet: RealFleet,
) -> None:
    fleet.grow(9)
    nodes = fleet.start("first", "second", "third")
    for node in nodes:
        assert until(lambda: fleet.has_worked(node, steps=3), within_s=PATIENCE_S)  # noqa: B023

    for node in nodes:
        node.cut()
    ends_ms = max(seen.session.expire for seen in seen_sessions(fleet.eye))
    assert until(lambda: fleet.eye.now_ms() > ends_ms, within_s=PATIENCE_S)
    assert not any(node.may_act for node in nodes), "trust ends before the session does"
    for node in nodes:
        node.heal()

    check_all_work_again(fleet)


# The servers


def test_inv3_whichever_server_dies_each_step_is_done_once_and_no_node_is_lost(
    fleet: RealFleet,
) -> None:
    """ZooKeeper's leader, twice; OpenSearch's manager, then the one that has the primary."""
    cluster = fleet.place.cluster
    assert cluster is not None
    cluster.heal()  # every copy is in its place
    fleet.grow(9)
    nodes = fleet.start("first", "second", "third", term_ms=4_000)
    for node in nodes:
        assert until(lambda: fleet.has_worked(node), within_s=PATIENCE_S)  # noqa: B023

    for chief in fleet.place.chiefs:
        fleet.grow(3)
        cluster.kill(chief())
        try:
            steps = fleet.steps_done()
            assert until(lambda: fleet.steps_done() > steps, within_s=PATIENCE_S)  # noqa: B023
        finally:
            cluster.heal()

    check_all_work_again(fleet)


def is_claim(call: Call) -> bool:
    """A task that gets a holder; its start, counted later, is another write."""
    if call.method != "replace" or not call.subject.startswith(f"{TASKS}/"):
        return False
    body = call.args[1]
    assert isinstance(body, dict)
    return bool(body["holder"] != "" and body["start"] == "")


class BreaksClaims:
    """At some of a node's claims the wires fail in that moment: cut, or the answer is lost."""

    def __init__(self, node: RealNode, *, every: int, times: int) -> None:
        self.times_left = times
        self._node = node
        self._every = every
        self._claims = 0
        self._changing = threading.Lock()
        node.log.on_write = self._around

    def _around(self, call: Call, act: Callable[[], object]) -> object:
        if not is_claim(call) or not self._is_next():
            return act()
        is_cut = self.times_left % 2 == 0
        if is_cut:
            cutting = in_background(self._node.cut)  # while it is under way
        else:
            self._node.deafen()
        try:
            return act()
        finally:
            if is_cut:
                cutting.result(PATIENCE_S)
            self._node.heal()

    def _is_next(self) -> bool:
        with self._changing:
            self._claims += 1
            if self._claims % self._every or self.times_left == 0:
                return False
            self.times_left -= 1
            return True


def test_q14_connections_lost_in_the_middle_of_claims_lose_and_double_nothing(
    servers: Place, network: Toxiproxy
) -> None:
    with RealFleet(servers, network, GrowingFeed(steps=2, pause_ms=0)) as fleet:
        fleet.grow(100)
        nodes = fleet.start("first", "second", "third")
        broken = [BreaksClaims(node, every=8, times=3) for node in nodes]
        assert until(fleet.is_done, within_s=2 * PATIENCE_S), fleet.picture().tasks
        assert sum(one.times_left for one in broken) < 5, "the wires did fail"
        fleet.finish()


# Long, paused, killed


def test_l1_a_task_that_runs_ten_terms_keeps_its_holder_and_its_epoch(
    servers: Place, network: Toxiproxy
) -> None:
    term_ms = 1_200
    feed = GrowingFeed(steps=10 * term_ms // 100 + 1, pause_ms=100)
    with RealFleet(servers, network, feed) as fleet:
        fleet.grow(2)
        started_ms = SystemAmbient().monotonic_ms()
        nodes = fleet.start("first", "second", term_ms=term_ms)
        fleet.finish()
        assert SystemAmbient().monotonic_ms() - started_ms >= 10 * term_ms
        assert [node.sessions_lost for node in nodes] == [0, 0]
        for one in fleet.progress():
            assert len({(step.node, step.epoch) for step in one.steps}) == 1


@pytest.fixture
def processes() -> Iterator[Callable[..., NodeProcess]]:
    with ExitStack() as stack:

        def start(*args: object, **named: object) -> NodeProcess:
            child = NodeProcess(*args, **named)  # type: ignore[arg-type]  # checked there
            stack.callback(child.kill)
            return child

        yield start


def by_node(store: DocumentStore, name: str) -> list[Seen]:
    return [seen for seen in seen_sessions(store) if seen.session.node == name]


def live(store: DocumentStore, name: str) -> set[str]:
    return {seen.id for seen in by_node(store, name) if seen.session.is_live}


def holders(store: DocumentStore) -> set[str]:
    tasks = eventually(lambda: read_picture(store)).tasks.values()
    return {task.value.holder for task in tasks if task.value.is_claimable}


def has_stepped(store: DocumentStore, name: str) -> bool:
    return any(step.node == name for one in progress(store) for step in one.steps)


def is_done(store: DocumentStore, feed: StepsFeed) -> bool:
    picture = eventually(lambda: read_picture(store))
    states = list(picture.feeds.values())
    return bool(states) and states[0].value.next == feed.count and not picture.tasks


def test_q13_a_process_stopped_past_its_session_and_one_killed_are_replaced(
    servers: Place, processes: Callable[..., NodeProcess]
) -> None:
    check_replaced(servers, processes, with_stop=True)


def test_q13_a_process_killed_on_a_file_store_is_replaced(
    tmp_path: Path, processes: Callable[..., NodeProcess]
) -> None:
    """Only killed: one that is stopped in the middle of a write keeps its stripe of the folder."""
    check_replaced(Place(f"file:{tmp_path}"), processes, with_stop=False)


def check_replaced(place: Place, processes: Callable[..., NodeProcess], *, with_stop: bool) -> None:
    url = place.url_by(place.hosts, session_option(place))
    namespace = f"it-{SystemAmbient().new_id()[:12]}"
    feed = StepsFeed("demo", 9, 30, 100)
    with closing(open_store(url, namespace)) as store:
        first, killed, other = (
            processes(name, url, namespace, feed) for name in ("first", "killed", "other")
        )
        for node in (first, killed):
            assert until(lambda: has_stepped(store, node.name), within_s=PATIENCE_S)  # noqa: B023
        before = live(store, "killed") | (live(store, "first") if with_stop else set())

        if with_stop:
            first.signal(signal.SIGSTOP)
        killed.kill()
        assert until(lambda: not before & holders(store), within_s=PATIENCE_S)
        if with_stop:
            first.signal(signal.SIGCONT)
            assert until(lambda: bool(live(store, "first") - before), within_s=PATIENCE_S)

        assert until(lambda: is_done(store, feed), within_s=2 * PATIENCE_S)
        assert find_faults(feed, progress(store)) == []
        assert (first.stop(), other.stop()) == (0, 0)


@pytest.mark.zookeeper
def test_qf3_a_killed_process_is_replaced_when_its_znode_ends_long_before_its_term(
    zookeeper: ZooKeeperEnsemble, processes: Callable[..., NodeProcess]
) -> None:
    place = zookeeper_place(zookeeper)
    url = place.url_by(place.hosts, session_option(place, 1_500))
    namespace = f"it-{SystemAmbient().new_id()[:12]}"
    feed = StepsFeed("demo", 6, 30, 100)
    with closing(open_store(url, namespace)) as store:
        killed, other = (
            processes(name, url, namespace, feed, term_ms=600_000) for name in ("killed", "other")
        )
        for node in (killed, other):
            assert until(lambda: has_stepped(store, node.name), within_s=PATIENCE_S)  # noqa: B023
        (before,) = by_node(store, "killed")

        killed.kill()
        closed: list[Seen] = []

        def is_closed() -> bool:
            closed[:] = [seen for seen in by_node(store, "killed") if not seen.session.is_live]
            return bool(closed)

        assert until(is_closed, within_s=PATIENCE_S)
        assert (closed[0].id, closed[0].session.why) == (before.id, NODE_ENDED)
        assert until(lambda: is_done(store, feed), within_s=PATIENCE_S)
        assert closed[0].session.expire > store.now_ms(), "by its term it would still hold them"
        assert find_faults(feed, progress(store)) == []
        assert other.stop() == 0
