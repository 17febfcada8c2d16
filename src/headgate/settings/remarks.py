"""Remarks: what is possible, and maybe not what was meant. Pure.

A sentence each, with its place. Nothing here stops anything.
"""

from collections.abc import Iterator
from itertools import combinations

from headgate.landing import StreamSettings
from headgate.settings import Settings
from headgate.settings.problems import shown
from headgate.settings.rules import is_inside
from headgate.sources import FilesSettings, KafkaSettings
from headgate.store import url as store_url


def remarks(settings: Settings) -> list[str]:
    found = [*_whole(settings)]
    for stream in settings.streams.values():
        found += _stream(stream)
        found += _against_the_lake(stream, settings.lake.root)
    for one, other in combinations(settings.streams.values(), 2):
        found += _pair(one, other)
    return found


def _whole(settings: Settings) -> Iterator[str]:
    if not settings.streams and not settings.templates:
        yield "streams: there is none, so nothing is landed"
    url = store_url.parse(settings.store)
    if url.scheme == "memory":
        yield "store: is gone when the process ends, and no other process sees it"
    if url.scheme == "file":
        if is_inside(url.path, settings.lake.root):
            yield "store: is inside the lake; whoever cleans the lake may lose it"
        for name, stream in settings.streams.items():
            source = stream.source
            if isinstance(source, FilesSettings) and is_inside(url.path, source.path):
                yield f"store: is inside the folder that {_place(name)} reads; its files would land"


def _stream(stream: StreamSettings) -> Iterator[str]:
    at = _place(stream.name)
    rolls_up = stream.folder.rolls_up
    if not rolls_up:
        yield (
            f"{at}.folder: flags stay per stream: to roll them up over all streams, date and hour "
            "must come before {stream}, each in folders of their own"
        )
    elif "day" not in rolls_up:
        yield f"{at}.folder: hours have a folder over all streams and days have none: no day flags"
    if isinstance(stream.source, KafkaSettings):
        return
    lanes, shards = stream.source.lanes, stream.shards
    if shards > lanes:
        yield (
            f"{at}.shards: {shards:,} shards for {lanes:,} source partitions (source.lanes): at "
            f"least {shards - lanes:,} of them will never have anything to do"
        )


def _against_the_lake(stream: StreamSettings, lake: str) -> Iterator[str]:
    at = f"{_place(stream.name)}.source"
    if not isinstance(stream.source, FilesSettings):
        return
    if is_inside(stream.source.path, lake):
        yield f"{at}.path: is inside the lake, where files are taken for landed ones"
    elif is_inside(lake, stream.source.path):
        yield f"{at}.path: the lake is inside this folder: what is landed would be read again"
    if stream.source.move_to and is_inside(stream.source.move_to, lake):
        yield f"{at}.move_to: is inside the lake, where files are taken for landed ones"


def _pair(one: StreamSettings, other: StreamSettings) -> Iterator[str]:
    first, second = one.source, other.source
    if not (isinstance(first, FilesSettings) and isinstance(second, FilesSettings)):
        return
    if not (is_inside(first.path, second.path) or is_inside(second.path, first.path)):
        return
    is_taking = {first.after_read, second.after_read} != {"keep"}
    worse = "; one takes files away that the other may not have read yet" if is_taking else ""
    yield (
        f"{_place(other.name)}.source.path: {_place(one.name)} reads there, too: each file lands "
        f"in both, unless include and exclude tell them apart{worse}"
    )


def _place(stream: str) -> str:
    return shown(("streams", stream))
