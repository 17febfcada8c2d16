"""Wording: from what a check said to a sentence for a person. Pure.

A value is repeated only where it cannot be a secret: numbers, choices, and texts whose own rule
says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate.settings.keys import Schema, known_keys
from headgate.settings.problems import Place, Problem, nearest, quoted


@dataclass(frozen=True, slots=True)
class Error:
    """What a check of the model said, not yet in words."""

    kind: str
    place: Place
    given: object  # may be a secret
    facts: Mapping[str, Any]


_NEEDED = {
    "string_type": 'needs a text: put "…" around it',
    "bool_type": "needs true or false",
    "int_type": "needs a whole number",
    "int_parsing": "needs a whole number",
    "int_from_float": "needs a whole number",
    "int_parsing_size": "is too large",
    "dict_type": "needs keys of its own below it",
    "model_type": "needs keys of its own below it",
    "model_attributes_type": "needs keys of its own below it",
    "tuple_type": "needs a list: write [a, b]",
    "list_type": "needs a list: write [a, b]",
}


def worded(error: Error, schema: Schema) -> Problem:
    is_name = len(error.place) > 2 and error.place[-1] == "[key]"  # a name, not what it stands for
    place = error.place[:-1] if is_name else error.place
    place += tuple(error.facts.get("below", ()))
    return Problem(place, _words(error, place, schema))


def _words(error: Error, place: Place, schema: Schema) -> str:
    if error.kind == "extra_forbidden":
        return _unknown(place, schema)
    if error.kind == "missing":
        return "is missing"
    if error.given is None:
        return "is empty: write a value, or leave the key out"
    if error.kind == "refused":
        return str(error.facts["words"])
    if error.kind == "literal_error":
        expected = str(error.facts["expected"])
        near = nearest(
            str(error.given), expected.replace(" or ", ", ").replace("'", "").split(", ")
        )
        return f"{quoted(error.given)} is none of {expected}; the nearest is {near!r}"
    if error.kind in ("greater_than_equal", "less_than_equal"):
        bound = error.facts.get("ge", error.facts.get("le"))
        side = "at least" if "ge" in error.facts else "at most"
        return f"must be {side} {bound:,}, not {quoted(error.given)}"
    return _NEEDED.get(error.kind, f"is not possible ({error.kind.replace('_', ' ')})")


def _unknown(place: Place, schema: Schema) -> str:
    *above, key = place
    near = nearest(str(key), known_keys(schema, tuple(above)))
    return f"unknown key {quoted(key)}; the nearest known one is {near!r}"
