"""The commands around landing, as people and schedulers use them: as processes.

Most worlds are made by hand, with the documents and files that nodes make; the last ones land for
real.
"""

import json
import os
import pty
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headgate.ambient import SystemAmbient
from headgate.cluster import Order
from headgate.cluster.tasks import Trouble, new_task, task_key
from headgate.commits.checkpoint import Checkpoint, Journal, LastGap, checkpoint_key
from headgate.commits.record import (
    Record,
    RecordFile,
    RecordGap,
    facts_of,
    record_path,
    to_bytes,
)
from headgate.commits.streams import Pause, StreamDocument, stream_key
from headgate.lake import LakeSettings
from headgate.lake.ledger import Ledger
from headgate.lake.opening import open_lake
from headgate.landing.kind import feed_name, kind_name
from headgate.periods import DAY_MS, Period, escape_name
from headgate.store import DocumentStore
from headgate.store.codec import body_of
from headgate.store.registry import open_store

HEADGATE = str(Path(sys.executable).with_name("headgate"))
PAGE = Path(__file__).parent.parent.parent / "docs/reference/cli.md"
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "COLUMNS")
    and not name.startswith("HEADGATE")
}
ODD = "-é a/b's 日本"
STAGED = "_headgate/staging/s/shard=0-3"
GONE = 'd/x: not published; next: headgate journal restage orders/0 --reason "…"'


class World:
    """A folder with settings, a store and a lake."""

    def __init__(self, folder: Path, *streams: str) -> None:
        self.folder = folder
        (folder / "incoming").mkdir()
        tree = {
            "namespace": "demo",
            "store": "file:./state",
            "lake": "./lake",
            "streams": {name: self._stream(name) for name in streams or ("orders",)},
        }
        self.file = folder / "headgate.yaml"
        self.file.write_text(json.dumps(tree), "utf-8")
        self.ambient = SystemAmbient()
        self.lake = open_lake(LakeSettings(str(folder / "lake")), self.ambient)

    def _stream(self, name: str) -> dict[str, Any]:
        source = {"kind": "files", "path": "./incoming" if name == "orders" else "./other"}
        return {"source": source, "event_time": {"json": "$.at"}, "land_as": "json"}

    @property
    def url(self) -> str:
        return f"file:{self.folder / 'state'}"

    def store(self) -> "closing[DocumentStore]":
        return closing(open_store(self.url, "demo"))

    def put(self, key: str, value: object) -> None:
        with self.store() as store:
            store.create(key, body_of(value))

    def starts(self, stream: str = "orders", *, pause: Pause | None = None) -> None:
        self.put(stream_key(stream), StreamDocument(1, paused=pause))

    def sets_aside(self, stream: str = "orders", words: str = "the disk is on fire") -> None:
        task = new_task(Order(kind_name(stream), b'{"shard": 0}'))
        trouble = Trouble(words, "node-1", 1_800_000_000_000)
        self.put(task_key(feed_name(stream), 0), replace(task, set_aside=trouble))

    def journals(self, stream: str = "orders") -> None:
        """A commit of two files, one of which is gone."""
        facts = facts_of(b"x")
        files = tuple(
            RecordFile("data", "", f"{STAGED}/{n}", f"d/{n}", facts.size_bytes, facts.checksum, 3)
            for n in ("x", "y")
        )
        record = Record(stream, 0, 5, 3, "node-1", 1_800_000_000_000, 1, {}, {"data": 6}, files)
        self.lake.stage(f"{STAGED}/y", b"x")
        told = self.lake.stage(f"{STAGED}/record.json", to_bytes(record))
        journal = Journal(
            *(5, 3, STAGED, f"{STAGED}/record.json", told.size_bytes, told.checksum),
            *({"lane-0": "9"}, {}, {}, (), 1),
        )
        positions = {"lane-0": "4"}
        checkpoint = Checkpoint(epoch=3, turn=2, number=5, positions=positions, journal=journal)
        self.put(checkpoint_key(stream, 0), checkpoint)

    def has_letters(self, stream: str = "orders") -> str:
        """Three dead letters in one file of commit 7; its name, as people see it."""
        told = {"event_time": None, "partition": "lane-0", "number": 3}
        rows = [
            {"_headgate": {**told, "line": 1, "reason": "bad json"}, "raw": "a\x1b[2J"},
            {"_headgate": {**told, "line": 2, "reason": "bad json"}, "raw": "x" * 600},
            {"_headgate": {**told, "line": 3, "reason": "not utf-8"}, "raw_base64": "//4="},
        ]
        content = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
        name = "2026-11-02/shard0-commit0000000007-0.json"
        path = f"_dead/{escape_name(stream)}/{name}"
        facts = facts_of(content)
        file = RecordFile("dead", "", "s", path, facts.size_bytes, facts.checksum, 3)
        record = Record(stream, 0, 7, 3, "node-1", 0, 1, {}, {"dead": 3}, (file,))
        for staged, published, raw in (
            (f"{STAGED}/dead", path, content),
            (f"{STAGED}/record", record_path(stream, 0, 7), to_bytes(record)),
        ):
            self.lake.stage(staged, raw)
            self.lake.publish(staged, published)
        return name

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return headgate(self.folder, *arguments, **more)


