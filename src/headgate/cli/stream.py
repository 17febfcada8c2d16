"""Stream commands: which there are; pause one, and let it go on."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import typer

from headgate.cli import console
from headgate.cli.asking import Asking, Reason, StreamName, asking, person
from headgate.cli.moments import shown_moment
from headgate.cli.places import ConfigPath, command
from headgate.cli.store import Json
from headgate.cli.tables import Rows, show
from headgate.landing.stream_document import Pause, StreamDocument
from headgate.status.streams import shards_of

app = typer.Typer(no_args_is_help=True)


@dataclass(frozen=True, slots=True)
class Listed:
    name: str
    is_in_settings: bool
    is_started: bool
    shards: int
    first_hour_ms: int | None
    paused: Pause | None
    source: str | None  # its path


@app.callback()
def group() -> None:
    """List streams; pause one, and let it go on."""


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
        talk = console.talk()
        talk.print("no streams; next: write one into the settings, then headgate config check")
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
        None if settings is None else settings.source.path,
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
    if one.paused is not None:
        return "paused"
    if not one.is_in_settings:
        return "not in these settings"
    return "in use" if one.is_started else "not started"
