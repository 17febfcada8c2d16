"""Init: writes an example to begin with. It never touches what is there."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli import console
from headgate.errors import Invalid
from headgate.settings.example import EXAMPLE


def init(
    path: Annotated[
        Path, typer.Argument(metavar="[PATH]", help="A file, or a folder to put it into.")
    ] = Path("headgate.yaml"),
) -> None:
    """Write an example of a settings file, with a comment for every key.

    What is there already is never changed: then the exit code is 2.
    """
    file = path / "headgate.yaml" if path.is_dir() else path
    check = shlex.join(["headgate", "config", "check", "--config", str(file)])
    try:
        with file.open("x", encoding="utf-8") as written:
            written.write(EXAMPLE)
    except FileExistsError as error:
        raise Invalid(f"{file} is there already and stays as it is; next: {check}") from error
    except FileNotFoundError as error:
        folder = shlex.quote(str(file.parent))
        raise Invalid(f"{file.parent} is no folder; next: mkdir -p {folder}") from error
    except OSError as error:
        raise Invalid(
            f"{file} cannot be written ({error.strerror}); next: headgate init OTHER_PATH"
        ) from error
    typer.echo(console.printable(str(file)))
    talk = console.talk()
    talk.print(console.printable(f"next: write what you have into it, then {check}"), style="dim")
