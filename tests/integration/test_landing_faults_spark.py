"""Real Spark, and everything around it goes wrong: nothing is lost, nothing is there twice, and
what stands still says why.
"""

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate import Announced, App, JsonObject
from headgate.ambient import SystemAmbient
from headgate.app.acts import Person
from headgate.app.letters import letters_of
from headgate.app.nodes import Joined
from headgate.app.progress import ShardProgress
from headgate.cluster import worker
from headgate.engine import Job
from headgate.lake import LakeSettings
from headgate.lake.opening import open_lake
from headgate.landing.stream_document import shard_of
from headgate.node import Ending
from headgate.periods import HOUR_MS, Period
from headgate.sources.folder import lane_of
from tests.integration.landings import (
    ShiftedClock,
    Yard,
    now_ms,
    orders,
    sockets_to_java,
    whole_hour,
)
from tests.spark import USES_SPARK

__all__ = ["sockets_to_java"]

pytestmark = USES_SPARK

ME = Person("ann", "a test")


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path)


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two tries."""
    monkeypatch.setattr(worker, "RETRY_MS", 10)


def check(app: App, yard: Yard) -> None:
    found = app.audit(is_deep=True)
    assert (found.findings, found.remarks) == ((), ())
    assert yard.staging() == []


def shards(app: App) -> dict[str, ShardProgress]:
    return {one.name: one for one in app.progress()}


def once(wanted: str, act: Callable[[], object]) -> Callable[[Job], None]:
    """Before the first job of this stream."""
    left = [act]

    def hook(job: Job) -> None:
        if job.shape.stream == wanted and left:
            left.pop()()

    return hook


def in_turn(*hooks: Callable[[Job], None]) -> Callable[[Job], None]:
    def hook(job: Job) -> None:
        for one in hooks:
            one(job)

    return hook


@pytest.mark.usefixtures("short_waits")
def test_inv2_a_file_that_changed_or_vanished_before_it_was_read_is_a_gap_on_record(
    yard: Yard,
) -> None:
    app = yard.app(yard.stream("changed"), yard.stream("vanished"))
    for stream in ("changed", "vanished"):
        yard.drop(stream, "a.json", orders([1, 2], now_ms()))
        yard.drop(stream, "b.json", orders([3], now_ms()))
    yard.engine.before = in_turn(
        once("changed", lambda: yard.drop("changed", "a.json", orders([4, 5, 6], now_ms()))),
        once("vanished", (yard.folder("vanished") / "a.json").unlink),
    )

    result = app.run(until="idle")

    assert yard.rows("changed").ids() == Counter([3, 4, 5, 6])
    assert yard.rows("vanished").ids() == Counter([3])
    for stream in ("changed", "vanished"):
        assert result.streams[stream].gaps == 1
        (gap,) = [gap for record in yard.records(stream) for gap in record.gaps]
        assert (gap.partition, gap.first, gap.next) == ("lane-0", "0", "1")
        assert "a.json vanished or changed before it was read" in gap.reason
    gaps = {line.subject.split("/")[0]: line.words for line in yard.ledger("gap.found")}
    assert set(gaps) == {"changed", "vanished"}
    check(app, yard)


def test_a_clock_set_back_an_hour_loses_doubles_and_turns_nothing(yard: Yard) -> None:
    stream = yard.stream("orders")
    # From two hours ago on: no watermark is before the first hour, which may have just begun.
    yard.drop("orders", "a.json", orders(range(10), now_ms() - 2 * HOUR_MS))
    app = yard.app(stream)
    app.run(until="idle")
    before = shards(app)["orders/0"].checkpoint

    late = yard.app(stream, ambient=ShiftedClock(-HOUR_MS))
    yard.drop("orders", "b.json", orders(range(10, 20), now_ms()))
    result = late.run(until="idle")
    set_back = shards(app)["orders/0"].checkpoint
    yard.drop("orders", "c.json", orders(range(20, 30), now_ms()))
    app.run(until="idle")

    assert result.streams["orders"].landed == 10
    assert yard.rows("orders").ids("data") == Counter(range(30))
    assert yard.rows("orders").counts == (30, 0, 0)
    for partition, mark_ms in before.watermarks.items():
        assert mark_ms is not None
        assert (set_back.watermarks[partition] or 0) >= mark_ms
        assert (shards(app)["orders/0"].checkpoint.watermarks[partition] or 0) > mark_ms
    check(app, yard)


POISON = (
    "CASE WHEN value LIKE '%poison%' THEN raise_error('boom') "
    "ELSE get_json_object(value, '$.at') END"
)


@pytest.mark.usefixtures("short_waits")
def test_g7_a_poison_shard_is_set_aside_and_the_others_land(yard: Yard) -> None:
    app = yard.app(
        yard.stream("pair", {"sql": POISON}, source={"lanes": 4}, shards=2),
        yard.stream("broken", {"sql": "id DIV 0"}, "csv"),
        yard.stream("fine"),
    )
    names = {shard: name_in(shard) for shard in (0, 1)}
    poison = yard.drop("pair", names[0], [*orders([1], now_ms()), {"id": 2, "poison": True}])
    yard.drop("pair", names[1], orders([3, 4], now_ms()))
    yard.drop("broken", "a.csv", b"id,at\n1,2\n")
    yard.drop("fine", "a.json", orders([5], now_ms()))

    result = app.run(until="idle")

    assert not result.is_idle
    assert yard.rows("pair").ids() == Counter([3, 4])
    assert yard.rows("fine").ids() == Counter([5])
    assert yard.rows("broken").counts == (0, 0, 0)
    aside = {name: one.set_aside for name, one in shards(app).items() if one.set_aside}
    assert set(aside) == {"pair/0", "broken/0"}
    assert "boom" in aside["pair/0"]
    assert "DIVIDE_BY_ZERO" in aside["broken/0"]
    assert set(shards(app)["pair/0"].checkpoint.positions.values()) == {""}
    check(app, yard)

    poison.unlink()
    yard.drop("pair", names[0], orders([6], now_ms()))
    with app.acts() as acts:
        released = acts.release("pair", 0, ME)
    assert released is not None
    app.run(until="idle")

    assert yard.rows("pair").ids() == Counter([3, 4, 6])
    assert [line.subject for line in yard.ledger("shard.released")] == ["pair/0"]
    assert [line.words for line in yard.ledger("gap.found")] == [
        f"{names[0]} vanished or changed before it was read"
    ]
    check(app, yard)


def name_in(shard: int) -> str:
    """Of a file that this shard of two reads, if there are four lanes."""
    return next(
        name
        for name in (f"{n}.json" for n in range(1_000))
        if shard_of(f"lane-{lane_of(name, 4)}", 2) == shard
    )


def test_dead_letters_that_are_driven_in_again_land_once(yard: Yard) -> None:
    old_ms, new_ms = whole_hour(3), now_ms()
    wrong: dict[str, dict[str, Any]] = {
        "parquet": {"land_as": "parquet"},
        "as json": {"land_as": "json"},
        "packed": {"land_as": "json", "codec": "gzip"},
        "as avro": {"land_as": "avro"},
        "as columns": {"columns": "id BIGINT, time BIGINT"},
    }
    for name in wrong:
        yard.drop(name, "a.json", [{"id": 1, "time": new_ms}, {"id": 2, "time": old_ms}, {"id": 3}])
    first = str(Period.hour_of(new_ms))  # what is before it is late
    app = yard.app(*(yard.stream(n, "$.at", first_hour=first, **how) for n, how in wrong.items()))
    app.run(until="idle")
    assert all(yard.rows(name).reasons == {"no event time": 3} for name in wrong)

    corrected = yard.app(
        *(yard.stream(n, "$.time", first_hour=first, **how) for n, how in wrong.items())
    )
    lake = open_lake(LakeSettings(str(yard.lake)), SystemAmbient())
    with corrected.acts() as acts:
        letters = {name: [entry.path for entry in acts.dead_letters(name)] for name in wrong}
        for (path,) in letters.values():
            shown = [
                (one.reason, json.loads(one.raw or b"")["id"]) for one in letters_of(lake, path)
            ]
            assert sorted(shown) == [("no event time", number) for number in (1, 2, 3)]
        for name, paths in letters.items():
            assert [acts.redrive(name, path, ME) for path in paths] == [True]
            assert [acts.redrive(name, path, ME) for path in paths] == [False]
    corrected.run(until="idle")

    for name, (path,) in letters.items():
        rows = yard.rows(name)
        assert rows.ids("data") == Counter([1])
        assert rows.ids("late") == Counter([2])
        assert [(row.reason, row.raw) for row in rows.dead] == [("no event time", b'{"id": 3}')]
        assert not (yard.lake / path).exists()
        assert {row.partition for row in rows.data} == {"redrive-0"}
    assert len(yard.ledger("deadletter.redriven")) == len(wrong)
    check(corrected, yard)


def iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms // 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


CSV = {"column": "at"}
TEXT = {"regex": "<([^>]*)>"}
LETTERS: list[tuple[str, str, list[str], str, dict[str, str]]] = [
    ("csv", "parquet", [], "id,at\n", CSV),
    ("csv", "json", ["id", "at"], "", CSV),
    ("text", "parquet", [], "", TEXT),
    ("text", "json", [], "", TEXT),
    ("text", "text", [], "", TEXT),
]


def test_dead_letters_of_csv_and_text_that_are_driven_in_again_land_once(yard: Yard) -> None:
    """First the event time is taken for a number, and everything is dead; then it is corrected."""
    new_ms = now_ms()
    new, old = iso(new_ms), iso(whole_hour(3))
    lines = {
        "csv": [f'"1, ""one""",{new}', f"2,{old}", "3,never"],
        "text": [f"1\t<{new}> \u6ce8\u6587", f"2 <{old}>", "3 <never>"],
    }
    wrong, corrected = [], []
    for kind, land_as, columns, header, at in LETTERS:
        name = f"{kind} as {land_as}"
        raw = header + "".join(f"{line}\n" for line in lines[kind])
        yard.drop(name, f"a.{kind}", raw.encode())
        source = {"columns": columns} if columns else {}
        options = {"land_as": land_as, "first_hour": str(Period.hour_of(new_ms))}
        wrong.append(yard.stream(name, at, kind, source, **options))
        corrected.append(yard.stream(name, {**at, "parse": "iso"}, kind, source, **options))
    yard.app(*wrong).run(until="idle")
    assert {yard.rows(one.name).counts for one in wrong} == {(0, 0, 3)}

    app = yard.app(*corrected)
    with app.acts() as acts:
        for stream in corrected:
            for path in [entry.path for entry in acts.dead_letters(stream.name)]:
                assert acts.redrive(stream.name, path, ME)
    app.run(until="idle")

    for kind, land_as, *_ in LETTERS:
        rows = yard.rows(f"{kind} as {land_as}")
        assert rows.counts == (1, 1, 1), (kind, land_as)
        on_time, late, dead = rows.data[0], rows.late[0], rows.dead[0]
        assert {row.partition for row in (on_time, late, dead)} == {"redrive-0"}
        assert dead.raw.decode() == lines[kind][2]
        if kind == "text":
            assert [on_time.value, late.value] == lines["text"][:2]
        else:
            ids = [as_row(on_time.value)["id"], as_row(late.value)["id"]]
            assert ids == ['1, "one"', "2"]
    check(app, yard)


