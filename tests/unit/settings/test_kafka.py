"""A stream that is read from Kafka, in the settings."""

from pathlib import Path

import pytest

from headgate.engine import EventTime
from headgate.settings.loading import judge
from headgate.settings.surroundings import obstacles
from headgate.sources import AvroSettings, KafkaSettings
from tests.unit.settings.test_loading import orders, problem, stream

FULL = """
      kind: kafka
      brokers: a:9092,b:9092
      topics: [orders, orders.eu]
      format: binary
      start: 2026-11-01T00:00Z
      out_of_range: latest
      isolation: read_uncommitted
      options: {security.protocol: SASL_SSL, sasl.password: "${env:KAFKA_PASSWORD}"}
      spark_options: {kafka.max.poll.records: 7}
      land: [key, headers, timestamp, key]
      round_records: 5000
      records_per_second: 100"""


def source(**parts: str) -> str:
    keys = {"kind": "kafka", "brokers": "'a:1'", "topic": "orders", **parts}
    return "{" + ", ".join(f"{key}: {value}" for key, value in keys.items() if value) + "}"


def kafka(text: str) -> KafkaSettings:
    found = orders(text).source
    assert isinstance(found, KafkaSettings)
    return found


def test_every_key_reaches_its_value() -> None:
    found = orders(stream(source=FULL, event_time="{kafka: timestamp}"))
    assert found.source == KafkaSettings(
        brokers="a:9092,b:9092",
        topics=("orders", "orders.eu"),
        format="binary",
        start="time",
        start_ms=1_793_491_200_000,
        out_of_range="latest",
        isolation="read_uncommitted",
        options={"security.protocol": "SASL_SSL", "sasl.password": "${env:KAFKA_PASSWORD}"},
        spark_options={"kafka.max.poll.records": "7"},
        land=("key", "headers", "timestamp"),
        records_max=5_000,
        records_per_s=100,
    )
    assert found.event_time == EventTime("kafka", "timestamp")


def test_defaults_are_those_of_the_values_themselves() -> None:
    assert kafka(stream(source=source())) == KafkaSettings("a:1", ("orders",))


@pytest.mark.parametrize(
    ("start", "kind", "start_ms"),
    [
        ("beginning", "beginning", None),
        ("end", "end", None),
        ("'2026-11-01T01:00+01:00'", "time", 1_793_491_200_000),
        ("'2026-11-01T00:00'", "time", 1_793_491_200_000),
        ("2026-11-01", "time", 1_793_491_200_000),
    ],
)
def test_a_start_is_a_word_or_a_time(start: str, kind: str, start_ms: int | None) -> None:
    found = kafka(stream(source=source(start=start)))
    assert (found.start, found.start_ms) == (kind, start_ms)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"topic": ""}, "topic: needs exactly one of `topic`, `topics` and `pattern`"),
        ({"topics": "[a]"}, "topic: needs exactly one of `topic`, `topics` and `pattern`"),
        ({"topic": "", "topics": "[a, a]"}, "topics: a topic is there twice"),
        ({"topic": "'a b'"}, "is no name of a topic"),
        ({"topic": "a~2"}, "is no name of a topic"),
        ({"topic": "a/b"}, "is no name of a topic"),
        ({"topic": "'..'"}, "is no name of a topic"),
        ({"topic": "x" * 250}, "is no name of a topic"),
        ({"brokers": ""}, "brokers: is missing"),
        ({"start": "soon"}, "is neither beginning nor end"),
        ({"start": "2026-13-01"}, "is neither beginning nor end"),
        ({"format": "csv"}, "is none of"),
        ({"out_of_range": "skip"}, "is none of"),
        ({"isolation": "dirty"}, "is none of"),
        ({"land": "[value]"}, "is none of"),
        ({"land": "key"}, "needs a list"),
        ({"round_records": "0"}, "at least 1"),
        ({"records_per_second": "-1"}, "at least 0"),
        ({"path": "./incoming"}, "path"),
        ({"options": "{sasl.password: hunter2}"}, "holds a bare secret"),
        ({"options": "{ssl.key.password: hunter2}"}, "holds a bare secret"),
        ({"options": "{ssl.key.pem: hunter2}"}, "holds a bare secret"),
        ({"options": "{sasl.oauthbearer.client.secret: hunter2}"}, "holds a bare secret"),
        ({"spark_options": "{kafka.ssl.keystore.key: hunter2}"}, "holds a bare secret"),
        ({"spark_options": "{kafka.sasl.jaas.config: 'x password=\"hunter2\";'}"}, "bare secret"),
        ({"spark_options": "{failOnDataLoss: 'false'}"}, "failOnDataLoss: what is read is decided"),
        ({"spark_options": "{STARTINGOFFSETS: latest}"}, "STARTINGOFFSETS: what is read is decid"),
    ],
)
def test_a_source_that_cannot_be_is_refused(parts: dict[str, str], said: str) -> None:
    found = problem(stream(source=source(**parts)))
    assert said in found
    assert "streams.orders.source" in found
    assert "hunter2" not in found


