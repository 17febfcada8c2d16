"""Nodes as people run them: real processes on one folder, killed, paused, drained, looked at."""

import fcntl
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psutil
import pytest

from headgate.ambient import SystemAmbient
from headgate.app import Equipment, Place, joined_node
from headgate.cli.signals import ECHO_MS
from headgate.cluster import Order, worker
from headgate.cluster import session as sessions
from headgate.cluster.duties import NodeSettings
from headgate.cluster.session import EXPIRED, STOOD_STILL
from headgate.cluster.tasks import new_task, task_key
from headgate.status import ClusterStatus, read_status
from headgate.store.codec import body_of, parse
from headgate.store.pages import pages
from headgate.store.registry import open_store
from headgate.testing.steps import STEPS, Progress, StepsFeed, StepsKind, find_faults

ROOT = Path(__file__).parent.parent.parent
HEADGATE = str(Path(sys.executable).with_name("headgate"))
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name
    not in (
        "FORCE_COLOR",
        "NO_COLOR",
        "TTY_COMPATIBLE",
        "COLUMNS",
        "HEADGATE_STORE",
        "HEADGATE_CONFIG",
    )
}
TERM_S = 2
WAIT_S_MAX = 60.0
SMALL_DEMO = (
    *("doctor", "fleet", "--tasks", "9", "--steps", "36", "--pause-ms", "300"),
    *("--term-seconds", "2", "--seed", "3"),
)


def headgate(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HEADGATE, *arguments],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, **more},
        timeout=120,
    )


class Fleet:
    """Nodes on one folder that share the tasks of a feed."""

    def __init__(self, folder: Path) -> None:
        self.url = f"file:{folder / 'state'}"
        self.feed = StepsFeed("demo", 6, 30, 150)
        self._folder = folder
        self._all: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *more: str) -> "subprocess.Popen[bytes]":
        with self.log(name).open("wb") as errors:
            node = subprocess.Popen(
                [
                    *(HEADGATE, "--log-level", "info", "run", "--store", self.url, "--name", name),
                    *("--term-seconds", str(TERM_S), "--demo-tasks", str(self.feed.count)),
                    *("--demo-steps", str(self.feed.steps)),
                    *("--demo-pause-ms", str(self.feed.pause_ms), *more),
                ],
                stderr=errors,
                stdout=errors,
                env=ENVIRONMENT,
            )
        self._all.append(node)
        return node

    def log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def said(self, name: str) -> str:
        return self.log(name).read_text("utf-8")

    def status(self) -> ClusterStatus:
        with closing(open_store(self.url)) as store:
            return read_status(store, SystemAmbient())

    def held(self, name: str) -> int:
        return sum(task.node == name and bool(task.session) for task in self.status().tasks)

    def steps(self) -> int:
        return sum(len(one.steps) for one in self.progress())

    def progress(self) -> list[Progress]:
        with closing(open_store(self.url)) as store:
            return [
                parse(document, Progress)
                for page in pages(store, STEPS)
                for document in page.documents
            ]

    def is_done(self) -> bool:
        return any(feed.removed == self.feed.count for feed in self.status().feeds)

    def live_sessions(self) -> list[str]:
        with closing(open_store(self.url)) as store:
            found = [sessions.read(d) for page in pages(store, "sessions") for d in page.documents]
        return [seen.session.node for seen in found if seen.session.is_live]

    def kill_all(self) -> None:
        for node in self._all:
            node.kill()
            node.wait()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path)
    try:
        yield fleet
    finally:
        fleet.kill_all()


def wait_until(is_so: Callable[[], bool], s_max: float = WAIT_S_MAX) -> None:
    until_s = time.monotonic() + s_max
    while not is_so():
        assert time.monotonic() < until_s, "it did not come to that in time"
        time.sleep(0.05)


def share(fleet: Fleet, *names: str) -> None:
    """Until all of them hold their share, and work."""
    each = fleet.feed.count // len(names)
    wait_until(lambda: all(fleet.held(name) >= each for name in names) and fleet.steps() > 6)


# ── headgate run ──────────────────────────────────────────────────────────────────────────────────


