"""Binds every kind of table to the contract. No table has tests of its own here."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.tables import Table
from headgate.testing.contract.table import TableContract, TableHarness
from tests.contract.tables import LocalTableHarness, MemoryTableHarness


class TestParquetInMemory(TableContract):
    @pytest.fixture
    def harness(self) -> TableHarness:
        return MemoryTableHarness()


class TestParquetOnDisk(TableContract):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> Iterator[TableHarness]:
        harness = LocalTableHarness(tmp_path)
        yield harness
        harness.close()


class TestParquetOnDiskWithLittleHelp(TableContract):
    """On a file system that has no rename that never replaces."""

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Iterator[TableHarness]:
        harness = LocalTableHarness(tmp_path, is_without=True)
        yield harness
        harness.close()


def test_each_table_guarantee_has_a_contract_test() -> None:
    numbers = re.findall(r"^    T(\d+) ", Table.__doc__ or "", re.MULTILINE)
    assert numbers == [str(n) for n in range(1, len(numbers) + 1)]
    for number in numbers:
        assert any(name.startswith(f"test_t{number}_") for name in vars(TableContract)), number
