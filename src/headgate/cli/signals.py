"""Signals: how a running node hears that it shall stop, and what it says to whoever started it."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType

from headgate.ambient import Ambient, SystemAmbient
from headgate.app import Joined
from headgate.app.silence import Listening, Silent
from headgate.cli import console
from headgate.cli.places import Here, command
from headgate.cluster.tasks import shown
from headgate.node import Ending
from headgate.status import shown_ms

NAMES_MAX = 4  # of tasks in one sentence
ECHO_MS = 1_000  # timeout(1) and service managers signal a process, then its group: twice the same


class Signals:
    """The first asks, the second ends: whoever sends two does not want to wait.

    One that comes within a second of the first is its echo, and says nothing new.
    """

    def __init__(self, ambient: Ambient | None = None) -> None:
        self.is_asked = False
        self._ambient = ambient or SystemAmbient()
        self._asked_ms = 0
        self._before: dict[signal.Signals, Callable[..., object] | int | None] = {}

    def __enter__(self) -> "Signals":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if not self.is_asked:
            self.is_asked = True
            self._asked_ms = self._ambient.monotonic_ms()
            return
        if self._ambient.monotonic_ms() < self._asked_ms + ECHO_MS:
            return
        # Not through the console: what it was doing when the signal came is not finished.
        words = b"ended at once: its session ends by itself within a term, then others go on\n"
        os.write(sys.stderr.fileno(), words)
        os._exit(128 + number)


def polling(signals: Signals) -> Callable[[Joined], None]:
    """What happens ten times a second: a signal becomes words and a drain, and silence of other
    nodes becomes words."""
    is_told = False
    listening: Listening | None = None

    def poll(joined: Joined) -> None:
        nonlocal is_told, listening
        if listening is None or listening.joined is not joined:
            listening = Listening(joined, SystemAmbient(), tell_the_silence)
        if not signals.is_asked:
            listening.poll()
            return
        if not is_told:
            is_told = True
            tell_the_drain(joined)
        joined.node.drain()  # also one that was started since, with new topics

    return poll


def tell_the_start(joined: Joined, here: Here, hint: str) -> None:
    talk = console.talk()
    member = joined.member
    talk.print(
        console.printable(
            f"node {member.advert.node} joined as number {member.number}, "
            f"session {member.session[:8]}, at {here.url}"
        )
    )
    if hint:
        talk.print(console.printable(hint))
    talk.print(f"  see    {command('status', here)}", style="dim")
    talk.print(
        f"  stop   Ctrl-C, or {command('node drain', here, str(member.number))}", style="dim"
    )


def tell_the_silence(others: Sequence[Silent]) -> None:
    """What a node waits for that has nothing to do, or not all there is."""
    for words in silence_of(others):
        console.talk().print(console.printable(words), style="yellow")


def silence_of(others: Sequence[Silent]) -> list[str]:
    gone = [one for one in others if one.is_gone]
    if gone:
        return [
            f"node {one.node}, number {one.number}, seems to be gone: nothing was heard of it for "
            f"{shown_ms(one.silent_ms)}; its work is free in about {shown_ms(one.free_ms)}"
            for one in gone
        ]
    names = ", ".join(
        f"{one.node} (number {one.number}, heard of {shown_ms(one.silent_ms)} ago)"
        for one in others[:NAMES_MAX]
    )
    more = f" and {len(others) - NAMES_MAX:,} more" if len(others) > NAMES_MAX else ""
    nodes, it = (
        ("node", "it was killed, its") if len(others) == 1 else ("nodes", "one was killed, its")
    )
    free = shown_ms(max(one.free_ms for one in others))
    return [
        f"nothing to do so far: {nodes} {names}{more} may hold what there is; if {it} work is free "
        f"in about {free}"
    ]


def tell_the_drain(joined: Joined) -> None:
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


def tell_the_end(name: str, here: Here, ending: Ending) -> None:
    if ending is Ending.DRAINED:
        words = f"node {name} left: everything is given back"
    elif ending is Ending.UNHEARD:
        words = (
            f"node {name} ended, and could not tell the store: its session ends by itself within a "
            f"term, and others take over what it held; next: {command('status', here)}"
        )
    else:
        words = (
            f"node {name} left with work in hand, which did not come to an end in time; others "
            f"take it over; next: {command('status', here)}"
        )
    console.talk().print(console.printable(words))
