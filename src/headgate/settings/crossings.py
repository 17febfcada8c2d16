"""Crossings: what one part of the settings says about another. Pure.

They look at the tree as it was typed, as far as its shape lets them: so they say what they have to
say together with all other problems, not after those are gone.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations
from typing import Any

from headgate.commits.roots import root_name
from headgate.engine.codecs import CODECS
from headgate.engine.rows import EXTRA_COLUMNS, OURS
from headgate.errors import Invalid
from headgate.periods import DEFAULT_FOLDER, FolderTemplate, Period, escape_name, life_name
from headgate.settings.ddl import columns_of
from headgate.settings.problems import Place, Problem, nearest, shown
from headgate.settings.rules import absolute, is_inside, lake_root
from headgate.settings.secrecy import guarded
from headgate.sources.kafka.options import check_own
from headgate.sources.kafka.templates import TOPIC


def crossings(tree: Mapping[str, Any], folder: str) -> list[Problem]:
    """`folder`: where relative paths start."""
    streams, tables = _mapping(tree.get("streams")), _mapping(tree.get("tables"))
    conf = _mapping(_mapping(tree.get("spark")).get("conf"))
    return [
        *_alike(streams),
        *_taken_away(streams, folder),
        *(found for name, one in streams.items() for found in _folder(name, _mapping(one))),
        *(found for name, one in streams.items() for found in _lives(name, _mapping(one), streams)),
        *(found for name, one in streams.items() for found in _outputs(name, _mapping(one))),
        *(found for name, one in streams.items() for found in _event_time(name, _mapping(one))),
        *(found for name, one in streams.items() for found in _codec(name, _mapping(one))),
        *(found for name, one in streams.items() for found in _avro(name, _mapping(one))),
        *(found for name, one in streams.items() for found in _columns(name, _mapping(one))),
        *(found for name, one in tables.items() for found in _feed(name, _mapping(one), streams)),
        *_table_places(tables, tree.get("lake"), folder),
        *_bare_secrets(conf, ("spark", "conf")),
        *_bare_secrets(_mapping(tree.get("lake")), ("lake",)),
        *(
            found
            for name, one in streams.items()
            for found in _bare_secrets(_mapping(one).get("steps"), ("streams", name, "steps"))
        ),
        *(found for name, one in streams.items() for found in _kafka(name, _mapping(one))),
    ]


def _alike(streams: Mapping[str, Any]) -> Iterator[Problem]:
    spelled: dict[str, tuple[str, Place]] = {}
    places: list[tuple[str, Place]] = [(name, ("streams", name)) for name in streams]
    for stream, one in streams.items():
        outputs = _mapping(_mapping(one).get("outputs"))
        places += [(name, ("streams", stream, "outputs", name)) for name in outputs]
    for name, place in places:
        try:
            folded = escape_name(name).casefold()
        except Invalid:
            continue  # refused as a name
        first, there = spelled.setdefault(folded, (name, place))
        if first != name:
            words = (
                f"differs from {first!r} only in upper and lower case, and some file systems "
                "would give both one folder: rename one"
            )
            yield Problem(place, words)
        elif there != place:
            yield Problem(place, f"{shown(there)} has this name, too: rename one")


def _taken_away(streams: Mapping[str, Any], folder: str) -> Iterator[Problem]:
    """Whether a stream removes files that another one certainly reads, too, perhaps later."""
    sources = {name: _mapping(_mapping(one).get("source")) for name, one in streams.items()}
    sources = {name: one for name, one in sources.items() if one.get("kind") != "kafka"}
    for (name, one), (other, second) in combinations(sources.items(), 2):
        try:
            path, path2 = (absolute(str(each.get("path", "")), folder) for each in (one, second))
        except Invalid:
            continue  # refused as a path
        is_taking = any(each.get("after_read", "keep") != "keep" for each in (one, second))
        reads_all = [not (each.get("include") or each.get("exclude")) for each in (one, second)]
        is_read_twice = (is_inside(path2, path) and reads_all[0]) or (
            is_inside(path, path2) and reads_all[1]
        )
        if is_taking and is_read_twice:
            words = (
                f"stream {name!r} reads there, too, and one of them takes files away that the "
                "other may not have read: give each a folder of its own, or `after_read: keep`"
            )
            yield Problem(("streams", other, "source", "path"), words)


def _folder(name: str, stream: Mapping[str, Any]) -> Iterator[Problem]:
    """Whether the name fits into a folder's name."""
    try:
        template = FolderTemplate.parse(str(stream.get("folder") or DEFAULT_FOLDER))
    except Invalid:
        return  # refused as a folder
    outputs = _mapping(stream.get("outputs"))
    places: list[Place] = [("streams", name), *(("streams", name, "outputs", o) for o in outputs)]
    for place in places:
        try:
            template.folder(Period(0, "hour"), stream=str(place[-1]), shard=0)
        except Invalid as error:
            yield Problem(place, str(error))


