"""The contract of a source: what is planned, read once, confirmed and settled, on every kind.

    class TestMine(SourceContract):
        @pytest.fixture
        def harness(self):
            return MyHarness()

A test's name starts with the guarantee it guards (`headgate.sources.Source` lists them).
"""

from collections.abc import Mapping
from typing import ClassVar, Protocol

import pytest

from headgate.engine import Tally
from headgate.errors import Conflict, Corrupt, Fenced
from headgate.sources import Plan, Source
from headgate.testing.faults import Crashed, Harm, Point, Scripted, Stage

PLANS_MAX = 200
LOOK_MS = 60_000
MANY = 300
DOCUMENTS_MAX = 60  # for each source partition, whatever it went through
ROOMY = 10**9


class SourceHarness(Protocol):
    """What the suite needs of a kind of source. Names are texts like `a` or `b/7`."""

    def open(self, epoch: int, stage: Stage | None = None) -> Source:
        """One more instance, as the holder with this epoch would have it; with everything that it
        acts on behind that stage."""

    def add(self, name: str, lines: int = 1) -> None:
        """Something complete, of so many records. Under a name that was used: something else."""

    def begin(self, name: str) -> None:
        """Something that is not complete."""

    def finish(self, name: str) -> None:
        """What was begun is complete now."""

    def lose(self, name: str) -> None:
        """It is not at the source any more."""

    def left(self) -> set[str]:
        """Names of what is at the source and complete."""

    def name_of(self, path: str) -> str:
        """From the path in a plan."""

    def pass_ms(self, duration_ms: int) -> None:
        """Time goes on."""

    def wall_ms(self) -> int:
        """What time it is there."""

    def documents(self) -> int:
        """How many are in the store."""


