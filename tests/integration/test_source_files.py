"""The files source on a real folder: what only a file system can do."""

import gzip
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from headgate.errors import Conflict, Invalid, Unavailable
from headgate.sources import FilesSettings
from headgate.sources.files import FilesSource
from headgate.sources.folder import Entry
from headgate.sources.local_folder import LocalFolder
from headgate.store.file import FileStore
from headgate.testing.manual import ManualAmbient

NAMES = [
    *("a b.json", "100%.json", 'it\'s "quoted".json', "дом.json", "日本語/😀.json", "a:b.json"),
    *("{x},[y]*?.json", "line\nbreak.json", "back\\slash.json", "x" * 250 + ".json", "~.json"),
]


class Killed(BaseException):
    """As kill -9."""


@pytest.fixture
def incoming(tmp_path: Path) -> Path:
    folder = tmp_path / "incoming"
    folder.mkdir()
    return folder


@pytest.fixture
def folder(incoming: Path) -> LocalFolder:
    return LocalFolder(str(incoming))


def drop(folder: Path, name: str, content: bytes = b"{}\n") -> Path:
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return place


def found(folder: LocalFolder) -> list[str]:
    return sorted(entry.path for entry in folder.scan())


@pytest.fixture
def sources(tmp_path: Path, incoming: Path) -> Iterator["Sources"]:
    sources = Sources(tmp_path, incoming)
    yield sources
    sources.store.close()


class Sources:
    """Instances of one stream's source, as on different nodes."""

    def __init__(self, tmp_path: Path, incoming: Path) -> None:
        self.ambient = ManualAmbient()
        self.store = FileStore(tmp_path / "state", "test", self.ambient)
        self.done = tmp_path / "done"
        self._path = str(incoming)

    def open(self, epoch: int, after_read: Any = "keep") -> FilesSource:
        settings = FilesSettings(self._path, after_read=after_read, move_to=str(self.done))
        folder = LocalFolder(self._path)
        return FilesSource(settings, "orders", ["lane-0"], epoch, self.store, folder, self.ambient)


def read(source: FilesSource, position: int = 0) -> list[str]:
    source.look({"lane-0": str(position)}, is_fresh=True)
    plan = source.plan({"lane-0": str(position)}, size_bytes_max=10**9)
    source.confirm(plan)
    return [file.path for file in plan.files]


def test_regular_files_at_any_depth_and_nothing_else(incoming: Path, folder: LocalFolder) -> None:
    drop(incoming, "a.json")
    drop(incoming, "x/y/z/b.json")
    (incoming / "empty").mkdir()
    (incoming / "to-file.json").symlink_to("a.json")
    (incoming / "to-folder").symlink_to("x")
    (incoming / "to-itself").symlink_to("to-itself")
    (incoming / "to-nothing.json").symlink_to("nothing")
    os.mkfifo(incoming / "pipe.json")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(incoming)  # the name of a socket must be short
        try:
            listener.bind("socket.json")
        finally:
            os.chdir(here)
        assert found(folder) == ["a.json", "to-file.json", "x/y/z/b.json"]
    assert folder.stat("pipe.json") is None
    assert folder.stat("x") is None
    assert folder.stat("a.json/b") is None


@pytest.mark.parametrize("after_read", ["keep", "move", "delete"])
def test_names_of_any_script_and_with_any_letter(
    sources: Sources, incoming: Path, after_read: str
) -> None:
    for name in NAMES:
        drop(incoming, name)
    source = sources.open(1, after_read)
    assert sorted(read(source)) == sorted(f"{incoming}/{name}" for name in NAMES)
    source.settle({"lane-0": str(len(NAMES))})
    left = sorted(str(path.relative_to(incoming)) for path in incoming.rglob("*.json"))
    assert left == (sorted(NAMES) if after_read == "keep" else [])
    moved = sorted(str(path.relative_to(sources.done)) for path in sources.done.rglob("*.json"))
    assert moved == (sorted(NAMES) if after_read == "move" else [])
    assert read(source, len(NAMES)) == []


def test_a_name_that_is_no_text_is_left_alone(sources: Sources, incoming: Path) -> None:
    with open(os.fsencode(str(incoming)) + b"/bad\xff.json", "wb") as bad:
        bad.write(b"{}\n")
    drop(incoming, "good.json")
    source = sources.open(1)
    assert read(source) == [f"{incoming}/good.json"]
    assert "UTF-8" in source.unreadable[0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{}\n", "its name says gzip, and it is none"),
        (gzip.compress(b"{}\n")[:10], "is cut off or damaged"),
    ],
    ids=["plain", "cut off"],
)
def test_what_is_named_gz_and_is_none_is_named_with_the_next_command(
    sources: Sources, incoming: Path, content: bytes, words: str
) -> None:
    (incoming / "a b.json.gz").write_bytes(content)
    source = sources.open(1)

    found = source.look({})

    assert (found.files, found.unfinished, found.unreadable) == (0, 0, 1)
    assert found.why.startswith(f"{incoming}/a b.json.gz: {words}")
    assert found.why.endswith(f"or go without it: rm '{incoming}/a b.json.gz'")


