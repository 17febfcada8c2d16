"""Overrides: environment variables that replace single values of the settings.

    HEADGATE_STORE, HEADGATE_LAKE, HEADGATE_NAMESPACE
    HEADGATE__STREAMS__ORDERS__SHIFT=1m       two underscores go one level down

A part of the name is matched with the keys that are there, and with those that could be; upper and
lower case, and what is neither letter nor digit, make no difference. A variable that matches
nothing is a problem: a slip of the pen must not leave the old value in force. An empty variable is
one that is not set.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from headgate.settings.keys import Schema, known_keys
from headgate.settings.parsed import Tree, parse_value
from headgate.settings.problems import Place, Problem, nearest, shown

PREFIX: Final = "HEADGATE__"
SHORT: Final[Mapping[str, Place]] = {
    "HEADGATE_LAKE": ("lake", "root"),
    "HEADGATE_NAMESPACE": ("namespace",),
    "HEADGATE_STORE": ("store",),
}


@dataclass(frozen=True, slots=True)
class Overridden:
    tree: Tree
    variables: Mapping[Place, str]  # which one set the value at this place
    problems: tuple[Problem, ...]


def overridden(tree: Tree, environ: Mapping[str, str], schema: Schema) -> Overridden:
    """The tree with the variables' values in it; the given one stays as it was."""
    changed, problems = deepcopy(tree), []
    variables: dict[Place, str] = {}
    for name in sorted(environ):
        text = environ[name]
        if not text or not (name in SHORT or name.startswith(PREFIX)):
            continue
        try:
            place = SHORT.get(name) or _place(name, changed, schema)
            value = _value(text)
            if variables.get(place) and _at(changed, place) != value:
                raise ValueError(f"{variables[place]} says something else: unset one of them")
            _put(changed, place, value)
            variables[place] = name
        except ValueError as error:
            problems.append(Problem((), str(error), variable=name))
    return Overridden(changed, variables, tuple(problems))


def _place(name: str, tree: Tree, schema: Schema) -> Place:
    place: Place = ()
    for word in name.removeprefix(PREFIX).split("__"):
        below = _at(tree, place)
        present = below.keys() if isinstance(below, dict) else ()
        known = list(dict.fromkeys([*known_keys(schema, place), *present]))
        matching = [key for key in known if _folded(key) == _folded(word)]
        if not matching:
            where = f"in {shown(place)}" if place else "at the top"
            near = nearest(word, known)
            hint = f"the nearest is {near!r}" if near else "there are no keys"
            raise ValueError(f"matches no setting: no key {word!r} {where}; {hint}")
        if len(matching) > 1:
            raise ValueError(f"matches several: {', '.join(map(repr, matching))}; use the file")
        place = (*place, matching[0])
    return ("lake", "root") if place == ("lake",) else place


def _folded(text: str) -> str:
    return re.sub(r"[\W_]+", "_", text).casefold()


def _value(text: str) -> Any:
    return parse_value(text) if text[0] in "[{" else text


def _at(tree: Tree, place: Place) -> Any:
    value: Any = tree
    for step in place:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _put(tree: Tree, place: Place, value: object) -> None:
    for step in place[:-1]:
        below = tree.get(str(step))
        if step == "lake" and isinstance(below, str):  # the short way to write its root
            below = {"root": below}
        tree[str(step)] = below if isinstance(below, dict) else {}
        tree = tree[str(step)]
    tree[str(place[-1])] = value
