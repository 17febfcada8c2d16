"""Loading: from a file and the environment to settings, or to every problem at once.

`judge` is pure, `load` reads the file. Nothing else on this machine is looked at: whether folders
are there is another question (`surroundings`).
"""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headgate.errors import Invalid
from headgate.settings import Settings
from headgate.settings.composed import composed
from headgate.settings.crossings import crossings
from headgate.settings.model import File, dumped, judged, schema
from headgate.settings.overrides import Overridden, overridden
from headgate.settings.parsed import Parsed, parse
from headgate.settings.problems import Place, Problem
from headgate.settings.wording import worded


@dataclass(frozen=True, slots=True)
class Value:
    """One setting in force. A secret is a reference here."""

    place: Place
    value: Any
    origin: str  # `line 7`, the name of a variable, or `default`


@dataclass(frozen=True, slots=True)
class Judged:
    """Settings and their values, or problems."""

    problems: tuple[Problem, ...]
    settings: Settings | None = None
    values: tuple[Value, ...] = ()


def load(path: Path, environ: Mapping[str, str]) -> Settings:
    """Raises Invalid, with every problem and the next command."""
    found = judge(read(path), str(path.absolute().parent), environ)
    if found.settings is None:
        raise Invalid(message(path, found.problems))
    return found.settings


def read(path: Path) -> bytes:
    """Raises Invalid."""
    named = shlex.quote(str(path))
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise Invalid(f"{path}: there is no such file; next: headgate init {named}") from error
    except OSError as error:
        raise Invalid(f"{path}: cannot be read ({error.strerror}); next: ls -ld {named}") from error
    except ValueError as error:  # a NUL in the path
        raise Invalid(
            "no file has such a name; next: headgate config check --config PATH"
        ) from error


def message(path: Path, problems: tuple[Problem, ...]) -> str:
    count = "1 problem" if len(problems) == 1 else f"{len(problems):,} problems"
    listed = "\n".join(f"  {problem}" for problem in problems)
    check = shlex.join(["headgate", "config", "check", "--config", str(path)])
    return f"{path}: {count}, so nothing of it is used\n{listed}\nnext: correct it, then {check}"


def judge(raw: bytes, folder: str, environ: Mapping[str, str]) -> Judged:
    """`folder`: absolute, where relative paths start. Pure."""
    parsed = parse(raw)
    if parsed.problems and not parsed.tree:  # nothing was understood
        return Judged(parsed.problems)
    given = overridden(parsed.tree, environ, schema())
    file = judged(given.tree, folder)
    crossed = crossings(given.tree, folder)
    if isinstance(file, File) and not (parsed.problems or given.problems or crossed):
        return Judged((), composed(file), tuple(_values(dumped(file), (), parsed, given)))
    errors = [] if isinstance(file, File) else [worded(error, schema()) for error in file]
    named = [_with_origin(one, parsed, given) for one in (*errors, *crossed)]
    # What could not be read is no second problem at the same place.
    said = {problem.place for problem in parsed.problems}
    named = [problem for problem in named if problem.place not in said]
    problems = dict.fromkeys((*parsed.problems, *given.problems, *named))
    return Judged(tuple(sorted(problems, key=lambda one: (one.line or 10**9, one.variable))))


def _with_origin(problem: Problem, parsed: Parsed, given: Overridden) -> Problem:
    variable, line = _origin(problem.place, parsed, given)
    return replace(problem, variable=variable, line=0 if variable else line)


def _origin(place: Place, parsed: Parsed, given: Overridden) -> tuple[str, int]:
    """The variable and the line of this place, or of what is nearest above it."""
    above = [place[:depth] for depth in range(len(place), 0, -1)]
    variable = next((given.variables[one] for one in above if one in given.variables), "")
    return variable, next((parsed.lines[one] for one in above if one in parsed.lines), 0)


def _values(value: Any, place: Place, parsed: Parsed, given: Overridden) -> Iterator[Value]:
    if isinstance(value, dict) and value:
        for key, below in value.items():
            yield from _values(below, (*place, key), parsed, given)
        return
    is_given = _is_given(given.tree, place)
    if is_given or value not in (None, "", [], {}):
        variable, line = _origin(place, parsed, given)
        yield Value(place, value, (variable or f"line {line}") if is_given else "default")


def _is_given(tree: object, place: Place) -> bool:
    for step in place:
        if place == ("lake", "root") and isinstance(tree, str):
            return True
        if not isinstance(tree, dict) or step not in tree:
            return False
        tree = tree[step]
    return True
