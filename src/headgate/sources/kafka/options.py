"""Options: one set of words for two clients. Pure, but for the files that a certificate lies in.

In the settings stand the words of librdkafka, which asks for metadata. Spark reads with Kafka's
Java client: what is about security is told to it in its own words; everything else is one client's
business, and goes to that one only.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headgate.errors import Invalid

PREFIX: Final = "kafka."  # of options that Spark hands on to its client

_SAME: Final = ("security.protocol", "ssl.endpoint.identification.algorithm", "ssl.key.password")
_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_DEFAULTS: Final = {  # for whole partitions at once, not for a few records now and then
    "kafka.max.poll.records": "10000",
    "kafka.fetch.max.bytes": "67108864",
    "kafka.max.partition.fetch.bytes": "16777216",
    "kafka.receive.buffer.bytes": "1048576",
    "groupIdPrefix": "headgate",
}
_DECIDED: Final = frozenset(  # which records are read, and that none is passed over in silence
    {
        *("assign", "subscribe", "subscribepattern", "startingoffsets", "endingoffsets"),
        *("startingoffsetsbytimestamp", "endingoffsetsbytimestamp", "startingtimestamp"),
        *("endingtimestamp", "startingoffsetsbytimestampstrategy", "failondataloss"),
        *("includeheaders", "minpartitions", "maxrecordsperpartition"),
        *("kafka.bootstrap.servers", "kafka.isolation.level", "kafka.auto.offset.reset"),
    }
)


def check_own(key: str) -> None:
    """Raises Invalid: an option of Spark's that is not up to the settings; it takes any case."""
    if key.lower() in _DECIDED:
        raise Invalid(
            f"source.spark_options {key}: what is read is decided here, record by record; next: "
            "take it out of the settings"
        )


def for_spark(
    brokers: str, options: Mapping[str, str], own: Mapping[str, str], isolation: str
) -> dict[str, str]:
    """`options` and `own` with their secrets; `own` is in Spark's words and goes before all else,
    and must not touch what makes reading exact. Raises Invalid."""
    for key in own:
        check_own(key)
    found = {f"{PREFIX}{key}": options[key] for key in _SAME if key in options}
    if found.get("kafka.ssl.endpoint.identification.algorithm") == "none":
        found["kafka.ssl.endpoint.identification.algorithm"] = ""
    return {
        **_DEFAULTS,
        **found,
        **_sasl(options),
        **_tls(options),
        **own,
        "kafka.bootstrap.servers": brokers,
        "kafka.isolation.level": isolation,
        "failOnDataLoss": "true",  # false passes over what is gone, in silence
    }


def _sasl(options: Mapping[str, str]) -> dict[str, str]:
    mechanism = options.get("sasl.mechanism", options.get("sasl.mechanisms"))
    if mechanism is None:
        return {}
    found = {"kafka.sasl.mechanism": mechanism}
    user, password = options.get("sasl.username"), options.get("sasl.password")
    module = _MODULES.get(mechanism)
    if module is not None and user is not None and password is not None:
        found["kafka.sasl.jaas.config"] = (
            f"{module} required username={_quoted(user)} password={_quoted(password)};"
        )
    return found


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _tls(options: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    if "ssl.ca.location" in options:
        found["kafka.ssl.truststore.type"] = "PEM"
        found["kafka.ssl.truststore.location"] = options["ssl.ca.location"]
    chain, private = options.get("ssl.certificate.location"), options.get("ssl.key.location")
    if chain is not None and private is not None:
        found["kafka.ssl.keystore.type"] = "PEM"
        found["kafka.ssl.keystore.certificate.chain"] = _file("ssl.certificate.location", chain)
        found["kafka.ssl.keystore.key"] = _file("ssl.key.location", private)
    return found


def _file(option: str, path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(
            f"source.options {option}: {path} cannot be read; next: ls -l {path}"
        ) from error
