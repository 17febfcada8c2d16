"""The installed `headgate` as people and schedulers use it: as a process."""

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.metadata import version
from pathlib import Path

import psutil
import pytest

from headgate.cli.main import VERBS
from headgate.store import Version
from headgate.store.names import key
from headgate.store.registry import open_store
from headgate.testing.hammer import writer

HEADGATE = str(Path(sys.executable).with_name("headgate"))
ESCAPE = "\x1b"
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "COLUMNS")
}


def headgate(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HEADGATE, *arguments], capture_output=True, text=True, env={**ENVIRONMENT, **more}
    )


def rows(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def state(tmp_path: Path) -> str:
    """A store with three documents; its URL."""
    url = f"file:{tmp_path / 'state'}"
    with closing(open_store(url)) as store:
        store.create("orders/1", {"format": 1, "name": "é\x1b[2J"})
        store.create("orders/2", {"format": 1})
        store.create(key("a/b", "日本"), {"format": 1})
    return url


def version_of(url: str, name: str) -> Version:
    with closing(open_store(url)) as store:
        found = store.get(name)
        assert found is not None
        return found.version


def damage(url: str, name: str) -> Path:
    (file,) = Path(url.removeprefix("file:")).rglob(f"{name}.json")
    file.write_bytes(b'{"document":1,"tok')
    return file


# ── headgate ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_lists_the_verbs_on_stdout(option: str) -> None:
    done = headgate(option)

    assert (done.returncode, done.stderr) == (0, "")
    for word in (
        *("init", "run", "status", "audit", "history", "doctor", "demo"),
        *("config", "stream", "shard", "journal", "deadletter", "node", "task", "store"),
        *("--version", "--debug", "--log-level", "Everyday"),
    ):
        assert word in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        *("store", "store ls", "store get", "doctor", "doctor store", "doctor hammer", "demo"),
        *("run", "status", "audit", "history", "init", "config", "config check", "config show"),
        *("node", "node drain", "task", "task release", "doctor fleet", "config schema"),
        *("stream", "stream ls", "stream pause", "stream resume", "shard", "shard release"),
        *("journal", "journal show", "journal restage"),
        *("deadletter", "deadletter ls", "deadletter show", "deadletter redrive"),
    ],
)
def test_every_command_has_help(command: str) -> None:
    done = headgate(*command.split(), "--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert f"headgate {command}" in done.stdout


def test_the_help_of_store_names_every_kind_of_url() -> None:
    said = headgate("store", "--help").stdout

    assert all(scheme in said for scheme in ("file:", "zk://", "es://", "memory:"))


def test_version() -> None:
    done = headgate("--version")

    assert (done.returncode, done.stdout) == (0, f"headgate {version('headgate')}\n")


@pytest.mark.parametrize(
    "command", ["nothing", "--nothing", "store lss", "stream pause", "store ls memory:x --limit 0"]
)
def test_wrong_usage_is_2_and_says_so_on_stderr(command: str) -> None:
    done = headgate(*command.split())

    assert (done.returncode, done.stdout) == (2, "")
    assert "Usage: headgate" in done.stderr


# ── headgate store ────────────────────────────────────────────────────────────────────────────────


def test_ls_lists_in_order_and_says_nothing_else(state: str) -> None:
    done = headgate("store", "ls", state)

    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[-1] for line in done.stdout.splitlines()] == [
        "a%2Fb/日本",
        "orders/1",
        "orders/2",
    ]
    assert done.stdout.splitlines()[-1].split()[0] == str(len('{"format":1}'))


def test_ls_of_a_prefix_with_a_limit(state: str) -> None:
    assert "orders/2" not in headgate("store", "ls", state, "orders", "--limit", "1").stdout
    assert "orders/1" in headgate("store", "ls", state, "orders", "--limit", "1").stdout
    assert "日本" not in headgate("store", "ls", state, "orders").stdout