def test_a_folder_mounted_on_several_nodes_is_read_by_whichever_holds_the_lane(
    sources: Sources, incoming: Path
) -> None:
    position = 0
    for epoch in range(1, 9):
        source = sources.open(epoch, "delete")
        drop(incoming, f"{epoch}.json")
        drop(incoming, f"x/{epoch}.json")
        assert read(source, position) == [f"{incoming}/{epoch}.json", f"{incoming}/x/{epoch}.json"]
        position += 2
        if epoch % 2:  # the others leave that to their successor
            source.settle({"lane-0": str(position)})
    sources.open(9, "delete").settle({"lane-0": str(position)})
    assert [path.name for path in incoming.iterdir()] == ["x"]
    assert list((incoming / "x").iterdir()) == []


def test_the_first_line_also_of_gzip(incoming: Path, folder: LocalFolder) -> None:
    drop(incoming, "a.csv", b"at,id\r\n1,2\r\n")
    drop(incoming, "b.csv.gz", gzip.compress(b"at,id\n1,2\n"))
    drop(incoming, "c.csv.gz", b"noise")
    drop(incoming, "d.csv.gz", gzip.compress(b"at,id\n1,2\n")[:12])
    drop(incoming, "e.csv", b"x" * 5_000_000)
    assert folder.head("a.csv") == folder.head("b.csv.gz") == b"at,id"
    assert len(folder.head("e.csv")) == 1_000_000
    for name in ("c.csv.gz", "d.csv.gz"):
        with pytest.raises(Invalid, match=r"says gzip, and it is none|is cut off or damaged"):
            folder.head(name)
    with pytest.raises(Unavailable):
        folder.head("none.csv")


def test_a_folder_that_is_not_there_is_unavailable(sources: Sources, incoming: Path) -> None:
    incoming.rmdir()
    with pytest.raises(Unavailable, match="mkdir -p"):
        sources.open(1).look({})
    gone = LocalFolder(str(incoming))
    assert gone.ident() == ""
    with pytest.raises(Unavailable):
        list(gone.scan())


def test_a_folder_below_that_is_forbidden_is_seen_as_such(
    incoming: Path, folder: LocalFolder
) -> None:
    drop(incoming, "a.json")
    drop(incoming, "lost+found/b.json")
    scandir = os.scandir

    def refused(path: str) -> Any:
        if "lost+found" in path:
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    with patch.object(os, "scandir", refused):
        entries = sorted(folder.scan())
    assert [entry.path for entry in entries] == ["a.json", "lost+found"]
    assert entries[1].is_blind


def test_a_closed_drawer_takes_nothing(incoming: Path, folder: LocalFolder) -> None:
    drop(incoming, "a.json")
    folder.open_drawer(".headgate-x")
    folder.open_drawer(".headgate-x")
    folder.close_drawer(".headgate-x")
    folder.close_drawer(".headgate-x")
    with pytest.raises(Unavailable, match="closed by somebody else"):
        folder.take("a.json", ".headgate-x", "0")
    assert found(folder) == ["a.json"]


def test_a_drawer_with_something_in_it_is_not_closed(incoming: Path, folder: LocalFolder) -> None:
    drop(incoming, "a.json")
    folder.open_drawer(".headgate-x")
    folder.take("none.json", ".headgate-x", "1")
    folder.take("a.json", ".headgate-x", "0")
    assert folder.names(".headgate-x") == ("0",)
    with pytest.raises(Conflict):
        folder.close_drawer(".headgate-x")
    folder.remove(".headgate-x", "0")
    folder.remove(".headgate-x", "0")
    folder.close_drawer(".headgate-x")


def test_a_link_stays_where_it_is(incoming: Path, folder: LocalFolder) -> None:
    drop(incoming, "a.json")
    (incoming / "link.json").symlink_to("a.json")
    folder.open_drawer(".headgate-x")
    with pytest.raises(Invalid, match="is a link"):
        folder.take("link.json", ".headgate-x", "0")


def in_drawer(incoming: Path, folder: LocalFolder) -> Entry:
    drop(incoming, "a.json")
    entry = folder.stat("a.json")
    assert entry is not None
    folder.open_drawer(".headgate-x")
    folder.take("a.json", ".headgate-x", "0")
    return entry


def other_device(*_: Any) -> None:
    raise OSError(18, "Invalid cross-device link")


def no_links(*_: Any) -> None:
    raise PermissionError(1, "Operation not permitted")


