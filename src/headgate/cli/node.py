"""Node commands: ask a node to stop in good order."""

from collections.abc import Sequence
from contextlib import closing
from typing import Annotated

import typer

from headgate.ambient import Ambient, Deadline, SystemAmbient
from headgate.app import ask_to_drain, find_session, find_sessions
from headgate.cli import console
from headgate.cli.places import ClusterNamespace, ConfigPath, Here, StoreUrl, command, here_of
from headgate.cluster.session import Session
from headgate.errors import Invalid
from headgate.store import DocumentStore
from headgate.store.registry import open_store

LOOK_MS = 200
SAY_MS = 2_000

app = typer.Typer(no_args_is_help=True)


@app.callback()
def group() -> None:
    """Ask a running node to stop."""


@app.command("drain")
def drain_node(
    node: Annotated[
        str, typer.Argument(metavar="NODE", help="Its name or number, as `headgate status` shows.")
    ],
    config: ConfigPath = None,
    store: StoreUrl = "",
    namespace: ClusterNamespace = "",
    reason: Annotated[str, typer.Option(help="Kept with the wish, for others to read.")] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Until it has left.")] = False,
    timeout: Annotated[
        float, typer.Option(min=0, max=86_400, metavar="S", help="With --wait, at most so long.")
    ] = 120,
) -> None:
    """Let a node finish what it has in hand, give everything back, and leave.

    Its process ends with 0. Others take its tasks. Asking twice is fine. Exit code 0: asked, or it
    has left already; 1: there is no such node, or it had not left in time.
    """
    ambient, talk, here = SystemAmbient(), console.talk(), here_of(store, namespace, config)
    with closing(open_store(here.url, here.namespace, ambient=ambient)) as documents:
        found = find_sessions(documents, node)
        live = [one for one in found if one[1].is_live]
        if not live:
            _tell_that_nobody_is_it(node, found, here)
            raise typer.Exit(0 if found else 1)
        if len(live) > 1:
            raise Invalid(
                f"{len(live)} nodes are named {node}; next: name one by its number: "
                + ", ".join(command("node drain", here, str(one.number)) for _, one in live)
            )
        ((session, member),) = live
        ask_to_drain(documents, session, reason, ambient)
        who = f"node {member.node}, number {member.number}"
        talk.print(console.printable(f"{who}, is asked to finish its work and leave"))
        if not wait:
            see = command("node drain", here, str(member.number), options=["--wait"])
            talk.print(f"next: {see}", style="dim")
            return
        if not _has_left(documents, session, timeout, ambient):
            talk.print(
                console.printable(
                    f"{who}, is still there after {timeout:g} s: it may be paused or cut off, and "
                    f"then its session ends by itself within a term; next: "
                    f"{command('status', here)}"
                ),
                style="yellow",
            )
            raise typer.Exit(1)
        talk.print(console.printable(f"{who}, has left"))


def _tell_that_nobody_is_it(node: str, over: Sequence[tuple[str, Session]], here: Here) -> None:
    if over:
        words = f"node {node} is not there any more: {over[-1][1].why or 'it left'}"
    else:
        words = f"no node has the name or number {node}; next: {command('status', here)}"
    console.talk().print(console.printable(words))


def _has_left(documents: DocumentStore, session: str, timeout_s: float, ambient: Ambient) -> bool:
    deadline = Deadline(ambient, int(timeout_s * 1000))
    said_ms = ambient.monotonic_ms()
    while True:  # ends with the deadline
        found = find_session(documents, session)
        if found is None or not found.is_live:
            return True
        if deadline.is_over():
            return False
        if ambient.monotonic_ms() - said_ms >= SAY_MS:
            said_ms = ambient.monotonic_ms()
            many = "1 task" if found.held_count == 1 else f"{found.held_count:,} tasks"
            state = "draining" if found.is_draining else "not draining yet"
            console.talk().print(f"waiting: {state}, held {many} when it last renewed", style="dim")
        ambient.sleep_ms(LOOK_MS)
