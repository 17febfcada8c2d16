"""Letters: dead letters as values: why, from where, and the record as it came.

A file of them is Parquet or lines of JSON, as its stream lands (`headgate.engine.rows`). Late
records that the settings send here are good rows without a reason: theirs is `late`.
"""

import base64
import binascii
import gzip
import json
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from headgate.commits.replay import read_record
from headgate.engine import containers
from headgate.engine.codecs import GZIPPED
from headgate.engine.rows import EXTRA_TYPES
from headgate.errors import Corrupt, Halted, Invalid
from headgate.lake import Lake
from headgate.lake.opening import place_of
from headgate.landing.names import DEAD, REDRIVE, commit_of
from headgate.periods import EPOCH, MILLISECOND, escape_name
from headgate.sources import FilesSettings
from headgate.sources.book import find_file
from headgate.store import DocumentStore

LATE, AHEAD = "late", "ahead"
REDRIVEN_PREFIX = "redrive"  # of the source partitions of letters that were driven in
PACKED = ".parquet"


@dataclass(frozen=True, slots=True)
class Letter:
    reason: str
    partition: str  # source partition
    number: int  # of its file there
    line: int
    raw: bytes | None  # None: of a log, a record without a value
    event_ms: int | None = None  # None: none could be told
    beside: Mapping[str, Any] = field(default_factory=dict)  # what a log kept beside it

    @property
    def position(self) -> str:
        line = f":{self.line}" if self.line else ""  # of a log there is none
        return f"{self.partition}/{self.number}{line}"


def letters_of(lake: Lake, path: str) -> Iterator[Letter]:
    """In order. Raises Corrupt (it is no file of dead letters), Unavailable."""
    if path.endswith(PACKED):
        # Only who looks into Parquet needs its library.
        from headgate.engine.footers import values_of

        with lake.open(path) as opened:
            for row in values_of(path, None, opened):
                yield _letter(path, row)
        return
    if path.endswith(containers.SUFFIX):
        with lake.open(path) as opened:
            for row in containers.values_of(path, opened):
                yield _letter(path, row)
        return
    raw = lake.read(path)
    if raw is None:
        raise Invalid(f"{path}: is not there any more; next: headgate deadletter ls STREAM")
    for line in _unpacked(path, raw).split(b"\n"):
        if line:
            yield _of_line(path, line)


def _unpacked(path: str, raw: bytes) -> bytes:
    """Raises Corrupt."""
    if not path.endswith(GZIPPED):
        return raw
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise Corrupt(f"{path}: is not gzip ({error}); next: headgate audit") from error


def reasons_in(lake: Lake, path: str) -> tuple[Counter[str], Counter[tuple[str, int]]]:
    """Rows by reason; and by the source partition and number of the file that they came from.
    Raises as `letters_of`."""
    reasons, numbers = Counter[str](), Counter[tuple[str, int]]()
    if path.endswith(PACKED):
        from headgate.engine.footers import values_of

        columns = [f"_headgate.{name}" for name in ("reason", "partition", "number")]
        with lake.open(path) as opened:
            for row in values_of(path, columns, opened):
                told = row.get("_headgate") or {}
                reasons[told.get("reason") or LATE] += 1
                numbers[str(told.get("partition", "")), int(told.get("number") or 0)] += 1
        return reasons, numbers
    for letter in letters_of(lake, path):
        reasons[letter.reason] += 1
        numbers[letter.partition, letter.number] += 1
    return reasons, numbers


@dataclass(frozen=True, slots=True)
class Origin:
    """The source file of a letter, as far as anybody still knows it."""

    path: str  # absolute; "": its number is forgotten
    arrival_ms: int | None


class Origins:
    """Looks source files up by their numbers; each once. Raises Unavailable, Corrupt."""

    def __init__(
        self, store: DocumentStore, lake: Lake, stream: str, source: FilesSettings | None
    ) -> None:
        self._store = store
        self._lake = lake
        self._stream = stream
        self._source = source
        self._known: dict[tuple[str, int], Origin] = {}

    def of(self, partition: str, number: int) -> Origin:
        place = (partition, number)
        if place not in self._known:
            self._known[place] = self._find(partition, number)
        return self._known[place]

    def _find(self, partition: str, number: int) -> Origin:
        found = find_file(self._store, self._stream, partition, number)
        if found is None:
            return Origin("", None)
        entry, arrival_ms = found
        return Origin(os.path.join(self._folder(partition), entry.path), arrival_ms)

    def _folder(self, partition: str) -> str:
        prefix = partition.rpartition("-")[0]
        if self._source is not None and prefix == self._source.prefix:
            return self._source.path
        if prefix != REDRIVEN_PREFIX:
            return ""  # of a stream that is not in the settings: only the path below its folder
        return os.path.join(place_of(self._lake), REDRIVE, escape_name(self._stream))


