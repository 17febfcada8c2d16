"""Flags, certificates and tables, as people and schedulers ask for them: as processes.

One installation lands once for real: `orders` has records, `clicks` has none, and the table was
halted before its first batch. Whoever changes something works on a copy.
"""

import json
import re
import shlex
import shutil
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from headgate.apply.table_document import TableDocument, table_key
from headgate.periods import HOUR_MS, Period
from headgate.store.codec import body_of
from headgate.store.registry import open_store
from tests.e2e.test_landing_cli import documented, headgate, next_of

pytestmark = pytest.mark.spark

ROWS = 60
HOURS = 4  # with records; each is over for longer than the lateness


@dataclass(frozen=True)
class Installation:
    folder: Path
    first: Period
    landed: dict[str, Any]  # what the first run said of orders
    halted: dict[str, Any]  # the table after it
    notice: str

    def hour(self, number: int) -> str:
        return str(Period(self.first.start_ms + number * HOUR_MS, "hour"))

    def flags(self, number: int) -> list[Path]:
        above = self.folder / "lake" / self.hour(number).replace("T", "/") / "orders"
        return [above / "_READY", above / "data/_READY"]

    def copied(self, folder: Path) -> "Installation":
        shutil.copytree(self.folder, folder / "copy")
        return Installation(folder / "copy", self.first, self.landed, self.halted, self.notice)


def stream(path: str) -> dict[str, Any]:
    source = {"kind": "files", "path": path, "format": "json"}
    event_time = {"json": "$.at", "unit": "ms"}
    return {"source": source, "event_time": event_time, "shift": "5s", "grace": "1s"}