def test_ls_as_json_gives_one_object_a_line(state: str) -> None:
    done = headgate("store", "ls", state, "orders", "--json")

    assert (done.returncode, done.stderr) == (0, "")
    assert rows(done.stdout)[1] == {
        "key": "orders/2",
        "size_bytes": 12,
        "version": version_of(state, "orders/2"),
        "damaged": None,
    }


def test_s12_ls_sees_one_namespace_only(state: str) -> None:
    done = headgate("store", "ls", state, "--namespace", "other")

    assert (done.returncode, done.stdout) == (0, "")
    assert "no documents in namespace other" in done.stderr
    assert headgate("store", "ls", state, "-n", "other", "--json").stderr == ""


def test_s9_ls_marks_a_damaged_document_and_goes_on(state: str) -> None:
    file = damage(state, "1")

    done = headgate("store", "ls", state)
    as_json = headgate("store", "ls", state, "--json")

    assert (done.returncode, as_json.returncode, as_json.stderr) == (4, 4, "")
    assert re.search(r"damaged +orders/1\n", done.stdout)
    assert "orders/2" in done.stdout
    assert done.stderr == f"1 damaged; next: headgate store get {state} orders/1\n"
    assert len(rows(as_json.stdout)) == 3
    (row,) = [row for row in rows(as_json.stdout) if row["damaged"]]
    assert (row["key"], row["version"]) == ("orders/1", None)
    assert str(file) in str(row["damaged"])


def test_ls_of_what_is_not_damaged_is_0(state: str) -> None:
    damage(state, "1")

    assert headgate("store", "ls", state, "a%2Fb").returncode == 0
    assert headgate("store", "ls", state, "--limit", "1").returncode == 0


@pytest.mark.parametrize("name", ["1", "-1"])
def test_s9_the_command_that_ls_prints_can_be_copied_into_a_shell(
    tmp_path: Path, name: str
) -> None:
    url = f"file:{tmp_path}/my state"
    with closing(open_store(url, "$HOME; x")) as store:
        store.create(key(name), {"format": 1})
    damage(url, name)

    done = headgate("store", "ls", url, "--namespace", "$HOME; x")
    (command,) = re.findall("next: headgate (.*)", done.stderr)

    assert "--namespace '$HOME; x'" in command
    assert headgate(*shlex.split(command)).returncode == 4


def test_ls_in_a_folder_that_does_not_exist_says_so(tmp_path: Path) -> None:
    done = headgate("store", "ls", f"file:{tmp_path}/sttae")

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines() == [
        "no documents in namespace default",
        "this folder does not exist yet; the first write makes it",
    ]
    assert headgate("store", "ls", f"file:{tmp_path}/sttae", "--json").stderr == ""


def test_ls_says_what_a_backend_remarks_when_nothing_is_found(
    tmp_path: Path, installed: str
) -> None:
    url = f"careless:{tmp_path}/state"

    assert "this one forgets" in headgate("store", "ls", url, PYTHONPATH=installed).stderr
    with closing(open_store(f"file:{tmp_path}/state")) as store:
        store.create("x", {"format": 1})
    assert headgate("store", "ls", url, PYTHONPATH=installed).stderr == ""


@pytest.mark.parametrize("arguments", [["ls"], ["ls", f"x{ESCAPE}[31m"], ["get", f"x{ESCAPE}"]])
def test_what_would_move_the_cursor_is_not_repeated(state: str, arguments: list[str]) -> None:
    verb, *rest = arguments

    done = headgate("store", verb, state, *rest, "--namespace", f"n{ESCAPE}[2J")

    assert "n\\u001b[2J" in done.stderr
    assert ESCAPE not in done.stderr


def test_get_shows_the_body_on_stdout_and_the_version_on_stderr(state: str) -> None:
    done = headgate("store", "get", state, "orders/1")

    assert done.returncode == 0
    assert json.loads(done.stdout) == {"format": 1, "name": "é\x1b[2J"}
    assert "é" in done.stdout
    assert ESCAPE not in done.stdout
    assert done.stderr == f"version {version_of(state, 'orders/1')}\n"


