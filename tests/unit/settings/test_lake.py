"""Where the lake is: a folder of this machine, or a bucket."""

import json
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import Invalid
from headgate.lake import REQUESTS_MAX, BucketSettings, LakeSettings
from headgate.settings.loading import load

SMALL = {
    "store": "file:./state",
    "streams": {
        "orders": {"source": {"kind": "files", "path": "./in"}, "event_time": {"json": "$.at"}}
    },
}


def lake(folder: Path, given: Any) -> LakeSettings:
    file = folder / "headgate.yaml"
    file.write_text(json.dumps({**SMALL, "lake": given}), "utf-8")
    return load(file, {}).lake


def test_a_bucket_needs_only_its_url(tmp_path: Path) -> None:
    for text in ("s3://orders/the/lake", "s3://orders/the/lake/", "S3://orders/the/lake"):
        assert lake(tmp_path, text) == LakeSettings("s3://orders/the/lake")
    assert lake(tmp_path, "s3://orders").root == "s3://orders"


def test_how_a_bucket_is_reached(tmp_path: Path) -> None:
    given = {
        "root": "s3://orders/lake",
        "endpoint": "http://127.0.0.1:7070/",
        "region": "eu-central-1",
        "path_style": False,
        "access_key": "${env:KEY}",
        "secret_key": "${file:/run/secret}",
        "session_token": "${env:TOKEN}",
        "requests": 8,
    }
    assert lake(tmp_path, given).bucket == BucketSettings(
        "http://127.0.0.1:7070",
        "eu-central-1",
        False,
        "${env:KEY}",
        "${file:/run/secret}",
        "${env:TOKEN}",
        8,
    )
    assert lake(tmp_path, "./lake").bucket.requests_max == REQUESTS_MAX


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("s3://B", "no place in a bucket"),
        ("s3://orders/a b", "no place in a bucket"),
        ("s3://orders/a/../b*", "no place in a bucket"),
        ("s3:orders", "no place in a bucket"),
        ("az://orders/x", "not az:.*bucket of Azure"),
        ("gs://orders/x", "not gs:.*bucket of Google"),
        ({"root": "./lake", "endpoint": "http://x"}, "endpoint.*folder of this machine"),
        ({"root": "./lake", "requests": 3}, "requests.*folder of this machine"),
        ({"root": "s3://orders", "group": "data"}, "group.*bucket"),
        ({"root": "s3://orders", "file_mode": "640"}, "file_mode.*bucket"),
        ({"root": "s3://orders", "endpoint": "x:1"}, "no endpoint"),
        ({"root": "s3://orders", "access_key": "${env:A}"}, "access_key and secret_key"),
        ({"root": "s3://orders", "session_token": "${env:A}"}, "session_token"),
        ({"root": "s3://orders", "access_key": "AKIA", "secret_key": "x"}, "bare secret"),
        ({"root": "s3://orders", "requests": 0}, "requests"),
    ],
)
def test_what_cannot_be_is_said_in_words(tmp_path: Path, given: Any, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        lake(tmp_path, given)
