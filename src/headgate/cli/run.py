"""Run: a node, until it is asked to stop."""

import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Annotated

import typer

from headgate.ambient import Ambient, SystemAmbient
from headgate.app import Equipment, Joined, Place, joined_node
from headgate.cli import console
from headgate.cli.places import StoreUrl, command
from headgate.cli.store import Namespace
from headgate.cluster import Feed, Kind
from headgate.cluster.duties import WORKERS_MAX, NodeSettings
from headgate.cluster.session import TERM_MS
from headgate.cluster.tasks import shown
from headgate.node import Ending
from headgate.store import DocumentStore
from headgate.testing.steps import StepsFeed, StepsKind

DEMO_FEED = "demo"
NAMES_MAX = 4  # of tasks in one sentence


def run(
    store: StoreUrl,
    namespace: Namespace = "default",
    name: Annotated[
        str, typer.Option(help="For people; nothing depends on it. Host and process id if none.")
    ] = "",
    workers: Annotated[
        int, typer.Option(min=1, max=WORKERS_MAX, metavar="N", help="Tasks at the same moment.")
    ] = 2,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL", help="Tasks may ask for it. Can be given several times."),
    ] = None,
    term_seconds: Annotated[
        float,
        typer.Option(min=1, max=3_600, metavar="S", help="How long a silent node keeps its tasks."),
    ] = TERM_MS / 1000,
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
    """Run a node: it joins the others in this store and does its share of the tasks.

    SIGTERM or Ctrl-C lets it finish what it has in hand, give the rest back and leave; a second one
    ends it at once. Exit code 0: it left in good order; 1: it had to leave something unfinished; 3:
    the store could not be reached at the start. Later it waits until the store is back.
    """
    ambient, place = SystemAmbient(), Place(store, namespace)
    own_name = name or f"{socket.gethostname()}-{os.getpid()}"
    settings = NodeSettings(own_name, workers, tuple(sorted(set(label or ()))))
    feeds: Sequence[Feed] = ()
    if demo_tasks:
        poison = frozenset(demo_poison or ())
        feeds = (StepsFeed(DEMO_FEED, demo_tasks, demo_steps, demo_pause_ms, poison),)
    signals = _Signals()
    with (
        signals,
        joined_node(
            place,
            settings,
            ambient,
            equip=lambda store, ambient: Equipment(_kinds(store, ambient), feeds),
            term_ms=int(term_seconds * 1000),
        ) as joined,
    ):
        _tell_the_start(joined, own_name, place, has_feed=bool(feeds))
        ending = joined.node.run(_poll(joined, signals))
    if not signals.is_asked:
        console.talk().print("stopping: somebody asked for it with `headgate node drain`")
    _tell_the_end(own_name, place, ending)
    raise typer.Exit(0 if ending is Ending.DRAINED else 1)


def _kinds(store: DocumentStore, ambient: Ambient) -> Sequence[Kind]:
    # Also without --demo-tasks: a node fails what it does not know, and others may have them.
    return (StepsKind(store, ambient),)


class _Signals:
    """The first asks, the second ends: whoever sends two does not want to wait."""

    def __init__(self) -> None:
        self.is_asked = False
        self._before: dict[signal.Signals, Callable[..., object] | int | None] = {}

    def __enter__(self) -> "_Signals":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if not self.is_asked:
            self.is_asked = True
            return
        # Not through the console: what it was doing when the signal came is not finished.
        words = b"ended at once: its session ends by itself within a term, then others go on\n"
        os.write(sys.stderr.fileno(), words)
        os._exit(128 + number)


def _poll(joined: Joined, signals: _Signals) -> Callable[[], None]:
    """What happens ten times a second: a signal becomes words and a drain."""
    is_told = False

    def poll() -> None:
        nonlocal is_told
        if signals.is_asked and not is_told:
            is_told = True
            _tell_the_drain(joined)
            joined.node.drain()

    return poll


def _tell_the_start(joined: Joined, name: str, place: Place, *, has_feed: bool) -> None:
    talk = console.talk()
    member = joined.member
    talk.print(
        console.printable(
            f"node {name} joined as number {member.number}, session {member.session[:8]}, "
            f"at {place.url}"
        )
    )
    if not has_feed:
        talk.print("no task source here: it does its share of what others create, and waits")
    talk.print(f"  see    {command('status', place)}", style="dim")
    talk.print(
        f"  stop   Ctrl-C, or {command('node drain', place, str(member.number))}", style="dim"
    )


def _tell_the_drain(joined: Joined) -> None:
    held, in_hand = joined.duties.desk.keys(), sorted(joined.duties.desk.in_hand())
    if not held:
        words = "stopping: nothing is in hand"
    else:
        more = f" and {len(in_hand) - NAMES_MAX:,} more" if len(in_hand) > NAMES_MAX else ""
        names = ", ".join(shown(key) for key in in_hand[:NAMES_MAX]) + more
        words = (
            f"stopping: {f'finishing the step of {names}, ' if names else ''}giving back all "
            f"{len(held):,} tasks it holds; once more ends it at once"
        )
    console.talk().print(console.printable(words))


def _tell_the_end(name: str, place: Place, ending: Ending) -> None:
    if ending is Ending.DRAINED:
        words = f"node {name} left: everything is given back"
    elif ending is Ending.UNHEARD:
        words = (
            f"node {name} ended, and could not tell the store: its session ends by itself within a "
            f"term, and others take over what it held; next: {command('status', place)}"
        )
    else:
        words = (
            f"node {name} left with work in hand, which did not come to an end in time; others "
            f"take it over; next: {command('status', place)}"
        )
    console.talk().print(console.printable(words))
