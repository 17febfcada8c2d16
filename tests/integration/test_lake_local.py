"""The local lake on disks that refuse, among links, with groups and large numbers."""

import errno
import grp
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

import pytest

from headgate.ambient import SystemAmbient
from headgate.commits.record import COMMITS
from headgate.commits.replay import carry_out_journal
from headgate.errors import Conflict, Corrupt, Invalid, Unavailable
from headgate.lake import LakeSettings
from headgate.lake.local import SYNC_ONE_BY_ONE_MAX, LocalLake
from headgate.lake.opening import open_lake
from headgate.lake.paths import OURS, STAGING, name_of
from headgate.lake.syscalls import WholeDisk
from tests.crash.test_local_lake import Killed, killed_at
from tests.integration.lean_disks import (
    ROOM_BYTES,
    may_mount,
    run_on_full_disk,
    run_on_read_only_disk,
)
from tests.unit.commits.test_replay import STREAM, staged_commit

T = TypeVar("T")
R = TypeVar("R")
WAYS_TO_REFUSE = [True, False] if may_mount() else [False]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "my lake"


@pytest.fixture
def lake(root: Path) -> LocalLake:
    return opened(root)


def opened(root: Path, **settings: int | str) -> LocalLake:
    lake = open_lake(LakeSettings(str(root), **settings), SystemAmbient())  # type: ignore[arg-type] # each is of its field's type
    assert isinstance(lake, LocalLake)
    return lake


def in_threads(act: Callable[[T], R], things: Sequence[T]) -> list[R]:
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(act, things))


FILL = f"""
lake = open_lake(LakeSettings(sys.argv[1] + "/lake"), SystemAmbient())
lake.append("ledger/1.jsonl", ["first"])
lake.stage("_headgate/staging/a/small", b"s" * 1000)
told(lake.stage, "_headgate/staging/a/large", b"x" * {2 * ROOM_BYTES})
told(lake.append, "ledger/1.jsonl", ["y" * {2 * ROOM_BYTES}])
print(lake.read("ledger/1.jsonl"))
print([entry.path for entry in lake.list("_headgate/staging/a").entries])
told(lake.publish, "_headgate/staging/a/small", "day/small")
told(lake.append, "ledger/1.jsonl", ["last"])
print(lake.read("ledger/1.jsonl"))
"""


@pytest.mark.parametrize("with_mount", WAYS_TO_REFUSE)
def test_a_full_disk_is_told_and_left_as_it_was(tmp_path: Path, with_mount: bool) -> None:
    lines = run_on_full_disk(FILL, tmp_path, with_mount=with_mount).splitlines()
    for line, path in zip(lines[:2], ["staging/a/large", "ledger/1.jsonl"], strict=True):
        assert line.startswith("Unavailable ")
        assert f"{path}: there is not enough room" in line
        assert "df -h" in line
    assert lines[2:] == [
        "b'first\\n'",
        "['_headgate/staging/a/small']",
        *("done", "done", "b'first\\nlast\\n'"),
    ]


TRY_TO_CHANGE = """
lake = LocalLake(LakeSettings(sys.argv[1]), SystemAmbient())
facts = lake.facts("day/f")
print(lake.read("day/f"), [entry.path for entry in lake.list("day").entries])
told(lake.stage, "_headgate/staging/a/g", b"g")
told(lake.publish, "_headgate/staging/a/f", "day/g")
told(lake.publish, "_headgate/staging/a/f", "new/g")
told(lake.append, "ledger/1.jsonl", ["x"])
told(lake.append, "ledger/2.jsonl", ["x"])
told(lake.remove, "day/f", facts)
"""


@pytest.mark.parametrize("with_mount", WAYS_TO_REFUSE)
def test_a_read_only_lake_can_be_read(root: Path, lake: LocalLake, with_mount: bool) -> None:
    lake.stage("day/f", b"f")
    lake.stage(f"{STAGING}/a/f", b"f")
    lake.append("ledger/1.jsonl", ["first"])
    read, *lines = run_on_read_only_disk(TRY_TO_CHANGE, root, with_mount=with_mount).splitlines()
    assert read == "b'f' ['day/f']"
    assert len(lines) == 6
    for line in lines:
        assert line.startswith("Unavailable ")
        assert ("the file system is read-only" if with_mount else "not allowed") in line
        assert ("next: findmnt -T" if with_mount else "namei -l") in line
    assert lake.read("ledger/1.jsonl") == b"first\n"


def test_a_lake_that_is_gone_is_unavailable(root: Path, lake: LocalLake) -> None:
    facts = lake.stage(f"{STAGING}/f", b"f")
    root.rename(root.with_name("elsewhere"))
    for call in (
        lambda: lake.stage("f", b"f"),
        lambda: lake.publish(f"{STAGING}/f", "f"),
        lambda: lake.settle([""]),
        lambda: lake.append("f", ["x"]),
    ):
        with pytest.raises(Unavailable):
            call()
    assert not root.exists(), "it may be a disk that was not mounted: nothing is made in its place"
    root.with_name("elsewhere").rename(root)
    assert lake.facts(f"{STAGING}/f") == facts


