"""Ddl: columns as a person declares them, `id BIGINT, at TIMESTAMP, tags ARRAY<STRING>`. Pure.

Types are those of Spark's SQL that JSON and Avro have values of. What comes out is spelled as Spark
spells it: `bigint`, `struct<a:int,b:string>`.
"""

import re
from typing import Final

from headgate.errors import Invalid
from headgate.settings.problems import nearest

Column = tuple[str, str]  # name and type

_TYPES: Final = {
    **{"boolean": "boolean", "tinyint": "tinyint", "byte": "tinyint", "smallint": "smallint"},
    **{"short": "smallint", "int": "int", "integer": "int", "bigint": "bigint", "long": "bigint"},
    **{"float": "float", "real": "float", "double": "double", "string": "string"},
    **{"binary": "binary", "date": "date", "timestamp": "timestamp"},
    **{"timestamp_ntz": "timestamp_ntz", "decimal": "decimal(10,0)"},
}
_NESTED: Final = ("array", "map", "struct")
_PIECE: Final = re.compile(r"\s*([A-Za-z_]\w*|\d+|[<>(),:])", re.ASCII)
_EXAMPLE: Final = "write it like id BIGINT, at TIMESTAMP, tags ARRAY<STRING>"
_DIGITS_MAX: Final = 38
_DEPTH_MAX: Final = 20


def columns_of(text: str) -> tuple[Column, ...]:
    """In their order. Raises Invalid."""
    return _Reader(text).columns()


class _Reader:
    def __init__(self, text: str) -> None:
        self._pieces: list[str] = []
        place = 0
        while found := _PIECE.match(text, place):
            self._pieces.append(found[1])
            place = found.end()
        if text[place:].strip():
            raise Invalid(f"cannot be read from {text[place:].strip()[:20]!r} on: {_EXAMPLE}")
        self._at = 0

    def columns(self) -> tuple[Column, ...]:
        found = self._fields("", 0)
        if self._at < len(self._pieces):
            raise Invalid(f"cannot be read from {self._next()!r} on: {_EXAMPLE}")
        return tuple(found)

    def _fields(self, colon: str, depth: int) -> list[Column]:
        found: list[Column] = []
        while True:
            name = self._word("a name")
            if colon:
                self._expect(colon)
            if name.lower() in {one.lower() for one, _ in found}:
                raise Invalid(f"{name!r} is there twice; names differ in more than their case")
            found.append((name, self._type(depth)))
            if not self._has(","):
                return found

    def _type(self, depth: int) -> str:
        word = self._word("a type")
        kind = word.lower()
        if depth > _DEPTH_MAX:
            raise Invalid(f"types lie more than {_DEPTH_MAX} deep in each other")
        if kind == "decimal" and self._has("("):
            digits = self._number()
            behind = self._number() if self._has(",") else 0
            self._expect(")")
            if not (1 <= digits <= _DIGITS_MAX and behind <= digits):
                raise Invalid(f"DECIMAL({digits}, {behind}): write at most DECIMAL(38, 38)")
            return f"decimal({digits},{behind})"
        if kind in _TYPES:
            return _TYPES[kind]
        if kind not in _NESTED:
            near = nearest(kind, [*_TYPES, *_NESTED])
            raise Invalid(
                f"{word[:40]!r} is no type; the nearest is {near.upper() if near else ''}"
            )
        self._expect("<")
        if kind == "struct":
            inner = ",".join(f"{name}:{told}" for name, told in self._fields(":", depth + 1))
        elif kind == "map":
            key = self._type(depth + 1)
            if key != "string":
                raise Invalid("the keys of a MAP are STRING")
            self._expect(",")
            inner = f"{key},{self._type(depth + 1)}"
        else:
            inner = self._type(depth + 1)
        self._expect(">")
        return f"{kind}<{inner}>"

    def _next(self) -> str:
        return self._pieces[self._at] if self._at < len(self._pieces) else "the end"

    def _word(self, what: str) -> str:
        found = self._next()
        if found == "the end" or not (found[0].isalpha() or found[0] == "_"):
            raise Invalid(f"needs {what} where {found!r} is: {_EXAMPLE}")
        self._at += 1
        return found

    def _number(self) -> int:
        found = self._next()
        if not found.isdecimal():
            raise Invalid(f"needs a number where {found!r} is: {_EXAMPLE}")
        self._at += 1
        return int(found)

    def _has(self, sign: str) -> bool:
        is_it = self._next() == sign
        self._at += is_it
        return is_it

    def _expect(self, sign: str) -> None:
        if not self._has(sign):
            raise Invalid(f"needs {sign!r} where {self._next()!r} is: {_EXAMPLE}")
