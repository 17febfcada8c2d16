"""A lake on HDFS when its servers or the network fail in the middle of something."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from hdfs_native import Client, FileStatus

from headgate.ambient import SystemAmbient
from headgate.commits.steps import PublishFile, carry_out
from headgate.errors import Conflict, Invalid, OutcomeUnknown, Unavailable
from headgate.lake import LakeSettings
from headgate.lake.hdfs import HdfsLake
from headgate.lake.hdfs_wire import NoAnswer
from headgate.lake.opening import open_lake
from headgate.lake.paths import REMOVING, STAGING
from headgate.landing.sweeper import sweep_removed
from tests.contract.hdfs_lakes import HdfsLakeHarness
from tests.servers.hdfs import AT_ONCE, HdfsCluster

pytestmark = [pytest.mark.hdfs, pytest.mark.timeout(300)]

STAGED = f"{STAGING}/attempt/0-7/f"


@pytest.fixture
def harness(hdfs: HdfsCluster) -> Iterator[HdfsLakeHarness]:
    yield HdfsLakeHarness(hdfs)
    hdfs.heal()


def opened(harness: HdfsLakeHarness) -> HdfsLake:
    lake = harness.open()
    assert isinstance(lake, HdfsLake)
    return lake


@contextmanager
def lost_answers(
    lake: HdfsLake, cluster: HdfsCluster, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Each rename arrives and is carried out; then its connection breaks."""
    real = lake._effects.rename

    async def rename(path: str, to: str, *, is_overwriting: bool = False) -> None:
        cluster.wire.lose_replies()
        healing = threading.Timer(1, cluster.wire.heal)  # which breaks the connection
        healing.start()
        try:
            await real(path, to, is_overwriting=is_overwriting)
        finally:
            healing.join()

    with monkeypatch.context() as patch:
        patch.setattr(lake._effects, "rename", rename)
        yield


