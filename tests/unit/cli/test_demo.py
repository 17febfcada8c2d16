import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from headgate.cli.demo import _drawn, _line, _next
from headgate.periods import Period
from headgate.status.tables import TableStatus
from headgate.testing.drama.headcount import TableCount
from headgate.testing.drama.jury import Checked, Judged
from headgate.testing.drama.landfall import NodeCell, Outcome, Picture, Plan, Story
from headgate.testing.drama.scene import Scene, ShardCell, StreamCell

PLAN = Plan(Path("the demo"), (), 2_000)
HOURS = tuple(Period.parse(f"2026-11-01T{hour}") for hour in (13, 14, 15))


def table(state: str, applied_up_to: Period) -> TableStatus:
    return TableStatus("orders", state, str(applied_up_to), 1, 7, 0, "")


def picture(state: str = "running") -> Picture:
    nodes = (
        NodeCell("node-1", 11, "running", ("orders/0", "flags")),
        NodeCell("node-2", 12, "killed", ()),
    )
    shards = (ShardCell("orders/0", "s1", 2, 3, 1_234, is_in_a_round=True),)
    streams = (StreamCell("orders", ("ready", "closing", "not over"), {"data": 1_234}),)
    scene = Scene(HOURS, shards, streams, (table(state, HOURS[0]),), {"orders/0": "s1"})
    return Picture(12.3, "http://127.0.0.1:1/", nodes, scene, ())


def plain(shown: RenderableType) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=100, color_system=None).print(shown)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def row(lines: Sequence[str], name: str) -> str:
    (found,) = [line for line in lines if line.strip().startswith(name)]
    return found.strip()


def test_the_picture_shows_nodes_shards_hours_and_table() -> None:
    lines = plain(_drawn(PLAN, picture()))

    assert row(lines, "node-1").split() == ["node-1", "11", "running", "orders/0,", "flags"]
    assert row(lines, "node-2").split() == ["node-2", "12", "killed"]
    assert row(lines, "orders/0").endswith("1,234   a round is under way")
    assert row(lines, "hour ").split() == ["hour", "13", "14", "15"]
    assert row(lines, "orders ").split() == ["orders", "██", "▓▓", "░░"]
    assert row(lines, "table").split() == ["table", "orders", "██", "░░", "░░"]
    assert "1,234 of 2,000 records, 12 s  http://127.0.0.1:1/" in lines[-1]


def test_the_picture_shows_where_a_table_stands_still() -> None:
    lines = plain(_drawn(PLAN, picture("halted")))

    assert row(lines, "table").split() == ["table", "orders", "██", "✗", "░░"]


def test_elsewhere_it_is_a_line() -> None:
    assert _line(PLAN, picture()) == (
        "  12 s  1,234 of 2,000 landed  hours ready: orders 1  table 1 running"
    )


@pytest.mark.parametrize(
    ("is_kept", "first"),
    [(False, "headgate demo --keep"), (True, "headgate web --config 'the demo/headgate.yaml'")],
)
def test_what_is_next_depends_on_what_is_kept(is_kept: bool, first: str) -> None:
    said = Checked("headgate audit", is_clean=True, findings=(), counts={})
    page = "http://127.0.0.1:1/"
    judged = Judged({}, TableCount(), said, said, ())
    outcome = Outcome(Story(), HOURS, judged, (), 60, page)

    assert _next(PLAN, outcome, is_kept=is_kept)[0][0] == first
