"""Where the files of a commit lie, and what their names say."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.engine import Kind, LandAs, StagedFile
from headgate.engine.codecs import CODECS, suffix_of
from headgate.landing.names import (
    attempt_folder,
    commit_of,
    file_stem,
    folder_of,
    label_of,
    labels_of,
    named,
    shard_folder,
)
from headgate.periods import HOUR_MS, Period
from headgate.testing.estuary import settings_of

TODAY = Period.parse("2026-11-02")
HOUR = Period.parse("2026-11-01T13").start_ms
SETTINGS = settings_of()

whole = st.integers(0, 10**12)


def staged(path: str, kind: Kind = "data", hour_ms: int | None = HOUR) -> StagedFile:
    return StagedFile(path, "0-1", kind, hour_ms, 1)


@pytest.mark.parametrize(
    ("kind", "hour_ms", "folder"),
    [
        ("data", HOUR, "2026-11-01/13/orders/data"),
        ("late", HOUR, "_late/2026-11-01/13/orders/data"),
        ("dead", None, "_dead/orders/2026-11-02"),
        ("dead", HOUR, "_dead/orders/2026-11-02"),
    ],
)
def test_each_kind_has_its_folder(kind: Kind, hour_ms: int | None, folder: str) -> None:
    assert folder_of(SETTINGS, 0, kind, hour_ms, TODAY) == folder


def test_late_records_may_be_dead_letters() -> None:
    settings = replace(SETTINGS, late_records="dead-letter")
    assert folder_of(settings, 0, "late", HOUR, TODAY) == "_dead/orders/2026-11-02/late"


PACKED = [(land_as, codec) for land_as, codecs in CODECS.items() for codec in codecs]


@given(shard=whole, number=whole, index=whole, packed=st.sampled_from(PACKED))
def test_inv1_the_name_of_a_file_says_its_commit(
    shard: int, number: int, index: int, packed: tuple[LandAs, str]
) -> None:
    name = f"{file_stem(shard, number)}-{index}.{suffix_of(*packed)}"
    assert commit_of(name) == (shard, number)


@pytest.mark.parametrize(
    "name",
    [
        *("part-0.parquet", "shard0-commit1-0.parquet", "shard0-commit0000000001-0.avro.gz"),
        *("xshard0-commit0000000001-0.json", "shard0-commit0000000001-0.json.tmp", "_READY"),
    ],
)
def test_what_others_call_their_files_is_not_ours(name: str) -> None:
    assert commit_of(name) is None


@given(st.lists(st.tuples(whole, whole), min_size=1, max_size=12))
def test_an_attempts_name_says_whose_it_is(pairs: list[tuple[int, int]]) -> None:
    labels = [label_of(shard, epoch) for shard, epoch in pairs]
    folder = attempt_folder("any/stream", lambda: "0" * 32, labels)
    assert labels_of(folder.rpartition("/")[2]) == pairs
    assert len(folder.rpartition("/")[2]) < 32 + 12 * 30  # a file system takes 255 of usual ones


def test_a_dozen_usual_labels_fit_a_name() -> None:
    labels = [label_of(99_999, 99_999_999) for _ in range(12)]
    assert len(attempt_folder("s", lambda: "0" * 32, labels).rpartition("/")[2]) <= 255


@pytest.mark.parametrize("name", ["x", "0" * 32, f"{'0' * 32}.0", f"{'0' * 31}.0-1", "a.0-1.json"])
def test_a_folder_of_others_is_nobodys_attempt(name: str) -> None:
    assert labels_of(name) is None


def test_g10_two_streams_that_look_alike_stage_apart() -> None:
    folders = {attempt_folder(name, lambda: "0" * 32, ["0-1"]) for name in ("a:b", "a b", "a/b")}
    assert len(folders) == 3


def test_files_of_a_folder_are_counted_and_the_order_is_always_the_same() -> None:
    files = [staged("c"), staged("b"), staged("a", hour_ms=HOUR + HOUR_MS), staged("d", "skip")]
    found = named(SETTINGS, 3, 17, TODAY, files, None)

    assert found == named(SETTINGS, 3, 17, TODAY, files[::-1], None)
    assert [(one.staged.path, one.published) for one in found] == [
        ("a", "2026-11-01/14/orders/data/shard3-commit0000000017-0.json"),
        ("b", "2026-11-01/13/orders/data/shard3-commit0000000017-0.json"),
        ("c", "2026-11-01/13/orders/data/shard3-commit0000000017-1.json"),
    ]


@pytest.mark.parametrize(
    ("first_hour_ms", "kind"),
    [(None, "data"), (HOUR - HOUR_MS, "data"), (HOUR, "data"), (HOUR + HOUR_MS, "late")],
)
def test_k22_what_is_before_the_first_hour_is_late(first_hour_ms: int | None, kind: Kind) -> None:
    (found,) = named(SETTINGS, 0, 1, TODAY, [staged("a")], first_hour_ms)
    assert found.kind == kind


def test_a_shards_folder_lies_in_its_attempt() -> None:
    assert shard_folder("_headgate/staging/s/x.0-1", "0-1") == (
        "_headgate/staging/s/x.0-1/shard=0-1"
    )
