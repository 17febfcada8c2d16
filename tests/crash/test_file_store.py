"""A write of the file store, killed before and after each of its effects."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from headgate.ambient import SystemAmbient
from headgate.errors import Conflict, Corrupt
from headgate.store import DocumentStore, JsonObject, disk
from headgate.store.file import FileStore

# What changes something on disk, or makes it last. Reads are no effects.
EFFECTS = ("open", "write", "pwrite", "fsync", "rename", "mkdir", "unlink", "rmdir", "utime")
OLD: JsonObject = {"format": 1, "value": "old"}
NEW: JsonObject = {"format": 1, "value": "new"}
NEXT: JsonObject = {"format": 1, "value": "next"}


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
        for name in EFFECTS:
            patches.enter_context(patch.object(os, name, watched(name, getattr(os, name))))
        yield made


LONG = "x" * 250


def create(store: DocumentStore) -> None:
    store.create(f"folder/{LONG}/doc", NEW)


def replace(store: DocumentStore) -> None:
    found = store.get("kept/doc")
    assert found is not None
    store.replace("kept/doc", NEW, found.version)


def delete(store: DocumentStore) -> None:
    found = store.get("kept/doc")
    assert found is not None
    store.delete("kept/doc", found.version)


FLOWS: dict[str, tuple[Callable[[DocumentStore], None], str, list[JsonObject | None]]] = {
    "create": (create, f"folder/{LONG}/doc", [None, NEW]),
    "first": (create, f"folder/{LONG}/doc", [None, NEW]),
    "replace": (replace, "kept/doc", [OLD, NEW]),
    "delete": (delete, "kept/doc", [OLD, None]),
}


def start(name: str, folder: Path) -> FileStore:
    store = start_again(folder)
    if name != "first":  # that one finds an empty place
        store.create("kept/doc", OLD)
    return start_again(folder)


def check_every_point(name: str, folder: Path) -> list[str]:
    """The flow's effects. Fails if a crash at one of them leaves what was never written."""
    flow, key, allowed = FLOWS[name]
    store = start(name, folder / "calm")
    with killed_at(None) as made:
        flow(store)
    seen: list[JsonObject | None] = []
    for point in range(2 * len(made)):
        store = start(name, folder / str(point))
        with killed_at(point), pytest.raises(Killed):
            flow(store)

        survivor = start_again(folder / str(point))
        found = survivor.get(key)
        body = None if found is None else found.body
        assert body in allowed, f"{name} killed at {made[point // 2]}, point {point}"
        listed = {document.key: document.body for document in survivor.list().documents}
        assert listed.get(key) == body
        assert survivor.list().damaged == ()
        seen.append(body)
        write_again(survivor, key)
    assert seen[0] == allowed[0]
    assert seen[-1] == allowed[1]
    assert seen == sorted(seen, key=allowed.index), "once new, never old again"
    return made


def start_again(folder: Path) -> FileStore:
    """Another process, after the crash."""
    return FileStore(folder, "test", SystemAmbient())


def write_again(store: FileStore, key: str) -> None:
    """The next writer is not held up, and is not confused by what the dead one left."""
    found = store.get(key)
    if found is None:
        store.create(key, NEXT, timeout_ms=1_000)
    else:
        store.replace(key, NEXT, found.version, timeout_ms=1_000)
        with pytest.raises(Conflict):
            store.replace(key, OLD, found.version)
    now = store.get(key)
    assert now is not None
    assert now.body == NEXT


@dataclass
class Trace:
    """What a flow did to the disk, in order: (effect, path)."""

    steps: list[tuple[str, str]] = field(default_factory=list)

    def last(self, effect: str, path: str) -> int:
        found = [n for n, step in enumerate(self.steps) if step == (effect, path)]
        return found[-1] if found else -1