def table_of(folder: Path) -> dict[str, Any]:
    (line,) = headgate(folder, "table", "ls", "--json").stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder = tmp_path_factory.mktemp("flags")
    feed = {"stream": "orders"}
    settings = {
        "namespace": "demo",
        "store": "file:./state",
        "lake": "./lake",
        "streams": {"orders": stream("./incoming"), "clicks": stream("./clicks")},
        "tables": {"orders": {"kind": "parquet", "path": "./tables/orders", "feed": feed}},
    }
    (folder / "headgate.yaml").write_text(json.dumps(settings), "utf-8")
    (folder / "clicks").mkdir()
    (folder / "incoming").mkdir()
    now = Period.hour_of(int(time.time() * 1000))
    first = Period(now.start_ms - (HOURS + 1) * HOUR_MS, "hour")
    moments = (first.start_ms + n * HOURS * HOUR_MS // ROWS for n in range(ROWS))
    lines = (json.dumps({"id": n, "at": at_ms}) for n, at_ms in enumerate(moments))
    (folder / "incoming/a.json").write_text("\n".join(lines), "utf-8")
    with closing(open_store(f"file:{folder / 'state'}", "demo")) as store:
        store.create(table_key("orders"), body_of(TableDocument()))
    halting = headgate(folder, "table", "halt", "orders", "--reason", "it is moved")
    assert "orders is halting" in halting.stderr, halting.stderr

    first_run = headgate(folder, "run", "--until", "idle", "--json")
    assert first_run.returncode == 0, first_run.stderr
    orders = next(s for s in json.loads(first_run.stdout)["streams"] if s["name"] == "orders")
    halted, notice = table_of(folder), headgate(folder, "table", "ls").stdout
    resumed = headgate(folder, "table", "resume", "orders", "--reason", "it is there")
    assert resumed.returncode == 0, resumed.stderr
    second_run = headgate(folder, "run", "--until", "idle")
    assert second_run.returncode == 0, second_run.stderr
    return Installation(folder, first, orders, halted, notice)


# ── what is there ─────────────────────────────────────────────────────────────────────────────────


def test_kf15_every_past_hour_has_both_flags_and_verify_accepts_its_certificate(
    landed: Installation,
) -> None:
    done = headgate(landed.folder, "verify", "--all", "--json")

    for number in range(HOURS):
        one, other = landed.flags(number)
        assert one.read_bytes() == other.read_bytes()
    found = json.loads(done.stdout)
    assert (done.returncode, found["is_clean"], found["findings"]) == (0, True, [])
    assert found["periods"] >= HOURS
    assert found["files"] == HOURS
    assert set(found) == documented("#### `verify --json`")


def test_one_period_is_verified_alone(landed: Installation) -> None:
    one = headgate(landed.folder, "verify", landed.hour(1), "--json")
    none = headgate(landed.folder, "verify", "2001-01-01")
    neither = headgate(landed.folder, "verify")

    assert (one.returncode, json.loads(one.stdout)["periods"]) == (0, 1)
    assert (none.returncode, neither.returncode) == (1, 2)
    assert "2001-01-01: nothing there was flagged; next: headgate status" in none.stdout


def test_wait_is_over_at_once_for_a_ready_hour_and_says_what_to_ask_for_another(
    landed: Installation,
) -> None:
    there = headgate(landed.folder, "wait", "orders", landed.hour(0), "--timeout", "0s")
    ahead = headgate(landed.folder, "wait", "orders", landed.hour(48), "--timeout", "1s")

    assert (there.returncode, there.stdout, there.stderr) == (0, "", "")
    assert ahead.returncode == 1
    asked = headgate(landed.folder, *next_of(ahead.stderr, "why"))
    assert (asked.returncode, "it is not over yet" in asked.stdout) == (1, True)


def test_a_certificate_is_the_bytes_of_its_flag(landed: Installation) -> None:
    done = headgate(landed.folder, "certificate", "orders", landed.hour(2), "--json")
    shown = headgate(landed.folder, "certificate", "orders", landed.hour(2))
    never = headgate(landed.folder, "certificate", "orders", landed.hour(48))

    assert done.returncode == shown.returncode == 0
    assert done.stdout.rstrip("\n").encode() == landed.flags(2)[0].read_bytes().rstrip(b"\n")
    assert f"orders {landed.hour(2)}, generation 1: ready\n" in shown.stdout
    assert json.loads(done.stdout)["counts"]["landed"] == ROWS // HOURS
    assert never.returncode == 1
    assert headgate(landed.folder, *next_of(never.stdout, "why")).returncode == 1


def test_why_is_0_for_a_ready_hour(landed: Installation) -> None:
    done = headgate(landed.folder, "why", "orders", landed.hour(0), "--json")

    found = json.loads(done.stdout)
    assert (done.returncode, found["state"], found["reasons"]) == (0, "ready", [])
    assert found["ready_ms"] >= landed.first.start_ms + HOURS * HOUR_MS
    assert set(found) == documented("#### `why --json`")


def test_k7_inv7_a_stream_without_data_holds_the_hour_over_both(landed: Installation) -> None:
    done = headgate(landed.folder, "why", "clicks")

    assert done.returncode == 1
    assert "nothing of it has landed" in done.stdout
    assert "no hour over clicks, orders is ready before" in done.stdout
    over_both = [landed.flags(number)[0].parent.parent / "_READY" for number in range(HOURS)]
    assert not any(flag.exists() for flag in over_both)


def test_the_tables_rows_are_those_that_landed(landed: Installation) -> None:
    files = sorted((landed.folder / "tables/orders").rglob("*.parquet"))
    found = [row for file in files for row in pq.ParquetFile(file).read()["value"].to_pylist()]

    assert landed.landed["landed"] == ROWS
    assert sorted(json.loads(row)["id"] for row in found) == list(range(ROWS))
    table = table_of(landed.folder)
    assert (table["state"], table["rows"], table["waiting"]) == ("running", ROWS, 0)
    assert table["applied_up_to"] >= landed.hour(HOURS - 1)
    assert set(table) == documented("#### A line of `table ls --json`")


def test_inv9_a_halted_table_took_nothing_while_hours_were_flagged(landed: Installation) -> None:
    assert (landed.halted["state"], landed.halted["rows"]) == ("halted", 0)
    assert "it is moved" in landed.notice
    assert next_of(landed.notice, "table resume")[:3] == ["table", "resume", "orders"]
    noted = headgate(landed.folder, "history", "--json", "--subject", "orders").stdout
    told = {json.loads(line)["what"] for line in noted.splitlines()}
    assert {"table.halt", "table.resume"} <= told


def test_status_as_json_has_hours_and_tables(landed: Installation) -> None:
    found = json.loads(headgate(landed.folder, "status", "--json").stdout)

    assert set(found) == documented("#### The whole")
    assert [one["stream"] for one in found["hours"]] == ["orders", "clicks"]
    assert [(one["name"], one["rows"]) for one in found["tables"]] == [("orders", ROWS)]


def test_inv6_inv7_inv8_inv9_the_audit_is_clean(landed: Installation) -> None:
    done = headgate(landed.folder, "audit", "--json", "--deep")

    assert done.returncode == 0, done.stdout
    checked = json.loads(done.stdout)["checked"]
    assert checked["hours"] >= HOURS
    assert (checked["tables"], checked["batches"] >= HOURS) == (1, True)


def file_after_the_flag(found: Installation) -> str:
    folder = found.flags(1)[1].parent
    (folder / "shard0-commit0000000099-0.parquet").write_bytes(b"x")
    return str((folder / "shard0-commit0000000099-0.parquet").relative_to(found.folder / "lake"))


def flag_ahead_of_time(found: Installation) -> str:
    flag = found.folder / "lake" / found.hour(40).replace("T", "/") / "orders/_READY"
    flag.parent.mkdir(parents=True)
    flag.write_bytes(found.flags(1)[0].read_bytes())
    return str(flag.relative_to(found.folder / "lake"))


def table_is_not_mounted(found: Installation) -> str:
    (found.folder / "tables").rename(found.folder / "elsewhere")
    return str(found.folder / "tables/orders")


def batch_is_gone(found: Installation) -> str:
    shutil.rmtree(found.folder / f"tables/orders/headgate_batch={found.hour(HOURS - 1)}")
    return f"orders {found.hour(HOURS - 1)}"


@pytest.mark.parametrize(
    ("harm", "invariant"),
    [
        (file_after_the_flag, 6),
        (flag_ahead_of_time, 7),
        (table_is_not_mounted, 8),
        (batch_is_gone, 8),
    ],
)
def test_the_audit_tells_what_breaks_a_rule_and_what_is_next(
    landed: Installation, tmp_path: Path, harm: Callable[[Installation], str], invariant: int
) -> None:
    copy = landed.copied(tmp_path)
    subject = harm(copy)

    done = headgate(copy.folder, "audit", "--json")

    found = json.loads(done.stdout)["findings"]
    assert (done.returncode, {one["invariant"] for one in found}) == (1, {invariant})
    (told,) = [one for one in found if one["subject"] == subject]
    words = shlex.split(told["next"].rpartition("headgate ")[2])
    assert (words[0], headgate(copy.folder, *words).returncode) == ("audit", 1)


# ── what somebody did to it ───────────────────────────────────────────────────────────────────────


def data_file_is_gone(found: Installation) -> Path:
    (file,) = found.flags(1)[1].parent.glob("*.parquet")
    file.unlink()
    return file


def flag_is_edited(found: Installation) -> Path:
    flag = found.flags(1)[1]
    raw = flag.read_bytes()
    flag.unlink()
    flag.write_bytes(raw.replace(b'"generation":1', b'"generation":2'))
    return flag


def flag_is_gone(found: Installation) -> Path:
    flag = found.flags(1)[0]
    flag.unlink()
    return flag


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (data_file_is_gone, "is gone: 15 rows"),
        (flag_is_edited, "the flag is not what its certificate says"),
        (flag_is_gone, "the flag is gone"),
    ],
)
def test_verify_names_what_is_not_as_certified(
    landed: Installation, tmp_path: Path, harm: Callable[[Installation], Path], words: str
) -> None:
    copy = landed.copied(tmp_path)
    path = harm(copy).relative_to(copy.folder / "lake")

    done = headgate(copy.folder, "verify", "--all", "--json")
    elsewhere = headgate(copy.folder, "verify", copy.hour(0))

    (finding,) = json.loads(done.stdout)["findings"]
    assert (done.returncode, finding["subject"], finding["words"]) == (1, str(path), words)
    again = headgate(copy.folder, *next_of(finding["next"], "verify"))
    assert (again.returncode, elsewhere.returncode) == (1, 0)


