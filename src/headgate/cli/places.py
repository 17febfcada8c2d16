"""Places: how commands for a running cluster name its store, and how they name each other."""

import shlex
from collections.abc import Sequence
from typing import Annotated

import typer

from headgate.app import Place
from headgate.cli import console

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