def test_a_link_at_the_end_of_a_path_is_not_followed(root: Path, lake: LocalLake) -> None:
    outside = root.with_name("outside")
    outside.mkdir()
    (outside / "f").write_bytes(b"not ours")
    (root / "day").mkdir()
    (root / "day/link").symlink_to(outside / "f")
    (root / STAGING).mkdir(parents=True)
    (root / STAGING / "folder").symlink_to(outside)
    facts = lake.stage(f"{STAGING}/f", b"f")

    for call in (
        lambda: lake.facts("day/link"),
        lambda: lake.read("day/link"),
        lambda: lake.seal(["day/link"]),
        lambda: lake.append("day/link", ["x"]),
        lambda: lake.remove("day/link", facts),
        lambda: lake.publish("day/link", "day/new"),
        lambda: lake.remove_folder(f"{STAGING}/folder"),
        lambda: lake.list(f"{STAGING}/folder"),
    ):
        with pytest.raises(Invalid, match="link"):
            call()
    with pytest.raises(Conflict):
        lake.publish(f"{STAGING}/f", "day/link")

    assert [path.name for path in outside.iterdir()] == ["f"]
    assert (outside / "f").read_bytes() == b"not ours"
    assert [entry.path for entry in lake.list("day").entries] == ["day/link"]


def test_removing_a_folder_takes_links_and_not_what_they_lead_to(
    root: Path, lake: LocalLake
) -> None:
    outside = root.with_name("outside")
    outside.mkdir()
    (outside / "f").write_bytes(b"not ours")
    lake.stage(f"{STAGING}/a/f", b"f")
    (root / STAGING / "a/link").symlink_to(outside)
    (root / STAGING / "a/file").symlink_to(outside / "f")
    lake.remove_folder(f"{STAGING}/a")
    assert (outside / "f").read_bytes() == b"not ours"
    assert not (root / STAGING / "a").exists()


def test_the_root_may_be_a_link(root: Path) -> None:
    real = root.with_name("real")
    real.mkdir()
    root.symlink_to(real)
    lake = opened(root)
    lake.stage("day/f", b"f")
    assert (real / "day/f").read_bytes() == b"f"
    assert lake.url == f"file://{real}"


def test_the_root_is_made_or_refused(tmp_path: Path) -> None:
    opened(tmp_path / "a/b/c")
    assert (tmp_path / "a/b/c").is_dir()
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "nowhere").symlink_to(tmp_path / "none")
    for name in ("file", "nowhere"):
        with pytest.raises(Invalid, match="not a folder"):
            opened(tmp_path / name)
    with pytest.raises(Unavailable):
        opened(tmp_path / "file/below")
    with pytest.raises(Invalid, match="no group"):
        opened(tmp_path / "a", group="no such group")


def test_pipes_and_files_in_the_way_do_not_make_anybody_wait(root: Path, lake: LocalLake) -> None:
    os.mkfifo(root / "pipe")
    lake.stage("file", b"f")
    for call in (
        lambda: lake.facts("pipe"),
        lambda: lake.read("pipe"),
        lambda: lake.seal(["pipe"]),
    ):
        with pytest.raises(Corrupt, match="something else"):
            call()
    for call in (lambda: lake.stage("file/below", b""), lambda: lake.append("file/below", ["x"])):
        with pytest.raises(Unavailable, match="Not a directory"):
            call()


def test_group_and_mode_are_those_of_the_settings(root: Path) -> None:
    group = grp.getgrgid(_another_group())
    lake = opened(root, group=group.gr_name, file_mode=0o640, folder_mode=0o2750)
    lake.stage(f"{STAGING}/f", b"f")
    (root / STAGING / "g").write_bytes(b"g")
    lake.seal([f"{STAGING}/g"])
    for name in ("f", "g"):
        lake.publish(f"{STAGING}/{name}", f"day/hour/{name}")
    for path, mode in [("day", 0o2750), ("day/hour", 0o2750), ("day/hour/f", 0o640)]:
        found = (root / path).stat()
        assert (found.st_mode & 0o7777, found.st_gid) == (mode, group.gr_gid)


def test_g9_a_commit_that_was_replayed_has_the_modes_and_groups_of_a_plain_one(root: Path) -> None:
    """Killed before and after each effect, and then finished by somebody else."""
    group = grp.getgrgid(_another_group()).gr_name

    def attempt(number: int, point: int | None) -> tuple[dict[str, tuple[int, int]], int]:
        place = root / str(number)

        def lake() -> LocalLake:
            return opened(place, group=group, file_mode=0o640, folder_mode=0o2750)

        journal = staged_commit(lake())
        with killed_at(point) as made, suppress(Killed):
            carry_out_journal(lake(), STREAM, 0, journal, {})
        carry_out_journal(lake(), STREAM, 0, journal, {})
        return _access_of(place), len(made)

    plain, effects = attempt(0, None)
    modes = {mode for mode, _ in plain.values()}
    assert (modes, len(plain)) == ({0o640, 0o2750}, 17)
    for point in range(2 * effects):
        assert attempt(point + 1, point)[0] == plain, point


