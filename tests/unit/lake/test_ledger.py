"""The ledger: nothing noted is lost, nothing is told twice, nothing unreadable is passed over."""

from typing import Any

import pytest

from headgate.errors import Invalid, OutcomeUnknown, Unavailable
from headgate.lake import Lake
from headgate.lake.ledger import LEDGER, WORDS_MAX, Ledger, Line, decoded, encoded, read_ledger
from headgate.lake.memory import MemoryLake
from headgate.periods import DAY_MS
from headgate.testing import Calm, Harm, Point, Scripted, wrap
from headgate.testing.manual import ManualAmbient

START_MS = 1_800_000_000_000  # 2027-01-15T08:00
EVER_MS = 10 * START_MS


@pytest.fixture
def lake() -> MemoryLake:
    return MemoryLake()


@pytest.fixture
def ambient() -> ManualAmbient:
    return ManualAmbient(START_MS)


def words(lake: Lake, since_ms: int = 0, until_ms: int = EVER_MS) -> list[str]:
    return [line.words for line in read_ledger(lake, since_ms, until_ms)]


def test_a_note_is_a_line_in_the_nodes_file_of_the_day(
    lake: MemoryLake, ambient: ManualAmbient
) -> None:
    ledger = Ledger(lake, "nöde/1", ambient)
    line = ledger.note("shard.set_aside", "orders/3", "it failed 5 times", details={"tries": 5})
    (path,) = lake.files()
    assert path == f"{LEDGER}/2027-01-15/n%C3%B6de%2F1.jsonl"
    assert list(read_ledger(lake, START_MS, START_MS + 1)) == [line]
    assert line == Line(
        *("0" * 31 + "1", START_MS, "nöde/1", "system", "shard.set_aside", "orders/3"),
        *("it failed 5 times", {"tries": 5}),
    )


def test_a_persons_act_has_their_name(lake: MemoryLake, ambient: ManualAmbient) -> None:
    Ledger(lake, "n", ambient).note("stream.paused", "orders", "for the move", who="ada")
    assert [line.who for line in read_ledger(lake, 0, EVER_MS)] == ["ada"]


def test_nodes_and_days_are_merged_by_time(lake: MemoryLake, ambient: ManualAmbient) -> None:
    ledgers = [Ledger(lake, f"n{n}", ambient) for n in range(3)]
    for n in range(12):
        ledgers[n * 7 % 3].note("x", "y", f"{n:02}")
        ambient.pass_ms(DAY_MS // 4)
    assert words(lake) == [f"{n:02}" for n in range(12)]
    assert len(lake.files()) == 3 + 3 + 3 + 1
    since_ms, until_ms = START_MS + DAY_MS // 2, START_MS + 2 * DAY_MS
    assert words(lake, since_ms, until_ms) == [f"{n:02}" for n in range(2, 8)]
    assert words(lake, until_ms, until_ms) == []
    assert words(lake, until_ms, since_ms) == []


def test_a_clock_set_back_does_not_hide_a_line(lake: MemoryLake, ambient: ManualAmbient) -> None:
    ledger = Ledger(lake, "n", ambient)
    ledger.note("x", "y", "late")
    ambient.sleep_machine_ms(-3_600_000)
    ledger.note("x", "y", "early")
    assert words(lake) == ["early", "late"]


def test_what_is_begun_again_is_told_once(lake: MemoryLake, ambient: ManualAmbient) -> None:
    for node in ("a", "b"):
        Ledger(lake, node, ambient).note("commit.begun", "orders/3", f"by {node}", id="commit-7")
        ambient.pass_ms(DAY_MS - 3_600_000)
    assert words(lake) == ["by a"]


def test_a_lost_reply_leaves_one_line(lake: MemoryLake, ambient: ManualAmbient) -> None:
    stage = Scripted([Point(1, Harm.LOSE_REPLY)])
    Ledger(wrap(Lake, lake, stage), "n", ambient).note("x", "y", "once")
    assert [call.method for call in stage.calls] == ["append", "append"]
    assert words(lake) == ["once"]


def test_a_note_that_is_never_confirmed_is_unknown(
    lake: MemoryLake, ambient: ManualAmbient
) -> None:
    stage = Scripted([Point(n, Harm.LOSE_REQUEST) for n in range(1, 9)])
    with pytest.raises(OutcomeUnknown):
        Ledger(wrap(Lake, lake, stage), "n", ambient).note("x", "y", "z")
    lake.refuses = "there is no room"
    with pytest.raises(Unavailable):
        Ledger(lake, "n", ambient).note("x", "y", "z")


def test_what_cannot_be_read_is_left_out_and_counted(
    lake: MemoryLake, ambient: ManualAmbient
) -> None:
    ledger = Ledger(lake, "n", ambient)
    ledger.note("x", "y", "first")
    (path,) = lake.files()
    spoiled = b'{"format":1,"id":1}\n{"format":2}\n[]\nnull\n\xff\n\n{"format":1,"id":"to'
    lake.put(path, lake.files()[path] + spoiled)
    ledger.note("x", "y", "last")
    reading = read_ledger(lake, 0, EVER_MS)
    assert [line.words for line in reading] == ["first", "last"]
    assert dict(reading.damaged) == {path: 6}
    assert list(reading) == list(reading)
    assert dict(reading.damaged) == {path: 6}, "each reading counts anew"


def test_an_empty_ledger_has_no_lines(lake: MemoryLake) -> None:
    calm = Calm()
    assert words(wrap(Lake, lake, calm)) == []
    assert [call.method for call in calm.calls] == ["list"]


@pytest.mark.parametrize("text", ["a\nb", "\u2028", "日本", "\ud800", '"', ""])
def test_any_text_is_one_line(lake: MemoryLake, ambient: ManualAmbient, text: str) -> None:
    line = Ledger(lake, "n", ambient).note("x", text, text, details={"text": text})
    assert list(read_ledger(lake, 0, EVER_MS)) == [line]


def test_long_words_are_cut_and_long_names_still_have_a_file(
    lake: MemoryLake, ambient: ManualAmbient
) -> None:
    for node in ("日" * 100 + "a", "日" * 100 + "b"):
        line = Ledger(lake, node, ambient).note("x", "y", "w" * 2 * WORDS_MAX)
        assert len(line.words) == WORDS_MAX + 1
    assert len(lake.files()) == 2
    assert len({line.node for line in read_ledger(lake, 0, EVER_MS)}) == 2


@pytest.mark.parametrize(
    "details",
    [
        {"password": "x"},
        {"a": [{"db_Password": "x"}]},
        {"n": float("nan")},
        {"x": object()},
        {"x": "x" * 200_000},
    ],
    ids=["secret", "deep secret", "no number", "no JSON", "too long"],
)
def test_what_is_no_place_in_a_ledger_is_refused(
    lake: MemoryLake, ambient: ManualAmbient, details: Any
) -> None:
    with pytest.raises(Invalid, match=r"next:|JSON"):
        Ledger(lake, "n", ambient).note("x", "y", "z", details=details)
    assert lake.files() == {}


def test_a_reference_is_no_secret(lake: MemoryLake, ambient: ManualAmbient) -> None:
    Ledger(lake, "n", ambient).note("x", "y", "z", details={"password": "${env:NAME}"})
    assert words(lake) == ["z"]


def test_a_line_survives_its_own_encoding() -> None:
    line = Line("id", 1, "n", "system", "a.b", "s", "w", {"deep": [1, None, {"x": True}]})
    assert decoded(encoded(line).encode()) == line