def test_g3_a_move_whose_answer_is_lost_is_unknown_and_not_made_twice(
    harness: HdfsLakeHarness, hdfs: HdfsCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = opened(harness)
    facts = lake.stage(STAGED, b"f")
    lake.stage("day/other", b"other")  # the folder is there
    with lost_answers(lake, hdfs, monkeypatch), pytest.raises(OutcomeUnknown, match="day/f"):
        lake.publish(STAGED, "day/f")
    assert harness.files() == {"day/f": b"f", "day/other": b"other"}
    assert not carry_out(PublishFile("s/0", STAGED, "day/f", facts), lake), "it was done already"


def test_a_zombie_that_publishes_what_was_rightly_removed_brings_nothing_back(
    harness: HdfsLakeHarness, hdfs: HdfsCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie, other = opened(harness), opened(harness)
    facts = zombie.stage(STAGED, b"f")
    zombie.stage("day/other", b"other")  # the folder is there
    staged = zombie._wire.run(zombie._effects.look(STAGED))

    async def looked(_path: str) -> FileStatus | None:
        return staged  # before the pause

    with monkeypatch.context() as patch:
        patch.setattr(zombie._effects, "look", looked)
        hdfs.name_node.pause()  # the request lies there, and is carried out when nobody waits
        with pytest.raises(OutcomeUnknown):
            zombie.publish(STAGED, "day/f")
        hdfs.name_node.resume()
    carry_out(PublishFile("s/0", STAGED, "day/f", facts), other)
    other.remove("day/f", facts)

    for _ in range(3):
        with pytest.raises(Unavailable):
            zombie.publish(STAGED, "day/f")
    assert harness.files() == {"day/other": b"other"}


def test_staging_whose_last_answer_is_lost_is_known_to_be_done(
    harness: HdfsLakeHarness, hdfs: HdfsCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = opened(harness)
    lake.stage(STAGED, b"old")
    with lost_answers(lake, hdfs, monkeypatch):
        lake.stage(STAGED, b"new")
    assert harness.files() == {STAGED: b"new"}


def test_staging_that_did_not_arrive_is_called_off_for_good(
    harness: HdfsLakeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, asides = opened(harness), list[tuple[str, str]]()

    async def swallowed(path: str, to: str, **_named: bool) -> None:
        asides.append((path, to))
        raise NoAnswer("it lies somewhere on the way")

    lake.stage(STAGED, b"old")
    with monkeypatch.context() as patch:
        patch.setattr(lake._effects, "rename", swallowed)
        with pytest.raises(Unavailable, match="nothing was done"):
            lake.stage(STAGED, b"new")
    ((aside, to),) = asides
    with pytest.raises(Unavailable):
        lake.publish(aside, to)  # it arrives
    assert harness.files() == {STAGED: b"old"}


def test_a_removal_whose_answer_is_lost_is_finished(
    harness: HdfsLakeHarness, hdfs: HdfsCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = opened(harness)
    facts = lake.stage("day/f", b"f")
    with lost_answers(lake, hdfs, monkeypatch):
        lake.remove("day/f", facts)
    assert harness.files() == {}


def test_a_removal_that_arrives_late_takes_no_later_file_away(
    harness: HdfsLakeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, moves = opened(harness), list[tuple[str, str]]()

    async def swallowed(path: str, to: str, **_named: bool) -> None:
        moves.append((path, to))
        raise NoAnswer("it lies somewhere on the way")

    facts = lake.stage("day/_READY", b"generation 1")
    with monkeypatch.context() as patch:
        patch.setattr(lake._effects, "rename", swallowed)
        with pytest.raises(Unavailable, match="nothing was done"):
            lake.remove("day/_READY", facts)
    lake.remove("day/_READY", facts)
    lake.stage("day/_READY", b"generation 2")
    ((path, aside),) = moves
    with pytest.raises(Conflict):
        lake.publish(path, aside)  # it arrives
    sweep_removed(lake)
    with pytest.raises(Conflict):
        lake.publish(path, aside)  # and once more
    assert harness.files() == {"day/_READY": b"generation 2"}


def test_a_removal_is_not_taken_for_done_because_nothing_can_be_put_in_its_way(
    harness: HdfsLakeHarness, hdfs: HdfsCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = opened(harness)
    lake.remove("day/e", lake.stage("day/e", b"e"))  # where removed files lie is there
    facts = lake.stage("day/f", b"f")

    async def swallowed(*_args: str, **_named: bool) -> None:
        raise NoAnswer("the name node ended, and comes back in safe mode")

    with monkeypatch.context() as patch, hdfs.safe_mode():
        patch.setattr(lake._effects, "rename", swallowed)
        with pytest.raises(OutcomeUnknown, match="remove it again"):
            lake.remove("day/f", facts)
    assert harness.files() == {"day/f": b"f"}


def test_k16_a_name_node_that_is_killed_and_started_again_has_forgotten_nothing(
    harness: HdfsLakeHarness, hdfs: HdfsCluster
) -> None:
    lake = opened(harness)
    facts = {n: lake.stage(f"{STAGED}{n}", b"%d" % n) for n in range(4)}
    lake.publish(f"{STAGED}0", "day/0")
    hdfs.name_node.kill()
    with pytest.raises(Unavailable, match="nothing was done"):
        lake.publish(f"{STAGED}1", "day/1")
    with pytest.raises(Unavailable, match="nothing was done"):
        opened(harness)
    hdfs.start()
    for n in range(4):
        carry_out(PublishFile("s/0", f"{STAGED}{n}", f"day/{n}", facts[n]), lake)
    assert harness.files() == {f"day/{n}": b"%d" % n for n in range(4)}


def test_what_is_safe_to_read_can_be_read_in_safe_mode(
    harness: HdfsLakeHarness, hdfs: HdfsCluster
) -> None:
    lake = opened(harness)
    facts = lake.stage("day/f", b"f")
    with hdfs.safe_mode():
        assert lake.facts("day/f") == facts
        assert [entry.path for entry in lake.list("day").entries] == ["day/f"]
        for call in (
            partial(lake.remove, "day/f", facts),
            partial(lake.stage, "day/g", b"g"),
            partial(lake.publish, "day/f", "day/g"),
        ):
            with pytest.raises(Unavailable, match="hdfs dfsadmin -safemode get"):
                call()
    assert harness.files() == {"day/f": b"f"}


def test_a_quota_that_is_used_up_is_named_with_its_command(harness: HdfsLakeHarness) -> None:
    lake = opened(harness)
    lake.stage("day/f", b"f")
    with (
        harness.outage("the quota is used up"),
        pytest.raises(Unavailable, match="hdfs dfs -count -q -v /lakes/"),
    ):
        lake.stage("day/g", b"g")
    assert harness.files() == {"day/f": b"f"}


def test_a_data_node_that_is_silent_is_not_waited_for_without_end(
    harness: HdfsLakeHarness, hdfs: HdfsCluster
) -> None:
    lake = opened(harness)
    facts = lake.stage("day/f", b"f" * 3_000_000)
    hdfs.data_node.pause()
    with pytest.raises(Unavailable, match="did not answer"):
        lake.facts("day/f")
    hdfs.data_node.resume()
    assert lake.facts("day/f") == facts


def test_g9_mode_and_group_are_the_same_however_a_file_gets_its_name(
    harness: HdfsLakeHarness, hdfs: HdfsCluster
) -> None:
    root = opened(harness).url.replace(hdfs.wire.address, hdfs.address)
    lake = open_lake(LakeSettings(root, 0o640, 0o750, "lakers"), SystemAmbient())
    for name in "fgh":
        harness.put(f"{STAGED}/{name}", name.encode())
    facts = dict(zip("fgh", lake.seal([f"{STAGED}/{name}" for name in "fgh"]), strict=True))
    steps = {n: PublishFile("s/0", f"{STAGED}/{n}", f"day/{n}/{n}", facts[n]) for n in "fgh"}
    lake.publish(steps["f"].staged, steps["f"].published)
    carry_out(steps["g"], lake)
    assert lake.publish_all([Wanted(steps["h"])]) == (True,)
    lake.append("ledger/1.jsonl", ["x"])

    client, path = Client(hdfs.url, AT_ONCE), root.removeprefix(hdfs.url)
    for name in ("day/f/f", "day/g/g", "day/h/h", "ledger/1.jsonl"):
        found = client.get_file_info(f"{path}/{name}")
        assert (found.permission, found.group) == (0o640, "lakers"), name
    for name in ("day", "day/f", "day/g", "day/h", "ledger"):
        found = client.get_file_info(f"{path}/{name}")
        assert (found.permission, found.group) == (0o750, "lakers"), name


class Wanted:
    """`headgate.lake.Move`."""

    def __init__(self, step: PublishFile) -> None:
        self.staged, self.published = step.staged, step.published
        self.size_bytes, self.checksum = step.facts.size_bytes, step.facts.checksum


def test_who_died_while_it_wrote_to_the_ledger_is_not_waited_for_without_end(
    harness: HdfsLakeHarness, hdfs: HdfsCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.lake.hdfs_appending.HELD_TOO_LONG_MS", 500)
    lake = opened(harness)
    lake.append("l/1.jsonl", ["before"])
    path = lake.url.removeprefix(f"hdfs://{hdfs.wire.address}")
    dead = Client(hdfs.url, AT_ONCE).append(f"{path}/l/1.jsonl")
    dead.write(b"half a li")
    lake.append("l/1.jsonl", ["after"])
    lines = (lake.read("l/1.jsonl") or b"").decode().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert lines[1:-1] in ([], ["half a li"])


VICTIM = """
import sys
from headgate.ambient import SystemAmbient
from headgate.lake import LakeSettings
from headgate.lake.hdfs import HdfsLake

lake = HdfsLake(LakeSettings(sys.argv[1]), SystemAmbient())
for n in range(1_000):
    facts = lake.stage(f"_headgate/staging/a/{n}", b"%d" % n * 1_000)
    print(n, flush=True)
    lake.publish(f"_headgate/staging/a/{n}", f"day/{n % 7}/{n}")
    if n % 3 == 0:
        lake.remove(f"day/{n % 7}/{n}", facts)
"""


VISITOR = """
import sys
from headgate.ambient import SystemAmbient
from headgate.errors import Unavailable
from headgate.lake import LakeSettings
from headgate.lake.hdfs import HdfsLake

lake = HdfsLake(LakeSettings(sys.argv[1]), SystemAmbient(), answer_within_ms=1_000)
print("ready", flush=True)
sys.stdin.readline()
try:
    lake.facts("x")
except Unavailable:
    sys.exit(3)
"""


def test_a_program_ends_although_the_name_node_is_silent(
    harness: HdfsLakeHarness, hdfs: HdfsCluster
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", VISITOR, opened(harness).url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    hdfs.name_node.pause()
    try:
        child.communicate("go\n", timeout=60)
    finally:
        child.kill()
    assert child.returncode == 3


@pytest.mark.parametrize("pause_ms", [100, 300, 600])
def test_inv5_whoever_is_killed_leaves_each_file_whole_under_one_name_or_gone(
    harness: HdfsLakeHarness, pause_ms: int
) -> None:
    lake, ambient = opened(harness), SystemAmbient()
    child = subprocess.Popen(
        [sys.executable, "-c", VICTIM, lake.url], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    for _ in range(4):
        last = int(child.stdout.readline())
    ambient.sleep_ms(pause_ms)
    os.kill(child.pid, signal.SIGKILL)
    last = max([last, *map(int, child.stdout.read().split())])
    child.wait()
    child.stdout.close()

    sweep_removed(lake)
    files = {
        path: content
        for path, content in harness.files().items()
        if not path.rpartition("/")[2].startswith(".")
    }
    assert not any(path.startswith(REMOVING) for path in files)
    for n in range(last + 1):
        names = [path for path in files if path.endswith(f"/{n}")]
        assert len(names) == 1 or (names == [] and n % 3 == 0), n
        assert all(files[name] == b"%d" % n * 1_000 for name in names)


@pytest.mark.parametrize(
    "root",
    [
        *("hdfs://", "hdfs:/lake", "hdfs://host", "hdfs://host:1/", "hdfs://host:1/a/../b"),
        *("hdfs://host:1/a//b", "hdfs://host:1/a*", "hdfs://host:1/a:b", "hdfs://me@host:1/a"),
    ],
)
def test_what_is_no_folder_on_hdfs_is_refused(root: str) -> None:
    with pytest.raises(Invalid, match="next:"):
        open_lake(LakeSettings(root), SystemAmbient())


def test_modes_that_hdfs_does_not_have_are_refused() -> None:
    with pytest.raises(Invalid, match="set-group"):
        HdfsLake(LakeSettings("hdfs://127.0.0.1:1/a", 0o640, 0o2750), SystemAmbient())
