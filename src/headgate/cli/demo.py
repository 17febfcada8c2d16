"""Demo: two nodes land orders; one is killed in the middle of a commit; each order is counted."""

import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headgate.cli import console
from headgate.engine.java import require_java
from headgate.testing.drama.landfall import Outcome, Picture, Plan, play
from headgate.testing.drama.orders import SPOILED

BAR = 40  # letters
HOURS_SHOWN = 31
IDS_SHOWN = 5
STATES = {"starting": "dim", "running": "green", "killed": "bold red", "ended": "dim"}
HEADGATE = (sys.executable, "-P", "-c", "from headgate.cli.main import main; main()")


def demo(
    records: Annotated[int, typer.Option(min=1_000, max=100_000_000, help="Orders to land.")] = (
        200_000
    ),
    folder: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="A new folder for everything; kept afterwards."),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep lake, store and logs.")] = False,
) -> None:
    """Watch two nodes land orders in hourly folders while one is killed in the middle of a commit.

    A minute or two. Afterwards the files in the lake are read and each order is counted. Exit code
    0: each is there once; 1: not proved.
    """
    require_java()
    if folder is not None:
        folder.mkdir(parents=True)
    place = folder or Path(tempfile.mkdtemp(prefix="headgate-demo-"))
    plan = Plan(place.absolute(), HEADGATE, records)
    is_kept = True  # what failed must stay to be seen
    try:
        with _shown(plan) as show:
            outcome = play(plan, show)
        is_kept = keep or folder is not None or not outcome.is_proved
    finally:
        if not is_kept:
            rmtree(place, ignore_errors=True)
    _tell(plan, outcome, is_kept=is_kept)
    raise typer.Exit(0 if outcome.is_proved else 1)


@contextmanager
def _shown(plan: Plan) -> Iterator[Callable[[Picture], None]]:
    """A live picture on a terminal; elsewhere a line now and then; and the news on both."""
    talk = console.talk()
    if not talk.is_terminal:
        yield _lines(plan, talk)
        return
    with Live(console=talk, auto_refresh=False) as live:

        def show(picture: Picture) -> None:
            for words in picture.news:
                live.console.print(_news(picture, words))
            live.update(_drawn(plan, picture), refresh=True)

        yield show


def _lines(plan: Plan, talk: Console) -> Callable[[Picture], None]:
    said_s = -10.0

    def show(picture: Picture) -> None:
        nonlocal said_s
        for words in picture.news:
            talk.print(_news(picture, words))
        if picture.elapsed_s - said_s >= 5:
            said_s = picture.elapsed_s
            talk.print(f"{said_s:>4.0f} s  {picture.rows:,} of {plan.records:,} orders landed")

    return show


def _news(picture: Picture, words: str) -> Text:
    return Text.assemble((f"{picture.elapsed_s:>4.0f} s  ", "dim"), console.printable(words))


def _drawn(plan: Plan, picture: Picture) -> Group:
    nodes = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("node", "pid", "state"):
        nodes.add_column(name)
    for node in picture.nodes:
        style = STATES.get(node.state, "")
        nodes.add_row(node.name, Text(str(node.pid), "dim"), Text(node.state, style))
    shards = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name, right in (("shard", 0), ("node", 0), ("epoch", 1), ("commits", 1), ("rows", 1)):
        shards.add_column(name, justify="right" if right else "left")
    shards.add_column("doing")
    for one in picture.shards:
        numbers = (str(one.epoch), f"{one.commits:,}", f"{one.rows:,}")
        shards.add_row(one.name, one.node, *numbers, Text(one.doing, "dim"))
    filled = min(BAR, BAR * picture.rows // max(1, plan.records))
    bar = Text.assemble(
        ("█" * filled, "green"),
        ("░" * (BAR - filled), "dim"),
        f" {picture.rows:,} of {plan.records:,} orders, {picture.elapsed_s:.0f} s",
    )
    return Group(nodes, shards, Text(), bar)


def _tell(plan: Plan, outcome: Outcome, *, is_kept: bool) -> None:
    out = console.results()
    if outcome.is_proved:
        words = f"proved: each of {plan.records:,} orders is in the lake exactly once"
        out.print(words, style="bold green")
    else:
        out.print("not proved", style="bold red")
        for words in _faults(outcome):
            out.print(f"  {console.printable(words)}", style="red")
    out.print()
    out.print(_plotted(outcome))
    for number, words in _numbers(outcome):
        out.print(Text.assemble((f"{number:>9,}", "cyan"), f"  {words}"))
    if outcome.caught is not None and outcome.caught.files:
        out.print(
            f"\n{outcome.caught.node} was killed with {outcome.caught.published} of "
            f"{outcome.caught.files} files of a commit published; the other node did the rest"
        )
    out.print("\nnext", style="bold")
    for line, words in _next(plan, is_kept=is_kept):
        out.print(Text.assemble((f"  {line}", "cyan"), f"   {words}"))


def _faults(outcome: Outcome) -> Iterator[str]:
    proof = outcome.proof
    for ids, words in ((proof.missing, "missing"), (proof.doubled, "there more than once")):
        if ids:
            shown = ", ".join(map(str, ids[:IDS_SHOWN]))
            yield f"{len(ids):,} orders are {words}: {shown}{', …' if len(ids) > IDS_SHOWN else ''}"
    if proof.dead != outcome.spoiled:
        yield f"{proof.dead} dead letters, and {outcome.spoiled} were dropped"
    yield from outcome.findings


def _plotted(outcome: Outcome) -> Group:
    """Orders by hour, as they lie in the lake."""
    hours = sorted(outcome.proof.hours.items())[-HOURS_SHOWN:]
    most = max((count for _, count in hours), default=1)
    return Group(
        *(
            Text.assemble(
                (f"  lake/{hour}/orders/data  ", "dim"),
                ("▇" * max(1, BAR * count // most), "blue"),
                f" {count:,}",
            )
            for hour, count in hours
        ),
        Text(),
    )


def _numbers(outcome: Outcome) -> Iterator[tuple[int, str]]:
    proof = outcome.proof
    yield sum(proof.hours.values()), "orders in the folders of their hours, read from the files"
    yield proof.late, "late ones, in _late/"
    yield proof.dead, f"dead letters with their reason, of {len(SPOILED)} that were dropped"
    yield len(proof.missing), "missing"
    yield len(proof.doubled), "there more than once"
    yield outcome.commits, "commits, each with its record in the lake"
    yield len(outcome.findings), "findings of the audit over store and lake"


def _next(plan: Plan, *, is_kept: bool) -> Iterator[tuple[str, str]]:
    if is_kept:
        config = shlex.quote(str(plan.folder / "headgate.yaml"))
        yield f"headgate status --config {config}", "what the store says"
        yield (
            f"headgate deadletter ls orders --config {config}",
            "what could not be landed, and why",
        )
        yield f"headgate history --config {config}", "what was decided, and by whom"
        yield f"rm -r {shlex.quote(str(plan.folder))}", "when you have seen enough"
    else:
        yield "headgate demo --folder ./demo", "keeps lake, store and logs to look at"
    yield "headgate init", "settings for your own streams"
    yield "headgate doctor fleet", "three nodes, one killed and one paused too long"
