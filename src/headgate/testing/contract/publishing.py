"""The part of the lake's contract that everything else rests on: how a staged file gets its name.

A file is moved, never copied and never onto something; one by one, many at once, by many at once.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeAlias

import pytest

from headgate.errors import Conflict, HeadgateError, Invalid, Unavailable
from headgate.lake import FileFacts, Lake
from headgate.lake.paths import STAGING
from headgate.testing.harness import LakeHarness
from headgate.testing.racing import PATIENCE_S, at_once, in_background

PRIVATE = f"{STAGING}/attempt/0-7"
Call: TypeAlias = Callable[[], object]


class PublishingContract:
    outages: ClassVar[Sequence[str]]

    @pytest.fixture
    def harness(self) -> LakeHarness:
        pytest.fail("bind the contract: give your class a fixture named harness")

    @pytest.fixture
    def lake(self, harness: LakeHarness) -> Lake:
        return harness.open()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "outage" in metafunc.fixturenames:
            metafunc.parametrize("outage", self.outages)

    def test_l2_publishing_moves(self, harness: LakeHarness, lake: Lake) -> None:
        facts = staged(harness, lake, "f", b"content")
        lake.publish(f"{PRIVATE}/f", "day/hour/f")
        assert harness.files() == {"day/hour/f": b"content"}
        assert lake.facts("day/hour/f") == facts
        assert lake.facts(f"{PRIVATE}/f") is None

    def test_l2_publishing_never_replaces(self, harness: LakeHarness, lake: Lake) -> None:
        for name in ("f", "g"):
            staged(harness, lake, name, name.encode())
        staged(harness, lake, "same", b"f")
        lake.publish(f"{PRIVATE}/f", "day/f")
        before = harness.files()
        for name in ("g", "same"):
            with pytest.raises(Conflict, match="day/f"):
                lake.publish(f"{PRIVATE}/{name}", "day/f")
        with pytest.raises(Conflict):
            lake.publish(f"{PRIVATE}/g", "day")
        with pytest.raises(Invalid):
            lake.publish("day/f", "day/f")
        assert harness.files() == before

    def test_l2_who_comes_late_finds_nothing_to_publish(
        self, harness: LakeHarness, lake: Lake
    ) -> None:
        facts = staged(harness, lake, "f", b"f")
        with pytest.raises(Unavailable, match="never"):
            lake.publish(f"{PRIVATE}/never", "day/never")
        with pytest.raises(Unavailable):
            lake.publish(f"{STAGING}/no/such/folder/f", "day/f")
        lake.publish(f"{PRIVATE}/f", "day/f")
        with pytest.raises(Unavailable):
            lake.publish(f"{PRIVATE}/f", "day/f")
        lake.remove("day/f", facts)
        with pytest.raises(Unavailable):
            lake.publish(f"{PRIVATE}/f", "day/f")
        assert harness.files() == {}

    def test_l2_of_many_files_for_one_name_one_is_published(self, harness: LakeHarness) -> None:
        lakes = [harness.open() for _ in range(8)]
        for turn in range(10):
            for n, lake in enumerate(lakes):
                staged(harness, lake, f"{turn}-{n}", f"{n}".encode())
            calls = [
                partial(lake.publish, f"{PRIVATE}/{turn}-{n}", f"day/{turn}")
                for n, lake in enumerate(lakes)
            ]
            outcomes = at_once([partial(outcome, call) for call in calls])
            assert sorted(map(str, outcomes)) == ["Conflict"] * 7 + ["None"]
            winner = outcomes.index(None)
            assert harness.files()[f"day/{turn}"] == f"{winner}".encode()
            assert f"{PRIVATE}/{turn}-{winner}" not in harness.files()
        assert len(harness.files()) == 8 * 10

    @pytest.mark.parametrize("names", [["x"], ["x", "y"]], ids=["one name", "two names"])
    def test_l2_of_many_who_publish_one_file_one_does(
        self, harness: LakeHarness, names: list[str]
    ) -> None:
        lakes = [harness.open() for _ in range(6)]
        for turn in range(10):
            staged(harness, lakes[0], f"{turn}", f"{turn}".encode())
            calls = [
                partial(lake.publish, f"{PRIVATE}/{turn}", f"day/{turn}-{names[n % len(names)]}")
                for n, lake in enumerate(lakes)
            ]
            outcomes = at_once([partial(outcome, call) for call in calls])
            assert outcomes.count(None) == 1
            assert {str(one) for one in outcomes} <= {"None", "Conflict", "Unavailable"}
            assert list(harness.files().values()).count(f"{turn}".encode()) == 1

    def test_l5_a_reader_sees_the_whole_file_or_none(self, harness: LakeHarness) -> None:
        content = b"0123456789abcdef" * 50_000
        reading = harness.open()

        def sizes(path: str) -> set[int]:
            seen: set[int] = set()
            while len(content) not in seen and not is_over.is_set():
                found = reading.read(path)
                seen.add(0 if found is None else len(found))
            return seen

        is_over = threading.Event()
        lake = harness.open()
        for n in range(10):
            reader = in_background(sizes, f"day/{n}")
            lake.stage(f"{PRIVATE}/{n}", content)
            lake.publish(f"{PRIVATE}/{n}", f"day/{n}")
            try:
                assert reader.result(PATIENCE_S) <= {0, len(content)}
            finally:
                is_over.set()
            is_over.clear()

    @pytest.mark.parametrize("count", [1, 100])
    def test_l11_many_are_published_at_once(
        self, harness: LakeHarness, lake: Lake, count: int
    ) -> None:
        facts = [harness.facts_of(b"%d" % n) for n in range(count)]
        wanted = [Wanted(f"{n}", f"day/{n % 3}/{n}", facts[n]) for n in range(count)]
        for n in range(count):
            harness.put(wanted[n].staged, b"%d" % n)
        lake.seal([one.staged for one in wanted])

        done = lake.publish_all(wanted)

        assert done == (True,) * count
        assert harness.files() == {f"day/{n % 3}/{n}": b"%d" % n for n in range(count)}
        assert [lake.facts(one.published) for one in wanted] == [one.facts for one in wanted]
        assert lake.publish_all(wanted) == (False,) * count, "nothing is staged any more"

    def test_k18_l11_only_what_is_as_it_should_be_is_published(
        self, harness: LakeHarness, lake: Lake
    ) -> None:
        lake.stage("day/taken", b"another")
        names = ("right", "damaged", "taken", "longer")
        for name in names:
            staged(harness, lake, name, b"right")
        harness.put(f"{PRIVATE}/damaged", b"wrong")
        harness.put(f"{PRIVATE}/longer", b"right and more")
        right = harness.facts_of(b"right")
        wanted = [Wanted(one, f"day/{one}", right) for one in (*names, "missing")]

        done = lake.publish_all(wanted)

        assert done == (True, False, False, False, False)
        assert harness.files() == {
            "day/taken": b"another",
            "day/right": b"right",
            f"{PRIVATE}/damaged": b"wrong",
            f"{PRIVATE}/taken": b"right",
            f"{PRIVATE}/longer": b"right and more",
        }

    def test_l10_l11_an_outage_leaves_each_of_many_under_one_name(
        self, harness: LakeHarness, lake: Lake, outage: str
    ) -> None:
        wanted = self._many(harness, lake)

        with harness.outage(outage):
            done = lake.publish_all(wanted)

        files = harness.files()
        for one, is_done in zip(wanted, done, strict=True):
            assert (one.staged in files) != (one.published in files)
            assert not is_done or one.published in files
        again = lake.publish_all([one for one in wanted if one.staged in files])
        assert set(again) <= {True}
        assert {one.published: one.facts for one in wanted} == {
            path: harness.facts_of(content) for path, content in harness.files().items()
        }

    def test_l2_l11_many_who_publish_the_same_at_once_lose_and_double_nothing(
        self, harness: LakeHarness, lake: Lake
    ) -> None:
        wanted = self._many(harness, lake)
        lakes = [harness.open() for _ in range(4)]

        at_once([partial(one.publish_all, wanted) for one in lakes])

        assert {one.published: one.facts for one in wanted} == {
            path: harness.facts_of(content) for path, content in harness.files().items()
        }

    def _many(self, harness: LakeHarness, lake: Lake) -> "list[Wanted]":
        """More than are worth doing one by one, in more folders than are settled one by one."""
        contents = [b"%d" % n for n in range(100)]
        wanted = [
            Wanted(f"{n % 3}/{n}", f"day/{n % 12}/{n}", harness.facts_of(content))
            for n, content in enumerate(contents)
        ]
        for one, content in zip(wanted, contents, strict=True):
            harness.put(one.staged, content)
        lake.seal([one.staged for one in wanted])
        return wanted

    def test_l11_what_is_no_path_is_refused_before_anything_is_done(
        self, harness: LakeHarness, lake: Lake
    ) -> None:
        facts = staged(harness, lake, "f", b"f")
        for bad in (Wanted("f", "../f", facts), Wanted("../../../../f", "day/g", facts)):
            with pytest.raises(Invalid):
                lake.publish_all([Wanted("f", "day/f", facts), bad])
        assert harness.files() == {f"{PRIVATE}/f": b"f"}


@dataclass(frozen=True)
class Wanted:
    """`headgate.lake.Move`."""

    name: str
    published: str
    facts: FileFacts

    @property
    def staged(self) -> str:
        return f"{PRIVATE}/{self.name}"

    @property
    def size_bytes(self) -> int:
        return self.facts.size_bytes

    @property
    def checksum(self) -> str:
        return self.facts.checksum


def staged(harness: LakeHarness, lake: Lake, name: str, content: bytes) -> FileFacts:
    harness.put(f"{PRIVATE}/{name}", content)
    (facts,) = lake.seal([f"{PRIVATE}/{name}"])
    return facts


def outcome(call: Call) -> str | None:
    try:
        call()
    except HeadgateError as error:
        return type(error).__name__
    return None
