"""Merge: small files of an hour that became fewer large ones, on record as long as the lake lives.

    _headgate/merges/<stream>/<period>/00001.json      its record: outputs, each with its inputs
    <folder of the hour>/merge00001-0.parquet          an output

A record is published before its outputs, and those before any input is removed. So an input may be
gone once a published record names it, and a file with such a name belongs to the record that its
folder and its name say. The number is the generation that the hour is merged for: no name is used
twice.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

from headgate.errors import Corrupt
from headgate.lake import FileFacts, Lake
from headgate.lake.paths import OURS
from headgate.periods import escape_name
from headgate.store.codec import Whole, parse_text, text_of

MERGES: Final = f"{OURS}/merges"
FILE_NAME: Final = re.compile(r"merge(\d{5,})-(\d+)\.(?:parquet|avro|(?:json|txt)(?:\.gz)?)")


@dataclass(frozen=True, slots=True)
class MergeInput:
    """A file of a commit, as its record says."""

    path: str
    size_bytes: Whole
    checksum: str
    rows: Whole

    @property
    def facts(self) -> FileFacts:
        return FileFacts(self.size_bytes, self.checksum)


@dataclass(frozen=True, slots=True)
class MergeOutput:
    staged: str
    published: str
    size_bytes: Whole
    checksum: str
    rows: Whole  # counted in what was written
    inputs: tuple[MergeInput, ...]

    @property
    def facts(self) -> FileFacts:
        return FileFacts(self.size_bytes, self.checksum)


@dataclass(frozen=True, slots=True)
class MergeRecord:
    stream: str
    period: str
    generation: Whole
    epoch: Whole
    node: str
    made_ms: Whole  # wall time
    outputs: tuple[MergeOutput, ...]
    format: Literal[1] = 1

    @property
    def inputs(self) -> tuple[MergeInput, ...]:
        return tuple(one for output in self.outputs for one in output.inputs)


def merges_folder(stream: str) -> str:
    """Where the records of all its hours lie, each in a folder of the period's name."""
    return f"{MERGES}/{escape_name(stream)}"


def merge_path(stream: str, period: str, generation: int) -> str:
    return f"{merges_folder(stream)}/{period}/{generation:05}.json"


def output_name(generation: int, index: int, suffix: str) -> str:
    return f"merge{generation:05}-{index}.{suffix}"


def merge_of(name: str) -> int | None:
    """The generation that a merged file's name says; None: it is none."""
    found = FILE_NAME.fullmatch(name)
    return int(found[1]) if found else None


def to_bytes(record: MergeRecord) -> bytes:
    """Raises Corrupt."""
    return text_of(_checked(record, merge_path(record.stream, record.period, record.generation)))


def from_bytes(raw: bytes, path: str) -> MergeRecord:
    """Raises Corrupt, naming the path."""
    return _checked(parse_text(raw, path, MergeRecord), path)


def read_merge(lake: Lake, stream: str, period: str, generation: int) -> MergeRecord | None:
    """A published one; None if there is none. Raises Corrupt, Unavailable."""
    path = merge_path(stream, period, generation)
    raw = lake.read(path)
    if raw is None:
        return None
    record = from_bytes(raw, path)
    if (record.stream, record.period, record.generation) != (stream, period, generation):
        raise Corrupt(
            f"{path}: is the record of {record.stream} {record.period}, {record.generation}; it "
            "lies where another one should; next: headgate audit"
        )
    return record


def _checked(record: MergeRecord, path: str) -> MergeRecord:
    """No row came in or got lost, and no file is merged twice."""
    for output in record.outputs:
        rows = sum(one.rows for one in output.inputs)
        if output.rows != rows:
            raise Corrupt(
                f"{path}: {output.published} has {output.rows:,} rows, and its inputs {rows:,}; "
                "next: headgate audit"
            )
    paths = [one.path for one in record.inputs] + [one.published for one in record.outputs]
    if len(set(paths)) < len(paths):
        raise Corrupt(f"{path}: names a file twice; next: headgate audit")
    return record
