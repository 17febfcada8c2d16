"""Task commands: what a person decides about a task."""

from contextlib import closing
from typing import Annotated

import typer

from headgate.ambient import SystemAmbient
from headgate.app import release_task
from headgate.cli import console
from headgate.cli.places import ClusterNamespace, ConfigPath, StoreUrl, command, here_of
from headgate.store.registry import open_store

app = typer.Typer(no_args_is_help=True)


@app.callback()
def group() -> None:
    """Decide about a task that was set aside."""


@app.command("release")
def release(
    name: Annotated[
        str, typer.Argument(metavar="TASK", help="FEED/NUMBER, as `headgate status` shows it.")
    ],
    reason: Annotated[str, typer.Option(help="Why it may be tried again; is kept with the task.")],
    config: ConfigPath = None,
    store: StoreUrl = "",
    namespace: ClusterNamespace = "",
) -> None:
    """Give a task that was set aside back to the nodes, with all its tries.

    Exit code 0: released; 1: there is no such task, or it was not set aside.
    """
    here, talk = here_of(store, namespace, config), console.talk()
    with closing(open_store(here.url, here.namespace)) as documents:
        before = release_task(documents, name, reason, SystemAmbient())
    see = command("status", here)
    if before is None:
        words = f"there is no task {name}: it is done and removed, or never was; next: {see}"
    elif before.set_aside is None:
        what = "it is done" if before.state == "done" else "nodes do it by themselves"
        words = f"{name} is not set aside, and nothing was changed: {what}; next: {see}"
    else:
        talk.print(console.printable(f"{name} is released: a node takes it within seconds"))
        talk.print(console.printable(f"was set aside  {before.set_aside.words}"), style="dim")
        talk.print(f"next: {see}", style="dim")
        return
    talk.print(console.printable(words))
    raise typer.Exit(1)
