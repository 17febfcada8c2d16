"""What is written to an overlay is seen there, and nowhere else."""

import pytest

from headgate.errors import Conflict
from headgate.store import DocumentStore, Version
from headgate.store.overlay import OverlayStore
from headgate.testing.manual import ManualAmbient, manual_store

ONE, TWO = {"format": 1, "n": 1}, {"format": 1, "n": 2}


def test_writes_are_seen_here_and_nothing_reaches_the_store_behind() -> None:
    behind = manual_store(ManualAmbient())
    before = behind.create("kept", ONE)
    overlay = OverlayStore(behind)

    overlay.create("new", ONE)
    changed = overlay.replace("kept", TWO, before)
    again = overlay.replace("kept", ONE, changed)

    assert changed != again
    found = overlay.get("kept")
    assert found is not None
    assert (found.body, found.version) == (ONE, again)
    overlay.delete("new", _version(overlay, "new"))
    assert overlay.get("new") is None
    overlay.create("new", TWO)
    assert [one.key for one in behind.list("").documents] == ["kept"]
    assert _version(behind, "kept") == before
    overlay.close()
    assert behind.get("kept") is not None


def test_versions_are_compared_as_in_any_store() -> None:
    behind = manual_store(ManualAmbient())
    old = behind.create("kept", ONE)
    overlay = OverlayStore(behind)
    overlay.replace("kept", TWO, old)

    with pytest.raises(Conflict):
        overlay.replace("kept", ONE, old)
    with pytest.raises(Conflict):
        overlay.create("kept", ONE)
    with pytest.raises(Conflict):
        overlay.delete("gone", old)


def _version(store: DocumentStore, key: str) -> Version:
    found = store.get(key)
    assert found is not None
    return found.version
