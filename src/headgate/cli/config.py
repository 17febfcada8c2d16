"""Config commands: judge and show the settings. Nothing here changes anything."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from headgate.ambient import SystemAmbient
from headgate.cli import console
from headgate.cli.places import ConfigPath, named_settings
from headgate.errors import Invalid
from headgate.settings.loading import Judged, judge, message, read
from headgate.settings.model import schema
from headgate.settings.problems import Place, Problem, shown
from headgate.settings.remarks import remarks
from headgate.settings.surroundings import obstacles, surroundings
from headgate.store import JsonObject

app = typer.Typer(no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="For programs: one JSON object.")]


@app.callback()
def group() -> None:
    """Judge and show the settings file.

    It is --config PATH, else HEADGATE_CONFIG, else ./headgate.yaml.
    """


@app.command("check")
def check(
    config: ConfigPath = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="Also ask Spark whether it takes expressions in SQL.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say everything that is wrong with the settings, and what may not be meant so.

    With --spark the filters of outputs and event times in SQL are judged by Spark, without a
    record; that takes some seconds, and Java. Exit code 0: fine, maybe with remarks; 2: invalid.
    """
    path = named_settings(config)
    found = _here(_judged(path))
    if spark:
        found = _by_spark(found)
    said = (
        [] if found.settings is None else [*remarks(found.settings), *surroundings(found.settings)]
    )
    if as_json:
        answer: JsonObject = {
            "path": str(path),
            "is_valid": found.settings is not None,
            "problems": [_as_json(problem) for problem in found.problems],
            "remarks": said,
        }
        typer.echo(console.json_line(answer))
    elif found.settings is None:
        raise Invalid(message(path, found.problems))
    else:
        out = console.results()
        words = "valid, with remarks" if said else "valid"
        style = "yellow" if said else "green"
        out.print(Text.assemble((words, style), f"   {console.printable(str(path))}"))
        for remark in said:
            out.print(console.printable(f"  {remark}"))
    raise typer.Exit(2 if found.settings is None else 0)


@app.command("show")
def show(config: ConfigPath = None, as_json: Json = False) -> None:
    """Show every value in force, and where it comes from. Secrets are shown as references."""
    path = named_settings(config)
    found = _judged(path)
    if found.settings is None:
        raise Invalid(message(path, found.problems))
    if as_json:
        values: list[JsonObject] = [
            {"place": shown(one.place), "value": one.value, "origin": one.origin}
            for one in found.values
        ]
        typer.echo(console.json_line({"path": str(path), "values": values}))
        return
    out = console.results()
    rows = [(shown(one.place), _spelled(one.value), one.origin) for one in found.values]
    place_width, value_width = (max(len(row[i]) for row in rows) for i in (0, 1))
    for place, value, origin in rows:
        row = (f"{place:{place_width}}  ", (f"{value:{value_width}}  ", "cyan"), (origin, "dim"))
        out.print(Text.assemble(*row))


@app.command("schema")
def print_schema() -> None:
    """Print the JSON Schema of the settings file, for editors and other checkers."""
    typer.echo(json.dumps(schema(), indent=2))


def _judged(path: Path) -> Judged:
    return judge(read(path), str(path.absolute().parent), os.environ)


def _here(found: Judged) -> Judged:
    """The same, with what cannot work on this machine as problems."""
    if found.settings is None:
        return found
    origins = {one.place: one.origin for one in found.values}
    problems = tuple(_placed(one, origins) for one in obstacles(found.settings))
    return Judged(problems) if problems else found


def _by_spark(found: Judged) -> Judged:
    """The same, with the expressions that Spark refuses as problems. Raises Unavailable."""
    if found.settings is None:
        return found
    from headgate.app.judging import refused_by_spark  # only who asks for it needs Spark

    refused = refused_by_spark(found.settings, SystemAmbient())
    problems = tuple(
        Problem(("streams", name), words.removeprefix(f"stream {name}: "))
        for name, words in refused.items()
    )
    return Judged(problems) if problems else found


def _placed(problem: Problem, origins: Mapping[Place, str]) -> Problem:
    origin = origins.get(problem.place) or origins.get((*problem.place, "root"), "")
    if origin.startswith("line "):
        return replace(problem, line=int(origin.removeprefix("line ")))
    return replace(problem, variable="" if origin == "default" else origin)


def _spelled(value: object) -> str:
    return console.printable(value if isinstance(value, str) else json.dumps(value))


def _as_json(problem: Problem) -> JsonObject:
    return {
        "place": shown(problem.place),
        "words": problem.words,
        "line": problem.line or None,
        "variable": problem.variable or None,
    }
