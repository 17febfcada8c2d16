"""Ranges: any part of one object of a bucket, as a file that is read. The door to obstore.

Every part is of the very same state of the object: if it was replaced meanwhile, reading fails.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from headgate.errors import HeadgateError
from headgate.lake import BucketSettings
from headgate.lake.bucket import Bucket, endpoint_of
from headgate.lake.parts import open_parts

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

    def read(start: int, end: int) -> bytes:
        options: Any = {"range": (start, end), "if_match": etag}
        try:
            return bytes(obstore.get(store, key, options=options).bytes())
        except (BaseError, HeadgateError, FileNotFoundError) as error:
            raise OSError(f"{bucket.place(key)}: cannot be read ({error})") from error

    return open_parts(size_bytes, read, BUFFER_BYTES)
