"""The contract of tables, on every kind of them.

    class TestMine(TableContract):
        @pytest.fixture
        def harness(self):
            return MyHarness()

A test's name starts with the guarantee it guards; `headgate.tables.Table` lists them.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Protocol

import pytest

from headgate.engine.failure import JobFailed
from headgate.errors import Conflict, Ended, HeadgateError
from headgate.tables import Batch, Identity, Table
from headgate.testing.racing import at_once

FIRST = Identity("2026-11-01T00", 1)
RACERS = 6
EFFECTS_MAX = 50


class TableHarness(Protocol):
    """What the suite needs of a kind of table. One harness has one table, empty at first."""

    def open(self, epoch: int = 1, check: Callable[[], None] = lambda: None) -> Table:
        """For the holder of that epoch; `check` is asked before each effect."""

    def batch(self, name: str, *rows: str) -> Batch:
        """One file of the lake for each row."""

    def rows(self) -> list[str]:
        """All that a reader finds, sorted."""

    def prepared(self) -> list[str]:
        """What lies where batches are prepared."""

    def lose_history(self) -> None:
        """As if the table were deleted, or restored from a copy before its first batch."""

    def lose_rows(self, is_so: bool) -> None:
        """Whether a row of each file is lost on the way."""

    def power_cut(self) -> None:
        """Everything is as it was when it was last made to last."""


class Dead(Ended):
    """The holder died."""


class TableContract:
    @pytest.fixture
    def harness(self) -> TableHarness:
        pytest.fail("bind the contract: give your class a fixture named harness")

    @pytest.fixture
    def table(self, harness: TableHarness) -> Table:
        return harness.open()

    def test_t1_a_batch_enters_with_all_its_rows(self, harness: TableHarness, table: Table) -> None:
        base = table.look("", FIRST.batch).base
        table.apply(harness.batch(FIRST.batch, "a", "b"), FIRST, base)
        second = Identity("2026-11-01T01", 2)
        table.apply(harness.batch(second.batch, "c"), second, base)
        assert harness.rows() == ["a", "b", "c"]
        assert harness.prepared() == []

    def test_t1_a_reader_never_sees_a_part(self, harness: TableHarness) -> None:
        seen: list[list[str]] = []
        table = harness.open(check=lambda: seen.append(harness.rows()))
        table.apply(harness.batch(FIRST.batch, "a", "b"), FIRST, table.look("", FIRST.batch).base)
        assert len(seen) > 2
        assert all(rows in ([], ["a", "b"]) for rows in seen)

    def test_t1_a_batch_without_rows_is_one(self, harness: TableHarness, table: Table) -> None:
        batch = harness.batch(FIRST.batch)
        table.apply(batch, FIRST, table.look("", FIRST.batch).base)
        found = table.look("", FIRST.batch).runs[FIRST.run]
        assert (found.kind, found.rows, found.manifest) == ("rows", 0, batch.manifest)

    def test_t2_an_identity_is_taken_once(self, harness: TableHarness, table: Table) -> None:
        batch = harness.batch(FIRST.batch, "a")
        base = table.look("", FIRST.batch).base
        table.apply(batch, FIRST, base)
        for again in (
            partial(table.apply, batch, FIRST, base),
            partial(harness.open(2).apply, batch, FIRST, base),
            partial(table.commit_empty, FIRST, base),
        ):
            with pytest.raises(Conflict):
                again()
        assert harness.rows() == ["a"]
        assert harness.prepared() == []

    def test_t2_an_empty_batch_keeps_late_rows_out(
        self, harness: TableHarness, table: Table
    ) -> None:
        batch = harness.batch(FIRST.batch, "a")
        base = table.look("", FIRST.batch).base
        harness.open(2).commit_empty(FIRST, base)
        with pytest.raises(Conflict):
            table.apply(batch, FIRST, base)
        with pytest.raises(Conflict):
            table.commit_empty(FIRST, base)
        assert harness.rows() == []
        table.apply(batch, Identity(FIRST.batch, 2), base)
        assert harness.rows() == ["a"]
        runs = table.look(base, FIRST.batch).runs
        assert {run: found.kind for run, found in runs.items()} == {1: "empty", 2: "rows"}

    def test_t2_of_many_at_once_one_takes_effect(self, harness: TableHarness, table: Table) -> None:
        batch = harness.batch(FIRST.batch, "a")
        base = table.look("", FIRST.batch).base

        def outcome(act: Callable[[], str]) -> bool:
            try:
                act()
            except Conflict:
                return False
            return True

        holders = [harness.open(epoch) for epoch in range(1, RACERS + 1)]
        acts: list[Callable[[], str]] = [
            *(partial(one.apply, batch, FIRST, base) for one in holders[::2]),
            *(partial(one.commit_empty, FIRST, base) for one in holders[1::2]),
        ]
        taken = at_once([partial(outcome, act) for act in acts])
        assert (taken.count(True), taken.count(False)) == (1, RACERS - 1)
        kind = table.look("", FIRST.batch).runs[FIRST.run].kind
        assert harness.rows() == (["a"] if kind == "rows" else [])

    def test_t3_everybody_finds_what_was_committed(
        self, harness: TableHarness, table: Table
    ) -> None:
        assert table.look("", FIRST.batch).runs == {}
        batch = harness.batch(FIRST.batch, "a", "b")
        version = table.apply(batch, FIRST, table.look("", FIRST.batch).base)
        found = harness.open(2).look(version, FIRST.batch).runs
        assert list(found) == [FIRST.run]
        one = found[FIRST.run]
        assert (one.kind, one.rows, one.manifest) == ("rows", 2, batch.manifest)
        assert one.version == version
        assert table.look(version, "2026-11-01T01").runs == {}

    def test_t4_b4_a_recorded_version_is_known_while_it_is_in_the_history(
        self, harness: TableHarness, table: Table
    ) -> None:
        start = table.look("", FIRST.batch)
        assert start.is_known
        assert table.look(start.base, FIRST.batch).is_known
        first = table.apply(harness.batch(FIRST.batch, "a"), FIRST, start.base)
        second = Identity("2026-11-01T01", 2)
        later = table.apply(harness.batch(second.batch, "b"), second, first)
        for version in (start.base, first, later):
            seen = harness.open(2).look(version, second.batch)
            assert seen.is_known
            assert seen.base == version
        harness.lose_history()
        for version in (first, later):
            assert not harness.open(3).look(version, second.batch).is_known
        assert harness.open(3).look("", second.batch).is_known

    def test_t5_what_was_acknowledged_survives_a_power_cut(
        self, harness: TableHarness, table: Table
    ) -> None:
        base = table.look("", FIRST.batch).base
        version = table.apply(harness.batch(FIRST.batch, "a"), FIRST, base)
        closed = Identity("2026-11-01T01", 2)
        table.commit_empty(closed, version)
        harness.power_cut()
        assert harness.rows() == ["a"]
        after = harness.open(2)
        assert after.look(version, FIRST.batch).is_known
        assert after.look(version, FIRST.batch).runs[FIRST.run].kind == "rows"
        assert after.look(version, closed.batch).runs[closed.run].kind == "empty"

    def test_t5_what_was_seen_survives_a_power_cut(self, harness: TableHarness) -> None:
        """Its holder died at each of its effects; whoever saw it may build on it."""
        for dies_at in range(1, EFFECTS_MAX):
            identity = Identity(f"2026-11-01T{dies_at:02}", dies_at)
            batch = harness.batch(identity.batch, "a")
            base = harness.open(dies_at).look("", identity.batch).base
            is_over = self._dies(harness, dies_at, batch, identity, base)
            found = harness.open(100).look("", identity.batch).runs
            harness.power_cut()
            assert harness.open(101).look("", identity.batch).runs == found
            if is_over:
                assert dies_at > 3
                return
        pytest.fail("it makes no end of effects")

    def test_t6_what_was_never_committed_is_swept(self, harness: TableHarness) -> None:
        for dies_at in range(1, EFFECTS_MAX):
            batch = harness.batch(FIRST.batch, "a")
            identity = Identity(FIRST.batch, dies_at)
            base = harness.open(dies_at).look("", FIRST.batch).base
            if self._dies(harness, dies_at, batch, identity, base):
                assert dies_at > 3
                return
            runs = harness.open(dies_at).look("", FIRST.batch).runs
            assert harness.rows() == (["a"] if identity.run in runs else [])
            harness.open(dies_at + 1).sweep()
            assert harness.prepared() == []
        pytest.fail("it makes no end of effects")

    def test_t6_what_was_swept_cannot_be_committed(self, harness: TableHarness) -> None:
        """The next holder sweeps before each effect of this one: all of it enters, or nothing."""
        for swept_at in range(1, EFFECTS_MAX):
            identity = Identity(f"2026-11-01T{swept_at:02}", swept_at)
            batch = harness.batch(identity.batch, "a", "b")
            base = harness.open(1).look("", identity.batch).base
            before = harness.rows()
            check = at_effect(swept_at, harness.open(2).sweep)
            with suppress(HeadgateError, JobFailed):
                harness.open(1, check).apply(batch, identity, base)
            is_in = identity.run in harness.open(3).look("", identity.batch).runs
            assert harness.rows() == (sorted([*before, "a", "b"]) if is_in else before)
            if check.left > 0:
                assert harness.rows() != before
                return
        pytest.fail("it makes no end of effects")

    @pytest.mark.parametrize("epoch", [1, 2])
    def test_t6_nobody_sweeps_what_this_or_a_later_holder_prepares(
        self, harness: TableHarness, epoch: int
    ) -> None:
        for swept_at in range(1, EFFECTS_MAX):
            identity = Identity(f"2026-11-01T{swept_at:02}", swept_at)
            base = harness.open(2).look("", identity.batch).base
            check = at_effect(swept_at, harness.open(epoch).sweep)
            harness.open(2, check).apply(harness.batch(identity.batch, "a"), identity, base)
            assert len(harness.rows()) == swept_at
            if check.left > 0:
                return
        pytest.fail("it makes no end of effects")

    def test_t7_other_rows_than_those_of_the_manifest_do_not_enter(
        self, harness: TableHarness, table: Table
    ) -> None:
        batch = harness.batch(FIRST.batch, "a", "b")
        base = table.look("", FIRST.batch).base
        harness.lose_rows(True)
        with pytest.raises(JobFailed):
            table.apply(batch, FIRST, base)
        assert harness.rows() == []
        assert harness.prepared() == []
        harness.lose_rows(False)
        table.apply(batch, FIRST, base)
        assert harness.rows() == ["a", "b"]

    def _dies(
        self, harness: TableHarness, dies_at: int, batch: Batch, identity: Identity, base: str
    ) -> bool:
        """Whether it came to its end before that effect."""
        try:
            harness.open(dies_at, at_effect(dies_at, die)).apply(batch, identity, base)
        except Dead:
            return False
        return True


class at_effect:  # noqa: N801 - reads as a word
    """Does something once, before the nth effect."""

    def __init__(self, number: int, act: Callable[[], None]) -> None:
        self.left = number
        self._act = act

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            self._act()


def die() -> None:
    raise Dead("it died")
