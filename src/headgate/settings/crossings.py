"""Crossings: what one part of the settings says about another. Pure.

They look at the tree as it was typed, as far as its shape lets them: so they say what they have to
say together with all other problems, not after those are gone.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from headgate.errors import Invalid
from headgate.periods import DEFAULT_FOLDER, FolderTemplate, Period, escape_name
from headgate.settings.problems import Place, Problem, nearest
from headgate.settings.secrecy import guarded


def crossings(tree: Mapping[str, Any]) -> list[Problem]:
    streams, tables = _mapping(tree.get("streams")), _mapping(tree.get("tables"))
    conf = _mapping(_mapping(tree.get("spark")).get("conf"))
    return [
        *_alike(streams),
        *(found for name, one in streams.items() for found in _folder(name, _mapping(one))),
        *(found for name, one in streams.items() for found in _event_time(name, _mapping(one))),
        *(found for name, one in tables.items() for found in _feed(name, _mapping(one), streams)),
        *_bare_secrets(conf, ("spark", "conf")),
        *(
            found
            for name, one in streams.items()
            for found in _bare_secrets(_mapping(one).get("steps"), ("streams", name, "steps"))
        ),
    ]


def _alike(streams: Mapping[str, Any]) -> Iterator[Problem]:
    spelled: dict[str, str] = {}
    for name in streams:
        try:
            folded = escape_name(name).casefold()
        except Invalid:
            continue  # refused as a name
        first = spelled.setdefault(folded, name)
        if first != name:
            words = (
                f"differs from {first!r} only in upper and lower case, and some file systems "
                "would give both one folder: rename one"
            )
            yield Problem(("streams", name), words)


def _folder(name: str, stream: Mapping[str, Any]) -> Iterator[Problem]:
    """Whether the name fits into a folder's name."""
    try:
        template = FolderTemplate.parse(str(stream.get("folder") or DEFAULT_FOLDER))
    except Invalid:
        return  # refused as a folder
    try:
        template.folder(Period(0, "hour"), stream=name, shard=0)
    except Invalid as error:
        yield Problem(("streams", name), str(error))


def _event_time(name: str, stream: Mapping[str, Any]) -> Iterator[Problem]:
    """Whether records of this format have what the event time is taken from."""
    kind = _mapping(stream.get("source")).get("format", "json")
    impossible = {
        "json": {"column": "json, regex or sql"},
        "text": {"column": "json, regex or sql"},
        "csv": {"json": "column, regex or sql"},
        "parquet": {"json": "column or sql", "regex": "column or sql"},
    }
    for by, others in impossible.get(str(kind), {}).items():
        if by in _mapping(stream.get("event_time")):
            words = f"has no meaning for {kind} files: use {others}"
            yield Problem(("streams", name, "event_time", by), words)


def _feed(name: str, table: Mapping[str, Any], streams: Mapping[str, Any]) -> Iterator[Problem]:
    stream = _mapping(table.get("feed")).get("stream")
    if isinstance(stream, str) and stream not in streams:
        near = nearest(stream, streams)
        hint = f"the nearest is {near!r}" if near else "there is no stream at all"
        yield Problem(("tables", name, "feed", "stream"), f"there is no stream {stream!r}; {hint}")


def _bare_secrets(value: Any, place: Place, key: str = "") -> Iterator[Problem]:
    if isinstance(value, Mapping):
        for name, below in value.items():
            yield from _bare_secrets(below, (*place, name), name)
    elif isinstance(value, list):
        for i, below in enumerate(value):
            yield from _bare_secrets(below, (*place, i), key)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            guarded(key, str(value))
        except Invalid as error:
            yield Problem(place, str(error))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
