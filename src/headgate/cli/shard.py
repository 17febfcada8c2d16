"""Shard commands: what a person decides about a shard."""

import typer

from headgate.cli import console
from headgate.cli.asking import Reason, ShardName, asking, person
from headgate.cli.places import ConfigPath, command
from headgate.status.still import RESTAGED

app = typer.Typer(no_args_is_help=True)


@app.callback()
def group() -> None:
    """Decide about a shard that was set aside."""


@app.command("release")
def release(name: ShardName, reason: Reason, config: ConfigPath = None) -> None:
    """Give a shard that was set aside back to the nodes, with all its tries.

    Exit code 0: released; 1: no node has had it yet, or it was not set aside.
    """
    talk = console.talk()
    with asking(config) as asked:
        stream, shard = asked.shard(name)
        before = asked.acts.release(stream, shard, person(reason))
        see = command("status", asked.here, stream)
        if before is None:
            talk.print(console.printable(f"{name}: no node has had it yet; next: {see}"))
            raise typer.Exit(1)
        if before.set_aside is None:
            words = f"{name} is not set aside, and nothing was changed: nodes do it by themselves"
            talk.print(console.printable(f"{words}; next: {see}"))
            raise typer.Exit(1)
        talk.print(console.printable(f"{name} is released: a node takes it within seconds"))
        talk.print(console.printable(f"was set aside  {before.set_aside.words}"), style="dim")
        found = asked.acts.journal(stream, shard)
        if found is not None and found[0].journal is not None:
            words = f"commit {found[0].journal.number} is not finished, and is finished first"
            again = command("journal restage", asked.here, name, options=RESTAGED)
            talk.print(f"{words}; if its files are gone: {again}", style="dim")
        talk.print(f"next: {see}", style="dim")
