import json
from dataclasses import dataclass, fields
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import Corrupt, Invalid
from headgate.store import Document, JsonObject, Version
from headgate.store.codec import (
    BODY_BYTES_MAX,
    Truth,
    Whole,
    body_of,
    decode,
    encode,
    parse,
    parse_text,
    seal,
    text_of,
    unseal,
)

TOKEN = "0123456789abcdef" * 2
texts = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
bodies = st.dictionaries(texts, values, max_size=4).map(lambda body: {**body, "format": 1})


@given(bodies)
def test_a_sealed_body_comes_back_with_its_token(body: JsonObject) -> None:
    token, found = unseal(seal(TOKEN, "doc", encode("doc", body)), "doc", "there")
    assert token == TOKEN
    assert json.dumps(found, sort_keys=True) == json.dumps(body, sort_keys=True)


@given(bodies)
def test_a_sealed_body_is_json_that_people_can_read(body: JsonObject) -> None:
    shown = json.loads(seal(TOKEN, "doc", encode("doc", body)))
    assert shown["body"] == json.loads(json.dumps(body))
    assert shown["token"] == TOKEN


@given(bodies, st.data())
def test_g5_a_cut_or_changed_document_is_corrupt_and_names_its_place(
    body: JsonObject, data: st.DataObject
) -> None:
    sealed = seal(TOKEN, "doc", encode("doc", body))
    cut = data.draw(st.integers(0, len(sealed) - 1))
    with pytest.raises(Corrupt, match=r"/there\.json"):
        unseal(sealed[:cut], "doc", "/there.json")
    place = data.draw(st.integers(0, len(sealed) - 1))
    changed = bytearray(sealed)
    changed[place] ^= 1
    with pytest.raises(Corrupt, match=r"/there\.json"):
        unseal(bytes(changed), "doc", "/there.json")


def test_equal_bodies_are_equal_bytes() -> None:
    assert encode("doc", {"b": 1, "a": 2, "format": 1}) == encode(
        "doc", {"format": 1, "a": 2, "b": 1}
    )


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"{}", b'{"format":0}', b'{"format":true}', b"\xff", b"1"]
)
def test_what_is_no_body_is_corrupt(raw: bytes) -> None:
    with pytest.raises(Corrupt, match="there"):
        decode(raw, "there")


def test_a_body_too_deep_to_write_is_invalid() -> None:
    deep: JsonObject = {"format": 1}
    for _ in range(64):
        encode("doc", deep)
        deep = {"format": 1, "in": deep}
    with pytest.raises(Invalid, match="nests deeper than 64"):
        encode("doc", deep)
    for _ in range(100_000):
        deep = {"format": 1, "in": deep}
    with pytest.raises(Invalid):
        encode("doc", deep)


def test_a_document_moved_to_another_key_is_corrupt() -> None:
    sealed = seal(TOKEN, "doc", encode("doc", {"format": 1}))
    with pytest.raises(Corrupt, match="checksum"):
        unseal(sealed, "other", "/there.json")


@pytest.mark.parametrize("token", ["", "x" * 32, TOKEN.upper(), TOKEN[:-1]])
def test_a_token_that_could_not_be_read_back_is_not_written(token: str) -> None:
    with pytest.raises(Invalid, match="32 hexadecimal digits"):
        seal(token, "doc", b"{}")


def test_the_limit_is_counted_in_bytes_of_utf8() -> None:
    size = len(encode("doc", {"format": 1, "x": ""}))
    encode("doc", {"format": 1, "x": "日" * ((BODY_BYTES_MAX - size) // 3)})
    with pytest.raises(Invalid, match=r"1,000,00\d bytes, at most 1,000,000"):
        encode("doc", {"format": 1, "x": "日" * ((BODY_BYTES_MAX - size) // 3 + 1)})


@dataclass(frozen=True, slots=True)
class Inner:
    words: str
    at_ms: Whole


@dataclass(frozen=True, slots=True)
class Outer:
    name: str
    count: Whole
    is_on: Truth = False
    labels: tuple[str, ...] = ()
    spans: tuple[tuple[Whole, Whole], ...] = ()
    inner: Inner | None = None
    state: Literal["new", "old"] = "new"
    format: Literal[1] = 1


inners = st.builds(Inner, texts, st.integers())
outers = st.builds(
    Outer,
    texts,
    st.integers(),
    st.booleans(),
    st.lists(texts, max_size=3).map(tuple),
    st.lists(st.tuples(st.integers(), st.integers()), max_size=3).map(tuple),
    st.none() | inners,
    st.sampled_from(["new", "old"]),
)


def document(body: JsonObject) -> Document:
    return Document("some/key", body, Version("1"))


@given(outers)
def test_a_value_comes_back_from_its_body_through_bytes(value: Outer) -> None:
    stored = decode(encode("doc", body_of(value)), "there")
    assert parse(document(stored), Outer) == value


@given(outers)
def test_a_value_comes_back_from_its_text_which_people_can_read(value: Outer) -> None:
    text = text_of(value)
    assert parse_text(text, "there", Outer) == value
    assert list(json.loads(text)) == [field.name for field in fields(Outer)]


WRONG_FIELDS = pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"count": "3"}, "count"),
        ({"count": 3.0}, "count"),
        ({"count": True}, "count"),
        ({"is_on": 1}, "is_on"),
        ({"name": 3}, "name"),
        ({"labels": "ab"}, "labels"),
        ({"spans": [[1]]}, "spans.0"),
        ({"inner": {"words": "x"}}, "inner.at_ms"),
        ({"state": "other"}, "state"),
        ({"format": 2}, "format"),
        ({"more": 1}, "more"),
    ],
)


@WRONG_FIELDS
def test_a_body_with_a_wrong_field_is_corrupt_and_names_key_and_field(
    change: JsonObject, what: str
) -> None:
    body = {**body_of(Outer("x", 1)), **change}
    with pytest.raises(Corrupt, match=rf"some/key.*{what}"):
        parse(document(body), Outer)


@WRONG_FIELDS
def test_g5_a_text_with_a_wrong_field_is_corrupt_and_names_place_and_field(
    change: JsonObject, what: str
) -> None:
    body = {**body_of(Outer("x", 1)), **change}
    with pytest.raises(Corrupt, match=rf"there\.json.*{what}"):
        parse_text(json.dumps(body).encode(), "there.json", Outer)


@given(outers, st.data())
def test_g5_a_text_that_is_cut_off_is_corrupt_and_names_its_place(
    value: Outer, data: st.DataObject
) -> None:
    text = text_of(value)
    cut = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(Corrupt, match=r"there\.json"):
        parse_text(text[:cut], "there.json", Outer)


@pytest.mark.parametrize(
    "raw", [b"", b"null", b"[]", b"17", b"{}", b"\xff\xfe", b"{" * 10_000, b'{"count":1e999}']
)
def test_g5_what_is_no_such_text_is_corrupt(raw: bytes) -> None:
    with pytest.raises(Corrupt, match=r"there\.json"):
        parse_text(raw, "there.json", Outer)


def test_a_body_without_a_field_that_has_no_default_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="count"):
        parse(document({"format": 1, "name": "x"}), Outer)


def test_a_field_that_is_new_in_this_release_has_its_default() -> None:
    assert parse(document({"format": 1, "name": "x", "count": 1}), Outer) == Outer("x", 1)
