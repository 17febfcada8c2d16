"""Locate: where a record of the source is in the lake, and where a file of the lake is from."""

import os
from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from headgate.app.library import App
from headgate.app.locating import FileOrigin, Holding, Located
from headgate.cli import console
from headgate.cli.asking import asking
from headgate.cli.moments import many, shown_moment
from headgate.cli.places import ConfigPath, Here, command
from headgate.cli.store import Json
from headgate.cli.tables import Rows, show
from headgate.sources import FilesSettings

IN_THE_LAKE = ("landed", "late", "dead")
COMMITS_SHOWN = SOURCES_SHOWN = 20


def locate(
    subject: Annotated[str, typer.Argument(metavar="STREAM|FILE", help="A stream, or a file.")],
    position: Annotated[
        str,
        typer.Argument(
            metavar="[POSITION]",
            help="orders/3/1234 (topic, partition, offset); lane-0/17 or lane-0/17:3 (file and "
            "line); or the path of a file of the source.",
        ),
    ] = "",
    config: ConfigPath = None,
    as_json: Json = False,
) -> None:
    """Say which commit read a record, and which file and row it is in; or where a file is from.

    From commit records alone; of Parquet files, the columns that say where a row is from. With one
    word it is a file of the lake, and the answer is its commit and the ranges that this read.

    Exit code 0: it is in the lake; 1: it is not: a gap, not read yet, no record.
    """
    with asking(config) as asked:
        app = App(settings=asked.settings)
        if not position:
            path = from_here(subject, asked.settings.lake.root)
            _show_origin(app.origin(path), as_json=as_json)
            return
        name = asked.stream(subject)
        own = asked.settings.streams.get(name)
        if own is not None and isinstance(own.source, FilesSettings):
            position = from_here(position, own.source.path)
        found = app.locate(name, position)
        if as_json:
            typer.echo(console.json_line({**asdict(found), "hours": list(found.hours)}))
        else:
            _show(found, asked.here)
    raise typer.Exit(0 if found.state in IN_THE_LAKE else 1)


def from_here(path: str, folder: str) -> str:
    """As a shell completes it: from where one stands, if that leads into the folder."""
    absolute = os.path.abspath(path)
    is_inside = folder.startswith("/") and absolute.startswith(f"{folder.rstrip('/')}/")
    return absolute if is_inside else path


def _show(found: Located, here: Here) -> None:
    out = console.results()
    style = "bold green" if found.state in IN_THE_LAKE else "bold yellow"
    what = f"{found.partition} {found.position} of {found.stream}: "
    out.print(Text.assemble(console.printable(what), (found.state, style)))
    if found.words:
        out.print(console.printable(f"  {found.words}"))
    if found.source:
        out.print(console.printable(f"  source   {found.source}"))
    if found.commit:
        made = shown_moment(found.made_ms)
        out.print(console.printable(f"  commit   {found.commit}, made {made}"))
    for one in found.files:
        out.print(console.printable(f"  file     {one.path}{_place(one)}"))
        if one.merged_from:
            out.print(console.printable(f"           was {one.merged_from}"))
    if found.hours:
        out.print(f"  hour     {', '.join(found.hours)}")
    if found.state == "dead" and len(found.files) == 1:
        path = found.files[0].path.partition("/")[2].partition("/")[2]
        asked = command("deadletter show", here, found.stream, path)
        out.print(f"  next     {asked}")


def _place(one: Holding) -> str:
    if not one.is_there:
        return ", which is not there any more"
    if one.rows is None:
        return ""
    more = "" if one.rows == 1 else f" and {one.rows - 1:,} more"
    return f", row {one.row:,}{more}"


def _show_origin(found: FileOrigin, *, as_json: bool) -> None:
    if as_json:
        typer.echo(console.json_line(asdict(found)))
        return
    out = console.results()
    out.print(Text(console.printable(found.path), "bold"))
    hour = f", {found.hour}" if found.hour else ""
    words = f"  holds    {many(found.rows, 'row')} of {found.stream}, {found.kind}{hour}"
    out.print(console.printable(words))
    if found.merge:
        out.print(console.printable(f"  merge    {found.merge}"))
    rows = tuple(
        (
            f"  {console.printable(one.commit)}",
            shown_moment(one.made_ms),
            console.printable(partition),
            console.printable(span.first or "start"),
            console.printable(span.next),
        )
        for one in found.commits[:COMMITS_SHOWN]
        for partition, span in sorted(one.ranges.items())
    )
    show([Rows(("  commit", "made", "source partition", "read from", "to"), rows)])
    sources = list(dict.fromkeys(name for one in found.commits for name in one.sources))
    for name in sources[:SOURCES_SHOWN]:
        out.print(console.printable(f"  source   {name}"))
    if len(sources) > SOURCES_SHOWN:
        out.print(Text("  and more files of the source; --json has them", "dim"))
    left = len(found.commits) - COMMITS_SHOWN
    if left > 0:
        out.print(Text(f"  and {many(left, 'more commit')}; all of them with --json", "dim"))
