"""The contract of a source: what is planned, read once, confirmed and settled, on every kind.

    class TestMine(SourceContract):
        @pytest.fixture
        def harness(self):
            return MyHarness()

A test's name starts with the guarantee it guards (`headgate.sources.Source` lists them).
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import ClassVar, Protocol

import pytest

from headgate.engine import InputSpan, Tally
from headgate.errors import Conflict, Corrupt, Fenced
from headgate.sources import Plan, Source
from headgate.testing.faults import Crashed, Harm, Point, Scripted, Stage

PLANS_MAX = 200
LOOK_MS = 60_000
MANY = 300
DOCUMENTS_MAX = 60  # for each source partition, whatever it went through
ROOMY = 10**9


class SourceHarness(Protocol):
    """What the suite needs of a kind of source. Names are texts like `a` or `b/7`: each is a file,
    or a few records of a log. The first four that are used are in no order with each other."""

    def open(self, epoch: int, stage: Stage | None = None) -> Source:
        """One more instance, as the holder with this epoch would have it; with everything that it
        acts on behind that stage."""

    def add(self, name: str, lines: int = 1) -> None:
        """Something complete, of so many records. Under a name that was read: something new."""

    def change(self, name: str, lines: int) -> None:
        """What has this name goes, unread; and something else comes under it."""

    def begin(self, name: str) -> None:
        """Something that is not complete."""

    def finish(self, name: str) -> None:
        """What was begun is complete now."""

    def lose(self, name: str) -> None:
        """It is not at the source any more."""

    def left(self) -> set[str]:
        """Names of what is at the source and complete."""

    def names_in(self, plan: Plan) -> list[str]:
        """What is read by this plan, once for each time."""

    def place_of(self, name: str) -> str:
        """As gaps and errors say it."""

    def may_hold(self, name: str) -> set[str]:
        """Source partitions in which something of this name can be found."""

    def tallies(self, plan: Plan) -> Sequence[Tally]:
        """What an engine says that read exactly this plan; at least one for each name."""

    def pass_ms(self, duration_ms: int) -> None:
        """Time goes on."""

    def wall_ms(self) -> int:
        """What time it is there."""

    def documents(self) -> Mapping[str, object]:
        """Those in the store, by key; equal if nothing was written."""


class SourceContract:
    removes_what_was_read: ClassVar[bool] = False
    keeps_books: ClassVar[bool] = True  # writes down what it finds; a log has that by itself

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

    def test_c2_the_same_range_gives_the_same_input_from_any_instance(
        self, harness: SourceHarness
    ) -> None:
        for n in range(20):
            harness.add(f"f{n:02}")
        source = harness.open(1)
        plan = looked(harness, source, {})
        names = sorted(f"f{n:02}" for n in range(20))
        assert sorted(harness.names_in(plan)) == names
        until = {lane: found.next for lane, found in plan.ranges.items()}
        harness.add("later")
        for again in (source, harness.open(1), harness.open(2)):
            found = again.plan(joined(again, {}), size_bytes_max=1, until=until)
            assert harness.names_in(found) == harness.names_in(plan)
            looked(harness, again, {})
            found = again.plan(joined(again, {}), size_bytes_max=1, until=until)
            assert harness.names_in(found) == harness.names_in(plan)
            assert (found.ranges, found.files) == (plan.ranges, plan.files)
            assert [extent(one) for one in found.spans] == [extent(one) for one in plan.spans]

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
        successor.look(joined(successor, {}))
        harness.lose("b")
        harness.change("c", lines=3)

        read, gaps = read_all(harness, successor, {})

        assert sorted(read) == ["a", "c", "d"]
        assert len(gaps) == 2
        for name in ("b", "c"):
            assert any(harness.place_of(name) in gap for gap in gaps)

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
        positions = advanced(joined(source, {}), plan)
        seen_ms = harness.wall_ms()
        harness.pass_ms(LOOK_MS)
        again = source.plan(positions, size_bytes_max=ROOMY)
        assert all(end_ms <= seen_ms for end_ms in again.ends_ms.values()), "as of the last look"

    def test_c5_what_is_unfinished_is_not_the_end(self, harness: SourceHarness) -> None:
        source = harness.open(1)
        harness.add("a")
        harness.begin("b")
        plan = looked(harness, source, {})
        assert harness.names_in(plan) == ["a"]
        assert not harness.may_hold("b") & set(plan.ends_ms)
        positions = advanced({}, plan)
        harness.finish("b")
        plan = looked(harness, source, positions)
        assert harness.names_in(plan) == ["b"]
        assert set(plan.ends_ms) == set(source.partitions())

    def test_c5_what_is_left_behind_a_plan_is_not_the_end(self, harness: SourceHarness) -> None:
        for n in range(10):
            harness.add(f"f{n}")
        source = harness.open(1)
        plan = looked(harness, source, {}, size_bytes_max=1)
        assert plan.has_more
        assert harness.names_in(plan)
        assert not set(plan.ranges) & set(plan.ends_ms)

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
            harness.change("b", lines=2)
        with pytest.raises(Conflict, match=harness.place_of("b")):
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
        read = set(harness.names_in(plan))
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
        assert (effect > 1) == self.keeps_books

    def test_c8_what_waits_costs_few_documents(self, harness: SourceHarness) -> None:
        source = harness.open(1)
        source.look(joined(source, {}))
        before = len(harness.documents())
        for n in range(MANY):
            harness.add(f"f{n:04}")
        harness.pass_ms(LOOK_MS)
        waiting = source.look(joined(source, {}))
        assert waiting.files + waiting.records == MANY
        assert len(harness.documents()) - before <= len(source.partitions())

    def test_c8_a_long_life_costs_no_more_documents_than_a_short_one(
        self, harness: SourceHarness
    ) -> None:
        source, positions = harness.open(1), dict[str, str]()
        counts = []
        for turn in range(150):
            harness.add(f"f{turn:04}")
            read_all(harness, source, positions)
            source.settle(positions)
            counts.append(len(harness.documents()))
        assert max(counts) <= DOCUMENTS_MAX * len(source.partitions())

    def test_c9_an_older_holder_changes_nothing(self, harness: SourceHarness) -> None:
        old = harness.open(1)
        harness.add("a")
        plan = looked(harness, old, {})
        new, positions = harness.open(2), dict[str, str]()
        assert read_all(harness, new, positions) == (["a"], [])
        harness.add("b")
        before = harness.documents()
        late = harness.open(1)
        for act in (
            lambda: looked(harness, old, advanced({}, plan)),
            lambda: looked(harness, late, {}),
            lambda: harness.open(1).settle(positions),
        ):
            with pytest.raises(Fenced) if self.keeps_books else nullcontext():
                act()
        if not self.keeps_books:
            assert harness.documents() == before
        assert harness.left() == {"a", "b"}
        assert read_all(harness, new, positions) == (["b"], [])

    def test_k21_what_was_read_is_reconciled_with_the_plan(self, harness: SourceHarness) -> None:
        harness.add("a", lines=3)
        harness.add("b", lines=2)
        source = harness.open(1)
        plan = looked(harness, source, {})
        assert sorted({*harness.names_in(plan)}) == ["a", "b"]
        right = list(harness.tallies(plan))
        source.reconcile(plan, right)
        foreign = Tally("0-1", "elsewhere/7", 99, "data", 1, 1, 1, None)
        for wrong in (right[:1], [*right, right[0]], [*right, foreign]):
            with pytest.raises(Corrupt):
                source.reconcile(plan, wrong)


def joined(source: Source, positions: Mapping[str, str]) -> dict[str, str]:
    """With every source partition: whoever lands joins those that are new before it looks."""
    return {**dict.fromkeys(source.partitions(), ""), **positions}


def extent(span: InputSpan) -> tuple[str, int, int]:
    return span.partition, span.first, span.next


def looked(
    harness: SourceHarness,
    source: Source,
    positions: Mapping[str, str],
    size_bytes_max: int = ROOMY,
) -> Plan:
    harness.pass_ms(LOOK_MS)
    known = joined(source, positions)
    source.look(known)
    return source.plan(known, size_bytes_max=size_bytes_max)


def advanced(positions: Mapping[str, str], plan: Plan) -> dict[str, str]:
    return {**positions, **{lane: found.next for lane, found in plan.ranges.items()}}


def read_all(
    harness: SourceHarness,
    source: Source,
    positions: dict[str, str],
    size_bytes_max: int = ROOMY,
) -> tuple[list[str], list[str]]:
    """Names read and what is said of gaps, until nothing waits; moves the positions on."""
    read: list[str] = []
    gaps: list[str] = []
    for _ in range(PLANS_MAX):
        plan = looked(harness, source, positions, size_bytes_max)
        if plan.is_empty and not plan.has_more:
            return read, gaps
        source.confirm(plan)
        read += harness.names_in(plan)
        gaps += [f"{gap.partition}: {gap.reason}" for gap in plan.gaps]
        positions.update(advanced(positions, plan))
    raise AssertionError(f"not over after {PLANS_MAX} plans")