WAYS: dict[str, Any] = {"link": os.link, "without links": no_links}


@pytest.mark.parametrize("way", WAYS)
def test_put_never_replaces(incoming: Path, folder: LocalFolder, tmp_path: Path, way: str) -> None:
    in_drawer(incoming, folder)
    drop(tmp_path, "done/a.json", b"older")
    with patch.object(os, "link", WAYS[way]):
        with pytest.raises(Conflict):
            folder.put(".headgate-x", "0", f"{tmp_path}/done/a.json")
        folder.put(".headgate-x", "0", f"{tmp_path}/done/b/c.json")
        folder.put(".headgate-x", "0", f"{tmp_path}/done/b/c.json")
    assert (tmp_path / "done/a.json").read_bytes() == b"older"
    assert (tmp_path / "done/b/c.json").read_bytes() == b"{}\n"
    folder.close_drawer(".headgate-x")


@pytest.mark.parametrize("killed", ["fsync", "link", "unlink", None])
def test_put_to_another_file_system_is_whole_or_not_there(
    incoming: Path, folder: LocalFolder, tmp_path: Path, killed: str | None
) -> None:
    entry = in_drawer(incoming, folder)
    target, link = tmp_path / "done/a.json", os.link

    def linked(source: str, place: str) -> None:
        if ".headgate-x/0" in source:
            other_device()
        if killed == "link":
            raise Killed
        link(source, place)

    def dead(*_: Any) -> None:
        raise Killed

    with patch.object(os, "link", linked):
        if killed in ("fsync", "unlink"):
            with patch.object(os, killed, dead), pytest.raises(Killed):
                folder.put(".headgate-x", "0", str(target))
        elif killed == "link":
            with pytest.raises(Killed):
                folder.put(".headgate-x", "0", str(target))
            killed = None
        assert not target.exists() or target.read_bytes() == b"{}\n"
        assert folder.names(".headgate-x") == ("0",)
        folder.put(".headgate-x", "0", str(target))

    assert target.read_bytes() == b"{}\n"
    assert target.stat().st_mtime_ns == entry.mtime_ns
    assert [path.name for path in target.parent.iterdir()] == ["a.json"]
    folder.close_drawer(".headgate-x")


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_what_is_moved_to_another_disk_lasts_there_before_it_goes_here(
    incoming: Path, folder: LocalFolder, is_interrupted: bool
) -> None:
    in_drawer(incoming, folder)
    done: list[str] = []
    fsync, unlink = os.fsync, os.unlink

    def synced(handle: int) -> None:
        done.append(os.path.relpath(os.readlink(f"/proc/self/fd/{handle}"), disk))
        fsync(handle)

    def unlinked(path: str) -> None:
        if path.endswith(".headgate-x/0"):
            if is_interrupted and "killed" not in done:
                done[:] = ["killed"]
                raise Killed
            done.append("gone here")
        unlink(path)

    with tempfile.TemporaryDirectory(dir="/dev/shm") as disk:
        assert os.stat(disk).st_dev != incoming.stat().st_dev
        with patch.object(os, "fsync", synced), patch.object(os, "unlink", unlinked):
            if is_interrupted:  # everything is done, and perhaps not on disk
                with pytest.raises(Killed):
                    folder.put(".headgate-x", "0", f"{disk}/2026/11/a.json")
            folder.put(".headgate-x", "0", f"{disk}/2026/11/a.json")
        assert Path(f"{disk}/2026/11/a.json").read_bytes() == b"{}\n"
    before = done[: done.index("gone here")]
    if is_interrupted:
        assert before == ["killed", "2026/11", "2026", ".", ".."]
    else:
        assert before[0].startswith("2026/11/.0"), "the file before its name"
        assert before[1:] == ["2026/11", "2026", ".", ".."]


def test_put_interrupted_between_its_two_halves_ends_the_same(
    incoming: Path, folder: LocalFolder, tmp_path: Path
) -> None:
    in_drawer(incoming, folder)
    target = f"{tmp_path}/done/a.json"

    def dead(*_: Any) -> None:
        raise Killed

    with patch.object(os, "unlink", dead), pytest.raises(Killed):
        folder.put(".headgate-x", "0", target)
    folder.put(".headgate-x", "0", target)
    assert Path(target).read_bytes() == b"{}\n"
    folder.close_drawer(".headgate-x")


def test_a_full_archive_disk_is_tried_again(sources: Sources, incoming: Path) -> None:
    drop(incoming, "a.json")
    source = sources.open(1, "move")
    read(source)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with patch.object(os, "link", full), pytest.raises(Unavailable, match="No space left"):
        source.settle({"lane-0": "1"})
    source.settle({"lane-0": "1"})
    assert [path.name for path in sources.done.iterdir()] == ["a.json"]
    assert list(incoming.iterdir()) == []
    assert read(source, 1) == []
