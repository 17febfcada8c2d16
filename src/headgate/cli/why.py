"""Why: why an hour is not ready, and what will move it. Changes nothing, starts no Spark."""

from contextlib import closing
from typing import Annotated

import typer
from rich.text import Text

from headgate.ambient import SystemAmbient
from headgate.app.hours import hour_of, why_not_ready
from headgate.cli import console
from headgate.cli.moments import shown_moment
from headgate.cli.places import ConfigPath, Here, command, flagged_of, installation_of
from headgate.cli.store import Json
from headgate.cli.streams import next_command
from headgate.cli.tables import Rows, show
from headgate.lake.opening import open_lake
from headgate.status import shown_ms
from headgate.status.overall import RETIRED
from headgate.status.streams import known_streams
from headgate.status.why import Reason, Why
from headgate.status.why import as_json as why_as_json
from headgate.store.registry import open_store


def why(
    stream: Annotated[str, typer.Argument(metavar="STREAM")],
    hour: Annotated[
        str, typer.Argument(metavar="[HOUR]", help="2026-11-01T13; the first that is not ready.")
    ] = "",
    as_json: Json = False,
    config: ConfigPath = None,
) -> None:
    """Say why an hour is not ready: which source partition is short, by how much, and who holds it.

    Exit code 0: the hour is ready; 1: it is not, or its files are gone on purpose.
    """
    ambient, asked = SystemAmbient(), installation_of(config)
    stream = asked.settings.called(stream)
    here, wanted = asked.here, hour_of(hour) if hour else None
    with closing(open_store(here.url, here.namespace, ambient=ambient)) as store:
        is_known = stream in known_streams(store, asked.settings.streams)[0]
        if not is_known or stream in asked.settings.streams:
            flagged_of(asked, stream)  # says what the nearest is
        lake = open_lake(asked.settings.lake, ambient)
        found = why_not_ready(store, lake, asked.settings, stream, wanted, ambient)
    if as_json:
        typer.echo(console.json_line(why_as_json(found)))
    else:
        _show(found, here)
    raise typer.Exit(0 if found.state == "ready" else 1)


def _show(found: Why, here: Here) -> None:
    out = console.results()
    subject = found.stream if found.hour is None else f"{found.stream} {found.hour}"
    style = "bold green" if found.state == "ready" else "bold yellow"
    title = f"{subject} is {'ready' if found.state == 'ready' else 'not ready'}"
    if found.state in ("expired", "erased"):
        title = f"{subject} was {found.state}"
    out.print(Text(console.printable(title), style))
    out.print(console.printable(f"  {found.words}"))
    if found.reasons:
        show([_reasons(found.reasons)])
    if found.overall:
        out.print("  the flag over all streams of this hour waits for:")
    for one in found.overall:
        words = f"    {one.stream}: {one.words}"
        verb = "why" if one.is_in_settings else "stream retire"
        options = () if one.is_in_settings else RETIRED
        asked = command(verb, here, one.stream, options=options)
        out.print(console.printable(f"{words}; next: {asked}"))
    if found.first_open is not None:
        again = command("why", here, found.stream, str(found.first_open))
        out.print(f"  hours are flagged in order, and {found.first_open} comes first: {again}")
    if found.state == "waiting":
        out.print(f"  {_what_moves(found)}")
    if found.earliest_ms is not None:
        from_ = shown_moment(found.earliest_ms)
        out.print(f"  its flag can come from {from_} on, its end and allowed_lateness, by a commit")
    if found.advice is not None:
        out.print(f"  next     {next_command(found.advice, here)}")


def _reasons(reasons: tuple[Reason, ...]) -> Rows:
    rows = []
    for one in reasons:
        who = " ".join(filter(None, (one.shard, one.partition))) or "-"
        holder = one.node or "nobody"
        row = (
            console.printable(who),
            "-" if one.short_ms is None else shown_ms(one.short_ms),
            one.words,
            console.printable(f"{holder}, {one.doing}" if one.doing else holder),
            shown_moment(one.since_ms),
        )
        rows.append(row)
    return Rows(("waits for", "short", "why", "held by", "last commit"), tuple(rows))


def _what_moves(found: Why) -> str:
    if not found.reasons:
        return "what moves it: a node that reads its first record, or first_hour in the settings"
    free_ms = [one.free_ms for one in found.reasons if one.free_ms is not None]
    if free_ms:
        from_ = shown_moment(max(free_ms))
        return f"what moves it: a node that takes the shard, which is free at about {from_}"
    if any(one.node is None for one in found.reasons):
        return "what moves it: a node that takes the shard"
    due_ms = [one.due_ms for one in found.reasons if one.due_ms is not None]
    due = f", due by {shown_moment(max(due_ms))}, when the running shift is over" if due_ms else ""
    words = (
        "what moves it: later records, or a look that finds nothing waiting, and the next commit"
    )
    return words + due
