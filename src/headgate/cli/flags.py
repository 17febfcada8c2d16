"""Flags commands: raise those again that somebody deleted; withdraw those of an hour."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated

import typer

from headgate.ambient import Deadline, SystemAmbient
from headgate.app.flags import REPAIR_REASON, FlagActs, MissingFlag, Withdrawal
from headgate.app.roots import roots_of
from headgate.cli import console
from headgate.cli.asking import WHERE, Asking, Reason, StreamName, asking, person
from headgate.cli.bars import PartsBar
from headgate.cli.moments import many
from headgate.cli.places import ConfigPath, Installation, command, stream_of
from headgate.cli.store import Json
from headgate.errors import Invalid
from headgate.lake.ledger import Ledger
from headgate.periods import Period
from headgate.ready.kind import kind_name
from headgate.settings.units import duration_ms
from headgate.status import read_status
from headgate.store import JsonObject

LOOK_MS = 200
SHOWN_MAX = 20

app = typer.Typer(no_args_is_help=True)

From = Annotated[
    str, typer.Option("--from", metavar="PERIOD", help="2026-11-01T13 or 2026-11-01; the first.")
]
To = Annotated[str, typer.Option("--to", metavar="PERIOD", help="With its hours; up to now.")]
Timeout = Annotated[
    str, typer.Option(metavar="DURATION", help="Wait at most so long until a node has done it.")
]


@app.callback()
def group() -> None:
    """Raise flags again that somebody deleted; withdraw those of an hour."""


@app.command("repair")
def repair(
    first: From = "",
    last: To = "",
    reason: Annotated[str, typer.Option(help="Why; kept in the ledger.")] = REPAIR_REASON,
    timeout: Timeout = "1m",
    as_json: Json = False,
    config: ConfigPath = None,
) -> None:
    """Raise flags again that a person or a cleaner deleted, with the bytes that they had.

    Which must be there is told by the frontiers in the store, not by what lies in folders; what is
    there is left as it is. A node that holds the root does it.

    Exit code 0: nothing is missing, or it is there again; 1: nobody has done it so far, or a
    certificate is gone.
    """
    wait_ms = duration_ms(timeout)
    span = [Period.parse(one) if one else None for one in (first, last)]
    with asking(config) as asked:
        acts = _acts_of(asked)
        with PartsBar() as bar:
            missing = acts.missing(span[0], span[1], bar.show)
        roots = acts.repair(missing, person(reason)) if missing else []
        by = holder(asked, roots)
        if roots and by is not None:
            _wait(wait_ms, len(missing), lambda: _left(acts, roots, missing))
        left = acts.still_missing(missing)
        if as_json:
            body: JsonObject = {
                "missing": [asdict(one) for one in missing],
                "left": [{"path": one.path, "words": words} for one, words in left],
                "is_done": not left,
                "node": by,
            }
            typer.echo(console.json_line(body))
        else:
            _tell_repair(asked, missing, left, by)
    raise typer.Exit(1 if left else 0)


@app.command("withdraw")
def withdraw(
    stream: StreamName,
    hour: Annotated[str, typer.Argument(metavar="HOUR", help="2026-11-01T13")],
    reason: Reason,
    timeout: Timeout = "1m",
    as_json: Json = False,
    config: ConfigPath = None,
) -> None:
    """Withdraw the flags of an hour, and those above it first; the next generation follows.

    A withdrawn flag is renamed, never deleted. A file `working` in the stream's folder of that hour
    keeps it open until it is gone: put it there first if you want to change something.

    Exit code 0: withdrawn; 1: it has no flag, or nobody has done it so far.
    """
    wait_ms, wanted = duration_ms(timeout), Period.parse(hour)
    if wanted.kind != "hour":
        raise Invalid(f"{hour} is a day; next: name an hour of it, {hour}T00 for one")
    with asking(config) as asked:
        stream = stream_of(Installation(asked.settings, asked.here), stream).name
        acts, by_whom = _acts_of(asked), person(reason)
        found = acts.withdraw(stream, wanted, by_whom)
        by = holder(asked, [found.root])
        if by is not None:
            _wait(wait_ms, 1, lambda: 1 if _is_open(acts, found) else 0)
        is_done, trouble = not acts.is_withdrawing(found), acts.trouble(found)
        see = command("why", asked.here, stream, str(wanted))
        if as_json:
            body: JsonObject = {
                "stream": stream,
                "hour": str(wanted),
                "generation": found.generation,
                "hold": found.hold,
                "is_done": is_done,
                "node": by,
                "trouble": trouble,
            }
            typer.echo(console.json_line(body))
        else:
            talk = console.talk()
            if is_done:
                talk.print(
                    console.printable(
                        f"the flags of {stream} {wanted} were withdrawn, and generation "
                        f"{found.generation} comes at once, unless {found.hold} is there"
                    )
                )
            else:
                words = trouble or _who(by, "withdraws it")
                talk.print(console.printable(f"{stream} {wanted}: asked for; {words}"))
                if not trouble and by is None:
                    talk.print(f"next: {command('run', asked.here)}", style="dim")
            talk.print(f"next: {see}", style="dim")
    raise typer.Exit(0 if is_done else 1)


def _acts_of(asked: Asking) -> FlagActs:
    ambient = SystemAmbient()
    ledger = Ledger(asked.lake, WHERE, ambient)
    return FlagActs(asked.store, asked.lake, ledger, ambient, roots_of(asked.settings))


def _is_open(acts: FlagActs, found: Withdrawal) -> bool:
    return acts.is_withdrawing(found) and not acts.trouble(found)


def _left(acts: FlagActs, roots: list[str], missing: list[MissingFlag]) -> int:
    return max(1, len(acts.still_missing(missing))) if acts.is_repairing(roots) else 0


def _wait(wait_ms: int, total: int, left: Callable[[], int]) -> None:
    """Until nothing is left, or the time is over."""
    ambient = SystemAmbient()
    deadline = Deadline(ambient, wait_ms)
    with PartsBar() as bar:
        while (count := left()) and not deadline.is_over():
            bar.show(total - count, total, "waiting for the node that holds the root")
            ambient.sleep_ms(LOOK_MS)


def holder(asked: Asking, roots: list[str]) -> str | None:
    """A node that holds one of them, and is alive."""
    wanted = {f"{kind_name(root)}/0" for root in roots}
    fleet = read_status(asked.store, SystemAmbient())
    held = [one for one in fleet.tasks if one.name in wanted and one.condition == "in progress"]
    return next((one.node for one in held if one.node), None)


def _who(by: str | None, does: str) -> str:
    if by is None:
        return f"no node holds the root now: the next one that runs {does}"
    return f"{by} holds the root, and {does}: it has not come to it in that time"


def _tell_repair(
    asked: Asking, missing: list[MissingFlag], left: list[tuple[MissingFlag, str]], by: str | None
) -> None:
    talk = console.talk()
    if not missing:
        talk.print("no flag is missing")
        return
    for one in missing[:SHOWN_MAX]:
        console.results().print(console.printable(one.path))
    if len(missing) > SHOWN_MAX:
        talk.print(f"and {len(missing) - SHOWN_MAX:,} more")
    if not left:
        talk.print(f"{many(len(missing), 'flag')} raised again by {by}")
        return
    gone = [one for one, words in left if "gone" in words]
    if gone:
        talk.print(
            console.printable(
                f"{many(len(gone), 'flag')} cannot be raised: the certificate of {gone[0].period} "
                "is gone; next: restore _headgate/certificates from a backup, then the same again"
            )
        )
    if len(gone) < len(left):
        talk.print(console.printable(f"asked for; {_who(by, 'raises them')}"))
        if by is None:
            talk.print(f"next: {command('run', asked.here)}", style="dim")
    talk.print(f"next: {command('status', asked.here)}", style="dim")