def test_sigterm_drains_a_node_which_leaves_nothing_behind(fleet: Fleet) -> None:
    node = fleet.start("one")
    share(fleet, "one")

    node.send_signal(signal.SIGTERM)

    assert node.wait(WAIT_S_MAX) == 0
    assert fleet.live_sessions() == []
    assert [task.session for task in fleet.status().tasks] == [""] * fleet.feed.count
    assert [task.tries for task in fleet.status().tasks] == [0] * fleet.feed.count
    said = fleet.said("one")
    assert "node one joined as number 1, session " in said
    assert f"headgate status --store {fleet.url}" in said
    # With or without a step in hand, as the moment has it.
    stopping = r"stopping: (finishing the step of demo/\d+(, demo/\d+)*, )?giving back all {} tasks"
    assert re.search(stopping.format(fleet.feed.count), said)
    assert "giving back all 6 tasks" in said
    assert "node one left: everything is given back" in said
    for event in ("member.joined", "leader.elected", "task.claimed", "member.left"):
        assert f"info {event} " in said
    assert "Traceback" not in said


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_second_signal_ends_a_node_at_once(
    fleet: Fleet, number: signal.Signals, code: int
) -> None:
    node = fleet.start("one")
    wait_until(lambda: "leader.elected" in fleet.said("one"))  # a right it cannot give back now
    with nobody_can_write(fleet):
        node.send_signal(number)
        node.send_signal(number)  # as timeout(1) does it, to the process and then to its group
        wait_until(lambda: "stopping: " in fleet.said("one"))
        time.sleep(ECHO_MS / 1_000)
        assert node.poll() is None, "two at once are one"

        node.send_signal(number)

        assert node.wait(10) == code
    assert fleet.said("one").endswith(
        "ended at once: its session ends by itself within a term, then others go on\n"
    )
    assert fleet.live_sessions() == ["one"]


def nobody_can_write(fleet: Fleet) -> ExitStack:
    """Holds every lock of the folder, as a process that was stopped in the middle would."""
    held = ExitStack()
    for number in range(64):
        stripe = Path(fleet.url.removeprefix("file:")) / "default" / ".stripes" / f"{number:02x}"
        handle = held.enter_context(stripe.open("a"))
        fcntl.flock(handle, fcntl.LOCK_EX)
    return held


def test_g5_a_node_killed_in_the_middle_loses_and_doubles_nothing(fleet: Fleet) -> None:
    one, _ = fleet.start("one"), fleet.start("two")
    share(fleet, "one", "two")

    one.kill()
    wait_until(fleet.is_done)

    progress = fleet.progress()
    assert find_faults(fleet.feed, progress) == []
    assert {step.node for done in progress for step in done.steps} == {"one", "two"}
    assert any(done.steps[-1].epoch > done.steps[0].epoch for done in progress)
    # Both are true of a killed node, at the same moment: which is seen first, chance decides.
    assert any(f'node=one why="{why}"' in fleet.said("two") for why in (EXPIRED, STOOD_STILL))


def test_after_a_kill_the_next_node_says_whom_it_waits_for_and_how_long(fleet: Fleet) -> None:
    one = fleet.start("one", "--term-seconds", "8")
    share(fleet, "one")
    one.kill()

    fleet.start("two", "--term-seconds", "8")
    wait_until(lambda: "seems to be gone" in fleet.said("two"))

    told = r"node one, number 1, seems to be gone: nothing was heard of it for [\d.]+ s; its work "
    (free_s,) = re.findall(told + r"is free in about ([\d.]+) s", fleet.said("two"))
    assert 0 <= float(free_s) <= 8
    wait_until(lambda: fleet.held("two") == fleet.feed.count)


def test_inv3_a_node_that_sleeps_past_its_session_does_nothing_twice(fleet: Fleet) -> None:
    one, _ = fleet.start("one"), fleet.start("two")
    share(fleet, "one", "two")

    pause_harmlessly(one)
    wait_until(lambda: fleet.held("one") == 0)
    one.send_signal(signal.SIGCONT)
    wait_until(lambda: "session.lost" in fleet.said("one"))
    wait_until(fleet.is_done)

    assert find_faults(fleet.feed, fleet.progress()) == []
    numbers = re.findall(r"member.joined number=(\d+)", fleet.said("one"))
    assert len(numbers) == 2
    one.send_signal(signal.SIGTERM)
    assert one.wait(WAIT_S_MAX) == 0


