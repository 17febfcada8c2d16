"""Objects: what an S3 server says of the files in a bucket, read from its answers. Pure.

A checksum is what the server computed when the object was written, and names its algorithm. The
full ones stay the same when an object is copied, in one piece or in parts; where a server keeps
none, its ETag must do, spelled so that a copy in one part has the same.
"""

import base64
import binascii
import hashlib
import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import unquote
from xml.sax.saxutils import escape

from headgate.lake import FileFacts

ALGORITHMS: Final = ("crc64nvme", "sha256", "crc32c", "crc32", "sha1")  # the first that is there
_PART_OF: Final = re.compile(r"-\d+$")
_ETAG_TAG: Final = re.compile(rb"<ETag>([^<]*)</ETag>")
_CONTENTS: Final = re.compile(r"<Contents>(.*?)</Contents>", re.DOTALL)
_FOLDERS: Final = re.compile(r"<CommonPrefixes>\s*<Prefix>([^<]*)</Prefix>", re.DOTALL)
_KEY: Final = re.compile(r"<Key>([^<]*)</Key>")
_SIZE: Final = re.compile(r"<Size>(\d+)</Size>")
_NEXT: Final = re.compile(r"<NextContinuationToken>([^<]*)</NextContinuationToken>")
_UPLOAD: Final = re.compile(r"<Upload>(.*?)</Upload>", re.DOTALL)
_INITIATED: Final = re.compile(r"<Initiated>([^<]*)</Initiated>")
_UPLOAD_ID: Final = re.compile(r"<UploadId>([^<]*)</UploadId>")
_CODES: Final = re.compile(rb"<Code>([^<]*)</Code>")
_IS_URL: Final = "<EncodingType>url</EncodingType>"
_NOT_IN_XML: Final = re.compile(r"[\x00-\x08\x0b-\x1f\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Found:
    """An object as it is now: its ETag tells it from every other state of it."""

    facts: FileFacts
    etag: str


@dataclass(frozen=True, slots=True)
class Keys:
    """One page of a listing."""

    sizes_bytes: Mapping[str, int]  # by key
    folders: tuple[str, ...]  # each with a slash at its end
    next: str  # "": this was the last page


@dataclass(frozen=True, slots=True)
class Upload:
    key: str
    number: str
    begun: str  # as the server tells it

    def age_ms(self, now: str) -> int:
        """By the server's own clock, as a header tells it; 0: nobody knows."""
        try:
            past = parsedate_to_datetime(now) - datetime.fromisoformat(self.begun)
        except (TypeError, ValueError):
            return 0
        return int(past.total_seconds() * 1000)


def found_of(headers: Mapping[str, str], size_bytes: int) -> Found:
    """Of the headers of an answer."""
    etag = headers.get("etag", "")
    checksum = ""
    if headers.get("x-amz-checksum-type", "FULL_OBJECT") == "FULL_OBJECT":
        told = ((name, headers.get(f"x-amz-checksum-{name}")) for name in ALGORITHMS)
        checksum = next((_spelled(*one) for one in told if one[1]), "")
    return Found(FileFacts(size_bytes, checksum or of_etag(etag)), etag)


def copied_checksum(body: bytes) -> str:
    """What the answer to a copy says of it; "": nothing."""
    for name in ALGORITHMS:
        tag = f"Checksum{name.upper()}".encode()
        found = re.search(rb"<" + tag + rb">([^<]*)</" + tag + rb">", body)
        if found and b"<ChecksumType>COMPOSITE" not in body:
            return _spelled(name, found[1].decode())
    return ""


def part_etag(body: bytes) -> str:
    found = _ETAG_TAG.search(body)
    return html.unescape(found[1].decode()) if found else ""


def of_etag(etag: str) -> str:
    """`"…"` of an object written at once is the digest of its bytes; `"…-1"` the digest of that."""
    plain = etag.strip('"')
    if not _PART_OF.search(plain):
        try:
            raw = bytes.fromhex(plain)
        except ValueError:
            return f"etag:{plain}"
        plain = f"{hashlib.md5(raw, usedforsecurity=False).hexdigest()}-1"
    return f"etag:{plain}"


def keys_of(body: bytes) -> Keys:
    """Of a listing."""
    text = body.decode("utf-8")
    named = _of_url if _IS_URL in text else html.unescape  # not every server does as it was asked
    sizes: dict[str, int] = {}
    for one in _CONTENTS.findall(text):
        key, size = _KEY.search(one), _SIZE.search(one)
        if key is not None:
            sizes[named(key[1])] = int(size[1]) if size else 0
    following = _NEXT.search(text)
    return Keys(
        sizes,
        tuple(named(one) for one in _FOLDERS.findall(text)),
        html.unescape(following[1]) if following else "",
    )


def uploads_of(body: bytes) -> Iterator[Upload]:
    """Those that nobody completed."""
    text = body.decode("utf-8")
    named = _of_url if _IS_URL in text else html.unescape
    for one in _UPLOAD.findall(text):
        key, number = _KEY.search(one), _UPLOAD_ID.search(one)
        begun = _INITIATED.search(one)
        if key is not None and number is not None:
            moment = begun[1] if begun else ""
            yield Upload(named(key[1]), html.unescape(number[1]), moment)


def upload_id(body: bytes) -> str:
    found = _UPLOAD_ID.search(body.decode("utf-8"))
    return html.unescape(found[1]) if found else ""


def deletion(keys: list[str]) -> bytes:
    """The body of a request that deletes many."""
    inner = "".join(f"<Object><Key>{escape(key)}</Key></Object>" for key in keys)
    return f"<Delete><Quiet>true</Quiet>{inner}</Delete>".encode()


def failures_of(body: bytes) -> set[str]:
    """The codes of what could not be deleted."""
    return {one.decode("utf-8", "replace") for one in _CODES.findall(body)}


def can_be_listed(key: str) -> bool:
    """Whether it can stand in such a body."""
    return _NOT_IN_XML.search(key) is None


def completion(etags: list[str]) -> bytes:
    parts = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(etag)}</ETag></Part>"
        for number, etag in enumerate(etags, 1)
    )
    return f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()


def _of_url(text: str) -> str:
    return unquote(html.unescape(text).replace("+", " "))


def _spelled(algorithm: str, value: str | None) -> str:
    try:
        return f"{algorithm}:{base64.b64decode(value or '', validate=True).hex()}"
    except binascii.Error:
        return ""
