"""Footers: what a Parquet file says of itself at its end, and its rows. The door to pyarrow."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.errors import Corrupt, Unavailable

BATCH_ROWS = 1_000


def rows_of(file: str, opened: BinaryIO | None = None) -> int:
    """How many rows it has, without reading one. Here and below: `opened` is what is read, where
    that is no file of this machine. Raises Unavailable, Corrupt (no Parquet file)."""
    try:
        return int(pq.read_metadata(opened or file).num_rows)
    except OSError as error:
        raise Unavailable(f"{file}: cannot be read ({error})") from error
    except pa.ArrowException as error:
        raise Corrupt(f"{file}: not a whole Parquet file ({error})") from error


def codec_in(file: str, opened: BinaryIO | None = None) -> str:
    """How its values are packed; "": it has none. Raises Unavailable, Corrupt."""
    try:
        facts = pq.read_metadata(opened or file)
    except OSError as error:
        raise Unavailable(f"{file}: cannot be read ({error})") from error
    except pa.ArrowException as error:
        raise Corrupt(f"{file}: not a whole Parquet file ({error})") from error
    if not facts.num_row_groups:
        return ""
    found = str(facts.row_group(0).column(0).compression).lower()
    return {"uncompressed": "none", "lz4_raw": "lz4"}.get(found, found)


def unpacked(codec: str, block: bytes) -> bytes:
    """A block of an Avro file, in the words of that format. Raises ValueError."""
    try:
        if codec == "deflate":
            return zlib.decompress(block, -zlib.MAX_WBITS)
        if codec == "zstandard":
            with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
                return bytes(stream.read())
        if codec == "snappy":  # its own length stands first, and a checksum behind it
            size_bytes = shift = 0
            for byte in block:
                size_bytes |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    break
            return bytes(pa.Codec("snappy").decompress(block[:-4], size_bytes, asbytes=True))
    except (zlib.error, OSError, pa.ArrowException) as error:
        raise ValueError(f"a block cannot be unpacked: {error}") from error
    if codec != "null":
        raise ValueError(f"it is packed by {codec}, which nobody here knows")
    return block


def columns_of(file: str, opened: BinaryIO | None = None) -> tuple[str, ...]:
    """Name and type of each column. Raises Unavailable, Corrupt."""
    try:
        schema = pq.read_schema(opened or file)
    except OSError as error:
        raise Unavailable(f"{file}: cannot be read ({error})") from error
    except pa.ArrowException as error:
        raise Corrupt(f"{file}: not a whole Parquet file ({error})") from error
    return tuple(f"{field.name} {field.type}" for field in schema)


def values_of(
    file: str, columns: Sequence[str] | None = None, opened: BinaryIO | None = None
) -> Iterator[dict[str, Any]]:
    """Its rows, a few at a time in memory. Raises Unavailable, Corrupt."""
    try:
        with pq.ParquetFile(opened or file) as found:
            for batch in found.iter_batches(BATCH_ROWS, columns=columns):
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


def places_of(
    file: str, struct: str, wanted: Mapping[str, str | int], opened: BinaryIO | None = None
) -> tuple[int, int | None]:
    """How many rows have these values in a struct column, and where the first of them is. Row
    groups whose smallest and largest say that they have none are not read, nor are other columns.
    Raises Unavailable, Corrupt."""
    count, first, before = 0, None, 0
    try:
        with pq.ParquetFile(opened or file) as found:
            for group in range(found.num_row_groups):
                facts = found.metadata.row_group(group)
                if _may_have(facts, struct, wanted):
                    table = found.read_row_group(group, [f"{struct}.{name}" for name in wanted])
                    column = table.column(struct).combine_chunks()
                    is_it = None
                    for name, value in wanted.items():
                        same = pc.equal(pc.struct_field(column, name), value)
                        is_it = same if is_it is None else pc.and_(is_it, same)
                    rows = pc.indices_nonzero(pc.fill_null(is_it, False))
                    if len(rows) and first is None:
                        first = before + rows[0].as_py()
                    count += len(rows)
                before += facts.num_rows
    except OSError as error:
        raise Unavailable(f"{file}: cannot be read ({error})") from error
    except (pa.ArrowException, KeyError) as error:
        raise Corrupt(f"{file}: not a Parquet file of ours ({error})") from error
    return count, first


def _may_have(facts: Any, struct: str, wanted: Mapping[str, str | int]) -> bool:
    for place in range(facts.num_columns):
        column = facts.column(place)
        value = wanted.get(column.path_in_schema.removeprefix(f"{struct}."))
        told = column.statistics
        if value is None or told is None or not told.has_min_max:
            continue
        if not told.min <= value <= told.max:
            return False
    return True
