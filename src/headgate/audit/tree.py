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
from headgate.periods import FolderTemplate, Period, escape_name

DEAD_DEPTH = 2  # _dead/<stream>/<date>/late


def data_folders(lake: Lake, settings: StreamSettings) -> Iterator[str]:
    """Of hours, on time and late, and of dead letters. Some may be empty. Raises Unavailable."""
    yield from hour_folders(lake, settings.name, settings.folder)
    yield from hour_folders(lake, settings.name, settings.folder, LATE)
    yield from _dead_below(lake, f"{DEAD}/{escape_name(settings.name)}", DEAD_DEPTH)


def hour_folders(
    lake: Lake, stream: str, template: FolderTemplate, root: str = "", depth: int = 0
) -> Iterator[str]:
    """Data folders of a stream's hours below this one. Some may not be there."""
    if depth == len(template.segments):
        place = template.match(root.removeprefix(f"{LATE}/"))
        if place is not None and place.stream == stream:
            yield root
        return
    segment = template.segments[depth]
    if set(segment.symbols) <= {"stream"}:
        name = segment.render({"stream": escape_name(template.word_of(stream))})
        yield from hour_folders(lake, stream, template, join(root, name), depth + 1)
        return
    for entry in entries_of(lake, root):
        if entry.is_folder and template.patterns[depth].fullmatch(name_of(entry.path)):
            yield from hour_folders(lake, stream, template, entry.path, depth + 1)


def _dead_below(lake: Lake, folder: str, depth: int) -> Iterator[str]:
    for entry in entries_of(lake, folder):
        if entry.is_folder:
            yield entry.path
            if depth > 1:
                yield from _dead_below(lake, entry.path, depth - 1)


def parent_folders(lake: Lake, template: FolderTemplate) -> Iterator[Period]:
    """Every hour and day that has a folder over all streams. Raises Unavailable."""
    if template.rolls_up:
        yield from _parents_below(lake, template, "", 0)


def _parents_below(
    lake: Lake, template: FolderTemplate, folder: str, depth: int
) -> Iterator[Period]:
    place = template.match_parent(folder) if folder else None
    if place is not None and place.stream is None and place.shard is None:
        is_hour = place.period.kind == "hour"
        of = template.hour_folder(place.period) if is_hour else template.day_folder(place.period)
        if of == folder:
            yield place.period
        if is_hour:
            return
    for entry in entries_of(lake, folder):
        if entry.is_folder and template.patterns[depth].fullmatch(name_of(entry.path)):
            yield from _parents_below(lake, template, entry.path, depth + 1)