def _outputs(name: str, stream: Mapping[str, Any]) -> Iterator[Problem]:
    outputs = _mapping(stream.get("outputs"))
    if outputs and TOPIC in name:
        words = "are not for a template: write the streams of its topics by themselves"
        yield Problem(("streams", name, "outputs"), words)
    kind = _mapping(stream.get("source")).get("format", "json")
    for output, one in outputs.items():
        if "json" in _mapping(one) and kind not in ("json", "text"):
            words = f"has no meaning for {kind}: write a filter"
            yield Problem(("streams", name, "outputs", output, "json"), words)


def _lives(name: str, stream: Mapping[str, Any], streams: Collection[str]) -> Iterator[Problem]:
    """Whether each life of a stream has a name and a root of its own."""
    former = stream.get("former_folders")
    if not isinstance(former, list) or not former:
        return
    place = ("streams", name, "former_folders")
    if TOPIC in name:
        words = "is not for a template: write the stream of the topic that began anew by itself"
        yield Problem(place, words)
    for life in range(2, len(former) + 2):
        if life_name(name, life) in streams:
            words = f"there is a stream {life_name(name, life)!r}, which is what its life {life} is"
            yield Problem(place, f"{words} called: rename one")
    try:
        folder, *others = (
            FolderTemplate.parse(str(one)) for one in (stream.get("folder", ""), *former)
        )
    except Invalid:
        if "folder" not in stream:
            words = "is missing: a stream that begins anew needs a new folder, beside its former"
            yield Problem(("streams", name, "folder"), words)
        return  # else refused as a folder
    if folder.segments[0].symbols:
        words = (
            "a stream that begins anew needs a folder that starts with a name of its own, like "
            f"again/{DEFAULT_FOLDER}"
        )
        yield Problem(("streams", name, "folder"), words)
    if len({root_name(one) for one in (folder, *others)}) <= len(others):
        words = "has the same root as a former folder: old and new flags would lie in each other"
        yield Problem(("streams", name, "folder"), words)


def _event_time(name: str, stream: Mapping[str, Any]) -> Iterator[Problem]:
    """Whether records of this format have what the event time is taken from."""
    source = _mapping(stream.get("source"))
    kind = source.get("format", "json")
    is_kafka = source.get("kind") == "kafka"
    if "kafka" in _mapping(stream.get("event_time")) and not is_kafka:
        words = "only a source of kind kafka has it: use json, regex, column or sql"
        yield Problem(("streams", name, "event_time", "kafka"), words)
    impossible = {
        "json": {"column": "json, regex or sql"},
        "text": {"column": "json, regex or sql"},
        "csv": {"json": "column, regex or sql"},
        "parquet": {"json": "column or sql", "regex": "column or sql"},
        "binary": {"json": "kafka or sql", "regex": "kafka or sql", "column": "kafka or sql"},
        "avro": {one: "avro, kafka or sql" for one in ("json", "regex", "column")},
    }
    if "avro" in _mapping(stream.get("event_time")) and not (is_kafka and kind == "avro"):
        words = "is for a source of kind kafka with `format: avro`"
        yield Problem(("streams", name, "event_time", "avro"), words)
    if is_kafka and kind not in ("json", "text", "binary", "avro"):
        return  # that is said where it stands
    for by, others in impossible.get(str(kind), {}).items():
        if by in _mapping(stream.get("event_time")):
            words = f"has no meaning for {kind} {'records' if is_kafka else 'files'}: use {others}"
            yield Problem(("streams", name, "event_time", by), words)


def _avro(name: str, stream: Mapping[str, Any]) -> Iterator[Problem]:
    """What cannot be with files of this format."""
    if stream.get("land_as") != "avro":
        return
    if stream.get("merge") is True:
        words = "avro files are not merged: leave it out, or land as parquet"
        yield Problem(("streams", name, "merge"), words)
    if _mapping(stream.get("source")).get("format") == "parquet":
        words = "Parquet files land as parquet or json, and not as avro"
        yield Problem(("streams", name, "land_as"), words)


