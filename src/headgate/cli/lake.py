"""Lake commands: files of ready hours go, because they are old or must not be there; on record."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from headgate.ambient import Deadline, SystemAmbient
from headgate.app.retention import Asked, GoingHour, RetentionActs
from headgate.app.roots import roots_of
from headgate.cli import console
from headgate.cli.asking import WHERE, Asking, Reason, asking, person
from headgate.cli.bars import PartsBar
from headgate.cli.flags import Timeout, holder
from headgate.cli.moments import many, shown_bytes
from headgate.cli.places import ConfigPath, command
from headgate.cli.store import Json
from headgate.errors import Invalid
from headgate.lake.ledger import Ledger
from headgate.periods import Period
from headgate.settings.units import duration_ms
from headgate.store import JsonObject

LOOK_MS = 200
SHOWN_MAX = 20
STILL_MAX = 10

app = typer.Typer(no_args_is_help=True)

OfStream = Annotated[
    str, typer.Option("--stream", metavar="STREAM", help="Only of this one; without it, of all.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")]
Without = Annotated[
    list[str] | None,
    typer.Option(metavar="TABLE", help="It needs none of these hours any more. Several times."),
]


@app.callback()
def group() -> None:
    """Remove files of ready hours, on record: they are old, or must not be there."""


@app.command("expire")
def expire(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="DURATION", help="90d: hours that ended before.")
    ],
    stream: OfStream = "",
    reason: Annotated[str, typer.Option(help="Why; kept in the ledger, with your name.")] = "",
    without_table: Without = None,
    dry_run: DryRun = False,
    timeout: Timeout = "1m",
    as_json: Json = False,
    config: ConfigPath = None,
) -> None:
    """Remove the files of every ready hour that ended so long ago.

    Certificate and flag stay, and prove what was there; a file _EXPIRED beside each flag says that
    it is gone, by whom and why. The node that holds the root does it. An hour that a table has not
    taken yet waits until it has.

    Exit code 0: all of it is gone, or nothing was so old; 1: nobody has done it so far, or
    something of it waits.
    """
    old_ms, wait_ms = duration_ms(older_than), duration_ms(timeout)
    with asking(config) as asked:
        acts = _acts_of(asked)
        by = person(reason or f"older than {older_than}")
        wanted = acts.expiring(old_ms, by, stream, without_table or ())
        code = _carry(asked, acts, wanted, wait_ms, is_dry=dry_run, as_json=as_json)
    raise typer.Exit(code)


@app.command("erase")
def erase(
    period: Annotated[str, typer.Argument(metavar="PERIOD", help="2026-11-01T13 or 2026-11-01")],
    reason: Reason,
    stream: OfStream = "",
    without_table: Without = None,
    dry_run: DryRun = False,
    timeout: Timeout = "1m",
    as_json: Json = False,
    config: ConfigPath = None,
) -> None:
    """Erase the files of an hour, or of every hour of a day, with those of its late records.

    Only of hours that are ready: nothing more can come to them. Certificate and flag stay, and
    prove what was there; a file _ERASED beside each flag says that it is gone, by whom and why.
    Dead letters have no hour, and stay; so does what tables have taken.

    Exit code 0: all of it is gone; 1: an hour is not ready, nobody has done it so far, or something
    of it waits.
    """
    wait_ms, wanted = duration_ms(timeout), Period.parse(period)
    with asking(config) as asked:
        acts = _acts_of(asked)
        every = acts.erasing(wanted, person(reason), stream, without_table or ())
        code = _carry(asked, acts, every, wait_ms, is_dry=dry_run, as_json=as_json)
    raise typer.Exit(code)


def _acts_of(asked: Asking) -> RetentionActs:
    ambient = SystemAmbient()
    ledger = Ledger(asked.lake, WHERE, ambient)
    roots = roots_of(asked.settings)
    if not roots:
        raise Invalid("there is no stream in the settings; next: headgate config check")
    return RetentionActs(asked.store, asked.lake, ledger, ambient, roots)


def _carry(
    asked: Asking,
    acts: RetentionActs,
    wanted: list[Asked],
    wait_ms: int,
    *,
    is_dry: bool,
    as_json: bool,
) -> int:
    with PartsBar() as bar:
        going = list(acts.outlook(wanted, bar.show))
    by: str | None = None
    left, troubles = len(going), list[str]()
    if going and not is_dry:
        acts.ask(wanted)
        by = holder(asked, sorted({one.root for one in wanted}))
        left, troubles = _wait(acts, wanted, wait_ms if by is not None else 0)
    if as_json:
        body: JsonObject = {
            "hours": [asdict(one) | {"hour": str(one.hour)} for one in going],
            "is_dry_run": is_dry,
            "is_done": left == 0,
            "left": left,
            "node": by,
            "troubles": list(troubles),
        }
        typer.echo(console.json_line(body))
    else:
        _tell(asked, going, by, left, troubles, is_dry=is_dry)
    return 0 if is_dry or left == 0 else 1


def _wait(acts: RetentionActs, wanted: list[Asked], wait_ms: int) -> tuple[int, list[str]]:
    """Until it is done, or the time is over, or all that is left stands still."""
    ambient = SystemAmbient()
    deadline = Deadline(ambient, wait_ms)
    total = left = acts.left(wanted)
    still = 0  # looks in a row at which nothing had moved, and a trouble was told
    with PartsBar() as bar:
        while left and still < STILL_MAX and not deadline.is_over():
            bar.show(total - left, total, "waiting for the node that holds the root")
            ambient.sleep_ms(LOOK_MS)
            before, left = left, acts.left(wanted)
            still = still + 1 if left == before and acts.troubles(wanted) else 0
    return left, acts.troubles(wanted)


def _tell(
    asked: Asking,
    going: list[GoingHour],
    by: str | None,
    left: int,
    troubles: list[str],
    *,
    is_dry: bool,
) -> None:
    talk, out = console.talk(), console.results()
    if not going:
        talk.print("nothing is there that would go")
        return
    files = sum(one.files + one.late for one in going)
    size = shown_bytes(sum(one.size_bytes for one in going))
    rows = sum(one.rows for one in going)
    total = f"{many(len(going), 'hour')}, {many(files, 'file')}, {size}, {rows:,} rows"
    for one in going[:SHOWN_MAX]:
        late = f", {one.late:,} of them late" if one.late else ""
        what = f"{many(one.files + one.late, 'file')}{late}, {shown_bytes(one.size_bytes)}"
        out.print(console.printable(f"{one.stream} {one.hour}  {what}, {one.rows:,} rows"))
        if one.obstacle and is_dry:
            out.print(Text(console.printable(f"  waits: {one.obstacle}"), "yellow"))
    if len(going) > SHOWN_MAX:
        talk.print(f"and {len(going) - SHOWN_MAX:,} more hours")
    if is_dry:
        talk.print(f"would go: {total}; nothing was changed")
        return
    if not left:
        talk.print(f"gone: {total}; done by {by or 'a node'}")
        return
    talk.print(f"asked for: {total}; {many(left, 'hour')} of it not done yet")
    for words in troubles:
        talk.print(Text(console.printable(f"  waits: {words}"), "yellow"))
    if by is None:
        talk.print("no node holds the root now: the next one that runs does it")
        talk.print(f"next: {command('run', asked.here)}", style="dim")
    else:
        talk.print(f"next: {command('status', asked.here)}", style="dim")
