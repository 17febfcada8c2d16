"""History: what was decided and done, by nodes and by people, from the ledger."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from headgate.ambient import SystemAmbient
from headgate.cli import console
from headgate.cli.moments import many, moment_of, shown_moment
from headgate.cli.places import ConfigPath, installation_of
from headgate.cli.store import Json
from headgate.errors import Invalid
from headgate.lake.ledger import SYSTEM, Line, read_ledger
from headgate.lake.opening import open_lake

SINCE = "1d"


def history(
    since: Annotated[
        str, typer.Option(metavar="WHEN", help="So long ago (1h, 7d), a date or a time in UTC.")
    ] = SINCE,
    until: Annotated[str, typer.Option(metavar="WHEN", help="The same; without it, now.")] = "",
    subject: Annotated[
        str, typer.Option(metavar="TEXT", help="Only what is about this: a stream, a shard.")
    ] = "",
    config: ConfigPath = None,
    as_json: Json = False,
) -> None:
    """Tell what was decided and done, by nodes and by people, in order of time. Changes nothing.

    Commits without records are not noted one by one: where numbers are left out, a line says so.
    """
    ambient = SystemAmbient()
    settings = installation_of(config).settings
    now_ms = ambient.wall_ns() // 1_000_000
    first_ms = moment_of(since, now_ms)
    last_ms = moment_of(until, now_ms) if until else now_ms + 1
    if first_ms >= last_ms:
        raise Invalid(
            f"nothing can be between {shown_moment(first_ms)} and {shown_moment(last_ms)}; "
            "next: an earlier --since, or a later --until"
        )
    reading = read_ledger(open_lake(settings.lake, ambient), first_ms, last_ms)
    out, count, silent = console.results(), 0, Silent()
    for line in reading:
        if subject not in line.subject:
            continue
        count += 1
        if as_json:
            typer.echo(console.json_line(asdict(line)))
            continue
        for shown in (*silent.before(line), _shown(line)):
            if out.is_terminal:
                out.print(shown)
            else:
                typer.echo(shown.plain)
    talk = console.talk()
    for path, lines in reading.damaged.items():
        if lines:
            words = f"{path}: {many(lines, 'line')} cannot be read, torn by a crash or spoiled"
            talk.print(console.printable(words), style="yellow")
    if not count and not as_json:
        words = f"nothing between {shown_moment(first_ms)} and {shown_moment(last_ms)}"
        about = f" about {subject}" if subject else ""
        talk.print(console.printable(f"{words}{about}; next: --since 30d"), style="dim")


class Silent:
    """Commits that the ledger does not tell of: they are numbered, and landed no records."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}  # by shard

    def before(self, line: Line) -> Iterator[Text]:
        """What to say of those between this line's commit and the one that was told before."""
        shard, _, number = line.subject.rpartition("/")
        if line.what != "commit.made" or not number.isdecimal():
            return
        last = self._last.get(shard, int(number))
        self._last[shard] = max(last, int(number))
        left_out = int(number) - last - 1
        if left_out == 1:
            words = f"({shard}: commit {last + 1} landed no records)"
        elif left_out > 1:
            words = f"({shard}: commits {last + 1} to {int(number) - 1} landed no records)"
        else:
            return
        yield Text(f"{'':20}  {console.printable(words)}", "dim")


def _shown(line: Line) -> Text:
    who = line.node if line.who == SYSTEM else f"{line.who} ({line.node})"
    return Text.assemble(
        (shown_moment(line.at_ms), "dim"),
        f"  {console.printable(line.what):18}  ",
        (console.printable(line.subject), "cyan"),
        console.printable(f"  {line.words}"),
        (console.printable(f"  {who}"), "dim"),
    )