@pytest.mark.parametrize(
    "option", ["ssl.ca.location: /etc/ca.pem", "ssl.key.location: /k.pem", "sasl.username: u"]
)
def test_what_is_only_about_a_secret_is_written_openly(option: str) -> None:
    (key, value), *_ = kafka(stream(source=source(options=f"{{{option}}}"))).options.items()
    assert f"{key}: {value}" == option


def test_the_time_that_kafka_keeps_is_for_kafka_only() -> None:
    found = problem(stream(event_time="{kafka: timestamp}"))
    assert "event_time.kafka: only a source of kind kafka has it" in found
    assert orders(stream(source=source(), event_time="{kafka: timestamp}"))


@pytest.mark.parametrize(
    ("event_time", "said"),
    [
        ("{kafka: offset}", "is none of"),
        ("{kafka: timestamp, unit: s}", "needs neither `unit` nor `parse`"),
        ("{kafka: timestamp, json: $.at}", "has json and kafka"),
        ("{column: at}", "has no meaning for json records: use json, regex or sql"),
    ],
)
def test_an_event_time_that_cannot_be_is_refused(event_time: str, said: str) -> None:
    assert said in problem(stream(source=source(), event_time=event_time))


@pytest.mark.parametrize("how", ["json: $.at", "regex: '(a)'", "column: at"])
def test_bytes_have_no_event_time_inside(how: str) -> None:
    found = problem(stream(source=source(format="binary"), event_time=f"{{{how}}}"))
    assert "has no meaning for binary records: use kafka or sql" in found


@pytest.mark.parametrize("land_as", ["json", "text"])
def test_what_is_landed_beside_a_record_needs_columns(land_as: str) -> None:
    found = problem(stream(source=source(land="[key]"), land_as=land_as))
    assert f"source.land: is for parquet and avro, and the stream lands as {land_as}" in found
    assert orders(stream(source=source(land="[key]"), land_as="parquet"))


@pytest.mark.parametrize("land_as", ["json", "text"])
def test_bytes_are_landed_as_columns_only(land_as: str) -> None:
    text = stream(source=source(format="binary"), event_time="{kafka: timestamp}", land_as=land_as)
    assert (
        f"format: is landed as parquet or avro only, and the stream lands as {land_as}"
        in problem(text)
    )


def test_two_streams_may_read_one_topic() -> None:
    two = stream().replace("source: {kind: files, path: ./incoming}", f"source: {source()}")
    other = two.partition("  orders:\n")[2]
    assert judge(f"{two}  others:\n{other}".encode(), "/srv/app", {}).settings is not None


def test_the_same_cluster_has_one_place_and_no_secret_is_in_it() -> None:
    one = kafka(stream(source=source()))
    other = kafka(stream(source=source(topic="others", round_records="5")))
    assert one.place == other.place
    for parts in (
        {"brokers": "'b:1'"},
        {"isolation": "read_uncommitted"},
        {"options": "{client.id: x}"},
        {"spark_options": "{kafka.client.id: x}"},
    ):
        assert kafka(stream(source=source(**parts))).place != one.place
    assert kafka(stream(source=source())).words == "kafka a:1 orders"


# ── Avro ──────────────────────────────────────────────────────────────────────────────────────────

BY_FIELD = "{avro: meta.at, unit: s}"


