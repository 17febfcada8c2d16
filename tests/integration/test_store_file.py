"""The file store and a real file system: folders that are missing, forbidden or not local."""

import errno
import json
import logging
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from headgate import open_store
from headgate.errors import Conflict, Corrupt, HeadgateError, Invalid, Unavailable
from headgate.store import Document
from headgate.store.disk import network_file_system
from headgate.store.file import stripe_of
from headgate.store.names import key
from headgate.store.pages import pages
from headgate.testing.racing import PATIENCE_S, at_once, in_background

BODY = {"format": 1, "n": 1}
NOBODY = 65_534


def test_the_last_folder_is_made_and_its_parents_are_not(tmp_path: Path) -> None:
    open_store(f"file:{tmp_path}/state").create("doc", BODY)
    with pytest.raises(Invalid, match=f"mkdir -p {tmp_path}/missing"):
        open_store(f"file:{tmp_path}/missing/state")


@pytest.mark.parametrize("spelling", ["file:{}", "file://{}", "file:{}/../state", "file:{}/"])
def test_every_spelling_of_a_path_is_the_same_store(tmp_path: Path, spelling: str) -> None:
    folder = tmp_path / "state"
    open_store(f"file:{folder}").create("doc", BODY)
    assert open_store(spelling.format(folder)).get("doc") is not None


def test_a_host_in_the_url_is_refused() -> None:
    with pytest.raises(Invalid, match="names a host"):
        open_store("file://server/state")


def test_an_option_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="unknown option 'sync'"):
        open_store(f"file:{tmp_path}/state?sync=false")


def as_nobody(call: Callable[[], object]) -> str:
    """What a call raises without rights. Root may write anywhere, so a child gives that up."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        try:
            call()
            said = "nothing was raised"
        except HeadgateError as error:
            said = f"{type(error).__name__}: {error}"
        except BaseException as error:  # noqa: BLE001 - whatever it is must get out of the child
            said = f"not ours: {error!r}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said


@pytest.fixture
def read_only(tmp_path: Path) -> Path:
    """A store that others may look into and not write."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH | stat.S_IROTH)
    state = tmp_path / "state"
    open_store(f"file:{state}").create("f/doc", BODY)
    for found in [state, *state.rglob("*")]:
        found.chmod(0o555 if found.is_dir() else 0o444)
    return state


def test_a_read_only_folder_is_invalid_and_says_where(read_only: Path) -> None:
    store = open_store(f"file:{read_only}", "new")
    said = as_nobody(lambda: store.create("doc", BODY))
    assert said.startswith("Invalid: ")
    assert "not allowed" in said
    assert f"ls -ld {read_only}" in said


def test_looking_leaves_no_trace(tmp_path: Path) -> None:
    store = open_store(f"file:{tmp_path}/state")
    assert store.get("doc") is None
    assert store.list().documents == ()
    mark = store.wait("", None, timeout_ms=0)
    assert list(tmp_path.iterdir()) == []
    store.create("doc", BODY)
    assert store.wait("", mark, timeout_ms=60_000) != mark


def test_a_read_only_store_refuses_each_write(read_only: Path) -> None:
    store = open_store(f"file:{read_only}")
    found = store.get("f/doc")
    assert found is not None
    for write in (
        lambda: store.create("other", BODY),
        lambda: store.replace("f/doc", BODY, found.version),
        lambda: store.delete("f/doc", found.version),
    ):
        assert as_nobody(write).startswith("Invalid: ")
    assert store.get("f/doc") == found


def test_a_full_disk_says_so_and_nothing_is_left_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(f"file:{tmp_path}/my state")
    store.create("first", BODY)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(Unavailable, match=r"disk is full, nothing was written; next: df -h '/"):
            store.create("doc", BODY)
    assert list((tmp_path / "my state/default/.writing").iterdir()) == []
    assert store.get("doc") is None


def test_what_dead_writers_left_aside_is_swept_after_an_hour(tmp_path: Path) -> None:
    open_store(f"file:{tmp_path}/state").create("doc", BODY)
    writing = tmp_path / "state/default/.writing"
    for name, age_s in (("old", 3_700), ("young", 60)):
        (writing / name).write_text("half a document")
        past = (writing / name).stat().st_mtime - age_s
        os.utime(writing / name, (past, past))
    open_store(f"file:{tmp_path}/state").create("other", BODY)
    assert [left.name for left in writing.iterdir()] == ["young"]


