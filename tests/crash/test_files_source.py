"""What a holder of a lane does to store and folder, crashed at each effect, or gone on late.

Whoever comes after a crash holds the lane with the next epoch. In the end each file has one number,
what was read is dealt with once, and what somebody dropped since is untouched.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from unittest.mock import patch

import pytest

from headgate.app.redriving import redriven_letters
from headgate.lake import Lake, LakeSettings
from headgate.lake.memory import MemoryLake
from headgate.sources import FilesSettings
from headgate.sources import lanes as lanes_module
from headgate.sources.book import Book
from headgate.sources.files import FilesSource
from headgate.sources.folder import Folder
from headgate.sources.memory_folder import MemoryFolder
from headgate.store import DocumentStore
from headgate.testing.crashes import Flow, check_every_crash, late_wakers
from headgate.testing.faults import Calm, Harm, Stage, wrap
from headgate.testing.manual import ManualAmbient, manual_store

AfterRead = Literal["keep", "move", "delete"]
CRASHES = (Harm.CRASH_BEFORE, Harm.CRASH_AFTER)
LANE, REDRIVEN = "lane-0", "redrive-0"
MTIME_NS = 1_700_000_000_000_000_000


@pytest.fixture(autouse=True)
def small_batches() -> Iterator[None]:
    """Two files each: so that a few files are several batches."""
    with patch.object(lanes_module, "BATCH_FILES_MAX", 2):
        yield


class World:
    def __init__(self, after_read: AfterRead, files: int) -> None:
        self.settings = FilesSettings("/memory", after_read=after_read, move_to="/done")
        self.ambient = ManualAmbient()
        self.store = manual_store(self.ambient)
        self.folder = MemoryFolder()
        self.epoch = 0
        self.is_dropped_again = False
        for n in range(files):
            self.drop(f"f{n}.json")

    def drop(self, path: str) -> None:
        self.folder.files[path] = (b"{}\n", MTIME_NS)

    def drop_again(self) -> None:
        """The same name, size and time; once in this world."""
        if not self.is_dropped_again:
            self.is_dropped_again = True
            self.drop("f0.json")

    def holder(self, stage: Stage) -> FilesSource:
        """Started anew: the lane's right has changed hands."""
        self.epoch += 1
        store = wrap(DocumentStore, self.store, stage)
        folder = wrap(Folder, self.folder, stage)
        return FilesSource(self.settings, "orders", [LANE], self.epoch, store, folder, self.ambient)

    def numbers(self) -> list[tuple[int, str]]:
        """Of all files that a batch names and that are not dealt with."""
        book = Book(self.store, "orders", LANE, self.epoch, self.ambient)
        first = min((batch.start for batch in book.lane.batches), default=0)
        return [(one.number, one.entry.path) for one in book.numbered_from(first) if one.entry.path]

    def known(self) -> int:
        book = Book(self.store, "orders", LANE, self.epoch, self.ambient)
        return sum(one.count for one in book.lane.known)


@dataclass(frozen=True)
class Numbering:
    """A look at three new files; and one more, that comes then."""

    def fresh(self) -> World:
        return World("keep", files=3)

    def act(self, world: World, stage: Stage) -> None:
        holder = world.holder(stage)
        holder.look({})
        world.drop("later.json")
        holder.look({}, is_fresh=True)

    recover = act

    def state(self, world: World) -> object:
        return sorted(path for _, path in world.numbers()), world.known()


@dataclass(frozen=True)
class Losing:
    """A file vanishes before it is read: it is marked, and its identity is free."""

    def fresh(self) -> World:
        world = World("keep", files=3)
        world.holder(Calm()).look({})
        del world.folder.files["f1.json"]
        return world

    def act(self, world: World, stage: Stage) -> None:
        holder = world.holder(stage)
        holder.look({})
        world.drop("f1.json")
        holder.look({}, is_fresh=True)

    recover = act

    def state(self, world: World) -> object:
        lane = Book(world.store, "orders", LANE, world.epoch, world.ambient).lane
        return world.numbers(), lane.lost


@dataclass(frozen=True)
class Settling:
    """Three of four were read; then one of them is dropped again, with the same size and time."""

    after_read: AfterRead

    def fresh(self) -> World:
        world = World(self.after_read, files=4)
        world.holder(Calm()).look({})
        return world

    def act(self, world: World, stage: Stage) -> None:
        holder = world.holder(stage)
        holder.settle({LANE: "3"})
        world.drop_again()
        holder.look({LANE: "3"}, is_fresh=True)

    recover = act

    def state(self, world: World) -> object:
        folder = world.folder
        files = sorted(folder.files), sorted(folder.elsewhere), [*map(len, folder.drawers.values())]
        return files[:2], sum(files[2]), world.numbers(), world.known()


