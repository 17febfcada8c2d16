"""One step: when it is done, and what it does about every state that a crash can leave."""

from dataclasses import dataclass, field

import pytest

from headgate.commits import Announced
from headgate.commits.record import OwnStep
from headgate.commits.steps import (
    TRIES_MAX,
    PublishFile,
    State,
    carry_out,
    carry_out_own,
)
from headgate.errors import Conflict, Corrupt, Halted, OutcomeUnknown, Unavailable
from headgate.lake.memory import MemoryLake
from headgate.lake.paths import STAGING
from headgate.store import JsonObject

STAGED = f"{STAGING}/s/x/part-0"
PLACE = "2026-11-01/00/s/data/part-0"


class Lake(MemoryLake):
    """Counts its moves; some do nothing, or their answer is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.moves = 0
        self.does_nothing = False
        self.loses_replies = False

    def publish(self, staged: str, published: str) -> None:
        self.moves += 1
        if not self.does_nothing:
            super().publish(staged, published)
        if self.loses_replies:
            raise OutcomeUnknown(published)


@pytest.fixture
def lake() -> Lake:
    return Lake()


@pytest.fixture
def step(lake: Lake) -> PublishFile:
    return PublishFile("s/0", STAGED, PLACE, lake.stage(STAGED, b"records"))


def test_what_is_staged_is_published_once(lake: Lake, step: PublishFile) -> None:
    assert step.state(lake) is State.STAGED
    assert carry_out(step, lake)
    assert step.verify(lake)
    assert not carry_out(step, lake)
    assert lake.files() == {PLACE: b"records"}
    assert lake.moves == 1


def test_a_lost_reply_is_looked_into_and_not_repeated(lake: Lake, step: PublishFile) -> None:
    lake.loses_replies = True
    assert carry_out(step, lake)
    assert lake.moves == 1


def test_k18_a_rename_that_does_nothing_is_not_done_and_staging_is_kept(
    lake: Lake, step: PublishFile
) -> None:
    lake.does_nothing = True

    with pytest.raises(Unavailable, match="to be published"):
        carry_out(step, lake)

    assert lake.moves == TRIES_MAX
    assert not step.verify(lake)
    assert lake.files() == {STAGED: b"records"}

    lake.does_nothing = False
    assert carry_out(step, lake)
    assert lake.files() == {PLACE: b"records"}


def test_k18_half_a_move_is_finished(lake: Lake, step: PublishFile) -> None:
    lake.put(PLACE, b"records")
    assert step.state(lake) is State.HALF
    assert carry_out(step, lake)
    assert lake.files() == {PLACE: b"records"}


@pytest.mark.parametrize("there", [b"", b"rec", b"another file"])
@pytest.mark.parametrize("is_staged", [True, False])
def test_g3_g4_another_file_at_the_name_is_corrupt_and_never_done(
    lake: Lake, step: PublishFile, there: bytes, is_staged: bool
) -> None:
    lake.put(PLACE, there)
    if not is_staged:
        lake.remove(STAGED, step.facts)

    with pytest.raises(Corrupt, match="nothing is overwritten; next: headgate audit"):
        carry_out(step, lake)

    assert lake.files()[PLACE] == there
    assert (STAGED in lake.files()) == is_staged


def test_both_missing_is_for_a_person(lake: Lake, step: PublishFile) -> None:
    lake.remove(STAGED, step.facts)
    with pytest.raises(Halted, match=r"is missing.*next: headgate journal restage s/0 "):
        carry_out(step, lake)


def test_what_is_staged_and_damaged_is_for_a_person(lake: Lake, step: PublishFile) -> None:
    lake.put(STAGED, b"recor")
    with pytest.raises(Halted, match="is damaged: 5 bytes"):
        carry_out(step, lake)
    assert PLACE not in lake.files()


def test_g14_a_neighbour_that_moves_between_two_looks_is_no_loss(step: PublishFile) -> None:
    class Watched(Lake):
        """A neighbour publishes after the first look."""

        looks = 0

        def facts(self, path: str):  # type: ignore[no-untyped-def]
            found = super().facts(path)
            self.looks += 1
            if self.looks == 1:
                MemoryLake.publish(self, STAGED, PLACE)
            return found

    lake = Watched()
    lake.stage(STAGED, b"records")
    assert carry_out(step, lake)
    assert lake.files() == {PLACE: b"records"}


def test_g14_whoever_is_second_finds_it_done(step: PublishFile) -> None:
    class Raced(Lake):
        def publish(self, staged: str, published: str) -> None:
            self.moves += 1
            if self.moves == 1:
                MemoryLake.publish(self, staged, published)
                raise Conflict(published)
            raise AssertionError("it was done")

    lake = Raced()
    lake.stage(STAGED, b"records")
    assert carry_out(step, lake)


@dataclass
class Bell:
    """A step of the user's own."""

    name: str = "bell"
    is_deaf: bool = False
    rung: list[JsonObject] = field(default_factory=list)

    def body(self, announced: Announced) -> JsonObject:
        return {"number": announced.number}

    def verify(self, body: JsonObject) -> bool:
        return body in self.rung and not self.is_deaf

    def execute(self, body: JsonObject) -> None:
        self.rung.append(body)


def test_a_step_of_the_users_own_is_executed_until_it_says_it_is_done() -> None:
    bell, step = Bell(), OwnStep("bell", {"number": 1})
    carry_out_own(step, lambda _: bell)
    carry_out_own(step, lambda _: bell)
    assert bell.rung == [{"number": 1}]


def test_g13_a_step_that_says_it_is_not_done_fails() -> None:
    bell = Bell(is_deaf=True)
    with pytest.raises(Unavailable, match=r"step bell: was executed, and verify\(\)"):
        carry_out_own(OwnStep("bell", {"number": 1}), lambda _: bell)
