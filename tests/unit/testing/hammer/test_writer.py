"""Writer and judge together: proved if the store keeps its word, red if it does not."""

from collections.abc import Callable

import pytest

from headgate.ambient import SystemAmbient
from headgate.store import TIMEOUT_MS, DocumentStore, JsonObject, Version
from headgate.store.memory import MemoryStore, Shelf
from headgate.testing.hammer.crew import read_back
from headgate.testing.hammer.judge import (
    COUNTER,
    Counter,
    Diary,
    Share,
    Verdict,
    judge,
    read_diary,
)
from headgate.testing.hammer.writer import BrokenPromise, Writer, counter_body, counter_from
from headgate.testing.planted import (
    AnswersConflictAsSuccess,
    AnswersLostReplyAsFailure,
    ForwardingStore,
    IgnoresTheVersion,
    LosesReplies,
    ReadsFromAStaleReplica,
)

WRITES = 200


class Hand:
    """A writer with its diary in memory, which stops after so many acknowledged writes."""

    def __init__(self, store: DocumentStore, process: str) -> None:
        self.process = process
        self.lines: list[dict[str, str | int]] = []
        self._end = 0
        self._writer = Writer(store, process, self._write_down, self._may_go_on)

    def write(self, count: int) -> None:
        self._end += count
        try:
            self._writer.run()
        except BrokenPromise as error:
            self.lines.append({"complaint": str(error)})

    def diary(self) -> Diary:
        # As if killed: who complains leaves a write without an answer.
        return read_diary(self.process, True, self.lines)

    def total(self, what: str) -> int:
        return sum(int(line.get(what, 0)) for line in self.lines)

    def _write_down(self, **line: str | int) -> None:
        self.lines.append(line)

    def _may_go_on(self) -> bool:
        return sum("ack" in line for line in self.lines) < self._end


class Rivalled(ForwardingStore):
    """Somebody else writes between this one's look and its write, again and again."""

    def __init__(self, behind: DocumentStore, rival: Callable[[], None]) -> None:
        super().__init__(behind)
        self._rival = rival
        self._writes = 0

    def create(self, key: str, body: JsonObject, *, timeout_ms: int = TIMEOUT_MS) -> Version:
        self._let_the_rival_go_first()
        return super().create(key, body, timeout_ms=timeout_ms)

    def replace(
        self, key: str, body: JsonObject, version: Version, *, timeout_ms: int = TIMEOUT_MS
    ) -> Version:
        self._let_the_rival_go_first()
        return super().replace(key, body, version, timeout_ms=timeout_ms)

    def _let_the_rival_go_first(self) -> None:
        self._writes += 1
        if self._writes % 3 == 0:
            self._rival()


def hammered(broken: Callable[[DocumentStore], DocumentStore]) -> tuple[Verdict, Hand]:
    store = MemoryStore(Shelf(), "default", SystemAmbient())
    store.create(COUNTER, counter_body(Counter(0, {})))
    rival = Hand(store, "2.1")
    hand = Hand(Rivalled(broken(store), lambda: rival.write(2)), "1.1")

    hand.write(WRITES)

    return judge([hand.diary(), rival.diary()], *read_back(store)), hand


def test_conflicts_are_tried_again_and_nothing_is_lost_or_doubled() -> None:
    verdict, hand = hammered(lambda store: store)

    assert verdict.problems == ()
    assert verdict.increments + verdict.entries > WRITES
    assert hand.total("conflicts") > 0


def test_lost_answers_are_resolved_by_looking() -> None:
    verdict, hand = hammered(LosesReplies)

    assert verdict.problems == ()
    assert hand.total("doubts") > 0
    assert verdict.unheard_increments == verdict.unheard_entries == verdict.vanished == 0


@pytest.mark.parametrize(
    "broken",
    [
        IgnoresTheVersion,
        AnswersConflictAsSuccess,
        AnswersLostReplyAsFailure,
        ReadsFromAStaleReplica,
    ],
)
def test_planted_a_store_that_breaks_its_word_is_found(
    broken: Callable[[DocumentStore], DocumentStore],
) -> None:
    verdict, _ = hammered(broken)

    assert not verdict.is_proved


def test_a_newcomer_finds_the_end_of_a_long_list() -> None:
    store = MemoryStore(Shelf(), "default", SystemAmbient())
    store.create(COUNTER, counter_body(Counter(0, {})))
    Hand(store, "1.1").write(150)
    newcomer = Hand(store, "2.1")

    newcomer.write(2)

    assert newcomer.diary().acks["2.1-2"] == 76


def test_the_counter_names_the_last_increment_of_each_process() -> None:
    store = MemoryStore(Shelf(), "default", SystemAmbient())
    store.create(COUNTER, counter_body(Counter(0, {})))

    for process, count in (("1.1", 3), ("2.1", 2)):
        Hand(store, process).write(count)

    counter, _ = read_back(store)
    assert counter == Counter(3, {"1.1": Share(2, "1.1-3"), "2.1": Share(1, "2.1-1")})


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"count": 1},
        {"count": "1", "by": {}},
        {"count": 1, "by": {"1.1": 1}},
        {"count": 1, "by": {"1.1": {"share": 1}}},
        {"count": 1, "by": {"1.1": {"share": "1", "last": "1.1-1"}}},
    ],
)
def test_planted_a_counter_that_nobody_wrote_is_a_broken_promise(body: JsonObject) -> None:
    with pytest.raises(BrokenPromise, match="invented"):
        counter_from(body)


def test_a_writer_that_is_stopped_before_its_try_writes_down_a_refusal() -> None:
    store = MemoryStore(Shelf(), "default", SystemAmbient())
    lines: list[dict[str, str | int]] = []
    answers = iter([True, False, False])

    Writer(store, "1.1", lambda **line: lines.append(line), lambda: next(answers)).run()

    assert [line.get("intent") or line.get("refused") for line in lines] == ["1.1-1", "1.1-1"]
