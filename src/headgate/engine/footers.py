"""Footers: what a Parquet file says of itself at its end, and its rows. The door to pyarrow."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.errors import Corrupt, Unavailable

BATCH_ROWS = 1_000


def rows_of(file: str) -> int:
    """How many rows it has, without reading one. Raises Unavailable, Corrupt (no Parquet file)."""
    try:
        return int(pq.read_metadata(file).num_rows)
    except OSError as error:
        raise Unavailable(f"{file}: cannot be read ({error})") from error
    except pa.ArrowException as error:
        raise Corrupt(f"{file}: not a whole Parquet file ({error})") from error


def columns_of(file: str) -> tuple[str, ...]:
    """Name and type of each column. Raises Unavailable, Corrupt."""
    try:
        schema = pq.read_schema(file)
    except OSError as error:
        raise Unavailable(f"{file}: cannot be read ({error})") from error
    except pa.ArrowException as error:
        raise Corrupt(f"{file}: not a whole Parquet file ({error})") from error
    return tuple(f"{field.name} {field.type}" for field in schema)


def values_of(file: str, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """Its rows, a few at a time in memory. Raises Unavailable, Corrupt."""
    try:
        with pq.ParquetFile(file) as opened:
            for batch in opened.iter_batches(BATCH_ROWS, columns=columns):
                yield from batch.to_pylist()
    except OSError as error:
        raise Unavailable(f"{file}: cannot be read ({error})") from error
    except pa.ArrowException as error:
        raise Corrupt(f"{file}: not a whole Parquet file ({error})") from error


def texts_of(file: str, column: str) -> Iterator[str]:
    """One column of texts, in batches: not a whole file in memory. Raises Unavailable, Corrupt."""
    try:
        with pq.ParquetFile(file) as opened:
            for batch in opened.iter_batches(columns=[column]):
                yield from batch.column(0).to_pylist()
    except OSError as error:
        raise Unavailable(f"{file}: cannot be read ({error})") from error
    except pa.ArrowException as error:
        raise Corrupt(f"{file}: not a whole Parquet file ({error})") from error
