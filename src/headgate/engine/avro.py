"""Avro: what is read of a record, and by which expressions. Pure.

    schema of the writer ── only the fields that somebody wants ──▶ schema of the reader

Spark's `from_avro` makes a struct of nulls of a record that it cannot decode, and so could be a
good one. Therefore each schema stands in a record of its own with one field, which adds no byte: if
that field is null, the record is not what its schema says. What nobody wants is skipped, not made;
and yet its bytes must be there.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headgate.engine.sql import name, text
from headgate.errors import Invalid

HEADER_BYTES: Final = 5  # of a framed record: a zero, and the id of its schema

_WHOLE: Final = "headgate_whole"
_RECORD: Final = "record"
_PRIMITIVE: Final[Mapping[str, str]] = {
    **{"boolean": "boolean", "int": "int", "long": "bigint", "float": "float"},
    **{"double": "double", "string": "string", "bytes": "binary"},
}
_LOGICAL: Final[Mapping[tuple[str, str], str]] = {
    ("int", "date"): "date",
    ("long", "timestamp-millis"): "timestamp",
    ("long", "timestamp-micros"): "timestamp",
    ("long", "local-timestamp-millis"): "timestamp_ntz",
    ("long", "local-timestamp-micros"): "timestamp_ntz",
}
# A reader that wants nothing wants this, which no writer has.
_NOTHING: Final = {"name": "headgate_nothing", "type": ["null", "int"], "default": None}

Node = Any  # of a schema: a name, a list of alternatives, or an object
Path = tuple[str, ...]


class Schema:
    """Of a record, as its writer has it. Names in it are whole, so that its parts stand alone."""

    def __init__(self, schema: str) -> None:
        """Raises Invalid: it is none, or none of a record."""
        try:
            found = json.loads(schema)
        except ValueError as error:
            raise Invalid(f"is no Avro schema: it is no JSON ({error})") from error
        if not isinstance(found, dict) or found.get("type") != _RECORD:
            raise Invalid(
                "is no Avro schema of a record, like {type: record, name: …, fields: […]}"
            )
        self._names: dict[str, Node] = {}
        try:
            self._root = self._spelled(found, "")
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Invalid(f"is no Avro schema: {error!r} is missing or wrong") from error
        self.text = _wrapped(found)

    def type_at(self, path: Path) -> str:
        """In the words of Spark; "": there is no such field, or it can be of several types."""
        node = self._at(path)
        return "" if node is None else self._spark_type(node, ())

    def has(self, path: Path) -> bool:
        return self._at(path) is not None

    def logical_at(self, path: Path) -> str:
        node = self._alternative(self._at(path))
        return str(node.get("logicalType", "")) if isinstance(node, dict) else ""

    def reader(self, paths: Collection[Path]) -> str:
        """For whoever wants no more than these."""
        wanted: dict[str, Any] = {}
        for path in paths:
            if self._at(path) is not None:
                below = wanted
                for step in path:
                    below = below.setdefault(step, {})
        if not wanted:
            return _wrapped({"type": _RECORD, "name": self._root["name"], "fields": [_NOTHING]})
        try:
            return _wrapped(self._cut(self._root, wanted, set()))
        except _Twice:
            return self.text

    def _spelled(self, node: Node, space: str) -> Node:
        """With whole names everywhere."""
        if isinstance(node, list):
            return [self._spelled(one, space) for one in node]
        if isinstance(node, str):
            return node if node in _PRIMITIVE or node == "null" else _whole_name(node, space)
        kind = node["type"]
        if kind in ("record", "error", "enum", "fixed"):
            own = _whole_name(node["name"], str(node.get("namespace", space)))
            found = {**node, "name": own}
            found.pop("namespace", None)
            self._names[own] = found
            if "fields" in node:
                below = own.rpartition(".")[0]
                found["fields"] = [
                    {**one, "type": self._spelled(one["type"], below)} for one in node["fields"]
                ]
            return found
        if kind == "array":
            return {**node, "items": self._spelled(node["items"], space)}
        if kind == "map":
            return {**node, "values": self._spelled(node["values"], space)}
        if isinstance(kind, str) and kind in _PRIMITIVE:
            return node
        return self._spelled(kind, space)

    def _meant(self, node: Node) -> Node:
        return self._names.get(node, node) if isinstance(node, str) else node

    def _alternative(self, node: Node) -> Node:
        """The only one beside null; None: there are several."""
        node = self._meant(node)
        if not isinstance(node, list):
            return node
        found = [one for one in node if one != "null"]
        if {*map(str, found)} == {"int", "long"}:
            return "long"
        if {*map(str, found)} == {"float", "double"}:
            return "double"
        return self._meant(found[0]) if len(found) == 1 else None

    def _at(self, path: Path) -> Node:
        node: Node = self._root
        for step in path:
            node = self._alternative(node)
            if not isinstance(node, dict) or "fields" not in node:
                return None
            node = next((one["type"] for one in node["fields"] if one["name"] == step), None)
        return node

    def _cut(self, node: Node, wanted: Mapping[str, Any], made: set[str]) -> Node:
        if not wanted:
            return self._copied(node, made)
        node = self._meant(node)
        if isinstance(node, list):
            return [one if one == "null" else self._cut(one, wanted, made) for one in node]
        self._claim(node["name"], made)
        fields = [
            {"name": one["name"], "type": self._cut(one["type"], wanted[one["name"]], made)}
            for one in node["fields"]
            if one["name"] in wanted
        ]
        return {"type": _RECORD, "name": node["name"], "fields": fields}

    def _claim(self, own: str, made: set[str]) -> None:
        if own in made:
            raise _Twice
        made.add(own)

    def _copied(self, node: Node, made: set[str]) -> Node:
        """All of it; what was named elsewhere is written out."""
        node = self._meant(node)
        if isinstance(node, list):
            return [self._copied(one, made) for one in node]
        if not isinstance(node, dict):
            return node
        if "name" in node:
            self._claim(node["name"], made)
        found = dict(node)
        for key in ("items", "values"):
            if key in node:
                found[key] = self._copied(node[key], made)
        if "fields" in node:
            found["fields"] = [
                {"name": one["name"], "type": self._copied(one["type"], made)}
                for one in node["fields"]
            ]
        return found

    def _spark_type(self, node: Node, above: tuple[str, ...]) -> str:
        node = self._alternative(node)
        if isinstance(node, str):
            return _PRIMITIVE.get(node, "")
        if not isinstance(node, dict) or node.get("name", None) in above:
            return ""  # of several types, or a part of itself
        kind, logical = node["type"], str(node.get("logicalType", ""))
        if logical == "decimal" and kind in ("bytes", "fixed"):
            return f"decimal({node.get('precision', 0)},{node.get('scale', 0)})"
        if kind in _PRIMITIVE:
            return _LOGICAL.get((kind, logical), _PRIMITIVE[kind])
        if kind in ("enum", "fixed"):
            return "string" if kind == "enum" else "binary"
        if kind in ("array", "map"):
            below = self._spark_type(node["items" if kind == "array" else "values"], above)
            whole = f"array<{below}>" if kind == "array" else f"map<string,{below}>"
            return whole if below else ""
        inner = (*above, node["name"])
        types = [(one["name"], self._spark_type(one["type"], inner)) for one in node["fields"]]
        if not types or not all(told for _, told in types):
            return ""
        return f"struct<{','.join(f'{field}:{told}' for field, told in types)}>"


class _Twice(Exception):
    """A named type is wanted in two ways."""


def _whole_name(own: str, space: str) -> str:
    return own if "." in own or not space else f"{space}.{own}"


def _wrapped(node: Node) -> str:
    fields = [{"name": _RECORD, "type": node}]
    return json.dumps({"type": _RECORD, "name": _WHOLE, "fields": fields})


@dataclass(frozen=True, slots=True)
class Decoder:
    """Reads records of one schema."""

    id: int | None  # None: of all records
    schema: Schema
    paths: tuple[Path, ...]  # what is wanted of it

    @property
    def column(self) -> str:
        return f"avro_{0 if self.id is None else self.id}"

    def at(self, path: Path) -> str:
        """The field, in a row that has the column."""
        return ".".join([self.column, *map(name, path)])

    def decoded(self, body: str) -> str:
        """What is wanted of these bytes; null: they are not what the schema says."""
        options = f"map('mode', 'PERMISSIVE', 'avroSchema', {text(self.schema.reader(self.paths))})"
        return f"from_avro({body}, {text(self.schema.text)}, {options}).{_RECORD}"


def decoders_of(
    schemas: Mapping[int, str], paths: Sequence[Path], *, is_by_id: bool
) -> tuple[Decoder, ...]:
    """In the order of ids. Raises Invalid."""
    return tuple(
        Decoder(number if is_by_id else None, Schema(schemas[number]), tuple(paths))
        for number in sorted(schemas)
    )


def path_of(field: str) -> Path:
    """Of a field as the settings name it."""
    return tuple(field.split("."))
