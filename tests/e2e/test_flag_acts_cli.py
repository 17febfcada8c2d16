"""What a person does about flags, streams that end and a table that failed: as processes.

No record is there: both streams have a first hour in the settings, so their hours are proved empty
and flagged, and no Spark is needed. Whoever changes something works on a copy.
"""

import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headgate.periods import HOUR_MS, Period
from tests.e2e.test_landing_cli import documented, headgate, next_of

HOURS = 3


@dataclass(frozen=True)
class Installation:
    folder: Path
    first: Period

    def hour(self, number: int) -> str:
        return str(Period(self.first.start_ms + number * HOUR_MS, "hour"))

    def above(self, number: int) -> Path:
        return self.folder / "lake" / self.hour(number).replace("T", "/")

    def flags(self) -> dict[Path, bytes]:
        lake = self.folder / "lake"
        found = sorted(lake.rglob("_READY"))
        return {path.relative_to(lake): path.read_bytes() for path in found}

    def run(self, *words: str) -> Any:
        return headgate(self.folder, *words)

    def land(self) -> None:
        done = self.run("run", "--until", "idle")
        assert done.returncode in (0, 1), done.stderr

    def copied(self, folder: Path) -> "Installation":
        shutil.copytree(self.folder, folder / "copy")
        return Installation(folder / "copy", self.first)

    def settings(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "headgate.yaml").read_text("utf-8"))
        return found

    def write(self, settings: dict[str, Any]) -> None:
        (self.folder / "headgate.yaml").write_text(json.dumps(settings), "utf-8")

    def notes(self, what: str) -> list[dict[str, Any]]:
        lines = map(json.loads, self.run("history", "--json").stdout.splitlines())
        return [line for line in lines if line["what"] == what]


@pytest.fixture(scope="module")
def flagged(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder = tmp_path_factory.mktemp("acts")
    now = Period.hour_of(int(time.time() * 1000))
    first = Period(now.start_ms - (HOURS + 1) * HOUR_MS, "hour")
    streams = {}
    for name in ("orders", "clicks"):
        (folder / name).mkdir()
        (folder / name / ".keep").touch()  # also a copy of it is meant to be empty
        long_ago_s = time.time() - 2 * 3600
        os.utime(folder / name / ".keep", (long_ago_s, long_ago_s))  # nobody is writing it
        streams[name] = {
            "source": {"kind": "files", "path": f"./{name}", "format": "json"},
            "event_time": {"json": "$.at", "unit": "ms"},
            "shift": "5s",
            "grace": "1s",
            "allowed_lateness": "1m",
            "first_hour": str(first),
        }
    found = Installation(folder, first)
    found.write(
        {"namespace": "demo", "store": "file:./state", "lake": "./lake", "streams": streams}
    )
    found.land()
    assert (found.above(0) / "_READY").exists()
    return found


# ── flags ─────────────────────────────────────────────────────────────────────────────────────────


def test_k15_kf17_folders_that_a_cleaner_took_are_flagged_again_with_the_same_bytes(
    flagged: Installation, tmp_path: Path
) -> None:
    copy = flagged.copied(tmp_path)
    before = copy.flags()
    shutil.rmtree(copy.above(0) / "orders")  # it held nothing but flags
    (copy.above(1) / "_READY").unlink()

    asked = copy.run("flags", "repair", "--json")

    found = json.loads(asked.stdout)
    assert (asked.returncode, found["is_done"], found["node"]) == (1, False, None)
    assert set(found) == documented("#### `flags repair --json`")
    assert {Path(one["path"]) for one in found["missing"]} == set(before) - set(copy.flags())
    told = copy.run("flags", "repair", "--from", copy.hour(1), "--to", copy.hour(1))
    assert "no node holds the root now: the next one that runs raises them" in told.stderr
    assert "next: headgate run\n" in told.stderr

    copy.land()

    assert {path: copy.flags()[path] for path in before} == before
    again = copy.run("flags", "repair")
    assert (again.returncode, again.stderr.strip()) == (0, "no flag is missing")
    assert len(copy.notes("flags.repair")) == 2
    assert copy.run("verify", "--all").returncode == 0


def test_inv6_an_hour_is_withdrawn_by_command_and_follows_as_generation_2(
    flagged: Installation, tmp_path: Path
) -> None:
    copy = flagged.copied(tmp_path)
    words = ("flags", "withdraw", "orders", copy.hour(0), "--reason", "it is wrong")

    asked = copy.run(*words, "--json")

    found = json.loads(asked.stdout)
    assert (asked.returncode, found["is_done"], found["generation"]) == (1, False, 2)
    assert set(found) == documented("#### `flags withdraw --json`")
    hold = copy.folder / "lake" / found["hold"]
    hold.touch()
    copy.land()
    assert not (copy.above(0) / "orders/_READY").exists()
    assert not (copy.above(0) / "_READY").exists()
    assert (copy.above(0) / "orders/_READY.1").exists()
    assert (copy.above(0) / "clicks/_READY").exists()
    held = copy.run(*words)
    assert (held.returncode, "was withdrawn already" in held.stderr) == (1, True)
    asked = copy.run(*next_of(held.stderr, "why"))
    assert "generation 2 is next" in asked.stdout

    hold.unlink()
    copy.land()
    shown = copy.run("certificate", "orders", copy.hour(0), "--json")
    assert json.loads(shown.stdout)["generation"] == 2
    assert (copy.above(0) / "_READY").exists()
    (note,) = copy.notes("flags.withdraw")
    assert note["words"] == "it is wrong"


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("flags withdraw orders 2001-01-01T00 --reason x", 1, "has no flag"),
        ("flags withdraw order 2001-01-01T00 --reason x", 2, "the nearest is 'orders'"),
        ("flags withdraw orders 2001-01-01 --reason x", 2, "is a day"),
        ("flags repair --from yesterday", 2, "yesterday"),
        ("stream retire orders --reason x", 2, "is in the settings, without an end"),
        ("stream retire odd --reason x", 2, "the nearest is 'orders'"),
    ],
)
def test_what_cannot_be_asked_for_says_why(
    flagged: Installation, command: str, code: int, words: str
) -> None:
    done = flagged.run(*command.split())

    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr


# ── streams that end ──────────────────────────────────────────────────────────────────────────────


def test_k7_a_stream_that_left_the_settings_is_named_and_retired_by_the_printed_command(
    flagged: Installation, tmp_path: Path
) -> None:
    copy = flagged.copied(tmp_path)
    settings = copy.settings()
    del settings["streams"]["clicks"]
    copy.write(settings)

    status = copy.run("status")
    why = copy.run("why", "clicks")

    assert status.returncode == 1
    assert "not in the settings: clicks" in status.stdout
    assert "gets the flag over all streams" in status.stdout
    assert (why.returncode, "it is not in the settings" in why.stdout) == (1, True)
    done = copy.run(*next_of(why.stdout, "stream retire"))
    assert (done.returncode, "is retired: no hour from" in done.stderr) == (0, True)
    again = copy.run("stream", "retire", "clicks", "--reason", "again")
    assert (again.returncode, "was retired already" in again.stderr) == (1, True)
    after = copy.run("status")
    assert "not in the settings: clicks" not in after.stdout
    assert "retired" in copy.run("stream", "ls").stdout
    assert len(copy.notes("stream.retired")) == 1
    assert copy.run("audit").returncode == 0


def test_a_stream_past_its_last_hour_has_ended_and_a_run_does_not_wait_for_it(
    flagged: Installation, tmp_path: Path
) -> None:
    copy = flagged.copied(tmp_path)
    settings = copy.settings()
    settings["streams"]["clicks"]["last_hour"] = copy.hour(0)
    copy.write(settings)
    assert copy.run("config", "check").returncode == 0
    copy.land()
    shutil.rmtree(copy.folder / "clicks")  # nobody needs its source any more

    done = copy.run("run", "--until", "idle", "--json")

    assert done.returncode == 0, done.stderr
    found = json.loads(copy.run("status", "--json").stdout)
    ended = {one["name"]: one["ended"] for one in found["streams"]}
    assert ended["orders"] == ""
    assert ended["clicks"].startswith("ended: its last hour was")
    assert {frozenset(one) for one in found["roots"]} == {
        frozenset(documented("#### One of `roots`"))
    }
    why = copy.run("why", "clicks", copy.hour(HOURS + 9))
    assert "nobody waits for this hour of it" in why.stdout


# ── a table that failed ───────────────────────────────────────────────────────────────────────────


def test_b3_bf8_a_table_that_failed_is_repaired_and_applied_by_the_printed_command(
    flagged: Installation, tmp_path: Path
) -> None:
    copy = flagged.copied(tmp_path)
    settings = copy.settings()
    feed = {"stream": "orders"}
    settings["tables"] = {"daily": {"kind": "parquet", "path": "./daily", "feed": feed}}
    copy.write(settings)
    stray = copy.folder / f"daily/headgate_batch={copy.hour(1)}/headgate_run=9"
    stray.mkdir(parents=True)
    (stray / "part.parquet").write_bytes(b"not ours")  # somebody's rows, without a proof

    copy.land()
    halted = copy.run("table", "ls")
    assert f"stopped at batch {copy.hour(1)}" in halted.stdout
    assert copy.run("status").returncode == 1

    shutil.rmtree(stray)  # the repair
    command = next_of(halted.stdout, "table retry")
    assert copy.run(*command[: command.index("--reason")], "--reason", "gone").returncode == 0
    copy.land()

    (line,) = copy.run("table", "ls", "--json").stdout.splitlines()
    table = json.loads(line)
    assert (table["state"], table["waiting"]) == ("running", 0)
    assert table["applied_up_to"] >= copy.hour(HOURS - 1)
    assert table["batches"] >= HOURS
    assert {note["what"] for note in copy.notes("table.retry")} == {"table.retry"}