def headgate(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HEADGATE, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, **more},
        timeout=300,
    )


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def documented(heading: str) -> set[str]:
    """Fields that the page on the command line promises below a heading."""
    page = PAGE.read_text("utf-8")
    (section,) = re.findall(rf"^{re.escape(heading)}\n(.*?)^(?:##|```)", page, re.M | re.S)
    return {
        name
        for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }


def next_of(said: str, verb: str) -> list[str]:
    """The words of a command that was printed to be copied."""
    (line,) = re.findall(rf"(headgate {verb} .*)", said)
    return shlex.split(line)[1:]


def notes(world: World) -> list[dict[str, Any]]:
    return [json.loads(line) for line in world.run("history", "--json").stdout.splitlines()]


# ── where commands look ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "command",
    [
        *("stream ls", "stream pause orders --reason x", "shard release orders/0 --reason x"),
        *("journal show orders/0", "deadletter ls orders", "history"),
    ],
)
def test_without_settings_the_next_command_is_init(tmp_path: Path, command: str) -> None:
    done = headgate(tmp_path, *command.split())

    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no headgate.yaml here; next: headgate init" in done.stderr


@pytest.mark.parametrize(
    "command", ["status", "run", "node drain 1", "task release a/1 --reason x"]
)
def test_without_settings_and_store_both_are_named(tmp_path: Path, command: str) -> None:
    done = headgate(tmp_path, *command.split())

    assert (done.returncode, done.stdout) == (2, "")
    assert "next: headgate init, or name one with --store URL" in done.stderr


def test_the_older_commands_take_store_and_namespace_from_the_settings(world: World) -> None:
    world.sets_aside()

    listed = world.run("store", "ls", "cluster")
    (key,) = [line.split()[-1] for line in listed.stdout.splitlines()]
    got = world.run("store", "get", key, "--json")
    released = world.run("task", "release", "land:orders/0", "--reason", "x")

    assert listed.returncode == got.returncode == released.returncode == 0
    assert json.loads(got.stdout)["body"]["kind"] == "land:orders"
    assert "next: headgate status\n" in released.stderr
    assert world.run("node", "drain", "9").returncode == 1


def test_a_store_that_is_named_comes_before_the_settings(world: World, tmp_path: Path) -> None:
    world.sets_aside()

    other = world.run("status", "--store", f"file:{tmp_path / 'other'}", "--json")
    same = world.run("status", "--json", HEADGATE_STORE=f"file:{tmp_path / 'other'}")

    assert (other.returncode, json.loads(other.stdout)["streams"]) == (0, [])
    found = json.loads(same.stdout)  # the variable replaces one value of the settings
    assert (found["url"], found["namespace"]) == (f"file:{tmp_path / 'other'}", "demo")
    assert [one["name"] for one in found["streams"]] == ["orders"]


