"""Avro records as producers write them, by a library that is none of ours."""

import io
import struct
from typing import Any

import fastavro


def encoded(schema: Any, record: dict[str, Any]) -> bytes:
    """Nothing but the record."""
    content = io.BytesIO()
    fastavro.schemaless_writer(content, fastavro.parse_schema(schema), record)
    return content.getvalue()


def framed(number: int, schema: Any, record: dict[str, Any]) -> bytes:
    """With the id of its schema before it."""
    return frame(number) + encoded(schema, record)


def frame(number: int) -> bytes:
    return b"\x00" + struct.pack(">I", number)
