"""Hammer command: processes write to one store and are killed, live, with a proof at the end."""

import shlex
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from headgate.ambient import SystemAmbient
from headgate.cli import console
from headgate.cli.frame import scratch, shown, tell_next, tell_numbers, tell_verdict
from headgate.cli.store import command
from headgate.store.registry import open_store
from headgate.testing.hammer.crew import Outcome, Picture, Plan, clean_up, hammer
from headgate.testing.hammer.judge import COUNTER, LIST

STATES = {"starting": "yellow", "writing": "green", "killed": "bold red", "ended": "dim"}


def hammer_store(
    store: Annotated[
        str | None,
        typer.Argument(metavar="[URL]", help="Files in a temporary folder, if there is none."),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=1, max=3_600, help="How long they write, once all have started.")
    ] = 20,
    processes: Annotated[int, typer.Option(min=1, max=64, help="How many at a time.")] = 8,
    seed: Annotated[
        int | None, typer.Option(help="Of the choice who is killed when. Random if not given.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the documents and the diaries.")
    ] = False,
) -> None:
    """Watch processes being killed while they write, and see that nothing is lost or doubled.

    Eight processes add to one counter and one list, as fast as they can. Again and again one of
    them is killed with -9, and a new one takes its place. At the end every single write is
    accounted for. Exit code 0: proved; 1: not proved.
    """
    ambient = SystemAmbient()
    with scratch("hammer", is_kept=keep) as own:
        plan = Plan(
            url=f"file:{own.folder / 'state'}" if store is None else store,
            namespace="default" if store is None else f"hammer-{ambient.new_id()[:8]}",
            diaries=own.folder / "diaries",
            processes=processes,
            seconds=seconds,
            seed=int(ambient.random() * 1_000_000) if seed is None else seed,
        )
        plan.diaries.mkdir()
        console.talk().print(
            f"{plan.processes} processes write to {console.printable(plan.url)}, and some are "
            f"killed (seed {plan.seed})"
        )
        with closing(open_store(plan.url, plan.namespace, ambient=ambient)) as documents:
            try:
                with shown(partial(_table, plan), partial(_line, plan)) as show:
                    outcome = hammer(plan, show)
                own.is_kept |= not outcome.verdict.is_proved  # a failure must stay to be seen
            finally:
                if store is not None and not own.is_kept:
                    clean_up(documents)
    _tell(plan, outcome, own.is_kept)
    raise typer.Exit(0 if outcome.verdict.is_proved else 1)


def _line(plan: Plan, picture: Picture) -> str:
    return (
        f"{picture.elapsed_s:>4.0f} of {plan.seconds:g} s  {picture.acknowledged:>7,} acknowledged"
        f"  {picture.conflicts:>6,} conflicts  {picture.kills:>3} killed"
    )


def _table(plan: Plan, picture: Picture) -> Table:
    is_starting = picture.elapsed_s == 0
    time = "starting" if is_starting else f"{picture.elapsed_s:.0f} of {plan.seconds:g} s"
    table = Table(
        box=SIMPLE_HEAD,
        title=time,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
        show_footer=True,
    )
    table.add_column("seat", "all", justify="right")
    table.add_column("pid", justify="right", style="dim")
    table.add_column("process", min_width=8)
    table.add_column(
        "increments", f"{sum(seat.increments for seat in picture.seats):,}", justify="right"
    )
    table.add_column("entries", f"{sum(seat.entries for seat in picture.seats):,}", justify="right")
    table.add_column("conflicts", f"{picture.conflicts:,}", justify="right", style="dim")
    table.add_column("unknown", f"{picture.doubts:,}", justify="right", style="dim")
    table.add_column("killed", f"{picture.kills:,}", justify="right")
    for seat in picture.seats:
        table.add_row(
            str(seat.number),
            str(seat.pid),
            Text(seat.state, STATES[seat.state]),
            f"{seat.increments:,}",
            f"{seat.entries:,}",
            f"{seat.conflicts:,}",
            f"{seat.doubts:,}",
            Text(f"{seat.kills:,}", "red" if seat.kills else "dim"),
        )
    return table


def _tell(plan: Plan, outcome: Outcome, is_kept: bool) -> None:
    out, verdict = console.results(), outcome.verdict
    tell_verdict(
        "proved: no acknowledged write is lost, and none happened twice",
        "not proved: the store did not keep its word",
        verdict.problems,
    )
    out.print()
    tell_numbers(_numbers(outcome))
    if verdict.is_proved:
        out.print("\nhow we know", style="bold")
        for line in _reasons(outcome):
            out.print(f"  {line}")
    tell_next(_next(plan, is_kept))


def _numbers(outcome: Outcome) -> Iterator[tuple[float, str]]:
    verdict, picture = outcome.verdict, outcome.picture
    yield picture.acknowledged, "writes acknowledged"
    yield picture.per_second, "of them a second"
    yield picture.conflicts, "conflicts: somebody else wrote first; read again, tried again"
    if picture.doubts:
        yield picture.doubts, "answers lost on the way; looked first, then decided"
    yield picture.kills, "processes killed with -9, most of them in the middle of a write"
    if verdict.is_proved:
        unheard = verdict.unheard_increments + verdict.unheard_entries
        yield verdict.vanished, "writes cut off by a kill that did not happen"
        yield unheard, "writes that happened, but the killer came before the answer"


def _reasons(outcome: Outcome) -> Iterator[str]:
    verdict = outcome.verdict
    yield (
        f"counter  is at {outcome.counter.count:,} = {verdict.increments:,} acknowledged + "
        f"{verdict.unheard_increments} unheard; no two were told the same number"
    )
    yield (
        f"list     has {verdict.entries + verdict.unheard_entries:,} entries = {verdict.entries:,} "
        f"acknowledged + {verdict.unheard_entries} unheard; each is there once, where it was told"
    )
    yield "each process wrote its intent and the answer into a diary, and they all agree with this"


def _next(plan: Plan, is_kept: bool) -> list[tuple[str, str]]:
    doctor = ("headgate doctor store file:./state", "asks whether a store of yours is safe")
    kinds = ("headgate store --help", "names the kinds of stores")
    if not is_kept:
        return [("headgate doctor hammer --keep", "keeps the documents to look at"), doctor, kinds]
    where = plan.url, plan.namespace
    return [
        (command("get", *where, COUNTER), "shows the counter"),
        (f"{command('ls', *where, LIST)} --limit 10", "shows entries of the list"),
        (shlex.join(["ls", str(plan.diaries)]), "has the diary of each process"),
        (shlex.join(["rm", "-r", str(plan.diaries.parent)]), "when you have seen enough"),
        doctor,
        kinds,
    ]
