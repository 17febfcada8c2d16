"""Signing: a request to S3 says who sends it, and that nobody changed it (version 4). Pure."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final
from urllib.parse import quote

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_PLAIN: Final = "-_.~"


@dataclass(frozen=True, slots=True)
class Credentials:
    access_key: str
    secret_key: str
    session_token: str = ""
    expires_at_ms: int | None = None  # None: never, as far as anybody knows

    def __repr__(self) -> str:
        return f"Credentials({self.access_key[:4]}…)"


def escaped(path: str) -> str:
    return quote(path, safe=f"/{_PLAIN}")


def query_of(options: Mapping[str, str]) -> str:
    """In the order in which it is signed."""
    return "&".join(
        f"{quote(name, safe=_PLAIN)}={quote(value, safe=_PLAIN)}"
        for name, value in sorted(options.items())
    )


def signed(
    method: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
    body: bytes,
    who: Credentials,
    region: str,
    wall_ns: int,
) -> dict[str, str]:
    """The headers, with all that the signature needs. `path` and `query` are as they are sent, the
    names of `headers` in small letters, `host` among them."""
    moment = datetime.fromtimestamp(wall_ns // 1_000_000_000, UTC).strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(body).hexdigest()
    every = {**headers, "x-amz-date": moment, "x-amz-content-sha256": digest}
    if who.session_token:
        every["x-amz-security-token"] = who.session_token
    names = ";".join(sorted(every))
    lines = "".join(f"{name}:{every[name].strip()}\n" for name in sorted(every))
    canonical = "\n".join((method, path, query, lines, names, digest))
    scope = f"{moment[:8]}/{region}/s3/aws4_request"
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"{_ALGORITHM}\n{moment}\n{scope}\n{hashed}"
    key = _key(who.secret_key, moment[:8], region)
    signature = hmac.new(key, text.encode(), "sha256").hexdigest()
    every["authorization"] = (
        f"{_ALGORITHM} Credential={who.access_key}/{scope}, SignedHeaders={names}, "
        f"Signature={signature}"
    )
    return every


@lru_cache(maxsize=16)
def _key(secret: str, day: str, region: str) -> bytes:
    """Of one day: four digests less for every request."""
    key = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    return key
