"""How many files a round becomes, and how large they are: few, and none of them huge.

The target size is lowered, so that a small input is a large one.
"""

import math
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.engine import spark
from headgate.engine.spark import TASKS_UNSHUFFLED_MAX, SparkEngine
from tests.spark import AT_MS, HOUR_MS, USES_SPARK, Bench, bench, spark_engine

__all__ = ["bench", "spark_engine"]

pytestmark = USES_SPARK

TARGET_BYTES = 200_000
RECORD_BYTES = 100
HOURS = 6
ADVISED = "spark.sql.adaptive.advisoryPartitionSizeInBytes"


@pytest.fixture
def many_cores(
    monkeypatch: pytest.MonkeyPatch, spark_engine: tuple[SparkEngine, Path]
) -> Iterator[int]:
    """As on a large machine, with a small target."""
    monkeypatch.setattr(spark, "TARGET_BYTES", TARGET_BYTES)
    monkeypatch.setattr(SparkEngine, "_cores", lambda *_: 64)
    conf = spark_engine[0]._opened().conf
    before = conf.get(ADVISED)
    assert before is not None
    conf.set(ADVISED, str(TARGET_BYTES))
    yield 64
    conf.set(ADVISED, before)


def incoming(bench: Bench, files: int, file_bytes: int, hours: int) -> list[Path]:
    """Files of records of all hours, which cannot be packed much smaller."""
    found, chance = [], random.Random(7)
    for number in range(files):
        lines = [
            f'{{"at":{AT_MS - n % hours * HOUR_MS},"x":"{chance.randbytes(36).hex()}"}}\n'
            for n in range(file_bytes // RECORD_BYTES)
        ]
        assert {len(line) for line in lines} == {RECORD_BYTES}
        found.append(bench.file(f"{number}.json", "".join(lines)))
    return found


def files_by_hour(bench: Bench) -> Counter[int | None]:
    return Counter(file.hour_ms for file in bench.staged.files)


@pytest.mark.usefixtures("many_cores")
@pytest.mark.parametrize("land_as", ["parquet", "text"])
def test_an_input_larger_than_the_target_is_landed_as_files_of_the_target_size(
    bench: Bench, land_as: str
) -> None:
    files = incoming(bench, 14, TARGET_BYTES // 4, hours=1)  # three and a half targets

    rows = bench.stage(*files, land_as=land_as, target_bytes=TARGET_BYTES)

    assert len(rows) == 14 * TARGET_BYTES // 4 // RECORD_BYTES
    assert len(bench.staged.files) == TASKS_UNSHUFFLED_MAX
    assert max(file.rows for file in bench.staged.files) * RECORD_BYTES <= TARGET_BYTES


@pytest.mark.usefixtures("many_cores")
def test_a_few_tasks_write_a_file_an_hour_each_and_no_more(bench: Bench) -> None:
    bench.stage(*incoming(bench, 14, TARGET_BYTES // 4, HOURS), target_bytes=TARGET_BYTES)
    assert set(files_by_hour(bench).values()) == {TASKS_UNSHUFFLED_MAX}
    assert len(bench.staged.files) == HOURS * TASKS_UNSHUFFLED_MAX


@pytest.mark.usefixtures("many_cores")
def test_many_tasks_send_each_hour_to_one_place(bench: Bench) -> None:
    """Twelve tasks that each wrote all hours would make 72 files."""
    files = incoming(bench, 24, TARGET_BYTES // 2, HOURS)

    rows = bench.stage(*files, target_bytes=TARGET_BYTES)

    hour_bytes = 24 * TARGET_BYTES // 2 // HOURS
    assert len(rows) == 24 * TARGET_BYTES // 2 // RECORD_BYTES
    assert len(files_by_hour(bench)) == HOURS
    assert max(files_by_hour(bench).values()) <= 1 + math.ceil(hour_bytes / TARGET_BYTES)


@pytest.mark.usefixtures("many_cores")
def test_an_hour_that_is_much_larger_than_the_others_becomes_several_files(bench: Bench) -> None:
    """Else one task would write what all the others wait for."""
    files = incoming(bench, 24, TARGET_BYTES // 2, hours=1)

    rows = bench.stage(*files, land_as="text", target_bytes=TARGET_BYTES)

    assert len(rows) == 24 * TARGET_BYTES // 2 // RECORD_BYTES
    largest = max(file.rows for file in bench.staged.files) * RECORD_BYTES
    assert largest <= 2 * TARGET_BYTES
    assert len(bench.staged.files) <= 24 // 2 + 1