def test_avro_is_read_by_a_file_or_a_registry() -> None:
    found = orders(stream(source=source(format="avro", schema="o.avsc"), event_time=BY_FIELD))
    assert found.event_time == EventTime("avro", "meta.at", "s")
    assert isinstance(found.source, KafkaSettings)
    assert found.source.avro == AvroSettings("/srv/app/o.avsc")
    framed = kafka(
        stream(
            source=source(format="avro", schema="o.avsc", framing="confluent"), event_time=BY_FIELD
        )
    )
    assert framed.avro == AvroSettings("/srv/app/o.avsc", is_framed=True)
    short = kafka(
        stream(source=source(format="avro", registry="'http://r:8081'"), event_time=BY_FIELD)
    )
    assert short.avro == AvroSettings(registry="http://r:8081", is_framed=True)
    registry = "{url: 'https://r', user: u, password: '${env:P}', ca: ca.pem}"
    whole = kafka(stream(source=source(format="avro", registry=registry), event_time=BY_FIELD))
    assert whole.avro == AvroSettings(
        registry="https://r", is_framed=True, user="u", password="${env:P}", ca="/srv/app/ca.pem"
    )
    places = [one.coding for one in (framed, short, whole)]
    assert len({one.place for one in places if one is not None}) == 3
    assert kafka(stream(source=source())).coding is None


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({}, "schema: avro needs exactly one of `schema` and `registry`"),
        ({"schema": "x", "registry": "'http://r'"}, "schema: avro needs exactly one of"),
        ({"registry": "'http://r'", "framing": "none"}, "framing: without a frame no record says"),
        ({"registry": "r:8081"}, "is no address like http://localhost:8081"),
        ({"registry": "'ftp://r'"}, "is no address like http://localhost:8081"),
        ({"registry": "'http://u:hunter2@r'"}, "has a user in it"),
        ({"registry": "'http://r?x=1'"}, "ends with ? or #"),
        ({"registry": "{url: 'http://r', user: u}"}, "needs `user` and `password` together"),
        ({"registry": "{url: 'http://r', user: u, password: hunter2}"}, "holds a bare secret"),
        ({"registry": "{url: 'http://r', token: hunter2}"}, "holds a bare secret"),
        (
            {"registry": "{url: 'http://r', user: u, password: '${env:P}', token: '${env:T}'}"},
            "token: has a user and a token",
        ),
        ({"registry": "{user: u}"}, "url: is missing"),
        ({"schema": "x", "framing": "confluence"}, "the nearest is 'confluent'"),
    ],
)
def test_avro_that_cannot_be_read_is_refused(parts: dict[str, str], said: str) -> None:
    found = problem(stream(source=source(format="avro", **parts), event_time="{avro: at}"))
    assert said in found
    assert "hunter2" not in found


@pytest.mark.parametrize("key", ["schema", "registry", "framing"])
def test_what_is_for_avro_needs_that_format(key: str) -> None:
    value = {"schema": "x", "registry": "'http://r'", "framing": "none"}[key]
    found = problem(stream(source=source(**{key: value})))
    assert f"source.{key}: is for `format: avro`, and the format is json" in found


@pytest.mark.parametrize(
    ("event_time", "said"),
    [
        ("{avro: 'a b'}", "is no field of an Avro record"),
        ("{avro: a..b}", "is no field of an Avro record"),
        ("{avro: at, kafka: timestamp}", "has kafka and avro"),
        ("{json: $.at}", "has no meaning for avro records: use avro, kafka or sql"),
    ],
)
def test_an_event_time_of_avro_is_a_field(event_time: str, said: str) -> None:
    text = stream(source=source(format="avro", schema="x"), event_time=event_time)
    assert said in problem(text)


def test_a_field_of_avro_is_for_avro_only() -> None:
    for own in (source(), "{kind: files, path: ./incoming}"):
        found = problem(stream(source=own, event_time="{avro: at}"))
        assert "event_time.avro: is for a source of kind kafka with `format: avro`" in found


def test_a_schema_file_is_looked_at_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    text = stream(
        source=source(format="avro", schema=f"'{file}'"), event_time="{avro: meta.at}"
    ).encode()
    settings = judge(text, "/srv/app", {}).settings
    assert settings is not None

    def said() -> list[str]:
        places = ("source.schema", "event_time.avro")
        found = [one for one in map(str, obstacles(settings)) if any(at in one for at in places)]
        assert len(found) <= 1
        return found

    assert f"{file}: cannot be read" in said()[0]
    file.write_text("{}")
    assert "is no Avro schema of a record" in said()[0]
    file.write_text('{"type": "record", "name": "x", "fields": [{"name": "at", "type": "long"}]}')
    assert "event_time.avro" in said()[0]
    assert f"{file} has no field 'meta.at' of one type" in said()[0]
    inner = '{"type": "record", "name": "m", "fields": [{"name": "at", "type": "long"}]}'
    file.write_text(
        f'{{"type": "record", "name": "x", "fields": [{{"name": "meta", "type": {inner}}}]}}'
    )
    assert said() == []
