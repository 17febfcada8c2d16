"""Gap commands: what a person accepts as gone at its source."""

from dataclasses import asdict
from typing import Annotated

import typer

from headgate.ambient import SystemAmbient
from headgate.app.clusters import open_cluster
from headgate.app.gaps import GapActs, kafka_of
from headgate.cli import console
from headgate.cli.asking import WHERE, Reason, StreamName, asking, person
from headgate.cli.places import ConfigPath, command
from headgate.cli.store import Json
from headgate.errors import Invalid
from headgate.lake.ledger import Ledger

app = typer.Typer(no_args_is_help=True)


@app.callback()
def group() -> None:
    """Decide about records that a Kafka cluster no longer has."""


@app.command("accept")
def accept(
    name: StreamName,
    what: Annotated[
        str,
        typer.Argument(
            metavar="PARTITION|TOPIC",
            help="orders/3: its next records expired; orders: the topic was made again.",
        ),
    ],
    reason: Reason,
    config: ConfigPath = None,
    as_json: Json = False,
) -> None:
    """Accept that records are gone: the gap is on record, and reading goes on behind it.

    It is noted in the ledger, then written into the stream's document, then the shards that stand
    still for it are released. After a crash in between, the same command does the rest.

    Exit code 0: accepted; 1: nothing of it is gone, or it was accepted already; 3: the cluster
    cannot be asked.
    """
    ambient, by = SystemAmbient(), person(reason)
    with asking(config) as asked:
        own = asked.settings.streams.get(asked.stream(name))
        if own is None:
            raise Invalid(
                f"stream {name}: is not in the settings, so nobody knows its brokers; next: put it "
                "back, then the same command"
            )
        cluster = open_cluster(kafka_of(own), ambient)
        acts = GapActs(asked.store, asked.lake, Ledger(asked.lake, WHERE, ambient), ambient)
        done = acts.accept(own, what, cluster, by)
        see = command("status", asked.here, name)
    if as_json:
        typer.echo(console.json_line(asdict(done)))
    else:
        talk = console.talk()
        said = "is accepted" if done.is_new else "was accepted already"
        shards = ", ".join(f"{name}/{shard}" for shard in done.released)
        then = f"; released: {shards}" if shards else ""
        if not done.is_anything_done:
            then = "; nothing was changed"
        talk.print(console.printable(f"{what}: {done.words}; it {said}{then}"))
        talk.print(f"next: {see}", style="dim")
    raise typer.Exit(0 if done.is_anything_done else 1)
