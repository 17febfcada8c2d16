"""Keys: which keys can stand where, read from the JSON Schema of the settings. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from headgate.settings.problems import Place

Schema = Mapping[str, Any]


def known_keys(schema: Schema, place: Place) -> tuple[str, ...]:
    """The keys that are known at this place; none if it holds no keys, or takes any."""
    nodes = [schema]
    for step in place:
        nodes = [below for node in nodes for below in _below(schema, node, step)]
    return tuple(
        key for node in nodes for one in _meant(schema, node) for key in one.get("properties", ())
    )


def every_key(schema: Schema) -> dict[str, list[str]]:
    """Per part of the schema, by its title: its keys. For whoever must name them all."""
    parts = [schema, *schema.get("$defs", {}).values()]
    return {part["title"]: list(part["properties"]) for part in parts if "properties" in part}


def _below(schema: Schema, node: Schema, step: str | int) -> Iterator[Schema]:
    for one in _meant(schema, node):
        if isinstance(step, int):
            found = one.get("items")
        else:
            found = one.get("properties", {}).get(step, one.get("additionalProperties"))
        if isinstance(found, Mapping):
            yield found


def _meant(schema: Schema, node: Schema) -> Iterator[Schema]:
    """A node with its references and alternatives followed."""
    if "$ref" in node:
        yield from _meant(schema, schema["$defs"][node["$ref"].rpartition("/")[2]])
    for one in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from _meant(schema, one)
    yield node
