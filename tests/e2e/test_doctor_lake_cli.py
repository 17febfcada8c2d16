"""`headgate doctor lake`, on disk and in a bucket, as people ask it."""

import json
from pathlib import Path

import pytest

from tests.e2e.test_landing_cli import documented, headgate
from tests.servers.s3 import ACCESS_KEY, SECRET_KEY, S3Server


def test_a_folder_is_asked_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    done = headgate(tmp_path, "doctor", "lake", "./lake", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["is_safe"], found["url"]) == (True, str(tmp_path / "lake"))
    assert {one["verdict"] for one in found["findings"]} == {"ok"}
    assert set(found) == documented("#### `doctor lake --json`")
    assert [path for path in (tmp_path / "lake").rglob("*") if path.is_file()] == []


def test_without_settings_and_url_it_says_what_to_write(tmp_path: Path) -> None:
    done = headgate(tmp_path, "doctor", "lake")
    assert done.returncode == 2
    assert "headgate doctor lake URL" in done.stderr


@pytest.mark.s3
def test_a_bucket_is_asked_with_the_settings_of_the_installation(
    s3: S3Server, tmp_path: Path
) -> None:
    bucket = s3.new_bucket()
    lake = {
        "root": f"s3://{bucket}/lake",
        "endpoint": f"http://{s3.address}",
        "access_key": "${env:ACCESS}",
        "secret_key": "${env:SECRET}",
    }
    settings = {"store": "file:./state", "lake": lake, "streams": {}}
    (tmp_path / "headgate.yaml").write_text(json.dumps(settings), "utf-8")
    keys = {"ACCESS": ACCESS_KEY, "SECRET": SECRET_KEY}

    done = headgate(tmp_path, "doctor", "lake", **keys)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("safe to use")
    assert "crc64nvme" in done.stdout
    assert s3.contents(bucket, "lake") == {}

    wrong = headgate(tmp_path, "doctor", "lake", ACCESS=ACCESS_KEY, SECRET="wrong")
    assert wrong.returncode == 3
    assert "not allowed" in wrong.stderr
    missing = headgate(tmp_path, "doctor", "lake", "s3://no-such-bucket/lake", **keys)
    assert missing.returncode == 3
    assert "no such bucket" in missing.stderr
