"""A write of the file store, killed before and after each of its effects."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from headgate.ambient import SystemAmbient
from headgate.errors import Conflict, Corrupt
from headgate.store import DocumentStore, JsonObject
from headgate.store.file import FileStore

# What changes something on disk, or makes it last. Reads are no effects.
EFFECTS = ("open", "write", "fsync", "rename", "mkdir", "unlink", "rmdir", "utime")
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


def create(store: DocumentStore) -> None:
    store.create("folder/deep/doc", NEW)


def replace(store: DocumentStore) -> None:
    found = store.get("kept/doc")
    assert found is not None
    store.replace("kept/doc", NEW, found.version)


def delete(store: DocumentStore) -> None:
    found = store.get("kept/doc")
    assert found is not None
    store.delete("kept/doc", found.version)


FLOWS: dict[str, tuple[Callable[[DocumentStore], None], str, list[JsonObject | None]]] = {
    "create": (create, "folder/deep/doc", [None, NEW]),
    "replace": (replace, "kept/doc", [OLD, NEW]),
    "delete": (delete, "kept/doc", [OLD, None]),
}


def start(folder: Path) -> FileStore:
    store = start_again(folder)
    if store.get("kept/doc") is None:
        store.create("kept/doc", OLD)
    return store


def calm_effects(flow: Callable[[DocumentStore], None], folder: Path) -> list[str]:
    store = start(folder)
    with killed_at(None) as made:
        flow(store)
    return made


def check_every_point(name: str, folder: Path) -> list[str]:
    """The flow's effects. Fails if a crash at one of them leaves what was never written."""
    flow, key, allowed = FLOWS[name]
    made = calm_effects(flow, folder / "calm")
    seen: list[JsonObject | None] = []
    for point in range(2 * len(made)):
        store = start(folder / str(point))
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
        patch("headgate.store.file._rename", in_place),
        pytest.raises(Corrupt, match="damaged"),
    ):
        check_every_point("replace", tmp_path)
