"""Wait: until a period is ready, for any scheduler. It looks at flags alone."""

from typing import Annotated

import typer

from headgate.ambient import SystemAmbient
from headgate.app.hours import await_ready, first_removed
from headgate.cli import console
from headgate.cli.places import ConfigPath, command, installation_of, stream_of
from headgate.lake.opening import open_lake
from headgate.periods import Period
from headgate.settings.units import duration_ms


def wait(
    stream: Annotated[str, typer.Argument(metavar="STREAM")],
    period: Annotated[str, typer.Argument(metavar="PERIOD", help="2026-11-01T13 or 2026-11-01")],
    timeout: Annotated[str, typer.Option(metavar="DURATION", help="At most so long.")] = "1h",
    config: ConfigPath = None,
) -> None:
    """Wait until an hour, or every hour of a day, of a stream is ready.

    Exit code 0: it is; 1: it is not, after that time, or files of it are gone on purpose.
    """
    asked, ambient = installation_of(config), SystemAmbient()
    settings, wanted = stream_of(asked, stream), Period.parse(period)
    lake = open_lake(asked.settings.lake, ambient)
    left = await_ready(lake, settings, wanted, duration_ms(timeout), ambient)
    if left is None:
        gone = first_removed(lake, settings, wanted)
        if gone is None:
            return
        words = f"{stream} {gone.period} was ready, and its files are gone: {gone.words}"
        asking = command("certificate", asked.here, stream, gone.period)
        console.talk().print(f"{console.printable(words)}; next: {asking}")
        raise typer.Exit(1)
    console.talk().print(
        f"{console.printable(stream)} {left} is not ready after {timeout}; "
        f"next: {command('why', asked.here, stream, str(left))}"
    )
    raise typer.Exit(1)