def test_a_damaged_hour_is_kept_from_its_readers_by_the_commands_that_verify_names(
    landed: Installation, tmp_path: Path
) -> None:
    copy = landed.copied(tmp_path)
    data_file_is_gone(copy)

    said = headgate(copy.folder, "verify", copy.hour(1)).stdout
    (hold,) = re.findall(r"put a file (\S+) into the lake", said)
    (copy.folder / "lake" / hold).touch()
    asked = headgate(copy.folder, *next_of(said, "flags withdraw"))
    found = headgate(copy.folder, *next_of(said, "locate"))

    assert "asked for; no node holds the root now" in asked.stderr
    assert (found.returncode, "lane-0" in found.stdout) == (0, True), found.stderr


def test_a_flag_that_is_gone_is_told_by_why_and_waited_for(
    landed: Installation, tmp_path: Path
) -> None:
    copy = landed.copied(tmp_path)
    flag_is_gone(copy)

    asked = headgate(copy.folder, "why", "orders", copy.hour(1))
    waited = headgate(copy.folder, "wait", "orders", copy.hour(1), "--timeout", "0s")

    assert "it is complete, and its flag is gone" in asked.stdout
    assert headgate(copy.folder, *next_of(asked.stdout, "flags repair")).returncode == 1
    assert waited.returncode == 1


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("why order", "the nearest is 'orders'"),
        ("why orders 2026-11-01", "is a day; next: name an hour of it, 2026-11-01T00"),
        ("why orders yesterday", "yesterday"),
        ("wait order 2026-11-01", "the nearest is 'orders'"),
        ("certificate orders 2026-11-01", "is a day; next: name an hour of it"),
        ("verify --all 2026-11-01", "next: headgate verify --all"),
        ("table halt order --reason x", "the nearest is 'orders'; next: headgate table ls"),
        ("table halt orders --reason ''", "a reason is needed"),
    ],
)
def test_a_wrong_name_is_2_with_what_to_write(
    landed: Installation, command: str, words: str
) -> None:
    done = headgate(landed.folder, *(word.strip("'") for word in command.split(" ")))

    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