def as_row(value: Any) -> Any:
    """In json, a row of csv is a text that is itself JSON."""
    return json.loads(value) if isinstance(value, str) else value


class Announcement:
    """A step kind that fails twice, and looks at what is known while it runs."""

    name = "announce"

    def __init__(self, board: Path) -> None:
        self.board = board
        self.app: App | None = None
        self.tries = 0
        self.seen: list[tuple[int | None, str]] = []  # journal and position, during each try

    def body(self, announced: Announced) -> JsonObject:
        return {"line": f"{announced.stream} {announced.number}"} if announced.published else {}

    def verify(self, body: JsonObject) -> bool:
        return self.board.exists() and str(body["line"]) in self.board.read_text().splitlines()

    def execute(self, body: JsonObject) -> None:
        assert self.app is not None
        checkpoint = shards(self.app)["orders/0"].checkpoint
        journal = checkpoint.journal
        number = None if journal is None else journal.number
        self.seen.append((number, checkpoint.positions["lane-0"]))
        self.tries += 1
        if self.tries <= 2:
            raise ConnectionError("nobody listens")
        with self.board.open("a") as board:
            board.write(f"{body['line']}\n")


@pytest.mark.usefixtures("short_waits")
def test_g13_a_commit_with_a_step_that_fails_becomes_a_fact_only_when_it_is_done(
    yard: Yard, tmp_path: Path
) -> None:
    kind = Announcement(tmp_path / "board")
    app = yard.app(yard.stream("orders", steps=[{"kind": "announce"}]))
    app.add_step_kind(kind)
    kind.app = app
    yard.drop("orders", "a.json", orders([1, 2], now_ms()))

    app.run(until="idle")

    assert kind.seen == [(1, ""), (1, ""), (1, "")]
    assert kind.board.read_text() == "orders 1\n"
    assert shards(app)["orders/0"].checkpoint.journal is None
    assert yard.rows("orders").ids() == Counter([1, 2])
    check(app, yard)


