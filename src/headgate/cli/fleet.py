"""Fleet: three nodes share tasks; one is killed, one sleeps too long; with a proof at the end."""

import shlex
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from headgate.ambient import SystemAmbient
from headgate.app import Place
from headgate.cli import console
from headgate.cli.frame import HEADGATE, scratch, shown, tell_next, tell_numbers, tell_verdict
from headgate.cli.places import command
from headgate.cli.run import DEMO_FEED
from headgate.cli.store import command as store_command
from headgate.store.names import key
from headgate.store.registry import open_store
from headgate.testing.drama.script import Cell, NodeCell, Outcome, Picture, Plan, clean_up, play
from headgate.testing.steps import STEPS, StepsFeed

NODES = 3
WORKERS = 2
COLUMNS = 3  # of tasks
BAR = 12  # letters
COLOURS = ("cyan", "magenta", "yellow")
STATES = {
    "starting": "dim",
    "running": "green",
    "killed": "bold red",
    "paused": "bold yellow",
    "woken": "bold cyan",
    "ended": "dim",
}


def show_fleet(
    tasks: Annotated[int, typer.Option(min=3, max=300, help="How many they share.")] = 24,
    steps: Annotated[int, typer.Option(min=1, max=1_000, help="Of each task.")] = 45,
    pause_ms: Annotated[
        int, typer.Option(min=10, max=10_000, metavar="MS", help="Between two steps.")
    ] = 700,
    term_seconds: Annotated[
        float,
        typer.Option(min=1, max=60, metavar="S", help="How long a silent node keeps its tasks."),
    ] = 6,
    seed: Annotated[
        int | None, typer.Option(help="Of the choice who is killed. Random if not given.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Another store than files in a temporary folder."),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the documents and the logs.")] = False,
) -> None:
    """Watch three nodes share tasks while one is killed and one is paused too long.

    About a minute. Each task is a row of steps, and each step must happen once: whoever takes a
    task over goes on where the last one stopped, and who wakes up too late is refused. At the end
    every step is accounted for. Exit code 0: proved; 1: not proved.
    """
    ambient = SystemAmbient()
    with scratch("fleet", is_kept=keep) as own:
        plan = Plan(
            url=f"file:{own.folder / 'state'}" if store is None else store,
            namespace="default" if store is None else f"demo-{ambient.new_id()[:8]}",
            logs=own.folder / "logs",
            command=HEADGATE,
            feed=StepsFeed(DEMO_FEED, tasks, steps, pause_ms),
            nodes=NODES,
            workers=WORKERS,
            term_s=term_seconds,
            seed=int(ambient.random() * 1_000_000) if seed is None else seed,
        )
        plan.logs.mkdir()
        console.talk().print(
            f"{plan.nodes} nodes share {plan.feed.count} tasks of {plan.feed.steps} steps at "
            f"{console.printable(plan.url)} (seed {plan.seed})"
        )
        with closing(open_store(plan.url, plan.namespace, ambient=ambient)) as documents:
            try:
                with shown(partial(_drawn, plan), partial(_line, plan)) as show:
                    outcome = play(plan, show)
                own.is_kept |= not outcome.is_proved  # a failure must stay to be seen
            finally:
                if store is not None and not own.is_kept:
                    clean_up(documents)
    _tell(plan, outcome, own.is_kept)
    raise typer.Exit(0 if outcome.is_proved else 1)


def _line(plan: Plan, picture: Picture) -> str:
    nodes = "  ".join(f"{node.name} {_short(node)}" for node in picture.nodes)
    return (
        f"{picture.elapsed_s:>4.0f} s  {nodes}  {picture.steps:>5,} of "
        f"{plan.feed.count * plan.feed.steps:,} steps  "
        f"{picture.done:>3} of {plan.feed.count} tasks done"
    )


def _short(node: NodeCell) -> str:
    return f"holds {node.holds:>2}" if node.state == "running" else f"{node.state:>8}"


def _drawn(plan: Plan, picture: Picture) -> Group:
    colours = {node.name: COLOURS[place % len(COLOURS)] for place, node in enumerate(picture.nodes)}
    nodes = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name, right in (("node", 0), ("number", 1), ("pid", 1), ("state", 0), ("holds", 1)):
        nodes.add_column(name, justify="right" if right else "left")
    nodes.add_column("", min_width=6)
    for node in picture.nodes:
        nodes.add_row(
            Text(node.name, colours[node.name]),
            node.number,
            Text(str(node.pid), "dim"),
            Text(node.state, STATES[node.state]),
            str(node.holds),
            Text("leader" if node.is_leader else "", "bold"),
        )
    cells = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    rows = -(-len(picture.cells) // COLUMNS)
    for row in range(rows):
        cells.add_row(
            *(
                _bar(plan, number, picture.cells[number], colours)
                for number in range(row, len(picture.cells), rows)
            )
        )
    total = plan.feed.count * plan.feed.steps
    foot = Text(
        f"{picture.elapsed_s:.0f} s   {picture.steps:,} of {total:,} steps   "
        f"{picture.done} of {plan.feed.count} tasks done",
        "bold",
    )
    return Group(nodes, cells, Text(), foot)


def _bar(plan: Plan, number: int, cell: Cell, colours: dict[str, str]) -> Text:
    filled = BAR * cell.steps // plan.feed.steps
    colour = "green" if cell.is_done else colours.get(cell.node or "", "dim")
    mark = "done" if cell.is_done else f"epoch {cell.epoch}" if cell.epoch else "free"
    return Text.assemble(
        (f"{number:>3} ", "dim"),
        ("█" * filled, colour),
        ("░" * (BAR - filled), "dim"),
        (f" {mark:7}", "dim"),
    )


def _tell(plan: Plan, outcome: Outcome, is_kept: bool) -> None:
    proved = "proved: every step of every task happened exactly once"
    tell_verdict(proved, "not proved: something went wrong", outcome.faults)
    console.results().print()
    tell_numbers(_numbers(plan, outcome))
    tell_next(_next(plan, is_kept))


def _numbers(plan: Plan, outcome: Outcome) -> Iterator[tuple[int, str]]:
    picture = outcome.picture
    yield picture.done, f"of {plan.feed.count} tasks done, shared by {plan.nodes} nodes"
    yield picture.steps, "steps, each a write that names its node and epoch; no epoch came late"
    yield outcome.takeovers, "times a task was taken over from a node that was killed or paused"
    yield outcome.epoch_max, "is the highest epoch: so many holders had one task, one by one"
    yield outcome.lost, "found its session closed when it woke up, and joined again as a new member"
    if outcome.refused:
        yield outcome.refused, "late writes of it were refused"


def _next(plan: Plan, is_kept: bool) -> list[tuple[str, str]]:
    place = Place(plan.url, plan.namespace)
    hammer = ("headgate doctor hammer", "kills processes while they write, as fast as they can")
    own = ("headgate run --store file:./state --demo-tasks 100", "a node of your own; start more")
    if not is_kept:
        keep = ("headgate doctor fleet --keep", "keeps the documents and logs to look at")
        return [keep, own, hammer]
    return [
        (command("status", place), "shows what is left: feeds, and who was last seen"),
        (
            store_command("get", plan.url, plan.namespace, key(STEPS, DEMO_FEED, f"{0:010}")),
            "shows the steps of a task, with node and epoch",
        ),
        (shlex.join(["ls", str(plan.logs)]), "has the log of each node"),
        (shlex.join(["rm", "-r", str(plan.logs.parent)]), "when you have seen enough"),
        own,
        hammer,
    ]
