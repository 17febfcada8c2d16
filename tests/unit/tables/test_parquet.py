"""What the Parquet table promises beside the contract: its mark, its names, and who may act."""

import pytest

from headgate.errors import Fenced, Invalid
from headgate.lake.paths import STAGING
from headgate.tables import Batch, BatchFile, Identity
from headgate.tables.parquet import (
    MARK,
    ParquetTable,
    epoch_of,
    folder_of_run,
    folder_of_version,
    version_of,
)
from headgate.testing.basin import Basin, Ladle
from headgate.testing.manual import ManualAmbient

FIRST = Identity("2026-11-01T13", 42)
FILES = {"lake/1.parquet": b"a\n"}
BATCH = Batch(FIRST.batch, "sha256:m", (BatchFile("lake/1.parquet", 2, "sha256:x", 1),))


def table_in(basin: Basin, name: str = "orders", epoch: int = 1) -> ParquetTable:
    return ParquetTable(name, basin, Ladle(FILES.get, basin.put_at), ManualAmbient(), epoch)


def test_a_batch_lies_where_any_reader_finds_its_name_and_run() -> None:
    basin = Basin()
    table = table_in(basin)
    table.apply(BATCH, FIRST, table.look("", FIRST.batch).base)
    folder = "headgate_batch=2026-11-01T13/headgate_run=42"
    assert sorted(basin.files()) == [
        MARK,
        f"{folder}/_headgate.json",
        f"{folder}/part-1.parquet",
    ]


def test_a_folder_belongs_to_one_table() -> None:
    basin = Basin()
    table_in(basin).look("", FIRST.batch)
    with pytest.raises(Invalid, match="is the folder of table orders, not of sales"):
        table_in(basin, "sales").look("", FIRST.batch)


def test_b4_a_table_that_is_not_mounted_gets_no_new_mark() -> None:
    basin = Basin()
    seen = table_in(basin).look("recorded", FIRST.batch)
    assert not seen.is_known
    assert basin.files() == {}


def test_a_version_of_another_mark_is_not_known() -> None:
    basin = Basin()
    table = table_in(basin)
    base = table.look("", FIRST.batch).base
    version = table.apply(BATCH, FIRST, base)
    assert table.look(version, FIRST.batch).is_known
    assert not table.look(version_of("other", FIRST), FIRST.batch).is_known


def test_a_proof_that_cannot_be_read_is_told_as_damaged() -> None:
    basin = Basin()
    basin.stage(f"{folder_of_run(FIRST)}/_headgate.json", b"cut o")
    assert table_in(basin).look("", FIRST.batch).runs[FIRST.run].kind == "damaged"


def test_inv10_whoever_is_fenced_in_mid_apply_starts_no_further_effect() -> None:
    basin, left = Basin(), [100]

    def check() -> None:
        left[0] -= 1
        if left[0] <= 0:
            before.append(basin.files())
            raise Fenced("trust is over")

    before: list[dict[str, bytes]] = []
    ladle = Ladle(FILES.get, basin.put_at)
    table = ParquetTable("orders", basin, ladle, ManualAmbient(), 1, check)
    base = table.look("", FIRST.batch).base
    left[0] = 2  # before the rows are moved; and once they are
    with pytest.raises(Fenced):
        table.apply(BATCH, FIRST, base)
    assert ladle.moves == 1
    assert basin.files() == before[0]
    assert any(path.startswith(STAGING) for path in basin.files())


def test_names_lead_back_to_what_they_are_made_of() -> None:
    version = version_of("mark", FIRST)
    assert folder_of_version("mark", version) == folder_of_run(FIRST)
    assert folder_of_version("other", version) is None
    assert folder_of_version("mark", "mark") is None
    assert folder_of_run(Identity("a/b c", 1)) == "headgate_batch=a%2Fb%20c/headgate_run=1"
    assert (epoch_of("0000000007-ab"), epoch_of("removing-ab"), epoch_of("7")) == (7, None, None)
