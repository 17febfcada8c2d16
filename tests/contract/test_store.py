"""Binds every backend to the store contract. No backend has tests of its own here."""

from pathlib import Path

import pytest

from headgate.testing import StoreContract, StoreHarness
from tests.contract.harnesses import (
    FileHarness,
    MemoryHarness,
    OpenSearchHarness,
    ZooKeeperHarness,
)
from tests.servers.cluster import Cluster
from tests.servers.opensearch import ElasticsearchCluster, OpenSearchCluster
from tests.servers.toxiproxy import Proxy, Toxiproxy
from tests.servers.zookeeper import ZooKeeperEnsemble

SERVER_TROUBLE = (
    *("the leader is killed", "the leader is paused"),
    *("the network is cut", "the network is slow", "replies are lost"),
)


class TestMemory(StoreContract):
    outages = ("another thread holds it",)

    @pytest.fixture
    def harness(self) -> StoreHarness:
        return MemoryHarness()


class TestFile(StoreContract):
    outages = ("a writer is stopped", "the disk is full")
    disturbances = ("writers are killed",)

    @pytest.fixture
    def harness(self, tmp_path: Path) -> StoreHarness:
        return FileHarness(tmp_path)


@pytest.fixture(scope="module")
def zookeeper_proxies(zookeeper: ZooKeeperEnsemble, network: Toxiproxy) -> list[Proxy]:
    return _proxies(zookeeper, network)


@pytest.fixture(scope="module")
def opensearch_proxies(opensearch: OpenSearchCluster, network: Toxiproxy) -> list[Proxy]:
    return _proxies(opensearch, network)


@pytest.fixture(scope="module")
def elasticsearch_proxies(elasticsearch: ElasticsearchCluster, network: Toxiproxy) -> list[Proxy]:
    return _proxies(elasticsearch, network)


def _proxies(cluster: Cluster, network: Toxiproxy) -> list[Proxy]:
    return [network.proxy(host) for host in cluster.hosts.split(",")]


@pytest.mark.zookeeper
class TestZooKeeper(StoreContract):
    outages = ("the network is cut", "no quorum", "nobody answers")
    disturbances = SERVER_TROUBLE

    @pytest.fixture
    def harness(self, zookeeper: ZooKeeperEnsemble, zookeeper_proxies: list[Proxy]) -> StoreHarness:
        return ZooKeeperHarness(zookeeper, zookeeper_proxies)


@pytest.mark.opensearch
class TestOpenSearch(StoreContract):
    outages = ("the network is cut", "no quorum", "nobody answers", "the index is read-only")
    disturbances = SERVER_TROUBLE

    @pytest.fixture
    def harness(
        self, opensearch: OpenSearchCluster, opensearch_proxies: list[Proxy]
    ) -> StoreHarness:
        return OpenSearchHarness(opensearch, opensearch_proxies)


@pytest.mark.opensearch
class TestElasticsearch(StoreContract):
    """The same code serves Elasticsearch; one node, so there is no other one to take over."""

    outages = ("the network is cut", "the index is read-only")
    disturbances = ("replies are lost",)

    @pytest.fixture
    def harness(
        self, elasticsearch: ElasticsearchCluster, elasticsearch_proxies: list[Proxy]
    ) -> StoreHarness:
        return OpenSearchHarness(elasticsearch, elasticsearch_proxies)
