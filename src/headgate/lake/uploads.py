"""Uploads: a copy within a bucket in parts, which gets its name only if nothing has it.

    begun ── each part copied by the server ──▶ whole ── completed, if the name is free ──▶ there
      └── anything fails: given up, its parts are gone

A copy in parts is several requests, and whoever is paused before the last one could bring back a
file that was rightly removed since. So whoever removes a file first gives up every upload under its
name; that of a copy which began later finds nothing to copy, for what was staged is gone by then.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from headgate.errors import OutcomeUnknown, Unavailable
from headgate.lake.bucket import Answer, Bucket
from headgate.lake.objects import completion, part_etag, upload_id, uploads_of
from headgate.lake.signing import escaped

PART_BYTES: Final = 1 << 30  # a server takes parts of up to 5 GB
PARTS_MAX: Final = 10_000
PAGES_MAX: Final = 100


class Refused(Exception):
    """What the server said instead of doing it; nothing is there."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.code)
        self.answer = answer


def copy_source(bucket: Bucket, key: str) -> str:
    return escaped(f"/{bucket.name}/{key}")


def copy_in_parts(
    bucket: Bucket,
    key: str,
    etag: str,
    size_bytes: int,
    target: str,
    headers: Mapping[str, str],
    part_bytes: int = PART_BYTES,
) -> Answer:
    """The last answer. `headers`: what is to be kept of it. Raises Refused, Unavailable,
    OutcomeUnknown."""
    part_bytes = max(part_bytes, -(-size_bytes // PARTS_MAX))
    begun = bucket.ask("POST", target, {"uploads": ""}, headers, is_repeatable=True)
    if not begun.is_good:
        raise Refused(begun)
    number = upload_id(begun.body)
    try:
        etags: list[str] = []
        for first in range(0, max(size_bytes, 1), part_bytes):
            origin = {
                "x-amz-copy-source": copy_source(bucket, key),
                "x-amz-copy-source-if-match": etag,
            }
            if size_bytes > part_bytes:
                last = min(first + part_bytes, size_bytes) - 1
                origin["x-amz-copy-source-range"] = f"bytes={first}-{last}"
            options = {"partNumber": str(len(etags) + 1), "uploadId": number}
            part = bucket.ask("PUT", target, options, origin, is_repeatable=True)
            if not part.is_good:
                raise Refused(part)
            etags.append(part_etag(part.body))
        done = bucket.ask(
            "POST",
            target,
            {"uploadId": number},
            {"if-none-match": "*"},
            completion(etags),
            is_repeatable=False,
        )
        if not done.is_good:
            raise Refused(done)
    except (Refused, Unavailable, OutcomeUnknown):
        give_up(bucket, target, number)  # if it is done in spite of that, there is nothing to give
        raise
    return done


def give_up(bucket: Bucket, key: str, number: str) -> None:
    """As far as that is possible now: the rest is for who removes what is there, or a sweeper."""
    with suppress(Unavailable, OutcomeUnknown):
        bucket.ask("DELETE", key, {"uploadId": number}, is_repeatable=True)


def give_up_all(bucket: Bucket, prefix: str, *, is_name: bool, age_ms: int | None = None) -> int:
    """All uploads under exactly this name, or below this folder; with an age only those that were
    begun so long ago, by the server's clock. How many. Raises Unavailable, OutcomeUnknown."""
    given_up = 0
    for _ in range(PAGES_MAX):
        options = {"uploads": "", "prefix": prefix, "encoding-type": "url"}
        listed = bucket.ask("GET", "", options, is_repeatable=True, about=prefix)
        if listed.status == 501:
            return given_up  # a server that has no uploads
        if not listed.is_good:
            raise Unavailable(
                f"{bucket.place(prefix)}: the server does not tell which uploads there are "
                f"({listed.status} {listed.code}); nothing was removed; next: try again"
            )
        found = [
            one
            for one in uploads_of(listed.body)
            if (not is_name or one.key == prefix)
            and (age_ms is None or one.age_ms(listed.headers.get("date", "")) >= age_ms)
        ]
        if not found:
            return given_up
        for key, number in ((one.key, one.number) for one in found):
            gone = bucket.ask("DELETE", key, {"uploadId": number}, is_repeatable=True)
            if not gone.is_good and gone.status != 404:
                raise Unavailable(
                    f"{bucket.place(key)}: an upload under this name cannot be given up "
                    f"({gone.status} {gone.code}); nothing was removed; next: try again"
                )
            given_up += 1
    raise Unavailable(f"{bucket.place(prefix)}: more and more uploads; next: see who makes them")
