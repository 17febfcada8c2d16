"""Codec: how a body becomes bytes and back, the same on every backend.

One canonical spelling (sorted names, no white space, UTF-8): equal bodies are equal bytes. It is
a JSON object with a whole number `format`; that is checked before writing and after reading.

Rooms above describe their bodies as frozen dataclasses; `parse` and `body_of` are the way between.

Backends that keep plain bytes seal them: the token of the write and a checksum over key, token and
body are stored around the body, as JSON that people can read.
"""

import hashlib
import json
import re
from typing import Annotated, Any, TypeVar

from pydantic import Strict, TypeAdapter, ValidationError

from headgate.errors import Corrupt, Invalid
from headgate.store import Document, JsonObject

BODY_BYTES_MAX = 1_000_000  # ZooKeeper refuses a request from 1,048,575 bytes on
DEPTH_MAX = 64  # what nests deeper can be written, and then not be read where less stack is left

_TOKEN = re.compile(r"[0-9a-f]{32}")
_PLAIN = frozenset({str, int, float, bool, type(None)})
_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False
)

_SEALED = re.compile(
    rb'\{"document":1,"token":"([0-9a-f]{32})","sha256":"([0-9a-f]{64})","body":(.*)\}\n', re.DOTALL
)


def encode(key: str, body: JsonObject) -> bytes:
    """Raises Invalid if this is no body, or too large a one."""
    _check_shape(key, body, DEPTH_MAX)
    try:
        raw = _ENCODER.encode(body).encode("utf-8")
    except ValueError as error:  # not a number, a lone surrogate, too many digits
        raise Invalid(f"{key}: the body cannot be written as JSON: {error}") from error
    if not _has_format(body):
        raise Invalid(f'{key}: the body needs "format", a whole number from 1 on')
    if len(raw) > BODY_BYTES_MAX:
        raise Invalid(
            f"{key}: the body has {len(raw):,} bytes, at most {BODY_BYTES_MAX:,} fit every store; "
            "next: keep large things in the lake and their path and hash here"
        )
    return raw


def decode(raw: bytes, place: str) -> JsonObject:
    """Raises Corrupt, naming the place."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise damaged(place, "it is not JSON") from error
    if not isinstance(body, dict) or not _has_format(body):
        raise damaged(place, 'it is not a JSON object with a "format"')
    return body


Value = TypeVar("Value")
Whole = Annotated[int, Strict()]
"""A field of a dataclass that is a whole number, and not a text that looks like one."""
Truth = Annotated[bool, Strict()]


def parse(document: Document, kind: type[Value]) -> Value:
    """The body as a dataclass, every field checked. Raises Corrupt, naming the key."""
    try:
        value: Value = _adapter(kind).validate_python(document.body, extra="forbid")
        return value
    except ValidationError as error:
        raise damaged(document.key, _first_of(error)) from error


def body_of(value: object) -> JsonObject:
    """A dataclass as a body; `parse` gives it back."""
    body: JsonObject = _adapter(type(value)).dump_python(value, mode="json")
    return body


def text_of(value: object) -> bytes:
    """A dataclass as JSON for people, its fields in their order; `parse_text` gives it back."""
    return _adapter(type(value)).dump_json(value, indent=1)


def parse_text(raw: bytes, place: str, kind: type[Value]) -> Value:
    """Every field checked. Raises Corrupt, naming the place."""
    try:
        value: Value = _adapter(kind).validate_json(raw, extra="forbid")
        return value
    except ValidationError as error:
        raise damaged(place, _first_of(error)) from error


def _first_of(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return f"it is not JSON: {first['msg']}"
    where = ".".join(str(step) for step in first["loc"]) or "body"
    return f"{where}: {first['msg']}"


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    adapter = _adapters.get(kind)
    if adapter is None:
        adapter = _adapters[kind] = TypeAdapter(kind)
    return adapter


_adapters: dict[type[Any], TypeAdapter[Any]] = {}


def seal(token: str, key: str, raw: bytes) -> bytes:
    """Bytes to store: the body `raw` of this key with the token of this write and a checksum."""
    if not _TOKEN.fullmatch(token):
        raise Invalid(f"{key}: a token is 32 hexadecimal digits; next: take it from new_id()")
    checksum = _checksum(token, key, raw)
    head = f'{{"document":1,"token":"{token}","sha256":"{checksum}","body":'
    return head.encode("ascii") + raw + b"}\n"


def unseal(sealed: bytes, key: str, place: str) -> tuple[str, JsonObject]:
    """Token and body. Raises Corrupt, naming the place."""
    token, raw = open_seal(sealed, key, place)
    return token, decode(raw, place)


def open_seal(sealed: bytes, key: str, place: str) -> tuple[str, bytes]:
    """Token and the body's bytes, checked. Raises Corrupt, naming the place."""
    found = _SEALED.fullmatch(sealed)
    if found is None:
        raise damaged(place, "it is cut off, or was not written by Headgate")
    token, checksum, raw = found[1].decode("ascii"), found[2].decode("ascii"), found[3]
    if _checksum(token, key, raw) != checksum:
        raise damaged(place, "its content does not match its checksum")
    return token, raw


def damaged(place: str, reason: str) -> Corrupt:
    return Corrupt(
        f"{place}: this document is damaged: {reason}. What depends on it stops, the rest goes on. "
        "Next: stop all nodes (an old version must not meet a running one), then restore it from "
        "a backup, or move it away if nothing needs it any more"
    )


def _checksum(token: str, key: str, raw: bytes) -> str:
    # With the key: a file that was moved to another name must not pass as that name's document.
    return hashlib.sha256(f"{token}\n{key}\n".encode() + raw).hexdigest()


def _check_shape(key: str, value: object, depth: int) -> None:
    """Only what comes back as it was: a tuple or a number as a name would be changed on the way."""
    kind = type(value)
    if kind in _PLAIN:
        return
    if depth == 0:
        raise Invalid(f"{key}: the body nests deeper than {DEPTH_MAX}; next: flatten it")
    if isinstance(value, dict) and all(type(name) is str for name in value):
        for inner in value.values():
            _check_shape(key, inner, depth - 1)
    elif isinstance(value, list):
        for inner in value:
            _check_shape(key, inner, depth - 1)
    else:
        raise Invalid(
            f"{key}: the body cannot hold a {kind.__name__}; next: use texts, numbers, booleans, "
            "None, lists, and dicts with texts as names"
        )


def _has_format(body: JsonObject) -> bool:
    number = body.get("format")
    return isinstance(number, int) and not isinstance(number, bool) and number >= 1