@dataclass(frozen=True)
class Folding:
    """Kept files become known, in several documents that become one."""

    def fresh(self) -> World:
        world = World("keep", files=4)
        holder = world.holder(Calm())
        holder.look({})
        holder.settle({LANE: "4"})
        for n in range(4, 8):
            world.drop(f"f{n}.json")
        holder.look({LANE: "4"}, is_fresh=True)
        return world

    def act(self, world: World, stage: Stage) -> None:
        holder = world.holder(stage)
        holder.settle({LANE: "8"})
        holder.look({LANE: "8"})

    recover = act

    def state(self, world: World) -> object:
        return sorted(world.folder.files), world.numbers(), world.known()


class LetterWorld:
    """Dead letters below a lake that is no disk. Their names are never used twice."""

    def __init__(self) -> None:
        self.ambient = ManualAmbient()
        self.store = manual_store(self.ambient)
        self.lake = MemoryLake()
        self.epoch = 0
        for n in range(3):
            self.lake.put(f"_redrive/orders/2026-11-02/shard0-commit{n:010}-0.json", b"{}\n")

    def holder(self, stage: Stage) -> FilesSource:
        self.epoch += 1
        store, lake = wrap(DocumentStore, self.store, stage), wrap(Lake, self.lake, stage)
        settings, folder = redriven_letters(LakeSettings("s3://b/lake"), lake, "orders")
        lanes, epoch = [REDRIVEN], self.epoch
        return FilesSource(settings, "orders", lanes, epoch, store, folder, self.ambient)


@dataclass(frozen=True)
class SettlingLetters:
    """Two of three were read."""

    def fresh(self) -> LetterWorld:
        world = LetterWorld()
        world.holder(Calm()).look({})
        return world

    def act(self, world: LetterWorld, stage: Stage) -> None:
        holder = world.holder(stage)
        holder.settle({REDRIVEN: "2"})
        holder.look({REDRIVEN: "2"}, is_fresh=True)

    recover = act

    def state(self, world: LetterWorld) -> object:
        waiting = world.holder(Calm()).look({REDRIVEN: "2"})
        return sorted(world.lake.files()), waiting.files


FLOWS: dict[str, Flow[World]] = {
    "number": Numbering(),
    "lose": Losing(),
    "keep": Settling("keep"),
    "move": Settling("move"),
    "delete": Settling("delete"),
    "fold": Folding(),
}


@pytest.mark.parametrize("flow", FLOWS.values(), ids=FLOWS)
def test_inv5_every_crash_point_leads_to_the_same_state(flow: Flow[World]) -> None:
    assert check_every_crash(flow, again=CRASHES) > 100


@pytest.mark.parametrize("flow", FLOWS.values(), ids=FLOWS)
def test_inv3_whoever_goes_on_late_changes_nothing(flow: Flow[World]) -> None:
    assert late_wakers(flow) > 10


def test_inv3_inv5_letters_of_a_far_lake_are_put_away_once_after_every_crash() -> None:
    assert check_every_crash(SettlingLetters(), again=CRASHES) > 100
    assert late_wakers(SettlingLetters()) > 10


def test_planted_a_drawer_that_is_never_closed_is_caught() -> None:
    """Then whoever goes on late takes what was dropped since."""
    with (
        patch.object(MemoryFolder, "close_drawer", lambda *_: None),
        pytest.raises(AssertionError, match="the first went on"),
    ):
        late_wakers(Settling("delete"))


def test_planted_a_holder_that_does_not_ask_whether_it_still_is_one_is_caught() -> None:
    with (
        patch.object(Book, "check", lambda _self: None),
        pytest.raises(AssertionError, match="the first went on"),
    ):
        late_wakers(Settling("delete"))


def test_planted_a_batch_named_before_it_is_written_is_caught() -> None:
    def named_first(self: Book, room: str, body: object) -> str:
        name = self._ambient.new_id()
        self._later = (room, name, body)  # type: ignore[attr-defined]
        return name

    number = Book._change

    def written_then(self: Book, decide: object) -> object:
        lane = number(self, decide)  # type: ignore[arg-type]
        room, name, body = self.__dict__.pop("_later", ("", "", None))
        if room:
            self._insist(self._name(room, name), body)
        return lane

    with (
        patch.object(Book, "_create", named_first),
        patch.object(Book, "_change", written_then),
        pytest.raises(Exception, match="still names it"),
    ):
        check_every_crash(Numbering(), harms=CRASHES, again=())