class SourceContract:
    removes_what_was_read: ClassVar[bool] = False

    @pytest.fixture
    def harness(self) -> SourceHarness:
        pytest.fail("bind the contract: give your class a fixture named harness")

    def test_c1_partitions_stay(self, harness: SourceHarness) -> None:
        source = harness.open(1)
        before = source.partitions()
        assert before
        harness.add("a")
        read_all(harness, source, {})
        assert source.partitions() == before
        assert harness.open(2).partitions() == before

    def test_c2_the_same_range_gives_the_same_files_from_any_instance(
        self, harness: SourceHarness
    ) -> None:
        for n in range(20):
            harness.add(f"f{n:02}")
        source = harness.open(1)
        plan = looked(harness, source, {})
        until = {lane: found.next for lane, found in plan.ranges.items()}
        harness.add("later")
        for again in (source, harness.open(1), harness.open(2)):
            assert again.plan({}, size_bytes_max=1, until=until).files == plan.files
            looked(harness, again, {})
            found = again.plan({}, size_bytes_max=1, until=until)
            assert (found.files, found.ranges) == (plan.files, plan.ranges)

    def test_c3_ranges_join_without_a_hole(self, harness: SourceHarness) -> None:
        for n in range(30):
            harness.add(f"f{n:02}")
        source, positions = harness.open(1), dict[str, str]()
        for _ in range(PLANS_MAX):
            plan = looked(harness, source, positions, size_bytes_max=1)
            if plan.is_empty:
                break
            for lane, found in plan.ranges.items():
                assert found.first == positions.get(lane, "")
                positions[lane] = found.next
        assert plan.is_empty
        assert not plan.has_more

    def test_c3_what_is_no_longer_there_is_a_gap_with_its_reason(
        self, harness: SourceHarness
    ) -> None:
        for name in ("a", "b", "c", "d"):
            harness.add(name)
        source = harness.open(1)
        looked(harness, source, {})
        successor = harness.open(2)
        successor.look({})
        harness.lose("b")
        harness.add("c", lines=3)  # something else, under the same name

        read, gaps = read_all(harness, successor, {})

        assert sorted(read) == ["a", "c", "d"]
        assert len(gaps) == 2
        for name in ("b", "c"):
            assert any(name in gap for gap in gaps)

    def test_c4_everything_complete_is_read_once(self, harness: SourceHarness) -> None:
        source, positions = harness.open(1), dict[str, str]()
        read: list[str] = []
        for turn in range(6):
            for n in range(7):
                harness.add(f"{turn}/{n}")
            if turn % 2:
                source = harness.open(turn + 1)  # another holder goes on
            found, gaps = read_all(harness, source, positions, size_bytes_max=1 + 100 * turn)
            assert not gaps
            read += found
        assert sorted(read) == sorted(f"{turn}/{n}" for turn in range(6) for n in range(7))

    def test_c4_the_same_name_with_other_content_is_something_new(
        self, harness: SourceHarness
    ) -> None:
        source, positions = harness.open(1), dict[str, str]()
        for lines in (1, 2, 3):
            harness.add("a", lines)
            assert read_all(harness, source, positions) == (["a"], [])
            source.settle(positions)
            assert read_all(harness, source, positions) == ([], [])

    def test_c4_two_holders_in_turn_read_each_once(self, harness: SourceHarness) -> None:
        positions = dict[str, str]()
        read: list[str] = []
        for epoch in range(1, 8):
            source = harness.open(epoch)
            harness.add(f"f{epoch}")
            found, _ = read_all(harness, source, positions)
            read += found
            source.settle(positions)
        assert read == [f"f{epoch}" for epoch in range(1, 8)]

    def test_c5_read_to_the_end_as_of_a_moment_before_the_look(
        self, harness: SourceHarness
    ) -> None:
        source = harness.open(1)
        harness.add("a")
        before_ms = harness.wall_ms()
        plan = looked(harness, source, {})
        assert set(plan.ends_ms) == set(source.partitions())
        for seen_ms in plan.ends_ms.values():
            assert before_ms <= seen_ms <= harness.wall_ms()
        positions = advanced({}, plan)
        seen_ms = harness.wall_ms()
        harness.pass_ms(LOOK_MS)
        again = source.plan(positions, size_bytes_max=ROOMY)
        assert all(end_ms <= seen_ms for end_ms in again.ends_ms.values()), "as of the last look"

    def test_c5_what_is_unfinished_is_not_the_end(self, harness: SourceHarness) -> None:
        source = harness.open(1)
        harness.add("a")
        harness.begin("b")
        plan = looked(harness, source, {})
        assert [harness.name_of(file.path) for file in plan.files] == ["a"]
        assert plan.ends_ms == {}
        positions = advanced({}, plan)
        harness.finish("b")
        plan = looked(harness, source, positions)
        assert [harness.name_of(file.path) for file in plan.files] == ["b"]
        assert set(plan.ends_ms) == set(source.partitions())

    def test_c5_what_is_left_behind_a_plan_is_not_the_end(self, harness: SourceHarness) -> None:
        for n in range(10):
            harness.add(f"f{n}")
        source = harness.open(1)
        plan = looked(harness, source, {}, size_bytes_max=1)
        assert plan.has_more
        read = {file.partition for file in plan.files}
        assert not read & set(plan.ends_ms)

    def test_c5_an_empty_source_is_at_its_end(self, harness: SourceHarness) -> None:
        source = harness.open(1)
        plan = looked(harness, source, {})
        assert plan.is_empty
        assert set(plan.ends_ms) == set(source.partitions())

    @pytest.mark.parametrize("trouble", ["lost", "changed"])
    def test_c6_what_changed_while_it_was_read_is_not_confirmed(
        self, harness: SourceHarness, trouble: str
    ) -> None:
        harness.add("a")
        harness.add("b")
        source = harness.open(1)
        plan = looked(harness, source, {})
        source.confirm(plan)
        if trouble == "lost":
            harness.lose("b")
        else:
            harness.add("b", lines=2)
        with pytest.raises(Conflict, match="b"):
            source.confirm(plan)
        read, gaps = read_all(harness, source, {})
        assert sorted(read) == (["a"] if trouble == "lost" else ["a", "b"])
        assert len(gaps) == 1

    def test_c7_settle_concerns_exactly_what_was_read(self, harness: SourceHarness) -> None:
        names = {f"f{n}" for n in range(10)}
        for name in names:
            harness.add(name)
        source = harness.open(1)
        plan = looked(harness, source, {}, size_bytes_max=1)
        read = {harness.name_of(file.path) for file in plan.files}
        assert 0 < len(read) < 10
        for name in read:
            harness.add(name, lines=7)  # dropped again before it is settled
        positions = advanced({}, plan)
        for _ in range(2):
            source.settle(positions)
            assert harness.left() == names
        found, gaps = read_all(harness, source, positions)
        assert (sorted(found), gaps) == (sorted(names), [])
        source.settle(positions)
        assert harness.left() == (set() if self.removes_what_was_read else names)

    def test_c7_settled_interrupted_and_again_it_ends_the_same(
        self, harness: SourceHarness
    ) -> None:
        epoch, effect, is_over = 1, 0, False
        source, positions = harness.open(epoch), dict[str, str]()
        while not is_over:
            effect += 1
            names = {f"{effect}-{n}" for n in range(3)}
            for name in names:
                harness.add(name)
            read_all(harness, source, positions)
            stage = Scripted([Point(effect, Harm.CRASH_AFTER)])
            try:
                harness.open(epoch + 1, stage).settle(positions)
                is_over = True
            except Crashed:
                pass
            epoch += 2
            source = harness.open(epoch)
            source.settle(positions)
            left = set() if self.removes_what_was_read else names
            assert names & harness.left() == left
            assert read_all(harness, source, positions) == ([], [])
        assert effect > 1

    def test_c8_what_waits_costs_few_documents(self, harness: SourceHarness) -> None:
        source = harness.open(1)
        source.look({})
        before = harness.documents()
        for n in range(MANY):
            harness.add(f"f{n:04}")
        harness.pass_ms(LOOK_MS)
        waiting = source.look({})
        assert waiting.files == MANY
        assert harness.documents() - before <= len(source.partitions())

    def test_c8_a_long_life_costs_no_more_documents_than_a_short_one(
        self, harness: SourceHarness
    ) -> None:
        source, positions = harness.open(1), dict[str, str]()
        counts = []
        for turn in range(150):
            harness.add(f"f{turn:04}")
            read_all(harness, source, positions)
            source.settle(positions)
            counts.append(harness.documents())
        assert max(counts) <= DOCUMENTS_MAX * len(source.partitions())

    def test_c9_an_older_holder_changes_nothing(self, harness: SourceHarness) -> None:
        old = harness.open(1)
        harness.add("a")
        plan = looked(harness, old, {})
        new, positions = harness.open(2), dict[str, str]()
        assert read_all(harness, new, positions) == (["a"], [])
        harness.add("b")
        with pytest.raises(Fenced):
            looked(harness, old, advanced({}, plan))
        with pytest.raises(Fenced):
            harness.open(1).look({})
        with pytest.raises(Fenced):
            harness.open(1).settle(positions)
        assert harness.left() == {"a", "b"}
        assert read_all(harness, new, positions) == (["b"], [])

    def test_k21_what_was_read_is_reconciled_with_the_plan(self, harness: SourceHarness) -> None:
        harness.add("a", lines=3)
        harness.add("b", lines=2)
        source = harness.open(1)
        plan = looked(harness, source, {})
        right = [
            tally(file.partition, file.number, 3 if harness.name_of(file.path) == "a" else 2)
            for file in plan.files
        ]
        source.reconcile(plan, right)
        for wrong in (right[:1], [*right, right[0]], [*right, tally("elsewhere", 99, 1)]):
            with pytest.raises(Corrupt):
                source.reconcile(plan, wrong)