def test_commands_to_copy_name_settings_that_are_not_the_default(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    world.starts()
    world.sets_aside()
    elsewhere = tmp_path_factory.mktemp("else where")

    said = headgate(elsewhere, "status", "--config", str(world.file)).stdout
    words = next_of(said, "shard release")

    assert words[-2:] == ["--config", str(world.file)]
    assert headgate(elsewhere, *words).returncode == 0


@pytest.mark.parametrize("stream", [ODD, "a b", "%2F", "0"])
def test_g6_a_stream_of_any_name_can_be_asked_for_with_the_commands_as_printed(
    tmp_path: Path, stream: str
) -> None:
    world = World(tmp_path, stream)
    world.starts(stream, pause=Pause("x", "ada", 1))
    world.sets_aside(stream)
    world.journals(stream)
    world.has_letters(stream)

    said = world.run("status").stdout
    released = world.run(*next_of(said, "shard release"))
    resumed = world.run(*next_of(said, "stream resume"))
    shown = world.run("journal", "show", "--", f"{stream}/0")
    restaged = world.run(*next_of(shown.stdout, "journal restage"))
    listed = world.run("deadletter", "ls", "--", stream)
    driven = world.run(*next_of(listed.stderr, "deadletter redrive"))

    for done in (released, resumed, restaged, listed, driven):
        assert done.returncode == 0, done.stderr
    assert shown.returncode == 1
    assert {line["subject"].removeprefix(stream)[:2] for line in notes(world)} == {"", "/0", "_d"}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("status order", "the nearest is 'orders'; next: headgate status"),
        ("stream pause order --reason x", "the nearest is 'orders'; next: headgate stream ls"),
        ("shard release order/0 --reason x", "the nearest is 'orders'; next: headgate stream ls"),
        ("shard release orders/3 --reason x", "the nearest is 'orders/0'; next: headgate status"),
        ("shard release orders --reason x", "a shard is named STREAM/SHARD"),
        ("journal show orders/x", "a shard is named STREAM/SHARD"),
        ("deadletter ls order", "the nearest is 'orders'"),
        ("deadletter show orders nothing", "there is none at all; next: headgate deadletter ls"),
        ("deadletter redrive orders --reason x", "name the files, or say --all"),
        ("stream pause orders --reason ''", "a reason is needed"),
        ("history --since yesterday", "is no moment"),
        ("history --since 1h --until 2h", "nothing can be between"),
    ],
)
def test_a_wrong_name_is_2_with_the_nearest_and_the_next_command(
    world: World, command: str, words: str
) -> None:
    done = world.run(*shlex.split(command))

    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


