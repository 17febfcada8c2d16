"""Binds every lake to the contract. No lake has tests of its own here."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.testing import LakeContract, LakeHarness
from tests.contract import hdfs_lakes
from tests.contract.hdfs_lakes import HdfsLakeHarness
from tests.contract.lakes import OUTAGES, LocalLakeHarness, MemoryLakeHarness
from tests.servers.hdfs import HdfsCluster


class TestMemory(LakeContract):
    outages = ("there is no room",)

    @pytest.fixture
    def harness(self) -> LakeHarness:
        return MemoryLakeHarness()


class TestLocal(LakeContract):
    outages = tuple(OUTAGES)

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Iterator[LakeHarness]:
        harness = LocalLakeHarness(tmp_path)
        yield harness
        harness.close()


class TestLocalWithLittleHelp(LakeContract):
    """On an old kernel, or a file system that has no rename that never replaces."""

    outages = tuple(OUTAGES)

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Iterator[LakeHarness]:
        harness = LocalLakeHarness(tmp_path, without=("openat2", "renameat2"))
        yield harness
        harness.close()


@pytest.mark.hdfs
class TestHdfs(LakeContract):
    outages = hdfs_lakes.OUTAGES

    @pytest.fixture
    def harness(self, hdfs: HdfsCluster) -> LakeHarness:
        return HdfsLakeHarness(hdfs)
