"""Journal commands: how far an unfinished commit is, and what to do if its files are gone."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from headgate.app.acts import StepState
from headgate.cli import console
from headgate.cli.asking import Asking, Reason, ShardName, asking, person
from headgate.cli.moments import many, shown_bytes, shown_moment
from headgate.cli.places import ConfigPath, command
from headgate.cli.streams import cause_of
from headgate.cli.tables import Block, Rows, show
from headgate.commits.checkpoint import Checkpoint
from headgate.commits.record import Record
from headgate.landing.report import words_of
from headgate.status.still import RESTAGED
from headgate.store.codec import body_of

SHOWN_MAX = 20  # steps

app = typer.Typer(no_args_is_help=True)


@app.callback()
def group() -> None:
    """Look at a shard's commit, and stage it again if its files are gone."""


@app.command("show")
def show_journal(
    name: ShardName,
    config: ConfigPath = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs: one JSON object.")] = False,
    show_all: Annotated[
        bool, typer.Option("--all", help=f"All files, not the first {SHOWN_MAX}.")
    ] = False,
) -> None:
    """Show a shard's checkpoint and the commit that stands in its journal, step by step.

    Without a journal, its last commit. Exit code 0: it is as it should be; 1: there is none yet, or
    a step of the journal cannot be done.
    """
    with asking(config) as asked:
        stream, shard = asked.shard(name)
        found = asked.acts.journal(stream, shard)
        if found is None:
            see = command("status", asked.here, stream)
            talk = console.talk()
            talk.print(console.printable(f"{name}: nothing was committed yet; next: {see}"))
            raise typer.Exit(1)
        checkpoint, record = found
        steps = [] if record is None else list(asked.acts.steps(stream, checkpoint, record))
        is_lost = checkpoint.journal is not None and record is None
        if as_json:
            answer = {
                "name": name,
                "checkpoint": body_of(checkpoint),
                "record": None if record is None else body_of(record),
                "steps": [asdict(step) for step in steps],
            }
            typer.echo(console.json_line(answer))
        else:
            show(_blocks(asked, name, checkpoint, record, steps, is_all=show_all))
    raise typer.Exit(1 if is_lost or any(step.trouble for step in steps) else 0)


@app.command("restage")
def restage(name: ShardName, reason: Reason, config: ConfigPath = None) -> None:
    """Give up the commit in a shard's journal, whose files are gone, and stage it again.

    The next holder removes what is left of it, reads the same range again and commits it under a
    new number. If its files are all there, it is simply finished. Exit code 0: asked; 1: no journal
    stands.
    """
    with asking(config) as asked:
        stream, shard = asked.shard(name)
        after = asked.acts.restage(stream, shard, person(reason))
        talk = console.talk()
        if after.journal is None:
            words = f"{name}: its commit was finished just now, and nothing is to be done"
        else:
            words = f"{name}: commit {after.journal.number} is staged again by its next holder"
        talk.print(console.printable(words))
        talk.print(f"next: {command('status', asked.here, stream)}", style="dim")


def _blocks(
    asked: Asking,
    name: str,
    checkpoint: Checkpoint,
    record: Record | None,
    steps: Sequence[StepState],
    *,
    is_all: bool,
) -> list[Block]:
    journal = checkpoint.journal
    shown: list[Block] = [_verdict(name, checkpoint, record, steps)]
    counts = Counter(step.state for step in steps)
    if counts:
        told = ", ".join(f"{count:,} {state}" for state, count in counts.items())
        shown.append(Text(f"  steps      {told}"))
    if checkpoint.restage is not None:
        wish = checkpoint.restage
        words = f"  asked      to be staged again, by {wish.who}: {wish.reason}"
        shown.append(Text(console.printable(words)))
    elif any(step.state == "missing" for step in steps) or (journal and record is None):
        again = command("journal restage", asked.here, name, options=RESTAGED)
        shown.append(Text.assemble("  next       ", (again, "cyan")))
    shown.append(Text(f"  epoch      {checkpoint.epoch}, turn {checkpoint.turn}"))
    committed = shown_moment(checkpoint.committed_ms or None)
    shown.append(Text(f"  last fact  {committed}, {many(checkpoint.rows, 'row')} so far"))
    if record is not None:
        shown += _record(record)
    shown += [Text(), _partitions(checkpoint)]
    shown += _steps(asked, name, steps, is_all=is_all) if steps else []
    for step in [step for step in steps if step.trouble][:1]:
        shown += [Text(), Text(console.printable(cause_of(step.trouble)), "yellow")]
    return shown


def _verdict(
    name: str, checkpoint: Checkpoint, record: Record | None, steps: Sequence[StepState]
) -> Text:
    journal = checkpoint.journal
    if journal is None:
        last = f"commit {checkpoint.number} is done" if checkpoint.number else "no commit yet"
        return Text.assemble(("no journal stands", "bold green"), f"   {name}, {last}")
    what = console.printable(f"   {name}, commit {journal.number}")
    if record is None:
        return Text.assemble(("a person must look: its record is gone", "bold red"), what)
    if any(step.trouble for step in steps):
        return Text.assemble(("a person must look: it cannot be finished", "bold red"), what)
    return Text.assemble(("a journal stands: its holder finishes it", "bold yellow"), what)


def _record(record: Record) -> list[Block]:
    size = shown_bytes(sum(file.size_bytes for file in record.files))
    made = f"by {record.node} at {shown_moment(record.made_ms)}"
    shown: list[Block] = [
        Text(console.printable(f"  record     commit {record.number}, {made}")),
        Text(f"  rows       {words_of(record.counts)}"),
        Text(f"  files      {many(len(record.files), 'file')}, {size}"),
    ]
    if record.replaces is not None:
        shown.append(Text(f"  replaces   commit {record.replaces}, which was never finished"))
    for gap in record.gaps:
        words = f"  gap        {gap.partition} {gap.first}…{gap.next}: {gap.reason}"
        shown.append(Text(console.printable(words), "yellow"))
    return shown


def _partitions(checkpoint: Checkpoint) -> Rows:
    journal = checkpoint.journal
    ahead = {} if journal is None else journal.positions
    return Rows(
        ("source partition", "position", "next", "watermark"),
        tuple(
            (
                console.printable(name),
                console.printable(position or "-"),
                console.printable(ahead.get(name, "-")),
                shown_moment(checkpoint.watermarks.get(name)),
            )
            for name, position in checkpoint.positions.items()
        ),
    )


def _steps(asked: Asking, name: str, steps: Sequence[StepState], *, is_all: bool) -> list[Block]:
    """Those that are in trouble first."""
    ordered = sorted(steps, key=lambda step: not step.trouble)
    rows = Rows(
        ("step", "state", "rows", "size", "path"),
        tuple(
            (
                step.kind,
                step.state,
                f"{step.rows:,}",
                shown_bytes(step.size_bytes),
                console.printable(step.path),
            )
            for step in (ordered if is_all else ordered[:SHOWN_MAX])
        ),
        frozenset({"rows", "size"}),
    )
    left = 0 if is_all else max(0, len(steps) - SHOWN_MAX)
    more = command("journal show", asked.here, name, options=["--all"])
    return [Text(), rows, *([Text(f"and {left:,} more; next: {more}", "dim")] if left else [])]
