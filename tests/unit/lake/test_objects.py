"""What an S3 server says, and how a request to it is signed."""

import base64
import hashlib

import pytest

from headgate.lake.objects import (
    can_be_listed,
    copied_checksum,
    deletion,
    failures_of,
    found_of,
    keys_of,
    of_etag,
    uploads_of,
)
from headgate.lake.signing import Credentials, escaped, query_of, signed


def test_the_first_full_checksum_is_taken_and_names_its_algorithm() -> None:
    crc, sha = (base64.b64encode(raw).decode() for raw in (b"\1" * 8, b"\2" * 32))
    headers = {"etag": '"x"', "x-amz-checksum-sha256": sha, "x-amz-checksum-crc64nvme": crc}
    assert found_of(headers, 5).facts.checksum == f"crc64nvme:{'01' * 8}"
    del headers["x-amz-checksum-crc64nvme"]
    assert found_of(headers, 5).facts.checksum == f"sha256:{'02' * 32}"


def test_a_checksum_of_parts_is_none_and_the_etag_must_do() -> None:
    headers = {
        "etag": '"abc-3"',
        "x-amz-checksum-sha256": "AA==",
        "x-amz-checksum-type": "COMPOSITE",
    }
    assert found_of(headers, 5).facts.checksum == "etag:abc-3"


def test_an_object_and_its_copy_in_one_part_have_the_same_checksum_by_etag() -> None:
    plain = hashlib.md5(b"content").hexdigest()
    copied = hashlib.md5(bytes.fromhex(plain)).hexdigest() + "-1"
    assert of_etag(f'"{plain}"') == of_etag(f'"{copied}"') == f"etag:{copied}"


def test_a_listing_is_read_with_names_as_they_are_or_as_in_a_url() -> None:
    body = (
        "<ListBucketResult><Contents><Key>a&amp;b&#xA;c</Key><Size>7</Size></Contents>"
        "<CommonPrefixes><Prefix>d 100%/</Prefix></CommonPrefixes>"
        "<NextContinuationToken>x&amp;y</NextContinuationToken></ListBucketResult>"
    )
    keys = keys_of(body.encode())
    assert keys.sizes_bytes == {"a&b\nc": 7}
    assert (keys.folders, keys.next) == (("d 100%/",), "x&y")
    coded = "<EncodingType>url</EncodingType><Contents><Key>a+b%0Ac</Key><Size>1</Size></Contents>"
    assert keys_of(coded.encode()).sizes_bytes == {"a b\nc": 1}


def test_an_upload_is_as_old_as_the_server_says() -> None:
    began = b"<Initiated>2026-11-18T08:00:00Z</Initiated>"
    body = b"<Upload><Key>k</Key><UploadId>u</UploadId>" + began + b"</Upload>"
    (found,) = uploads_of(body)
    assert (found.key, found.number) == ("k", "u")
    assert found.age_ms("Wed, 18 Nov 2026 09:00:00 GMT") == 3_600_000
    assert found.age_ms("no date") == 0


def test_what_could_not_be_deleted_is_named() -> None:
    assert failures_of(b"<Error><Code>NoSuchKey</Code></Error><Code>AccessDenied</Code>") == {
        "NoSuchKey",
        "AccessDenied",
    }
    assert b"a&amp;b" in deletion(["a&b"])
    assert can_be_listed("a\nb")
    assert not can_be_listed("a\1b")


def test_the_answer_to_a_copy_says_what_was_copied() -> None:
    told = base64.b64encode(b"\3" * 8)
    body = b"<CopyObjectResult><ChecksumCRC64NVME>" + told + b"</ChecksumCRC64NVME>"
    assert copied_checksum(body) == f"crc64nvme:{'03' * 8}"
    assert copied_checksum(b"<CopyObjectResult/>") == ""


def test_a_request_is_signed_as_amazon_shows_it() -> None:
    """Their example: the ranged GET of a text file in examplebucket."""
    who = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    headers = {"host": "examplebucket.s3.amazonaws.com", "range": "bytes=0-9"}
    at_ns = 1_369_353_600 * 1_000_000_000  # 2013-05-24T00:00:00Z
    found = signed("GET", "/test.txt", "", headers, b"", who, "us-east-1", at_ns)
    assert found["authorization"].endswith(
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    )


@pytest.mark.parametrize(("path", "sent"), [("a b/ü+", "a%20b/%C3%BC%2B"), ("~-_.", "~-_.")])
def test_a_path_is_escaped_as_it_is_signed(path: str, sent: str) -> None:
    assert escaped(path) == sent
    assert query_of({"b": "1/2", "a": ""}) == "a=&b=1%2F2"
