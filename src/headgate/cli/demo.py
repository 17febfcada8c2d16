"""Demo: the whole idea on one machine: land, flag and apply, while nodes are killed and paused."""

import shlex
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from headgate.cli import console
from headgate.cli.frame import HEADGATE, scratch, shown, tell_next, tell_numbers, tell_verdict
from headgate.engine.java import require_java
from headgate.periods import Period
from headgate.testing.drama.cargo import ORDERS, PAYMENTS
from headgate.testing.drama.landfall import TABLE, Landfall, Outcome, Picture, Plan
from headgate.testing.drama.scene import Scene

BAR = 30  # letters
PLOT = 12
LINE_S = 5
STATES = {
    "starting": "dim",
    "running": "green",
    "killed": "bold red",
    "paused": "bold yellow",
    "woken": "bold cyan",
    "ended": "dim",
}
HOURS = {  # how an hour of a stream looks
    "ready": ("██", "green"),
    "closing": ("▓▓", "green"),
    "waiting": ("▒▒", "yellow"),
    "late": ("▒▒", "yellow"),
    "held": ("▒▒", "red"),
    "withdrawn": ("▒▒", "red"),
    "expired": ("··", "dim"),
    "erased": ("··", "dim"),
}
NO_HOUR = ("░░", "dim")


def demo(
    records: Annotated[
        int, typer.Option(min=1_000, max=100_000_000, help="Orders and payments to land.")
    ] = 200_000,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="A new folder for everything; kept afterwards."),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Leave nodes and status page running until Ctrl-C."),
    ] = False,
) -> None:
    """Watch three nodes land, flag and apply two streams while they are killed and paused.

    A minute or two. One node is killed with -9 in the middle of a commit, one is paused past its
    session and woken, and a table halts at an hour that lost a file, until the command is run that
    its notice names. Then all files of lake and table are read and each record is counted. Exit
    code 0: each is there once, each hour is flagged and verified, the table is in order; 1: not
    proved.
    """
    require_java()
    with scratch("demo", is_kept=True) as own:  # what failed must stay to be seen
        is_named = folder is not None
        if folder is not None:
            folder.mkdir(parents=True)
            own.folder.rmdir()
            own.folder = folder.absolute()
        plan = Plan(own.folder, HEADGATE, records, goes_on=keep)
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            outcome = _played(plan, is_kept=keep or is_named)
        except KeyboardInterrupt:
            own.is_kept = is_named
            raise
        finally:
            signal.signal(signal.SIGTERM, before)
        own.is_kept = keep or is_named or not outcome.is_proved
    raise typer.Exit(0 if outcome.is_proved else 1)


def _played(plan: Plan, *, is_kept: bool) -> Outcome:
    with ExitStack() as stack:
        with shown(partial(_drawn, plan), partial(_line, plan), LINE_S) as show:
            landfall = stack.enter_context(closing(Landfall(plan, show)))
            outcome = landfall.play()
        _tell(plan, outcome, is_kept=is_kept or not outcome.is_proved)
        if plan.goes_on:
            _go_on(landfall, outcome)
    return outcome


def _go_on(landfall: Landfall, outcome: Outcome) -> None:
    """Until somebody stops it."""
    typer.echo(outcome.page)
    talk = console.talk()
    talk.print("  nodes and page are still running; stop: Ctrl-C", style="dim")
    try:
        while True:
            signal.pause()
    except KeyboardInterrupt:
        talk.print("stopping", style="dim")
    landfall.stop()


# While it runs


def _line(plan: Plan, picture: Picture) -> str:
    scene = picture.scene
    hours = "  ".join(f"{one.name} {one.ready}" for one in scene.streams)
    table = "".join(f"  table {one.batches} {one.state}" for one in scene.tables)
    return (
        f"{picture.elapsed_s:>4.0f} s  {scene.rows:,} of {plan.records:,} landed  hours ready: "
        f"{hours}{table}"
    )


def _drawn(plan: Plan, picture: Picture) -> Group:
    nodes = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("node", "pid", "state", "holds"):
        nodes.add_column(name)
    for node in picture.nodes:
        state = Text(node.state, STATES[node.state])
        nodes.add_row(node.name, Text(str(node.pid), "dim"), state, ", ".join(node.holds))
    shards = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name, right in (("shard", 0), ("epoch", 1), ("commits", 1), ("rows", 1), ("doing", 0)):
        shards.add_column(name, justify="right" if right else "left")
    for one in picture.scene.shards:
        numbers = (str(one.epoch), f"{one.commits:,}", f"{one.rows:,}")
        doing = "a round is under way" if one.is_in_a_round else ""
        shards.add_row(one.name, *numbers, Text(doing, "dim"))
    return Group(nodes, shards, _heat(picture.scene), Text(), _bar(plan, picture))


def _heat(scene: Scene) -> Table:
    """Streams and the table by hours."""
    heat = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    heat.add_column("hour", style="dim")
    for hour in scene.hours:
        heat.add_column(_short(hour), style="dim")
    for stream in scene.streams:
        marks = (HOURS.get(state, NO_HOUR) for state in stream.hours)
        heat.add_row(stream.name, *(Text(*mark) for mark in marks))
    for table in scene.tables:
        cells = (_batch(hour, table.applied_up_to, table.state) for hour in scene.hours)
        heat.add_row(f"table {table.name}", *cells)
    return heat


