"""Which fields of an Avro record are read, and as what."""

import json
from typing import Any

import pytest

from headgate.engine.avro import Decoder, Schema, decoders_of, path_of
from headgate.errors import Invalid

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {
            "name": "meta",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Meta",
                    "fields": [
                        {"name": "seen", "type": ["null", "long"]},
                        {"name": "tags", "type": {"type": "array", "items": "string"}},
                    ],
                },
            ],
        },
        {"name": "first", "type": ["null", "Meta"]},
        {"name": "before", "type": ["null", "Order"]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9,
                                   "scale": 2}},
        {"name": "either", "type": ["long", "string"]},
        {"name": "wide", "type": ["null", "int", "long"]},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "nanos", "type": {"type": "long", "logicalType": "timestamp-nanos"}},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def order() -> Schema:
    return Schema(json.dumps(ORDER))


def record_in(schema: str) -> dict[str, Any]:
    """What stands in the record of one field."""
    whole = json.loads(schema)
    (field,) = whole["fields"]
    assert (whole["name"], field["name"]) == ("headgate_whole", "record")
    found: dict[str, Any] = field["type"]
    return found


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("id", "bigint"),
        ("at", "timestamp"),
        ("note", "string"),
        ("meta", "struct<seen:bigint,tags:array<string>>"),
        ("first", "struct<seen:bigint,tags:array<string>>"),
        ("meta.seen", "bigint"),
        ("first.seen", "bigint"),
        ("price", "decimal(9,2)"),
        ("wide", "bigint"),
        ("kind", "string"),
        ("nanos", "bigint"),
        ("either", ""),
        ("before", ""),  # a part of itself
        ("before.at", "timestamp"),
        ("missing", ""),
        ("meta.missing", ""),
        ("id.seen", ""),
    ],
)
def test_the_type_of_a_field_is_that_of_spark(order: Schema, path: str, told: str) -> None:
    assert order.type_at(path_of(path)) == told


def test_a_reader_wants_no_more_than_the_fields_that_are_used(order: Schema) -> None:
    found = record_in(order.reader([("at",), ("first", "seen"), ("missing",)]))
    assert found == {
        "type": "record",
        "name": "shop.Order",
        "fields": [
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {
                "name": "first",
                "type": [
                    "null",
                    {
                        "type": "record",
                        "name": "shop.Meta",
                        "fields": [{"name": "seen", "type": ["null", "long"]}],
                    },
                ],
            },
        ],
    }


def test_a_type_that_is_wanted_in_two_ways_is_read_as_its_writer_has_it(order: Schema) -> None:
    assert order.reader([("meta",), ("first", "seen")]) == order.text


def test_who_wants_nothing_that_is_there_still_reads_a_record(order: Schema) -> None:
    (field,) = record_in(order.reader([("missing",)]))["fields"]
    assert field["default"] is None


def test_the_schema_of_the_writer_is_as_it_was(order: Schema) -> None:
    assert record_in(order.text) == ORDER


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        ('"string"', "is no Avro schema of a record"),
        ("[]", "is no Avro schema of a record"),
        ('{"type": "record", "fields": []}', "'name'"),
        ('{"type": "record", "name": "x", "fields": [{"name": "a"}]}', "'type'"),
        ('{"type": "record", "name": "x", "fields": 7}', "is no Avro schema"),
    ],
)
def test_what_is_no_schema_of_a_record_is_refused(schema: str, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        Schema(schema)


def test_each_id_has_a_column_of_its_own() -> None:
    schemas = {7: json.dumps(ORDER), 3: json.dumps(ORDER)}
    found = decoders_of(schemas, [("at",)], is_by_id=True)
    assert [(one.id, one.column) for one in found] == [(3, "avro_3"), (7, "avro_7")]
    (only,) = decoders_of({0: json.dumps(ORDER)}, [("at",)], is_by_id=False)
    assert (only.id, only.column, only.at(("meta", "seen"))) == (
        *(None, "avro_0", "avro_0.`meta`.`seen`"),
    )


def test_a_quote_in_a_schema_ends_no_literal() -> None:
    odd = {**ORDER, "doc": "it's \\ odd"}
    decoded = Decoder(None, Schema(json.dumps(odd)), (("at",),)).decoded("raw")
    assert "it\\'s \\\\\\\\ odd" in decoded
