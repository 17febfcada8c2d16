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
from headgate.cluster.ephemeral import NODE_ENDED
from headgate.cluster.picture import read_picture
from headgate.cluster.session import Seen
from headgate.cluster.tasks import TASKS
from headgate.store import DocumentStore
from headgate.store.pages import pages
from headgate.testing.faults import Call
from headgate.testing.fleet import progress
from headgate.testing.racing import PATIENCE_S, eventually, in_background, until
from headgate.testing.steps import STEPS, StepsFeed, find_faults
from tests.integration.fleets import (
    TERM_MS,
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
    cluster = request.getfixturevalue(request.param)
    return {"zookeeper": zookeeper_place, "opensearch": opensearch_place}[request.param](cluster)


@pytest.fixture(scope="module", params=["file", ZOOKEEPER, OPENSEARCH])
def anywhere(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    if request.param == "file":
        folder: Path = tmp_path_factory.mktemp("cluster")
        return Place(f"file:{folder}")
    cluster = request.getfixturevalue(request.param)
    return {"zookeeper": zookeeper_place, "opensearch": opensearch_place}[request.param](cluster)


@pytest.fixture
def fleet(servers: Place, network: Toxiproxy) -> Iterator[RealFleet]:
    with RealFleet(servers, network, GrowingFeed()) as fleet:
        yield fleet


def seen_sessions(store: DocumentStore) -> list[Seen]:
    def look() -> list[Seen]:
        found = pages(store, sessions.FOLDER)
        return [sessions.read(document) for page in found for document in page.documents]

    return eventually(look)


# Cut off


def test_l2_a_node_that_is_cut_off_in_mid_task_stops_in_time_and_comes_back_as_a_new_one(
    fleet: RealFleet,
) -> None:
    fleet.feed.grow(9)
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
    """Keeps one write of a step on its way, as a pause between asking and acting would."""

    def __init__(self, node: RealNode) -> None:
        self.is_reached, self.goes_on, self.is_over = (threading.Event() for _ in range(3))
        self.outcome: object = None
        node.log.on_write = self._around

    def _around(self, call: Call, act: Callable[[], object]) -> object:
        is_first = not self.is_reached.is_set()
        if not is_first or call.method != "replace" or not call.subject.startswith(f"{STEPS}/"):
            return act()
        self.is_reached.set()
        self.goes_on.wait(PATIENCE_S)
        try:
            self.outcome = "it was written"
            return act()
        except BaseException as error:
            self.outcome = error
            raise
        finally:
            self.is_over.set()