def _columns(name: str, stream: Mapping[str, Any]) -> Iterator[Problem]:
    """Whether records can become these columns."""
    at, source = ("streams", name, "columns"), _mapping(stream.get("source"))
    if not isinstance(stream.get("columns"), str):
        return
    try:
        own = columns_of(str(stream["columns"]))
    except Invalid:
        return  # refused where it stands
    kind, land_as = source.get("format", "json"), stream.get("land_as", "parquet")
    if kind not in ("json", "avro"):
        yield Problem(at, f"is for json and avro records, and these are {kind}")
    if land_as not in ("parquet", "avro"):
        yield Problem(at, f"is for parquet and avro, and the stream lands as {land_as}")
    if stream.get("late_records") == "dead-letter":
        words = "dead letters are records as they came, and a late one would be columns by then: "
        yield Problem(at, f"{words}use `late_records: divert`")
    land = source.get("land") or ()
    beside = [column for extra in land for column in EXTRA_COLUMNS.get(str(extra), ())]
    for column, _ in own:
        if column.lower() in (*beside, *OURS):
            yield Problem(at, f"a column {column!r} is there already: name yours otherwise")


def _codec(name: str, stream: Mapping[str, Any]) -> Iterator[Problem]:
    """Whether files of this format can be packed like that."""
    codec, land_as = stream.get("codec"), stream.get("land_as", "parquet")
    every = {one for known in CODECS.values() for one in known}
    if codec not in every or land_as not in CODECS:
        return  # that is said where it stands
    known = CODECS[land_as]
    if codec not in known:
        words = (
            f"{land_as} is not packed by {codec}: use {' or '.join(known)}; the nearest is "
            f"{nearest(codec, known)!r}"
        )
        yield Problem(("streams", name, "codec"), words)


def _kafka(name: str, stream: Mapping[str, Any]) -> Iterator[Problem]:
    source = _mapping(stream.get("source"))
    if source.get("kind") != "kafka":
        return
    at, land_as = ("streams", name, "source"), stream.get("land_as", "parquet")
    if ("pattern" in source) != (TOPIC in name):
        words = (
            f"a stream with a pattern is a template: put {TOPIC} into its name, like "
            f"{f'{name}_{TOPIC}'!r}"
            if "pattern" in source
            else f"{TOPIC} in the name of a stream is for a source with a `pattern`"
        )
        yield Problem((*at, "pattern"), words)
    for key in ("options", "spark_options"):
        yield from _bare_secrets(source.get(key), (*at, key))
    for option in _mapping(source.get("spark_options")):
        try:
            check_own(str(option))
        except Invalid as error:
            _, _, words = str(error).partition(": ")
            yield Problem((*at, "spark_options", str(option)), words)
    if source.get("land") and land_as not in ("parquet", "avro"):
        yield Problem((*at, "land"), f"is for parquet and avro, and the stream lands as {land_as}")
    if source.get("format") in ("binary", "avro") and land_as not in ("parquet", "avro"):
        words = f"is landed as parquet or avro only, and the stream lands as {land_as}"
        yield Problem((*at, "format"), words)


def _feed(name: str, table: Mapping[str, Any], streams: Mapping[str, Any]) -> Iterator[Problem]:
    stream = _mapping(table.get("feed")).get("stream")
    named = {one: one for one in streams}  # as what records are flagged, by their stream
    for one, settings in streams.items():
        named |= dict.fromkeys(map(str, _mapping(_mapping(settings).get("outputs"))), one)
    if isinstance(stream, str) and stream not in named:
        near = nearest(stream, named)
        hint = f"the nearest is {near!r}" if near else "there is no stream at all"
        yield Problem(("tables", name, "feed", "stream"), f"there is no stream {stream!r}; {hint}")
    elif isinstance(stream, str):
        own = _mapping(streams[named[stream]])
        land_as = own.get("land_as", "parquet")
        if named[stream] == stream and own.get("outputs"):
            outputs = ", ".join(map(repr, _mapping(own["outputs"])))
            words = f"stream {stream!r} has outputs: name one of them, {outputs}"
            yield Problem(("tables", name, "feed", "stream"), words)
        if land_as != "parquet":
            words = f"stream {stream!r} lands as {land_as}, and a table takes parquet"
            yield Problem(("tables", name, "feed", "stream"), words)


def _table_places(tables: Mapping[str, Any], lake: Any, folder: str) -> Iterator[Problem]:
    """A table's folder is its own: nobody else writes there."""
    root = _mapping(lake).get("root", lake)
    taken: dict[str, str] = {}
    for name, table in tables.items():
        try:
            path = absolute(str(_mapping(table).get("path", "")), folder)
            around = lake_root(str(root), folder)
        except Invalid:
            continue  # refused as a path
        if is_inside(path, around) or is_inside(around, path):
            words = "lies in the lake, or around it: give the table a folder beside it"
            yield Problem(("tables", name, "path"), words)
        for other, first in taken.items():
            if is_inside(path, other) or is_inside(other, path):
                words = f"table {first!r} lies there, too: give each a folder of its own"
                yield Problem(("tables", name, "path"), words)
        taken[path] = name


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