def _batch(hour: Period, applied_up_to: str, state: str) -> Text:
    if str(hour) <= applied_up_to:
        return Text("██", "blue")
    is_stuck = state != "running" and str(hour.previous()) == applied_up_to
    return Text("✗ ", "bold red") if is_stuck else Text(*NO_HOUR)


def _short(hour: Period) -> str:
    return str(hour).partition("T")[2]


def _bar(plan: Plan, picture: Picture) -> Text:
    rows = picture.scene.rows
    filled = min(BAR, BAR * rows // max(1, plan.records))
    return Text.assemble(
        ("█" * filled, "green"),
        ("░" * (BAR - filled), "dim"),
        f" {min(rows, plan.records):,} of {plan.records:,} records, {picture.elapsed_s:.0f} s  ",
        (picture.page, "dim"),
    )


# At the end


def _tell(plan: Plan, outcome: Outcome, *, is_kept: bool) -> None:
    out = console.results()
    proved = (
        f"proved: each of {plan.records:,} records is in the lake once, each hour's flag is right, "
        "and the table is in order"
    )
    tell_verdict(proved, "not proved", outcome.faults)
    out.print()
    out.print(_plotted(outcome))
    out.print()
    tell_numbers(_numbers(outcome))
    out.print("\nwhat happened", style="bold")
    for line in _story(outcome):
        out.print(f"  {console.printable(line)}")
    tell_next(_next(plan, outcome, is_kept=is_kept))


def _plotted(outcome: Outcome) -> Table:
    """Hours, as they lie in lake and table."""
    plot = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name, right in (("hour", 0), (ORDERS, 0), ("", 1), (PAYMENTS, 0), ("", 1), ("flag", 0)):
        plot.add_column(name, justify="right" if right else "left", no_wrap=True)
    plot.add_column(f"table {TABLE}", justify="right", no_wrap=True)
    counts = [outcome.judged.lake[name].hours for name in (ORDERS, PAYMENTS)]
    most = max((count for hours in counts for count in hours.values()), default=1)
    for hour in outcome.hours:
        cells: list[Text] = []
        for hours, colour in zip(counts, ("blue", "magenta"), strict=True):
            count = hours[hour.start_ms]
            cells += [Text("▇" * max(1, PLOT * count // most), colour), Text(f"{count:,}")]
        rows = outcome.judged.table.batches[str(hour)]
        is_same = rows == counts[0][hour.start_ms]
        plot.add_row(
            Text(str(hour), "dim"),
            *cells,
            Text("✓", "green") if outcome.judged.verified.is_clean else Text("?", "red"),
            Text(f"{rows:,} {'✓' if is_same else '✗'}", "green" if is_same else "red"),
        )
    return plot


def _numbers(outcome: Outcome) -> Iterator[tuple[int, str]]:
    judged = outcome.judged
    lakes, table = judged.lake.values(), judged.table
    yield sum(one.hours.total() for one in lakes), "records in the folders of their hours"
    yield sum(one.late for one in lakes), "late ones, in _late/: their hours were ready before"
    why = "no JSON, no event time, or one far in the future"
    yield sum(one.dead for one in lakes), f"dead letters with their reason: {why}"
    yield sum(len(one.missing) for one in lakes), "missing"
    yield sum(len(one.doubled) for one in lakes), "there more than once"
    runs = [proof for proof in table.proofs if proof.kind == "rows"]
    yield table.rows, f"rows in the table, in {len(runs)} batches, one after the other"
    verified, audited = judged.verified, judged.audited
    files = f"{verified.counts.get('files', 0):,} files compared with them"
    yield verified.counts.get("periods", 0), f"certificates verified, and {files}"
    yield len(audited.findings), "findings of the audit over store and lake"


def _story(outcome: Outcome) -> Iterator[str]:
    story = outcome.story
    if story.caught is not None:
        yield (
            f"{story.caught.node} was killed with {story.caught.published} of "
            f"{story.caught.files} files of a commit published; another node did the rest"
        )
    if story.paused:
        refused = f", and was refused {story.refused} late writes" if story.refused else ""
        yield (
            f"{story.paused} was paused for {story.paused_s:.0f} s, and others took over; when it "
            f"woke up it found its session closed, and dropped all it held{refused}"
        )
    if story.remedy:
        yield (
            f"the table {TABLE} halted at {story.broken}, which had lost a file, and went on after "
            f"{story.remedy}"
        )
    yield f"all of it took {outcome.elapsed_s:.0f} s"


def _next(plan: Plan, outcome: Outcome, *, is_kept: bool) -> Sequence[tuple[str, str]]:
    own = ("headgate init", "settings for your own streams")
    if not is_kept:
        return [
            ("headgate demo --keep", f"leaves nodes and page running; it was {outcome.page}"),
            ("headgate demo --folder ./demo", "keeps lake, table, store and logs to look at"),
            own,
            ("headgate doctor fleet", "how nodes share tasks, one killed and one paused too long"),
        ]
    config = f"--config {shlex.quote(str(plan.folder / 'headgate.yaml'))}"
    hour = outcome.story.broken or outcome.hours[0]
    return [
        (outcome.page, "the status page")
        if plan.goes_on
        else (f"headgate web {config}", "the status page"),
        (f"headgate status {config}", "what the store says"),
        (f"headgate certificate {ORDERS} {hour} {config}", "why that hour is complete"),
        (f"headgate history --subject {TABLE} {config}", "what was decided, and by whom"),
        (f"headgate deadletter ls {ORDERS} {config}", "what could not be landed, and why"),
        (f"rm -r {shlex.quote(str(plan.folder))}", "when you have seen enough"),
        own,
    ]