def pause_harmlessly(node: "subprocess.Popen[bytes]") -> None:
    """Not in the middle of a write: whoever stops there holds others up, and is another test."""
    for _ in range(100):
        node.send_signal(signal.SIGSTOP)
        time.sleep(0.05)
        locks = Path("/proc/locks").read_text("ascii")
        if not re.search(rf"FLOCK +ADVISORY +WRITE {node.pid} ", locks):
            return
        node.send_signal(signal.SIGCONT)
        time.sleep(0.05)
    pytest.fail("it is always in the middle of a write")


def test_a_node_without_a_task_source_waits_and_says_so(fleet: Fleet) -> None:
    node = subprocess.Popen(
        [HEADGATE, "run", "--store", fleet.url], stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    try:
        assert node.stderr is not None
        first, second = node.stderr.readline(), node.stderr.readline()
        assert re.match(
            rf"node \S+-{node.pid} joined as number 1, session \w{{8}}, at file:", first
        )
        assert second.startswith("no task source here")
        node.send_signal(signal.SIGTERM)
        assert node.wait(WAIT_S_MAX) == 0
        assert "stopping: nothing is in hand" in node.stderr.read()
    finally:
        node.kill()
        node.communicate()


GONE = """
from headgate.errors import Unavailable
from headgate.store.file import open_url
from headgate.testing.planted import ForwardingStore

class Gone(ForwardingStore):
    def get(self, *args, **options):
        raise Unavailable("nobody answers; next: try again")
    create = replace = list = get

def open_gone(url, namespace, ambient):
    return Gone(open_url(url, namespace, ambient))
"""


@pytest.fixture
def gone(tmp_path: Path) -> str:
    """Where a package with a store that never answers is installed: for PYTHONPATH."""
    site = tmp_path / "site"
    info = site / "gone_stores-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gone-stores\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[headgate.stores]\ngone = gone_stores:open_gone\n")
    (site / "gone_stores.py").write_text(GONE)
    return str(site)


@pytest.mark.parametrize(
    "command",
    [
        ["run"],
        ["status"],
        ["node", "drain", "one"],
        ["task", "release", "demo/1", "--reason", "x"],
    ],
)
def test_a_store_that_cannot_be_reached_is_3_at_once(
    tmp_path: Path, gone: str, command: list[str]
) -> None:
    done = headgate(*command, "--store", f"gone:{tmp_path / 'state'}", PYTHONPATH=gone)

    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines()[-1] == "unavailable: nobody answers; next: try again"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("run --store fil:./x", "did you mean file:?"),
        ("run --store file:/no/such/folder/state", "next: mkdir -p /no/such/folder"),
        ("run --store file:./x --workers 0", "Invalid value for '--workers'"),
        ("run --store file:./x --term-seconds 0", "Invalid value for '--term-seconds'"),
        ("run --store file:./x --name a\x07b", "needs letters that can be shown"),
        ("run", "next: headgate init, or name one with --store URL"),
        ("status", "next: headgate init, or name one with --store URL"),
        ("status --store nothing", "invalid: "),
        ("task release nonsense --reason x --store file:./x", "a task is named FEED/NUMBER"),
        ("task release demo/x --reason x --store file:./x", "a task is named FEED/NUMBER"),
        ("task release demo/99999999999 --reason x --store file:./x", "a task's number is 0 to"),
        ("task release demo/1 --store file:./x", "Missing option '--reason'"),
        ("node drain --store file:./x", "Missing argument 'NODE'"),
    ],
)
def test_a_wrong_setting_is_2_and_says_what_is_wrong(
    tmp_path: Path, command: str, words: str
) -> None:
    done = subprocess.run(
        [HEADGATE, *command.split(" ")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, "COLUMNS": "200"},
        timeout=60,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert "\x07" not in done.stderr
    assert not (tmp_path / "x").exists()


# ── headgate node drain ───────────────────────────────────────────────────────────────────────────


def test_drain_ends_a_node_with_0_and_its_tasks_move(fleet: Fleet) -> None:
    one, _ = fleet.start("one"), fleet.start("two")
    share(fleet, "one", "two")

    done = headgate("node", "drain", "one", "--store", fleet.url, "--wait", "--reason", "a test")

    assert (done.returncode, done.stdout) == (0, "")
    assert "is asked to finish its work and leave" in done.stderr
    assert done.stderr.endswith(", has left\n")
    assert one.wait(WAIT_S_MAX) == 0
    assert "asked for it with `headgate node drain`" in fleet.said("one")
    wait_until(fleet.is_done)
    assert find_faults(fleet.feed, fleet.progress()) == []
    assert fleet.live_sessions() == ["two"]

    again = headgate("node", "drain", "one", "--store", fleet.url)

    assert again.returncode in (0, 1)  # 1 once its session is forgotten
    assert "not there any more: left" in again.stderr or "no node has the name" in again.stderr


def test_drain_by_a_name_that_two_have_lists_their_numbers(fleet: Fleet) -> None:
    fleet.start("twin"), fleet.start("twin")
    wait_until(lambda: len(fleet.live_sessions()) == 2)

    done = headgate("node", "drain", "twin", "--store", fleet.url)
    commands = re.findall(r"headgate (node drain \d+ --store \S+?)(?:,|$)", done.stderr.strip())

    assert done.returncode == 2
    assert len(commands) == 2
    assert headgate(*commands[0].split(), "--wait").returncode == 0
    wait_until(lambda: len(fleet.live_sessions()) == 1)


def test_drain_of_nobody_is_1_with_the_next_command(fleet: Fleet) -> None:
    done = headgate("node", "drain", "nobody", "--store", fleet.url)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"no node has the name or number nobody; next: headgate status --store {fleet.url}\n"
    )


