"""Containers: Avro files, as far as we write them: how many rows they have, and the rows.

    magic │ what it says of itself │ mark ║ rows, bytes, a packed block, mark ║ …

Each block says how many rows it has and how long it is, so counting reads a few bytes of each.
"""

import io
import json
import os
import struct
from collections.abc import Iterator
from datetime import timedelta
from typing import IO, Any, BinaryIO, Final

from headgate.errors import Corrupt, Unavailable
from headgate.periods import EPOCH

SUFFIX: Final = ".avro"

_MAGIC: Final = b"Obj\x01"
_MARK_BYTES: Final = 16


def rows_of(file: str, opened: BinaryIO | None = None) -> int:
    """Without reading one. Here and below: `opened` is what is read, where that is no file of this
    machine. Raises Unavailable, Corrupt (it is no whole Avro file)."""
    with _opened(file, opened) as content:
        _, mark = _head(content)
        return sum(rows for rows, _ in _blocks(content, mark, is_skipped=True))


def schema_of(file: str, opened: BinaryIO | None = None) -> bytes:
    """As it stands there. Raises Unavailable, Corrupt."""
    with _opened(file, opened) as content:
        return bytes(_head(content)[0]["avro.schema"])


def values_of(file: str, opened: BinaryIO | None = None) -> Iterator[dict[str, Any]]:
    """Its rows, a block at a time in memory. Raises Unavailable, Corrupt."""
    # Only who looks into blocks needs the library that unpacks them.
    from headgate.engine.footers import unpacked

    with _opened(file, opened) as content:
        told, mark = _head(content)
        schema = json.loads(told["avro.schema"])
        names: dict[str, Any] = {}
        for rows, packed in _blocks(content, mark, is_skipped=False):
            block = io.BytesIO(unpacked(told.get("avro.codec", b"null").decode(), packed))
            for _ in range(rows):
                yield _value(block, schema, names)


class _opened:  # noqa: N801 - read like open()
    """The file, with what goes wrong in our words."""

    def __init__(self, file: str, opened: BinaryIO | None = None) -> None:
        self._file = file
        self._opened = opened

    def __enter__(self) -> IO[bytes]:
        try:
            self._content = self._opened or open(self._file, "rb")
        except OSError as error:
            raise Unavailable(f"{self._file}: cannot be read ({error})") from error
        return self._content

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._content.close()
        if isinstance(error, OSError):
            raise Unavailable(f"{self._file}: cannot be read ({error})") from error
        if isinstance(error, EOFError | ValueError | KeyError | IndexError | struct.error):
            raise Corrupt(f"{self._file}: not a whole Avro file ({error!r})") from error


def _head(content: IO[bytes]) -> tuple[dict[str, bytes], bytes]:
    if _read(content, len(_MAGIC)) != _MAGIC:
        raise ValueError("it begins otherwise")
    told = _value(content, {"type": "map", "values": "bytes"}, {})
    return told, _read(content, _MARK_BYTES)


def _blocks(content: IO[bytes], mark: bytes, *, is_skipped: bool) -> Iterator[tuple[int, bytes]]:
    here = content.tell()
    end = content.seek(0, os.SEEK_END)
    content.seek(here)
    while content.tell() < end:
        rows, size_bytes = _long(content), _long(content)
        if rows < 0 or not 0 <= size_bytes <= end - content.tell() - _MARK_BYTES:
            raise EOFError("a block is cut off")
        if is_skipped:
            content.seek(size_bytes, os.SEEK_CUR)
        packed = b"" if is_skipped else _read(content, size_bytes)
        if _read(content, _MARK_BYTES) != mark:
            raise ValueError("a block does not end with its mark")
        yield rows, packed


def _read(content: IO[bytes], size_bytes: int) -> bytes:
    found = content.read(size_bytes)
    if size_bytes < 0 or len(found) < size_bytes:
        raise EOFError("it is cut off")
    return found


def _long(content: IO[bytes]) -> int:
    number = shift = 0
    while True:
        (byte,) = _read(content, 1)
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1)
        shift += 7


def _value(content: IO[bytes], schema: Any, names: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return _value(content, schema[_long(content)], names)
    if isinstance(schema, str):
        return _plain(content, schema) if schema in _PLAIN else _value(
            content, names[schema], names
        )  # fmt: skip
    kind = schema["type"]
    if kind == "record":
        own = ".".join(filter(None, (schema.get("namespace", ""), schema["name"])))
        names[own] = names[schema["name"]] = schema
        return {one["name"]: _value(content, one["type"], names) for one in schema["fields"]}
    if kind in ("array", "map"):
        return _several(content, schema, names)
    found = _value(content, kind, names)
    micros = {"timestamp-micros": 1, "timestamp-millis": 1_000}.get(schema.get("logicalType", ""))
    return found if micros is None else EPOCH + timedelta(microseconds=found * micros)


def _several(content: IO[bytes], schema: Any, names: dict[str, Any]) -> Any:
    listed, mapped = list[Any](), dict[str, Any]()
    while count := _long(content):
        if count < 0:  # then its size follows
            count = -count
            _long(content)
        for _ in range(count):
            if schema["type"] == "array":
                listed.append(_value(content, schema["items"], names))
            else:
                key = _plain(content, "string")
                mapped[key] = _value(content, schema["values"], names)
    return listed if schema["type"] == "array" else mapped


_PLAIN: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


def _plain(content: IO[bytes], kind: str) -> Any:
    if kind == "null":
        return None
    if kind == "boolean":
        return _read(content, 1) != b"\x00"
    if kind in ("int", "long"):
        return _long(content)
    if kind in ("float", "double"):
        letter, size_bytes = ("<f", 4) if kind == "float" else ("<d", 8)
        return struct.unpack(letter, _read(content, size_bytes))[0]
    found = _read(content, _long(content))
    return found if kind == "bytes" else found.decode()