def test_a_name_can_not_climb_out_of_its_folder(tmp_path: Path) -> None:
    """A long name goes on in a folder; what it goes on with must not be taken for a way."""
    store = open_store(f"file:{tmp_path}/state")
    version = store.create("x", BODY)
    for n, evil in enumerate(("..", ".", "../x", "..json", ".json")):
        name = key("a" * 200 + evil, "x")
        store.create(name, {"format": 1, "n": n})
        found = store.get(name)
        assert found is not None
        assert found.body["n"] == n
    assert store.get("x") == Document("x", BODY, version)
    assert len(store.list().documents) == 6


def test_trouble_while_looking_is_not_taken_for_an_absence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(f"file:{tmp_path}/state")
    version = store.create("doc", BODY)

    def no_memory(*_: object) -> os.stat_result:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    with monkeypatch.context() as patched:
        patched.setattr(os, "lstat", no_memory)
        with pytest.raises(Unavailable, match="nothing was written"):
            store.create("doc", {"format": 1, "n": 2})
    assert store.get("doc") == Document("doc", BODY, version)


def test_one_unreadable_file_does_not_hide_the_others(tmp_path: Path) -> None:
    store = open_store(f"file:{tmp_path}/state")
    folder = tmp_path / "state/default/f"
    for name in ("a", "b", "c", "d"):
        store.create(f"f/{name}", BODY)
    (folder / "b.json").unlink()
    (folder / "b.json").mkdir()
    (folder / "c.json").unlink()
    (folder / "c.json").symlink_to("nowhere")
    (folder / "loop").symlink_to(".")
    page = store.list()
    assert [found.key for found in page.documents] == ["f/a", "f/d"]
    assert [found.key for found in page.damaged] == ["f/b", "f/c"]
    for name in ("f/b", "f/c"):
        with pytest.raises(Corrupt):
            store.get(name)


def test_a_listing_is_whole_while_its_documents_are_replaced() -> None:
    """On tmpfs a rename moves the name in its folder, which the kernel reads in pieces."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        writer, reader = (open_store(f"file:{folder}/state") for _ in range(2))
        versions = {f"f/{n:04}": writer.create(f"f/{n:04}", BODY) for n in range(1_500)}
        is_over = threading.Event()

        def churn() -> None:
            while not is_over.is_set():
                for name in versions:
                    versions[name] = writer.replace(name, BODY, versions[name])
                    if is_over.is_set():
                        return

        churning = in_background(churn)
        try:
            for _ in range(8):
                found = [d.key for page in pages(reader, "f") for d in page.documents]
                assert found == sorted(versions)
        finally:
            is_over.set()
        churning.result(PATIENCE_S)


def test_siblings_deleted_at_once_are_all_acknowledged(tmp_path: Path) -> None:
    """Whoever empties the folder removes it, under the feet of the others."""
    store = open_store(f"file:{tmp_path}/state")
    for _ in range(25):
        versions = {name: store.create(f"f/{name}", BODY) for name in "abcd"}
        at_once([partial(store.delete, f"f/{name}", found) for name, found in versions.items()])
        assert store.list().documents == ()


def test_a_stripe_that_somebody_removed_protects_nobody_any_more(tmp_path: Path) -> None:
    """A writer that sleeps in its stripe must not take a neighbour's document for its own."""
    store = open_store(f"file:{tmp_path}/state")
    neighbour = next(f"n{n}" for n in range(1_000) if stripe_of(f"n{n}") == stripe_of("doc"))
    stripe = tmp_path / f"state/default/.stripes/{stripe_of('doc'):02x}"
    rename = os.rename

    def sleepy(source: str, target: str) -> None:
        """In the middle of the first write the lock is removed, and a neighbour writes."""
        monkey.undo()
        stripe.unlink()
        open_store(f"file:{tmp_path}/state").create(neighbour, {"format": 1, "n": 2})
        rename(source, target)

    monkey = pytest.MonkeyPatch()
    monkey.setattr(os, "rename", sleepy)
    store.create("doc", BODY)
    found = {document.key: document.body["n"] for document in store.list().documents}
    assert found == {"doc": 1, neighbour: 2}


