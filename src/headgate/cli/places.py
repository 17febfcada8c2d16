"""Places: how commands find settings and store, and how they name each other."""

import os
import shlex
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from headgate.app import Place
from headgate.app.growth import grown_from
from headgate.cli import console
from headgate.errors import Invalid
from headgate.landing import StreamSettings
from headgate.settings import Settings
from headgate.settings.loading import load
from headgate.settings.problems import nearest
from headgate.store.registry import open_store

SETTINGS_FILE = "headgate.yaml"
STORE_VARIABLE = "HEADGATE_STORE"

StoreUrl = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="URL",
        help=f"Instead of settings: file:PATH, zk://HOSTS/CHROOT or es://HOSTS/INDEX "
        f"[env var: {STORE_VARIABLE}]",
    ),
]

ClusterNamespace = Annotated[
    str,
    typer.Option("--namespace", "-n", help="Whose documents; as the settings say, else `default`."),
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


@dataclass(frozen=True, slots=True)
class Here:
    """Where a command looks: an installation by its settings, or a store alone."""

    place: Place
    settings: Settings | None = None
    options: tuple[str, ...] = ()  # that lead another command to the same place

    @property
    def url(self) -> str:
        return self.place.url

    @property
    def namespace(self) -> str:
        return self.place.namespace


def here_of(store: str, namespace: str, config: Path | None) -> Here:
    """--store, else the settings file, else HEADGATE_STORE. Raises Invalid."""
    path = None if store else found_settings(config)
    if path is not None:
        settings = _loaded(path, namespace)
        options = _config_options(path)
        if namespace and namespace != settings.namespace:
            options += ("--namespace", namespace)
        return Here(Place(settings.store, namespace or settings.namespace), settings, options)
    url = store or os.environ.get(STORE_VARIABLE, "")
    if not url:
        raise Invalid(
            f"no store: there is no {SETTINGS_FILE} here, and neither --store nor "
            f"{STORE_VARIABLE} names one; next: headgate init, or name one with --store URL"
        )
    place = Place(url, namespace or "default")
    return Here(place, None, place_options(place))


@dataclass(frozen=True, slots=True)
class Installation:
    """What the commands about streams need: settings that are known to be possible."""

    settings: Settings
    here: Here


def installation_of(config: Path | None) -> Installation:
    """Raises Invalid."""
    path = named_settings(config)
    settings = _loaded(path)
    place = Place(settings.store, settings.namespace)
    return Installation(settings, Here(place, settings, _config_options(path)))


def _loaded(path: Path, namespace: str = "") -> Settings:
    """With the streams of templates that nodes have found so far. Raises Invalid, Unavailable."""
    settings = load(path, os.environ)
    if not settings.templates:
        return settings
    with closing(open_store(settings.store, namespace or settings.namespace)) as store:
        return grown_from(settings, store)


def place_options(place: Place) -> tuple[str, ...]:
    named = () if place.namespace == "default" else ("--namespace", place.namespace)
    return ("--store", place.url, *named)


def _config_options(path: Path) -> tuple[str, ...]:
    is_default = path.absolute() == Path(SETTINGS_FILE).absolute()
    return () if is_default else ("--config", str(path))


def command(verb: str, where: Place | Here, *words: str, options: Sequence[str] = ()) -> str:
    """A command for this cluster, for a person to copy into a shell."""
    leading = where.options if isinstance(where, Here) else place_options(where)
    arguments = [*options, *leading]
    if any(word.startswith("-") for word in words):  # a name like this looks like an option
        arguments += ["--", *words]
    else:
        arguments = [*words, *arguments]
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


def stream_of(asked: Installation, stream: str) -> StreamSettings:
    """Raises Invalid."""
    found = asked.settings.every.get(asked.settings.called(stream))
    if found is None:
        near = nearest(stream, asked.settings.streams)
        hint = f"the nearest is {near!r}" if near else "there is none at all"
        listed = command("stream ls", asked.here)
        raise Invalid(f"no stream {stream!r} in the settings: {hint}; next: {listed}")
    return found