# ── headgate task release, and what status says of poison ─────────────────────────────────────────


@pytest.fixture
def poisoned(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    """A node in this process, whose tries follow each other quickly; task 1 is poison."""
    monkeypatch.setattr(worker, "RETRY_MS", 5)
    feed = StepsFeed("demo", 3, 2, 0, frozenset({1}))
    with joined_node(
        Place(fleet.url),
        NodeSettings("here"),
        SystemAmbient(),
        equip=lambda store, ambient: Equipment([StepsKind(store, ambient)], [feed]),
    ) as joined:
        thread = threading.Thread(target=joined.node.run)
        thread.start()
        try:
            yield fleet
        finally:
            joined.node.drain()
            thread.join(WAIT_S_MAX)
            assert not thread.is_alive()


def aside(fleet: Fleet) -> list[str]:
    return [task.name for task in fleet.status().tasks if task.set_aside is not None]


def test_poison_is_set_aside_shown_released_and_set_aside_again(poisoned: Fleet) -> None:
    wait_until(lambda: aside(poisoned) == ["demo/1"])

    shown = headgate("status", "--store", poisoned.url)

    assert shown.returncode == 1
    assert shown.stdout.startswith("a person must look   file:")
    assert "set aside: demo/1 was tried 5 times" in shown.stdout
    assert "demo/1 is poison" in shown.stdout
    (command,) = re.findall(r"next +headgate (task release .*)", shown.stdout)
    (task,) = json.loads(headgate("status", "--store", poisoned.url, "--json").stdout)["tasks"]
    assert task["next"] == f"headgate {command}"
    before = version_of(poisoned, 1)

    done = headgate(*shlex.split(command))

    assert (done.returncode, done.stdout) == (0, "")
    assert "demo/1 is released" in done.stderr
    wait_until(lambda: version_of(poisoned, 1) != before and aside(poisoned) == ["demo/1"])


def version_of(fleet: Fleet, number: int) -> str:
    with closing(open_store(fleet.url)) as store:
        found = store.get(task_key("demo", number))
        assert found is not None
        return found.version


def test_release_of_what_is_not_set_aside_is_1_and_changes_nothing(fleet: Fleet) -> None:
    with closing(open_store(fleet.url)) as store:
        store.create(task_key("demo", 1), body_of(new_task(Order("steps", b""))))
    before = version_of(fleet, 1)
    command = ["--store", fleet.url, "--reason", "why not"]

    not_aside = headgate("task", "release", "demo/1", *command)
    unknown = headgate("task", "release", "demo/2", *command)

    assert (not_aside.returncode, unknown.returncode) == (1, 1)
    assert not_aside.stderr.startswith("demo/1 is not set aside, and nothing was changed")
    assert unknown.stderr.startswith("there is no task demo/2")
    assert version_of(fleet, 1) == before


# ── headgate status ───────────────────────────────────────────────────────────────────────────────


def documented(heading: str) -> set[str]:
    """Fields that the page on the command line promises below a heading."""
    page = (ROOT / "docs/reference/cli.md").read_text("utf-8")
    (section,) = re.findall(rf"^{re.escape(heading)}\n(.*?)^(?:##|```)", page, re.M | re.S)
    return {
        name
        for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }


def test_status_as_json_has_exactly_the_documented_fields(poisoned: Fleet) -> None:
    wait_until(lambda: aside(poisoned) == ["demo/1"] and bool(poisoned.status().leader))

    done = headgate("status", "--store", poisoned.url, "--json")

    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(done.stdout)
    assert len(done.stdout.splitlines()) == 1
    assert set(found) == documented("#### The whole")
    assert set(found["leader"]) == documented("#### `leader`")
    assert set(found["members"][0]) == documented("#### One of `members`")
    assert set(found["tasks"][0]) == documented("#### One of `tasks`")
    assert set(found["feeds"][0]) == documented("#### One of `feeds`")
    assert found["counts"] == {"in_progress": 0, "free": 0, "set_aside": 1, "done": 2}
    assert (found["url"], found["namespace"]) == (poisoned.url, "default")


def test_status_changes_nothing_and_makes_no_folder(tmp_path: Path) -> None:
    url = f"file:{tmp_path / 'state'}"

    done = headgate("status", "--store", url)

    assert done.returncode == 0
    assert done.stdout.startswith("nobody is here, and nothing is to be done")
    assert "this folder does not exist yet" in done.stderr
    assert not (tmp_path / "state").exists()


def test_status_takes_the_store_from_the_environment(fleet: Fleet) -> None:
    fleet.start("one")
    wait_until(lambda: fleet.live_sessions() == ["one"])

    done = headgate("status", HEADGATE_STORE=fleet.url)

    assert done.returncode == 0, done.stdout
    assert re.search(r"^one +1 +\w{8} +", done.stdout, re.MULTILINE)


def test_status_of_damaged_documents_is_4_and_names_the_place(fleet: Fleet) -> None:
    with closing(open_store(fleet.url)) as store:
        for number in (1, 2):
            store.create(task_key("demo", number), body_of(new_task(Order("steps", b""))))
    (file,) = Path(fleet.url.removeprefix("file:")).rglob("0000000001.json")
    file.write_bytes(b"{")

    done = headgate("status", "--store", fleet.url)

    assert done.returncode == 4
    assert f"damaged  {file}: " in done.stdout
    (command,) = re.findall(r"next +headgate (store get .*)", done.stdout)
    assert headgate(*shlex.split(command)).returncode == 4
    assert "1 free" in done.stdout


def test_status_shows_20_of_many_tasks_unless_it_is_asked_for_all(fleet: Fleet) -> None:
    with closing(open_store(fleet.url)) as store:
        for number in range(50):
            labels = ("gpu",)
            store.create(task_key("demo", number), body_of(new_task(Order("steps", b"", labels))))
    fleet.start("one", "--demo-steps", "1")
    wait_until(lambda: fleet.live_sessions() == ["one"])

    few = headgate("status", "--store", fleet.url)
    (command,) = re.findall("next: headgate (status --all .*)", few.stdout)
    everything = headgate(*shlex.split(command))

    assert (few.returncode, everything.returncode) == (1, 1)
    assert "need one of the labels gpu, and no node has one" in few.stdout
    assert f"next     headgate run --label gpu --store {fleet.url}" in few.stdout
    assert len(re.findall("^demo/", few.stdout, re.MULTILINE)) == 20
    assert len(re.findall("^demo/", everything.stdout, re.MULTILINE)) == 50


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_status_watches_until_ctrl_c(fleet: Fleet, options: list[str]) -> None:
    watching = subprocess.Popen(
        [HEADGATE, "status", "--store", fleet.url, "--watch", "--interval", "0.1", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    assert watching.stdout is not None
    word = '"is_healthy": true' if options else "nobody is here"
    seen = 0
    for line in watching.stdout:
        seen += word in line
        if seen == 3:
            break
    watching.send_signal(signal.SIGINT)
    _, said = watching.communicate(timeout=WAIT_S_MAX)

    assert watching.returncode == 130
    assert "Traceback" not in said


# ── headgate demo ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    """The demo without a terminal, its stdout and stderr; and all that a person sees on one. Both
    at the same time: they mostly wait."""
    folder = tmp_path_factory.mktemp("demo")
    other = tmp_path_factory.mktemp("other")
    parent, child = pty.openpty()
    on_terminal = subprocess.Popen(
        [HEADGATE, *SMALL_DEMO, "--keep"],
        stdin=child,
        stdout=child,
        stderr=child,
        env={**ENVIRONMENT, "TERM": "xterm-256color", "TMPDIR": str(folder)},
    )
    os.close(child)
    quiet = subprocess.Popen(
        [HEADGATE, *SMALL_DEMO, "--store", f"file:{other}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    seen = b""
    while piece := read_some(parent):
        seen += piece
    os.close(parent)
    out, said = quiet.communicate(timeout=WAIT_S_MAX)
    assert (on_terminal.wait(), quiet.returncode) == (0, 0), out + said + seen.decode("utf-8")
    assert list(other.rglob("*.json")) == []  # it cleans up behind itself
    return out, said, seen.decode("utf-8")


def read_some(handle: int) -> bytes:
    try:
        return os.read(handle, 65_536)
    except OSError:  # how Linux says that the other side is closed
        return b""


def test_the_demo_proves_that_nothing_is_lost_or_doubled(demos: tuple[str, str, str]) -> None:
    out, _, _ = demos

    assert out.startswith("proved: every step of every task happened exactly once\n")
    assert re.search(r"^ +9  of 9 tasks done", out, re.MULTILINE)
    assert re.search(r"^ +324  steps", out, re.MULTILINE)
    taken_over = re.search(r"^ +(\d+)  times a task was taken over", out, re.MULTILINE)
    assert taken_over is not None
    assert int(taken_over[1]) >= 3
    assert "headgate doctor hammer" in out


def test_the_demo_tells_what_happens_in_plain_words(demos: tuple[str, str, str]) -> None:
    _, said, _ = demos

    assert "\x1b" not in said
    for words in (
        r"\d+ s  node-\d is killed with -9, and held \d+ tasks",
        r"node-\d is paused \(SIGSTOP\)",
        r"node-\d closed the session of node-\d: it was not renewed in time",
        r"node-\d took over \d tasks? of node-\d, epoch \d",
        r"node-\d is woken \(SIGCONT\)",
        r"node-\d found its session closed",
        r"node-\d joined again as number 4",
        r"node-\d gave everything back and left",
        r"^ +\d+ s  node-1 .* of 324 steps",
    ):
        assert re.search(words, said, re.MULTILINE), words


def test_the_demo_on_a_terminal_draws_nodes_and_tasks(demos: tuple[str, str, str]) -> None:
    _, _, seen = demos

    for word in ("killed", "paused", "leader", "█", "epoch 2", "proved: "):
        assert word in seen


def test_what_the_demo_kept_can_be_looked_at_with_the_commands_it_prints(
    demos: tuple[str, str, str],
) -> None:
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", demos[2])
    (status,) = re.findall(r"headgate (status --store \S+)", plain)
    (get,) = re.findall(r"headgate (store get \S+ \S+)", plain)

    assert headgate(*status.split()).returncode == 0
    assert len(json.loads(headgate(*get.split()).stdout)["steps"]) == 36
    (logs,) = re.findall(r"ls (\S+/logs)", plain)
    assert len(list(Path(logs).iterdir())) == 3


def test_the_demo_in_memory_is_refused_with_the_reason() -> None:
    done = headgate("doctor", "fleet", "--store", "memory:x")

    assert (done.returncode, done.stdout) == (2, "")
    assert "invalid: memory: lives in one process" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_nodes_end_with_the_demo_however_it_ends(
    tmp_path: Path, number: signal.Signals
) -> None:
    demo = subprocess.Popen(
        [HEADGATE, *SMALL_DEMO],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**ENVIRONMENT, "TMPDIR": str(tmp_path)},
    )
    try:
        assert demo.stderr is not None
        for line in demo.stderr:
            if "joined as number" in line:
                break
        nodes = psutil.Process(demo.pid).children()
        assert len(nodes) == 3
        demo.send_signal(number)
        _, said = demo.communicate(timeout=WAIT_S_MAX)

        _, alive = psutil.wait_procs(nodes, timeout=WAIT_S_MAX)

        assert alive == []
        if number == signal.SIGINT:
            assert demo.returncode == 130
            assert "Traceback" not in said
            assert list(tmp_path.iterdir()) == []
    finally:
        demo.kill()
        demo.wait()
