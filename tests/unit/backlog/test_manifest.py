"""Manifests: frozen once, and never anything else."""

from dataclasses import replace

import pytest

from headgate.backlog.manifest import (
    Manifest,
    ManifestFile,
    check_files,
    freeze,
    hash_of,
    manifest_path,
    read_manifest,
)
from headgate.errors import Corrupt
from headgate.lake.memory import MemoryLake
from headgate.lake.paths import STAGING

BATCH = "2026-11-01T13"


def manifest_in(lake: MemoryLake) -> Manifest:
    facts = lake.stage("data/1.parquet", b"a\nb\n")
    file = ManifestFile("data/1.parquet", facts.size_bytes, facts.checksum, 2)
    return Manifest("t", BATCH, "orders", 1, "sha256:c", (file,))


def test_b12_what_was_frozen_is_read_back() -> None:
    lake = MemoryLake()
    manifest = manifest_in(lake)
    path = freeze(lake, manifest)
    assert path == manifest_path("t", BATCH, 1) == f"_headgate/manifests/t/{BATCH}.1.json"
    assert read_manifest(lake, path, hash_of(manifest)) == manifest
    assert manifest.rows == 2
    assert freeze(lake, manifest) == path
    assert not [one for one in lake.files() if one.startswith(STAGING)]


def test_what_was_frozen_survives_a_power_cut() -> None:
    lake = MemoryLake()
    manifest = manifest_in(lake)
    path = freeze(lake, manifest)
    lake.power_cut()
    assert read_manifest(lake, path, hash_of(manifest)) == manifest


def test_b12_another_manifest_never_takes_the_name() -> None:
    lake = MemoryLake()
    manifest = manifest_in(lake)
    path = freeze(lake, manifest)
    with pytest.raises(Corrupt, match="another manifest has this name"):
        freeze(lake, replace(manifest, certificate="sha256:d"))
    assert read_manifest(lake, path, hash_of(manifest)) == manifest
    assert freeze(lake, replace(manifest, generation=2)) != path


def test_a_manifest_that_is_gone_or_was_changed_is_told() -> None:
    lake = MemoryLake()
    manifest = manifest_in(lake)
    path = freeze(lake, manifest)
    with pytest.raises(Corrupt, match="was changed since it was queued"):
        read_manifest(lake, path, "sha256:other")
    with pytest.raises(Corrupt, match="is gone"):
        read_manifest(lake, "_headgate/manifests/t/none.json", "sha256:other")


@pytest.mark.parametrize("state", ["is gone", "was changed"])
def test_b12_a_file_that_is_not_what_was_frozen_is_named(state: str) -> None:
    lake = MemoryLake()
    manifest = manifest_in(lake)
    check_files(lake, manifest)
    facts = lake.facts("data/1.parquet")
    assert facts is not None
    lake.remove("data/1.parquet", facts)
    if state == "was changed":
        lake.stage("data/1.parquet", b"a\nc\n")
    with pytest.raises(Corrupt, match=f"data/1.parquet: {state}"):
        check_files(lake, manifest)
