"""Shapes: what the files of one job must have in common, found out when a file gets its number.

A file that cannot be read gets no number. It stays where it is, is counted as unreadable and named
in the log and to people: nothing is lost, no hour is called complete that it may belong to, and
what comes after it is read.
"""

import csv
from collections.abc import Callable
from os.path import splitext
from shlex import quote

from headgate.errors import Corrupt, Invalid
from headgate.sources import FilesSettings
from headgate.sources.folder import Entry, Folder

SchemaOf = Callable[[str], tuple[str, ...]]
"""Of a Parquet file by its absolute path: name and type of each column; of dead letters the columns
of the csv that they came from. Raises Invalid or Corrupt if it is none."""

Columns = tuple[str, ...]

# What no reader of text unpacks: it would be read as lines of noise.
_PACKED = frozenset(
    {".7z", ".br", ".bz2", ".deflate", ".gz", ".lz4", ".lzo", ".rar", ".snappy", ".sz", ".tar"}
    | {".tgz", ".xz", ".z", ".zip", ".zst", ".zstd"}
)
_PATTERN_SIGNS = frozenset("*?[]{}\\")


def columns_of(
    settings: FilesSettings, folder: Folder, schema_of: SchemaOf, entry: Entry
) -> Columns:
    """Raises Invalid: this file cannot be read, and what to do about it."""
    suffix, place = splitext(entry.path)[1], folder.absolute(entry.path)
    try:
        entry.path.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Invalid(f"{place!r}: its name is not UTF-8; next: rename it") from error
    if ":" in entry.path and _PATTERN_SIGNS & {*place}:
        raise Invalid(
            f"{place}: Spark cannot read a name with a colon and one of *?[]{{}}\\; next: rename it"
        )
    if settings.format in ("json", "csv", "text"):
        if suffix != ".gz" and suffix.lower() in _PACKED:
            raise Invalid(
                f"{place}: {suffix} is not unpacked, only .gz is; next: unpack it under "
                "another name, or name it in `exclude`"
            )
        return _columns_of_text(settings, folder, entry)
    if settings.format == "parquet" and entry.size_bytes > 0:
        try:
            return schema_of(place)
        except Corrupt as error:
            raise Invalid(f"{error}; next: {_repair(place)}") from error
    folder.head(entry.path, 1)
    if settings.format == "dead":
        return (suffix, *schema_of(place))
    return ()


def _columns_of_text(settings: FilesSettings, folder: Folder, entry: Entry) -> Columns:
    if settings.format != "csv" or settings.columns or entry.size_bytes == 0:
        folder.head(entry.path, 1)
        return settings.columns if settings.format == "csv" else ()
    place = folder.absolute(entry.path)
    return _names_of(place, folder.head(entry.path).decode("utf-8-sig", "replace"))


def _repair(place: str) -> str:
    return f"put a whole one into its place, or go without it: rm {quote(place)}"


def _names_of(file: str, line: str) -> Columns:
    """As in the header; made different where they are missing or the same."""
    try:
        row = next(csv.reader([line]), [])
    except csv.Error as error:
        raise Invalid(
            f"{file}: its header line is no csv ({error}); next: {_repair(file)}"
        ) from error
    names: list[str] = []
    for place, found in enumerate(row):
        name = found.strip() or f"_c{place}"
        taken = {one.lower() for one in names}
        names.append(f"{name}{place}" if name.lower() in taken else name)
    return tuple(names)