def test_a_paused_stream_waits_and_goes_on_where_it_was(yard: Yard) -> None:
    app = yard.app(yard.stream("orders"), yard.stream("other"))
    app.run(until="idle")
    yard.drop("orders", "a.json", orders([1], now_ms()))
    yard.drop("other", "a.json", orders([2], now_ms()))

    assert app.pause("orders", "their system is down", "ann")
    assert not app.pause("orders", "again", "ann")
    paused = app.run(until="idle")
    assert (paused.is_idle, yard.rows("orders").counts) == (False, (0, 0, 0))
    assert paused.streams["orders"].stands_still == (
        "orders/0: paused by ann: their system is down",
    )
    assert yard.rows("other").ids() == Counter([2])
    assert app.resume("orders", "it is up", "ann")
    resumed = app.run(until="idle")

    assert resumed.is_idle
    assert yard.rows("orders").ids() == Counter([1])
    assert [line.who for line in yard.ledger("stream.paused")] == ["ann"]
    check(app, yard)


class DrainInStep:
    """A step kind that asks its node to stop, in the middle of a commit."""

    name = "drain"

    def __init__(self) -> None:
        self.joined: list[Joined] = []

    def body(self, announced: Announced) -> JsonObject:
        return {"commit": announced.number}

    def verify(self, body: JsonObject) -> bool:
        del body
        return self.joined[0].duties.steward.is_draining

    def execute(self, body: JsonObject) -> None:
        del body
        self.joined[0].node.drain()