def ahead_ms(lake: Lake, stream: str, path: str, letter: Letter, origin: Origin) -> int | None:
    """How far its event time is ahead of its arrival; at least, if only its commit is known. None:
    nobody can tell, or that is not what is wrong with it. Raises Unavailable, Corrupt."""
    if letter.reason != AHEAD or letter.event_ms is None:
        return None
    since_ms = origin.arrival_ms
    if since_ms is None:
        named = commit_of(path.rpartition("/")[2])
        record = None if named is None else read_record(lake, stream, *named)
        since_ms = None if record is None else record.made_ms
    return None if since_ms is None else letter.event_ms - since_ms


def rows_on_record(lake: Lake, stream: str, path: str) -> int | None:
    """As the commit's record says; None: it does not know this file."""
    named = commit_of(path.rpartition("/")[2])
    record = None if named is None else read_record(lake, stream, *named)
    files = () if record is None else record.files
    return next((file.rows for file in files if file.published == path), None)


def check_redrivable(path: str, source_format: str) -> None:
    """Raises Halted: rows of Parquet that lie as text have lost their types, and whoever reads
    Parquet cannot read them."""
    if source_format == "parquet" and not path.endswith(PACKED):
        raise Halted(
            f"{path}: its records came from Parquet files and lie here as JSON, without their "
            "types, so they cannot be driven in; nothing was moved; next: read them with headgate "
            "deadletter show, and drop what is right into the source as a Parquet file"
        )


def folder_of(stream: str) -> str:
    return f"{DEAD}/{escape_name(stream)}"


def _of_line(path: str, line: bytes) -> Letter:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise Corrupt(f"{path}: a line is no JSON: {error}; next: headgate audit") from error
    if not isinstance(row, dict):
        raise Corrupt(f"{path}: a line is no JSON object; next: headgate audit")
    return _letter(path, row)


def _letter(path: str, row: Mapping[str, Any]) -> Letter:
    told = row.get("_headgate")
    if not isinstance(told, Mapping):
        raise Corrupt(f"{path}: a row does not say where it is from; next: headgate audit")
    return Letter(
        str(told.get("reason") or LATE),
        str(told.get("partition", "")),
        int(told.get("number") or 0),
        int(told.get("line") or 0),
        _raw(path, row, told),
        _event_ms(told.get("event_time")),
        {name: row[name] for name in _beside(row)},
    )


def _beside(row: Mapping[str, Any]) -> set[str]:
    """Columns with what a log kept beside the record. They come as they are or not at all, so of a
    source with such columns of its own another type tells it."""
    types = {"key": bytes, "headers": list, "timestamp": datetime, "timestamp_type": str}
    found = {name for name in EXTRA_TYPES if name in row}
    is_ours = all(row[name] is None or isinstance(row[name], types[name]) for name in found)
    return found if is_ours else set()


def _event_ms(told: object) -> int | None:
    """From Parquet a moment, from lines its text."""
    try:
        moment = datetime.fromisoformat(told) if isinstance(told, str) else told
    except ValueError:
        return None
    if not isinstance(moment, datetime):
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - EPOCH) // MILLISECOND


def _raw(path: str, row: Mapping[str, Any], told: Mapping[str, Any]) -> bytes | None:
    if isinstance(told.get("raw"), bytes):
        return bytes(told["raw"])
    if "raw_base64" in row:
        try:
            return base64.b64decode(str(row["raw_base64"]), validate=True)
        except binascii.Error as error:
            raise Corrupt(f"{path}: a record is not base64; next: headgate audit") from error
    # A late record is an object of its own, whatever it calls its fields.
    keys = [name for name in row if name not in {"_headgate", *_beside(row)}]
    if keys in (["raw"], ["value"]):
        found = row[keys[0]]
        if isinstance(found, str):
            return found.encode("utf-8", "surrogatepass")
        if isinstance(found, bytes) or (found is None and told.get("reason")):
            return found
    rest = {name: value for name, value in row.items() if name != "_headgate"}
    return json.dumps(rest, default=str, ensure_ascii=False).encode("utf-8", "surrogatepass")
