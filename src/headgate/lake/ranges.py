"""Ranges: any part of one object of a bucket, as a file that is read. The door to obstore.

Every part is of the very same state of the object: if it was replaced meanwhile, reading fails.
"""

import io
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from headgate.errors import HeadgateError
from headgate.lake import BucketSettings
from headgate.lake.bucket import Bucket, endpoint_of

if TYPE_CHECKING:
    from obstore.store import S3Credential

BUFFER_BYTES: Final = 1 << 18


def open_range(
    bucket: Bucket, settings: BucketSettings, key: str, etag: str, size_bytes: int
) -> BinaryIO:
    """An object that is there, in the state that has this ETag."""

    def credential() -> "S3Credential":
        who = bucket.keyring.current()
        ends = who.expires_at_ms
        return {
            "access_key_id": who.access_key,
            "secret_access_key": who.secret_key,
            "token": who.session_token or None,
            "expires_at": None if ends is None else datetime.fromtimestamp(ends / 1000, UTC),
        }

    endpoint = endpoint_of(settings, bucket.region)
    if not settings.is_path_style:
        scheme, _, host = endpoint.partition("://")
        endpoint = f"{scheme}://{bucket.name}.{host}"
    store = S3Store(
        bucket.name,
        config={
            "endpoint": endpoint,
            "region": bucket.region,
            "virtual_hosted_style_request": not settings.is_path_style,
        },
        client_options={"allow_http": endpoint.startswith("http://")},
        credential_provider=credential,
    )

    def read(start: int, end: int) -> Any:
        options: Any = {"range": (start, end), "if_match": etag}
        return obstore.get(store, key, options=options).bytes()

    raw = _Object(bucket.place(key), size_bytes, read)
    return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, raw), BUFFER_BYTES))


class _Object(io.RawIOBase):
    def __init__(self, place: str, size_bytes: int, read: Callable[[int, int], Any]) -> None:
        super().__init__()
        self._place = place
        self._size_bytes = size_bytes
        self._read = read
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size_bytes}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, into: Any) -> int:
        end = min(self._at + len(into), self._size_bytes)
        if end <= self._at:
            return 0
        try:
            found = bytes(self._read(self._at, end))
        except (BaseError, HeadgateError, FileNotFoundError) as error:
            raise OSError(f"{self._place}: cannot be read ({error})") from error
        into[: len(found)] = found
        self._at += len(found)
        return len(found)
