"""A certificate, as a value and as bytes, and where its flags lie."""

import hashlib
import json
from dataclasses import replace

import pytest

from headgate.commits import certificate as module
from headgate.commits.certificate import (
    Certificate,
    CertifiedFile,
    CertifiedPartition,
    ParentCertificate,
    flag_paths,
    from_bytes,
    hold_path,
    parent_flag_path,
    parent_from_bytes,
    sealed,
    to_bytes,
    withdrawn_path,
)
from headgate.errors import Corrupt, Invalid
from headgate.periods import DEFAULT_FOLDER, FolderTemplate, Period

HOUR = Period.parse("2026-11-01T13")
TEMPLATE = FolderTemplate.parse(DEFAULT_FOLDER)
FOUND = sealed(
    Certificate(
        "ordérs",
        "2026-11-01T13",
        1,
        (CertifiedFile("a/b", 12, "sha256:00", 3),),
        {"lane-0": CertifiedPartition("", "2", 7, "idle")},
        (),
        {"landed": 3, "late": 0, "dead": 0},
        (1, 2),
        {"0": ((1, 3),)},
        5,
        "node",
    )
)


def test_it_comes_back_as_it_was() -> None:
    assert from_bytes(to_bytes(FOUND), "x") == FOUND


def test_a_stranger_can_check_its_hash() -> None:
    body = json.loads(to_bytes(FOUND))
    told = body.pop("hash")
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
    assert told == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def test_it_has_one_spelling() -> None:
    raw = to_bytes(FOUND)
    assert raw.endswith(b"}\n")
    assert b": " not in raw
    assert "ordérs".encode() in raw
    with pytest.raises(Corrupt, match="x/_READY"):
        from_bytes(json.dumps(json.loads(raw)).encode(), "x/_READY")


@pytest.mark.parametrize(
    ("old", "new"),
    [(b'"rows":3', b'"rows":4'), (b'"node":"node"', b'"node":"mode"'), (b"}\n", b"}"), (b"{", b"")],
)
def test_whatever_was_changed_in_it_is_noticed(old: bytes, new: bytes) -> None:
    raw = to_bytes(FOUND)
    assert old in raw
    with pytest.raises(Corrupt, match="x/_READY"):
        from_bytes(raw.replace(old, new, 1), "x/_READY")


def test_what_is_not_sealed_is_not_written() -> None:
    with pytest.raises(Invalid, match="not sealed"):
        to_bytes(replace(FOUND, generation=2))


def test_a_parent_names_the_hashes_of_its_children() -> None:
    parent = sealed(ParentCertificate("2026-11-01T13", 1, {"orders": FOUND.hash}, 5, "node"))
    assert parent_from_bytes(to_bytes(parent), "x") == parent
    with pytest.raises(Corrupt, match="x"):
        parent_from_bytes(to_bytes(parent).replace(b"orders", b"arders"), "x")


def test_kf15_a_flag_lies_in_the_data_folder_and_in_the_streams() -> None:
    assert flag_paths(TEMPLATE, HOUR, "orders") == (
        "2026-11-01/13/orders/data/_READY",
        "2026-11-01/13/orders/_READY",
    )
    assert parent_flag_path(TEMPLATE, HOUR) == "2026-11-01/13/_READY"
    assert parent_flag_path(TEMPLATE, HOUR.day()) == "2026-11-01/_READY"
    assert hold_path(TEMPLATE, HOUR, "orders") == "2026-11-01/13/orders/working"


@pytest.mark.parametrize(
    ("template", "paths"),
    [
        ("{yyyy}-{MM}-{dd}/{HH}/{stream}", ("2026-11-01/13/orders/_READY",)),
        ("{stream}/{yyyy}-{MM}-{dd}T{HH}", ("orders/2026-11-01T13/_READY",)),
        ("{yyyy}-{MM}-{dd}/{HH}/{stream}/{shard}", ("2026-11-01/13/orders/_READY",)),
    ],
)
def test_where_both_places_are_one_there_is_one_flag(template: str, paths: tuple[str, ...]) -> None:
    assert flag_paths(FolderTemplate.parse(template), HOUR, "orders") == paths


def test_an_hour_that_is_spread_over_shards_folders_has_no_place_for_a_flag() -> None:
    spread = FolderTemplate.parse("{shard}/{yyyy}-{MM}-{dd}/{HH}/{stream}")
    with pytest.raises(Invalid, match=r"put \{shard\} last"):
        flag_paths(spread, HOUR, "orders")


def test_a_folder_over_one_stream_only_has_no_parents_flag() -> None:
    own = FolderTemplate.parse("{stream}/{yyyy}-{MM}-{dd}T{HH}")
    assert parent_flag_path(own, HOUR) is None
    assert parent_flag_path(own, HOUR.day()) is None


def test_k10_the_name_of_a_flag_has_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FLAG", "_KAFKA_READY")
    paths = [*flag_paths(TEMPLATE, HOUR, "a"), parent_flag_path(TEMPLATE, HOUR) or ""]
    assert all(path.endswith("/_KAFKA_READY") for path in paths)
    assert withdrawn_path(paths[0], 2).endswith("/_KAFKA_READY.2")
