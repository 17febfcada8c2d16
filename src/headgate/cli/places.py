"""Places: how commands find settings and store, and how they name each other."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from headgate.app import Place
from headgate.cli import console
from headgate.errors import Invalid
from headgate.settings import Settings
from headgate.settings.loading import load

SETTINGS_FILE = "headgate.yaml"

StoreUrl = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="HEADGATE_STORE",
        show_envvar=True,
        help="file:PATH, zk://HOSTS/CHROOT or es://HOSTS/INDEX",
    ),
]

ConfigPath = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="PATH",
        envvar="HEADGATE_CONFIG",
        show_envvar=True,
        help="The settings file; ./headgate.yaml if it is there.",
    ),
]


def command(verb: str, place: Place, *words: str, options: Sequence[str] = ()) -> str:
    """A command for this cluster, for a person to copy into a shell."""
    where = [*options, "--store", place.url]
    if place.namespace != "default":
        where += ["--namespace", place.namespace]
    if any(word.startswith("-") for word in words):  # a name like this looks like an option
        arguments = [*where, "--", *words]
    else:
        arguments = [*words, *where]
    return console.printable(shlex.join(["headgate", *verb.split(), *arguments]))


def named_settings(config: Path | None) -> Path:
    """The settings file, whether it is there or not. Raises Invalid if nobody named one."""
    path = found_settings(config)
    if path is None:
        raise Invalid(
            f"no settings: there is no {SETTINGS_FILE} here; next: headgate init, or name one with "
            "--config PATH"
        )
    return path


def found_settings(config: Path | None) -> Path | None:
    """--config or HEADGATE_CONFIG (both are in `config`), else ./headgate.yaml if it is there."""
    if config is None and Path(SETTINGS_FILE).exists():
        return Path(SETTINGS_FILE)
    return config


def settings_of(config: Path | None) -> Settings | None:
    """None: nobody named a file, and there is none here. Raises Invalid."""
    path = found_settings(config)
    return None if path is None else load(path, os.environ)
