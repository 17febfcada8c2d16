"""Web: the status page, until somebody stops it."""

import signal
from contextlib import closing
from typing import Annotated

import typer

from headgate.ambient import SystemAmbient
from headgate.cli import console
from headgate.cli.places import ConfigPath, installation_of
from headgate.cli.streams import next_command
from headgate.store.registry import open_store
from headgate.web.answers import Site
from headgate.web.look import Lookout
from headgate.web.server import PageServer
from headgate.web.view import unreachable, view

LOCAL = "127.0.0.1"


def web(
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Where it listens. There is no password.")
    ] = LOCAL,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, metavar="PORT", help="0: any that is free.")
    ] = 8080,
    config: ConfigPath = None,
) -> None:
    """Show streams, hours, tables and nodes on a page for the browser. Changes nothing.

    Prints its address and goes on until Ctrl-C or SIGTERM. A store that is away is shown as such,
    and asked again. Exit code 0: it was stopped; 2: it cannot listen there.
    """
    installation, ambient = installation_of(config), SystemAmbient()
    settings, here = installation.settings, installation.here

    lookout = Lookout(
        lambda: open_store(here.url, here.namespace, ambient=ambient), settings, ambient
    )
    site = Site(
        host,
        lambda until: view(
            lookout.look(), settings, lambda advice: next_command(advice, here), until
        ),
        lambda words: unreachable(words, settings),
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with closing(lookout), PageServer(host, port, site) as server:
            typer.echo(server.url)
            talk = console.talk()
            if host not in (LOCAL, "localhost", "::1"):
                words = "anybody who reaches this port can read all that status shows"
                talk.print(f"warning: {words}", style="yellow")
            talk.print("  it only shows, and changes nothing; stop: Ctrl-C", style="dim")
            server.serve_forever()
    except KeyboardInterrupt:
        return
