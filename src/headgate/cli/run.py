"""Run: a node, until it is asked to stop, or everything has landed."""

import os
import socket
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from headgate.ambient import Ambient, SystemAmbient
from headgate.app import Equipment, joined_node
from headgate.cli import console
from headgate.cli.landing import LandingRun, Until
from headgate.cli.places import ClusterNamespace, ConfigPath, Here, StoreUrl, command, here_of
from headgate.cli.signals import Signals, polling, tell_the_end, tell_the_start
from headgate.cluster import Feed, Kind
from headgate.cluster.duties import WORKERS_MAX, NodeSettings
from headgate.cluster.session import TERM_MS
from headgate.errors import Invalid
from headgate.node import Ending
from headgate.settings import NodeDefaults
from headgate.store import DocumentStore
from headgate.testing.steps import StepsFeed, StepsKind

DEMO_FEED = "demo"
NO_FEED = "no task source here: it does its share of what others create, and waits"


def run(
    config: ConfigPath = None,
    store: StoreUrl = "",
    namespace: ClusterNamespace = "",
    until: Annotated[
        Until | None, typer.Option(help="Land everything that is there now, and end.")
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(min=1, max=10**7, metavar="S", help="End in good order after so long."),
    ] = None,
    name: Annotated[
        str, typer.Option(help="For people; nothing depends on it. Host and process id if none.")
    ] = "",
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, max=WORKERS_MAX, metavar="N", help="Tasks at the same moment. 2, if none."
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL", help="Tasks may ask for it. Can be given several times."),
    ] = None,
    term_seconds: Annotated[
        float,
        typer.Option(min=1, max=3_600, metavar="S", help="How long a silent node keeps its tasks."),
    ] = TERM_MS / 1000,
    as_json: Annotated[
        bool, typer.Option("--json", help="What landed, for programs: one JSON object at the end.")
    ] = False,
    demo_tasks: Annotated[
        int, typer.Option(min=0, max=1_000_000, metavar="N", help="Tasks to try it out with.")
    ] = 0,
    demo_steps: Annotated[
        int, typer.Option(min=1, max=1_000, metavar="N", help="Steps of each of them.")
    ] = 20,
    demo_pause_ms: Annotated[
        int, typer.Option(min=0, max=60_000, metavar="MS", help="Between two steps.")
    ] = 500,
    demo_poison: Annotated[
        list[int] | None, typer.Option(metavar="NUMBER", help="A task that always fails.")
    ] = None,
) -> None:
    """Run a node: it joins the others, lands its share of the streams and does its share of tasks.

    SIGTERM or Ctrl-C lets it finish what it has in hand, give the rest back and leave; a second one
    ends it at once. Exit code 0: it left in good order; with `--until idle`, everything has landed;
    1: it had to leave something unfinished, or something stands still; 2: no Java; 3: the store
    could not be reached at the start. Later it waits until the store is back.
    """
    here = here_of(store, namespace, config)
    settings = here.settings
    usual = NodeDefaults() if settings is None else settings.node
    own = NodeSettings(
        name or usual.name or f"{socket.gethostname()}-{os.getpid()}",
        workers or usual.workers,
        tuple(sorted({*(label or ()), *usual.labels})),
    )
    if settings is not None and (settings.streams or settings.templates) and not demo_tasks:
        there = replace(settings, namespace=here.namespace)
        landing = LandingRun(here, there, own, int(term_seconds * 1000), is_json=as_json)
        raise typer.Exit(landing.run(until, max_seconds))
    if until is not None or max_seconds is not None or as_json:
        if settings is None:
            why, following = "--store names no settings", "headgate init, or --config PATH"
        else:
            why, following = "these settings have none", command("config check", here)
        raise Invalid(
            f"--until, --max-seconds and --json are for streams, and {why}; next: {following}"
        )
    feeds: Sequence[Feed] = ()
    if demo_tasks:
        poison = frozenset(demo_poison or ())
        feeds = (StepsFeed(DEMO_FEED, demo_tasks, demo_steps, demo_pause_ms, poison),)
    _run_plain(here, own, feeds, int(term_seconds * 1000))


def _run_plain(here: Here, settings: NodeSettings, feeds: Sequence[Feed], term_ms: int) -> None:
    """A node that lands nothing."""
    signals = Signals()
    with (
        signals,
        joined_node(
            here.place,
            settings,
            SystemAmbient(),
            equip=lambda store, ambient: Equipment(_kinds(store, ambient), feeds),
            term_ms=term_ms,
        ) as joined,
    ):
        hint = "" if feeds else NO_FEED
        tell_the_start(joined, here, hint)
        poll = polling(signals)
        ending = joined.node.run(lambda: poll(joined))
    if not signals.is_asked:
        console.talk().print("stopping: somebody asked for it with `headgate node drain`")
    tell_the_end(settings.name, here, ending)
    raise typer.Exit(0 if ending is Ending.DRAINED else 1)


def _kinds(store: DocumentStore, ambient: Ambient) -> Sequence[Kind]:
    # Also without --demo-tasks: a node fails what it does not know, and others may have them.
    return (StepsKind(store, ambient),)
