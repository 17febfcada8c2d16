"""What a schema registry says of an id; and what says nothing, so that everybody waits."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.errors import Invalid, Unavailable
from headgate.sources.kafka import registry as module
from headgate.sources.kafka.registry import KnownSchemas, Registry, read_schema
from tests.servers.registry import RegistryServer

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "at", "type": "long"}]}


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as server:
        server.register(7, ORDER)
        yield server


def test_a_schema_is_asked_for_once(server: RegistryServer) -> None:
    known = KnownSchemas({}, {"here": Registry(f"{server.url}/")})
    assert known.known("here") == {}
    assert list(known.learn("here", [7])) == [7]
    server.stop()
    assert list(known.learn("here", [7])) == [7]
    assert list(known.known("here")) == [7]
    assert server.asked == [7]


def test_an_id_that_the_registry_does_not_know_is_asked_for_again_later(
    server: RegistryServer,
) -> None:
    known = KnownSchemas({}, {"here": Registry(server.url)})
    assert known.learn("here", [8]) == {}
    server.register(8, ORDER)
    assert list(known.learn("here", [8])) == [8]


def test_what_is_no_avro_of_a_record_is_as_good_as_unknown(server: RegistryServer) -> None:
    server.register(1, {"type": "object"}, schemaType="JSON")
    server.register(2, "string")
    server.schemas[3] = {"schema": "{broken"}
    asked = Registry(server.url)
    assert [asked.schema(number) for number in (1, 2, 3)] == [None] * 3


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b"{}"),
        (503, b"<html>away</html>"),
        (404, b"<html>no such page</html>"),  # of a proxy, not of the registry
        (404, b'{"error_code":40401}'),
        (404, b"[]"),
        (403, b'{"error_code":40301}'),
        (200, b"<html>log in</html>"),
        (200, b"[]"),
        (200, b"{}"),
        (302, b""),
    ],
)
def test_whatever_else_it_answers_says_nothing_about_a_record(
    server: RegistryServer, status: int, body: bytes
) -> None:
    server.answer = (status, body)
    with pytest.raises(Unavailable, match=r"none became a dead letter; next: curl http://127"):
        Registry(server.url).schema(7)


def test_nobody_there_and_nobody_who_answers_in_time_say_nothing(
    server: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.stop()
    with pytest.raises(Unavailable, match="cannot be asked"):
        Registry(server.url).schema(7)
    monkeypatch.setattr(module, "CALL_S", 0.2)
    server.slow_s = 1.0
    server.start()
    with pytest.raises(Unavailable, match="cannot be asked"):
        Registry(server.url).schema(7)


def test_a_password_is_told_and_a_wrong_one_holds(server: RegistryServer) -> None:
    server.password = "weir"
    assert Registry(server.url, user="reader", password="weir").schema(7) is not None
    with pytest.raises(Unavailable, match="answers 401") as error:
        Registry(server.url, user="reader", password="sluice").schema(7)
    assert "sluice" not in str(error.value)


def test_a_schema_that_refers_to_others_is_for_a_person_to_decide(server: RegistryServer) -> None:
    server.register(9, ORDER, references=[{"name": "x", "subject": "x", "version": 1}])
    with pytest.raises(Invalid, match="refers to others"):
        Registry(server.url).schema(9)


def test_certificates_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="has no certificates"):
        Registry("https://x", ca=str(tmp_path / "no.pem"))


def test_a_file_has_the_schema_of_all_records(tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    with pytest.raises(Invalid, match=r"cannot be read .*; next: ls -l "):
        read_schema(str(file))
    file.write_text('{"type": "array"}')
    with pytest.raises(Invalid, match="is no Avro schema of a record"):
        read_schema(str(file))
    file.write_text('{"type": "record", "name": "x", "fields": []}')
    assert KnownSchemas({"f": read_schema(str(file))}, {}).known("f") == {0: file.read_text()}