def tally(partition: str, number: int, rows: int) -> Tally:
    return Tally("0-1", partition, number, "data", rows, 1, rows, None)


def looked(
    harness: SourceHarness,
    source: Source,
    positions: Mapping[str, str],
    size_bytes_max: int = ROOMY,
) -> Plan:
    harness.pass_ms(LOOK_MS)
    source.look(positions)
    return source.plan(positions, size_bytes_max=size_bytes_max)


def advanced(positions: Mapping[str, str], plan: Plan) -> dict[str, str]:
    return {**positions, **{lane: found.next for lane, found in plan.ranges.items()}}


def read_all(
    harness: SourceHarness,
    source: Source,
    positions: dict[str, str],
    size_bytes_max: int = ROOMY,
) -> tuple[list[str], list[str]]:
    """Names read and reasons of gaps, until nothing waits; moves the positions on."""
    read: list[str] = []
    gaps: list[str] = []
    for _ in range(PLANS_MAX):
        plan = looked(harness, source, positions, size_bytes_max)
        if plan.is_empty and not plan.has_more:
            return read, gaps
        source.confirm(plan)
        read += [harness.name_of(file.path) for file in plan.files]
        gaps += [gap.reason for gap in plan.gaps]
        positions.update(advanced(positions, plan))
    raise AssertionError(f"not over after {PLANS_MAX} plans")
