"""Certificate: what an hour of a stream consists of, and why no more can come. A flag holds it.

    …/<stream>/data/_READY, …/<stream>/_READY      the certificate of the stream's hour
    …/<HH>/_READY, …/<date>/_READY                 the parent's: the hashes of all its children's
    _headgate/certificates/…/<period>/<n>.json     the same bytes, for whoever raises flags again

One spelling: canonical JSON (sorted names, no blanks, UTF-8, a newline at the end), and `hash` is
the SHA-256 of that spelling without the field `hash`. So a stranger can check it, and equal
certificates are equal bytes. It is written once; what changes an hour makes the next generation.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar

from headgate.commits.checkpoint import Spans
from headgate.errors import Corrupt, Invalid
from headgate.lake.paths import OURS, folder_of, join
from headgate.periods import FolderTemplate, Period, escape_name
from headgate.store.codec import Whole, body_of, parse_text

FLAG: Final = "_READY"
HOLD: Final = "working"  # in the stream's folder: keeps its hour back
CERTIFICATES: Final = f"{OURS}/certificates"
PARENTS: Final = "_parents"  # no stream has such a folder: names are escaped


@dataclass(frozen=True, slots=True)
class CertifiedFile:
    path: str
    size_bytes: Whole
    checksum: str
    rows: Whole


@dataclass(frozen=True, slots=True)
class CertifiedPartition:
    """A source partition that was expected: the range that the named commits read of it, and its
    watermark when the hour was closed."""

    first: str
    next: str
    watermark_ms: Whole
    by: str  # records, idle, first hour


@dataclass(frozen=True, slots=True)
class CertifiedGap:
    partition: str
    first: str
    next: str
    reason: str


@dataclass(frozen=True, slots=True)
class Certificate:
    """Of one hour of a stream. `hash` is set by `sealed`."""

    stream: str
    period: str  # 2026-11-01T13
    generation: Whole
    files: tuple[CertifiedFile, ...]
    partitions: Mapping[str, CertifiedPartition]
    gaps: tuple[CertifiedGap, ...]
    counts: Mapping[str, Whole]  # landed, late, dead
    event_ms: tuple[Whole, Whole] | None  # first and last that the commits saw, in this hour
    commits: Mapping[str, Spans]  # by shard: those with files in this hour
    closed_ms: Whole  # wall time, by the store's clock
    node: str
    hash: str = ""
    format: Literal[1] = 1


@dataclass(frozen=True, slots=True)
class ParentCertificate:
    """Of an hour over all streams, or of a day over all hours. `hash` is set by `sealed`."""

    period: str  # 2026-11-01T13, 2026-11-01
    generation: Whole
    children: Mapping[str, str]  # hash of each expected one: by stream, or by hour
    closed_ms: Whole
    node: str
    hash: str = ""
    format: Literal[1] = 1


Sealable = TypeVar("Sealable", Certificate, ParentCertificate)


def sealed(certificate: Sealable) -> Sealable:
    return replace(certificate, hash=hash_of(certificate))


def hash_of(certificate: Certificate | ParentCertificate) -> str:
    """Of everything in it but the hash itself."""
    body = {name: value for name, value in body_of(certificate).items() if name != "hash"}
    return f"sha256:{hashlib.sha256(_canonical(body)).hexdigest()}"


def to_bytes(certificate: Certificate | ParentCertificate) -> bytes:
    """As it lies in the lake. Raises Invalid: it was not sealed."""
    if certificate.hash != hash_of(certificate):
        raise Invalid(f"the certificate of {certificate.period} is not sealed; next: sealed(…)")
    return _canonical(body_of(certificate))


def from_bytes(raw: bytes, path: str) -> Certificate:
    """Raises Corrupt, naming the path."""
    return _checked(parse_text(raw, path, Certificate), raw, path)


def parent_from_bytes(raw: bytes, path: str) -> ParentCertificate:
    """Raises Corrupt, naming the path."""
    return _checked(parse_text(raw, path, ParentCertificate), raw, path)


def _checked(certificate: Sealable, raw: bytes, path: str) -> Sealable:
    if certificate.hash != hash_of(certificate) or _canonical(body_of(certificate)) != raw:
        raise Corrupt(
            f"{path}: this certificate was changed: its hash is not that of its content; what it "
            "says proves nothing; next: headgate audit"
        )
    return certificate


def _canonical(body: Mapping[str, object]) -> bytes:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"{text}\n".encode()


def certificate_folder(stream: str, hour: Period) -> str:
    """Where the certificates of all its generations lie."""
    return f"{CERTIFICATES}/{escape_name(stream)}/{hour}"


def parents_folder(root: str) -> str:
    """Of one root: several in a lake each flag the same hours."""
    return f"{CERTIFICATES}/{PARENTS}/{escape_name(root)}"


def parent_folder(root: str, period: Period) -> str:
    return f"{parents_folder(root)}/{period}"


def certificate_name(generation: int) -> str:
    return f"{generation:05}.json"


def flag_paths(template: FolderTemplate, period: Period, stream: str) -> tuple[str, ...]:
    """Where the flags of a stream's hour lie: in its data folder, and in the stream's. Only one, if
    that is the same folder or each shard has a data folder of its own. Raises Invalid: the stream's
    hour has no folder of its own."""
    above = template.stream_folder(period, stream)
    data = None if template.has_shard else template.folder(period, stream=stream)
    folders = [one for one in dict.fromkeys((data, above)) if one is not None]
    if not folders:
        raise Invalid(
            f"folder template {template}: an hour of {stream} is spread over the folders of its "
            "shards, and a flag has no place; next: put {shard} last"
        )
    return tuple(join(folder, FLAG) for folder in folders)


def parent_flag_path(template: FolderTemplate, period: Period) -> str | None:
    """The flag over all streams of an hour, or over all hours of a day; None: it has no folder."""
    is_hour = period.kind == "hour"
    folder = template.hour_folder(period) if is_hour else template.day_folder(period)
    return None if folder is None else join(folder, FLAG)


def withdrawn_path(flag: str, generation: int) -> str:
    """What a flag is called once it is withdrawn."""
    return f"{flag}.{generation}"


def hold_path(template: FolderTemplate, period: Period, stream: str) -> str:
    """Where a file keeps this hour back."""
    return join(folder_of(flag_paths(template, period, stream)[-1]), HOLD)