def _access_of(root: Path) -> dict[str, tuple[int, int]]:
    """Mode and group of every file and folder that people see."""
    found = [one for one in root.rglob("*") if not one.is_relative_to(root / OURS)]
    records = [*(root / COMMITS).rglob("*"), root / COMMITS]
    return {
        str(one.relative_to(root)): (one.stat().st_mode & 0o7777, one.stat().st_gid)
        for one in (*found, *records)
    }


def _another_group() -> int:
    """One that this user may give to a file; its own if it has no other."""
    groups = {one.gr_gid for one in grp.getgrall()} if os.getuid() == 0 else set(os.getgroups())
    return next(iter(sorted(groups - {os.getgid()})), os.getgid())


@pytest.mark.parametrize("count", [3, SYNC_ONE_BY_ONE_MAX + 1])
def test_from_seal_to_verify_no_byte_is_read_twice(root: Path, count: int) -> None:
    lake = LocalLake(LakeSettings(str(_made(root))), SystemAmbient(), in_threads)
    paths = [f"{STAGING}/a/{n}" for n in range(count)]
    (root / STAGING / "a").mkdir(parents=True)
    for path in paths:
        (root / path).write_bytes(path.encode())
        os.utime(root / path, (1_000_000_000, 1_000_000_000.5))  # a job takes its time
    read: list[int] = []
    real = os.pread

    def counted(handle: int, size_bytes: int, start: int) -> bytes:
        read.append(handle)
        return real(handle, size_bytes, start)

    with patch.object(os, "pread", counted):
        sealed = lake.seal(paths)
        for path, facts in zip(paths, sealed, strict=True):
            assert lake.facts(path) == facts
            lake.publish(path, f"day/{name_of(path)}")
            assert lake.facts(f"day/{name_of(path)}") == facts
    assert len(read) == count


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_a_failed_write_that_another_thread_was_told_of_is_told_again(lake: LocalLake) -> None:
    paths = [f"{STAGING}/{n}" for n in range(SYNC_ONE_BY_ONE_MAX + 1)]
    for path in paths:
        lake.stage(path, b"x")
    disk = lake._disk

    def while_another_is_told(act: Callable[[T], R], things: Sequence[T]) -> list[R]:
        disk._failures += 1
        return [act(thing) for thing in things]

    lake._each = while_another_is_told
    with pytest.raises(Unavailable, match="Input/output"):
        lake.seal(paths)


def test_after_a_failed_sync_of_the_whole_disk_each_file_is_asked_for_itself(
    lake: LocalLake,
) -> None:
    """The disk tells a failed write once, and it may have been that of a file sealed later."""
    paths = [f"{STAGING}/{n}" for n in range(SYNC_ONE_BY_ONE_MAX + 1)]
    for path in paths:
        lake.stage(path, b"x")
    failed = OSError(errno.EIO, os.strerror(errno.EIO))
    with (
        patch("headgate.lake.syscalls.sync_whole", side_effect=failed),
        pytest.raises(Unavailable, match="Input/output"),
    ):
        lake.seal(paths)

    with patch.object(os, "fsync", wraps=os.fsync) as asked:
        lake.seal(paths)

    assert asked.call_count >= len(paths)


def test_a_disk_that_may_answer_a_sync_without_doing_it_is_not_relied_on() -> None:
    assert not WholeDisk("/proc").is_reliable


def test_a_file_that_is_being_written_has_no_facts_yet(root: Path, lake: LocalLake) -> None:
    (_made(root / "day") / "f").write_bytes(b"")
    real = os.pread

    def written_meanwhile(handle: int, size_bytes: int, start: int) -> bytes:
        found = real(handle, size_bytes, start)
        with (root / "day/f").open("ab") as file:
            file.write(b"x")
        return found

    with patch.object(os, "pread", written_meanwhile), pytest.raises(Unavailable, match="fuser"):
        lake.facts("day/f")


def test_a_large_folder_is_listed_page_by_page(root: Path, lake: LocalLake) -> None:
    (root / "day").mkdir()
    names = [f"{n * 7919 % 3000:04}" for n in range(3000)]
    for name in names:
        (root / "day" / name).touch()
    after, found = "", []
    for _ in range(100):
        page = lake.list("day", after=after, limit=100)
        found += [entry.path[4:] for entry in page.entries]
        if page.next_after is None:
            break
        after = page.next_after
    assert found == sorted(names)


def test_threads_that_publish_into_new_folders_do_not_stand_in_each_others_way(
    root: Path,
) -> None:
    lake = opened(root, folder_mode=0o750)
    barrier = threading.Barrier(4)

    def publish(n: int) -> None:
        lake.stage(f"{STAGING}/{n}", b"x")
        barrier.wait(60)
        lake.publish(f"{STAGING}/{n}", f"{n // 4}/a/b/c/{n}")

    for start in range(0, 40, 4):
        in_threads(publish, range(start, start + 4))
    assert len(list(root.glob("*/a/b/c/*"))) == 40
    assert not list((root / STAGING).iterdir())