@contextmanager
def traced() -> Iterator[Trace]:
    trace, paths = Trace(), dict[int, str]()
    real = {
        name: getattr(os, name) for name in ("open", "write", "fsync", "rename", "mkdir", "unlink")
    }

    def opened(path: str, *args: Any, **named: Any) -> int:
        handle: int = real["open"](path, *args, **named)
        paths[handle] = str(path)
        return handle

    def on_handle(effect: str) -> Callable[..., Any]:
        def call(handle: int, *args: Any) -> Any:
            trace.steps.append((effect, paths[handle]))
            return real[effect](handle, *args)

        return call

    def renamed(source: str, target: str) -> None:
        real["rename"](source, target)
        trace.steps.append(("rename", target))

    def on_path(effect: str) -> Callable[..., Any]:
        def call(path: str, *args: Any) -> None:
            real[effect](path, *args)
            trace.steps.append((effect, str(path)))

        return call

    with ExitStack() as patches:
        for name, stand_in in {
            "open": opened,
            "write": on_handle("write"),
            "fsync": on_handle("fsync"),
            "rename": renamed,
            "mkdir": on_path("mkdir"),
            "unlink": on_path("unlink"),
        }.items():
            patches.enter_context(patch.object(os, name, stand_in))
        yield trace


def lost_by_a_power_loss(trace: Trace, change: str, file: str, folder: Path) -> list[str]:
    """What of an acknowledged write only the memory knows. On disk is what was fsynced since."""
    missing = [
        path
        for effect, path in trace.steps
        if effect == "write" and trace.last("fsync", path) < trace.last("write", path)
    ]
    done = trace.last(change, file)
    assert done >= 0, trace.steps
    for parent in Path(file).parents:
        if parent == folder:
            break
        if trace.last("fsync", str(parent)) < done:
            missing.append(str(parent))
    return missing


@pytest.mark.parametrize("name", FLOWS)
def test_an_acknowledged_write_survives_a_power_loss(name: str, tmp_path: Path) -> None:
    """Every folder above, too: whoever made it may have died before it was on disk."""
    flow, _, _ = FLOWS[name]
    store = start(name, tmp_path / "state")
    with traced() as trace:
        flow(store)
    change = "unlink" if name == "delete" else "rename"
    file = next(path for effect, path in trace.steps if effect == change)
    assert file.endswith("/doc.json")
    assert lost_by_a_power_loss(trace, change, file, tmp_path / "state") == []
    if change == "rename":  # and once, whoever made them, the folders above the namespaces
        assert ("fsync", f"{tmp_path}/state") in trace.steps
        assert ("fsync", f"{tmp_path}") in trace.steps
    for made in (path for effect, path in trace.steps if effect == "mkdir"):
        parent = str(Path(made).parent)
        assert trace.last("fsync", parent) > trace.last("mkdir", made), made


@pytest.mark.parametrize("forgotten", ["write_through", "sync_folder"])
def test_planted_a_forgotten_fsync_is_caught(forgotten: str, tmp_path: Path) -> None:
    store = start("replace", tmp_path / "state")
    with (
        traced() as trace,
        patch(f"headgate.store.file.{forgotten}", without_fsync(getattr(disk, forgotten))),
    ):
        replace(store)
    file = f"{tmp_path}/state/test/kept/doc.json"
    assert lost_by_a_power_loss(trace, "rename", file, tmp_path / "state")


def without_fsync(effect: Callable[..., None]) -> Callable[..., None]:
    def call(*args: Any) -> None:
        with patch.object(os, "fsync", lambda _: None):
            effect(*args)

    return call


def test_a_disk_that_takes_a_little_at_a_time_gets_everything(tmp_path: Path) -> None:
    store = start_again(tmp_path)
    write = os.write
    with patch.object(os, "write", lambda handle, content: write(handle, content[:7])):
        store.create("doc", NEW)
    found = store.get("doc")
    assert found is not None
    assert found.body == NEW


@pytest.mark.parametrize("name", FLOWS)
def test_g5_killed_at_any_effect_the_old_or_the_new_document_is_there(
    name: str, tmp_path: Path
) -> None:
    made = check_every_point(name, tmp_path)
    assert {"fsync", "unlink" if name == "delete" else "rename"} <= set(made)


def test_planted_a_file_written_in_place_is_caught(tmp_path: Path) -> None:
    """The matrix is red for a store that writes over the document instead of beside it."""

    def in_place(aside: str, file: str) -> None:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(handle, Path(aside).read_bytes())
        os.close(handle)

    with (
        patch("headgate.store.file.move", in_place),
        pytest.raises(Corrupt, match="damaged"),
    ):
        check_every_point("replace", tmp_path)