def test_a_forked_child_does_not_keep_a_dead_writers_stripe(tmp_path: Path) -> None:
    store = open_store(f"file:{tmp_path}/state")
    store.create("doc", BODY)
    program = FORKER.format(url=f"file:{tmp_path}/state")
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    try:
        parent.kill()
        parent.wait()
        found = store.get("doc")
        assert found is not None
        store.replace("doc", BODY, found.version, timeout_ms=2_000)
    finally:
        os.kill(child, signal.SIGKILL)
        parent.stdout.close()


FORKER = """
import os, signal
from headgate import open_store
rename = os.rename
def fork_while_writing(source, target):
    child = os.fork()
    if child == 0:
        signal.pause()
    print(child, flush=True)
    signal.pause()
os.rename = fork_while_writing
store = open_store({url!r})
found = store.get("doc")
store.replace("doc", {{"format": 1, "n": 2}}, found.version)
"""


def test_strangers_files_are_left_alone(tmp_path: Path) -> None:
    store = open_store(f"file:{tmp_path}/state")
    store.create("f/doc", BODY)
    folder = tmp_path / "state/default/f"
    for name in ("README.txt", "Doc.json", ".hidden.json", "doc.json~", "a b.json", "%zz.json"):
        (folder / name).write_text("not ours")
    assert [found.key for found in store.list().documents] == ["f/doc"]
    assert store.list().damaged == ()


def test_empty_folders_are_removed_and_made_again(tmp_path: Path) -> None:
    store = open_store(f"file:{tmp_path}/state")
    for _ in range(3):
        store.delete("a/b/c", store.create("a/b/c", BODY))
        assert not (tmp_path / "state/default/a").exists()


def test_a_document_is_a_file_that_people_can_read(tmp_path: Path) -> None:
    open_store(f"file:{tmp_path}/state").create("tasks/Orders 1", BODY)
    stored = json.loads((tmp_path / "state/default/tasks/^orders%201.json").read_text())
    assert stored["body"] == BODY


def test_a_network_file_system_is_warned_about_with_the_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 0:21 / / rw,relatime - ext4 /dev/sda rw\n"
        f"36 22 0:33 / {tmp_path}/my\\040share rw shared:1 - nfs4 server:/export rw\n"
    )
    assert network_file_system(tmp_path / "local", mounts) is None
    assert network_file_system(tmp_path / "my share/state", mounts) == "nfs4"
    assert network_file_system(tmp_path / "my share nearby", mounts) is None
    assert network_file_system(tmp_path, tmp_path / "absent") is None
    mounts.write_text(
        f"22 1 0:21 / {tmp_path} rw - autofs systemd-1 rw\n"
        f"36 22 0:33 / {tmp_path} rw - fuse.juicefs volume rw\n"
    )
    assert network_file_system(tmp_path / "state", mounts) == "fuse.juicefs"

    monkeypatch.setattr("headgate.store.file.network_file_system", lambda _: "nfs4")
    with caplog.at_level(logging.WARNING):
        open_store(f"file:{tmp_path}/state")
    (record,) = caplog.records
    assert record.message == "store.network_file_system"
    assert "advisory locks" in record.__dict__["reason"]


def test_g5_writers_killed_with_minus_nine_leave_whole_documents(tmp_path: Path) -> None:
    """The real thing, beside the matrix of crash points: a process, and SIGKILL at any moment."""
    store = open_store(f"file:{tmp_path}/state")
    for _ in range(5):
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, f"file:{tmp_path}/state"], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        acknowledged = int(child.stdout.readline())
        for _ in range(5):
            acknowledged = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split(b"\n")[:-1]
        child.wait()
        child.stdout.close()
        acknowledged = int(rest[-1]) if rest else acknowledged
        found = store.get("doc", timeout_ms=1_000)
        assert found is not None
        assert found.body["n"] in (acknowledged, acknowledged + 1)
        assert len(str(found.body["filling"])) == 400_000
        store.replace("doc", found.body, found.version, timeout_ms=1_000)
        with pytest.raises(Conflict):
            store.replace("doc", found.body, found.version)


WRITER = """
import sys
from headgate import open_store
store = open_store(sys.argv[1])
found = store.get("doc")
n = found.body["n"] if found else 0
while True:
    n += 1
    body = {"format": 1, "n": n, "filling": "x" * 400_000}
    found = store.get("doc")
    store.replace("doc", body, found.version) if found else store.create("doc", body)
    print(n, flush=True)
"""
