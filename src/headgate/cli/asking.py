"""Asking: what a command about streams has in hand, and the names it may be asked for."""

import getpass
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from headgate.ambient import SystemAmbient
from headgate.app.acts import Acts, Person
from headgate.cli.places import Here, command, installation_of
from headgate.commits.streams import StreamDocument
from headgate.errors import Invalid
from headgate.lake import Lake
from headgate.lake.ledger import Ledger
from headgate.lake.opening import open_lake
from headgate.settings import Settings
from headgate.settings.problems import nearest
from headgate.status.streams import known_streams, shards_of
from headgate.store import DocumentStore
from headgate.store.registry import open_store

WHERE = "command line"  # in the ledger, in the place of a node

StreamName = Annotated[
    str, typer.Argument(metavar="STREAM", help="As `headgate stream ls` shows it.")
]
ShardName = Annotated[
    str, typer.Argument(metavar="STREAM/SHARD", help="As `headgate status` shows it.")
]
Reason = Annotated[str, typer.Option(help="Why; kept in the ledger, with your name.")]


@dataclass(frozen=True, slots=True)
class Asking:
    """An installation, opened for one command."""

    settings: Settings
    here: Here
    store: DocumentStore
    lake: Lake
    acts: Acts

    def streams(self) -> dict[str, StreamDocument | None]:
        """Those of the settings, and those that only the store has. Raises Unavailable."""
        return known_streams(self.store, self.settings.streams)[0]

    def stream(self, name: str) -> str:
        """As everybody but the settings calls it. Raises Invalid: there is no such stream."""
        known, name = self.streams(), self.settings.called(name)
        if name not in known:
            near = nearest(name, known)
            hint = f"the nearest is {near!r}" if near else "there is none at all"
            raise Invalid(
                f"no stream {name!r} here: {hint}; next: {command('stream ls', self.here)}"
            )
        return name

    def shard(self, text: str) -> tuple[str, int]:
        """Raises Invalid: it is no shard, or there is none of this name."""
        name, slash, number = text.rpartition("/")
        if not slash or not (number.isascii() and number.isdecimal()):
            raise Invalid(
                f"{text!r}: a shard is named STREAM/SHARD, for example orders/0; "
                f"next: {command('status', self.here)}"
            )
        name = self.stream(name)
        count = shards_of(self.settings.streams.get(name), self.streams()[name])
        if int(number) >= count:
            raise Invalid(
                f"stream {name!r} has no shard {int(number)}: it has {count}, and the nearest is "
                f"{f'{name}/{count - 1}'!r}; next: {command('status', self.here, name)}"
            )
        return name, int(number)


@contextmanager
def asking(config: Path | None) -> Iterator[Asking]:
    """Raises Invalid, Unavailable."""
    found, ambient = installation_of(config), SystemAmbient()
    settings = found.settings
    store = open_store(settings.store, settings.namespace, ambient=ambient)
    with closing(store):
        lake = open_lake(settings.lake, ambient)
        acts = Acts(store, lake, Ledger(lake, WHERE, ambient), ambient)
        yield Asking(settings, found.here, store, lake, acts)


def person(reason: str) -> Person:
    """Whoever types this. Raises Invalid: no reason."""
    if not reason.strip():
        raise Invalid("a reason is needed: somebody will read it later; next: --reason TEXT")
    try:
        who = getpass.getuser()
    except (KeyError, OSError):  # in a container, a user may have no name
        who = f"user {os.getuid()}"
    return Person(who, reason)
