"""Certificate: what an hour consists of, and why no more can come, for people."""

from typing import Annotated

import typer
from rich.text import Text

from headgate.ambient import SystemAmbient
from headgate.app.hours import filed_certificate, hour_of
from headgate.cli import console
from headgate.cli.moments import many, shown_bytes, shown_moment
from headgate.cli.places import ConfigPath, command, installation_of, stream_of
from headgate.cli.tables import Rows, show
from headgate.commits.certificate import Certificate, flag_paths
from headgate.commits.removals import statements_of
from headgate.lake.opening import open_lake

KINDS = ("landed", "late", "dead")  # in the order in which people ask


def certificate(
    stream: Annotated[str, typer.Argument(metavar="STREAM")],
    period: Annotated[str, typer.Argument(metavar="PERIOD", help="2026-11-01T13")],
    as_json: Annotated[bool, typer.Option("--json", help="The certificate itself.")] = False,
    config: ConfigPath = None,
) -> None:
    """Show the certificate of an hour: source partitions, watermarks, counts, gaps and files.

    Exit code 1: the hour was never flagged.
    """
    asked = installation_of(config)
    settings = stream_of(asked, stream)
    folder, stream = settings.folder, settings.name
    hour = hour_of(period)
    lake = open_lake(asked.settings.lake, SystemAmbient())
    found = filed_certificate(lake, stream, hour)
    if found is None:
        again = command("why", asked.here, stream, str(hour))
        words = console.printable(f"{stream} {hour}: was never flagged; next: {again}")
        console.results().print(Text(words, "yellow"))
        raise typer.Exit(1)
    filed, certified = found
    if as_json:
        typer.echo(filed.raw.decode().rstrip("\n"))
        return
    flags = flag_paths(folder, hour, stream)
    is_raised = all(lake.read(flag) == filed.raw for flag in flags)
    _show(certified, is_raised=is_raised)
    for one in statements_of(lake, stream, str(hour)):
        words = f"{one.how:8} {shown_moment(one.made_ms)} {one.words}"
        console.results().print(Text(console.printable(words), "yellow"))


def _show(found: Certificate, *, is_raised: bool) -> None:
    out = console.results()
    state = Text("ready", "green") if is_raised else Text("its flag is not raised", "yellow")
    title = console.printable(f"{found.stream} {found.period}, generation {found.generation}: ")
    out.print(Text.assemble((title, "bold"), state))
    out.print(f"closed   {shown_moment(found.closed_ms)} by {console.printable(found.node)}")
    told = sorted(found.counts.items(), key=lambda one: KINDS.index(one[0]))
    counts = ", ".join(f"{count:,} {kind}" for kind, count in told)
    out.print(f"records  {counts}")
    if found.event_ms is not None:
        first, last = map(shown_moment, found.event_ms)
        out.print(f"events   {first} to {last}")
    size = shown_bytes(sum(file.size_bytes for file in found.files))
    out.print(f"files    {many(len(found.files), 'file')}, {size}")
    rows = tuple(
        (
            console.printable(name),
            one.first or "start",
            one.next or "start",
            shown_moment(one.watermark_ms),
            one.by,
        )
        for name, one in sorted(found.partitions.items())
    )
    show([Rows(("source partition", "read from", "to", "watermark", "by"), rows)])
    for gap in found.gaps:
        words = f"gap      {gap.partition} {gap.first} to {gap.next}: {gap.reason}"
        out.print(Text(console.printable(words), "yellow"))
    out.print(Text(f"hash     {found.hash}", "dim"))
