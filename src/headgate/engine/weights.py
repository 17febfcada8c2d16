"""Weights: how many records make a file of the target size.

A writer of Spark's ends a file after so many records, and knows nothing of its size. What a landed
row weighs is learned from each job for the next one of its stream; before the first it is guessed
from what is planned: of a log its records, of files the first lines of one.
"""

import gzip
import os
import zlib
from collections.abc import Sequence
from typing import Final

from headgate.engine import InputFile, Job, Shape
from headgate.engine.codecs import GZIPPED, codec_of
from headgate.engine.footers import rows_of
from headgate.errors import Corrupt, Unavailable

LEAST_BYTES: Final = 1_000_000  # smaller files help nobody
HEAD_BYTES: Final = 65_536

_PACKED_TO: Final = 0.3  # about, of lines of json; with what we add to each
_PLAIN_TO: Final = 1.3


class Weights:
    """For several threads."""

    def __init__(self) -> None:
        self._row_bytes: dict[tuple[str, str, str], float] = {}

    def records_max(self, job: Job) -> int:
        """Of a file; 0: nobody can tell."""
        shape = job.shape
        row_bytes = self._row_bytes.get(_key(shape), 0.0)
        if not row_bytes:
            row_bytes = record_bytes(job) * (_PLAIN_TO if _is_plain(shape) else _PACKED_TO)
        if not row_bytes:
            return 0
        return max(1, round(max(shape.target_bytes, LEAST_BYTES) / row_bytes))

    def learn(self, shape: Shape, sizes_bytes: Sequence[int], rows: int) -> None:
        """From files that were written. Of few rows one learns nothing: a file has a frame."""
        if sum(sizes_bytes) >= LEAST_BYTES:
            self._row_bytes[_key(shape)] = sum(sizes_bytes) / rows


def _key(shape: Shape) -> tuple[str, str, str]:
    return shape.stream, shape.land_as, codec_of(shape.land_as, shape.codec)


def _is_plain(shape: Shape) -> bool:
    return codec_of(shape.land_as, shape.codec) == "none"


def record_bytes(job: Job) -> float:
    """About; 0: nobody can tell."""
    spans = [span for shard in job.inputs for span in shard.spans]
    if spans:
        offsets = sum(span.next - span.first for span in spans)
        return sum(span.size_bytes for span in spans) / max(1, offsets)
    files = (file for shard in job.inputs for file in shard.files)
    largest = max(files, key=lambda file: file.size_bytes, default=None)
    try:
        return 0.0 if largest is None else _of_file(largest)
    except (OSError, EOFError, zlib.error, Corrupt, Unavailable):
        return 0.0  # whoever reads all of it says what is wrong


def _of_file(file: InputFile) -> float:
    if os.path.splitext(file.path)[1] == ".parquet":
        return file.size_bytes / max(1, rows_of(file.path))
    opened = gzip.open if file.path.endswith(GZIPPED) else open
    with opened(file.path, "rb") as content:
        head = content.read(HEAD_BYTES)
    return len(head) / max(1, head.count(b"\n"))
