"""Binds every backend to the contract of presence. No backend has tests of its own here."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate import open_store
from headgate.ambient import Ambient
from headgate.store import DocumentStore
from headgate.testing import PresenceContract, PresenceHarness
from tests.contract.harnesses import FileHarness, MemoryHarness
from tests.contract.presences import StorePresences
from tests.servers.opensearch import OpenSearchCluster
from tests.servers.zookeeper import ZooKeeperEnsemble


class TestMemory(PresenceContract):
    term_ms = 500

    @pytest.fixture
    def harness(self) -> PresenceHarness:
        return StorePresences(MemoryHarness().open)


class TestFile(PresenceContract):
    term_ms = 500

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Iterator[PresenceHarness]:
        presences = StorePresences(FileHarness(tmp_path).open)
        yield presences
        presences.close()


def over_url(url: str) -> Iterator[PresenceHarness]:
    def opened(namespace: str, ambient: Ambient) -> DocumentStore:
        return open_store(url, namespace, ambient=ambient)

    presences = StorePresences(opened)
    yield presences
    presences.close()


@pytest.mark.zookeeper
class TestZooKeeper(PresenceContract):
    @pytest.fixture
    def harness(self, zookeeper: ZooKeeperEnsemble) -> Iterator[PresenceHarness]:
        yield from over_url(f"zk://{zookeeper.hosts}/presence")


@pytest.mark.opensearch
class TestOpenSearch(PresenceContract):
    @pytest.fixture
    def harness(self, opensearch: OpenSearchCluster) -> Iterator[PresenceHarness]:
        yield from over_url(f"es://{opensearch.hosts}/presence")
