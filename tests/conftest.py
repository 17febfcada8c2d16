"""Options and real servers for all tests.

A server is started once a run, when the first test asks for it, and stopped at the end. A test has
its own namespace in it.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.servers.hdfs import HdfsCluster
from tests.servers.kafka import KafkaBroker
from tests.servers.opensearch import ElasticsearchCluster, OpenSearchCluster
from tests.servers.s3 import S3Server
from tests.servers.toxiproxy import Toxiproxy
from tests.servers.zookeeper import ZooKeeperEnsemble
from tests.soak import Soak


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--backend",
        choices=["embedded", "servers"],
        default="embedded",
        help="which stores the contract suite is bound to: memory and file, or the real servers",
    )
    parser.addoption(
        "--soak",
        default=None,
        metavar="FILE",
        help="only what chance decides, many times; the result goes to FILE",
    )
    parser.addoption("--part", default="all", help="under which name, with --soak")
    parser.addoption("--rounds", type=int, default=20, help="how often, with --soak")


def pytest_configure(config: pytest.Config) -> None:
    # Speed is a matter of benchmarks: on a busy machine a slow example is no bug.
    slow = [HealthCheck.too_slow]
    is_ci = bool(os.environ.get("CI"))
    settings.register_profile("house", deadline=None, suppress_health_check=slow, derandomize=is_ci)
    settings.load_profile("house")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Started in the background of a script, where Ctrl-C is ignored; children would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    file = config.getoption("--soak")
    if file is not None:
        part, rounds = config.getoption("--part"), config.getoption("--rounds")
        config.pluginmanager.register(Soak(Path(file), part, rounds))


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[ZooKeeperEnsemble]:
    with ZooKeeperEnsemble(size=3) as ensemble:
        yield ensemble


@pytest.fixture(scope="session")
def opensearch() -> Iterator[OpenSearchCluster]:
    with OpenSearchCluster(size=3) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def elasticsearch() -> Iterator[ElasticsearchCluster]:
    with ElasticsearchCluster(size=1) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def network() -> Iterator[Toxiproxy]:
    with Toxiproxy() as network:
        yield network


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A test that hurts the server heals it afterwards."""
    with S3Server(copy_bytes_max=6 << 20) as server:
        yield server


@pytest.fixture(scope="session")
def kafka(network: Toxiproxy) -> Iterator[KafkaBroker]:
    """A test that hurts the broker or its wire heals it afterwards."""
    with KafkaBroker(network) as broker:
        yield broker


@pytest.fixture(scope="session")
def hdfs(network: Toxiproxy) -> Iterator[HdfsCluster]:
    """A test that hurts a node or a wire heals it afterwards."""
    with HdfsCluster(network) as cluster:
        yield cluster
