"""The installed `headgate audit`, over a store and a lake on disk."""

import json
import os
import pty
import shlex
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from headgate.apply.table_document import TableDocument, table_key
from headgate.commits.certificate import parents_folder
from headgate.commits.roots import root_name
from headgate.periods import DEFAULT_FOLDER, FolderTemplate
from headgate.store.codec import body_of
from headgate.store.registry import open_store
from tests.crash.ready_flows import Close
from tests.crash.ready_world import run
from tests.unit.audit.worlds import landed

HEADGATE = str(Path(sys.executable).with_name("headgate"))
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "COLUMNS")
}
FILE = "2026-11-01/01/orders/data/shard0-commit0000000002-0.parquet"
ABOVE = parents_folder(root_name(FolderTemplate.parse(DEFAULT_FOLDER)))
SETTINGS = """
namespace: demo
store: file:./state
lake: ./lake
streams:
  orders:
    source: {kind: files, path: ./incoming, format: json}
    event_time: {json: $.at, unit: ms}
"""


def headgate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HEADGATE, *arguments], cwd=folder, capture_output=True, text=True, env=ENVIRONMENT
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with settings, a store and a lake in which three commits have landed."""
    world = landed(3)
    (tmp_path / "headgate.yaml").write_text(SETTINGS, "utf-8")
    for path, content in world.lake.files().items():
        file = tmp_path / "lake" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    with closing(open_store(f"file:{tmp_path / 'state'}", "demo")) as store:
        for document in world.store.list().documents:
            store.create(document.key, document.body)
    return tmp_path


def test_a_sound_lake_is_clean(place: Path) -> None:
    found = headgate(place, "audit", "--deep")
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == [
        "clean: the invariants hold",
        "checked  1 stream, 1 shard, 3 commit records, 6 folders, 12 files by size and checksum; "
        "rows: 21 on time, 3 late, 3 dead letters, 3 blank lines or headers",
    ]
    assert found.stderr == ""


def test_planted_g1_a_file_that_is_gone_is_a_finding_with_its_next_command(place: Path) -> None:
    (place / "lake" / FILE).unlink()

    found = headgate(place, "audit")

    assert found.returncode == 1
    title, finding, meaning, advice, _ = found.stdout.splitlines()
    assert title == "1 finding: something is not as it must be"
    assert finding.startswith(f"invariant 2  {FILE}  is not there")
    assert meaning.startswith("  meaning  ")
    command = advice.partition("then ")[2]
    assert headgate(place, *shlex.split(command)[1:]).stdout == found.stdout


def test_the_next_command_names_the_settings_that_were_given(place: Path) -> None:
    (place / "lake" / FILE).unlink()
    renamed = place / "other settings.yaml"
    (place / "headgate.yaml").rename(renamed)
    found = headgate(place, "audit", "--config", renamed.name)
    command = found.stdout.splitlines()[3].partition("then ")[2]
    assert headgate(place, *shlex.split(command)[1:]).stdout == found.stdout


def test_json_says_the_same(place: Path) -> None:
    content = (place / "lake" / FILE).read_bytes()
    (place / "lake" / FILE).write_bytes(content[::-1])

    assert headgate(place, "audit", "--json").returncode == 0
    found = headgate(place, "audit", "--json", "--deep", "--stream", "orders")

    assert found.returncode == 1
    answer = json.loads(found.stdout)
    assert answer["is_clean"] is False
    assert [(one["invariant"], one["subject"]) for one in answer["findings"]] == [(1, FILE)]
    assert answer["checked"]["rows"] == {"data": 21, "late": 3, "dead": 3, "skip": 3}


def test_a_remark_is_shown_and_is_no_finding(place: Path) -> None:
    old = place / "lake/_headgate/staging/orders" / f"{1:032x}.0-6" / "shard=0-6"
    old.mkdir(parents=True)
    (old / "part.parquet").write_bytes(b"x")
    found = headgate(place, "audit")
    assert found.returncode == 0
    assert "remark  _headgate/staging/orders/" in found.stdout


@pytest.mark.parametrize("arguments", [["--stream", "ordres"], ["--config", "nowhere.yaml"]])
def test_what_is_not_there_is_invalid(place: Path, arguments: list[str]) -> None:
    found = headgate(place, "audit", *arguments)
    assert found.returncode == 2
    assert found.stderr.startswith("invalid: ")


def test_an_audit_changes_nothing_on_disk(place: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (place / "lake").rglob("*")}
    headgate(place, "audit", "--deep")
    assert {path: path.stat().st_mtime_ns for path in (place / "lake").rglob("*")} == before


def test_inv8_a_table_that_is_not_mounted_is_a_finding_and_nothing_is_made(place: Path) -> None:
    table = "tables:\n  daily: {kind: parquet, path: ./mnt/daily, feed: {stream: orders}}\n"
    (place / "headgate.yaml").write_text(SETTINGS + table, "utf-8")
    assert headgate(place, "audit").returncode == 0  # nothing was ever in it
    document = TableDocument(version="m/headgate_batch=x/headgate_run=1", batches=3)
    with closing(open_store(f"file:{place / 'state'}", "demo")) as store:
        store.create(table_key("daily"), body_of(document))

    found = headgate(place, "audit", "--json")

    assert found.returncode == 1, found.stderr
    told = {one["subject"]: one for one in json.loads(found.stdout)["findings"]}
    finding = told[str(place / "mnt/daily")]
    assert finding["invariant"] == 8
    assert finding["words"].startswith("there is no such folder, and table daily has 3 batches")
    assert not (place / "mnt").exists()
    assert json.loads(found.stdout)["checked"]["tables"] == 1


@pytest.fixture
def flagged(tmp_path: Path) -> Path:
    """A lake with the flags of a day, and settings whose store is not there."""
    world = Close().fresh()
    run(world)
    for path, content in world.lake.files().items():
        file = tmp_path / "lake" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    bids = SETTINGS.partition("  orders:")[2]
    settings = f"{SETTINGS}  bids:{bids}".replace("file:./state", "file:./nowhere")
    (tmp_path / "headgate.yaml").write_text(settings, "utf-8")
    return tmp_path


def test_verify_needs_no_store(flagged: Path) -> None:
    found = headgate(flagged, "verify", "--all")

    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.splitlines() == [
        "verified: everything is as certified",
        "checked  7 certificates, 2 files, 61 B",
    ]
    assert not (flagged / "nowhere").exists()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("2027-01-15/23/orders/data/shard0-commit0000000001-0.json", "is gone: 3 rows"),
        ("2027-01-15/23/_READY", "the flag is gone"),
        ("_headgate/certificates/orders/2027-01-15T23/00001.json", "has no certificate any more"),
        (f"{ABOVE}/2027-01-15/00001.json", "has no certificate any more"),
    ],
)
def test_verify_names_what_a_person_deleted(flagged: Path, path: str, words: str) -> None:
    (flagged / "lake" / path).unlink()

    found = headgate(flagged, "verify", "2027-01-15", "--json")

    assert found.returncode == 1
    assert words in {one["words"] for one in json.loads(found.stdout)["findings"]}


def test_on_a_terminal_it_says_how_far_it_is(place: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [HEADGATE, "audit"], cwd=place, stdout=subprocess.PIPE, stderr=theirs, env=ENVIRONMENT
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 10_000):
            shown += part
    except OSError:
        pass  # the other end is closed
    finally:
        os.close(ours)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.startswith(b"clean")
    assert b"orders" in shown
