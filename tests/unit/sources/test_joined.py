"""A stream's own source and its letters as one: a log, and files in memory."""

from typing import Any

import pytest

from headgate.engine import Tally
from headgate.errors import Conflict, Corrupt
from headgate.sources import FilesSettings, Plan
from headgate.sources.files import FilesSource
from headgate.sources.joined import JoinedSource
from headgate.sources.kafka.source import CLOSED
from headgate.sources.memory_folder import MemoryFolder
from tests.unit.sources.kafka.rivers import River, spans, values


class Both(River):
    """As `River`, with letters beside the log."""

    def __init__(self, **changed: Any) -> None:
        self.folder = MemoryFolder()
        super().__init__(**changed)
        settings = FilesSettings("/letters", prefix="again")
        letters = FilesSource(
            settings, "orders", ["again-0"], 1, self.store, self.folder, self.ambient
        )
        self.own = self.source
        self.joined = JoinedSource(self.own, letters)

    def letter(self, name: str) -> None:
        self.folder.files[f"{name}.json"] = (b'{"at": 1}\n', self.ambient.wall_ns())

    def both(self, size_bytes_max: int = 10**9) -> Plan:
        self.ambient.pass_ms(60_000)
        for name in self.joined.partitions():
            self.positions.setdefault(name, "")
        self.waiting = self.joined.look(self.positions)
        return self.joined.plan(self.positions, size_bytes_max=size_bytes_max)

    def land(self, plan: Plan) -> None:
        self.joined.confirm(plan)
        self.positions |= {name: one.next for name, one in plan.ranges.items()}


def letters_in(plan: Plan) -> list[str]:
    return [file.path.rpartition("/")[2] for file in plan.files]


def test_its_partitions_are_those_of_both() -> None:
    assert Both().joined.partitions() == ("t/0", "t/1", "again-0")


def test_what_waits_is_what_waits_in_both() -> None:
    both = Both()
    both.weir.send("t", 0, values(3))
    both.letter("a")
    both.both()
    assert (both.waiting.files, both.waiting.records) == (1, 3)
    assert both.waiting.size_bytes == 3 * 10 + 10
    assert both.waiting.is_any


def test_a_plan_is_of_one_of_them_and_says_that_more_waits() -> None:
    both = Both()
    both.weir.send("t", 0, values(3))
    both.letter("a")
    plan = both.both()
    assert (spans(plan), plan.files, plan.has_more) == ([("t/0", 0, 3)], (), True)
    assert plan.reader == "kafka"
    assert plan.ends_ms.keys() == {"t/0", "t/1"}, "letters wait"
    both.land(plan)
    plan = both.both()
    assert (letters_in(plan), plan.spans, plan.reader) == (["a.json"], (), "files")


def test_letters_have_their_turn_though_a_log_never_stands_still() -> None:
    both = Both()
    for name in ("a", "b"):
        both.letter(name)
    read = list[str]()
    for _ in range(8):
        both.weir.send("t", 0, values(3))
        plan = both.both(1)
        read += letters_in(plan) or [one.partition for one in plan.spans]
        both.land(plan)
    assert read[:4] == ["t/0", "a.json", "t/0", "b.json"]
    assert read[4:] == ["t/0"] * 4


def test_a_turn_of_letters_costs_the_log_none_of_its_rate() -> None:
    both = Both(records_per_s=1)
    both.letter("a")
    both.weir.send("t", 0, values(1_000))
    both.land(both.both(1))
    assert letters_in(both.both()) == ["a.json"]
    ((_, first, end),) = spans(both.both())
    assert end - first >= 120, "a minute's worth for each look"


def test_nothing_of_both_proves_both() -> None:
    plan = Both().both()
    assert (plan.is_empty, plan.has_more) == (True, False)
    assert plan.ends_ms.keys() == {"t/0", "t/1", "again-0"}


def test_a_plan_that_only_moves_positions_is_landed_like_any_other() -> None:
    both = Both()
    both.weir.send("t", 0, values(3))
    both.land(both.both())
    both.weir.make("t", 1)
    both.accept("t")
    both.letter("a")

    plan = both.both()

    assert (plan.has_input, plan.has_more) == (False, True)
    assert {name: one.next for name, one in plan.ranges.items()} == {"t/0": CLOSED, "t/1": CLOSED}
    both.joined.reconcile(plan, [])
    both.land(plan)
    plan = both.both()
    assert (letters_in(plan), plan.gaps) == (["a.json"], ())
    both.land(plan)
    assert both.both().ends_ms.keys() == {"t/0", "t/1", "t~2/0", "again-0"}


def test_each_is_asked_for_its_own_only() -> None:
    both = Both()
    both.weir.send("t", 0, values(3))
    both.letter("a")
    log = both.both()
    both.land(log)
    letters = both.both()
    both.weir.is_silent = True
    both.joined.confirm(letters)
    both.joined.reconcile(letters, [Tally("0-1", "again-0", 0, "data", 1, 1, 1, None)])
    both.weir.is_silent = False
    del both.folder.files["a.json"]
    both.joined.confirm(log)
    with pytest.raises(Conflict, match=r"a\.json"):
        both.joined.confirm(letters)
    with pytest.raises(Corrupt):
        both.joined.reconcile(log, [Tally("0-1", "again-0", 0, "data", 1, 1, 1, None)])
    both.joined.settle(both.positions)


@pytest.mark.parametrize("is_own", [True, False])
def test_a_range_is_read_again_from_the_one_it_belongs_to(is_own: bool) -> None:
    both = Both()
    both.weir.send("t", 0, values(3))
    both.letter("a")
    both.both()
    until = {"t/0": "2"} if is_own else {"again-0": "1"}
    plan = both.joined.plan(both.positions, size_bytes_max=1, until=until)
    assert plan.ranges.keys() == until.keys()
    assert (spans(plan), letters_in(plan)) == (
        ([("t/0", 0, 2)], []) if is_own else ([], ["a.json"])
    )


def test_what_is_held_back_in_one_is_held_back() -> None:
    both = Both(records_per_s=1)
    both.weir.send("t", 0, values(100_000))
    both.land(both.both())
    both.joined.look(both.positions)
    assert both.joined.look(both.positions).is_held_back
