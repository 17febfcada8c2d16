"""Plan: what the next round would read, write and flag. Changes nothing, starts no Spark."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from headgate.app.library import App
from headgate.app.preview import NextRound, Preview
from headgate.cli import console
from headgate.cli.moments import many, shown_bytes
from headgate.cli.places import ConfigPath, Here, command, installation_of, stream_of
from headgate.cli.store import Json
from headgate.cli.streams import cause_of, next_command
from headgate.cli.tables import Block, Rows, show
from headgate.status.why import as_json as why_as_json
from headgate.store import JsonObject

HOURS_SHOWN = 5


def plan(
    stream: Annotated[str | None, typer.Argument(metavar="[STREAM]", help="Only this one.")] = None,
    config: ConfigPath = None,
    as_json: Json = False,
) -> None:
    """Say what the next round of each stream would read, where it would write, and which hour is
    flagged next. Changes nothing: no document is written, and no Spark is started.

    Exit code 0, whatever it says; 3: the store cannot be reached.
    """
    asked = installation_of(config)
    if stream is not None:
        stream = stream_of(asked, stream).name  # says what the nearest is
    app = App(settings=asked.settings)
    names = list(asked.settings.streams) if stream is None else [stream]
    if not names and not as_json:
        check = command("config check", asked.here)
        console.talk().print(f"no streams; next: write one into the settings, then {check}")
    for name in names:
        found = app.plan(name)
        if as_json:
            typer.echo(console.json_line(_as_json(found)))
        else:
            show(_blocks(found, asked.here))


def _as_json(found: Preview) -> JsonObject:
    return {**asdict(found), "next_hour": why_as_json(found.next_hour)}


def _blocks(found: Preview, here: Here) -> list[Block]:
    shown: list[Block] = [Text(console.printable(found.stream), "bold")]
    rows = _reads(found.rounds)
    if rows.rows:
        shown.append(rows)
    elif not any(one.stands for one in found.rounds):
        shown.append(Text("  read     nothing"))
    for one in found.rounds:
        shown += _besides(one)
    shown += [
        Text(console.printable(f"  write    {found.folder}; which hours, only reading tells")),
        Text(console.printable(f"           late records: {found.late_folder}")),
        Text(f"           open hours: {_hours(found.rounds)}"),
    ]
    why = found.next_hour
    hour = "no hour is known yet" if why.hour is None else f"{why.hour} is next, {why.state}"
    shown.append(Text(console.printable(f"  flag     {hour}: {why.words}")))
    if why.advice is not None:
        shown.append(Text.assemble("  next     ", (next_command(why.advice, here), "cyan")))
    return [*shown, Text()]


def _reads(rounds: Sequence[NextRound]) -> Rows:
    return Rows(
        ("  read", "shard", "from", "to", "records", "files", "size"),
        tuple(
            (
                f"  {console.printable(one.partition)}",
                console.printable(round_.name),
                console.printable(one.first or "start"),
                console.printable(one.next),
                f"{one.records:,}" if one.records else "-",
                f"{one.files:,}" if one.files else "-",
                shown_bytes(one.size_bytes),
            )
            for round_ in rounds
            if not round_.stands
            for one in round_.ranges
        ),
        frozenset({"records", "files", "size"}),
    )


def _besides(one: NextRound) -> list[Block]:
    """What comes before it, what is missing, and what is left for later rounds."""
    told = [(one.first, "first"), (cause_of(one.stands), "stands"), (one.unreadable, "left out")]
    told += [(f"{gap.partition} {gap.first}…{gap.next}: {gap.reason}", "gap") for gap in one.gaps]
    if one.has_more and not one.stands:
        counts = [(one.waiting_files, "file"), (one.waiting_records, "record")]
        waits = ", ".join(many(count, word) for count, word in counts if count)
        told.append((f"of {waits or 'what'} that wait, the rest is for later rounds", "later"))
    return [
        Text(console.printable(f"  {title:8} {one.name}: {words}"))
        for words, title in told
        if words
    ]


def _hours(rounds: Sequence[NextRound]) -> str:
    hours = sorted({hour for one in rounds for hour in one.open_hours})
    more = f", and {len(hours) - HOURS_SHOWN:,} more" if len(hours) > HOURS_SHOWN else ""
    return ", ".join(hours[:HOURS_SHOWN]) + more if hours else "none has files"
