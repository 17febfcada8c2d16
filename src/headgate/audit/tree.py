"""Tree: the folders of a stream that hold data files, found by the folder template, lazily.

A folder whose name is fixed is not looked for among its neighbours: an hour that many streams share
is not listed once for each of them.
"""

from collections.abc import Iterator

from headgate.lake import Lake
from headgate.lake.pages import entries_of
from headgate.lake.paths import join, name_of
from headgate.landing import StreamSettings
from headgate.landing.names import DEAD, LATE
from headgate.periods import escape_name

DEAD_DEPTH = 2  # _dead/<stream>/<date>/late


def data_folders(lake: Lake, settings: StreamSettings) -> Iterator[str]:
    """Of hours, on time and late, and of dead letters. Some may be empty. Raises Unavailable."""
    yield from _below(lake, settings, "", 0)
    yield from _below(lake, settings, LATE, 0)
    yield from _dead_below(lake, f"{DEAD}/{escape_name(settings.name)}", DEAD_DEPTH)


def _below(lake: Lake, settings: StreamSettings, folder: str, depth: int) -> Iterator[str]:
    template = settings.folder
    if depth == len(template.segments):
        place = template.match(folder.removeprefix(f"{LATE}/"))
        if place is not None and place.stream == settings.name:
            yield folder
        return
    segment = template.segments[depth]
    if set(segment.symbols) <= {"stream"}:
        name = segment.render({"stream": escape_name(settings.name)})
        yield from _below(lake, settings, join(folder, name), depth + 1)
        return
    for entry in entries_of(lake, folder):
        if entry.is_folder and template.patterns[depth].fullmatch(name_of(entry.path)):
            yield from _below(lake, settings, entry.path, depth + 1)


def _dead_below(lake: Lake, folder: str, depth: int) -> Iterator[str]:
    for entry in entries_of(lake, folder):
        if entry.is_folder:
            yield entry.path
            if depth > 1:
                yield from _dead_below(lake, entry.path, depth - 1)
