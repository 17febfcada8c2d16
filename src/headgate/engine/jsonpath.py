"""Jsonpath: `$.a.b`, and patterns that take its value out of a record without a full parse.

A pattern matches a **whole** record or nothing. It matches only a JSON object whose keys have no
escapes and that is nested no deeper than it can follow; there the first value under the path is
captured. So a match proves two things at once: the record is well formed, and this is what a full
parse would have found. For everything else it does not match, and the full parse decides.

    compact  short records of plain values without a space: nearly all of most streams
    spaced   the same with a space behind each colon and comma
    nested   the rest, up to DEPTH levels beside the path

Each costs a few times what the one before it costs; the first that matches decides.

Repeated groups are possessive, and what follows a repeated character never is that character:
matching takes time linear in the record, and no stack.
"""

import re
from dataclasses import dataclass
from typing import Final

from headgate.errors import Invalid

DEPTH: Final = 3
FLAT_BYTES_MAX: Final = 1_000
"""So long is a number at most that a full parse takes; in a shorter record none can be longer."""
NESTED_BYTES_MAX: Final = 32_000
"""A full parse takes no key of more than 50,000 characters; in a shorter record none can be."""

_STEP = re.compile(r"\.([A-Za-z_$][\w$-]*)|\['(?!\*')([^'\x22\\\]?]+)'\]")
_KEY = r'"[^"\\]*"'
_STRING = r'"(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*+"'


@dataclass(frozen=True, slots=True)
class Style:
    depth: int
    number: str
    before: str  # what may stand before a colon, a comma and a closing bracket
    after: str  # and after a colon, a comma and an opening bracket

    @property
    def scalar(self) -> str:
        return rf'"[^"\\]*"|{self.number}|true|false|null|{_STRING}'


_FLAT_NUMBER = r"-?(?!0[0-9])[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
COMPACT: Final = Style(depth=0, number=_FLAT_NUMBER, before="", after="")
SPACED: Final = Style(depth=0, number=_FLAT_NUMBER, before="", after=" ?")
NESTED: Final = Style(
    depth=DEPTH,
    number=r"-?(?:0|[1-9][0-9]{0,300})(?:\.[0-9]{1,300})?(?:[eE][+-]?[0-9]{1,300})?",
    before=r"[ \t]*",
    after=r"[ \t]*",
)


def keys_of(path: str) -> tuple[str, ...]:
    """The names along a path such as `$.meta.at` or `$['created at']`. Raises Invalid."""
    rest, found = path.removeprefix("$"), list[str]()
    while (step := _STEP.match(rest)) is not None:
        found.append(step[1] or step[2])
        rest = rest[step.end() :]
    if not path.startswith(("$.", "$[")) or rest or not found:
        raise Invalid(
            f"event_time json {path!r} is no path to one value: write $.at, $.meta.at or "
            "$['created at']"
        )
    return tuple(found)


def object_pattern(style: Style) -> str:
    """Matches well-formed objects, and captures a part that is never empty."""
    return rf"\A(\{{){style.after}{_pairs(style, style.depth)}{style.before}\}}{style.before}\z"


def value_pattern(style: Style, path: str, *, is_number: bool) -> str:
    """Captures the text of the value: of a string what is between the quotes, of a number the
    number as it is written (with 15 digits at most, which a full parse gives back unchanged; of -0
    it makes 0)."""
    whole = r'(?:0|-?[1-9][0-9]{0,17})(?![0-9.eE"])'
    part = r'|-?(?=[0-9.]{3,16}[^0-9.eE"])(?:0|[1-9][0-9]*)\.[0-9]+' if is_number else ""
    # One group for both: the quotes are outside of it, and are there on both sides or on none.
    captured = rf'"?+((?<=")[^"\\]+(?=")|(?<!")(?:{whole}{part}))"?+'
    return rf"\A{_leading_to(style, keys_of(path), captured)}{style.before}\z"


def _leading_to(style: Style, keys: tuple[str, ...], captured: str) -> str:
    """An object in which the first of these keys leads on to what is captured."""
    first, *others = keys
    wanted = re.escape(first)
    inner = _leading_to(style, tuple(others), captured) if others else captured
    pair, comma = _pair(style, style.depth), rf"{style.before},{style.after}"
    earlier = rf'(?:(?!"{wanted}"){pair}{comma})*+'
    later = rf"(?:{comma}{pair})*+"
    colon = rf"{style.before}:{style.after}"
    return rf'\{{{style.after}{earlier}"{wanted}"{colon}{inner}{later}{style.before}\}}'


def _pair(style: Style, depth: int) -> str:
    return rf"{_KEY}{style.before}:{style.after}{_value(style, depth)}"


def _pairs(style: Style, depth: int) -> str:
    comma = rf"{style.before},{style.after}(?=\")"
    return rf"(?:{_pair(style, depth)}(?:{comma}|(?={style.before}\}})))*+"


def _value(style: Style, depth: int) -> str:
    if depth == 0:
        return rf"(?:{style.scalar})"
    value = _value(style, depth - 1)
    comma = rf"{style.before},{style.after}(?![ \t\]])"
    items = rf"(?:{value}(?:{comma}|(?={style.before}\])))*+"
    nested = rf"\{{{style.after}{_pairs(style, depth - 1)}{style.before}\}}"
    return rf"(?:{style.scalar}|{nested}|\[{style.after}{items}{style.before}\])"
