"""Binds sources to their contract: files of both folders, with each act after a read; a log, in
memory and of a real broker."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from headgate.ambient import SystemAmbient
from headgate.sources.kafka.client import KafkaCluster
from headgate.store.file import FileStore
from headgate.testing import SourceContract, SourceHarness
from headgate.testing.manual import ManualAmbient, manual_store
from headgate.testing.weir import Weir
from tests.contract.logs import BrokerProducer, LogHarness, WeirProducer
from tests.contract.sources import AfterRead, FilesHarness, LocalDrops, MemoryDrops
from tests.servers.kafka import KafkaBroker


def in_memory(after_read: AfterRead) -> FilesHarness:
    ambient = ManualAmbient()
    return FilesHarness(manual_store(ambient), ambient, MemoryDrops(), after_read)


def on_disk(folder: Path, after_read: AfterRead) -> Iterator[FilesHarness]:
    ambient = ManualAmbient()
    store = FileStore(folder / "state", "contract", ambient)
    yield FilesHarness(store, ambient, LocalDrops(folder / "incoming"), after_read)
    store.close()


class TestKeptInMemory(SourceContract):
    @pytest.fixture
    def harness(self) -> SourceHarness:
        return in_memory("keep")


class TestMovedInMemory(SourceContract):
    removes_what_was_read = True

    @pytest.fixture
    def harness(self) -> SourceHarness:
        return in_memory("move")


class TestDeletedInMemory(SourceContract):
    removes_what_was_read = True

    @pytest.fixture
    def harness(self) -> SourceHarness:
        return in_memory("delete")


class TestKeptOnDisk(SourceContract):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> Iterator[SourceHarness]:
        yield from on_disk(tmp_path, "keep")


class TestMovedOnDisk(SourceContract):
    removes_what_was_read = True

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Iterator[SourceHarness]:
        yield from on_disk(tmp_path, "move")


class TestDeletedOnDisk(SourceContract):
    removes_what_was_read = True

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Iterator[SourceHarness]:
        yield from on_disk(tmp_path, "delete")


class TestLogInMemory(SourceContract):
    keeps_books = False

    @pytest.fixture
    def harness(self) -> SourceHarness:
        ambient, weir = ManualAmbient(), Weir()
        store = manual_store(ambient)
        return LogHarness(store, ambient, weir.cluster(), WeirProducer(weir))


@pytest.mark.kafka
class TestLogOfABroker(SourceContract):
    keeps_books = False

    @pytest.fixture
    def harness(self, kafka: KafkaBroker) -> SourceHarness:
        ambient = ManualAmbient()
        cluster = KafkaCluster(kafka.address, {}, "read_committed", SystemAmbient())
        producer = BrokerProducer(kafka)
        return LogHarness(manual_store(ambient), ambient, cluster, producer, f"t-{uuid4().hex}")
