"""The doctor of lakes: what keeps its promises is safe, and each broken one is named."""

import time
from collections.abc import Sequence

import pytest

from headgate.ambient import SystemAmbient
from headgate.errors import Unavailable
from headgate.lake import Entry, FileFacts, Listing
from headgate.lake.examining import examine
from headgate.lake.memory import MemoryLake
from headgate.store.probe import Finding, ProbeReport, Verdict


def asked(lake: MemoryLake, off_ms: float = 0) -> ProbeReport:
    return examine(lake, lake, lambda: time.time() * 1000 + off_ms, SystemAmbient(), lambda _: None)


def bad(lake: MemoryLake) -> list[Finding]:
    return [one for one in asked(lake).findings if one.verdict is Verdict.BAD]


def test_a_lake_that_keeps_its_promises_is_safe_and_left_as_it_was() -> None:
    lake = MemoryLake()
    lake.stage("day/f", b"landed")
    found = asked(lake)
    assert (found.is_safe, found.words) == (True, "safe to use")
    assert lake.files() == {"day/f": b"landed"}


def test_a_clock_that_is_off_is_a_warning() -> None:
    found = asked(MemoryLake(), off_ms=60_000)
    assert found.words == "safe, with warnings"
    assert any("NTP" in one.words for one in found.findings)


def test_a_lake_that_takes_nothing_gives_no_answer() -> None:
    lake = MemoryLake()
    lake.refuses = "nobody may write"
    with pytest.raises(Unavailable, match="nobody may write"):
        asked(lake)


class Overwrites(MemoryLake):
    def publish(self, staged: str, published: str) -> None:
        with self._alone:
            self._files.pop(published, None)
        super().publish(staged, published)


class KeepsStaged(MemoryLake):
    def publish(self, staged: str, published: str) -> None:
        content = self.read(staged)
        super().publish(staged, published)
        self.put(staged, content or b"")


class RemovesAnything(MemoryLake):
    def remove(self, path: str, facts: FileFacts) -> None:
        super().remove(path, self.facts(path) or facts)


class ForgetsNames(MemoryLake):
    def list(self, folder: str, *, after: str = "", limit: int = 10_000) -> Listing:
        page = super().list(folder, after=after, limit=limit)
        return Listing(_without_last(page.entries), page.next_after)


class LosesLines(MemoryLake):
    def append(self, path: str, lines: Sequence[str]) -> None:
        if not lines[0].endswith("3"):
            super().append(path, lines)


def _without_last(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    return entries[:-1]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (Overwrites, {"create if absent", "overwrite refusal"}),
        (KeepsStaged, {"consumed"}),
        (RemovesAnything, {"exact removal"}),
        (ForgetsNames, {"list your write"}),
        (LosesLines, {"append"}),
    ],
)
def test_planted_a_broken_promise_is_named(kind: type[MemoryLake], names: set[str]) -> None:
    found = bad(kind())
    assert names <= {one.name for one in found}
    assert not asked(kind()).is_safe