def test_a_node_that_is_asked_to_stop_commits_what_is_under_way(yard: Yard) -> None:
    kind = DrainInStep()
    app = yard.app(yard.stream("orders", round_size="100B", steps=[{"kind": "drain"}]))
    app.add_step_kind(kind)
    for n in range(3):
        yard.drop("orders", f"{n}.json", orders(range(n * 10, n * 10 + 10), now_ms()))

    stopped = app.run(on_start=kind.joined.append)

    assert (stopped.ending, stopped.is_idle) == (Ending.DRAINED, False)
    landed = yard.rows("orders").ids()
    assert landed.total() == stopped.streams["orders"].landed >= 10
    assert shards(app)["orders/0"].checkpoint.journal is None
    check(app, yard)


def test_a_run_that_is_limited_ends_in_good_order_and_the_next_goes_on(yard: Yard) -> None:
    app = yard.app(yard.stream("orders"))
    yard.drop("orders", "a.json", orders(range(10), now_ms()))

    limited = app.run(max_seconds=1)
    finished = app.run(until="idle", max_seconds=60)

    assert (limited.ending, finished.ending) == (Ending.DRAINED, Ending.DRAINED)
    assert finished.is_idle
    assert yard.rows("orders").ids() == Counter(range(10))
    check(app, yard)
