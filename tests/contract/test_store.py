"""Binds every backend to the store contract. No backend has tests of its own here."""

from pathlib import Path

import pytest

from headgate.testing import StoreContract, StoreHarness
from tests.contract.harnesses import FileHarness, MemoryHarness


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
