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
from importlib.metadata import version
from typing import Annotated

import typer
from rich.text import Text

from headgate.cli import (
    audit,
    certificate,
    config,
    console,
    deadletter,
    demo,
    doctor,
    flags,
    fleet,
    gap,
    hammer,
    history,
    init,
    journal,
    lake,
    locate,
    logs,
    node,
    plan,
    rebuilding,
    run,
    shard,
    source,
    status,
    store,
    stream,
    table,
    task,
    verify,
    wait,
    web,
    why,
)
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

app = typer.Typer(
    name="headgate",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
EVERYDAY, CLOSER = "Everyday", "A closer look"
app.command("init", rich_help_panel=EVERYDAY)(init.init)
app.command("run", rich_help_panel=EVERYDAY)(run.run)
app.command("status", rich_help_panel=EVERYDAY)(status.status)
app.command("why", rich_help_panel=EVERYDAY)(why.why)
app.command("plan", rich_help_panel=EVERYDAY)(plan.plan)
app.command("wait", rich_help_panel=EVERYDAY)(wait.wait)
app.command("verify", rich_help_panel=EVERYDAY)(verify.verify)
app.command("certificate", rich_help_panel=EVERYDAY)(certificate.certificate)
app.command("locate", rich_help_panel=EVERYDAY)(locate.locate)
app.command("audit", rich_help_panel=EVERYDAY)(audit.audit)
app.command("history", rich_help_panel=EVERYDAY)(history.history)
app.command("web", rich_help_panel=EVERYDAY)(web.web)
app.command("demo", rich_help_panel=EVERYDAY)(demo.demo)
app.add_typer(doctor.app, name="doctor", rich_help_panel=EVERYDAY)
doctor.app.command("source")(source.doctor_source)
doctor.app.command("hammer")(hammer.hammer_store)
doctor.app.command("fleet")(fleet.show_fleet)
app.add_typer(config.app, name="config", rich_help_panel=CLOSER)
app.add_typer(stream.app, name="stream", rich_help_panel=CLOSER)
app.add_typer(shard.app, name="shard", rich_help_panel=CLOSER)
app.add_typer(gap.app, name="gap", rich_help_panel=CLOSER)
app.add_typer(journal.app, name="journal", rich_help_panel=CLOSER)
app.add_typer(deadletter.app, name="deadletter", rich_help_panel=CLOSER)
app.add_typer(flags.app, name="flags", rich_help_panel=CLOSER)
app.add_typer(lake.app, name="lake", rich_help_panel=CLOSER)
app.add_typer(table.app, name="table", rich_help_panel=CLOSER)
app.add_typer(node.app, name="node", rich_help_panel=CLOSER)
app.add_typer(task.app, name="task", rich_help_panel=CLOSER)
app.add_typer(store.app, name="store", rich_help_panel=CLOSER)
store.app.command("rebuild")(rebuilding.rebuild)


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
