"""Codec: how a body becomes bytes and back, the same on every backend.

One canonical spelling (sorted names, no white space, UTF-8): equal bodies are equal bytes. It is
a JSON object with a whole number `format`; that is checked before writing and after reading.

Backends that keep plain bytes seal them: the token of the write and a checksum over key, token and
body are stored around the body, as JSON that people can read.
"""

import hashlib
import json
import re

from headgate.errors import Corrupt, Invalid
from headgate.store import JsonObject, JsonValue

BODY_BYTES_MAX = 1_000_000  # ZooKeeper refuses a request from 1,048,575 bytes on
DEPTH_MAX = 64  # what nests deeper can be written, and then not be read where less stack is left

_TOKEN = re.compile(r"[0-9a-f]{32}")

_SEALED = re.compile(
    rb'\{"document":1,"token":"([0-9a-f]{32})","sha256":"([0-9a-f]{64})","body":(.*)\}\n', re.DOTALL
)


def encode(key: str, body: JsonObject) -> bytes:
    """Raises Invalid if this is no body, or too large a one."""
    try:
        text = json.dumps(
            body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        raw = text.encode("utf-8")
        is_faithful = json.loads(text) == body
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"{key}: the body cannot be written as JSON: {error}") from error
    if not is_faithful:
        raise Invalid(
            f"{key}: the body would come back changed; use only lists, dicts with text keys"
        )
    if not _is_shallow(body, DEPTH_MAX):
        raise Invalid(f"{key}: the body nests deeper than {DEPTH_MAX}; next: flatten it")
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


def seal(token: str, key: str, raw: bytes) -> bytes:
    """Bytes to store: the body `raw` of this key with the token of this write and a checksum."""
    if not _TOKEN.fullmatch(token):
        raise Invalid(f"{key}: a token is 32 hexadecimal digits; next: take it from new_id()")
    checksum = _checksum(token, key, raw)
    head = f'{{"document":1,"token":"{token}","sha256":"{checksum}","body":'
    return head.encode("ascii") + raw + b"}\n"


def unseal(sealed: bytes, key: str, place: str) -> tuple[str, JsonObject]:
    """Token and body. Raises Corrupt, naming the place."""
    found = _SEALED.fullmatch(sealed)
    if found is None:
        raise damaged(place, "it is cut off, or was not written by Headgate")
    token, checksum, raw = found[1].decode("ascii"), found[2].decode("ascii"), found[3]
    if _checksum(token, key, raw) != checksum:
        raise damaged(place, "its content does not match its checksum")
    return token, decode(raw, place)


def damaged(place: str, reason: str) -> Corrupt:
    return Corrupt(
        f"{place}: this document is damaged: {reason}. What depends on it stops, the rest goes on. "
        "Next: stop all nodes (an old version must not meet a running one), then restore it from "
        "a backup, or move it away if nothing needs it any more"
    )


def _checksum(token: str, key: str, raw: bytes) -> str:
    # With the key: a file that was moved to another name must not pass as that name's document.
    return hashlib.sha256(f"{token}\n{key}\n".encode() + raw).hexdigest()


def _is_shallow(value: JsonValue, depth: int) -> bool:
    if isinstance(value, dict):
        return depth > 0 and all(_is_shallow(inner, depth - 1) for inner in value.values())
    if isinstance(value, list):
        return depth > 0 and all(_is_shallow(inner, depth - 1) for inner in value)
    return True


def _has_format(body: JsonObject) -> bool:
    number = body.get("format")
    return isinstance(number, int) and not isinstance(number, bool) and number >= 1