def test_only_run_loads_spark() -> None:
    code = (
        "import sys; from headgate.cli.main import VERBS, loaded; "
        "[loaded(one) for one in VERBS]; print('pyspark' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


# ── status ────────────────────────────────────────────────────────────────────────────────────────


def test_status_of_streams_as_json_has_exactly_the_documented_fields(world: World) -> None:
    world.starts()
    world.sets_aside()
    world.journals()

    done = world.run("status", "--json")

    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(done.stdout)
    assert set(found) == documented("#### The whole")
    (stream,) = found["streams"]
    assert set(stream) == documented("#### One of `streams`")
    assert set(stream["shards"][0]) == documented("#### One of `shards`")
    assert set(stream["shards"][0]["partitions"][0]) == documented("#### One of `partitions`")
    assert set(stream["standing"][0]) == documented("#### One of `standing`")
    assert stream["standing"][0]["next"] == found["tasks"][0]["next"]


def test_status_says_what_stands_still_and_the_command_helps(world: World) -> None:
    world.starts()
    world.sets_aside()

    said = world.run("status")
    done = world.run(*next_of(said.stdout, "shard release"))
    after = world.run("status")

    assert said.returncode == 1
    assert said.stdout.startswith("a person must look")
    assert "set aside: orders/0\n  cause    the disk is on fire\n" in said.stdout
    assert done.returncode == 0
    assert "was set aside  the disk is on fire" in done.stderr
    assert "set aside: " not in after.stdout
    assert (after.returncode, after.stdout.partition(" ")[0]) == (1, "no")  # node is running


def test_status_names_a_gap_and_the_command_tells_of_it(world: World) -> None:
    world.starts()
    now_ms = world.ambient.wall_ns() // 1_000_000
    words = "a.json vanished or changed before it was read"
    gap = RecordGap("lane-0", "3", "4", words, "2026-11-01T13", "2026-11-01T15")
    record = Record("orders", 0, 7, 3, "node-1", now_ms, 1, {}, {}, gaps=(gap,))
    world.lake.stage(f"{STAGED}/record", to_bytes(record))
    world.lake.publish(f"{STAGED}/record", record_path("orders", 0, 7))
    last = LastGap(7, now_ms)
    world.put(checkpoint_key("orders", 0), Checkpoint(3, 2, 7, counts={"gaps": 1}, last_gap=last))
    Ledger(world.lake, "node-1", world.ambient).note("gap.found", "orders/0/7", words)

    shown = world.run("status")
    body = json.loads(world.run("status", "--json").stdout)["streams"][0]
    told = world.run(*next_of(shown.stdout, "history"))

    assert f"gap on record: orders/0\n  cause    {words}; found " in shown.stdout
    assert "the certificates of 2026-11-01T13 to 2026-11-01T15 name the gap" in shown.stdout
    assert body["shards"][0]["missing"]["words"] == words
    assert (told.returncode, words in told.stdout) == (0, True), told.stdout


def test_status_of_one_stream_shows_its_shards(world: World) -> None:
    world.starts()
    world.journals()

    said = world.run("status", "orders").stdout

    assert re.search(r"^orders/0 +not started ", said, re.MULTILINE)
    assert re.search(r"^lane-0 +orders/0 +4 ", said, re.MULTILINE)
    assert "journal stands: orders/0\n  cause    commit 5 is journaled and not finished" in said


def test_g5_status_of_a_damaged_checkpoint_is_4_and_shows_the_rest(world: World) -> None:
    world.starts()
    world.journals()
    (file,) = (world.folder / "state").rglob("00000.json")
    file.write_bytes(b"{")

    done = world.run("status")

    assert done.returncode == 4
    assert done.stdout.startswith("damaged")
    assert "orders" in done.stdout
    assert world.run(*next_of(done.stdout, "store get")).returncode == 4


# ── stream and shard ──────────────────────────────────────────────────────────────────────────────


def test_a_stream_is_paused_and_goes_on_with_the_command_that_was_printed(world: World) -> None:
    world.starts()

    paused = world.run("stream", "pause", "orders", "--reason", "the disk is full")
    again = world.run("stream", "pause", "orders", "--reason", "the disk is full")
    listed = world.run("stream", "ls")
    resumed = world.run(*next_of(paused.stderr, "stream resume"))

    assert (paused.returncode, again.returncode, resumed.returncode) == (0, 1, 0)
    assert "was paused already; nothing was changed" in again.stderr
    assert re.search(r"^orders +1 +paused ", listed.stdout, re.MULTILINE)
    assert world.run("stream", "resume", "orders", "--reason", "x").returncode == 1
    told = [(line["what"], line["subject"], line["words"]) for line in notes(world)]
    assert told == [
        ("stream.paused", "orders", "the disk is full"),
        ("stream.resumed", "orders", "it may go on"),
    ]


def test_streams_are_listed_also_those_that_only_the_store_has(world: World) -> None:
    world.starts("gone", pause=Pause("the disk is full", "ada", 1))

    lines = world.run("stream", "ls", "--json").stdout.splitlines()

    found = [json.loads(line) for line in lines]
    assert set(found[0]) == documented("#### A line of `stream ls --json`")
    assert [(one["name"], one["is_in_settings"], one["is_started"]) for one in found] == [
        ("orders", True, False),
        ("gone", False, True),
    ]
    assert re.search(
        r"^gone +1  paused, not in the settings ", world.run("stream", "ls").stdout, re.MULTILINE
    )
    assert re.search(r"^gone \(not in the settings\) +1 ", world.run("status").stdout, re.MULTILINE)


def test_without_streams_the_next_command_is_for_the_same_settings(world: World) -> None:
    (world.folder / "other.yaml").write_text("store: file:./s\nlake: ./l\n", "utf-8")

    said = world.run("stream", "ls", "--config", "other.yaml").stderr

    assert world.run(*next_of(said, "config check")).returncode == 0
    assert "--config other.yaml" in said


def test_a_release_changes_nothing_that_is_not_set_aside(world: World) -> None:
    unknown = world.run("shard", "release", "orders/0", "--reason", "x")
    world.put(task_key(feed_name("orders"), 0), new_task(Order(kind_name("orders"), b"{}")))
    calm = world.run("shard", "release", "orders/0", "--reason", "x")

    assert (unknown.returncode, calm.returncode) == (1, 1)
    assert "no node has had it yet; next: headgate status" in unknown.stderr
    assert "is not set aside, and nothing was changed" in calm.stderr
    assert notes(world) == []


# ── journal ───────────────────────────────────────────────────────────────────────────────────────


def test_a_journal_shows_its_steps_and_the_command_if_one_cannot_be_done(world: World) -> None:
    world.starts()
    world.sets_aside(words=GONE)
    world.journals()

    done = world.run("journal", "show", "orders/0")
    asked = world.run(*next_of(done.stdout, "journal restage"))
    after = world.run("journal", "show", "orders/0")

    assert done.returncode == 1
    assert done.stdout.startswith("a person must look: it cannot be finished   orders/0, commit 5")
    for row in (r"record +staged", r"data +missing +3 +1 B +d/x", r"data +staged +3 +1 B +d/y"):
        assert re.search(row, done.stdout), row
    assert re.search(r"^lane-0 +4 +9 ", done.stdout, re.MULTILINE)
    assert asked.returncode == 0
    assert "commit 5 is staged again by its next holder" in asked.stderr
    assert "asked      to be staged again" in after.stdout
    assert world.run("status").stdout.count("set aside: ") == 0  # it was released, too


def test_status_names_the_restage_of_a_journal_whose_files_are_gone(world: World) -> None:
    world.starts()
    world.sets_aside(words=GONE)
    world.journals()

    said = world.run("status").stdout
    command = [line for line in said.splitlines() if line.startswith("  next     headgate journal")]

    assert len(command) == 1
    assert world.run(*shlex.split(command[0])[2:]).returncode == 0


def test_a_journal_as_json_has_exactly_the_documented_fields(world: World) -> None:
    world.starts()
    world.journals()

    done = world.run("journal", "show", "orders/0", "--json")

    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert set(found) == documented("#### `journal show --json`")
    assert set(found["steps"][0]) == documented("#### One of `steps`")
    assert [step["state"] for step in found["steps"]] == ["staged", "missing", "staged"]


def test_without_a_journal_nothing_is_restaged(world: World) -> None:
    none = world.run("journal", "show", "orders/0")
    world.put(checkpoint_key("orders", 0), Checkpoint(epoch=1))

    assert none.returncode == 1
    assert world.run("journal", "show", "orders/0").stdout.startswith("no journal stands")
    done = world.run("journal", "restage", "orders/0", "--reason", "x")
    assert (done.returncode, done.stderr.partition(":")[0]) == (1, "halted")
    assert notes(world) == []


# ── deadletter ────────────────────────────────────────────────────────────────────────────────────


def test_dead_letters_are_listed_by_file_with_their_reasons(world: World) -> None:
    name = world.has_letters()

    done = world.run("deadletter", "ls", "orders")
    found = json.loads(world.run("deadletter", "ls", "orders", "--json").stdout)

    assert done.returncode == 0
    row = rf"^{re.escape(name)} +3 +[\d.]+ k?B  2 bad json, 1 not utf-8  lane-0/3$"
    assert re.search(row, done.stdout, re.MULTILINE)
    assert "1 file: 2 bad json, 1 not utf-8" in done.stderr
    assert set(found) == documented("#### A line of `deadletter ls --json`")
    assert (found["file"], found["date"], found["rows"]) == (name, "2026-11-02", 3)


def test_q10_dead_letters_are_shown_with_reason_position_and_record_and_move_no_cursor(
    world: World,
) -> None:
    name = world.has_letters()

    done = world.run("deadletter", "show", "orders", name)
    lines = world.run("deadletter", "show", "orders", "--json").stdout.splitlines()

    assert done.stdout.splitlines() == [
        r"bad json  lane-0/3:1  a\u001b[2J",
        f"bad json  lane-0/3:2  {'x' * 500}… and 100 bytes more",
        r"not utf-8  lane-0/3:3  \xff\xfe",
    ]
    assert "of 3 records only lane, number of the file and line are known" in done.stderr
    found = [json.loads(line) for line in lines]
    assert set(found[0]) == documented("#### A line of `deadletter show --json`")
    assert (found[0]["raw"], found[1]["raw"]) == ("a\x1b[2J", "x" * 600)
    assert (found[2]["raw"], found[2]["raw_base64"]) == (None, "//4=")
    few = world.run("deadletter", "show", "orders", "--limit", "1")
    assert len(few.stdout.splitlines()) == 1
    assert few.stderr.endswith("\nthe first 1; next: --limit 10\n")


def test_no_dead_letters_is_said(world: World) -> None:
    assert world.run("deadletter", "ls", "orders").returncode == 0
    assert world.run("deadletter", "show", "orders").returncode == 1
    assert world.run("deadletter", "redrive", "orders", "--all", "--reason", "x").returncode == 1


def test_a_file_of_dead_letters_is_driven_in_once_by_its_short_or_its_whole_name(
    world: World,
) -> None:
    name = world.has_letters()

    done = world.run("deadletter", "redrive", "orders", f"_dead/orders/{name}", "--reason", "fixed")
    again = world.run("deadletter", "redrive", "orders", name, "--reason", "fixed")

    assert (done.returncode, again.returncode) == (0, 2)
    assert "1 file of orders waits to be read again" in done.stderr
    assert (world.folder / "lake/_redrive/orders" / name).exists()
    assert [line["what"] for line in notes(world)] == ["deadletter.redriven"]


def test_driving_in_a_second_time_says_why_nothing_happens(world: World) -> None:
    name = world.has_letters()
    redrive = ("deadletter", "redrive", "orders", "--all", "--reason", "fixed")
    first = world.run(*redrive)
    again = world.run(*redrive)
    (world.folder / "lake/_redrive/orders" / name).unlink()  # as a node does once it was read
    later = world.run(*redrive)

    assert (first.returncode, again.returncode, later.returncode) == (0, 1, 1)
    nothing = "nothing of orders was driven in: no dead letters are there"
    assert again.stderr == (
        f"{nothing}; 1 file from an earlier time still waits to be read again; "
        "next: headgate status orders\n"
    )
    assert later.stderr == (
        f"{nothing} (those that were driven in earlier have been read); "
        "next: headgate status orders\n"
    )


def test_dead_letters_of_parquet_that_lie_as_json_stay_and_it_is_said(world: World) -> None:
    name = world.has_letters()
    tree = json.loads(world.file.read_text("utf-8"))
    tree["streams"]["orders"]["source"]["format"] = "parquet"
    tree["streams"]["orders"]["event_time"] = {"column": "at"}
    world.file.write_text(json.dumps(tree), "utf-8")

    done = world.run("deadletter", "redrive", "orders", "--all", "--reason", "fixed")

    assert done.returncode == 1
    assert "its records came from Parquet files and lie here as JSON" in done.stderr
    assert (world.folder / "lake/_dead/orders" / name).exists()
    assert notes(world) == []


def test_a_damaged_file_of_dead_letters_is_4_and_the_rest_is_listed(world: World) -> None:
    name = world.has_letters()
    spoiled = world.folder / "lake/_dead/orders/2026-11-01/shard0-commit0000000003-0.json"
    spoiled.parent.mkdir()
    spoiled.write_bytes(b"{\n")

    done = world.run("deadletter", "ls", "orders")

    assert done.returncode == 4
    assert name in done.stdout
    assert "a line is no JSON" in done.stderr


# ── history ───────────────────────────────────────────────────────────────────────────────────────


def test_history_tells_what_was_noted_and_a_torn_line_is_a_remark(world: World) -> None:
    ledger = Ledger(world.lake, "node-1", world.ambient)
    ledger.note("commit.made", "orders/0/1", "5 data")
    ledger.note("commit.made", "clicks/0/1", "a\x1b[2J", who="ada")
    (file,) = (world.folder / "lake/_headgate/ledger").rglob("*.jsonl")
    with file.open("ab") as torn:
        torn.write(b'{"format": 1, "id"')

    done = world.run("history", "--since", "1h")
    some = world.run("history", "--subject", "clicks")
    old = world.run("history", "--until", "1h")

    assert done.returncode == some.returncode == old.returncode == 0
    assert re.search(
        r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  commit.made +orders/0/1  5 data  node-1$",
        done.stdout,
        re.MULTILINE,
    )
    assert r"a\u001b[2J  ada (node-1)" in some.stdout
    assert len(some.stdout.splitlines()) == 1
    assert "1 line cannot be read, torn by a crash or spoiled" in done.stderr
    assert (old.stdout, "nothing between" in old.stderr) == ("", True)
    assert set(notes(world)[0]) == documented("#### A line of `history --json`")


# ── run ───────────────────────────────────────────────────────────────────────────────────────────


def test_run_without_java_is_refused_at_once(world: World) -> None:
    done = world.run("run", "--until", "idle", JAVA_HOME="/nowhere")

    assert (done.returncode, done.stdout) == (2, "")
    assert "invalid: no java was found in JAVA_HOME=/nowhere" in done.stderr
    assert not (world.folder / "state").exists()


def test_run_until_idle_needs_streams(world: World) -> None:
    world.file.write_text('{"store": "file:./state", "lake": "./lake"}', "utf-8")

    done = world.run("run", "--until", "idle")
    bare = world.run("run", "--until", "idle", "--store", world.url)

    assert (done.returncode, bare.returncode) == (2, 2)
    assert "these settings have none; next: headgate config check" in done.stderr
    assert "--store names no settings" in bare.stderr


def test_run_until_idle_of_an_empty_folder_is_a_commit_without_records(world: World) -> None:
    done = world.run("run", "--until", "idle")
    shown, of_it = world.run("status"), world.run("status", "orders")
    bare = world.run("status", "--store", world.url, "--namespace", "demo")
    again = world.run("run", "--until", "idle", "--json")

    assert done.returncode == 0, done.stderr
    assert re.search(r"^orders +0 +0 +0 +0 +1  -$", done.stdout, re.MULTILINE)
    assert "it lands orders" in done.stderr
    assert re.search(r"^orders +1  not known; .* ago: nothing  ", shown.stdout, re.MULTILINE)
    for same in (shown, of_it, bare):
        assert same.returncode == 0, same.stdout
        assert same.stdout.startswith("no node is running, and nothing waits")
        assert "  next  " not in same.stdout, "nobody has to do anything"
    assert again.returncode == 0
    found = json.loads(again.stdout)
    assert set(found) == documented("#### `run --json`")
    assert set(found["streams"][0]) == documented("#### One of `streams` of a run")
    assert (found["is_idle"], found["streams"][0]["commits"]) == (True, 1)


def test_run_until_idle_of_a_paused_stream_is_1_and_names_the_next_command(world: World) -> None:
    world.starts(pause=Pause("the disk is full", "ada", 1))

    done = world.run("run", "--until", "idle")

    assert done.returncode == 1
    assert "paused: orders\n" in done.stderr
    assert world.run(*next_of(done.stderr, "stream resume")).returncode == 0


def test_run_tells_of_unfinished_files_that_it_left(world: World) -> None:
    (world.folder / "incoming/a.json.tmp").write_text("{}", "utf-8")

    done = world.run("run", "--until", "idle")

    assert done.returncode == 0, done.stderr
    assert "unfinished files: orders/0\n  cause    1 file is unfinished" in done.stderr


def test_a_file_that_is_named_gz_and_is_none_is_named_and_not_called_unfinished(
    world: World,
) -> None:
    bad = world.folder / "incoming/a b.json.gz"
    bad.write_text("{}", "utf-8")

    done = world.run("run", "--until", "idle")
    shown = world.run("status")

    assert (done.returncode, shown.returncode) == (1, 1)
    for said in (done.stderr, shown.stdout):
        assert f"unreadable files: orders/0\n  cause    {bad}: its name says gzip" in said
        assert f"mv -n '{bad}' '{bad.with_suffix('')}'" in said
        assert "unfinished" not in said
    bad.unlink()
    assert world.run("run", "--until", "idle").returncode == 0


def test_run_with_a_time_limit_ends_in_good_order(world: World) -> None:
    done = world.run("run", "--max-seconds", "2")

    assert done.returncode == 0, done.stderr
    assert "left: everything is given back" in done.stderr


def test_run_on_a_terminal_shows_how_far_it_is(world: World) -> None:
    parent, child = pty.openpty()
    node = subprocess.Popen(
        [HEADGATE, "run", "--until", "idle"],
        cwd=world.folder,
        stdin=child,
        stdout=child,
        stderr=child,
        env={**ENVIRONMENT, "TERM": "xterm-256color", "COLUMNS": "120"},
    )
    os.close(child)
    seen = b"".join(pieces(parent)).decode("utf-8")
    os.close(parent)

    assert node.wait(60) == 0, seen
    assert "landing: 0 files, 0 B waiting" in seen


def pieces(handle: int) -> Iterator[bytes]:
    while True:
        try:
            piece = os.read(handle, 65_536)
        except OSError:  # how Linux says that the other side is closed
            return
        if not piece:
            return
        yield piece


# ── for real ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.spark
def test_from_init_to_dead_letters_that_are_driven_in_again(tmp_path: Path) -> None:
    """As the pages say it: init, drop files, run, look, drive in again, audit."""
    (tmp_path / "incoming").mkdir()
    assert headgate(tmp_path, "init").returncode == 0
    now_ms = int(time.time() * 1000)
    lines = [json.dumps({"id": n, "at": now_ms - n * 1000}) for n in range(100)]
    (tmp_path / "incoming/a.json").write_text("\n".join([*lines, "not json", '{"id": 1}']))

    first = headgate(tmp_path, "run", "--until", "idle", "--json")
    listed = headgate(tmp_path, "deadletter", "ls", "orders")
    shown = headgate(tmp_path, "deadletter", "show", "orders")
    driven = headgate(tmp_path, *next_of(listed.stderr, "deadletter redrive"))
    second = headgate(tmp_path, "run", "--until", "idle", "--json")
    status = headgate(tmp_path, "status", "--json")
    audit = headgate(tmp_path, "audit")

    assert first.returncode == 0, first.stderr
    (orders,) = json.loads(first.stdout)["streams"]
    assert (orders["landed"], orders["dead"], orders["commits"]) == (100, 2, 1)
    assert "1 bad json, 1 no event time" in listed.stdout
    assert shown.stdout.splitlines() == [
        f"bad json  lane-0/0:101  {tmp_path}/incoming/a.json:101  not json",
        f'no event time  lane-0/0:102  {tmp_path}/incoming/a.json:102  {{"id": 1}}',
    ]
    assert listed.stdout.rstrip().endswith(f"{tmp_path}/incoming/a.json")
    assert driven.returncode == second.returncode == 0, second.stderr
    (orders,) = json.loads(second.stdout)["streams"]
    assert (orders["landed"], orders["dead"]) == (0, 2)  # still unusable
    (orders,) = json.loads(status.stdout)["streams"]
    assert orders["lag"]["files"] == 0
    assert (status.returncode, json.loads(status.stdout)["is_at_rest"]) == (0, True)
    assert audit.returncode == 0, audit.stdout


@pytest.mark.spark
def test_a_run_that_flags_hundreds_of_hours_says_how_far_it_is(world: World) -> None:
    now_ms = int(time.time() * 1000)
    first = Period.hour_of(now_ms - 90 * DAY_MS)
    settings = json.loads(world.file.read_text("utf-8"))
    settings["streams"]["orders"] |= {
        "first_hour": str(first),
        "event_time": {"json": "$.at", "unit": "ms"},
    }
    world.file.write_text(json.dumps(settings), "utf-8")
    (world.folder / "incoming/a.json").write_text(f'{{"at": {now_ms - 60_000}}}\n', "utf-8")

    done = world.run("run", "--until", "idle")

    assert done.returncode == 0, done.stderr
    (told, *_) = re.findall(
        r"^flags: orders is ready up to (\S+), ([\d,]+) hours to go$", done.stderr, re.MULTILINE
    )
    assert told[0] >= f"{first}:00:00Z"
    assert 500 <= int(told[1].replace(",", "")) <= 90 * 24


@pytest.mark.spark
def test_settings_that_spark_refuses_stand_still_at_once_until_they_are_corrected(
    world: World,
) -> None:
    (world.folder / "incoming/a.json").write_text('{"at": 1793534400000}\n', "utf-8")
    right = world.file.read_text("utf-8")
    world.file.write_text(right.replace('{"json": "$.at"}', '{"sql": "no_such_column + 1"}'))

    plain, judged = world.run("config", "check"), world.run("config", "check", "--spark", "--json")
    looked = world.run("doctor", "source", "orders")
    done = world.run("run", "--until", "idle")
    shown = world.run("status")
    world.file.write_text(right, "utf-8")
    released = world.run(*next_of(shown.stdout, "shard release"))
    again = world.run("run", "--until", "idle")

    assert (plain.returncode, judged.returncode, looked.returncode) == (0, 2, 1)
    (problem,) = json.loads(judged.stdout)["problems"]
    assert problem["place"] == "streams.orders"
    assert "Spark refuses event_time sql 'no_such_column + 1'" in problem["words"]
    assert "Spark refuses event_time sql 'no_such_column + 1'" in looked.stdout
    assert (done.returncode, released.returncode) == (1, 0)
    assert done.stderr.count(" warning task.failed ") == 1
    assert 'next="headgate shard release orders/0 ' in done.stderr
    assert "org.apache.spark" not in done.stderr
    assert "Spark refuses event_time sql 'no_such_column + 1'" in shown.stdout
    assert again.returncode == 0, again.stderr
