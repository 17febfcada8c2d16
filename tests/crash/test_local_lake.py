"""What the local lake does, killed before and after each of its effects, and then done again."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from headgate.ambient import SystemAmbient
from headgate.errors import Conflict
from headgate.lake import FileFacts, Lake, LakeSettings, folders, hauls, memo, moves, syscalls
from headgate.lake.digests import checksum_of
from headgate.lake.opening import open_lake
from headgate.lake.paths import REMOVING, STAGING
from headgate.landing.sweeper import sweep_removed

# What changes something on disk, or makes it last. Reads are no effects.
EFFECTS = [
    *((os, name) for name in ("open", "write", "fsync", "rename", "mkdir", "unlink", "link")),
    *((os, name) for name in ("rmdir", "fchmod", "fchown", "ftruncate")),
    *((module, "rename_new") for module in (folders, hauls, moves)),
    (syscalls, "sync_whole"),
]
PLAIN = LakeSettings("")
DRESSED = LakeSettings("", file_mode=0o640, folder_mode=0o750)
STAGED, PUBLISHED, NEIGHBOUR = f"{STAGING}/attempt/0-7/f", "day/hour/f", "day/hour/neighbour"
CONTENT = b"content"
FACTS = FileFacts(len(CONTENT), checksum_of(CONTENT))


class Killed(BaseException):
    """As kill -9: nothing of ours catches it. Open files, and with them locks, are closed."""


@contextmanager
def killed_at(point: int | None) -> Iterator[list[str]]:
    """Counts effects; dies before effect n at point 2n, after it at 2n + 1."""
    made: list[str] = []

    def watched(name: str, effect: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            number = len(made)
            made.append(name)
            if point == 2 * number:
                raise Killed
            try:
                return effect(*args, **named)
            finally:  # a refused effect has an afterwards, too
                if point == 2 * number + 1:
                    raise Killed

        return call

    with ExitStack() as patches:
        # Whether a young file's disk is asked for the time depends on how busy this machine is.
        for grain in ("GRAIN_NS", "COARSE_GRAIN_NS"):
            patches.enter_context(patch.object(memo, grain, 0))
        for module, name in EFFECTS:
            effect = watched(name, getattr(module, name))
            patches.enter_context(patch.object(module, name, effect))
        yield made


@contextmanager
def without_rename() -> Iterator[None]:
    """A file system that knows no rename that never replaces."""
    with (
        patch.object(folders, "rename_new", lambda *_: False),
        patch.object(hauls, "rename_new", lambda *_: False),
        patch.object(moves, "rename_new", lambda *_: False),
    ):
        yield


@dataclass(frozen=True)
class Flow:
    """`act` may find what an earlier one, killed anywhere, has left."""

    prepare: Callable[[Lake], object]
    act: Callable[[Lake], object]
    allowed: list[dict[str, bytes]]  # in this order, each beside the neighbour
    settings: LakeSettings = PLAIN
    has_rename: bool = True


def publish(lake: Lake) -> None:
    staged = lake.facts(STAGED)
    if staged is not None:
        lake.publish(STAGED, PUBLISHED)
    assert lake.facts(PUBLISHED) == FACTS


def stage(lake: Lake) -> None:
    assert lake.stage(STAGED, CONTENT) == FACTS


def prepare_published(lake: Lake) -> None:
    stage(lake)
    publish(lake)


@dataclass(frozen=True)
class Moving:
    """`headgate.lake.Move`: one file of many."""

    number: int

    @property
    def content(self) -> bytes:
        return b"%d" % self.number

    @property
    def staged(self) -> str:
        return f"{STAGING}/attempt/0-7/{self.number % 3}/{self.number}"

    @property
    def published(self) -> str:
        return f"day/{self.number % 10}/{self.number}"

    @property
    def size_bytes(self) -> int:
        return len(self.content)

    @property
    def checksum(self) -> str:
        return checksum_of(self.content)


MANY = [Moving(number) for number in range(70)]  # more than are sealed one by one


def write_many(lake: Lake) -> None:
    """As an engine does."""
    root = Path(lake.url.removeprefix("file://"))
    for one in MANY:
        (root / one.staged).parent.mkdir(parents=True, exist_ok=True)
        (root / one.staged).write_bytes(one.content)


def publish_many(lake: Lake) -> None:
    left = [one for one in MANY if lake.facts(one.staged) is not None]
    lake.seal([one.staged for one in left])
    for one, is_done in zip(left, lake.publish_all(left), strict=True):
        if not is_done and lake.facts(one.staged) is not None:
            lake.publish(one.staged, one.published)
    lake.settle([one.published.rpartition("/")[0] for one in MANY])
    for one in MANY:
        assert lake.facts(one.published) == FileFacts(one.size_bytes, one.checksum)


def moved_many(count: int) -> dict[str, bytes]:
    """With so many of them published."""
    return {one.published: one.content for one in MANY[:count]} | {
        one.staged: one.content for one in MANY[count:]
    }


MOVED = [{STAGED: CONTENT}, {STAGED: CONTENT, PUBLISHED: CONTENT}, {PUBLISHED: CONTENT}]
FLOWS = {
    "publish": Flow(stage, publish, MOVED[::2]),
    "publish by two names": Flow(stage, publish, MOVED, has_rename=False),
    "publish with modes": Flow(stage, publish, MOVED[::2], DRESSED),
    "publish many": Flow(write_many, publish_many, [moved_many(n) for n in range(len(MANY) + 1)]),
    "stage": Flow(lambda _: None, stage, [{}, {STAGED: CONTENT}]),
    "stage with modes": Flow(lambda _: None, stage, [{}, {STAGED: CONTENT}], DRESSED),
    "stage again": Flow(
        lambda lake: lake.stage(STAGED, b"old"), stage, [{STAGED: b"old"}, {STAGED: CONTENT}]
    ),
    "seal": Flow(stage, lambda lake: lake.seal([STAGED]), [{STAGED: CONTENT}], DRESSED),
    "remove": Flow(
        prepare_published, lambda lake: lake.remove(PUBLISHED, FACTS), [{PUBLISHED: CONTENT}, {}]
    ),
    "remove folder": Flow(
        stage, lambda lake: lake.remove_folder(f"{STAGING}/attempt"), [{STAGED: CONTENT}, {}]
    ),
}


def opened(folder: Path, flow: Flow) -> Lake:
    settings = flow.settings
    return open_lake(
        LakeSettings(str(folder), settings.file_mode, settings.folder_mode), SystemAmbient()
    )


def seen(folder: Path) -> dict[str, bytes]:
    """What somebody finds who knows no private names; the neighbour is always there."""
    found = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert found.pop(NEIGHBOUR) == b"neighbour"
    return {
        path: content
        for path, content in found.items()
        if not path.startswith(REMOVING) and not os.path.basename(path).startswith(".")
    }


def start(flow: Flow, folder: Path) -> Lake:
    lake = opened(folder, flow)
    lake.stage(NEIGHBOUR, b"neighbour")
    flow.prepare(lake)
    return opened(folder, flow)


@pytest.mark.parametrize("name", FLOWS)
def test_inv5_killed_anywhere_and_done_again_it_ends_the_same(name: str, tmp_path: Path) -> None:
    flow = FLOWS[name]
    with nullcontext() if flow.has_rename else without_rename():
        lake = start(flow, tmp_path / "calm")
        with killed_at(None) as made:
            flow.act(lake)
        states = []
        for point in range(2 * len(made)):
            folder = tmp_path / str(point)
            lake = start(flow, folder)
            with killed_at(point), pytest.raises(Killed):
                flow.act(lake)
            states.append(seen(folder))
            assert states[-1] in flow.allowed, f"killed at {made[point // 2]}, point {point}"

            flow.act(opened(folder, flow))

            assert seen(folder) == flow.allowed[-1]
    assert states == sorted(states, key=flow.allowed.index), "once new, never old again"
    assert [state for state in flow.allowed if state not in states] == []


@pytest.mark.parametrize("name", ["publish with modes", "stage with modes"])
def test_killed_anywhere_a_folder_that_people_see_has_its_mode(name: str, tmp_path: Path) -> None:
    flow = FLOWS[name]
    calm = start(flow, tmp_path / "calm")
    with killed_at(None) as made:
        flow.act(calm)
    for point in range(2 * len(made)):
        folder = tmp_path / str(point)
        lake = start(flow, folder)
        with killed_at(point), pytest.raises(Killed):
            flow.act(lake)
        for path in (folder / "day", folder / "day/hour"):
            assert not path.exists() or path.stat().st_mode & 0o777 == 0o750
        assert (folder / PUBLISHED).exists() == (seen(folder) == {PUBLISHED: CONTENT})
        if (folder / PUBLISHED).exists():
            assert (folder / PUBLISHED).stat().st_mode & 0o777 == 0o640


def test_killed_anywhere_an_append_leaves_whole_lines(tmp_path: Path) -> None:
    flow = Flow(lambda _: None, lambda lake: lake.append("l/1.jsonl", ["a", "b"]), [])
    calm = start(flow, tmp_path / "calm")
    with killed_at(None) as made:
        flow.act(calm)
    counts = set()
    for point in range(2 * len(made)):
        folder = tmp_path / str(point)
        lake = start(flow, folder)
        with killed_at(point), pytest.raises(Killed):
            flow.act(lake)
        flow.act(opened(folder, flow))
        lines = (folder / "l/1.jsonl").read_text("ascii").split("\n")
        assert lines in (["a", "b", ""], ["a", "b", "a", "b", ""])
        counts.add(len(lines))
    assert counts == {3, 5}


def test_another_file_that_came_in_between_is_put_back(tmp_path: Path) -> None:
    flow = FLOWS["remove"]
    lake = start(flow, tmp_path)
    real = os.rename

    def exchanged_before(*args: Any, **named: Any) -> None:
        (tmp_path / PUBLISHED).unlink()
        (tmp_path / PUBLISHED).write_bytes(b"the next one")
        real(*args, **named)

    with patch.object(os, "rename", exchanged_before), pytest.raises(Conflict, match="stays"):
        lake.remove(PUBLISHED, FACTS)
    assert seen(tmp_path) == {PUBLISHED: b"the next one"}
    assert list((tmp_path / REMOVING).iterdir()) == []


def removing(folder: Path) -> list[bytes]:
    """What lies on its way out."""
    return [path.read_bytes() for path in sorted((folder / REMOVING).glob("*"))]


def test_killed_anywhere_what_was_to_be_removed_is_swept(tmp_path: Path) -> None:
    """And so it is if the sweep itself is killed anywhere."""
    flow = FLOWS["remove"]
    calm = start(flow, tmp_path / "calm")
    with killed_at(None) as made:
        flow.act(calm)
    left = 0
    for point in range(2 * len(made)):
        folder = tmp_path / str(point)
        lake = start(flow, folder)
        with killed_at(point), pytest.raises(Killed):
            flow.act(lake)
        before = seen(folder)
        left += len(removing(folder))
        for kill in range(2 * len(made)):
            with killed_at(kill), suppress(Killed):
                sweep_removed(opened(folder, flow))
        sweep_removed(opened(folder, flow))
        assert removing(folder) == [], point
        assert seen(folder) == before
    assert left > 0


def test_another_file_that_came_in_between_is_not_swept(tmp_path: Path) -> None:
    """Whoever was to put it back was killed: it is the only copy."""
    lake = start(FLOWS["remove"], tmp_path)
    real = os.rename

    def exchanged_and_killed(*args: Any, **named: Any) -> None:
        (tmp_path / PUBLISHED).unlink()
        (tmp_path / PUBLISHED).write_bytes(b"another")  # of the same size
        real(*args, **named)
        raise Killed

    with patch.object(os, "rename", exchanged_and_killed), pytest.raises(Killed):
        lake.remove(PUBLISHED, FACTS)
    assert sweep_removed(opened(tmp_path, FLOWS["remove"])) == 0
    assert removing(tmp_path) == [b"another"]


def test_a_sweep_in_the_middle_of_a_removal_does_no_harm(tmp_path: Path) -> None:
    lake = start(FLOWS["remove"], tmp_path)
    other, real = opened(tmp_path, FLOWS["remove"]), os.rename

    def swept_afterwards(*args: Any, **named: Any) -> None:
        real(*args, **named)
        with patch.object(os, "rename", real):
            assert sweep_removed(other) == 1

    with patch.object(os, "rename", swept_afterwards):
        lake.remove(PUBLISHED, FACTS)
    assert (seen(tmp_path), removing(tmp_path)) == ({}, [])


def test_a_sealed_file_and_every_folder_above_are_on_disk(tmp_path: Path) -> None:
    """The file before its name, and each name before the answer."""
    (tmp_path / "root").mkdir()
    lake = open_lake(LakeSettings(str(tmp_path / "root")), SystemAmbient())
    synced: list[str] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        synced.append(os.path.relpath(os.readlink(f"/proc/self/fd/{handle}"), tmp_path / "root"))
        real(handle)

    with patch.object(os, "fsync", fsync):
        lake.stage("a/b/f", b"f")
        first = list(synced)
        synced.clear()
        lake.stage("a/b/g", b"g")
    assert first[0].startswith("a/b/.")
    assert first[1:] == ["a/b", "a", "."]
    assert synced[1:] == ["a/b"], "what lasts already is not written again"
