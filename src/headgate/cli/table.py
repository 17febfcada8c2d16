"""Table commands: how far each table is, and what a person decides about one that stands still."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated

import typer

from headgate.ambient import SystemAmbient
from headgate.app.acts import Person
from headgate.apply.remedies import Decision, Remedies
from headgate.apply.table_document import TableDocument
from headgate.cli import console
from headgate.cli.asking import WHERE, Asking, Reason, asking, person
from headgate.cli.places import ConfigPath, command
from headgate.cli.store import Json
from headgate.errors import Invalid
from headgate.lake.ledger import Ledger
from headgate.settings.problems import nearest
from headgate.status.tables import read_tables

app = typer.Typer(no_args_is_help=True)

TableName = Annotated[str, typer.Argument(metavar="TABLE", help="As the settings name it.")]
BatchName = Annotated[
    str, typer.Option("--batch", metavar="BATCH", help="The one that it stands at.")
]


@app.callback()
def group() -> None:
    """See how far tables are; decide about one that stands still."""


@app.command("ls")
def list_tables(config: ConfigPath = None, as_json: Json = False) -> None:
    """List the tables of the settings, and how far each is."""
    with asking(config) as asked:
        found = read_tables(asked.store, asked.settings.tables)
    if as_json:
        for one in found:
            typer.echo(console.json_line(asdict(one)))
        return
    if not found:
        check = command("config check", asked.here)
        console.talk().print(f"no tables; next: write one into the settings, then {check}")
        return
    for one in found:
        words = one.notice or f"{one.name}: {one.state}, applied up to {one.applied_up_to or '-'}"
        console.results().print("\n".join(map(console.printable, words.split("\n"))))


@app.command("halt")
def halt(name: TableName, reason: Reason, config: ConfigPath = None) -> None:
    """Nothing more enters this table until it is resumed. A batch under way is stopped or
    finished first."""
    _decide(name, reason, config, lambda remedies, by: remedies.halt(name, by))


@app.command("resume")
def resume(
    name: TableName,
    reason: Reason,
    lost: Annotated[
        bool, typer.Option("--lost", help="Its folder is gone for good; also while it is halting.")
    ] = False,
    config: ConfigPath = None,
) -> None:
    """Go on with a halted table; if it stopped at a batch, with the table as it is now."""
    _decide(name, reason, config, lambda remedies, by: remedies.resume(name, by, is_lost=lost))


@app.command("retry")
def retry(name: TableName, reason: Reason, config: ConfigPath = None) -> None:
    """Apply the batch again that a table halted at, after its cause is mended."""
    _decide(name, reason, config, lambda remedies, by: remedies.retry(name, by))


@app.command("skip")
def skip(name: TableName, batch: BatchName, reason: Reason, config: ConfigPath = None) -> None:
    """Leave out the batch that a table halted at, for good and on record."""
    _decide(name, reason, config, lambda remedies, by: remedies.skip(name, batch, by))


@app.command("mark-applied")
def mark_applied(
    name: TableName, batch: BatchName, reason: Reason, config: ConfigPath = None
) -> None:
    """Its rows are in the table already, put there by hand: go on behind it."""
    _decide(name, reason, config, lambda remedies, by: remedies.mark_applied(name, batch, by))


def _decide(
    name: str,
    reason: str,
    config: ConfigPath,
    act: Callable[[Remedies, Decision], TableDocument],
) -> None:
    with asking(config) as asked:
        _check_known(asked, name)
        who: Person = person(reason)
        ambient = SystemAmbient()
        remedies = Remedies(asked.store, Ledger(asked.lake, WHERE, ambient), ambient)
        after = act(remedies, Decision(who.who, who.reason))
        see = command("status", asked.here)
    words = f"{name} is {after.state}, applied up to {after.applied_up_to or 'nothing so far'}"
    console.talk().print(console.printable(f"{words}; next: {see}"))


def _check_known(asked: Asking, name: str) -> None:
    if name not in asked.settings.tables:
        near = nearest(name, asked.settings.tables)
        hint = f"the nearest is {near!r}" if near else "there is none at all"
        raise Invalid(f"no table {name!r} here: {hint}; next: {command('table ls', asked.here)}")
