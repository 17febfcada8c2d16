"""Main: the `headgate` command, and the one place where an error becomes words and an exit code.

    0  yes
    1  the answer is no (nothing found, not safe, not proved), or a person must look (Halted)
    2  Invalid: fix the command, the URL or the settings
    3  try again: Conflict, Unavailable, OutcomeUnknown, Fenced
    4  Corrupt: stored state is damaged
    130  Ctrl-C; 143 a second SIGTERM

An exception that is not ours is a bug: it keeps its traceback, and Python's exit code 1.
"""

import io
import logging
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, NamedTuple, cast

import typer
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from headgate.cli import console, logs
from headgate.errors import (
    Conflict,
    Corrupt,
    Fenced,
    Halted,
    HeadgateError,
    Invalid,
    OutcomeUnknown,
    Unavailable,
)

log = logging.getLogger(__name__)

EXIT_CODES: dict[type[HeadgateError], tuple[int, str]] = {
    Halted: (1, "halted"),
    Invalid: (2, "invalid"),
    Conflict: (3, "conflict"),
    Fenced: (3, "fenced"),
    OutcomeUnknown: (3, "outcome unknown"),
    Unavailable: (3, "unavailable"),
    Corrupt: (4, "corrupt"),
}

EVERYDAY, CLOSER = "Everyday", "A closer look"


class Verb(NamedTuple):
    panel: str
    is_group: bool = False
    more: tuple[tuple[str, str, str], ...] = ()  # commands of the group: name, module, function


VERBS = {  # in the order of the help; each has its module in this folder
    "init": Verb(EVERYDAY),
    "run": Verb(EVERYDAY),
    "status": Verb(EVERYDAY),
    "why": Verb(EVERYDAY),
    "plan": Verb(EVERYDAY),
    "wait": Verb(EVERYDAY),
    "verify": Verb(EVERYDAY),
    "certificate": Verb(EVERYDAY),
    "locate": Verb(EVERYDAY),
    "audit": Verb(EVERYDAY),
    "history": Verb(EVERYDAY),
    "web": Verb(EVERYDAY),
    "demo": Verb(EVERYDAY),
    "doctor": Verb(
        EVERYDAY,
        is_group=True,
        more=(
            ("source", "source", "doctor_source"),
            ("hammer", "hammer", "hammer_store"),
            ("fleet", "fleet", "show_fleet"),
        ),
    ),
    "config": Verb(CLOSER, is_group=True),
    "stream": Verb(CLOSER, is_group=True),
    "shard": Verb(CLOSER, is_group=True),
    "gap": Verb(CLOSER, is_group=True),
    "journal": Verb(CLOSER, is_group=True),
    "deadletter": Verb(CLOSER, is_group=True),
    "flags": Verb(CLOSER, is_group=True),
    "lake": Verb(CLOSER, is_group=True),
    "table": Verb(CLOSER, is_group=True),
    "node": Verb(CLOSER, is_group=True),
    "task": Verb(CLOSER, is_group=True),
    "store": Verb(CLOSER, is_group=True, more=(("rebuild", "rebuilding", "rebuild"),)),
}


class Verbs(TyperGroup):
    """Loads a verb when it is asked for: all of them together take a second."""

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        del ctx
        if cmd_name not in VERBS:
            self.load_all()  # the nearest names are told
            return None
        if cmd_name not in self.commands:
            self.commands[cmd_name] = loaded(cmd_name)
        return self.commands[cmd_name]

    def load_all(self) -> None:
        for name in VERBS:
            if name not in self.commands:
                self.commands[name] = loaded(name)


def loaded(name: str) -> TyperCommand | TyperGroup:
    """Once in a process."""
    verb, module = VERBS[name], import_module(f"headgate.cli.{name}")
    around = typer.Typer(rich_markup_mode="rich")
    around.callback()(lambda: None)
    if verb.is_group:
        for command, place, function in verb.more:
            module.app.command(command)(getattr(import_module(f"headgate.cli.{place}"), function))
        around.add_typer(module.app, name=name, rich_help_panel=verb.panel)
    else:
        around.command(name, rich_help_panel=verb.panel)(getattr(module, name))
    return cast(TyperCommand | TyperGroup, typer.main.get_group(around).commands[name])


app = typer.Typer(
    name="headgate",
    cls=Verbs,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"headgate {version('headgate')}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and end."
        ),
    ] = False,
    log_level: Annotated[
        logs.LogLevel, typer.Option(help="Events on stderr, from this level on.")
    ] = logs.LogLevel.WARNING,
    debug: Annotated[
        bool, typer.Option("--debug", help="All events, and where in the code an error came from.")
    ] = False,
) -> None:
    """Lands every record exactly once in event-time folders and says when each hour is complete.

    Exit codes: 0 yes, 1 no, 2 invalid, 3 try again, 4 damaged.
    """
    logs.configure(logs.LogLevel.DEBUG if debug else log_level)


def main() -> None:
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, io.TextIOWrapper):  # a terminal that knows no Unicode still shows it
            output.reconfigure(errors="backslashreplace")
    try:
        app()
    except HeadgateError as error:
        log.debug("cli.failed", exc_info=True)
        code, group = next(said for kind, said in EXIT_CODES.items() if isinstance(error, kind))
        said = "\n".join(map(console.printable, str(error).split("\n")))
        console.talk().print(Text(f"{group}: ", "bold red"), said, sep="")
        sys.exit(code)
