"""Stream commands: which there are; pause one, let it go on, say that it is over, begin it anew."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from headgate.ambient import SystemAmbient
from headgate.app.resetting import Reset, ResetActs
from headgate.cli import console
from headgate.cli.asking import WHERE, Asking, Reason, StreamName, asking, person
from headgate.cli.moments import many, shown_moment
from headgate.cli.places import ConfigPath, Installation, command, stream_of
from headgate.cli.store import Json
from headgate.cli.tables import Rows, show
from headgate.commits.streams import Pause, StreamDocument
from headgate.lake.ledger import Ledger
from headgate.periods import Period
from headgate.status.streams import shards_of
from headgate.store import JsonObject

app = typer.Typer(no_args_is_help=True)


@dataclass(frozen=True, slots=True)
class Listed:
    name: str
    is_in_settings: bool
    is_started: bool
    shards: int
    first_hour_ms: int | None
    paused: Pause | None
    retired: Pause | None
    source: str | None  # its path


@app.callback()
def group() -> None:
    """List streams; pause one, and let it go on; say that one is over; let one begin anew."""


@app.command("ls")
def list_streams(config: ConfigPath = None, as_json: Json = False) -> None:
    """List the streams of the settings, and those that only the store still has."""
    with asking(config) as asked:
        found = [_listed(asked, name, document) for name, document in asked.streams().items()]
    if as_json:
        for one in found:
            typer.echo(console.json_line(asdict(one)))
        return
    if not found:
        check = command("config check", asked.here)
        console.talk().print(f"no streams; next: write one into the settings, then {check}")
        return
    show([_rows(found)])


@app.command("pause")
def pause(name: StreamName, reason: Reason, config: ConfigPath = None) -> None:
    """No new round of this stream starts, on any node, until it is resumed.

    A commit that is under way is finished. What waits stays in the source. Exit code 0: paused; 1:
    it was already.
    """
    with asking(config) as asked:
        is_changed = asked.acts.pause(asked.stream(name), person(reason))
        words = "is paused: no new round starts" if is_changed else "was paused already"
        back = command("stream resume", asked.here, name, options=["--reason", "it may go on"])
        _tell(f"stream {name} {words}", back, is_changed=is_changed)


@app.command("resume")
def resume(name: StreamName, reason: Reason, config: ConfigPath = None) -> None:
    """A paused stream goes on from where it stands.

    Exit code 0: resumed; 1: it was not paused.
    """
    with asking(config) as asked:
        is_changed = asked.acts.resume(asked.stream(name), person(reason))
        words = "goes on within seconds" if is_changed else "was not paused"
        see = command("status", asked.here, name)
        _tell(f"stream {name} {words}", see, is_changed=is_changed)


@app.command("retire")
def retire(name: StreamName, reason: Reason, config: ConfigPath = None) -> None:
    """Say that a stream is over for good: no hour from now on waits for it.

    For a stream that was taken out of the settings and shares its folders with others: they keep
    waiting for it until somebody says this. Hours that it has flagged stay. It cannot be undone; a
    stream that shall end at a given hour has `last_hour` in the settings instead.

    Exit code 0: retired; 1: it was already; 2: it is in the settings, without an end.
    """
    with asking(config) as asked:
        known = asked.settings.streams
        ends = asked.acts.retire(asked.stream(name), person(reason), known)
        see = command("status", asked.here)
        hours = [str(Period.hour_of(end_ms)) for end_ms in (ends or {}).values() if end_ms]
        since = f": no hour from {min(hours)} on waits for it" if hours else ""
        words = "was retired already" if ends is None else f"is retired{since}"
        _tell(f"stream {name} {words}", see, is_changed=ends is not None)


@app.command("reset")
def reset(
    name: StreamName,
    into: Annotated[
        str, typer.Option(metavar="FOLDER", help="Its new folder, as the settings have it by now.")
    ],
    reason: Reason,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would happen, and change nothing.")
    ] = False,
    config: ConfigPath = None,
    as_json: Json = False,
) -> None:
    """Let a stream begin anew: all that its source has, from its start on, into a new folder.

    For a topic that was deleted and made again, or whose records were taken back. First, in the
    settings: the old folder goes below `former_folders`, and a new one is written that starts with
    a name of its own. Everything that landed before stays as it is, with its flags, certificates
    and commit records, and is still verified and audited.

    Exit code 0: begun, or with --dry-run: it would be; 1: it was already, or somebody works on it;
    2: settings and command do not agree, or something is where it shall begin.
    """
    ambient = SystemAmbient()
    with asking(config) as asked:
        own = stream_of(Installation(asked.settings, asked.here), name)
        acts = ResetActs(asked.store, asked.lake, Ledger(asked.lake, WHERE, ambient), ambient)
        by = person(reason)
        if dry_run:
            found = acts.look(own, into, asked.settings)
        else:
            found = acts.reset(own, into, asked.settings, by)
        see = command("status", asked.here, name)
    if as_json:
        body = {"is_changed": found is not None and not dry_run, "is_dry_run": dry_run}
        told = None if found is None else _reset_as_json(found)
        typer.echo(console.json_line({**body, "reset": told}))
        raise typer.Exit(0 if found is not None else 1)
    if found is None:
        _tell(f"stream {own.word} began anew before, as {own.name}", see, is_changed=False)
        return
    words = "would begin anew" if dry_run else "begins anew"
    console.talk().print(console.printable(f"stream {own.word} {words}, as {found.stream}"))
    for line in _of_both(found):
        console.results().print(console.printable(line))
    again = "the same without --dry-run" if dry_run else f"restart the nodes, then {see}"
    console.talk().print(f"next: {again}", style="dim")


def _reset_as_json(found: Reset) -> JsonObject:
    return {**asdict(found), "until": None if found.until is None else str(found.until)}


def _of_both(found: Reset) -> list[str]:
    """What becomes of the old life, and what of the new one."""
    shards, commits = many(len(found.commits), "shard"), many(sum(found.commits), "commit")
    start = "all that its source has, from its start on"
    flagged = "no hour of it has a flag"
    if found.until is not None:
        flagged = f"hours before {found.until} have their flags, and no later one waits for it"
    return [
        f"  {found.before}  ends: {shards}, {commits}, {many(found.rows, 'row')}, which stay; "
        f"{flagged}",
        f"  {found.stream}  begins: {start}, into {found.folder}",
    ]


def _tell(words: str, following: str, *, is_changed: bool) -> None:
    talk = console.talk()
    talk.print(console.printable(words if is_changed else f"{words}; nothing was changed"))
    talk.print(f"next: {following}", style="dim")
    raise typer.Exit(0 if is_changed else 1)


def _listed(asked: Asking, name: str, document: StreamDocument | None) -> Listed:
    settings = asked.settings.streams.get(name)
    return Listed(
        name,
        settings is not None,
        document is not None,
        shards_of(settings, document),
        None if document is None else document.first_hour_ms,
        None if document is None else document.paused,
        None if document is None else document.retired,
        None if settings is None else settings.source.words,
    )


def _rows(found: Sequence[Listed]) -> Rows:
    return Rows(
        ("stream", "shards", "state", "first hour", "source"),
        tuple(
            (
                console.printable(one.name),
                str(one.shards),
                _state(one),
                shown_moment(one.first_hour_ms),
                console.printable(one.source or "-"),
            )
            for one in found
        ),
        frozenset({"shards"}),
    )


def _state(one: Listed) -> str:
    if one.retired is not None:
        return "retired"
    paused = "" if one.paused is None else "paused"
    if not one.is_in_settings:
        return ", ".join(filter(None, (paused, "not in the settings")))
    return paused or ("in use" if one.is_started else "not started")
