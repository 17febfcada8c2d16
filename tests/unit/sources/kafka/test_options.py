"""The words of one Kafka client, told to the other."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import Invalid
from headgate.sources.kafka.options import for_spark


def told(options: dict[str, str], own: dict[str, str] | None = None) -> dict[str, str]:
    return for_spark("a:1,b:2", options, own or {}, "read_committed")


def parsed(jaas: str) -> dict[str, str]:
    """As Kafka reads its login settings: a quoted text, in which a backslash escapes."""
    found, rest = dict[str, str](), jaas.removesuffix(";")
    _, _, rest = rest.partition(" required ")
    while rest:
        name, _, rest = rest.partition('="')
        text, n = "", 0
        while rest[n] != '"':
            n += rest[n] == "\\"
            text += rest[n]
            n += 1
        found[name], rest = text, rest[n + 1 :].lstrip()
    return found


def test_without_options_only_what_makes_reading_exact_and_quick() -> None:
    found = told({})
    assert found["kafka.bootstrap.servers"] == "a:1,b:2"
    assert found["kafka.isolation.level"] == "read_committed"
    assert found["failOnDataLoss"] == "true"
    assert not [key for key in found if "sasl" in key or "ssl" in key or "security" in key]


def test_words_that_both_clients_have_are_the_same() -> None:
    found = told({"security.protocol": "SASL_SSL", "ssl.key.password": "p"})
    assert found["kafka.security.protocol"] == "SASL_SSL"
    assert found["kafka.ssl.key.password"] == "p"


@pytest.mark.parametrize(("word", "java"), [("none", ""), ("https", "https")])
def test_a_host_name_is_checked_as_the_settings_say(word: str, java: str) -> None:
    found = told({"ssl.endpoint.identification.algorithm": word})
    assert found["kafka.ssl.endpoint.identification.algorithm"] == java


def test_what_is_one_clients_business_goes_to_that_one_only() -> None:
    found = told({"socket.keepalive.enable": "true", "debug": "all", "fetch.wait.max.ms": "1"})
    assert found == told({})


@pytest.mark.parametrize("key", ["sasl.mechanism", "sasl.mechanisms"])
@pytest.mark.parametrize(
    ("mechanism", "module"),
    [
        ("PLAIN", "plain.PlainLoginModule"),
        ("SCRAM-SHA-256", "scram.ScramLoginModule"),
        ("SCRAM-SHA-512", "scram.ScramLoginModule"),
    ],
)
def test_user_and_password_become_login_settings(key: str, mechanism: str, module: str) -> None:
    found = told({key: mechanism, "sasl.username": "headgate", "sasl.password": "s"})
    assert found["kafka.sasl.mechanism"] == mechanism
    assert found["kafka.sasl.jaas.config"] == (
        f'org.apache.kafka.common.security.{module} required username="headgate" password="s";'
    )


@given(st.text(min_size=1), st.text())
def test_any_user_and_password_is_read_as_it_was_written(user: str, password: str) -> None:
    options = {"sasl.mechanism": "PLAIN", "sasl.username": user, "sasl.password": password}
    found = told(options)["kafka.sasl.jaas.config"]
    assert parsed(found) == {"username": user, "password": password}


def test_a_mechanism_without_user_and_password_is_set_up_in_sparks_own_words() -> None:
    jaas = {"kafka.sasl.jaas.config": "mine"}
    found = told({"sasl.mechanism": "GSSAPI"}, jaas)
    assert found["kafka.sasl.mechanism"] == "GSSAPI"
    assert found["kafka.sasl.jaas.config"] == "mine"


def test_certificates_are_told_as_pem(tmp_path: Path) -> None:
    chain, private = tmp_path / "chain.pem", tmp_path / "key.pem"
    chain.write_text("CHAIN")
    private.write_text("KEY")
    found = told(
        {
            "ssl.ca.location": "/etc/ca.pem",
            "ssl.certificate.location": str(chain),
            "ssl.key.location": str(private),
        }
    )
    assert found["kafka.ssl.truststore.type"] == "PEM"
    assert found["kafka.ssl.truststore.location"] == "/etc/ca.pem"
    assert found["kafka.ssl.keystore.type"] == "PEM"
    assert found["kafka.ssl.keystore.certificate.chain"] == "CHAIN"
    assert found["kafka.ssl.keystore.key"] == "KEY"


def test_a_certificate_that_cannot_be_read_is_named() -> None:
    options = {"ssl.certificate.location": "/none/such", "ssl.key.location": "/none/such"}
    with pytest.raises(Invalid, match=r"ssl.certificate.location: /none/such cannot be read"):
        told(options)


def test_sparks_own_words_go_before_what_is_told() -> None:
    own = {"kafka.max.poll.records": "7", "kafka.security.protocol": "SSL", "groupIdPrefix": "x"}
    assert told({"security.protocol": "PLAINTEXT"}, own).items() >= own.items()


@pytest.mark.parametrize(
    "own",
    [
        {"failOnDataLoss": "false"},
        {"failondataloss": "false"},
        {"kafka.isolation.level": "read_uncommitted"},
        {"KAFKA.ISOLATION.LEVEL": "read_uncommitted"},
        {"kafka.bootstrap.servers": "elsewhere:1"},
        {"startingOffsets": "latest"},
        {"endingOffsets": "latest"},
        {"subscribe": "other"},
        {"subscribePattern": ".*"},
        {"assign": "{}"},
        {"startingTimestamp": "1"},
        {"startingOffsetsByTimestamp": "{}"},
        {"includeHeaders": "true"},
        {"minPartitions": "1"},
    ],
    ids=lambda own: next(iter(own)),
)
def test_what_makes_reading_exact_cannot_be_overridden(own: dict[str, str]) -> None:
    (key,) = own
    with pytest.raises(Invalid, match=f"spark_options {key}: .* take it out of the settings"):
        told({}, own)


def test_what_makes_reading_exact_is_not_taken_from_the_options_of_the_other_client() -> None:
    assert told({"isolation.level": "read_uncommitted"}) == told({})
