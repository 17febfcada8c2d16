"""Verify: certificates against flags and files. It asks the lake alone, and changes nothing."""

import os
import shlex
from contextlib import closing
from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from headgate.ambient import SystemAmbient
from headgate.audit.verifying import Verified
from headgate.audit.verifying import verify as verify_all
from headgate.cli import console
from headgate.cli.bars import PartsBar
from headgate.cli.findings import show_findings
from headgate.cli.moments import many, shown_bytes
from headgate.cli.places import ConfigPath, named_settings
from headgate.errors import Invalid
from headgate.lake.opening import open_lake
from headgate.node import Hands
from headgate.periods import Period
from headgate.settings.loading import load


def verify(
    period: Annotated[
        str, typer.Argument(metavar="PERIOD", help="2026-11-01T13, or 2026-11-01 with its hours.")
    ] = "",
    is_all: Annotated[bool, typer.Option("--all", help="Every period that was flagged.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs: one JSON object.")] = False,
    config: ConfigPath = None,
) -> None:
    """Compare certificates with what lies in the lake: flags, data files, and parents.

    Every file is read, and its checksum compared. No store is asked: the lake is enough.

    Exit code 0: all is as certified; 1: something is not, or nothing was flagged.
    """
    if bool(period) == is_all:
        raise Invalid("name a period, or --all; next: headgate verify --all")
    settings = load(named_settings(config), os.environ)
    ambient = SystemAmbient()
    with PartsBar() as progress, closing(Hands()) as hands:
        found = verify_all(
            open_lake(settings.lake, ambient),
            {name: stream.folder for name, stream in settings.every.items()},
            None if is_all else Period.parse(period),
            each=hands.each,
            on_progress=progress.show,
            named="" if config is None else f" --config {shlex.quote(str(config))}",
        )
    if as_json:
        typer.echo(console.json_line({**asdict(found), "is_clean": found.is_clean}))
    else:
        _show(found, period)
    raise typer.Exit(0 if found.is_clean and found.periods else 1)


def _show(found: Verified, period: str) -> None:
    out = console.results()
    if not found.is_clean:
        count = len(found.findings) + found.left_out
        words = f"{many(count, 'finding')}: the lake is not what was certified"
        out.print(Text(words, "bold red"))
    elif found.periods:
        out.print(Text("verified: everything is as certified", "green"))
    else:
        what = f"{period}: nothing there was flagged" if period else "nothing was flagged so far"
        out.print(Text(f"{what}; next: headgate status", "yellow"))
    show_findings(found.findings, found.left_out)
    withdrawn = f", {found.withdrawn:,} withdrawn" if found.withdrawn else ""
    removed = f", {found.removed:,} without their files on purpose" if found.removed else ""
    checked = f"{many(found.periods, 'certificate')}{withdrawn}{removed}"
    checked += f", {many(found.files, 'file')}"
    out.print(Text(f"checked  {checked}, {shown_bytes(found.size_bytes)}", "dim"))