def test_get_as_json_is_one_line_with_the_version(state: str) -> None:
    done = headgate("store", "get", state, "a%2Fb/日本", "--json")

    assert (done.returncode, done.stderr) == (0, "")
    found = version_of(state, "a%2Fb/日本")
    assert rows(done.stdout) == [{"key": "a%2Fb/日本", "version": found, "body": {"format": 1}}]


def test_get_of_a_missing_document_is_1_with_a_sentence(state: str) -> None:
    done = headgate("store", "get", state, "orders/3")

    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no document orders/3 in namespace default" in done.stderr
    assert f"next: headgate store ls {state}" in done.stderr


def test_s9_get_of_a_damaged_document_is_4_and_names_the_place(state: str) -> None:
    file = damage(state, "1")

    done = headgate("store", "get", state, "orders/1")

    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("corrupt: ")
    assert str(file) in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [["store", "ls"], ["store", "get"], ["doctor", "store"]])
@pytest.mark.parametrize("url", ["fil:/tmp/x", "nothing", "file:/no/such/folder/state"])
def test_a_wrong_url_is_2_with_one_clear_message(command: list[str], url: str) -> None:
    done = headgate(*command, url, *(["key"] if "get" in command else []))

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("invalid: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_wrong_namespace_or_key_is_2(state: str) -> None:
    assert headgate("store", "ls", state, "--namespace", "a/b").returncode == 2
    assert headgate("store", "get", state, "a//b").returncode == 2


def test_debug_shows_where_an_error_came_from_and_keeps_the_exit_code() -> None:
    done = headgate("--debug", "store", "ls", "nothing")

    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("invalid: ")


def test_the_log_level_decides_what_is_said() -> None:
    loud = headgate("--log-level", "debug", "store", "ls", "nothing")
    quiet = headgate("--log-level", "error", "store", "ls", "nothing")

    assert "debug cli.failed" in loud.stderr
    assert "cli.failed" not in quiet.stderr


def test_a_pipe_that_is_closed_early_ends_quietly(state: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)

    done = subprocess.run(
        [HEADGATE, "store", "ls", state], stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)

    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_a_terminal_that_knows_no_unicode_still_shows_keys(state: str) -> None:
    done = headgate("store", "ls", state, PYTHONIOENCODING="latin-1")

    assert done.returncode == 0
    assert "a%2Fb/\\u65e5\\u672c" in done.stdout


BROKEN = """
from headgate.errors import Unavailable
from headgate.store.file import open_url
from headgate.testing.planted import ForwardingStore

class Careless(ForwardingStore):
    def replace(self, key, body, version, **options):
        return super().replace(key, body, self.behind.get(key).version, **options)

class Gone(ForwardingStore):
    def list(self, *args, **options):
        raise Unavailable("nobody answers; next: try again")

def open_careless(url, namespace, ambient):
    return Careless(open_url(url, namespace, ambient))

def open_gone(url, namespace, ambient):
    return Gone(open_url(url, namespace, ambient))

def remarks(url):
    return ["this one forgets"]
"""
ENTRY_POINTS = """
[headgate.stores]
careless = broken_stores:open_careless
gone = broken_stores:open_gone
[headgate.store_remarks]
careless = broken_stores:remarks
"""


@pytest.fixture
def installed(tmp_path: Path) -> str:
    """Where somebody's package with two broken stores is installed: for PYTHONPATH."""
    site = tmp_path / "site"
    info = site / "broken_stores-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-stores\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (site / "broken_stores.py").write_text(BROKEN)
    return str(site)


# ── headgate doctor ───────────────────────────────────────────────────────────────────────────────


def test_doctor_says_in_words_that_a_folder_is_safe_and_leaves_nothing(state: str) -> None:
    done = headgate("doctor", "store", state)

    assert done.returncode == 0
    assert done.stdout.startswith(f"safe to use   {state}\n")
    for question in (
        "atomic create",
        "stale version",
        "wait",
        "clock offset",
        "list",
        "size limit",
    ):
        assert re.search(rf"^  ok    {question} ", done.stdout, re.MULTILINE), question
    assert "asking: atomic create" in done.stderr
    assert "doctor-" not in headgate("store", "ls", state).stdout


def test_doctor_as_json_is_one_object(state: str) -> None:
    done = headgate("doctor", "store", state, "--namespace", "other", "--json")

    (report,) = rows(done.stdout)
    assert (report["url"], report["namespace"]) == (state, "other")
    assert (report["is_safe"], report["words"]) == (True, "safe to use")
    findings = report["findings"]
    assert isinstance(findings, list)
    (limit,) = [finding for finding in findings if finding["name"] == "size limit"]
    assert (limit["verdict"], limit["value"], limit["unit"]) == ("ok", 1_000_000, "bytes")


def test_planted_doctor_says_1_for_a_store_that_is_not_safe(tmp_path: Path, installed: str) -> None:
    done = headgate("doctor", "store", f"careless:{tmp_path / 'state'}", PYTHONPATH=installed)

    assert done.returncode == 1
    assert done.stdout.startswith("not safe: ")
    assert re.search(r"^  bad   stale version +replace with an old version", done.stdout, re.M)
    assert re.search(r"^  warn  remark +this one forgets", done.stdout, re.M)


def test_a_store_that_does_not_answer_is_3(tmp_path: Path, installed: str) -> None:
    url = f"gone:{tmp_path / 'state'}"

    for command in (["store", "ls"], ["doctor", "store"]):
        done = headgate(*command, url, PYTHONPATH=installed)

        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr.splitlines()[-1] == "unavailable: nobody answers; next: try again"


def test_styles_are_for_terminals_only(state: str) -> None:
    assert ESCAPE not in headgate("doctor", "store", state).stdout
    assert ESCAPE in on_a_terminal("doctor", "store", state)
    assert ESCAPE in on_a_terminal("store", "ls", state)
    assert "\x1b[2J" not in on_a_terminal("store", "get", state, "orders/1")


def on_a_terminal(*arguments: str) -> str:
    """All that a person would see."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [HEADGATE, *arguments],
        stdin=child,
        stdout=child,
        stderr=child,
        env={**ENVIRONMENT, "TERM": "xterm-256color"},
    )
    os.close(child)
    seen = b""
    while True:
        try:
            piece = os.read(parent, 65_536)
        except OSError:  # how Linux says that the other side is closed
            piece = b""
        if not piece:
            break
        seen += piece
    os.close(parent)
    assert process.wait() == 0
    return seen.decode("utf-8")


# ── headgate doctor hammer ───────────────────────────────────────────────────────────────────────


def test_g5_processes_killed_with_9_lose_and_double_nothing() -> None:
    done = headgate("doctor", "hammer", "--seconds", "3", "--processes", "4", "--seed", "1")

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("proved: no acknowledged write is lost, and none happened twice")
    killed = re.search(r"^ +(\d+)  processes killed with -9", done.stdout, re.MULTILINE)
    assert killed is not None
    assert int(killed[1]) > 0
    assert "seed 1)" in done.stderr
    assert "0 of 3 s" in done.stderr
    assert ESCAPE not in done.stdout + done.stderr
    assert "headgate store --help" in done.stdout
    assert ".md" not in done.stdout  # there are no docs where it was only installed
    (folder,) = re.findall(r"file:(\S+)/state", done.stderr)
    assert not Path(folder).exists()


def test_hammer_keeps_its_documents_and_says_how_to_look_at_them(tmp_path: Path) -> None:
    done = headgate(
        "doctor", "hammer", "--seconds", "1", "--processes", "2", "--keep", TMPDIR=str(tmp_path)
    )

    assert done.returncode == 0, done.stdout + done.stderr
    (command,) = re.findall(r"headgate (store get \S+ counter)", done.stdout)
    counter = json.loads(headgate(*command.split()).stdout)
    assert counter["count"] == sum(process["share"] for process in counter["by"].values())
    (diaries,) = re.findall(r"ls (\S+/diaries)", done.stdout)
    assert len(list(Path(diaries).glob("*.diary"))) >= 2


def test_hammer_on_another_store_cleans_up_behind_itself(tmp_path: Path) -> None:
    url = f"file:{tmp_path}"

    done = headgate("doctor", "hammer", "--seconds", "1", "--processes", "2", url)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"write to {url}" in done.stderr
    assert list(tmp_path.rglob("*.json")) == []


def test_hammer_on_a_terminal_draws_a_table() -> None:
    seen = on_a_terminal("doctor", "hammer", "--seconds", "1", "--processes", "2")

    assert "increments" in seen
    assert "writing" in seen
    assert "proved: " in seen


def test_planted_hammer_says_1_for_a_store_that_loses_writes_and_keeps_the_evidence(
    tmp_path: Path, installed: str
) -> None:
    done = headgate(
        *("doctor", "hammer", "--seconds", "5", "--processes", "4"),
        f"careless:{tmp_path / 'state'}",
        PYTHONPATH=installed,
        TMPDIR=str(tmp_path),
    )

    assert done.returncode == 1
    assert done.stdout.startswith("not proved: ")
    assert "lost" in done.stdout
    (diaries,) = re.findall(r"ls (\S+/diaries)", done.stdout)
    assert list(Path(diaries).glob("*.diary"))


def test_hammer_in_memory_is_refused_with_the_reason() -> None:
    done = headgate("doctor", "hammer", "memory:x")

    assert (done.returncode, done.stdout) == (2, "")
    assert "invalid: memory: lives in one process" in done.stderr


def test_ctrl_c_ends_the_hammer_quietly_with_all_its_processes(tmp_path: Path) -> None:
    with running_hammer(tmp_path) as (hammer, writers):
        hammer.send_signal(signal.SIGINT)
        _, said = hammer.communicate()

        assert hammer.returncode == 130
        assert "Traceback" not in said
        assert not any(writer.is_running() for writer in writers)
        assert list(tmp_path.iterdir()) == []


def test_writers_end_when_the_hammer_itself_is_killed(tmp_path: Path) -> None:
    with running_hammer(tmp_path) as (hammer, writers):
        hammer.kill()
        hammer.communicate()

        _, alive = psutil.wait_procs(writers, timeout=60)

        assert alive == []


def test_a_writer_whose_parent_was_gone_before_it_started_writes_nothing(state: str) -> None:
    diary = Path(state.removeprefix("file:")).with_name("diary")
    not_its_parent = "1"

    done = subprocess.run(
        [sys.executable, "-m", writer.__name__, state, "default", "1.1", diary, not_its_parent]
    )

    assert done.returncode == 0
    assert diary.read_bytes() == b""


@contextmanager
def running_hammer(
    folder: Path,
) -> Iterator[tuple["subprocess.Popen[str]", list[psutil.Process]]]:
    """A hammer that is past its start, and its writers."""
    hammer = subprocess.Popen(
        [HEADGATE, "doctor", "hammer", "--seconds", "600", "--processes", "3"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**ENVIRONMENT, "TMPDIR": str(folder)},
    )
    try:
        assert hammer.stderr is not None
        for line in hammer.stderr:
            if line.startswith("   1 of 600 s"):
                break
        writers = psutil.Process(hammer.pid).children()
        assert writers
        yield hammer, writers
    finally:
        hammer.kill()
        hammer.wait()


def test_the_command_needs_no_test_library() -> None:
    """`pip install headgate` brings no pytest; the contract suite alone needs it."""
    program = (
        "import sys; sys.modules['pytest'] = None; "
        "from headgate.cli.main import VERBS, loaded; print(len([loaded(one) for one in VERBS]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{len(VERBS)}\n"), done.stderr


def test_a_verb_does_not_wait_for_what_only_others_need() -> None:
    program = (
        "import sys; from headgate.cli.main import loaded; loaded('status'); "
        "print(*{'headgate.cli.demo', 'headgate.cli.status', 'pyarrow'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "headgate.cli.status\n", done.stderr
