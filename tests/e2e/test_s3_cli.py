"""Files land in a bucket: Spark writes there by itself, flags are raised, verify and audit agree.

One installation lands once for real; its table lies on local disk. Whoever damages something puts
it back.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headgate.periods import HOUR_MS, Period
from tests.e2e.far_letters import check_redriving, spoiled
from tests.e2e.test_landing_cli import headgate
from tests.servers.s3 import ACCESS_KEY, SECRET_KEY, S3Server

pytestmark = [pytest.mark.spark, pytest.mark.s3, pytest.mark.timeout(600)]

ROWS, HOURS = 60, 3
LAKE = "the-lake"


@dataclass(frozen=True)
class Installation:
    folder: Path
    server: S3Server
    bucket: str
    first: Period
    run: dict[str, Any]

    def contents(self) -> dict[str, bytes]:
        return dict(self.server.contents(self.bucket))

    def ask(self, *arguments: str) -> Any:
        return headgate(self.folder, *arguments, ACCESS=ACCESS_KEY, SECRET=SECRET_KEY)


@pytest.fixture(scope="module")
def landed(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder, bucket = tmp_path_factory.mktemp("s3"), s3.new_bucket()
    settings = {
        "store": "file:./state",
        "lake": {
            "root": f"s3://{bucket}/{LAKE}",
            "endpoint": f"http://{s3.address}",
            "access_key": "${env:ACCESS}",
            "secret_key": "${env:SECRET}",
        },
        "streams": {
            "orders": {
                "source": {"kind": "files", "path": "./incoming"},
                "event_time": {"json": "$.at", "unit": "ms"},
                "shift": "5s",
                "grace": "1s",
                "merge": True,
            },
            "lines": {
                "source": {"kind": "files", "path": "./texts"},
                "event_time": {"json": "$.at", "unit": "ms"},
                "land_as": "json",
                "shift": "5s",
                "grace": "1s",
            },
        },
        "tables": {
            "orders": {"kind": "parquet", "path": "./tables/o", "feed": {"stream": "orders"}}
        },
        "spark": {"master": "local[2]"},
    }
    (folder / "headgate.yaml").write_text(json.dumps(settings), "utf-8")
    now = Period.hour_of(int(time.time() * 1000))
    first = Period(now.start_ms - (HOURS + 1) * HOUR_MS, "hour")
    moments = [first.start_ms + n * HOURS * HOUR_MS // ROWS for n in range(ROWS)]
    lines = [json.dumps({"id": n, "at": at_ms}) for n, at_ms in enumerate(moments)]
    for name in ("incoming", "texts"):
        (folder / name).mkdir()
        (folder / name / "a.json").write_text("\n".join(lines), "utf-8")
        (folder / name / "bad.json").write_text(spoiled(now.start_ms), "utf-8")
    place = Installation(folder, s3, bucket, first, {})
    done = place.ask("run", "--until", "idle", "--json")
    assert done.returncode == 0, done.stderr
    return Installation(folder, s3, bucket, first, json.loads(done.stdout))


def test_every_record_is_in_the_bucket_once_and_every_hour_has_its_flags(
    landed: Installation,
) -> None:
    files = landed.contents()
    by_stream = {one["name"]: one for one in landed.run["streams"]}
    assert by_stream["orders"]["landed"] == ROWS
    for number in range(HOURS):
        hour = str(Period(landed.first.start_ms + number * HOUR_MS, "hour")).replace("T", "/")
        for stream in ("orders", "lines"):
            above = f"{hour}/{stream}"
            assert files[f"{above}/_READY"] == files[f"{above}/data/_READY"]
        assert f"{hour}/_READY" in files
    lines = [
        json.loads(line)
        for path, content in files.items()
        if "/lines/data/" in path and not path.endswith("_READY")
        for line in content.splitlines()
    ]
    assert sorted(line["id"] for line in lines) == list(range(ROWS))


def test_nothing_is_left_in_staging_and_no_upload_is_open(landed: Installation) -> None:
    staged = [path for path in landed.contents() if path.startswith("_headgate/staging/")]
    assert staged == []
    assert b"<Upload>" not in landed.server.uploads(landed.bucket)


@pytest.mark.parametrize("command", [("verify", "--all"), ("audit",), ("status",)])
def test_who_only_looks_finds_all_in_order(landed: Installation, command: tuple[str, ...]) -> None:
    done = landed.ask(*command)
    assert done.returncode == 0, done.stdout + done.stderr


def test_verify_and_audit_find_an_object_that_somebody_changed(landed: Installation) -> None:
    path = next(one for one in landed.contents() if "/orders/data/" in one and "_READY" not in one)
    client, content = landed.server.client(landed.bucket), landed.contents()[path]
    client.ask("PUT", f"{LAKE}/{path}", body=b"PAR1 no more", is_repeatable=True)
    try:
        found = [landed.ask(*one) for one in (("verify", "--all"), ("audit",))]
    finally:
        client.ask("PUT", f"{LAKE}/{path}", body=content, is_repeatable=True)
    assert [one.returncode for one in found] == [1, 1]
    assert all(path in one.stdout for one in found)


def test_dead_letters_are_driven_in_again_from_a_bucket(landed: Installation) -> None:
    check_redriving(landed.folder, landed.ask, landed.contents)


def test_the_keys_are_in_no_file_that_headgate_wrote(landed: Installation) -> None:
    for path in (*landed.folder.rglob("*.json"), *landed.folder.rglob("*.yaml")):
        assert SECRET_KEY not in path.read_text("utf-8")
    assert not any(SECRET_KEY.encode() in content for content in landed.contents().values())
